"""Points as tiles: the nodes of an octree of voxels and points, each a glTF file.

Positions are quantised: a voxel's by its cell in 8 bits, those of points in 16 bits over their own
extent. Colours are linear in glTF, those of clouds are sRGB.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import FileError
from spatialq.export.atomic import WRITER, whole_with_parts
from spatialq.export.lod_cloud import Cloud
from spatialq.io.crs import compact
from spatialq.runtime.arrays import Array, Floats, Uint32s
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import workers

from .colours import linear
from .gltf import POINTS, Glb
from .metadata import NO_DATA, add_point_values
from .options import TileOptions
from .place import Place, place_of
from .tileset import Tile, Tree, cell_of, replaced_by, to_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spatialq.data.columns import Lists, Text
    from spatialq.export.kept import Journal, KeptOutput


COLOURS = ("red", "green", "blue")
NOT_VALUES = (*"xyz", *COLOURS, "point_id")
"""Columns of samples that are no attributes."""
KEPT = ("uint8", "int8", "uint16", "int16")
"""Types of attributes that stay; all others become float32."""
WHOLE = 2**24
"""Up to which float32 has all whole numbers."""
PRECISION = 1e-3
"""Metres of a step of quantised positions at least."""
MOST_STEPS = 65535
CELLS = 256
"""Along the side of a node whose voxels have positions of 8 bits."""
CENTRED = 1e-3
"""Part of a voxel that its position may be off its middle and still count as there."""
SORTED_BITS = 12
"""Of a position that the order of points depends on, for each axis."""


@dataclass(frozen=True)
class Node:
    """A node of the octree.

    Attributes
    ----------
    name : str
    low : float64[3]
        Lowest corner of its cube, in units of the cloud.
    size, spacing : float
        Sides of its cube and of its voxels; spacing is 0 for a leaf, whose samples are points.
    """

    name: str
    low: Floats
    size: float
    spacing: float


@dataclass(frozen=True)
class Style:
    """What the tiles of a tileset have in common.

    Attributes
    ----------
    place : Place
    options : TileOptions
    tones : uint8[n] or uint16[n], optional
        Linear colour of each value of a channel; None where there are no colours.
    """

    place: Place
    options: TileOptions
    tones: "NDArray[np.uint8 | np.uint16] | None"


def tones(brightest: int, full: int, bits: int) -> "NDArray[np.uint8 | np.uint16] | None":
    """Give the linear colour of each value of a channel of sRGB; None if all are black.

    Parameters
    ----------
    brightest : int
        Greatest value that there is, if it is at most 255; else any greater number.
    full : int
        Value that is full light, as are greater ones.
    bits : int
        Of the result.
    """
    if not brightest:
        return None
    values = np.arange(256 if brightest <= 255 else 65536)
    return linear(np.minimum(values / full, 1), bits)


def values_of(target: Path, samples: Mapping[str, Any]) -> dict[str, Array]:
    """Give the columns of samples that become attributes, of types that glTF has.

    Parameters
    ----------
    target : Path
        For messages.
    samples : mapping of str to array
        Masked where values are NULL.

    Raises
    ------
    FileError
        If whole numbers are too large for float32, or one of 8 or 16 bits is NULL.
    """
    given = {name: each for name, each in samples.items() if name not in NOT_VALUES}
    return {name: _value_of(target, name, each) for name, each in given.items()}


def _value_of(target: Path, name: str, column: Any) -> Array:
    lost = np.ma.getmaskarray(column)
    plain = np.ma.getdata(column)
    if plain.dtype == np.bool_:
        plain = plain.view(np.uint8)
    if plain.dtype.name in KEPT:
        if lost.any():
            reason = f"column '{name}' is NULL for some points; make it FLOAT: {name}::FLOAT"
            raise FileError.of(WRITER, target, reason)
        return np.asarray(plain)
    if plain.dtype.kind in "iu":
        most = int(np.abs(plain[~lost].astype(np.float64)).max(initial=0))
        if most > WHOLE:
            reason = (
                f"column '{name}' has the value {most}, but attributes of points have whole "
                f"numbers up to {WHOLE}; leave it out"
            )
            raise FileError.of(WRITER, target, reason)
    as_float = plain.astype(np.float32)
    as_float[lost | ~np.isfinite(as_float)] = NO_DATA
    return as_float


def point_tile(
    node: Node, samples: Mapping[str, Any], style: Style, target: Path
) -> tuple[bytes, Tile]:
    """Make the content of a tile.

    Parameters
    ----------
    node : Node
    samples : mapping of str to array[n]
        x, y, z in the units of the cloud; red, green and blue; attributes. At least one.
    style : Style
    target : Path
        For messages.

    Returns
    -------
    bytes, Tile
    """
    steps, low, width = _quantised(node, samples, style.place)
    order = slice(None) if node.spacing else _order(steps)
    glb = Glb(compress=style.options.compress)
    high_y = low[1] + width[1] * (int(steps[:, 1].max()))
    turned = steps[order][:, [0, 2, 1]]
    turned[:, 2] = turned[:, 2].max() - turned[:, 2]
    axes = [0, 2, 1]
    attributes = {
        "POSITION": glb.positions(turned, np.array([low[0], low[2], high_y]), width[axes])
    }
    if style.tones is not None:
        colours = np.stack([style.tones[samples[name][order]] for name in COLOURS], axis=1)
        attributes["COLOR_0"] = glb.attribute(colours, normalized=True)
    values = values_of(target, samples)
    extensions = {}
    if values:
        attributes |= add_point_values(glb, {name: each[order] for name, each in values.items()})
        extensions = {"extensions": {"EXT_structural_metadata": {"propertyAttributes": [0]}}}
    glb.primitive(POINTS, attributes, material=glb.unlit_material(), **extensions)
    half = node.spacing * style.place.metres / 2
    drawn = low + width * steps.min(axis=0) - half, low + width * steps.max(axis=0) + half
    error = node.spacing * style.place.metres * style.options.error_factor
    return glb.to_bytes(), Tile(node.name, *drawn, error)


def order_of(node: Node, samples: Mapping[str, Any], place: Place) -> Uint32s:
    """Give the order in which a tile compresses best: `point_tile` keeps it, once it is there."""
    return _order(_quantised(node, samples, place)[0])


def _quantised(
    node: Node, samples: Mapping[str, Any], place: Place
) -> "tuple[NDArray[np.uint8 | np.uint16], Floats, Floats]":
    """Give steps, and position of step 0 and width of a step in metres of the frame."""
    xyz = np.stack([samples[axis] for axis in "xyz"], axis=1)
    if node.spacing and round(node.size / node.spacing) <= CELLS:
        cells = (xyz - node.low) / node.spacing - 0.5
        nearest = np.rint(cells)
        if np.abs(cells - nearest).max() < CENTRED and nearest.min() >= 0:
            first = place.local(node.low + node.spacing / 2)
            return nearest.astype(np.uint8), first, np.full(3, node.spacing * place.metres)
    low, high = xyz.min(axis=0), xyz.max(axis=0)
    extent = (high - low) * place.metres
    parts = np.clip(np.ceil(extent / PRECISION - CENTRED), 1, MOST_STEPS)
    width = np.where(extent > 0, extent / parts, PRECISION)
    steps = np.rint((xyz - low) * (place.metres / width)).astype(np.uint16)
    return steps, place.local(low), width


def _order(steps: "NDArray[np.uint8 | np.uint16]") -> Uint32s:
    """Give the order of points along a Morton curve, in which they compress best."""
    order, other = (np.arange(len(steps), dtype=np.uint32) for _ in range(2))
    codes = np.empty(len(steps), np.uint64)
    counts = np.empty((1 << SORTED_BITS) + 1, np.int64)
    _sort(np.ascontiguousarray(steps, np.uint16), codes, order, other, counts)
    return other


@njit(cache=True, nogil=True, error_model="numpy")
def _sort(steps: Any, codes: Any, order: Any, other: Any, counts: Any) -> None:
    """Sort by the upper 12 bits of each axis, 12 bits of the code at a time."""
    n = codes.size
    for i in range(n):
        code = np.uint64(0)
        for bit in range(15, 3, -1):
            for axis in range(3):
                code = code << np.uint64(1) | np.uint64(steps[i, axis] >> bit & 1)
        codes[i] = code
    for turn in range(3):
        shift = np.uint64(12 * turn)
        for k in range(counts.size):
            counts[k] = 0
        for i in range(n):
            counts[(codes[i] >> shift & np.uint64(4095)) + np.uint64(1)] += 1
        for k in range(1, counts.size):
            counts[k] += counts[k - 1]
        for i in range(n):
            at = order[i] if turn != 1 else other[i]
            key = codes[at] >> shift & np.uint64(4095)
            if turn != 1:
                other[counts[key]] = at
            else:
                order[counts[key]] = at
            counts[key] += 1


@contextmanager
def write_nodes(
    target: Path,
    cloud: Cloud,
    options: TileOptions | None = None,
    kept: "KeptOutput | None" = None,
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Write a tileset, some nodes at a time and in any order.

    Parameters
    ----------
    target : Path
        The tileset; its contents go to a folder beside it. A tileset of ours that is there is
        replaced with its folder.
    cloud : Cloud
    options : TileOptions, optional
    kept : KeptOutput, optional
        Where tiles are kept that are written; they need not come again, but for the root.

    Yields
    ------
    callable
        To be called with nodes: a mapping with arrays `xmin ymin zmin size spacing is_leaf`, `node`
        (Text) and `samples` (Lists).

    Raises
    ------
    FileError
        If it cannot be written, if no point came, or if a column cannot be held.
    CrsError
        If x and y are degrees.
    """
    if not cloud.points:
        reason = "tiles need at least one point, there is none"
        raise FileError.of(WRITER, target, reason)
    options = options or TileOptions()
    place = place_of(cloud.function, cloud.crs, cloud.box, cloud.metres)
    style = Style(place, options, tones(cloud.brightest, cloud.full, options.colour_bits))
    parts = None if kept is None else kept.path
    with (
        _journal(kept) as journal,
        whole_with_parts(target, replaced_by(target), parts) as (file, folder, name),
    ):
        if kept is not None:
            kept.save({"folder": name})
        known = {each[0]: Tile.of(each) for each in journal.entries}
        tree = Tree(folder, name, place, options.implicit, known)
        cubes: list[tuple[Floats, float]] = []

        def write(nodes: Mapping[str, Any]) -> None:
            """Write the contents of nodes, in several threads."""
            listed = _nodes(nodes)
            lists: Lists = nodes["samples"]

            def one(k: int) -> Tile:
                first, stop = lists.offsets[k], lists.offsets[k + 1]
                samples = {each: column[first:stop] for each, column in lists.columns.items()}
                content, tile = point_tile(listed[k], samples, style, target)
                is_leaf = not listed[k].spacing
                tree.content(tile.name, is_leaf=is_leaf).write_bytes(content)
                return tile

            with workers() as pool:
                done = pool.map(one, range(len(listed)))
            tree.tiles.update((tile.name, tile) for tile in done)
            journal.add([tile.state() for tile in done])
            if listed and not cubes:
                cubes.append(_cube(listed[0], place))

        yield write
        file.write_text(to_json(tree.close(cubes[0], _extras(cloud, place))), encoding="utf-8")


