"""Potree 2.0 that is written: read back by a reader made from the description of the format."""

import json
import struct
from itertools import pairwise

import laspy
import numpy as np
import pytest
from spatialq.udfs.build_lod import Options, additive, cpu

from spatialq.export.additive_points import copy_records
from spatialq.export.las_join import join
from spatialq.export.potree import write_potree
from spatialq.io.las.source import LasSource

from .test_copc_writer import make

OPTIONS = Options(strategy="first", max_points=10, grid_size=2)
KINDS = {
    "int8": "i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "uint8": "u1", "uint16": "<u2",
    "uint32": "<u4", "uint64": "<u8", "float": "<f4", "double": "<f8",
}  # fmt: skip


class Potree:
    """A reader of a folder: the loader of the viewer in a few lines."""

    def __init__(self, folder):
        self.metadata = json.loads((folder / "metadata.json").read_text())
        self.hierarchy = (folder / "hierarchy.bin").read_bytes()
        self.points = (folder / "octree.bin").read_bytes()
        assert self.metadata["version"] == "2.0"
        assert self.metadata["encoding"] == "DEFAULT"
        self.attributes = self.metadata["attributes"]
        for each in self.attributes:
            assert each["size"] == each["numElements"] * each["elementSize"]
        self.dtype = np.dtype(
            [(a["name"], KINDS[a["type"]], (a["numElements"],)) for a in self.attributes]
        )
        self.chunks = 0
        self.nodes, self.inner = {}, set()
        self._chunk("r", 0, self.metadata["hierarchy"]["firstChunkSize"])

    def _chunk(self, top, offset, size):
        """Names follow from the masks of children, in the order of the rows."""
        self.chunks += 1
        assert size % 22 == 0
        names, proxies = [top], []
        for k, row in enumerate(struct.iter_unpack("<BBIQQ", self.hierarchy[offset:][:size])):
            kind, mask, count, first, length = row
            name = names[k]
            if kind == 2:
                proxies.append((name, first, length))
                continue
            assert (kind == 1) == (mask == 0)
            if kind == 0:
                self.inner.add(name)
            self.nodes[name] = count, first, length
            names += [f"{name}{c}" for c in range(8) if mask >> c & 1]
        for proxy in proxies:
            self._chunk(*proxy)

    def read(self, name):
        count, first, length = self.nodes[name]
        values = np.frombuffer(self.points[first : first + length], self.dtype)
        assert len(values) == count
        return values

    def xyz(self, values):
        scale, offset = self.metadata["scale"], self.metadata["offset"]
        return values["position"] * np.array(scale) + np.array(offset)


def written(folder, source):
    folder.mkdir()
    cloud = LasSource(source)
    las = laspy.read(source)
    xyz = [np.asarray(getattr(las, axis)) for axis in "xyz"]
    collected = additive.Additive(len(las.points))
    collected.add(cpu.run(*xyz, *[None] * 6, options=OPTIONS))
    target = folder / "metadata.json"
    records = copy_records(target, join([cloud], target), folder / "records")
    with records.in_order(collected.octree(OPTIONS.grid_size, records.rows)) as points:
        write_potree(target, points, cloud.crs)
    return Potree(folder), las


@pytest.mark.parametrize("point_format", [1, 3, 6, 8])
def test_every_attribute_of_every_point_is_read_back(tmp_path, point_format):
    source = make(tmp_path / "a.laz", 3000, point_format, extra=True)
    potree, las = written(tmp_path / "p", source)
    values = np.concatenate([potree.read(name) for name in potree.nodes])
    assert len(values) == potree.metadata["points"] == 3000
    expected = {
        "position": np.column_stack([las.X, las.Y, las.Z]),
        "ratio": las.ratio,
        "three": las.three,
        "gps-time": las.gps_time,
        "classification": las.classification,
        "return number": las.return_number,
        "number of returns": las.number_of_returns,
        "point source id": las.point_source_id,
        "user data": las.user_data,
        "intensity": las.intensity,
    }
    if point_format in (3, 8):
        expected["rgb"] = np.column_stack([las.red, las.green, las.blue])
    if point_format == 8:
        expected["nir"] = las.nir
    if point_format > 5:
        expected["scan angle"] = las.scan_angle
    names = list(expected)
    found = np.column_stack([values[name].astype(float) for name in names])
    given = np.column_stack([np.asarray(expected[n], float).reshape(3000, -1) for n in names])
    np.testing.assert_array_equal(found[np.lexsort(found.T)], given[np.lexsort(given.T)])
    for each in potree.attributes:
        if each["name"] in expected:
            scale, offset = np.array(each["scale"]), np.array(each["offset"])
            own = values[each["name"]] * scale + offset
            np.testing.assert_allclose(each["min"], own.min(axis=0))
            np.testing.assert_allclose(each["max"], own.max(axis=0))


def test_each_point_lies_in_its_node(tmp_path):
    potree, las = written(tmp_path / "p", make(tmp_path / "a.laz", 5000))
    metadata = potree.metadata
    assert potree.chunks > 2
    assert metadata["hierarchy"]["depth"] == max(map(len, potree.nodes)) - 1 > 4
    low = np.array(metadata["boundingBox"]["min"])
    sides = np.array(metadata["boundingBox"]["max"]) - low
    np.testing.assert_allclose(sides, sides[0])
    np.testing.assert_array_equal(low, las.header.mins)
    assert metadata["spacing"] == pytest.approx(sides[0] / 2)
    for name, (count, _, _) in potree.nodes.items():
        corner, side = low.copy(), sides[0]
        for digit in map(int, name[1:]):
            side /= 2
            corner += side * np.array([digit >> 2 & 1, digit >> 1 & 1, digit & 1])
        xyz = potree.xyz(potree.read(name))
        assert (xyz >= corner - 1e-6).all()
        assert (xyz <= corner + side + 1e-6).all()
        assert count <= 10
        assert count <= 2**3 or name not in potree.inner


def test_all_bytes_are_those_of_a_node(tmp_path):
    potree, _ = written(tmp_path / "p", make(tmp_path / "a.laz", 5000, crs="EPSG:25832"))
    spans = sorted((first, first + length) for _, first, length in potree.nodes.values())
    assert spans[0][0] == 0
    assert spans[-1][1] == len(potree.points)
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    assert "25832" in potree.metadata["projection"]
