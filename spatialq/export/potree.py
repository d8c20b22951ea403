"""Clouds as Potree 2.0: three files in a folder, as the Potree viewer loads them.

`octree.bin` has the points node by node, uncompressed (encoding DEFAULT), `hierarchy.bin` the nodes
and `metadata.json` what the bytes mean. Format: PotreeConverter 2, docs/potree-file-format.md.
"""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.octree import Octree
from spatialq.export.additive_points import EXTRA, AdditivePoints
from spatialq.export.atomic import whole
from spatialq.export.las_file import mode_of
from spatialq.io.crs import to_wkt
from spatialq.io.las.columns import SCAN_ANGLE_STEP, extra_bytes
from spatialq.io.source import Progress
from spatialq.runtime.arrays import Array, DType, Records
from spatialq.runtime.progress import check

if TYPE_CHECKING:
    from spatialq.export.kept import KeptOutput


METADATA, HIERARCHY, POINTS = "metadata.json", "hierarchy.bin", "octree.bin"
ROW = struct.Struct("<BBIQQ")
"""Of a node: type, mask of children, points, first byte and bytes in `octree.bin`; of a node whose
children are in another chunk the place of that chunk in `hierarchy.bin`."""
NORMAL, LEAF, PROXY = range(3)
STEP_SIZE = 4
"""Levels of a chunk of the hierarchy."""
GROUP = 1 << 20
"""Points that are written at a time."""
TYPES = {
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "f4": "float", "f8": "double",
}  # fmt: skip


@dataclass
class _Attribute:
    """An attribute of the points: how to make it of records, and its range so far."""

    name: str
    dtype: DType
    of: Callable[[Records], Array]
    scale: list[float] = field(default_factory=lambda: [1.0])
    offset: list[float] = field(default_factory=lambda: [0.0])
    count: int = 1
    low: Array | None = None
    high: Array | None = None

    def values(self, records: Records) -> Array:
        """Give the values of points, [n, count], and take note of their range."""
        values = np.asarray(self.of(records), self.dtype).reshape(-1, self.count)
        if len(values):
            low, high = values.min(axis=0), values.max(axis=0)
            self.low = low if self.low is None else np.minimum(self.low, low)
            self.high = high if self.high is None else np.maximum(self.high, high)
        return values

    def limits(self) -> list[Any]:
        """Give the least and the greatest values so far, as JSON has them."""
        return [None if each is None else each.tolist() for each in (self.low, self.high)]

    def restore(self, limits: list[Any]) -> None:
        """Take the least and the greatest values of points that were written before."""
        self.low, self.high = (
            None if each is None else np.array(each, self.dtype) for each in limits
        )

    def described(self) -> dict[str, Any]:
        """Describe it for `metadata.json`."""
        scale, offset = np.array(self.scale), np.array(self.offset)
        return {
            "name": self.name,
            "description": "",
            "size": self.count * self.dtype.itemsize,
            "numElements": self.count,
            "elementSize": self.dtype.itemsize,
            "type": TYPES[self.dtype.str[1:]],
            "min": _finite(self.low * scale + offset),
            "max": _finite(self.high * scale + offset),
            "scale": self.scale,
            "offset": self.offset,
        }


def write_potree(
    target: Path,
    points: AdditivePoints,
    crs: str | None = None,
    tick: Progress | None = None,
    kept: "KeptOutput | None" = None,
) -> None:
    """Write a cloud.

    Coordinates keep the scale and offset of the source; all fields are attributes, extra bytes too.

    Parameters
    ----------
    target : Path
        `metadata.json` of a folder; the other two files are beside it.
    points : AdditivePoints
    crs : str, optional
        PROJJSON.
    tick : callable, optional
        Called with the target, points so far and points in all.
    kept : KeptOutput, optional
        Where points are kept that are written, to go on behind them.

    Raises
    ------
    FileError
        If a file cannot be written.
    """
    octree, attributes = points.octree, _attributes(points)
    n, size = len(points.records), sum(each.dtype.itemsize * each.count for each in attributes)
    _write_points(target, points, attributes, tick, kept)
    chunks, first_size = _hierarchy(octree, size)
    with whole(target.with_name(HIERARCHY)) as partial:
        partial.write_bytes(chunks)
    high = [low + octree.size for low in octree.low]
    header = points.source.header
    metadata = {
        "version": "2.0",
        "name": target.resolve().parent.name,
        "description": "",
        "points": n,
        "projection": "" if crs is None else to_wkt(crs),
        "hierarchy": {
            "firstChunkSize": first_size,
            "stepSize": STEP_SIZE,
            "depth": len(octree.names[-1]) - 1,
        },
        "offset": list(header.offsets),
        "scale": list(header.scales),
        "spacing": octree.spacing,
        "boundingBox": {"min": list(octree.low), "max": high},
        "encoding": "DEFAULT",
        "attributes": [each.described() for each in attributes],
    }
    with whole(target) as partial:
        partial.write_text(json.dumps(metadata, indent=1, allow_nan=False), encoding="utf-8")