@contextmanager
def _journal(kept: "KeptOutput | None") -> Iterator["Journal"]:
    """Open the journal of the tiles that are written, of nothing if their folder is not there."""
    from spatialq.export.kept import Journal

    if kept is None:
        yield Journal(None)
        return
    path = kept.beside("tiles")
    if not kept.path.is_dir():
        path.unlink(missing_ok=True)
    with Journal.open(path) as journal:
        yield journal


def _extras(cloud: Cloud, place: Place) -> dict[str, Any]:
    """Give what is kept in a tileset for people: points, CRS of the source, and where it lies."""
    return {
        "points": cloud.points,
        "crs": compact(cloud.crs),
        "lies_in": place.lies_in,
    }


def _nodes(nodes: Mapping[str, Any]) -> list[Node]:
    """List the nodes of a table."""
    names: Text = nodes["node"]
    low = np.stack([nodes[f"{axis}min"] for axis in "xyz"], axis=1)
    return [
        Node(names.names[code], low[k], float(size), float(spacing))
        for k, (code, size, spacing) in enumerate(
            zip(names.codes, nodes["size"], nodes["spacing"], strict=True)
        )
    ]


def _cube(node: Node, place: Place) -> tuple[Floats, float]:
    """Give the cube of the root in metres of the frame, from one node."""
    level = len(node.name) - 1
    corner = node.low - node.size * np.array(cell_of(node.name), np.float64)
    return place.local(corner), math.ldexp(node.size, level) * place.metres
