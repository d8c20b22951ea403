"""Rows of a table as points of a LAS or LAZ file.

A query may give other rows when it runs again, and is therefore run once. Where the scale and
offset of the source give all coordinates back, the rows are written as they come. Else scale and
offset are known when all rows have been seen, as is what a fractional intensity means: the rows are
staged in a file beside the target, as point records, with float64 before each for what is not
decided yet.
"""

import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from spatialq.export.las_file import (
    LAZ,
    WKT_BIT,
    as_bytes,
    crs_record,
    las_file,
    record,
    require_uncompressed,
    write_las,
)
from spatialq.export.las_join import STANDARD_TIME
from spatialq.export.las_records import PointRecords
from spatialq.export.las_scale import ANGLE, LENGTH, Axis, exact_steps, steps
from spatialq.io.crs import metres_per_unit
from spatialq.io.las.columns import EXTRA_BYTES
from spatialq.io.las.header import HEADER_SIZES
from spatialq.io.las.source import THREADS, LasSource
from spatialq.io.source import ROW_GROUP, Layout
from spatialq.runtime.arrays import Records

if TYPE_CHECKING:
    import pyarrow as pa


PART = max(ROW_GROUP, 50_000 * THREADS)
"""Points that are compressed in one call: a chunk of LASzip for each core."""


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
    points = PointRecords(path, columns)
    require_uncompressed(path, points.point_format)
    records = [record(EXTRA_BYTES, points.description)] if points.description else []
    if crs is not None:
        records.append(crs_record(path, crs))
    has_wkt = crs is not None or points.point_format > 5
    is_laz = path.suffix.lower() == LAZ
    rest = iter(batches)
    left: list[pa.RecordBatch] = []
    with las_file(path) as file, tempfile.TemporaryFile(dir=Path(file.name).parent) as beside:

        def write(parts: Iterator[Records], layout: Layout) -> int:
            public = _public_header(points, layout)

            def encoded() -> Iterator[Records]:
                yield from parts
                # what kind of times there are is known after the last of them
                encoding = WKT_BIT * has_wkt | STANDARD_TIME * points.has_standard_time
                struct.pack_into("<H", public, 6, encoding)

            return write_las(file, public, records, encoded(), compressed=is_laz)

        staging = _Staging(points, layout, beside)
        if layout is not None and points.intensities is None:
            written = write(_exact(points, rest, layout, left), layout)
            if not left:
                return written
            # what is there is a whole file of the rows so far
            file.flush()
            staging.take_again(LasSource(file.name))
            file.seek(0)
            file.truncate()
        staging.take(chain(left, rest))
        is_angular = crs is not None and metres_per_unit(crs) is None
        layout = staging.choose((ANGLE, ANGLE, LENGTH) if is_angular else (LENGTH,) * 3)
        return write(staging.records(layout), layout)


def _exact(
    points: PointRecords,
    batches: "Iterable[pa.RecordBatch]",
    layout: Layout,
    left: "list[pa.RecordBatch]",
) -> Iterator[Records]:
    """Take batches as long as the layout gives their coordinates back; give their records.

    The records are in the same memory again and again. The first batch that it does not give back
    goes into `left`.
    """
    space, n = np.zeros(0, points.dtype), 0
    for batch in batches:
        numbers = exact_steps(points.coordinates(batch), layout)
        if numbers is None:
            left.append(batch)
            break
        if n + batch.num_rows > space.size:
            yield space[:n]
            space, n = _space(space, max(batch.num_rows, PART)), 0
        records = space[n : n + batch.num_rows]
        points.fill(records, batch)
        for axis, values in zip("XYZ", numbers, strict=True):
            records[axis] = values
        n += batch.num_rows
    yield space[:n]


class _Staging:
    """Rows whose scale and offset are not known yet, in a file of their own."""

    def __init__(self, points: PointRecords, layout: Layout | None, file: IO[bytes]) -> None:
        self._points, self._file = points, file
        n_floats = 3 if points.intensities is None else 4
        self._dtype = np.dtype([("floats", "f8", (n_floats,)), ("record", points.dtype)])
        given = [None] * 3 if layout is None else zip(layout.scales, layout.offsets, strict=True)
        self._axes = [Axis(*each) for each in zip(points.xyz, given, strict=True)]

    def take(self, batches: "Iterable[pa.RecordBatch]") -> None:
        """Take rows.

        Raises
        ------
        FileError
            If a value cannot be held.
        """
        space = np.zeros(0, self._dtype)
        for batch in batches:
            space = _space(space, batch.num_rows)
            part = space[: batch.num_rows]
            for k, values in enumerate(self._points.coordinates(batch)):
                part["floats"][:, k] = values
            if self._points.intensities is not None:
                part["floats"][:, 3] = self._points.intensities.values(batch)
            self._points.fill(part["record"], batch)
            self._keep(part)

    def take_again(self, cloud: LasSource) -> None:
        """Take rows that were written already."""
        scales, offsets = cloud.header.scales, cloud.header.offsets
        for records in cloud.records():
            part = np.zeros(records.size, self._dtype)
            part["record"] = records.view(self._points.dtype)
            for k, (axis, scale, offset) in enumerate(zip("XYZ", scales, offsets, strict=True)):
                part["floats"][:, k] = records[axis] * scale + offset
            self._keep(part)

    def _keep(self, part: Records) -> None:
        for k, axis in enumerate(self._axes):
            axis.add(part["floats"][:, k])
        self._file.write(part.view(np.uint8).data)

    def choose(self, coarse: Sequence[float]) -> Layout:
        """Choose scales and offsets; `coarse` are scales for coordinates that none gives back."""
        places = [axis.choose(scale) for axis, scale in zip(self._axes, coarse, strict=True)]
        (xs, xo), (ys, yo), (zs, zo) = places
        return Layout((xs, ys, zs), (xo, yo, zo))

    def records(self, layout: Layout) -> Iterator[Records]:
        """Give the records of all rows."""
        intensities = self._points.intensities
        factor = 1 if intensities is None else intensities.factor()
        length = self._points.dtype.itemsize
        self._file.seek(0)
        while staged := self._file.read(PART * self._dtype.itemsize):
            part = np.frombuffer(staged, self._dtype)
            raw = as_bytes(part)[:, -length:]
            records = raw.copy().reshape(-1).view(self._points.dtype)
            for k, (scale, offset) in enumerate(zip(layout.scales, layout.offsets, strict=True)):
                records["XYZ"[k]] = steps(part["floats"][:, k], scale, offset)
            if intensities is not None:
                records["intensity"] = np.rint(part["floats"][:, 3] * factor)
            yield records


def _space(space: Records, rows: int) -> Records:
    """Give the memory that is there, or other one if it is too small."""
    return space if rows <= space.size else np.zeros(rows, space.dtype)


def _public_header(points: PointRecords, layout: Layout) -> bytearray:
    """Make a public header block without global encoding and what `write_las` puts into it."""
    public = bytearray(HEADER_SIZES[4])
    public[:4] = b"LASF"
    software, now = f"spatialq {version('spatialq')}".encode(), datetime.now(UTC)
    texts = b"EXTRACTION", software
    struct.pack_into("<BB32s32sHH", public, 24, 1, 4, *texts, now.timetuple().tm_yday, now.year)
    struct.pack_into("<BH", public, 104, points.point_format, points.dtype.itemsize)
    struct.pack_into("<6d", public, 131, *layout.scales, *layout.offsets)
    return public
