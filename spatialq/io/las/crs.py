"""The coordinate reference system of a LAS file: WKT or GeoTIFF keys, with the vertical one."""

import math
import struct
from typing import Any

from spatialq.errors import CrsError
from spatialq.io import crs
from spatialq.io.las.header import Header

PROJECTION = "LASF_Projection"
WKT_RECORD = 2112
KEYS_RECORD = 34735
GEOGRAPHIC, PROJECTED, VERTICAL = 2048, 3072, 4096
LINEAR_UNIT, VERTICAL_UNIT = 3076, 4099
USER_DEFINED = 32767
UNITS: dict[int | None, Any] = {
    9001: "metre",
    9002: {"type": "LinearUnit", "name": "foot", "conversion_factor": 0.3048},
    9003: {"type": "LinearUnit", "name": "US survey foot", "conversion_factor": 1200 / 3937},
}
UNKNOWN_HEIGHTS = (
    'VERTCRS["unknown height",VDATUM["unknown"],CS[vertical,1],'
    'AXIS["gravity-related height (H)",up],LENGTHUNIT["metre",1]]'
)


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
    entries = list(struct.iter_unpack("<4H", raw[: len(raw) // 8 * 8]))
    promised = entries[0][3] if entries else 0
    return {key: value for key, location, _, value in entries[1 : promised + 1] if location == 0}


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
    warnings = []
    if found.is_projected:
        own, found = found, _in_unit(found, codes.get(LINEAR_UNIT))
        if found is not own:
            warnings.append(
                f"its GeoTIFF keys give {found.axis_info[0].unit_name} as the unit of x and y, and "
                f"EPSG:{code}, which is in {own.axis_info[0].unit_name}: the former is used"
            )
    vertical = codes.get(VERTICAL)
    upward = None
    if vertical and vertical != USER_DEFINED:
        try:
            upward = _in_unit(pyproj.CRS.from_epsg(vertical), codes.get(VERTICAL_UNIT))
        except pyproj.exceptions.CRSError:
            warnings.append(
                f"its vertical reference system, EPSG:{vertical}, is unknown and left out"
            )
    if upward is None and found.is_projected:
        heights = _in_unit(pyproj.CRS.from_wkt(UNKNOWN_HEIGHTS), codes.get(VERTICAL_UNIT))
        if codes.get(VERTICAL_UNIT) in UNITS and not _same_unit(heights, found):
            upward = heights
    if upward is not None:
        found = pyproj.crs.CompoundCRS(f"{found.name} + {upward.name}", [found, upward])
    return str(found.to_json()), warnings


def _in_unit(system: Any, code: int | None) -> Any:
    """Give the CRS with the unit that the file says its coordinates are in.

    State plane coordinates in feet often come with the code of the system in metres; the unit is
    then what is right. The system loses its code, which stands for the other unit.
    """
    import pyproj

    if code not in UNITS:
        return system
    stated = system.to_json_dict()
    for axis in stated["coordinate_system"]["axis"]:
        axis["unit"] = UNITS[code]
    changed = pyproj.CRS.from_json_dict(stated)
    if _same_unit(system, changed):
        return system
    stated.pop("id", None)
    stated["name"] += f" ({changed.axis_info[0].unit_name})"
    return pyproj.CRS.from_json_dict(stated)


def _same_unit(first: Any, second: Any) -> bool:
    one, other = (system.axis_info[0].unit_conversion_factor for system in (first, second))
    return math.isclose(one, other, rel_tol=crs.SAME_UNIT)
