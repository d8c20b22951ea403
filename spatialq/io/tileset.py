"""3D Tiles as they lie in a folder: what a tileset holds, and whether its parts go together.

Contents are not decoded: their headers say how many points and triangles there are, and between
which coordinates. Read are 3D Tiles 1.1, nested tilesets and implicit octrees, and glTF (.glb).
"""

import json
import os
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from spatialq.errors import FileError
from spatialq.io.references import OutsideError, in_folder
from spatialq.io.storage import is_url
from spatialq.runtime.arrays import Bools, Floats

if TYPE_CHECKING:
    Box = tuple[Floats, Floats]

TILESET = "tileset.json"
MOST_TILESETS = 100_000
"""In a tileset. One in which each names two others twice has more than there is time for."""
MOST_SUBTREE_LEVELS = 7
"""Levels of a subtree; each has eight times as many tiles as the one before."""
PLACE = re.compile(r"\{(level|x|y|z)\}")
"""What the number of a tile stands for in names of an implicit tree."""
MOST_FAULTS = 20
"""That are told: one damaged folder may have thousands."""
ROUNDING = 1e-5
"""Metres by which a box may reach out of the one around it; its share of coordinates beside it."""
POINTS, TRIANGLES = 0, 4
"""Modes of primitives of glTF."""
GLB_HEADER = struct.Struct("<4sIIII")
SUBTREE_HEADER = struct.Struct("<4sIQQ")


@dataclass
class Tileset:
    """What there is in a tileset.

    Attributes
    ----------
    tiles, levels, tilesets : int
    points, leaf_points, triangles : int
        Of all contents; of those of tiles without children.
    bytes : int
        Of all files.
    attributes : list of str
        Of vertices, beside positions.
    faults : list of str
        What is wrong with it, in sentences; at most 20.
    about : mapping
        The tileset that holds all others, as it is written.
    """

    path: Path
    tiles: int = 0
    levels: int = 0
    points: int = 0
    leaf_points: int = 0
    triangles: int = 0
    bytes: int = 0
    attributes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    about: Mapping[str, Any] = field(default_factory=dict)
    tilesets: int = 0
    seen: set[tuple[Path, tuple[Any, ...]]] = field(default_factory=set)
    """Files that were read, each with the transformations that it was read in."""

    def file(self, path: Path, uri: str) -> Path | None:
        """Give the path of what a file names.

        It is a fault, and None, if that is missing or not in the folder of the tileset that holds
        all others.
        """
        folder = path.parent.relative_to(self.path.parent)
        name = uri if is_url(uri) else os.path.join(folder, uri)  # noqa: PTH118
        try:
            found = in_folder(self.path.parent, name)
        except OutsideError as error:
            self.fault(path, str(error))
            return None
        if not found.is_file():
            self.fault(found, "is missing")
            return None
        return found

    def is_new(self, path: Path, frame: tuple[Any, ...]) -> bool:
        """Whether a file is read for the first time in a frame; if not, that is a fault."""
        if (path, frame) in self.seen:
            self.fault(path, "is named twice: it counts once")
            return False
        self.seen.add((path, frame))
        return True

    def fault(self, path: Path, reason: str) -> None:
        """Take note of what is wrong with a file."""
        if len(self.faults) < MOST_FAULTS:
            try:
                name = path.relative_to(self.path.parent)
            except ValueError:
                name = path
            self.faults.append(f"'{name}' {reason}")


class _FaultError(Exception):
    """A file is not what it should be; the sentence says how."""


@dataclass(frozen=True)
class _Around:
    """What is known of the tile around another one."""

    box: "Box | None"
    error: float
    level: int
    frame: tuple[Any, ...] = ()
    """Transformations of the tile and those around it."""
    tilesets: tuple[Path, ...] = ()
    """Those that it is in, the outermost first."""


