"""The octree as a table: one row per node, with its samples in the units of the cloud."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.data.columns import NUMPY_TYPES, Lists, Text
from spatialq.runtime import buffers
from spatialq.runtime.arrays import Bytes, Floats, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.progress import check
from spatialq.runtime.threads import in_threads

from . import CHANNELS, DECLARATION, SAMPLE, Options
from .places import gather
from .tree import Cube, Points, Tree

COLUMNS = DECLARATION.outputs[0].columns


def no_rows() -> dict[str, Any]:
    """Give the columns of the result for an empty cloud."""
    fields: dict[str, Any] = {name: np.empty(0, NUMPY_TYPES[kind]) for name, kind in SAMPLE.items()}
    kinds = {name: NUMPY_TYPES[kind] for name, kind in COLUMNS.items() if kind in NUMPY_TYPES}
    plain: dict[str, Any] = {
        name: Text(np.empty(0, np.int64), []) if kind is np.str_ else np.empty(0, kind)
        for name, kind in kinds.items()
    }
    return {**plain, "samples": Lists(np.zeros(1, np.int64), fields)}


@dataclass(frozen=True)
class Places:
    """Where nodes and their samples are.

    Parameters
    ----------
    offsets : int64[nodes + 1]
        The samples of node k are ``offsets[k] : offsets[k + 1]``.
    low : float64[nodes, 3]
        The lowest corner of each node.
    size, spacing : float64[nodes]
        Side of a node, and of its voxels, 0 for a leaf.
    """

    offsets: Any
    low: Any
    size: Any
    spacing: Any

    @classmethod
    def of(cls, tree: Tree, cube: Cube, options: "Options") -> "Places":
        """Find those of a tree, of which only the nodes are looked at."""
        is_leaf = tree.children == 0
        count = np.where(is_leaf, tree.points, np.diff(tree.voxel_first))
        size = np.ldexp(cube.size, -tree.level)
        low = np.array([cube.x0, cube.y0, cube.z0]) + tree.cell * size[:, None]
        spacing = np.where(is_leaf, 0.0, size / options.grid_size)
        return cls(np.cumsum([0, *count]), low, size, spacing)


def columns(
    tree: Tree,
    points: Points,
    classification: Bytes,
    cube: Cube,
    options: Options,
    *,
    only_ids: bool = False,
) -> dict[str, Any]:
    """Give the columns of the result.

    Parameters
    ----------
    tree : Tree
        In main memory.
    points : Points
        The points from which the tree was built.
    classification : uint8[n]
    cube : Cube
    options : Options
    only_ids : bool
        Whether samples have their `point_id` alone.

    Returns
    -------
    dict of columns
        The columns of the declaration.
    """
    places = Places.of(tree, cube, options)
    if only_ids:
        return of_nodes(tree, places, {"point_id": _ids(tree, points, places.offsets)})
    return of_nodes(tree, places, _samples(tree, points, classification, places, options))


def of_nodes(tree: Tree, places: Places, samples: Mapping[str, Any]) -> dict[str, Any]:
    """Give the columns of the result, with samples that are there.

    Parameters
    ----------
    tree : Tree
        Only its nodes are looked at, which are in main memory.
    places : Places
    samples : mapping of str to array
        Of all nodes, one after the other.
    """
    names = tree.names()
    parent = tree.parent.copy()
    if tree.level[0] > 0:  # the first node is a tile
        parent[0] = len(names)
    return {
        "node": Text(np.arange(len(names)), names),
        "level": tree.level,
        "parent": Text(parent, [*names, names[0][:-1]]),
        "xmin": places.low[:, 0],
        "ymin": places.low[:, 1],
        "zmin": places.low[:, 2],
        "size": places.size,
        "spacing": places.spacing,
        "is_leaf": tree.children == 0,
        "points": tree.points,
        "count": np.diff(places.offsets),
        "samples": Lists(places.offsets, dict(samples)),
    }


def level_order(names: Sequence[str]) -> tuple[Any, Any]:
    """Order nodes level by level, as in a tree that is built at once, by their names.

    Returns
    -------
    ranked : int64[n]
        The numbers of the nodes in that order.
    parent : int32[n]
        In that order: the place of the parent of each node in it, -1 where it is none of them.
    """
    ranked = sorted(range(len(names)), key=lambda k: (len(names[k]), names[k]))
    place = {names[k]: i for i, k in enumerate(ranked)}
    parent = [place.get(names[k][:-1], -1) for k in ranked]
    return np.array(ranked), np.array(parent, np.int32)


def by_level(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the tables of a tree level by level, in the order of a tree that is built at once.

    The tree may be that of a tile.

    The tables are emptied column by column, so that only one column is in memory twice.
    """
    if len(tables) == 1:
        return tables[0]
    given = [name for table in tables for name in table["node"].names]
    ranked, parents = level_order(given)
    names = [given[k] for k in ranked]
    if names[0] != "r":  # the first node is a tile
        parents[0] = len(names)
    counts = np.concatenate([table["count"] for table in tables])[ranked]
    offsets = np.cumsum([0, *counts])
    slots = np.empty(len(ranked), np.int64)
    slots[ranked] = offsets[:-1]
    ends = np.cumsum([len(table["level"]) for table in tables])
    samples = [table.pop("samples") for table in tables]
    fields = {}
    for name in SAMPLE:
        parts = [each.columns.pop(name) for each in samples]
        fields[name] = buffers.empty(offsets[-1], parts[0].dtype)
        for part, own, each in zip(parts, np.split(slots, ends[:-1]), samples, strict=True):
            move_lists(part, each.offsets, own, fields[name])
    known = {
        "node": Text(np.arange(len(names)), names),
        "parent": Text(parents, [*names, names[0][:-1]]),
        "samples": Lists(offsets, fields),
    }
    return {
        name: known[name]
        if name in known
        else np.concatenate([table[name] for table in tables])[ranked]
        for name in COLUMNS
    }


