"""What the tasks of a job of `build_lod` do."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.cluster.points import open_cloud, read_box
from spatialq.cluster.stage_files import STAGE_FILES
from spatialq.cluster.task import second_of
from spatialq.data.boxes import in_box
from spatialq.errors import FileError
from spatialq.functions.catalogue import catalogue
from spatialq.io.formats import open_source
from spatialq.io.storage import as_path
from spatialq.runtime import budget, buffers
from spatialq.workflows.lod_table import TreeSummary, partial_writer

if TYPE_CHECKING:
    from spatialq.udfs.build_lod.chunks import Divided, Step
    from spatialq.udfs.build_lod.tiles import Part, Rows
    from spatialq.udfs.build_lod.tree import Cube, Points, Root

FUNCTION = "build_lod"
AT_ONCE = 1 << 20
"""Counts that are added at once."""


def look(data: dict[str, Any], _: Path) -> dict[str, Any]:
    """Find the types of the columns of a file."""
    from spatialq.database.transport.cloud_columns import types_of_cloud

    cloud = open_source(FUNCTION, as_path(data["path"]), ["points"])
    types = types_of_cloud(cloud, data["names"])
    return {"types": {name: dtype.str for name, dtype in types.items()}}


def count(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Count the points of a file in cells.

    Returns
    -------
    dict
        `brightest`, the greatest red, green or blue; 0 if it is not asked for.

    Raises
    ------
    FileError
        If the file cannot be read, or was changed since the job began.
    """
    from spatialq.udfs.build_lod.chunks import Counts
    from spatialq.udfs.build_lod.chunks import count as count_points

    cube, steps, found, brightest = _cube(data), _steps(data["steps"]), Counts.none(), 0
    for points in _batches(data, {}):
        found = found.plus([count_points(*(points[axis] for axis in "xyz"), cube, steps)])
        if data["is_bright"]:
            brightest = max(brightest, int(_colours(points)[:, :3].max(initial=0)))
    _save(partial, vars(found))
    return {"brightest": brightest}


