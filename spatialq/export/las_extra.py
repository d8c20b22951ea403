"""Additional fields for the points of a LAS file as extra bytes: layout and description.

Layout: ASPRS LAS specification 1.4 R15, table 24.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spatialq.errors import FileError
from spatialq.export.atomic import WRITER
from spatialq.export.las_file import as_bytes
from spatialq.io.las.columns import EXTRA_TYPES, extra_bytes
from spatialq.io.las.header import RECORD_SIZES, Header
from spatialq.runtime.arrays import Array, Records

UNDOCUMENTED = 0
NO_DATA, SCALE, OFFSET = 1, 8, 16  # bits of the field `options`
# laspy misinterprets these bits where the options are a number of bytes
SIZES = [size for size in range(255, 0, -1) if not size & (SCALE | OFFSET)]
MAX_BYTES = 65_535  # maximum bytes of a point record, and of the record that describes the fields


@dataclass(frozen=True)
class Field:
    """A field with one number per point."""

    name: str
    """At most 32 ASCII letters, as is the description."""
    values: Array
    """int32[n] or float32[n]."""
    description: str
    no_data: float
    """The number that stands for a missing value."""

    def entry(self) -> bytes:
        """Encode the description of the field in the extra bytes record."""
        kind = EXTRA_TYPES.index(self.values.dtype.str[1:]) + 1
        widest = "<d16x" if self.values.dtype.kind == "f" else "<q16x"
        no_data = struct.pack(widest, self.values.dtype.type(self.no_data).item())
        texts = self.name.encode(), no_data, self.description.encode()
        return struct.pack("<2xBB32s4x24s96x32s", kind, NO_DATA, *texts)


@dataclass(frozen=True)
class Layout:
    """Point records with additional fields."""

    record_length: int
    places: tuple[int, ...]
    """First byte of each field in a record."""
    description: bytes
    """Data of the record that describes all extra bytes."""


def lay_out(header: Header, fields: Sequence[Field]) -> Layout:
    """Append fields to those of a file; a field with an existing name and type replaces it.

    Raises
    ------
    FileError
        If an existing field has another type, or there is no room for more fields.
    """
    entries: list[bytes] = []
    there: dict[str, tuple[int, int]] = {}
    length = RECORD_SIZES[header.point_format]
    added = {field.name: field for field in fields}
    for extra in extra_bytes(header):
        if extra.raw and extra.name in added:
            wanted = added[extra.name].values.dtype.str[1:]
            if (extra.dtype, extra.count, extra.scales, extra.offsets) != (wanted, 1, None, None):
                reason = (
                    f"has extra bytes '{extra.name}' of another type; rename or drop them first"
                )
                raise FileError.of(WRITER, header.path, reason)
            there[extra.name] = len(entries), length
        entries += [extra.raw] if extra.raw else _undocumented(extra.count)
        length += extra.size
    places = []
    for field in fields:
        if field.name in there:
            k, place = there[field.name]
            entries[k] = field.entry()
        else:
            place = length
            entries.append(field.entry())
            length += field.values.dtype.itemsize
        places.append(place)
    description = b"".join(entries)
    if max(length, len(description)) > MAX_BYTES:
        reason = f"has no room for {', '.join(added)}: its point records have {len(entries)} fields"
        raise FileError.of(WRITER, header.path, reason)
    return Layout(length, tuple(places), description)


def _undocumented(count: int) -> list[bytes]:
    """Make entries for undescribed bytes, so that the following fields keep their offsets."""
    entries: list[bytes] = []
    while count:
        size = next(each for each in SIZES if each <= count)
        name = f"undocumented_{len(entries) + 1}".encode()
        entries.append(struct.pack("<2xBB32s156x", UNDOCUMENTED, size, name))
        count -= size
    return entries


def widened(records: Records, layout: Layout, fields: Sequence[Field], first: int) -> Records:
    """Append the values of fields to records; `first` is the position of the first record."""
    old = records.dtype.itemsize
    rows = slice(first, first + records.size)
    wide = np.empty((records.size, layout.record_length), np.uint8)
    wide[:, :old] = as_bytes(records)
    for field, place in zip(fields, layout.places, strict=True):
        size = field.values.dtype.itemsize
        values = np.ascontiguousarray(field.values[rows])
        wide[:, place : place + size] = values.view(np.uint8).reshape(-1, size)
    behind = layout.record_length - old
    dtype = np.dtype([*records.dtype.descr, *([("added", np.uint8, (behind,))] if behind else [])])
    return wide.reshape(-1).view(dtype)