def read_tileset(caller: str, path: Path) -> Tileset:
    """Read a tileset with all that it refers to.

    Parameters
    ----------
    caller : str
        Whose errors they are.
    path : Path
        Its tileset.json.

    Raises
    ------
    FileError
        If it is no tileset. What is wrong with its parts is told by `faults`.
    """
    found = Tileset(path)
    try:
        found.about = _json(path)
        if not isinstance(found.about.get("root"), dict) or "asset" not in found.about:
            _refuse("is no tileset of 3D Tiles: it has no asset and root")
    except _FaultError as error:
        raise FileError.of(caller, path, str(error)) from error
    _tileset(found, path, found.about, _Around(None, np.inf, -1))
    if found.tilesets > MOST_TILESETS:
        found.fault(path, f"has more than {MOST_TILESETS} tilesets in it: not all were read")
    extras = found.about.get("extras")
    said = extras.get("points") if isinstance(extras, dict) else None
    if isinstance(said, int) and said != found.leaf_points:
        found.fault(path, f"promises {said} points, its leaves have {found.leaf_points}")
    return found


def _tileset(found: Tileset, path: Path, said: Mapping[str, Any], around: _Around) -> None:
    if path in around.tilesets:
        found.fault(path, "is within itself")
        return
    found.tilesets += 1
    if found.tilesets > MOST_TILESETS or not found.is_new(path, around.frame):
        return
    around = replace(around, tilesets=(*around.tilesets, path))
    found.bytes += path.stat().st_size
    try:
        root = said["root"]
        if float(said["geometricError"]) < float(root["geometricError"]):
            found.fault(path, "has a geometric error below that of its root")
        if "refine" not in root:
            found.fault(path, "has a root without refine")
        _tile(found, path, root, around)
    except (_FaultError, KeyError, TypeError, ValueError, RecursionError) as error:
        found.fault(path, f"is damaged ({error})")


def _tile(found: Tileset, path: Path, tile: Mapping[str, Any], around: _Around) -> None:
    box = _box(tile["boundingVolume"])
    error, level = float(tile["geometricError"]), around.level + 1
    if error > around.error:
        found.fault(path, f"has a tile whose error {error:g} is above its parent's")
    if box is not None and around.box is not None and "transform" not in tile:
        _require_inside(found, path, "a tile's box", box, around.box)
    frame = (*around.frame, *([tuple(tile["transform"])] if "transform" in tile else []))
    here = replace(around, box=box, error=error, level=level, frame=frame)
    if "implicitTiling" in tile:
        _implicit(found, path, tile, here)
        return
    contents = [*([tile["content"]] if "content" in tile else []), *tile.get("contents", [])]
    children = tile.get("children", [])
    nested = [each["uri"] for each in contents if str(each["uri"]).endswith(".json")]
    if not nested:
        found.tiles += 1
        found.levels = max(found.levels, level + 1)
    for each in contents:
        file = found.file(path, each["uri"])
        if file is None:
            continue
        if each["uri"] in nested:
            # the root of a nested tileset is the tile itself
            _tileset(found, file, _json(file), replace(here, level=level - 1))
        elif found.is_new(file, frame):
            _content(found, file, box, is_leaf=not children)
    for child in children:
        _tile(found, path, child, here)


def _content(found: Tileset, path: Path, box: "Box | None", *, is_leaf: bool) -> None:
    """Take note of a content, and whether its header places it in the box of its tile."""
    found.bytes += path.stat().st_size
    if path.suffix.lower() != ".glb":
        return
    try:
        content = _glb(path)
        primitives = [each for mesh in content.get("meshes", []) for each in mesh["primitives"]]
        accessors = content.get("accessors", [])
        for each in primitives:
            names = each["attributes"]
            positions = accessors[names["POSITION"]]
            mode, count = each.get("mode", TRIANGLES), _count(content, positions)
            if mode == POINTS:
                found.points += count
                found.leaf_points += count if is_leaf else 0
            elif mode == TRIANGLES:
                indices = each.get("indices")
                corners = count if indices is None else _count(content, accessors[indices])
                found.triangles += corners // 3
            found.attributes += [
                name for name in names if name not in ("POSITION", *found.attributes)
            ]
            extent = _extent(content, positions)
            if extent is not None and box is not None:
                _require_inside(found, path, "its content", extent, box)
    except (_FaultError, KeyError, IndexError, TypeError, ValueError) as error:
        found.fault(path, f"is damaged ({error})")


