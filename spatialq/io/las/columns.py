"""The columns of a LAS file: from packed point records to Arrow arrays, under laspy's names."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.io.las.header import RECORD_SIZES, Header
from spatialq.runtime.arrays import DType, Records

SCAN_ANGLE_STEP = 0.006  # degrees a unit, point formats 6 to 10

LAYERS = {
    "z": "Z",
    "classification": "CLASSIFICATION",
    "classification_flags": "FLAGS",
    "intensity": "INTENSITY",
    "scan_angle": "SCAN_ANGLE",
    "user_data": "USER_DATA",
    "point_source_id": "POINT_SOURCE_ID",
    "gps_time": "GPS_TIME",
    "red": "RGB",
    "green": "RGB",
    "blue": "RGB",
    "nir": "NIR",
}
"""The LASzip layer that holds a field, where it is not the base layer or the waveform's."""

EXTRA_BYTES = ("LASF_Spec", 4)
EXTRA_BYTES_RECORD = 192
EXTRA_TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")


@dataclass(frozen=True)
class Dimension:
    """A standard field of point records."""

    name: str
    field: str
    """Of the record, which holds other dimensions, too, where there is a mask."""
    dtype: DType
    mask: int | None = None


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, how to make it from records, and the layer that holds it."""

    name: str
    type: pa.DataType
    layer: str
    convert: Callable[[Records], Any]


@dataclass(frozen=True)
class ExtraBytes:
    """One field of the extra bytes VLR."""

    name: str
    dtype: str
    count: int
    scales: tuple[float, ...] | None
    offsets: tuple[float, ...] | None
    raw: bytes = b""
    """Its entry in the VLR; empty for bytes that nothing describes."""

    @property
    def size(self) -> int:
        """Its bytes in a point record."""
        return int(np.dtype(self.dtype).itemsize) * self.count


def record_columns(header: Header) -> tuple[np.dtype[np.void], list[Column]]:
    """Give the dtype of a point record and all columns but `point_id`.

    Extra bytes whose name is taken get a number and add a warning to the header.
    """
    columns = [
        _coordinate(axis, scale, offset)
        for axis, scale, offset in zip("xyz", header.scales, header.offsets, strict=True)
    ]
    columns += [_standard(each) for each in dimensions(header.point_format).values()]
    fields = []
    taken = {"point_id", "file_name", *(column.name for column in columns)}
    extras = extra_bytes(header)
    described = len(header.find(*EXTRA_BYTES) or b"") // EXTRA_BYTES_RECORD
    if sum(bool(extra.raw) for extra in extras) < described:
        header.warnings.append(
            "its description of the extra bytes does not fit the point records; the rest is read "
            "as plain bytes"
        )
    for i, extra in enumerate(extras):
        field = f"extra bytes {i}"  # no LAS dimension can have this name
        fields.append((field, f"<{extra.dtype}", (extra.count,)))
        name = _free_name(header, extra.name or f"extra_{i + 1}", taken)
        taken.add(name.lower())
        columns.append(_extra(field, name, extra))
    return record_dtype(header.point_format, fields), columns


@cache
def dimensions(point_format: int) -> Mapping[str, Dimension]:
    """Name the standard fields of a point format, but for X, Y and Z."""
    from laspy.point import dims

    record = dims.POINT_FORMATS_DTYPE[point_format]
    packed = dims.COMPOSED_FIELDS[point_format]
    found = []
    for field in record.names[3:]:
        parts = packed.get(field, [(field, None)])
        found += [Dimension(name, field, record[field], mask) for name, mask in parts]
    return {each.name: each for each in found}


def record_dtype(
    point_format: int, extra: Sequence[tuple[str, Any, tuple[int, ...]]] = ()
) -> np.dtype[np.void]:
    """Give the dtype of a point record with extra bytes: name, type and shape of each field."""
    from laspy.point import dims

    base = dims.POINT_FORMATS_DTYPE[point_format]
    return np.dtype([*((name, base[name]) for name in base.names), *extra])


def _layer(field: str) -> str:
    if field in ("bit_fields", "x", "y"):
        return "XY_RETURNS_CHANNEL"
    return LAYERS.get(field, "WAVEPACKET")


def _coordinate(axis: str, scale: float, offset: float) -> Column:
    field = axis.upper()

    def convert(records: Records) -> Any:
        values = records[field] * scale
        values += offset
        return pa.array(values)

    return Column(axis, pa.float64(), _layer(axis), convert)


def _standard(dimension: Dimension) -> Column:
    name, field, mask = dimension.name, dimension.field, dimension.mask
    # the scanner channel shares a byte with the flags but sits in the base layer
    layer = _layer("bit_fields" if name == "scanner_channel" else field)
    if field == "scan_angle":
        return Column(name, pa.float32(), layer, _scan_angle)
    if mask is None:
        return Column(
            name,
            pa.from_numpy_dtype(dimension.dtype),
            layer,
            lambda records: pa.array(np.ascontiguousarray(records[field])),
        )
    if mask.bit_count() == 1:
        return Column(
            name, pa.bool_(), layer, lambda records: pa.array((records[field] & mask) != 0)
        )
    shift = (mask & -mask).bit_length() - 1
    return Column(
        name, pa.uint8(), layer, lambda records: pa.array((records[field] & mask) >> shift)
    )


def _scan_angle(records: Records) -> Any:
    return pa.array((records["scan_angle"] * SCAN_ANGLE_STEP).astype(np.float32))


def _extra(field: str, name: str, extra: ExtraBytes) -> Column:
    scaled = extra.scales is not None or extra.offsets is not None
    scales = np.array(extra.scales or (1.0,) * extra.count)
    offsets = np.array(extra.offsets or (0.0,) * extra.count)
    value_type = pa.float64() if scaled else pa.from_numpy_dtype(np.dtype(extra.dtype))

    def convert(records: Records) -> Any:
        values = records[field]
        values = values * scales + offsets if scaled else np.ascontiguousarray(values)
        flat = pa.array(values.reshape(-1))
        return flat if extra.count == 1 else pa.FixedSizeListArray.from_arrays(flat, extra.count)

    column_type = value_type if extra.count == 1 else pa.list_(value_type, extra.count)
    return Column(name, column_type, "ALL_EXTRA_BYTES", convert)


def _free_name(header: Header, name: str, taken: set[str]) -> str:
    """Give a name that no other column has; SQL does not tell X from x."""
    if name.lower() not in taken:
        return name
    number = 2
    while f"{name}_{number}".lower() in taken:
        number += 1
    header.warnings.append(f"its extra bytes '{name}' are called '{name}_{number}' here")
    return f"{name}_{number}"


def extra_bytes(header: Header) -> list[ExtraBytes]:
    """Give the fields behind the standard ones; bytes that nothing describes are one array."""
    left = header.record_length - RECORD_SIZES[header.point_format]
    described = header.find(*EXTRA_BYTES) or b""
    found = []
    for begin in range(0, len(described) - EXTRA_BYTES_RECORD + 1, EXTRA_BYTES_RECORD):
        extra = _described(described[begin : begin + EXTRA_BYTES_RECORD])
        if extra is None or extra.size > left:
            break
        found.append(extra)
        left -= extra.size
    if left:
        found.append(ExtraBytes("ExtraBytes", "u1", left, None, None))
    return found


def _described(raw: bytes) -> ExtraBytes | None:
    kind, options = raw[2], raw[3]
    name = raw[4:36].split(b"\0", 1)[0].decode("utf-8", "replace").strip()
    if kind == 0:  # undocumented: the options are its size
        return ExtraBytes(name, "u1", options, None, None, raw) if options else None
    if kind > 3 * len(EXTRA_TYPES):
        return None
    count, kind = divmod(kind - 1, len(EXTRA_TYPES))
    count += 1
    scales = struct.unpack_from(f"<{count}d", raw, 112) if options & 8 else None
    offsets = struct.unpack_from(f"<{count}d", raw, 136) if options & 16 else None
    return ExtraBytes(name, EXTRA_TYPES[kind], count, scales, offsets, raw)
