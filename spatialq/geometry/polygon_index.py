"""Polygons as points ask for them: edges in rows of each polygon, and cells of all of them."""

import hashlib
import struct
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.data.points import read_only
from spatialq.data.polygons import Polygons
from spatialq.geometry.point_polygons import cells_of_polygons, locate, rows_of_edges
from spatialq.runtime import forks
from spatialq.runtime.arrays import Floats, Int32s, Ints
from spatialq.runtime.threads import workers

POLYGON, MULTIPOLYGON = 3, 6
"""Codes of geometry types in WKB."""
KINDS = {
    1: "POINT",
    2: "LINESTRING",
    4: "MULTIPOINT",
    5: "MULTILINESTRING",
    7: "GEOMETRYCOLLECTION",
}
NUMBERS = {0: 2, 1: 3, 2: 3, 3: 4}
"""Of a vertex, by the thousands of the code: XY, XYZ, XYM, XYZM."""
FARTHEST = 1e150
"""Largest coordinate of a vertex: products of two of them are finite."""
CELLS_PER_POLYGON, FEWEST_CELLS, MOST_CELLS = 1024, 1 << 12, 1 << 23
MOST_IN_BOXES = 1 << 25
"""Cells in the boxes of all polygons: where they overlap much, cells are larger."""
MOST_ROWS = 2.0**62
"""Of a polygon, were it as high as all of them together: what a whole number has room for."""
FINEST = 64.0
"""Units in the last place of the largest coordinate that a cell is wide at least."""
RUN = 1 << 17
"""Points whose pairs are gathered in one array."""
KEPT = 4
"""Indexes that are kept, for the next calls with equal polygons."""

_kept: "OrderedDict[bytes, PolygonIndex]" = OrderedDict()
_lock = forks.lock()


@dataclass(frozen=True)
class PolygonIndex:
    """Polygons, and where they are."""

    box: Floats
    """xmin, ymin, xmax, ymax of all."""
    boxes: Floats
    """[polygons, 4]; NaN of those without a vertex."""
    of_kernel: tuple[Any, ...]
    """What `point_polygons.locate` gets behind the points and `box`, but the result."""

    @classmethod
    def of(
        cls,
        polygons: Sequence[bytes | None],
        names: Sequence[Any] | None = None,
        caller: str = "polygons",
    ) -> "PolygonIndex":
        """Index polygons.

        Parameters
        ----------
        polygons : sequence of bytes or None
            POLYGON and MULTIPOLYGON as WKB (ISO, little-endian), as DuckDB gives them; None and
            empty ones have no points. Points on edges and corners are within; inner rings are
            holes. Of rings that cross, a point is within that an odd number of rings is around.
        names : sequence, optional
            What an error calls them; by default their numbers from 0.
        caller : str
            What an error begins with.

        Raises
        ------
        ValueError
            If a geometry is of another type, a ring is not closed, or a vertex is NaN or beyond
            `FARTHEST`.
        """
        named = range(len(polygons)) if names is None else names
        read = [_edges(caller, *each) for each in zip(polygons, named, strict=True)]
        starts = np.cumsum([0, *map(len, read)])
        edges = np.concatenate([np.empty((0, 4)), *read])
        up = edges[:, 1] <= edges[:, 3]
        edges = np.where(up[:, None], edges, edges[:, [2, 3, 0, 1]])
        boxes = np.full((len(read), 4), np.nan)
        has = np.diff(starts) > 0
        if has.any():
            at = starts[:-1][has]
            left, right = np.minimum(edges[:, 0], edges[:, 2]), np.maximum(edges[:, 0], edges[:, 2])
            boxes[has] = np.column_stack([
                np.minimum.reduceat(left, at), np.minimum.reduceat(edges[:, 1], at),
                np.maximum.reduceat(right, at), np.maximum.reduceat(edges[:, 3], at),
            ])  # fmt: skip
        bottom = np.where(has, boxes[:, 1], 0.0)
        height = np.where(has, boxes[:, 3] - boxes[:, 1], 0.0)
        climbed = (
            np.add.reduceat(np.append(edges[:, 3] - edges[:, 1], 0.0), starts[:-1])
            if len(read)
            else np.empty(0)
        )
        box = np.array([np.inf, np.inf, -np.inf, -np.inf])
        grid, nx, ny, most = np.zeros(4), 1, 1, 1
        if has.any():
            box = np.concatenate([boxes[has, :2].min(axis=0), boxes[has, 2:].max(axis=0)])
            grid, nx, ny, most = _grid(box, boxes[has])
        # so many rows that an edge is in three of them on average; one where they would be so low
        # that the row of a point elsewhere has no number
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rows = np.where(has & (climbed > 0), 2 * np.diff(starts) * height / climbed, 0.0)
            rows = np.clip(rows, 1, None).astype(np.int64)
            rows[~(rows / height * (box[3] - box[1]) < MOST_ROWS)] = 1
            scale = np.where(rows > 1, rows / height, 0.0)
        row_starts = np.cumsum([0, *rows])
        begins, listed = rows_of_edges(edges, starts, bottom, scale, row_starts)
        cells, lists = cells_of_polygons(
            grid, nx, ny, edges, starts, boxes, bottom, scale, row_starts, begins, listed, most
        )
        more = bottom, scale, row_starts, begins, listed
        return cls(box, boxes, (grid, nx, ny, cells, lists, *more))

    @classmethod
    def kept(cls, polygons: Polygons, caller: str) -> "PolygonIndex":
        """Give the index of polygons, made before if there was one of equal ones lately.

        Raises
        ------
        ValueError
            As `of`.
        """
        digest = hashlib.blake2b(np.ascontiguousarray(polygons.wkb).data, digest_size=16)
        digest.update(np.ascontiguousarray(polygons.starts).data)
        key = digest.digest()
        names = None if polygons.names is None else polygons.names.tolist()
        with _lock:
            found = _kept.get(key)
        if found is None:
            found = cls.of(list(polygons), names, caller)
        with _lock:
            _kept[key] = found
            _kept.move_to_end(key)
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
        return found

    def find(self, x: Floats, y: Floats) -> tuple[Ints, Int32s]:
        """Find the polygons that points are in, in threads.

        Parameters
        ----------
        x, y : float64[n]
            What is not finite is in no polygon.

        Returns
        -------
        row : int64[m], ascending
        place : int32[m]
            The polygon, ascending for each point.
        """
        nothing = np.empty(0, np.int64), np.empty(0, np.int32), True
        found = [nothing, *self.find_in_parts(x, y)]
        rows, places, _ = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(places)

    def find_in_parts(self, x: Any, y: Any) -> "list[tuple[Any, Any, bool]]":
        """Find the same in parts of the points, and whether those of each are finite."""
        with workers() as pool:
            spans = pool.spans(len(x), 1, RUN) if len(x) else []
            return pool.map(lambda span: self._find_some(x, y, *span), spans)

    def _find_some(self, x: Any, y: Any, first: int, stop: int) -> "tuple[Any, Any, bool]":
        """Find the polygons of the points from `first` to `stop`, in this thread."""
        x, y = read_only(x), read_only(y)  # of one type, for which the loop is compiled
        parts: list[tuple[Any, Any]] = []
        room, reached, are_finite = stop - first + 64, first, True
        while reached < stop:
            rows, places = np.empty(room, np.int64), np.empty(room, np.int32)
            count, reached_now, is_finite = locate(
                x, y, reached, stop, self.box, *self.of_kernel, rows, places
            )
            room = 2 * room if reached_now == reached else room
            reached, are_finite = reached_now, are_finite and is_finite
            parts.append((rows[:count], places[:count]))
        if len(parts) == 1:
            return *parts[0], are_finite
        rows, places = map(np.concatenate, zip(*parts, strict=True))
        return rows, places, are_finite