def _count(content: Mapping[str, Any], accessor: Mapping[str, Any]) -> int:
    """Give how many values an accessor has, of which each needs a byte at least."""
    count = int(accessor["count"])
    view = content["bufferViews"][accessor["bufferView"]] if "bufferView" in accessor else None
    packed = (view or {}).get("extensions", {}).get("EXT_meshopt_compression")
    most = np.inf if view is None else packed["count"] if packed else int(view["byteLength"])
    whole = sum(int(each["byteLength"]) for each in content.get("buffers", []))
    if not 0 <= count <= most or (view is not None and not packed and most > whole):
        _refuse(f"an accessor has {count} values, more than there are bytes")
    return count


def _extent(content: Mapping[str, Any], positions: Mapping[str, Any]) -> "Box | None":
    """Give the box of a content with z up, if it has one node that is moved and scaled only."""
    nodes = content.get("nodes", [])
    if len(nodes) != 1 or nodes[0].keys() & {"matrix", "rotation"}:
        return None
    scale = np.array(nodes[0].get("scale", [1.0] * 3), float)
    shift = np.array(nodes[0].get("translation", [0.0] * 3), float)
    ends = np.array([positions["min"], positions["max"]], float) * scale + shift
    turned = np.stack([ends[:, 0], -ends[:, 2], ends[:, 1]], axis=1)
    return turned.min(axis=0), turned.max(axis=0)


def _require_inside(found: Tileset, path: Path, what: str, inner: "Box", outer: "Box") -> None:
    largest = max(float(np.abs(each).max()) for each in (*inner, *outer))
    slack = ROUNDING + largest * 1e-7  # positions of contents have single precision
    out = max(float((outer[0] - inner[0]).max()), float((inner[1] - outer[1]).max()))
    if out > slack:
        found.fault(path, f"has {what} {out:.3g} m outside the box around it")


def _box(volume: Mapping[str, Any]) -> "Box | None":
    """Give the corners of a box whose axes are those of the frame; None of other volumes."""
    if "box" not in volume:
        return None
    numbers = np.array(volume["box"], float)
    if numbers.shape != (12,) or not np.isfinite(numbers).all():
        _refuse(f"a box has 12 numbers, got {volume['box']!r}")
    axes = numbers[3:].reshape(3, 3)
    half = np.abs(np.diag(axes))
    if np.count_nonzero(axes - np.diag(np.diag(axes))):
        return None
    return numbers[:3] - half, numbers[:3] + half


