"""Reads tilesets and checks them; written from the specifications, with nothing of ours.

3D Tiles 1.1 (OGC 22-025r4), glTF 2.0, KHR_mesh_quantization, EXT_meshopt_compression.
"""

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

TYPES = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
COMPONENTS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
ROUNDING = 1e-6
"""Metres."""


def zigzag(value):
    return (value >> 1) ^ -(value & 1)


def decode_vertices(data, count, stride):
    """Decode a vertex buffer, section "Mode 0: attributes" of the extension."""
    assert data[0] == 0xA0
    tail = data[len(data) - stride :]
    before = np.frombuffer(tail, np.uint8).astype(int)
    block = min(8192 // stride & ~15, 256)
    out = np.zeros((count, stride), np.uint8)
    at = 1
    for first in range(0, count, block):
        n = min(block, count - first)
        groups = -(-n // 16)
        for k in range(stride):
            header = data[at : at + -(-groups // 4)]
            at += len(header)
            deltas = []
            for g in range(groups):
                mode = header[g // 4] >> g % 4 * 2 & 3
                if mode == 3:
                    deltas += data[at : at + 16]
                    at += 16
                    continue
                if mode == 0:
                    deltas += [0] * 16
                    continue
                bits = 2 * mode
                packed = data[at : at + 2 * bits]
                at += 2 * bits
                for byte in packed:
                    for shift in range(8 - bits, -1, -bits):
                        value = byte >> shift & (1 << bits) - 1
                        if value == (1 << bits) - 1:
                            value = data[at]
                            at += 1
                        deltas.append(value)
            column = before[k] + np.cumsum([zigzag(each) for each in deltas[:n]])
            out[first : first + n, k] = column & 255
        before = out[first + n - 1].astype(int)
    assert at == len(data) - max(stride, 32)
    return out.tobytes()


def decode_indices(data, count):
    """Decode an index sequence, section "Mode 2: indices" of the extension."""
    assert data[0] == 0xD1
    at, last, out = 1, [0, 0], []
    for _ in range(count):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        last[value & 1] += zigzag(value >> 1)
        out.append(last[value & 1])
    assert data[at:] == bytes(4)
    return np.array(out, "<u4").tobytes()


class Glb:
    """A .glb file: its JSON, and its accessors decoded."""

    def __init__(self, data):
        magic, version, length = struct.unpack_from("<4sII", data)
        assert (magic, version, length) == (b"glTF", 2, len(data))
        size, kind = struct.unpack_from("<I4s", data, 12)
        assert kind == b"JSON"
        self.json = json.loads(data[20 : 20 + size])
        binary, kind = struct.unpack_from("<I4s", data, 20 + size)
        assert kind == b"BIN\0"
        self.binary = data[28 + size :]
        assert len(self.binary) == binary

    def view(self, k):
        view = self.json["bufferViews"][k]
        packed = view.get("extensions", {}).get("EXT_meshopt_compression")
        if packed is None:
            assert view["buffer"] == 0
            return self.binary[view["byteOffset"] :][: view["byteLength"]]
        data = self.binary[packed["byteOffset"] :][: packed["byteLength"]]
        if packed["mode"] == "ATTRIBUTES":
            return decode_vertices(data, packed["count"], packed["byteStride"])
        return decode_indices(data, packed["count"])

    def accessor(self, k):
        """Decode an accessor: array[n] or array[n, components]."""
        said = self.json["accessors"][k]
        view = self.json["bufferViews"][said["bufferView"]]
        components = COMPONENTS[said["type"]]
        kind = np.dtype(TYPES[said["componentType"]])
        stride = view.get("byteStride", kind.itemsize * components)
        rows = np.frombuffer(self.view(said["bufferView"]), np.uint8).reshape(-1, stride)
        assert len(rows) == said["count"]
        values = np.ascontiguousarray(rows[:, : kind.itemsize * components]).view(kind)
        if "max" in said:
            assert values.min(axis=0).tolist() == said["min"]
            assert values.max(axis=0).tolist() == said["max"]
        if said.get("normalized"):
            values = values / np.iinfo(kind).max
        return values if components > 1 else values[:, 0]

    def positions(self, primitive):
        """Give positions with z up, as a renderer of tiles turns them."""
        (node,) = self.json["nodes"]
        steps = self.accessor(primitive["attributes"]["POSITION"]).astype(float)
        x, up, south = (steps * node.get("scale", 1.0) + node.get("translation", 0.0)).T
        return np.stack([x, -south, up], axis=1)

    def attributes(self, primitive):
        names = primitive["attributes"]
        return {name: self.accessor(k) for name, k in names.items() if name != "POSITION"}


@dataclass
class Leaf:
    positions: np.ndarray
    attributes: dict


@dataclass
class Found:
    """What there is in a tileset, and what is wrong with it."""

    transform: list
    tiles: int = 0
    samples: int = 0
    leaves: list = field(default_factory=list)
    files: set = field(default_factory=set)
    faults: list = field(default_factory=list)

    def points(self):
        """Positions of the points of all leaves, sorted."""
        every = np.concatenate([leaf.positions for leaf in self.leaves])
        return every[np.lexsort(np.round(every, 4).T)]

    def values(self, name):
        return np.concatenate([leaf.attributes[name] for leaf in self.leaves])


def check(path):
    """Read a tileset with all that it refers to.

    Returns
    -------
    Found
        Its `faults` is empty where the tileset is right.
    """
    path = Path(path)
    root = json.loads(path.read_text())["root"]
    found = Found(root.get("transform", np.eye(4).ravel().tolist()))
    _tileset(path, found, None)
    return found


def _corners(volume):
    numbers = np.array(volume["box"])
    middle, axes = numbers[:3], numbers[3:].reshape(3, 3)
    assert np.count_nonzero(axes - np.diag(np.diag(axes))) == 0
    return middle - np.diag(axes), middle + np.diag(axes)


def _tileset(path, found, parent):
    if not path.is_file():
        found.faults.append(f"{path.name} is missing")
        return
    found.files.add(path)
    content = json.loads(path.read_text())
    if content["asset"]["version"] != "1.1":
        found.faults.append("version")
    if content["geometricError"] < content["root"]["geometricError"]:
        found.faults.append(f"{path.name}: error below that of its root")
    if content["root"].get("refine") != "REPLACE":
        found.faults.append(f"{path.name}: root without refine")
    if "implicitTiling" in content["root"]:
        _implicit(path.parent, content["root"], found)
    else:
        _tile(path.parent, content["root"], found, parent)


def _tile(folder, tile, found, parent):
    found.tiles += 1
    low, high = _corners(tile["boundingVolume"])
    if parent is not None:
        outer_low, outer_high, error = parent
        if (low < outer_low - ROUNDING).any() or (high > outer_high + ROUNDING).any():
            found.faults.append(f"box of {tile['content']['uri']} outside its parent's")
        if tile["geometricError"] > error:
            found.faults.append(f"error of {tile['content']['uri']} above its parent's")
    here = low, high, tile["geometricError"]
    uri = folder / tile["content"]["uri"]
    children = tile.get("children", [])
    if uri.suffix == ".json":
        found.tiles -= 1
        _tileset(uri, found, here)
    else:
        if not children and tile["geometricError"] != 0:
            found.faults.append(f"leaf {uri.name} with an error")
        _content(uri, found, low, high, is_leaf=not children)
    for child in children:
        _tile(folder, child, found, here)


def _content(uri, found, low, high, *, is_leaf):
    if not uri.is_file():
        found.faults.append(f"{uri.name} is missing")
        return
    found.files.add(uri)
    glb = Glb(uri.read_bytes())
    for mesh in glb.json["meshes"]:
        for primitive in mesh["primitives"]:
            positions = glb.positions(primitive)
            found.samples += len(positions)
            if (positions < low - ROUNDING).any() or (positions > high + ROUNDING).any():
                found.faults.append(f"points of {uri.name} outside its box")
            if is_leaf:
                found.leaves.append(Leaf(positions, glb.attributes(primitive)))


def _bits(said, views, binary, size):
    if "constant" in said:
        return np.full(size, bool(said["constant"]))
    view = views[said["bitstream"]]
    stream = np.frombuffer(binary, np.uint8)[view["byteOffset"] :][: view["byteLength"]]
    bits = np.unpackbits(stream, bitorder="little")
    assert len(stream) == -(-size // 8)
    assert not bits[size:].any()
    assert bits.sum() == said["availableCount"]
    return bits[:size].astype(bool)


def _spread(number):
    """Give x, y, z of a Morton number, x the lowest bit."""
    return [sum((number >> 3 * k + axis & 1) << k for k in range(20)) for axis in range(3)]


def _implicit(folder, root, found):
    """Read an implicit octree: which tiles there are, and their contents."""
    said = root["implicitTiling"]
    assert said["subdivisionScheme"] == "OCTREE"
    levels, low_high = said["subtreeLevels"], _corners(root["boundingVolume"])
    there = set()

    def path(template, place):
        return folder / template.format(**dict(zip(("level", *"xyz"), place, strict=True)))

    def read(place):
        file = path(said["subtrees"]["uri"], place)
        if not file.is_file():
            found.faults.append(f"{file.name} is missing")
            return
        found.files.add(file)
        data = file.read_bytes()
        magic, version, text, binary = struct.unpack_from("<4sIQQ", data)
        assert (magic, version, len(data)) == (b"subt", 1, 24 + text + binary)
        content = json.loads(data[24 : 24 + text])
        views, stream = content["bufferViews"], data[24 + text :]
        tiles = _bits(content["tileAvailability"], views, stream, (8**levels - 1) // 7)
        (contents,) = content["contentAvailability"]
        assert (_bits(contents, views, stream, tiles.size) == tiles).all()
        for deep in range(levels):
            for number in np.flatnonzero(tiles[(8**deep - 1) // 7 :][: 8**deep]):
                cell = np.array(place[1:]) * 2**deep + _spread(int(number))
                there.add((place[0] + deep, *cell.tolist()))
        for number in np.flatnonzero(
            _bits(content["childSubtreeAvailability"], views, stream, 8**levels)
        ):
            cell = np.array(place[1:]) * 2**levels + _spread(int(number))
            read((place[0] + levels, *cell.tolist()))

    read((0, 0, 0, 0))
    if max(place[0] for place in there) + 1 != said["availableLevels"]:
        found.faults.append("availableLevels")
    parents = {(place[0] - 1, *(each // 2 for each in place[1:])) for place in there}
    if not parents - {(-1, 0, 0, 0)} <= there:
        found.faults.append("tile without its parent")
    found.tiles = len(there)
    for place in sorted(there):
        side = (low_high[1] - low_high[0]) / 2 ** place[0]
        low = low_high[0] + side * place[1:]
        uri = path(root["content"]["uri"], place)
        _content(uri, found, low, low + side, is_leaf=place not in parents)