def _grid(box: Floats, boxes: Floats) -> tuple[Any, int, int, int]:
    """Choose cells, which are about squares: not more than polygons are worth, and not too fine."""
    width, depth = float(box[2] - box[0]), float(box[3] - box[1])
    wanted = min(max(CELLS_PER_POLYGON * len(boxes), FEWEST_CELLS), MOST_CELLS)
    finest = FINEST * float(np.spacing(np.abs(box).max()))
    while True:
        size = max((width * depth / wanted) ** 0.5, width / wanted, depth / wanted, finest)
        nx, ny = max(int(width / size), 1), max(int(depth / size), 1)
        per_x, per_y = nx / width if nx > 1 else 0.0, ny / depth if ny > 1 else 0.0
        wide = (boxes[:, 2] - boxes[:, 0]) * per_x + 2
        deep = (boxes[:, 3] - boxes[:, 1]) * per_y + 2
        most = int((np.minimum(wide, nx) * np.minimum(deep, ny)).sum()) + len(boxes)
        if most <= MOST_IN_BOXES or nx * ny == 1:
            return np.array([box[0], box[1], per_x, per_y]), nx, ny, most
        wanted //= 2


def _edges(caller: str, wkb: bytes | None, name: Any) -> Floats:
    """Read the edges of a polygon: float64[n, 4]."""
    found = []
    left, at = 0 if wkb is None else 1, 0
    while left:
        assert wkb is not None
        left -= 1
        if len(wkb) < at + 9 or wkb[at] == 0 or wkb[at + 4]:  # another order, or flags of EWKB
            message = (
                f"{caller}: geometry of polygons must be ISO WKB, little-endian and whole, got "
                f"{len(wkb)} bytes of another kind of polygon_id {name}"
            )
            raise ValueError(message)
        order, code, count = struct.unpack_from("<BII", wkb, at)
        at += 9
        kind = code % 1000
        if order != 1 or code // 1000 not in NUMBERS or kind not in (POLYGON, MULTIPOLYGON):
            what = KINDS.get(kind, "another type")
            message = (
                f"{caller}: geometry of polygons must be POLYGON or MULTIPOLYGON, got {what} of "
                f"polygon_id {name}"
            )
            raise ValueError(message)
        if kind == MULTIPOLYGON:
            left += count
            continue
        size = NUMBERS[code // 1000]
        for _ in range(count):
            length = struct.unpack_from("<I", wkb, at)[0] if len(wkb) >= at + 4 else len(wkb)
            if len(wkb) < at + 4 + 8 * size * length:
                message = (
                    f"{caller}: geometry of polygons must be whole WKB, got one that ends after "
                    f"{len(wkb)} bytes of polygon_id {name}"
                )
                raise ValueError(message)
            ring = np.frombuffer(wkb, "<f8", length * size, at + 4).reshape(length, size)[:, :2]
            at += 4 + 8 * size * length
            if not length:
                continue
            fits = np.abs(ring) <= FARTHEST
            if not fits.all():
                message = (
                    f"{caller}: vertices of polygons must be from -{FARTHEST} to {FARTHEST}, got "
                    f"{ring[~fits][0]} in polygon_id {name}"
                )
                raise ValueError(message)
            if (ring[0] != ring[-1]).any():
                begin, end = (tuple(ring[k].tolist()) for k in (0, -1))
                message = (
                    f"{caller}: rings of polygons must be closed, got {begin} and {end} as ends of "
                    f"one of polygon_id {name}"
                )
                raise ValueError(message)
            found.append(np.column_stack([ring[:-1], ring[1:]]))
    return np.concatenate([np.empty((0, 4)), *found])
