"""3D Tiles from files and tables: behind `spatialq tiles`."""

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.columns import Lists, Text
from spatialq.data.meshes import Meshes
from spatialq.errors import CrsError, CrsWarning, FileError
from spatialq.export.lod_writers import TILESET
from spatialq.export.tiles.elements import Elements, write_elements
from spatialq.export.tiles.options import TileOptions
from spatialq.export.tiles.place import place_of
from spatialq.io import crs as crs_text
from spatialq.io.files import require_file
from spatialq.workflows.lod import FUNCTION, write_lod
from spatialq.workflows.lod_nodes import COLOURS, Seen, open_writers
from spatialq.workflows.outputs import PARQUET, Outputs, input_files

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from spatialq.io.ifc.model import IfcModel
    from spatialq.io.source import Progress

COMMAND = "tiles"
IFC = (".ifc", ".ifczip")
NODES = ("node", "xmin", "ymin", "zmin", "size", "spacing", "is_leaf", "count", "samples")
"""Columns of levels of detail that are read."""
NUMBERS = (*(name for name in NODES if name not in ("node", "samples")), "level")
NOT_DRAWN = ("IfcOpeningElement", "IfcSpace", "IfcVirtualElement")
PROPERTIES = ("global_id", "ifc_class", "name", "storey")
GREY = (0.8, 0.8, 0.8, 1.0)
"""Of an element without a colour."""
MOST_COLOUR = 65535
NEARLY_ONE = 0.01
"""How much the scale of a map conversion may differ from 1 and still be one of the map."""


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
        For point clouds: `bounds`, `resolution`, `device` and `memory` of `write_lod`, and options
        of `build_lod`. Of other sources only their defaults are taken.

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
    given = Given(known, override_crs)
    if kinds and kinds <= set(IFC):
        elements, known = _of_models(paths, given, progress)
    elif kinds == {PARQUET} and len(paths) == 1 and "samples" in _columns_of(paths[0]):
        return _write_nodes(paths[0], target, given, tiles, progress, began)
    elif kinds == {PARQUET} and len(paths) == 1:
        _require_not_compact(paths[0])
        import pyarrow.parquet as pq

        elements = _of_table(pq.read_table(paths[0]))
    elif table is not None:
        elements = _of_table(table)
    else:
        message = (
            f"{COMMAND}: source must be IFC files, point clouds, or one Parquet file, got "
            f"{_said(paths)}"
        )
        raise ValueError(message)
    if not kinds & set(IFC):
        known = given.for_source("the source", None)
    return _write_elements(elements, target, known, tiles, began)


@dataclass(frozen=True)
class Given:
    """The arguments `crs`, as PROJJSON, and `override_crs`."""

    crs: str | None
    is_override: bool

    def for_source(self, source: object, own: str | None) -> str | None:
        """Give the CRS of a source that names its own one or none."""
        named = [(source, own)]
        return crs_text.given_or_own(COMMAND, named, self.crs, override=self.is_override)


def _require_defaults(options: Mapping[str, Any], paths: Sequence[Path]) -> None:
    """Reject options that are for point clouds alone.

    Raises
    ------
    ValueError
        If one has another value than it has by default.
    """
    from spatialq.functions.catalogue import catalogue

    usual = {each.name: each.default for each in catalogue()[FUNCTION].parameters}
    usual |= {"device": "auto", "memory": None, "resolution": None}
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


def _write_elements(
    elements: Elements, target: Path, crs: str | None, tiles: TileOptions, began: float
) -> dict[str, Any]:
    vertices = elements.meshes.vertices
    low, high = (
        (vertices.min(axis=0).tolist(), vertices.max(axis=0).tolist())
        if len(vertices)
        else ([0.0] * 3, [0.0] * 3)
    )
    place = place_of(COMMAND, crs, (low[0], low[1], low[2], high[0], high[1], high[2]))
    extras = {
        "elements": len(elements.meshes),
        "crs": crs_text.compact(crs),
        "lies_in": place.lies_in,
    }
    write_elements(target, elements, place, extras, compress=tiles.compress)
    return {
        "elements": len(elements.meshes),
        "triangles": len(elements.meshes.faces),
        "seconds": time.perf_counter() - began,
        "outputs": [str(target)],
    }


