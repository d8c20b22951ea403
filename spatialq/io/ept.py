"""Entwine Point Tiles: a folder of files, each a node of an octree, as one table.

Layout: Entwine Point Tile format 1.1 (ept.json, ept-hierarchy/, ept-data/). Nodes are LAZ files, or
packed records, plain or compressed by Zstandard.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from spatialq.errors import CrsError, FileError
from spatialq.io import crs
from spatialq.io.las.copc import MAX_LEVEL, PAGE, Cube, octree_said, orphan
from spatialq.io.las.source import LasSource
from spatialq.io.references import OutsideError, in_folder
from spatialq.io.source import READER, Box, SequentialSource, in_row_groups, touch

ENDINGS = {"laszip": ".laz", "binary": ".bin", "zstandard": ".zst"}
KINDS = {"signed": "i", "unsigned": "u", "float": "f"}
SIZES = {"i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (4, 8)}
NAMES = {
    "Intensity": "intensity", "ReturnNumber": "return_number",
    "NumberOfReturns": "number_of_returns", "ScanDirectionFlag": "scan_direction_flag",
    "EdgeOfFlightLine": "edge_of_flight_line", "Classification": "classification",
    "ScanAngleRank": "scan_angle_rank", "ScanAngle": "scan_angle", "UserData": "user_data",
    "PointSourceId": "point_source_id", "GpsTime": "gps_time", "Red": "red", "Green": "green",
    "Blue": "blue", "Infrared": "nir", "OriginId": "origin_id",
}  # fmt: skip
"""Dimensions of PDAL -> columns; others keep their names."""
FLAGS = ("scan_direction_flag", "edge_of_flight_line")
NUMBER = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
"""A part of a key; with zeros before it a node would have two names."""


@dataclass(frozen=True)
class Node:
    """A file of points."""

    name: str
    first: int
    """Number of its first point."""
    rows: int
    box: Box
    coarser: float
    """Spacing of the points of the node above; infinite for the root."""


@dataclass(frozen=True)
class _Dimension:
    """A field of a packed record."""

    field: str
    column: str
    scale: float
    offset: float
    is_scaled: bool


class EptSource(SequentialSource):
    """A folder of Entwine Point Tiles, a `spatialq.io.source.PointSource`.

    Opening it reads ept.json and the hierarchy; nodes are read one by one.

    Parameters
    ----------
    path : Path
        Its ept.json.

    Raises
    ------
    FileError
        If the folder is damaged, or of an unknown kind.
    """

    is_whole = True
    warnings: list[str]

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings = []
        self._about = _json(path, path)
        try:
            self._type = str(self._about["dataType"])
            self._ending = ENDINGS[self._type]
            cube = _cube(self._about["bounds"], int(self._about["span"]))
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            self._reject(f"its bounds, span or dataType is missing or none ({error})", error)
        self._nodes = self._walk(cube)
        self.rows = sum(node.rows for node in self._nodes)
        self.box = _box(self._about.get("boundsConforming"))
        self.crs = self._crs()
        self.about = {"data type": self._type, **self._octree(cube.spacing)}

    @cached_property
    def schema(self) -> pa.Schema:
        """All columns: those of the root's file, or of the schema of packed records."""
        if self._type != "laszip":
            fields = [(d.column, self._type_of(d)) for d in self._dimensions]
            return pa.schema([("point_id", pa.int64()), *fields])
        if not self._nodes:
            return pa.schema([("point_id", pa.int64()), *((axis, pa.float64()) for axis in "xyz")])
        found: pa.Schema = self._laz(self._nodes[0]).schema
        return found

    def _octree(self, spacing: float) -> dict[str, Any]:
        points: Counter[int] = Counter()
        for node in self._nodes:
            points[int(node.name.partition("-")[0])] += node.rows
        return octree_said(len(self._nodes), spacing, points) if points else {}

    def at_resolution(self, reader: str, resolution: float) -> "EptSource":
        """Give the folder without the nodes that are finer than needed; ids stay."""
        del reader
        found = copy(self)
        found._nodes = [node for node in self._nodes if node.coarser > resolution]
        found.is_whole = len(found._nodes) == len(self._nodes)
        return found

    def spans(self, hint: Box | None = None) -> list[Node]:
        """List the nodes, without those outside the hint."""
        return [node for node in self._nodes if hint is None or touch(node.box, hint)]

    def read_span(self, span: Node, columns: Sequence[str]) -> pa.RecordBatch:
        """Read one node.

        Raises
        ------
        FileError
            If its file is missing or damaged, or has other points than the hierarchy says.
        """
        schema = pa.schema([self.schema.field(name) for name in columns])
        wanted = [name for name in columns if name != "point_id"]
        arrays = self._of_laz(span, wanted) if self._type == "laszip" else self._of(span, wanted)
        arrays["point_id"] = pa.array(np.arange(span.first, span.first + span.rows))
        return pa.RecordBatch.from_arrays([arrays[name] for name in columns], schema=schema)

    def batches(self, columns: Sequence[str], hint: Box | None = None) -> Iterator[pa.RecordBatch]:
        """Read the columns, in this order, batch by batch."""
        yield from in_row_groups(self.read_span(node, columns) for node in self.spans(hint))

    def _laz(self, node: Node) -> LasSource:
        source = LasSource(self._file(node))
        if source.rows != node.rows:
            self._reject(f"node {node.name} has {source.rows} points, {node.rows} are promised")
        return source

    def _of_laz(self, node: Node, columns: Sequence[str]) -> dict[str, pa.Array]:
        source = self._laz(node)
        if missing := [name for name in columns if name not in source.schema.names]:
            self._reject(f"node {node.name} has no column {missing[0]}")
        parts = [source.read_span(span, columns) for span in source.spans() if columns]
        return {name: pa.concat_arrays([part[name] for part in parts]) for name in columns}

    def _of(self, node: Node, columns: Sequence[str]) -> dict[str, pa.Array]:
        path, length = self._file(node), node.rows * self._record.itemsize
        try:
            raw = path.read_bytes()
            if self._type == "zstandard":
                raw = pa.decompress(raw, length, "zstd").to_pybytes()
        except (OSError, pa.ArrowInvalid, MemoryError, OverflowError) as error:
            self._reject(f"node {node.name} cannot be read: {error}", error)
        if len(raw) != length:
            self._reject(f"node {node.name} has {len(raw)} bytes of points, {length} are promised")
        records = np.frombuffer(raw, self._record)
        found = {}
        for each in self._dimensions:
            if each.column in columns:
                values: Any = np.ascontiguousarray(records[each.field])
                if each.is_scaled:
                    values = values * each.scale + each.offset
                found[each.column] = pa.array(values).cast(self._type_of(each))
        return found

    @cached_property
    def _record(self) -> np.dtype[np.void]:
        fields = []
        try:
            for each in self._about["schema"]:
                kind, size = KINDS[each["type"]], int(each["size"])
                if size not in SIZES[kind]:
                    raise ValueError(size)
                fields.append((str(each["name"]), f"<{kind}{size}"))
            return np.dtype(fields)
        except (KeyError, TypeError, ValueError) as error:
            self._reject(f"its schema is damaged ({error})", error)

    @cached_property
    def _dimensions(self) -> list[_Dimension]:
        names = self._record.names or ()
        if not {"X", "Y", "Z"} <= set(names):
            self._reject("its schema has no X, Y and Z")
        found = []
        for each in self._about["schema"]:
            name = each["name"]
            column = name.lower() if name in ("X", "Y", "Z") else NAMES.get(name, name)
            scale, offset = float(each.get("scale", 1)), float(each.get("offset", 0))
            found.append(_Dimension(name, column, scale, offset, (scale, offset) != (1, 0)))
        return found

    def _type_of(self, dimension: _Dimension) -> pa.DataType:
        if dimension.is_scaled or dimension.column in ("x", "y", "z"):
            return pa.float64()
        if dimension.column in FLAGS:
            return pa.bool_()
        return pa.from_numpy_dtype(self._record[dimension.field])

    def _file(self, node: Node) -> Path:
        return self._named(f"ept-data/{node.name}{self._ending}")

    def _named(self, name: str) -> Path:
        try:
            return in_folder(self.path.parent, name)
        except OutsideError as error:
            self._reject(str(error), error)

    def _walk(self, cube: Cube) -> list[Node]:
        """Read all pages of the hierarchy."""
        counts: dict[tuple[int, ...], int] = {}
        pages, seen = ["0-0-0-0"], {"0-0-0-0"}
        while pages:
            name = pages.pop()
            page = _json(self.path, self._named(f"ept-hierarchy/{name}.json"))
            for key, count in page.items():
                place = self._key(key)
                if not isinstance(count, int) or isinstance(count, bool) or count < PAGE:
                    self._reject(f"node {key} has {count!r} points")
                if count == PAGE:
                    if key in seen:
                        self._reject(f"page {key} of its hierarchy is listed twice")
                    seen.add(key)
                    pages.append(key)
                elif place in counts:
                    self._reject(f"node {key} is listed twice")
                else:
                    counts[place] = count
        self._require_whole(counts)
        nodes, first = [], 0
        for place in sorted(each for each, count in counts.items() if count):
            level, *cell = place
            # points on a border are rounded to either side
            box = cube.cell(level, cell, [math.ldexp(1e-3 * cube.side, -level)] * 3)
            rows, name = counts[place], "-".join(map(str, place))
            nodes.append(Node(name, first, rows, box, cube.coarser(level)))
            first += rows
        return nodes

    def _require_whole(self, counts: Mapping[tuple[int, ...], int]) -> None:
        """Reject a hierarchy in which a node has no parent, or with other points than promised."""
        if name := orphan(counts):
            self._reject(f"node {name} of its hierarchy has no parent")
        promised, listed = self._about.get("points"), sum(counts.values())
        if isinstance(promised, int) and promised != listed:
            self.warnings.append(f"promises {promised} points, its hierarchy has {listed}")

    def _key(self, name: str) -> tuple[int, ...]:
        parts = name.split("-")
        is_key = len(parts) == 4 and all(NUMBER.fullmatch(part) for part in parts)
        level, *cell = map(int, parts) if is_key else (MAX_LEVEL + 1, 0)
        if level > MAX_LEVEL or max(cell) >= 1 << level:
            self._reject(f"there can be no node {name!r}")
        return (level, *cell)

    def _crs(self) -> str | None:
        srs = self._about.get("srs")
        srs = srs if isinstance(srs, dict) else {}
        text = srs.get("wkt")
        if not text and srs.get("authority") and srs.get("horizontal"):
            text = f"{srs['authority']}:{srs['horizontal']}"
            text += f"+{srs['vertical']}" if srs.get("vertical") else ""
        try:
            return crs.from_text(str(text)) if text else None
        except CrsError as error:
            self.warnings.append(f"its coordinate reference system is not used: {error}")
            return None

    def _reject(self, reason: str, cause: BaseException | None = None) -> NoReturn:
        raise FileError.of(READER, self.path, reason) from cause


def _json(source: Path, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = f"'{path.name}' cannot be read: {getattr(error, 'strerror', None) or error}"
        raise FileError.of(READER, source, reason) from error
    if not isinstance(found, dict):
        raise FileError.of(READER, source, f"'{path.name}' is no JSON object")
    return found


def _cube(bounds: Any, span: int) -> Cube:
    numbers = [float(each) for each in bounds]
    side = numbers[3] - numbers[0]
    if len(numbers) != 6 or not all(map(math.isfinite, numbers)) or side <= 0:
        raise ValueError(bounds)
    return Cube(numbers[0], numbers[1], numbers[2], side, side / span)


def _box(bounds: Any) -> Box | None:
    try:
        low_x, low_y, low_z, high_x, high_y, high_z = map(float, bounds)
    except (TypeError, ValueError):
        return None
    return low_x, low_y, low_z, high_x, high_y, high_z
