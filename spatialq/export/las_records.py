"""The point records of a table: their fields, made of its columns."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.export.las_dimensions import (
    BYTES,
    choose_format,
    dimensions_of,
    extra_entry,
    require_room,
)
from spatialq.export.las_encoding import Field, Intensities, Times, angles, packed, plain
from spatialq.export.point_columns import Column, point_columns
from spatialq.io.las.columns import Dimension, dimensions, record_dtype

if TYPE_CHECKING:
    import pyarrow as pa

    from spatialq.runtime.arrays import Floats, Records


class PointRecords:
    """The point records of a table, without their coordinates.

    Parameters
    ----------
    path : Path
        The file to be written, for errors.
    columns : mapping
        SQL types by name, `x`, `y` and `z` among them.

    Raises
    ------
    FileError
        If a column cannot be held.
    """

    def __init__(self, path: Path, columns: Mapping[str, str]) -> None:
        self.xyz, others = point_columns(path, columns)
        of_name = {column.name: column for column in others}
        meant = dimensions_of([column.name for column in others if column.count == 1])
        self.point_format = choose_format(meant)
        there = {
            dimension: of_name.pop(meant[name])
            for name, dimension in dimensions(self.point_format).items()
            if name in meant
        }
        self.intensities: Intensities | None = None
        """Where they are of a floating type: the field is then left to the caller."""
        self._times: Times | None = None
        self._fields = [
            field
            for dimension, column in there.items()
            if (field := self._field(column, dimension))
        ]
        shared = {each.field: None for each in there if each.mask is not None}
        for name in shared:
            parts = [(column, each) for each, column in there.items() if each.field == name]
            self._fields.append(packed(name, parts, self.point_format))
        extra: list[tuple[str, Any, tuple[int, ...]]] = []
        self.description = b""
        """Data of the record that describes the extra bytes."""
        # bytes that nothing describes are the last ones
        for column in sorted(of_name.values(), key=lambda each: each.name == BYTES):
            name = f"extra bytes {len(extra)}"
            extra.append((name, column.dtype, (column.count,) if column.count > 1 else ()))
            self.description += extra_entry(column)
            self._fields.append(plain(column, name, column.dtype))
        self.dtype = record_dtype(self.point_format, extra)
        require_room(path, self.dtype.itemsize, self.description)

    def _field(self, column: Column, dimension: Dimension) -> Field | None:
        """Make the field of a dimension that does not share it."""
        if dimension.mask is not None:
            return None
        if dimension.name == "intensity" and column.dtype.kind == "f":
            self.intensities = Intensities(column)
            return None
        if dimension.name == "gps_time":
            self._times = Times(column)
            return self._times.field
        if dimension.name == "scan_angle":
            return angles(column)
        return plain(column, dimension.field, dimension.dtype)

    @property
    def has_standard_time(self) -> bool:
        """Whether the times so far are not seconds of a week."""
        return self._times is not None and self._times.are_standard

    def coordinates(self, batch: "pa.RecordBatch") -> "list[Floats]":
        """Give x, y and z of rows.

        Raises
        ------
        FileError
            If one is NULL, NaN or infinite.
        """
        return [column.coordinates(batch.column(column.name)) for column in self.xyz]

    def fill(self, records: "Records", batch: "pa.RecordBatch") -> None:
        """Put rows into as many records, but for coordinates and intensities of a floating type.

        Raises
        ------
        FileError
            If a value cannot be held.
        """
        for field in self._fields:
            columns = (column.values(batch.column(column.name)) for column in field.columns)
            records[field.name] = field.encode(*columns)