def _write_points(
    target: Path,
    points: AdditivePoints,
    attributes: list[_Attribute],
    tick: Progress | None,
    kept: "KeptOutput | None",
) -> None:
    """Write the points behind those that were kept, node by node."""
    ends, n = points.octree.first, len(points.records)
    dtype = np.dtype([(str(k), each.dtype, (each.count,)) for k, each in enumerate(attributes)])
    state = kept.load() if kept is not None and kept.path.exists() else None
    done = 0
    if state is not None:
        done = state["nodes"]
        for attribute, found in zip(attributes, state["limits"], strict=True):
            attribute.restore(found)
    with (
        whole(target.with_name(POINTS), None if kept is None else kept.path) as partial,
        partial.open(mode_of(partial)) as file,
    ):
        file.seek(int(ends[done]) * dtype.itemsize)
        file.truncate()
        for first, stop in points.groups(GROUP, done):
            check()
            records = points.of_nodes(first, stop)
            out = np.empty(records.size, dtype)
            for k, attribute in enumerate(attributes):
                out[str(k)] = attribute.values(records)
            file.write(out.view(np.uint8).data)
            if kept is not None:
                file.flush()
                kept.save({"nodes": stop, "limits": [each.limits() for each in attributes]})
            if tick is not None:
                tick(target, n + int(ends[stop]), 2 * n)


def _attributes(points: AdditivePoints) -> list[_Attribute]:
    header = points.source.header
    scales, offsets = list(header.scales), list(header.offsets)

    def xyz(records: Records) -> Array:
        return np.column_stack([records[axis] for axis in "XYZ"])

    def rgb(records: Records) -> Array:
        return np.column_stack([records[name] for name in ("red", "green", "blue")])

    def bits(name: str, shift: int, mask: int) -> Callable[[Records], Array]:
        return lambda records: records[name] >> shift & mask

    def plain(name: str) -> Callable[[Records], Array]:
        return lambda records: records[name]

    byte, short = np.dtype("u1"), np.dtype("<u2")
    found = [
        _Attribute("position", np.dtype("<i4"), xyz, scales, offsets, 3),
        _Attribute("intensity", short, plain("intensity")),
        _Attribute("return number", byte, bits("bit_fields", 0, 15)),
        _Attribute("number of returns", byte, bits("bit_fields", 4, 15)),
        _Attribute("classification flags", byte, plain("classification_flags")),
        _Attribute("classification", byte, plain("classification")),
        _Attribute("user data", byte, plain("user_data")),
        _Attribute("scan angle", np.dtype("<i2"), plain("scan_angle"), [SCAN_ANGLE_STEP]),
        _Attribute("point source id", short, plain("point_source_id")),
        _Attribute("gps-time", np.dtype("<f8"), plain("gps_time")),
    ]
    if points.point_format > 6:
        found.append(_Attribute("rgb", short, rgb, [1.0] * 3, [0.0] * 3, 3))
    if points.point_format == 8:
        found.append(_Attribute("nir", short, plain("nir")))
    return [*found, *_extra_attributes(points)]


def _extra_attributes(points: AdditivePoints) -> list[_Attribute]:
    def of(begin: int, size: int, dtype: DType) -> Callable[[Records], Array]:
        return lambda records: np.ascontiguousarray(records[EXTRA][:, begin : begin + size]).view(
            dtype
        )

    found, begin = [], 0
    for number, extra in enumerate(extra_bytes(points.source.header), 1):
        dtype = np.dtype(f"<{extra.dtype}")
        scales = list(extra.scales or [1.0] * extra.count)
        offsets = list(extra.offsets or [0.0] * extra.count)
        make = of(begin, extra.size, dtype)
        name = extra.name or f"extra_{number}"
        found.append(_Attribute(name, dtype, make, scales, offsets, extra.count))
        begin += extra.size
    return found


def _finite(values: Array) -> list[float | None]:
    """Give numbers as JSON can have them."""
    return [float(value) if np.isfinite(value) else None for value in values]


def _hierarchy(octree: Octree, point_size: int) -> tuple[bytes, int]:
    """Encode the chunks of the hierarchy; give them, and the bytes of the first."""
    tops, children = octree.pages(STEP_SIZE)
    offsets = np.cumsum([0, *(ROW.size * len(rows) for rows in tops.values())]).tolist()
    places = dict(zip(tops, offsets, strict=False))
    encoded = bytearray()
    for top, rows in tops.items():
        for node in rows:
            mask = sum(1 << int(octree.names[child][-1]) for child in children[node])
            points = octree.points(node)
            if node != top and node in tops:
                place = places[node], ROW.size * len(tops[node])
                encoded += ROW.pack(PROXY, mask, points, *place)
                continue
            place = int(octree.first[node]) * point_size, points * point_size
            encoded += ROW.pack(NORMAL if mask else LEAF, mask, points, *place)
    return bytes(encoded), ROW.size * len(tops[0])
