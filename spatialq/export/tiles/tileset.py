"""The tree of tiles: tileset.json, nested in others or implied by an octree with subtrees.

Tiles come in any order. Their contents are files of a folder of parts, in folders of a few levels,
each of which has a tileset of its own: a viewer reads those that it needs.
"""

import json
import struct
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.errors import FileError
from spatialq.export.atomic import WRITER
from spatialq.runtime.arrays import Floats

from .place import Place

NAME = "tileset.json"
LEVELS = 4
"""Levels of a nested tileset, or of a subtree."""
THIN = 1e-3
"""Metres of the half side of a box at least: viewers need a volume."""
WIDER = 1e-9
"""Share of its distance from the origin by which a box is widened, for rounding."""


@dataclass(frozen=True)
class Tile:
    """A tile as it is known when its content is written.

    Attributes
    ----------
    name : str
        Of the node: 'r' and the numbers of children, 4 x + 2 y + z.
    low, high : float64[3]
        Box of what is drawn, in metres of the frame.
    error : float
        Metres by which it differs from all points: 0 for a leaf.
    is_empty : bool
        Whether it has no content, only tiles below it.
    """

    name: str
    low: Floats
    high: Floats
    error: float
    is_empty: bool = False

    @classmethod
    def of(cls, state: list[Any]) -> "Tile":
        """Give the tile whose state that is."""
        name, low, high, error = state
        return cls(name, np.array(low), np.array(high), error)

    def state(self) -> list[Any]:
        """Give all of it as JSON has it."""
        return [self.name, self.low.tolist(), self.high.tolist(), self.error]

    @property
    def level(self) -> int:
        """0 for the root."""
        return len(self.name) - 1


@dataclass
class Tree:
    """The tiles of a tileset, and where their contents are.

    Parameters
    ----------
    folder : Path
        For contents, nested tilesets and subtrees.
    prefix : str
        Name of that folder, as the tileset beside it will know it.
    place : Place
    is_implicit : bool
        Whether boxes and names follow from an octree.
    refine : 'REPLACE' or 'ADD'
        Whether a tile takes the place of the one above it, or is drawn with it.
    """

    folder: Path
    prefix: str
    place: Place
    is_implicit: bool
    tiles: dict[str, Tile] = field(default_factory=dict)
    refine: str = "REPLACE"

    def content(self, name: str, *, is_leaf: bool) -> Path:
        """Give the path of the content of a tile, whose folder is there."""
        path = self.folder / self._content(name, is_leaf=is_leaf)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _content(self, name: str, *, is_leaf: bool) -> str:
        if self.is_implicit:
            level, cell = len(name) - 1, cell_of(name)
            return f"{level}/{cell[0]}/{cell[1]}/{cell[2]}.glb"
        level = len(name) - 1
        above = max(level - is_leaf, 0) // LEVELS * LEVELS
        return f"{_nested(name[: above + 1])}{name}.glb"

    def close(self, cube: tuple[Floats, float], extras: dict[str, Any]) -> dict[str, Any]:
        """Write nested tilesets or subtrees, and give the tileset above them.

        Parameters
        ----------
        cube : (float64[3], float)
            Lowest corner and side of the root's cube, in metres of the frame.
        extras : dict
            What else is known, for people.
        """
        if self.is_implicit:
            root = self._implicit_root(*cube)
        else:
            self._boxes()
            root = self._tile("r", "", f"{self.prefix}/")
            self._write_nested()
        first = self.tiles["r"]
        root["transform"] = list(self.place.transform)
        span = float(np.linalg.norm(first.high - first.low))
        return tileset(root, max(2 * first.error, span), {**extras, "folder": self.prefix})

    def _boxes(self) -> None:
        """Widen the boxes of tiles to hold those of their children."""
        for name in sorted(self.tiles, key=len, reverse=True):
            child, parent = self.tiles[name], self.tiles.get(name[:-1])
            if parent is not None:
                low, high = np.minimum(child.low, parent.low), np.maximum(child.high, parent.high)
                self.tiles[parent.name] = replace(parent, low=low, high=high)
        self._children: dict[str, list[str]] = {name: [] for name in self.tiles}
        for name in sorted(self.tiles):
            if name != "r":
                self._children[name[:-1]].append(name)

    def _tile(self, name: str, base: str, prefix: str = "") -> dict[str, Any]:
        """Give a tile with those below it, down to nested tilesets.

        Parameters
        ----------
        name : str
        base : str
            Folder of the tileset, within the folder of parts.
        prefix : str
            Put before the paths of contents.
        """
        tile, below = self.tiles[name], self._children[name]
        given: dict[str, Any] = {
            "boundingVolume": {"box": box(tile.low, tile.high)},
            "geometricError": tile.error,
        }
        if name == "r" or (_is_nested(name) and base == _nested(name)):
            given["refine"] = self.refine
        elif _is_nested(name) and below:
            return given | {"content": {"uri": f"{prefix}{_nested(name)[len(base) :]}{NAME}"}}
        if not tile.is_empty:
            path = self._content(name, is_leaf=not below)
            given["content"] = {"uri": f"{prefix}{path[len(base) :]}"}
        if below:
            given["children"] = [self._tile(child, base, prefix) for child in below]
        return given

    def _write_nested(self) -> None:
        for name, below in self._children.items():
            if name != "r" and _is_nested(name) and below:
                root = self._tile(name, _nested(name))
                content = tileset(root, self.tiles[name].error, {})
                (self.folder / _nested(name) / NAME).write_text(to_json(content), encoding="utf-8")

    def _implicit_root(self, low: Floats, side: float) -> dict[str, Any]:
        """Write the subtrees, and give the tile that implies all others."""
        subtrees: dict[str, set[str]] = {}
        for name in self.tiles:
            above = (len(name) - 1) // LEVELS * LEVELS
            subtrees.setdefault(name[: above + 1], set()).add(name)
        for root, inside in subtrees.items():
            below = {name for name in subtrees if len(name) == len(root) + LEVELS}
            path = self.folder / "subtrees" / f"{'/'.join(map(str, _place_of(root)))}.subtree"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(subtree(root, inside, below))
        where = "{level}/{x}/{y}/{z}"
        return {
            "boundingVolume": {"box": box(low, low + side)},
            "geometricError": self.tiles["r"].error,
            "refine": self.refine,
            "content": {"uri": f"{self.prefix}/{where}.glb"},
            "implicitTiling": {
                "subdivisionScheme": "OCTREE",
                "subtreeLevels": LEVELS,
                "availableLevels": max(tile.level for tile in self.tiles.values()) + 1,
                "subtrees": {"uri": f"{self.prefix}/subtrees/{where}.subtree"},
            },
        }


