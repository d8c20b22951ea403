"""Rows of a table as points of a LAS or LAZ file.

Scale and offset of the coordinates, and what a fractional intensity means, are known when all rows
have been seen, and a query may not give the same rows twice. So the rows are checked and staged in
a file beside the target: as point records, with float64 before each for what is not decided yet.
"""

import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from spatialq.export.las_dimensions import (
    BYTES,
    choose_format,
    dimensions,
    dimensions_of,
    extra_entry,
    require_room,
)
from spatialq.export.las_encoding import Intensities, Times, angles, bits, plain
from spatialq.export.las_file import (
    LAZ,
    WKT_BIT,
    crs_record,
    las_file,
    record,
    require_uncompressed,
    write_las,
)
from spatialq.export.las_scale import ANGLE, LENGTH, Axis, steps
from spatialq.export.point_columns import point_columns
from spatialq.io.crs import metres_per_unit
from spatialq.io.las.columns import EXTRA_BYTES
from spatialq.io.las.header import HEADER_SIZES
from spatialq.io.source import ROW_GROUP, Layout

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from spatialq.export.las_encoding import Store
    from spatialq.export.point_columns import Column

STANDARD_TIME = 1
"""Of the first byte of the global encoding: times are GPS seconds since 1980 minus a billion."""
PART = 4 * ROW_GROUP
"""Points that are compressed in one call."""


def write_points(
    path: Path,
    columns: Mapping[str, str],
    batches: "Iterable[pa.RecordBatch]",
    *,
    crs: str | None = None,
    layout: Layout | None = None,
) -> int:
    """Write rows as points.

    Columns become the dimensions that their names mean, others extra bytes. The first point format
    that has the dimensions is taken: of 0 to 5 with `scan_angle_rank`, else of 6 to 10. The version
    is 1.4. Memory does not grow with the rows.

    Parameters
    ----------
    path : Path
        The ending, .las or .laz, determines whether it is compressed.
    columns : mapping
        SQL types by name, `x`, `y` and `z` among them.
    batches : iterable of RecordBatch
        The rows, with these columns.
    crs : str, optional
        PROJJSON.
    layout : Layout, optional
        Scale and offset, taken for each axis whose values they give back exactly.

    Returns
    -------
    int
        Points written.

    Raises
    ------
    FileError
        If a column or a value cannot be held, or the file cannot be written.

    Warns
    -----
    FileWarning
        If values are rounded, or fractional intensities scaled.
    CrsWarning
        If WKT1 cannot describe the CRS.
    """
    points = _Points(path, columns, layout)
    require_uncompressed(path, points.point_format)
    records = [record(EXTRA_BYTES, points.description)] if points.description else []
    if crs is not None:
        records.append(crs_record(path, crs))
    is_angular = crs is not None and metres_per_unit(crs) is None
    coarse = (ANGLE, ANGLE, LENGTH) if is_angular else (LENGTH,) * 3
    with las_file(path) as file, tempfile.TemporaryFile(dir=path.resolve().parent) as staged:
        points.stage(batches, staged)
        places = points.places(staged, coarse)
        public = _public_header(points, places, has_wkt=crs is not None or points.point_format > 5)
        is_laz = path.suffix.lower() == LAZ
        return write_las(file, public, records, points.unstage(staged, places), compressed=is_laz)