def _of_models(
    paths: Sequence[Path], given: Given, progress: "Progress | None"
) -> tuple[Elements, str | None]:
    """Read models, without openings and spaces; give their elements on the map, and its CRS."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from spatialq.database.readers.ifc_models import warn_about_model
    from spatialq.io import georeference
    from spatialq.io.ifc.cache import read_models
    from spatialq.io.ifc.colours import read_colours

    models = read_models(paths, geometry="auto", progress=progress)
    for model in models:
        warn_about_model(COMMAND, model, stacklevel=4)
    georeference.require_same(COMMAND, [(f"'{m.path}'", m.georeference) for m in models])
    tables, colours = [], []
    for model in models:
        table = model.tables["elements"]
        is_drawn = pc.invert(pc.is_in(table["ifc_class"], pa.array(NOT_DRAWN)))
        table = table.filter(is_drawn)
        known = read_colours(model.path)
        colours += [known.get(number, GREY) for number in table["step_id"].to_pylist()]
        tables.append(table)
    table = pa.concat_tables(tables)
    names = (*PROPERTIES, *(("file_name",) if len(models) > 1 else ()))
    properties = {name: _texts(table[name]) for name in names}
    meshes = _meshes(table)
    placed, own = _on_map(meshes, models[0], given)
    return Elements(placed, np.array(colours).reshape(-1, 4), properties), own


def _on_map(meshes: Meshes, model: "IfcModel", given: Given) -> tuple[Meshes, str | None]:
    """Move meshes to where the map conversion says, in units of the map; and give its CRS."""
    said, own = model.georeference, None
    if said is not None and said["crs_name"]:
        try:
            own = crs_text.from_text(said["crs_name"])
        except CrsError as error:
            if given.crs is None:
                message = f"{COMMAND}: '{model.path}': {error}"
                warnings.warn(message, CrsWarning, stacklevel=3)
    own = given.for_source(model.path, own)
    if said is None:
        return meshes, own
    units = None if own is None else crs_text.metres_per_unit(own)
    metres = units[0] if units else 1.0
    factor = (said["scale"] or 0.0) * metres / (model.length_unit_metres or 1.0)
    if abs(factor - 1) > NEARLY_ONE:
        factor = 1.0  # not said, or forgotten: many programs write 1 whatever the units are
    x, y = said["x_axis_abscissa"], said["x_axis_ordinate"]
    angle = math.atan2(y, x) if x is not None and y is not None else 0.0
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    moved = np.empty_like(meshes.vertices)
    moved[:, :2] = meshes.vertices[:, :2] @ turn.T * (factor / metres)
    moved[:, 2] = meshes.vertices[:, 2] / metres
    moved += [said["eastings"] or 0.0, said["northings"] or 0.0, said["orthogonal_height"] or 0.0]
    return Meshes(moved, meshes.faces, meshes.vertex_starts, meshes.face_starts), own


def _of_table(table: "pa.Table") -> Elements:
    """Give the elements of a table.

    Raises
    ------
    ValueError
        If there is no mesh, or a colour cannot be read.
    """
    import pyarrow.types as types

    if "mesh" not in table.column_names or not types.is_struct(table.schema.field("mesh").type):
        message = (
            f"{COMMAND}: source must have a column mesh as read_ifc gives it, got the columns "
            f"{', '.join(table.column_names)}"
        )
        raise ValueError(message)
    left = [
        field.name
        for field in table.schema
        if field.name not in ("mesh", "colour") and not types.is_nested(field.type)
    ]
    colours = np.tile(GREY, (table.num_rows, 1))
    if "colour" in table.column_names:
        for k, text in enumerate(table["colour"].to_pylist()):
            if text is not None:
                colours[k] = _colour(text)
    return Elements(_meshes(table), colours, {name: _texts(table[name]) for name in left})


def _colour(text: Any) -> "NDArray[np.float64]":
    try:
        channels = bytes.fromhex(text.removeprefix("#"))
        if len(channels) not in (3, 4) or not text.startswith("#"):
            raise ValueError
    except (ValueError, AttributeError):
        message = f"{COMMAND}: colour must be like '#c04040' or '#80c0ff40', got {text!r}"
        raise ValueError(message) from None
    return np.array([*channels, 255][:4]) / 255


def _texts(column: "pa.ChunkedArray") -> list[str]:
    import pyarrow as pa

    return ["" if each is None else each for each in column.cast(pa.string()).to_pylist()]


def _meshes(table: "pa.Table") -> Meshes:
    """Give the meshes of a table, empty ones for NULL."""
    from spatialq.database.transport.elements import meshes_of

    return meshes_of(f"{COMMAND}: mesh", table["mesh"].combine_chunks())


def _write_nodes(
    source: Path,
    target: Path,
    given: Given,
    tiles: TileOptions,
    progress: "Progress | None",
    began: float,
) -> dict[str, Any]:
    """Write the nodes of a Parquet file, a row group at a time, which is read twice."""
    import pyarrow.parquet as pq

    from spatialq.workflows.lod_table import TreeSummary

    with pq.ParquetFile(source) as file:
        missing = [name for name in NODES if name not in file.schema_arrow.names]
        if missing:
            reason = f"has no column {missing[0]}: it is no table of levels of detail"
            raise FileError.of(COMMAND, source, reason)
        known = (file.schema_arrow.metadata or {}).get(b"crs")
        seen = Seen(COMMAND, given.for_source(source, known.decode() if known else None), None)
        for nodes in _nodes(file, source):
            seen.add_leaves(nodes)
        summary = TreeSummary()
        with ExitStack() as stack:
            (write,) = open_writers([target], seen.cloud(), stack, tiles)
            for nodes in _nodes(file, source):
                write(nodes)
                summary.add(nodes)
                if progress is not None:
                    progress(source, summary.points, seen.points)
    return {
        **asdict(summary),
        "device": None,
        "seconds": time.perf_counter() - began,
        "outputs": Outputs.of(COMMAND, target).names,
    }


def _nodes(file: "pq.ParquetFile", source: Path) -> Iterator[Mapping[str, Any]]:
    """Give the nodes of a file, as kernels give them."""
    for k in range(file.num_row_groups):
        group = file.read_row_group(k).combine_chunks()
        if not group.num_rows:
            continue
        plain = {name: group[name].to_numpy() for name in group.column_names if name in NUMBERS}
        lists = group["samples"].combine_chunks()
        samples = {
            field.name: _numbers(source, field.name, lists.values.field(index))
            for index, field in enumerate(lists.type.value_type)
        }
        _require_samples(source, samples)
        names = group["node"].to_pylist()
        yield {
            **plain,
            "node": Text(np.arange(len(names)), names),
            "samples": Lists(lists.offsets.to_numpy(), samples),
        }


def _require_samples(source: Path, samples: "Mapping[str, NDArray[Any]]") -> None:
    """Reject samples without coordinates, or whose colours are none."""
    for name in (*"xyz", *COLOURS):
        if name not in samples:
            reason = f"samples have no {name}: they need x, y, z, red, green and blue"
            raise FileError.of(COMMAND, source, reason)
        values = samples[name]
        if np.ma.getmaskarray(values).any():
            raise FileError.of(COMMAND, source, f"column '{name}' of samples has NULL")
        if name in COLOURS and (
            values.dtype.kind not in "iu"
            or (values.size and not 0 <= values.min() <= values.max() <= MOST_COLOUR)
        ):
            reason = f"column '{name}' of samples must be whole numbers from 0 to {MOST_COLOUR}"
            raise FileError.of(COMMAND, source, reason)


def _numbers(source: Path, name: str, column: "pa.Array") -> "NDArray[Any]":
    """Give a column of samples, masked where it has NULL."""
    import pyarrow.types as types

    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        reason = f"column '{name}' of samples is {kind}, but attributes of points are numbers"
        raise FileError.of(COMMAND, source, reason)
    if not column.null_count:
        return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    return np.ma.array(values, mask=column.is_null().to_numpy(zero_copy_only=False))