def tileset(root: dict[str, Any], error: float, extras: dict[str, Any]) -> dict[str, Any]:
    """Give a tileset of one tile and those below it."""
    asset = {"version": "1.1", "generator": f"spatialq {version('spatialq')}"}
    given = {"asset": asset, "geometricError": error, "root": root}
    return given | ({"extras": extras} if extras else {})


def to_json(content: dict[str, Any]) -> str:
    """Give the text of a tileset."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def box(low: Floats, high: Floats) -> list[float]:
    """Give a box as tiles have it: its middle, and half of its side along each axis."""
    middle, half = (low + high) / 2, (high - low) / 2
    half = np.maximum(half * (1 + WIDER) + WIDER * np.abs(middle), THIN)
    return [*middle.tolist(), *np.diag(half).ravel().tolist()]


def cell_of(name: str) -> tuple[int, int, int]:
    """Give the cell of a node at its level: x, y, z."""
    cell = [0, 0, 0]
    for digit in name[1:]:
        for axis in range(3):
            cell[axis] = 2 * cell[axis] + (int(digit) >> 2 - axis & 1)
    return cell[0], cell[1], cell[2]


def subtree(root: str, inside: set[str], below: set[str]) -> bytes:
    """Give a subtree of an implicit tiling.

    Parameters
    ----------
    root : str
        Name of its first tile.
    inside : set of str
        The tiles that there are in it, all with contents.
    below : set of str
        First tiles of subtrees, those of this one among them.
    """
    tiles = np.zeros((8**LEVELS - 1) // 7, np.bool_)
    children = np.zeros(8**LEVELS, np.bool_)
    for name in inside:
        level = len(name) - len(root)
        tiles[(8**level - 1) // 7 + _morton(name[len(root) :])] = True
    for name in below:
        if name.startswith(root):
            children[_morton(name[len(root) :])] = True
    streams = [np.packbits(tiles, bitorder="little").tobytes()]
    if children.any():
        streams.append(np.packbits(children, bitorder="little").tobytes())
    binary, views = b"", []
    for stream in streams:
        views.append({"buffer": 0, "byteOffset": len(binary), "byteLength": len(stream)})
        binary += stream + bytes(-len(stream) % 8)
    available = {"bitstream": 0, "availableCount": int(tiles.sum())}
    content = {
        "buffers": [{"byteLength": len(binary)}],
        "bufferViews": views,
        "tileAvailability": available,
        "contentAvailability": [available],
        "childSubtreeAvailability": {"bitstream": 1, "availableCount": int(children.sum())}
        if children.any()
        else {"constant": 0},
    }
    text = to_json(content).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<4sIQQ", b"subt", 1, len(text), len(binary)) + text + binary


def replaced_by(path: Path) -> Path | None:
    """Give the folder of parts of the tileset that is there, which a new one may replace.

    Raises
    ------
    FileError
        If the file is no tileset, or not one of ours.
    """
    if not path.exists():
        return None
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        folder = known["extras"]["folder"]
        is_ours = (
            known["asset"]["generator"].startswith("spatialq ") and Path(folder).name == folder
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        is_ours = False
    if not is_ours:
        reason = "is no tileset of spatialq, which would be replaced; name another file or folder"
        raise FileError.of(WRITER, path, reason)
    return path.resolve().with_name(folder)


def _is_nested(name: str) -> bool:
    """Whether a tile with children begins a tileset of its own."""
    return (len(name) - 1) % LEVELS == 0


def _nested(name: str) -> str:
    """Give the folder of the tileset that begins with a tile: '' for the root."""
    steps = name[1:]
    return "".join(f"{steps[k : k + LEVELS]}/" for k in range(0, len(steps), LEVELS))


def _place_of(name: str) -> tuple[int, int, int, int]:
    return (len(name) - 1, *cell_of(name))


def _morton(steps: str) -> int:
    """Give the number of a cell below another, where x is the lowest of three bits."""
    number = 0
    for digit in steps:
        child = int(digit)
        number = number << 3 | child >> 2 | child & 2 | (child & 1) << 2
    return number
