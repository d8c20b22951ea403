"""Point cloud files as workflows read them: checked and opened, their CRS, their columns."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import FileError
from spatialq.io.formats import open_source
from spatialq.io.source import LAS, PointSource, Progress
from spatialq.runtime import buffers
from spatialq.workflows.outputs import Outputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS = {
    "x": np.float64, "y": np.float64, "z": np.float64, "classification": np.uint8,
    "point_id": np.int64,
}  # fmt: skip
NOISE = (7, 18)  # ASPRS classes


def open_clouds(
    sources: Sequence[Path], outputs: Outputs, endings: Sequence[str]
) -> list[PointSource]:
    """Open point clouds, after checking that the outputs can be written.

    Raises
    ------
    FileError
        If a source cannot be read or is given twice, or an output cannot be written.
    ValueError
        If an output has none of the endings, or two are one file.
    """
    from spatialq.export.las import require_format
    from spatialq.export.las_records import PointRecords
    from spatialq.export.point_columns import sql_types

    command = outputs.command
    outputs.check(sources, endings)
    opened: dict[Path, PointSource] = {}
    for source in sources:
        cloud = open_source(command, source, ["points"])
        if source.resolve() in opened:
            raise FileError.of(command, source, "is given twice")
        for target in outputs.ending_in(*LAS):
            if is_las(cloud):
                require_format(source, target)
            else:
                PointRecords(target, sql_types(cloud.schema))  # refuses columns of text
        opened[source.resolve()] = cloud
    return list(opened.values())


def crs_of(
    command: str, clouds: Sequence[PointSource], crs: str | None, *, override: bool
) -> str | None:
    """Give the CRS of clouds, or the argument `crs`, and warn about the clouds.

    Raises
    ------
    CrsError, ValueError
        As `spatialq.io.crs.given_or_own`.
    """
    from spatialq.io import crs as crs_text
    from spatialq.io.files import warn_about

    named = [(cloud.path, cloud.crs) for cloud in clouds]
    crs = crs_text.given_or_own(command, named, crs, override=override)
    for cloud in clouds:
        warn_about(command, cloud)
    return crs


def read_columns(cloud: PointSource, progress: Progress | None) -> "list[NDArray[Any]]":
    """Read x, y, z, class (0 where the file has none) and position in the file of all points."""
    arrays = {name: buffers.zeros(cloud.rows, kind) for name, kind in COLUMNS.items()}
    there = {name: values for name, values in arrays.items() if name in cloud.schema.names}
    came = cloud.read_into(there, progress)
    return [values[:came] for values in arrays.values()]


def is_las(cloud: PointSource) -> bool:
    """Whether points can be copied from a file record by record."""
    from spatialq.io.las.source import LasSource

    return isinstance(cloud, LasSource)


def write_with_columns(
    cloud: PointSource,
    target: Path,
    added: "Mapping[str, NDArray[Any]]",
    progress: Progress | None,
    *,
    crs: str | None,
    keep: "NDArray[np.bool_] | None" = None,
) -> int:
    """Write a cloud of any format as LAS or LAZ, with columns added or in the place of others.

    Parameters
    ----------
    cloud : PointSource
    target : Path
    added : mapping of str to array
        A value for each point that the source gives.
    progress : callable, optional
        Called with the target, rows so far and rows in all.
    crs : str, optional
        PROJJSON.
    keep : bool[], optional
        The points to write; by default all.

    Returns
    -------
    int
        Points written.

    Raises
    ------
    FileError
        As `spatialq.export.las_points.write_points`.
    """
    import pyarrow as pa

    from spatialq.export.las_points import write_points
    from spatialq.export.point_columns import sql_types

    names = [name for name in cloud.schema.names if name.lower() not in {"point_id", *added}]
    types = [(name, pa.from_numpy_dtype(values.dtype)) for name, values in added.items()]
    schema = pa.schema([*(cloud.schema.field(name) for name in names), *types])

    def batches() -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in cloud.batches(names):
            rows = slice(first, first + batch.num_rows)
            columns = [*batch.columns, *(pa.array(values[rows]) for values in added.values())]
            widened = pa.RecordBatch.from_arrays(columns, schema=schema)
            yield widened if keep is None else widened.filter(pa.array(keep[rows]))
            first = rows.stop
            if progress is not None:
                progress(target, first, cloud.rows)

    return write_points(target, sql_types(schema), batches(), crs=crs, layout=cloud.layout)


def without_noise(classes: "NDArray[np.uint8]") -> "NDArray[np.int64]":
    """Give the rows of the points that are not classified as noise."""
    noise = buffers.empty(classes.shape, np.bool_)
    for first in range(0, classes.size, buffers.CHUNK):
        part = slice(first, first + buffers.CHUNK)
        noise[part] = np.isin(classes[part], NOISE)
    rows: NDArray[np.int64] = buffers.positions(np.logical_not(noise, out=noise))
    return rows