class _Points:
    """The records of a table: what their fields are, and the rows on their way through a file."""

    def __init__(self, path: Path, columns: Mapping[str, str], layout: Layout | None) -> None:
        from laspy.point import dims

        self._xyz, others = point_columns(path, columns)
        of_name = {column.name: column for column in others}
        meant = dimensions_of([column.name for column in others if column.count == 1])
        self.point_format = choose_format(meant)
        there = dimensions(self.point_format)
        meant = {name: column for name, column in meant.items() if name in there}
        base = dims.POINT_FORMATS_DTYPE[self.point_format]
        fields = [(name, base[name]) for name in base.names]
        self._stores: list[tuple[Column, Store]] = []
        self._times: Times | None = None
        self._intensities: tuple[Column, Intensities] | None = None
        for name, spelled in meant.items():
            column, dimension = of_name.pop(spelled), there[name]
            if name == "intensity" and column.dtype.kind == "f":
                self._intensities = column, Intensities(column)
            elif name == "gps_time":
                self._times = Times(column)
                self._stores.append((column, self._times.store))
            elif name == "scan_angle":
                self._stores.append((column, angles(column)))
            elif dimension.mask is not None:
                self._stores.append((column, bits(column, dimension, self.point_format)))
            else:
                self._stores.append((column, plain(column, dimension.field, dimension.dtype)))
        self._packed = {there[name].field for name in meant if there[name].mask is not None}
        self.description = b""
        # bytes that nothing describes are the last ones of a record
        for column in sorted(of_name.values(), key=lambda each: each.name == BYTES):
            field = f"extra bytes {len(fields)}"
            fields.append((field, np.dtype((column.dtype, (column.count,) * (column.count > 1)))))
            self.description += extra_entry(column)
            self._stores.append((column, plain(column, field, column.dtype)))
        self.record = np.dtype(fields)
        require_room(path, self.record.itemsize, self.description)
        self._staged = np.dtype([("floats", "f8", (4,)), ("record", self.record)])
        given = [None] * 3 if layout is None else zip(layout.scales, layout.offsets, strict=True)
        self._axes = [Axis(*each) for each in zip(self._xyz, given, strict=True)]

    @property
    def has_standard_time(self) -> bool:
        """Whether times are not seconds of a week."""
        return self._times is not None and self._times.are_standard

    def stage(self, batches: "Iterable[pa.RecordBatch]", staged: IO[bytes]) -> None:
        """Check rows and put them into a file."""
        space = np.zeros(0, self._staged)
        for batch in batches:
            if batch.num_rows > space.size:
                space = np.zeros(batch.num_rows, self._staged)
            part = space[: batch.num_rows]
            floats, records = part["floats"], part["record"]
            for k, (column, axis) in enumerate(zip(self._xyz, self._axes, strict=True)):
                values = column.coordinates(batch.column(column.name))
                axis.add(values)
                floats[:, k] = values
            if self._intensities is not None:
                column, intensities = self._intensities
                values = column.values(batch.column(column.name))
                intensities.add(values)
                floats[:, 3] = values
            for field in self._packed:
                records[field] = 0
            for column, store in self._stores:
                store(records, column.values(batch.column(column.name)))
            staged.write(part.view(np.uint8).data)

    def places(self, staged: IO[bytes], coarse: Sequence[float]) -> list[tuple[float, float]]:
        """Choose scale and offset of each axis; `coarse` are those of values without a scale."""
        return [
            axis.choose((part["floats"][:, k] for part in self._parts(staged)), coarse[k])
            for k, axis in enumerate(self._axes)
        ]

    def unstage(
        self, staged: IO[bytes], places: Sequence[tuple[float, float]]
    ) -> "Iterator[NDArray[np.void]]":
        """Give the records of the file."""
        factor = 1 if self._intensities is None else self._intensities[1].factor()
        length = self.record.itemsize
        for part in self._parts(staged):
            # as rows of bytes, since NumPy copies records field by field
            raw = part.view(np.uint8).reshape(part.size, -1)[:, -length:]
            records = raw.copy().reshape(-1).view(self.record)
            for k, (scale, offset) in enumerate(places):
                records["XYZ"[k]] = steps(part["floats"][:, k], scale, offset)
            if self._intensities is not None:
                records["intensity"] = np.rint(part["floats"][:, 3] * factor)
            yield records

    def _parts(self, staged: IO[bytes]) -> "Iterator[NDArray[np.void]]":
        staged.seek(0)
        while raw := staged.read(PART * self._staged.itemsize):
            yield np.frombuffer(raw, self._staged)


def _public_header(
    points: _Points, places: Sequence[tuple[float, float]], *, has_wkt: bool
) -> bytearray:
    """Make a public header block without what `write_las` puts into it."""
    public = bytearray(HEADER_SIZES[4])
    encoding = WKT_BIT * has_wkt | STANDARD_TIME * points.has_standard_time
    struct.pack_into("<4s2xH", public, 0, b"LASF", encoding)
    software, now = f"spatialq {version('spatialq')}".encode(), datetime.now(UTC)
    texts = b"EXTRACTION", software
    struct.pack_into("<BB32s32sHH", public, 24, 1, 4, *texts, now.timetuple().tm_yday, now.year)
    struct.pack_into("<BH", public, 104, points.point_format, points.record.itemsize)
    scales, offsets = zip(*places, strict=True)
    struct.pack_into("<6d", public, 131, *scales, *offsets)
    return public