@njit(cache=True, nogil=True, error_model="numpy")
def move_lists(values: Any, offsets: Any, slots: Any, out: Any) -> None:
    """Copy each list to the slot where it begins."""
    for k in range(len(slots)):
        at = slots[k] - offsets[k]
        for i in range(offsets[k], offsets[k + 1]):
            out[at + i] = values[i]


def _samples(
    tree: Tree,
    points: Points,
    classification: Any,
    places: Places,
    options: Options,
) -> dict[str, Any]:
    offsets, low, spacing = places.offsets, places.low, places.spacing
    total = int(offsets[-1])
    xyz = [buffers.empty(total) for _ in range(3)]
    channels = [buffers.empty(total, np.uint16) for _ in range(4)]
    classes = buffers.empty(total, np.uint8)
    ids = buffers.empty(total, np.int64)

    def take(position: Any, first: int, stop: int, out: int) -> None:
        given = points.x, points.y, points.z, classification, points.point_id
        take_samples(position, first, stop, *given, out, *xyz, classes, ids)

    def leaf(node: int, out: int) -> None:
        first, stop = int(tree.first[node]), int(tree.first[node] + tree.points[node])
        take(tree.order, first, stop, out)
        take_colours(tree.order, first, stop, points.colour, out, *channels)

    def inner(node: int, out: int) -> None:
        first, stop = int(tree.voxel_first[node]), int(tree.voxel_first[node + 1])
        take(tree.representative, first, stop, out)
        for channel, colour in zip(channels, tree.colour[first:stop].T, strict=True):
            channel[out : out + stop - first] = colour
        if not options.full_precision:
            take_centres(tree.code, first, stop, *low[node], spacing[node], out, *xyz)

    def fill(span: tuple[int, int]) -> None:
        for node in range(*span):
            check()
            (inner if tree.children[node] else leaf)(node, int(offsets[node]))

    in_threads(fill, len(tree.level))
    return {
        **dict(zip("xyz", xyz, strict=True)),
        **dict(zip(CHANNELS, channels, strict=True)),
        "classification": classes,
        "point_id": ids,
    }


def _ids(tree: Tree, points: Points, offsets: Any) -> Any:
    ids = np.empty(int(offsets[-1]), np.int64)

    def fill(span: tuple[int, int]) -> None:
        for node in range(*span):
            check()
            inside = int(tree.first[node]), int(tree.first[node] + tree.points[node])
            voxels = int(tree.voxel_first[node]), int(tree.voxel_first[node + 1])
            is_inner = bool(tree.children[node])
            position, of_node = (tree.representative, voxels) if is_inner else (tree.order, inside)
            take_ids(position, *of_node, points.point_id, int(offsets[node]), ids)

    in_threads(fill, len(tree.level))
    return ids


@njit(cache=True, nogil=True, error_model="numpy")
def take_ids(position: Any, first: int, stop: int, point_id: Ints, out: int, ids: Any) -> None:
    """Write the ids of the points of samples."""
    for i in range(first, stop):
        ids[out + i - first] = point_id[position[i]]


@njit(cache=True, nogil=True, error_model="numpy")
def take_samples(
    position: Any,
    first: int,
    stop: int,
    x: Floats,
    y: Floats,
    z: Floats,
    classification: Any,
    point_id: Ints,
    out: int,
    x_out: Any,
    y_out: Any,
    z_out: Any,
    classes: Any,
    ids: Any,
) -> None:
    """Write coordinates, classes and ids of the points of samples."""
    for i in range(first, stop):
        point = position[i]
        at = out + i - first
        x_out[at] = x[point]
        y_out[at] = y[point]
        z_out[at] = z[point]
        classes[at] = classification[point]
        ids[at] = point_id[point]


@njit(cache=True, nogil=True, error_model="numpy")
def take_colours(
    position: Any,
    first: int,
    stop: int,
    colour: Any,
    out: int,
    red: Any,
    green: Any,
    blue: Any,
    intensity: Any,
) -> None:
    """Write the colours of the points of a leaf."""
    for i in range(first, stop):
        point = position[i]
        at = out + i - first
        red[at] = colour[point, 0]
        green[at] = colour[point, 1]
        blue[at] = colour[point, 2]
        intensity[at] = colour[point, 3]


@njit(cache=True, nogil=True, error_model="numpy")
def take_centres(
    code: Any,
    first: int,
    stop: int,
    xmin: float,
    ymin: float,
    zmin: float,
    spacing: float,
    out: int,
    x: Floats,
    y: Floats,
    z: Floats,
) -> None:
    """Write the centres of voxels."""
    for i in range(first, stop):
        cell = np.int64(code[i])
        at = out + i - first
        x[at] = xmin + (gather(cell >> 2) + 0.5) * spacing
        y[at] = ymin + (gather(cell >> 1) + 0.5) * spacing
        z[at] = zmin + (gather(cell) + 0.5) * spacing
