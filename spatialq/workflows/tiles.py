"""3D Tiles from files and tables: behind `spatialq tiles`."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.errors import FileError
from spatialq.export.lod_writers import TILESET
from spatialq.export.tiles.options import TileOptions
from spatialq.io import crs as crs_text
from spatialq.io.files import require_file
from spatialq.workflows.given_crs import GivenCrs
from spatialq.workflows.lod import FUNCTION, write_lod
from spatialq.workflows.outputs import PARQUET, input_files
from spatialq.workflows.tiles_elements import (
    COMMAND,
    elements_of_models,
    elements_of_table,
    write_tiles_of_elements,
)
from spatialq.workflows.tiles_nodes import write_tiles_of_nodes

if TYPE_CHECKING:
    import pyarrow as pa

    from spatialq.io.source import Progress

IFC = (".ifc", ".ifczip")


def write_tiles(
    source: Any,
    output: str | Path,
    *,
    crs: str | None = None,
    override_crs: bool = False,
    compress: bool = True,
    implicit: bool = False,
    colour_bits: int = 16,
    error_factor: float = 16.0,
    progress: "Progress | None" = None,
    **options: Any,
) -> dict[str, Any]:
    """Write 3D Tiles 1.1 of point clouds, of their levels of detail, or of building models.

    Parameters
    ----------
    source : path or paths, Query or table
        IFC files, whose elements become one mesh; a Parquet file that `build_lod` or `spatialq lod`
        made; point clouds, as for `write_lod`. Or elements as a Query, an Arrow table or a Parquet
        file: a column `mesh`, perhaps `colour` such as '#c04040' or '#80c0ff40', and properties.
    output : path
        Its name is tileset.json; its folder is made if it is missing.
    crs : str, optional
        Of a source that does not name one: PROJJSON, WKT, or a code such as EPSG:25832.
    override_crs : bool
        Whether `crs` also takes the place of one that the source names.
    compress : bool
        Whether with EXT_meshopt_compression.
    implicit : bool
        Whether the tree of points is implied by subtrees instead of written tile by tile.
    colour_bits : 8 or 16
        Of the colours of points, which are linear: 8 bits lose dark tones.
    error_factor : float, > 0
        Geometric error of a tile of points, in widths of its voxels.
    progress : callable, optional
        Called with file, rows so far and rows in all.
    **options
        For point clouds: `to_crs`, `bounds`, `within`, `resolution`, `device` and `memory` of
        `write_lod`, and options of `build_lod`. Of other sources only their defaults are taken.

    Returns
    -------
    dict
        For points what `write_lod` gives; else elements, triangles, seconds, outputs.

    Raises
    ------
    FileError
        If a source cannot be read, or the output not be written.
    CrsError
        If models lie at different places, x and y are degrees, or the source names another CRS
        than `crs` and is not overridden.
    ValueError
        If an option, the name of the output or a column is wrong.

    Warns
    -----
    CrsWarning
        If the tiles cannot be placed on the earth although a CRS is named, or reach so far that the
        plane of the map leaves the earth.
    """
    began = time.perf_counter()
    tiles = TileOptions(compress, implicit, colour_bits, error_factor)
    tiles.check(COMMAND)
    target = Path(output)
    if target.name.lower() != TILESET:
        message = f"{COMMAND}: output must be a file {TILESET} in a folder, got '{output}'"
        raise ValueError(message)
    known = None if crs is None else crs_text.from_argument(COMMAND, crs)
    table = _arrow(source)
    paths = [] if table is not None else input_files(COMMAND, source)
    for path in paths:
        require_file(COMMAND, path)
    kinds = {path.suffix.lower() for path in paths}
    if kinds and not kinds & {*IFC, PARQUET}:
        options |= {"crs": crs, "override_crs": override_crs, "progress": progress}
        return write_lod(paths, target, tiles=tiles, **options)
    _require_defaults(options, paths)
    given = GivenCrs(COMMAND, known, override_crs)
    if kinds and kinds <= set(IFC):
        elements, known = elements_of_models(paths, given, progress)
    elif kinds == {PARQUET} and len(paths) == 1 and "samples" in _columns_of(paths[0]):
        return write_tiles_of_nodes(paths[0], target, given, tiles, progress, began)
    elif kinds == {PARQUET} and len(paths) == 1:
        _require_not_compact(paths[0])
        import pyarrow.parquet as pq

        elements = elements_of_table(pq.read_table(paths[0]))
    elif table is not None:
        elements = elements_of_table(table)
    else:
        message = (
            f"{COMMAND}: source must be IFC files, point clouds, or one Parquet file, got "
            f"{_said(paths)}"
        )
        raise ValueError(message)
    if not kinds & set(IFC):
        known = given.for_source("the source", None)
    return write_tiles_of_elements(elements, target, known, tiles, began)


def _require_defaults(options: Mapping[str, Any], paths: Sequence[Path]) -> None:
    """Reject options that are for point clouds alone.

    Raises
    ------
    ValueError
        If one has another value than it has by default.
    """
    from spatialq.functions.catalogue import catalogue

    usual = {each.name: each.default for each in catalogue()[FUNCTION].parameters}
    usual |= dict.fromkeys(("memory", "resolution", "to_crs", "within", "scale", "offset")) | {
        "device": "auto"
    }
    for name, value in options.items():
        if name not in usual or value != usual[name]:
            message = f"{COMMAND}: {name} is for point clouds, got {_said(paths)}"
            raise ValueError(message)


def _said(paths: Sequence[Path]) -> str:
    """Name a source of each kind."""
    kinds = {path.suffix.lower(): path for path in reversed(paths)}
    return ", ".join(f"'{path}'" for path in paths if path in kinds.values()) or "a table"


def _arrow(source: Any) -> "pa.Table | None":
    """Give the rows of a Query or of anything that Arrow reads; None of paths."""
    import pyarrow as pa

    if hasattr(source, "to_arrow"):
        table: pa.Table = source.to_arrow()
        return table
    return pa.table(source) if hasattr(source, "__arrow_c_stream__") else None


def _require_not_compact(path: Path) -> None:
    if {"node", "packed"} <= set(_columns_of(path)):
        reason = "has compact samples, of which no tiles can be made: write it without compact"
        raise FileError.of(COMMAND, path, reason)


def _columns_of(path: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names: list[str] = pq.read_schema(path).names
    except (OSError, pa.ArrowInvalid) as error:
        raise FileError.of(COMMAND, path, f"is no Parquet file: {error}") from error
    return names