def divide(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Make chunks of the counts of all files.

    Returns
    -------
    dict
        `chunks`, and `full`: how many cells are counted again.

    Raises
    ------
    ValueError
        If too many points are in one place.
    """
    from spatialq.udfs.build_lod.chunks import Counts
    from spatialq.udfs.build_lod.chunks import divide as divide_cells

    found, some = Counts.none(), []
    for path in sorted(Path(data["counts"]).iterdir()):
        with np.load(path) as arrays:
            some.append(Counts(**arrays))
        if sum(each.key.size for each in some) > max(AT_ONCE, found.key.size):
            found, some = found.plus(some), []
    found = found.plus(some)
    *before, step = _steps(data["steps"])
    above = read_divided(data["steps"][-2][2]).full_cell if before else np.zeros((1, 3), np.int64)
    divided = divide_cells(found, step, above, data["most"])
    _save(partial, vars(divided))
    return {"chunks": len(divided.level), "full": len(divided.full)}


def build(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Build the nodes of a chunk and write them, and its first node for those above.

    Returns
    -------
    dict
        `rows`, `leaves`, `voxels` and `device`.

    Raises
    ------
    FileError
        If a file cannot be read, or was changed since the job began.
    """
    from spatialq.execution.call import planned
    from spatialq.functions.declaration import Size
    from spatialq.udfs.build_lod.attributes import with_attributes
    from spatialq.udfs.build_lod.cost import bytes_host
    from spatialq.udfs.build_lod.external_partitioning import rows_in_cell
    from spatialq.udfs.build_lod.table import by_level
    from spatialq.udfs.build_lod.tiles import all_of

    function = catalogue()[FUNCTION]
    options = function.choose(data["options"])
    points, classes, attributes = _read(data)
    size, room = Size(data["points"]), budget.current() // bytes_host(options)
    with planned([function], size, options, data["device"], road="files") as execution:
        given = _root(data), _cube(data), points, classes, options, execution, room
        tables, first = all_of(rows_in_cell(*given))
    nodes = with_attributes(by_level(tables), points.point_id, attributes)
    _save_first(data, first, points.point_id, attributes, partial)
    return _write(data, [nodes], partial) | {"device": execution.device}


def join(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Build nodes above chunks from the first nodes of what is below, and write them.

    Returns
    -------
    dict
        `rows`, `leaves` and `voxels`.
    """
    from spatialq.udfs.build_lod import cpu
    from spatialq.udfs.build_lod.attributes import with_attributes
    from spatialq.udfs.build_lod.split import Leaves
    from spatialq.udfs.build_lod.table import by_level
    from spatialq.udfs.build_lod.tiles import Part, Tiler, all_of

    options = catalogue()[FUNCTION].choose(data["options"])
    below = Leaves(**{name: np.array(values) for name, values in data["leaves"].items()})
    names = [f"{below.root(k).name}.npz" for k in range(len(below.level))]
    paths = [Path(STAGE_FILES.one(f"{data['roots']}{name}")) for name in names]

    def first_node(k: int) -> "Rows":
        yield from ()
        with np.load(paths[k]) as arrays:
            return Part.of_arrays(arrays)

    root, most = _root(data), int(below.points.max())
    tiler = Tiler(_cube(data), options, cpu.build, max(most, options.max_points))
    tables, first = all_of(tiler.of_tiles(below, root, first_node))
    ids, attributes = _attributes_in(paths, data["types"])
    _save_first(data, first, ids, attributes, partial)
    return _write(data, [with_attributes(by_level(tables), ids, attributes)], partial)


def read_divided(path: str) -> "Divided":
    """Read what `divide` wrote."""
    from spatialq.udfs.build_lod.chunks import Divided

    with np.load(os.fspath(as_path(path))) as arrays:  # the driver reads it, too, where it is
        return Divided(**arrays)


def _steps(steps: Sequence[Any]) -> "list[Step]":
    """Give the steps so far; of the last one it is not known which cells are full."""
    from spatialq.udfs.build_lod.chunks import Step

    *before, (level, depth, _) = steps
    known = [Step(above, deep, read_divided(path).full) for above, deep, path in before]
    return [*known, Step(level, depth, np.empty(0, np.int64))]


def _cube(data: Mapping[str, Any]) -> "Cube":
    from spatialq.udfs.build_lod.tree import Cube

    return Cube(**data["cube"])


def _root(data: Mapping[str, Any]) -> "Root":
    from spatialq.udfs.build_lod.tree import Root

    level, (x, y, z) = data["root"]
    return Root(level, (x, y, z))


def _batches(
    data: Mapping[str, Any], more: "Mapping[str, np.dtype[Any]]"
) -> Iterator[dict[str, Any]]:
    """Read the points of files that are in the bounds and may be in a box, some at a time.

    Heights are in the unit of x and y, and the ids those in the survey.
    """
    from spatialq.database.transport.cloud_columns import batches_of_clouds

    function = catalogue()[FUNCTION]
    box, hint = read_box(data)
    for path, first, *stamp in data["sources"]:
        cloud = open_cloud(FUNCTION, path, stamp)
        for batch in batches_of_clouds(function, [cloud], more=more, hint=hint):
            rows = np.flatnonzero(in_box(batch["x"], batch["y"], box))
            if not rows.size:
                continue
            found = {name: None if each is None else each[rows] for name, each in batch.items()}
            yield found | {"z": found["z"] * data["level"], "point_id": found["point_id"] + first}


def _read(data: Mapping[str, Any]) -> "tuple[Points, Any, dict[str, Any]]":
    """Read the points of a chunk, ascending by id: points, their classes, and attributes.

    Raises
    ------
    FileError
        If there are others than were counted.
    """
    from spatialq.data.points import ascends
    from spatialq.udfs.build_lod.chunks import is_inside
    from spatialq.udfs.build_lod.tiles import take
    from spatialq.udfs.build_lod.tree import Points

    n, done, cube, root = data["points"], 0, _cube(data), _root(data)
    types = {name: np.dtype(kind) for name, kind in data["types"].items()}
    xyz = [buffers.empty(n) for _ in "xyz"]
    points = Points(*xyz, buffers.empty((n, 4), np.uint16), buffers.empty(n, np.int64))
    classes = buffers.zeros(n, np.uint8)
    attributes = {
        name: np.ma.MaskedArray(buffers.empty(n, dtype), buffers.zeros(n, np.bool_))
        for name, dtype in types.items()
    }
    for batch in _batches(data, types):
        inside = np.flatnonzero(is_inside(*(batch[axis] for axis in "xyz"), cube, root))
        here = slice(done, done + inside.size)
        done += inside.size
        if done > n:
            break
        part = {name: None if each is None else each[inside] for name, each in batch.items()}
        for name in (*"xyz", "point_id"):
            getattr(points, name)[here] = part[name]
        points.colour[here] = _colours(part)
        if part["classification"] is not None:
            classes[here] = part["classification"]
        for name, column in attributes.items():
            _put(column, here, part[name])
    if done != n:
        names = ", ".join(path for path, *_ in data["sources"])
        raise FileError.of(FUNCTION, names, "has other points than when the job began")
    if not ascends(points.point_id):
        order = np.argsort(points.point_id, kind="stable")
        points, classes = take(points, order), classes[order]
        attributes = {name: column[order] for name, column in attributes.items()}
    return points, classes, attributes


def _put(column: Any, here: slice, values: Any) -> None:
    """Put values, masked where there is none, into a masked column."""
    np.ma.getmaskarray(column)[here] = True if values is None else np.ma.getmaskarray(values)
    np.ma.getdata(column)[here] = 0 if values is None else np.ma.getdata(values)


def _colours(points: Mapping[str, Any]) -> Any:
    """Give red, green, blue and intensity of points side by side."""
    from spatialq.udfs.build_lod import CHANNELS
    from spatialq.udfs.build_lod.colours import colours

    return colours(*(points[name] for name in CHANNELS), len(points["x"]))


def _write(
    data: Mapping[str, Any], tables: Sequence[Mapping[str, Any]], partial: Path
) -> dict[str, Any]:
    """Write nodes; give what there is in them."""
    of_all, summary = TreeSummary(brightest=data["brightest"]), TreeSummary()
    types = {name: np.dtype(kind) for name, kind in data["types"].items()}
    with partial_writer(partial, data["known"], of_all, types) as write:
        for nodes in tables:
            summary.add(nodes)
            write(nodes)
    return {"rows": summary.nodes, "leaves": summary.leaves, "voxels": summary.voxels}


def _save_first(
    data: Mapping[str, Any], first: "Part", ids: Any, attributes: Mapping[str, Any], partial: Path
) -> None:
    """Write the first node of a part, with the attributes of its points, unless it is the last."""
    if data["root"][0] == 0:
        return
    at = np.searchsorted(ids, first.points.point_id)
    of_points = {}
    for name, values in attributes.items():
        of_points[f"value {name}"] = np.ma.getdata(values)[at]
        of_points[f"lost {name}"] = np.ma.getmaskarray(values)[at]
    _save(second_of(partial), first.arrays() | of_points)


def _attributes_in(paths: Sequence[Path], types: Mapping[str, str]) -> tuple[Any, dict[str, Any]]:
    """Read the attributes of the points of first nodes, with the ids of those, ascending."""
    if not types:
        return np.empty(0, np.int64), {}
    keys = ["points point_id", *(f"{kind} {name}" for name in types for kind in ("value", "lost"))]
    parts: dict[str, list[Any]] = {key: [] for key in keys}
    for path in paths:
        with np.load(path) as arrays:
            for key in keys:
                parts[key].append(arrays[key])
    found = {key: np.concatenate(values) for key, values in parts.items()}
    order = np.argsort(found["points point_id"], kind="stable")
    found = {key: values[order] for key, values in found.items()}
    columns = {
        name: np.ma.MaskedArray(found[f"value {name}"], found[f"lost {name}"]) for name in types
    }
    return found["points point_id"], columns


def _save(path: Path, arrays: Mapping[str, Any]) -> None:
    with path.open("wb") as file:
        np.savez(file, **dict(arrays))