def _implicit(found: Tileset, path: Path, root: Mapping[str, Any], here: _Around) -> None:
    """Read an implicit octree: which tiles there are, and their contents."""
    said = root["implicitTiling"]
    if said["subdivisionScheme"] != "OCTREE" or here.box is None:
        found.fault(path, "has an implicit tree that is no octree in a box: it was not read")
        return
    levels = int(said["subtreeLevels"])
    if not 0 < levels <= MOST_SUBTREE_LEVELS:
        found.fault(path, f"has subtrees of {levels} levels: they were not read")
        return
    places = set(_places(found, path, said, levels))
    parents = {(level - 1, *(k // 2 for k in cell)) for level, *cell in places if level}
    for level, *cell in sorted(places):
        side = (here.box[1] - here.box[0]) / 2**level
        low = here.box[0] + side * cell
        found.tiles += 1
        found.levels = max(found.levels, here.level + level + 1)
        if level and (level - 1, *(k // 2 for k in cell)) not in places:
            found.fault(path, f"has a tile of level {level} without its parent")
        file = found.file(path, _filled(root["content"]["uri"], (level, *cell)))
        if file is not None and found.is_new(file, here.frame):
            is_leaf = (level, *cell) not in parents
            _content(found, file, (low, low + side), is_leaf=is_leaf)


def _places(
    found: Tileset, path: Path, said: Mapping[str, Any], levels: int
) -> Iterator[tuple[int, ...]]:
    """Give level, x, y and z of all tiles."""
    inner = (8**levels - 1) // 7
    subtrees: list[tuple[int, ...]] = [(0, 0, 0, 0)]
    there: set[Path] = set()
    while subtrees:
        first, *corner = subtrees.pop()
        file = found.file(path, _filled(said["subtrees"]["uri"], (first, *corner)))
        if file is None:
            continue
        if file in there:
            found.fault(file, "is named twice: it counts once")
            continue
        there.add(file)
        found.bytes += file.stat().st_size
        try:
            content, stream = _subtree(file)
            tiles = _bits(content, stream, "tileAvailability", inner)
            below = _bits(content, stream, "childSubtreeAvailability", 8**levels)
        except (_FaultError, KeyError, IndexError, TypeError, ValueError) as error:
            found.fault(file, f"is damaged ({error})")
            continue
        for deep in range(levels):
            begin = (8**deep - 1) // 7
            for number in np.flatnonzero(tiles[begin : begin + 8**deep]).tolist():
                yield first + deep, *_cell(number, deep, corner)
        numbers = np.flatnonzero(below).tolist()
        subtrees += [(first + levels, *_cell(number, levels, corner)) for number in numbers]


def _cell(number: int, deep: int, corner: list[int]) -> list[int]:
    """Give x, y, z of a Morton number, x the lowest bit, below a corner."""
    spread = (sum((number >> 3 * k + axis & 1) << k for k in range(deep)) for axis in range(3))
    return [(begin << deep) + each for begin, each in zip(corner, spread, strict=True)]


def _filled(template: str, place: tuple[int, ...]) -> str:
    numbers = dict(zip(("level", "x", "y", "z"), map(str, place), strict=True))
    return PLACE.sub(lambda found: numbers[found[1]], template)


def _subtree(path: Path) -> tuple[dict[str, Any], bytes]:
    data = path.read_bytes()
    if len(data) < SUBTREE_HEADER.size:
        _refuse("it is cut off")
    magic, version, n_text, n_binary = SUBTREE_HEADER.unpack_from(data)
    begin = SUBTREE_HEADER.size + n_text
    if (magic, version, len(data)) != (b"subt", 1, begin + n_binary):
        _refuse("it is no whole subtree")
    content: dict[str, Any] = json.loads(data[SUBTREE_HEADER.size : begin])
    return content, data[begin:]


def _bits(content: Mapping[str, Any], stream: bytes, name: str, size: int) -> Bools:
    said = content[name]
    if "constant" in said:
        return np.full(size, bool(said["constant"]))
    view = content["bufferViews"][said["bitstream"]]
    raw = np.frombuffer(stream, np.uint8)[view["byteOffset"] :][: view["byteLength"]]
    bits = np.unpackbits(raw, bitorder="little")
    if bits.size < size:
        _refuse(f"{name} has {bits.size} bits of {size}")
    return bits[:size].astype(bool)


def _glb(path: Path) -> dict[str, Any]:
    """Read the JSON of a .glb file that is whole."""
    with path.open("rb") as file:
        head = file.read(GLB_HEADER.size)
        if len(head) < GLB_HEADER.size:
            _refuse("it is cut off")
        magic, version, length, n_text, kind = GLB_HEADER.unpack(head)
        if (magic, version, kind) != (b"glTF", 2, int.from_bytes(b"JSON", "little")):
            _refuse("it is no glTF 2.0")
        size = path.stat().st_size
        if size != length or n_text > size:
            _refuse(f"it has {size} bytes, {length} are promised")
        found: dict[str, Any] = json.loads(file.read(n_text))
    return found


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        _refuse(f"cannot be read: {getattr(error, 'strerror', None) or error}")
    if not isinstance(found, dict):
        _refuse("is no JSON object")
    return found


def _refuse(reason: str) -> NoReturn:
    raise _FaultError(reason)
