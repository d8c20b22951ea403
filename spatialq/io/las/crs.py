"""The coordinate reference system of a LAS file: WKT or GeoTIFF keys, with the vertical one."""

import struct

from spatialq.errors import CrsError
from spatialq.io import crs
from spatialq.io.las.header import Header

PROJECTION = "LASF_Projection"
WKT_RECORD = 2112
KEYS_RECORD = 34735
MODEL_TYPE, GEOGRAPHIC, PROJECTED, VERTICAL = 1024, 2048, 3072, 4096
USER_DEFINED = 32767


def read_crs(header: Header) -> tuple[str | None, str | None]:
    """Give the CRS as PROJJSON and the text that the file has for it; either may be None.

    WKT comes first, whatever the header's WKT bit says: files with both are common, files
    where the bit is right are not. What PROJ cannot read becomes a warning of the header.
    """
    wkt = header.find(PROJECTION, WKT_RECORD)
    text = wkt.split(b"\0", 1)[0].decode("utf-8", "replace").strip() if wkt else ""
    if text:
        try:
            return crs.from_text(text), text
        except CrsError as error:
            header.warnings.append(f"its coordinate reference system is not used: {error}")
    keys = header.find(PROJECTION, KEYS_RECORD)
    if not keys:
        return None, text or None
    codes = _geo_keys(keys)
    described = text or " ".join(f"{key}={value}" for key, value in sorted(codes.items())) or None
    found, warnings = _from_keys(codes)
    header.warnings += warnings
    return found, described


def _geo_keys(raw: bytes) -> dict[int, int]:
    """Read the keys whose value stands in the key itself, as all codes do."""
    if len(raw) < 8:
        return {}
    (promised,) = struct.unpack_from("<H", raw, 6)
    keys = {}
    for i in range(1, min(promised, len(raw) // 8 - 1) + 1):
        key, location, _, value = struct.unpack_from("<4H", raw, 8 * i)
        if location == 0:
            keys[key] = value
    return keys


@crs.in_proj_thread
def _from_keys(codes: dict[int, int]) -> tuple[str | None, list[str]]:
    import pyproj

    code = codes.get(PROJECTED) or codes.get(GEOGRAPHIC)
    if not code:
        return None, []
    if code == USER_DEFINED:
        return None, ["its coordinate reference system, user-defined by GeoTIFF keys, is not used"]
    try:
        found = pyproj.CRS.from_epsg(code)
    except pyproj.exceptions.CRSError:
        return None, [f"PROJ does not know its coordinate reference system EPSG:{code}"]
    vertical = codes.get(VERTICAL)
    warnings = []
    if vertical and vertical != USER_DEFINED:
        try:
            upward = pyproj.CRS.from_epsg(vertical)
            found = pyproj.crs.CompoundCRS(f"{found.name} + {upward.name}", [found, upward])
        except pyproj.exceptions.CRSError:
            warnings.append(
                f"its vertical reference system, EPSG:{vertical}, is unknown and left out"
            )
    return str(found.to_json()), warnings
