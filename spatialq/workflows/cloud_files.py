"""Point cloud files as workflows read and write them: checked, opened, their CRS, their copies."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.errors import FileError
from spatialq.functions.declaration import Parameter
from spatialq.io.clouds import are_las, at_resolution
from spatialq.io.formats import open_source
from spatialq.io.reprojected import moved, operations, warn_of_missing_grids
from spatialq.io.source import LAS, PointSource, Progress
from spatialq.workflows.lengths import with_numbers
from spatialq.workflows.outputs import Outputs
from spatialq.workflows.steps import in_steps, steps_in
from spatialq.workflows.within import Within, clipped

if TYPE_CHECKING:
    from spatialq.runtime.arrays import Array, Bools

POINT_ID = "point_id"
RESOLUTION = Parameter(
    "resolution", float, None, "Spacing of points.", unit="units of x and y", is_optional=True
)
"""Of the option of all workflows that read clouds; its value may be a text with a unit."""


def open_clouds(
    given: object, sources: Sequence[Path], outputs: Outputs, endings: Sequence[str]
) -> list[PointSource]:
    """Open point clouds, after checking that the outputs can be written.

    Parameters
    ----------
    given : path or paths
        What the user gave as `source`.
    sources : sequence of Path
        The files that it means.
    outputs : Outputs
    endings : sequence of str
        That outputs may have.

    Raises
    ------
    FileError
        If a source cannot be read, or an output cannot be written.
    ValueError
        If an output has none of the endings, or two are one file.
    """
    command = outputs.command
    outputs.check(sources, endings)
    outputs.require_outside(given, sources)
    clouds = [open_source(command, source, ["points"]) for source in sources]
    for target, group in las_outputs(clouds, outputs):
        _require_format(command, group, target)
    return clouds


def las_outputs(
    clouds: Sequence[PointSource], outputs: Outputs
) -> list[tuple[Path, Sequence[PointSource]]]:
    """Name the LAS and LAZ files to write, and of which clouds each has the points."""
    found: list[tuple[Path, Sequence[PointSource]]] = [
        (target, clouds) for target in outputs.ending_in(*LAS)
    ]
    for folder in outputs.folders:
        targets = outputs.in_folder(folder, [cloud.path for cloud in clouds])
        found += [(target, [cloud]) for target, cloud in zip(targets, clouds, strict=True)]
    return found


def _require_format(command: str, clouds: Sequence[PointSource], target: Path) -> None:
    from spatialq.export.las import require_format
    from spatialq.export.las_records import PointRecords
    from spatialq.export.point_columns import sql_types

    if are_las(clouds):
        require_format([cloud.path for cloud in clouds], target)
        return
    PointRecords(target, sql_types(clouds[0].schema))  # refuses columns of text
    first, *others = clouds
    for cloud in others:
        columns = [sorted(sql_types(each.schema).items()) for each in (first, cloud)]
        if columns[0] != columns[1]:
            apart = sorted(name for name, _ in set(columns[0]) ^ set(columns[1]))
            reason = (
                f"'{first.path}' and '{cloud.path}' have different columns "
                f"({', '.join(dict.fromkeys(apart))}); write each into a file of its own (an "
                "output that is a folder, such as out/)"
            )
            raise FileError.of(command, target, reason)


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


def considered(
    command: str,
    clouds: list[PointSource],
    crs: str | None,
    *,
    override: bool,
    to_crs: str | None = None,
    resolution: float | str | None = None,
    within: "Within | str | Path | None" = None,
    scale: float | Sequence[float] | None = None,
    offset: Sequence[float] | None = None,
) -> tuple[list[PointSource], str | None]:
    """Give what of clouds a command considers, and in which CRS.

    Parameters
    ----------
    command : str
    clouds : list of PointSource
    crs, override
        As of `crs_of`.
    to_crs : str, optional
        CRS to reproject to.
    resolution
        As of `thinned`.
    within
        As of `spatialq.workflows.within.clipped`, in the CRS to which the clouds are reprojected.
    scale, offset
        As of `spatialq.workflows.steps.in_steps`. Clouds that are reprojected have steps about as
        long as those of the files.

    Raises
    ------
    CrsError
        As `crs_of`; also if the clouds cannot be reprojected, or the polygons are in another CRS.
    FileError, ValueError
        As `thinned` and `clipped`.
    """
    crs = crs_of(command, clouds, crs, override=override)
    clouds = _thinned(command, clouds, resolution, crs)
    if to_crs is not None:
        chosen = operations(command, clouds, to_crs, [crs] * len(clouds))
        warn_of_missing_grids(command, chosen)
        pairs = zip(clouds, chosen, strict=True)
        before = crs
        layouts = [cloud.layout for cloud in clouds]
        clouds, crs = [moved(command, *pair) for pair in pairs], chosen[0].target
        if scale is None and layouts[0] is not None and clouds[0].layout is None:
            scale = steps_in(layouts[0].scales, before, crs)
    clouds = in_steps(command, clouds, scale, offset)
    return clipped(command, clouds, within, crs), crs


def _thinned(
    command: str,
    clouds: list[PointSource],
    resolution: float | str | None,
    crs: str | None,
) -> list[PointSource]:
    """Give clouds only as dense as is needed: without the finer nodes of their octrees.

    Points keep their positions.

    Parameters
    ----------
    command : str
    clouds : list of PointSource
    resolution : float or str, optional
        Spacing of points, in the unit of x and y, or as a text with a unit such as '50cm'.
    crs : str, optional
        PROJJSON.

    Raises
    ------
    FileError
        If one has no octree.
    ValueError
        If it is no length above 0.
    """
    if resolution is None:
        return clouds
    given = {RESOLUTION.name: resolution}
    number = with_numbers(command, given, [RESOLUTION], clouds[0].path, crs)[RESOLUTION.name]
    return [at_resolution(command, cloud, number) for cloud in clouds]


def are_whole(clouds: Sequence[PointSource]) -> bool:
    """Whether all points of files are read."""
    return all(cloud.is_whole for cloud in clouds)


def write_with_columns(
    clouds: Sequence[PointSource],
    target: Path,
    added: "Mapping[str, Array]",
    progress: Progress | None,
    *,
    crs: str | None,
    keep: "Bools | None" = None,
) -> int:
    """Write clouds of any format as one LAS or LAZ, with columns added or in the place of others.

    Parameters
    ----------
    clouds : sequence of PointSource
        With the same columns.
    target : Path
    added : mapping of str to array
        A value for each row of the sources, one after the other.
    progress : callable, optional
        Called with the target, rows so far and rows in all.
    crs : str, optional
        PROJJSON.
    keep : bool[], optional
        The rows to write; by default all.

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

    first_schema = clouds[0].schema
    names = [name for name in first_schema.names if name.lower() not in {POINT_ID, *added}]
    types = [(name, pa.from_numpy_dtype(values.dtype)) for name, values in added.items()]
    schema = pa.schema([*(first_schema.field(name) for name in names), *types])
    rows_in_all = sum(cloud.rows for cloud in clouds)

    def batches() -> Iterator[pa.RecordBatch]:
        first = 0
        for cloud in clouds:
            for batch in cloud.batches([POINT_ID, *names]):
                rows = batch.column(0).to_numpy() + first
                new = (pa.array(values[rows]) for values in added.values())
                widened = pa.RecordBatch.from_arrays([*batch.columns[1:], *new], schema=schema)
                yield widened if keep is None else widened.filter(pa.array(keep[rows]))
                if progress is not None:
                    progress(target, int(rows[-1]) + 1 if rows.size else first, rows_in_all)
            first += cloud.rows

    return write_points(target, sql_types(schema), batches(), crs=crs, layout=clouds[0].layout)
