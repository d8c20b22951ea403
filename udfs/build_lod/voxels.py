"""Fill the inner nodes of the octree with voxels, from the bottom up.

Schütz et al. 2023, section 4.2. A voxel aggregates all points in its cell, at any number of levels
below: masses and sums go up the tree, not rounded colours. Only 'weighted' takes the voxels of the
children as samples, as the paper does.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from spatialq.runtime import buffers
from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.progress import check
from spatialq.runtime.threads import FEW_POINTS, in_threads

from . import Options
from .places import bits_set, digits, gather, lowest_bit, place, spread
from .split import Sorted
from .tree import Nodes

NO_POINT = 0xFFFFFFFF
FINE = 10
"""Bits of a position within a voxel, and of a weight."""
VOXEL_WIDTH = 1 << FINE
"""Width of a voxel in these units; a sample has no weight beyond this distance."""
HALF = VOXEL_WIDTH // 2
SUMS = {"average": 4, "weighted": 5}
"""Sums per voxel: the four channels, and for 'weighted' the sum of the weights."""


@dataclass
class LevelVoxels:
    """The voxels of the inner nodes of a level.

    Parameters
    ----------
    code : uint32[v]
    colour : uint16[v, 4]
    mass : uint32[v]
        uint64[v] above tiles, which may have more than 2**32 points together.
    representative : uint32[v]
    key : uint64[v]
        For 'random' the maximum key of the points; otherwise empty.
    sums : uint64[v, 4] or uint64[v, 5]
        For 'average' the four channels, for 'weighted' also the weights; otherwise empty.
    """

    code: Any
    colour: Any
    mass: Any
    representative: Any
    key: Any
    sums: Any

    @classmethod
    def empty(cls, n: int, strategy: str, mass: Any = np.uint32) -> "LevelVoxels":
        """Make voxels without points."""
        return cls(
            buffers.scratch(n, np.uint32),
            buffers.scratch((n, 4), np.uint16),
            buffers.zeros(n, mass),
            buffers.full(n, NO_POINT, np.uint32),
            buffers.zeros(n if strategy == "random" else 0, np.uint64),
            buffers.zeros((n, SUMS[strategy]) if strategy in SUMS else (0, 4), np.uint64),
        )

    def colour_sums(self, strategy: str) -> Any:
        """Give `Tree.sums`, if these are the voxels of the first node."""
        return self.sums if strategy == "average" else np.empty((0, 4), np.uint64)


class Mask:
    """The occupied cells of a node, and the number of them before each word of 64 cells."""

    def __init__(self, depth: int) -> None:
        words = max(1, 1 << 3 * depth >> 6)
        self.words = np.zeros(words, np.uint64)
        self.before = np.zeros(words, np.uint32)
        self.touched = np.zeros(max(1, words >> 6), np.uint64)


class Filler:
    """Fills the inner nodes level by level."""

    def __init__(self, points: Sorted, nodes: Nodes, options: Options) -> None:
        self.sorted = points
        self.nodes = nodes
        self.options = options
        self.depth = options.grid_size.bit_length() - 1
        self.first = np.zeros(len(nodes.level), np.int64)
        """The first voxel of each inner node among the voxels of its level."""
        self.count = np.zeros(len(nodes.level), np.int64)
        self.most = int(nodes.points[nodes.children == 0].max(initial=0))

    def fill(self) -> list[LevelVoxels]:
        """Give the voxels of each level from the root down; leaves have none."""
        found: list[LevelVoxels] = []
        below = LevelVoxels.empty(0, self.options.strategy)
        ends = self.nodes.level_first
        for low, high in zip(ends[-2::-1], ends[:0:-1], strict=True):
            inner = low + np.flatnonzero(self.nodes.children[low:high])
            below = self._level(inner, below)
            found.append(below)
        return found[::-1]

    def fill_first(self, below: LevelVoxels, counts: Any) -> LevelVoxels:
        """Give the voxels of the first node; all other nodes must be its children.

        Parameters
        ----------
        below : LevelVoxels
            The voxels of the children, one child after the other.
        counts : sequence of int
            Number of voxels of each child; a leaf has none.
        """
        self.count[1:] = counts
        self.first[1:] = np.cumsum(counts) - counts
        return self._level(np.zeros(1, np.int64), below)

    def _level(self, inner: Any, below: LevelVoxels) -> LevelVoxels:
        most = max(self.most, int(self.count.max()))

        def count(span: tuple[int, int]) -> None:
            mask = Mask(self.depth)
            codes = np.empty(most, np.uint32)
            for node in inner[slice(*span)].tolist():
                check()
                self._mark(node, below, mask, codes)
                self.count[node] = rank(mask.words, mask.touched, mask.before)
                clear(mask.words, mask.touched)

        def gather_in(span: tuple[int, int]) -> None:
            mask = Mask(self.depth)
            codes = np.empty(most, np.uint32)
            for node in inner[slice(*span)].tolist():
                check()
                self._mark(node, below, mask, codes)
                rank(mask.words, mask.touched, mask.before)
                first = self.first[node]
                list_codes(mask.words, mask.touched, here.code[first:])
                self._add(node, below, here, mask, codes)
                clear(mask.words, mask.touched)

        in_threads(count, len(inner))
        counts = self.count[inner]
        self.first[inner] = np.cumsum(counts) - counts
        here = LevelVoxels.empty(int(counts.sum()), self.options.strategy, below.mass.dtype)
        in_threads(gather_in, len(inner))
        in_threads(lambda span: self._finish(here, *span), len(here.code), worth=FEW_POINTS)
        return here

    def _children(self, node: int) -> list[tuple[int, int]]:
        """List the children of a node: their numbers and their nodes."""
        mask = int(self.nodes.children[node])
        numbers = [c for c in range(8) if mask >> c & 1]
        return list(
            zip(numbers, range(int(self.nodes.first_child[node]), len(self.count)), strict=False)
        )

    def _leaf(self, child: int) -> tuple[int, int]:
        first = int(self.nodes.first[child])
        return first, first + int(self.nodes.points[child])

    def _inner(self, child: int) -> tuple[int, int]:
        first = int(self.first[child])
        return first, first + int(self.count[child])

    def _mark(self, node: int, below: LevelVoxels, mask: Mask, codes: Any) -> None:
        """Mark the cells that hold a sample of the children."""
        for number, child in self._children(node):
            n = self._codes(node, number, child, below, codes)
            mark(codes, n, mask.words, mask.touched)

    def _codes(self, node: int, number: int, child: int, below: LevelVoxels, codes: Any) -> int:
        """Write the cells of a child's samples in the node's grid; return how many there are."""
        if self.nodes.children[child]:
            first, stop = self._inner(child)
            codes_above(below.code, first, stop, number, self.depth, codes)
        else:
            first, stop = self._leaf(child)
            self.sorted.codes(int(self.nodes.level[node]), self.depth, first, stop, codes)
        return stop - first

    def _add(
        self, node: int, below: LevelVoxels, here: LevelVoxels, mask: Mask, codes: Any
    ) -> None:
        """Add the samples of the children to the voxels of a node."""
        base = int(self.first[node])
        for number, child in self._children(node):
            n = self._codes(node, number, child, below, codes)
            ranks(mask.words, mask.before, base, codes, n)
            if self.nodes.children[child]:
                self._add_voxels(base, number, self._inner(child), below, here, mask, codes)
            else:
                self._add_points(base, node, self._leaf(child), here, mask, codes)

    def _add_points(
        self, base: int, node: int, leaf: tuple[int, int], here: LevelVoxels, mask: Mask, codes: Any
    ) -> None:
        first, stop = leaf
        points, order = self.sorted.points, self.sorted.order
        count_points(codes, order, first, stop, here.mass, here.representative)
        if self.options.strategy == "random":
            draw_points(codes, order, first, stop, points.point_id, self.options.seed, here.key)
        elif self.options.strategy == "average":
            sum_points(codes, order, first, stop, points.colour, here.sums)
        elif self.options.strategy == "weighted":
            level, cube = int(self.nodes.level[node]), self.sorted.cube
            weigh_points(
                points.x, points.y, points.z, cube.x0, cube.y0, cube.z0, cube.size, points.colour,
                order, first, stop, level, self.depth, base, mask.words, mask.before, here.sums,
            )  # fmt: skip

    def _add_voxels(
        self,
        base: int,
        number: int,
        some: tuple[int, int],
        below: LevelVoxels,
        here: LevelVoxels,
        mask: Mask,
        codes: Any,
    ) -> None:
        both = below.mass, below.representative, here.mass, here.representative
        merge_counts(codes, *some, *both)
        if self.options.strategy == "random":
            merge_keys(codes, *some, below.key, here.key)
        elif self.options.strategy == "average":
            merge_sums(codes, *some, below.sums, here.sums)
        elif self.options.strategy == "weighted":
            place = number, self.depth, base, mask.words, mask.before
            weigh_voxels(below.code, *some, *place, below.mass, below.colour, here.sums)

    def _finish(self, here: LevelVoxels, first: int, stop: int) -> None:
        """Compute the colours of voxels after all their samples were added."""
        if self.options.strategy == "random":
            take_drawn(here.key, first, stop, here.representative)
        if self.options.strategy == "average":
            divide(here.sums, here.mass, first, stop, here.colour)
        elif self.options.strategy == "weighted":
            divide(here.sums, here.sums[:, 4], first, stop, here.colour)
        else:
            take_colours(self.sorted.points.colour, here.representative, first, stop, here.colour)


@njit(cache=True, nogil=True, error_model="numpy")
def codes_above(code: Any, first: int, stop: int, number: int, depth: int, codes: Any) -> None:
    """Write the cells of a child's voxels in the grid of its parent."""
    octant = number << 3 * (depth - 1)
    for i in range(first, stop):
        codes[i - first] = octant | code[i] >> 3


@njit(cache=True, nogil=True, error_model="numpy")
def mark(codes: Any, n: int, words: Any, touched: Any) -> None:
    """Mark cells as occupied, and mark the words of the mask that hold them."""
    for i in range(n):
        code = np.uint64(codes[i])
        word = code >> np.uint64(6)
        words[word] |= np.uint64(1) << (code & np.uint64(63))
        touched[word >> np.uint64(6)] |= np.uint64(1) << (word & np.uint64(63))


@njit(cache=True, nogil=True, error_model="numpy")
def rank(words: Any, touched: Any, before: Any) -> int:
    """Count the occupied cells, in all and before each word."""
    found = 0
    for group in range(len(touched)):
        rest = touched[group]
        while rest != np.uint64(0):
            word = group << 6 | lowest_bit(rest)
            rest &= rest - np.uint64(1)
            before[word] = found
            found += bits_set(words[word])
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def clear(words: Any, touched: Any) -> None:
    """Clear the mask; only words that were touched are written."""
    for group in range(len(touched)):
        rest = touched[group]
        while rest != np.uint64(0):
            words[group << 6 | lowest_bit(rest)] = 0
            rest &= rest - np.uint64(1)
        touched[group] = 0


@njit(cache=True, nogil=True, error_model="numpy")
def list_codes(words: Any, touched: Any, code: Any) -> None:
    """Write the codes of the occupied cells, ascending."""
    found = 0
    for group in range(len(touched)):
        rest = touched[group]
        while rest != np.uint64(0):
            word = group << 6 | lowest_bit(rest)
            rest &= rest - np.uint64(1)
            cells = words[word]
            while cells != np.uint64(0):
                code[found] = word << 6 | lowest_bit(cells)
                cells &= cells - np.uint64(1)
                found += 1


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def rank_of(words: Any, before: Any, code: int) -> Any:
    """Give the number of occupied cells before one."""
    bit = np.uint64(1) << np.uint64(code & 63)
    return before[code >> 6] + bits_set(words[code >> 6] & (bit - np.uint64(1)))


@njit(cache=True, nogil=True, error_model="numpy")
def ranks(words: Any, before: Any, base: int, codes: Any, n: int) -> None:
    """Replace the codes of cells by the numbers of their voxels, which begin at `base`."""
    for i in range(n):
        codes[i] = base + rank_of(words, before, np.int64(codes[i]))


@njit(cache=True, nogil=True, error_model="numpy")
def count_points(
    voxel: Any, order: Any, first: int, stop: int, mass: Any, representative: Any
) -> None:
    """Count points, and keep the lowest position per voxel."""
    for i in range(first, stop):
        v = voxel[i - first]
        mass[v] += 1
        representative[v] = min(representative[v], order[i])


@njit(cache=True, nogil=True, error_model="numpy")
def sum_points(voxel: Any, order: Any, first: int, stop: int, colour: Any, sums: Any) -> None:
    """Add the colours of points to the sums of their voxels."""
    for i in range(first, stop):
        v = voxel[i - first]
        point = order[i]
        for channel in range(4):
            sums[v, channel] += colour[point, channel]


@njit(cache=True, nogil=True, error_model="numpy")
def draw_points(
    voxel: Any, order: Any, first: int, stop: int, point_id: Ints, seed: int, key: Any
) -> None:
    """Keep the point with the maximum random number; of equal ones the lower position."""
    for i in range(first, stop):
        v = voxel[i - first]
        point = np.uint64(order[i])
        drawn = random_word(point_id[order[i]], seed) << np.uint64(32)
        key[v] = max(key[v], drawn | (np.uint64(NO_POINT) - point))


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def random_word(point_id: int, seed: int) -> Any:
    """Give 32 pseudo-random bits: the finaliser of splitmix64 (Steele et al. 2014)."""
    word = np.uint64(point_id) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
    word = (word ^ word >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ word >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (word ^ word >> np.uint64(31)) >> np.uint64(32)


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_points(
    x: Floats,
    y: Floats,
    z: Floats,
    x0: float,
    y0: float,
    z0: float,
    size: float,
    colour: Any,
    order: Any,
    first: int,
    stop: int,
    level: int,
    depth: int,
    base: int,
    words: Any,
    before: Any,
    sums: Any,
) -> None:
    """Add the colours of points to the occupied voxels around them, weighted by distance."""
    code, square = np.empty((3, 2), np.int64), np.empty((3, 2), np.int64)
    for i in range(first, stop):
        point = order[i]
        neighbours(digits(place(x[point], x0, size), level, depth + FINE), 2, depth, code, square)
        neighbours(digits(place(y[point], y0, size), level, depth + FINE), 1, depth, code, square)
        neighbours(digits(place(z[point], z0, size), level, depth + FINE), 0, depth, code, square)
        weigh(code, square, 1, colour, point, base, words, before, sums)


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_voxels(
    code_below: Any,
    first: int,
    stop: int,
    number: int,
    depth: int,
    base: int,
    words: Any,
    before: Any,
    mass: Any,
    colour: Any,
    sums: Any,
) -> None:
    """Add the colours of a child's voxels, each as `mass` points in the centre of its cell."""
    code, square = np.empty((3, 2), np.int64), np.empty((3, 2), np.int64)
    octant = number << 3 * depth
    for i in range(first, stop):
        cell = octant | np.int64(code_below[i])
        for axis in range(3):
            centre = gather(cell >> axis) * HALF + HALF // 2
            neighbours(centre, axis, depth, code, square)
        weigh(code, square, np.int64(mass[i]), colour, i, base, words, before, sums)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def neighbours(where: int, axis: int, depth: int, code: Ints, square: Ints) -> None:
    """Find the two voxels along an axis to which a sample contributes: its own and the nearer one.

    Parameters
    ----------
    where : int
        Position in units of 1/`VOXEL_WIDTH` voxel from the corner of the node.
    axis : int
        2 for x, 1 for y, 0 for z: the bit within each three bits of a Morton code.
    code, square : int64[3, 2]
        Out: the part of the Morton code of both voxels, and the squared distance of their centres
        along the axis. A voxel outside the node gets a distance without weight.
    """
    own = where >> FINE
    off = (where & (VOXEL_WIDTH - 1)) - HALF
    other = own - 1 if off < 0 else own + 1
    beyond = other < 0 or other >> depth != 0
    off = abs(off)
    code[axis, 0] = spread(own) << axis
    square[axis, 0] = off * off
    code[axis, 1] = 0 if beyond else spread(other) << axis
    square[axis, 1] = (
        VOXEL_WIDTH * VOXEL_WIDTH if beyond else (VOXEL_WIDTH - off) * (VOXEL_WIDTH - off)
    )


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def weigh(
    code: Any,
    square: Any,
    mass: int,
    colour: Any,
    sample: int,
    base: int,
    words: Any,
    before: Any,
    sums: Any,
) -> None:
    """Add a sample to the occupied voxels around it (section 4.2.4)."""
    for a in range(2):
        for b in range(2):
            in_plane = square[2, a] + square[1, b]
            if in_plane >= VOXEL_WIDTH * VOXEL_WIDTH:
                continue
            for c in range(2):
                distance = in_plane + square[0, c]
                cell = code[2, a] | code[1, b] | code[0, c]
                if distance >= VOXEL_WIDTH * VOXEL_WIDTH or not is_marked(words, cell):
                    continue
                # exact: the numbers are small enough for a float32 square root
                weight = (VOXEL_WIDTH - np.int64(sqrt(np.float32(distance)))) * mass
                v = base + rank_of(words, before, cell)
                for channel in range(4):
                    sums[v, channel] += np.uint64(weight * np.int64(colour[sample, channel]))
                sums[v, 4] += np.uint64(weight)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def is_marked(words: Any, code: int) -> Any:
    """Whether a cell is occupied."""
    return (words[code >> 6] >> np.uint64(code & 63)) & np.uint64(1) != np.uint64(0)


@njit(cache=True, nogil=True, error_model="numpy")
def merge_counts(
    voxel: Any,
    first: int,
    stop: int,
    mass: Any,
    representative: Any,
    mass_above: Any,
    representative_above: Any,
) -> None:
    """Add the masses of a child's voxels, and keep the lowest positions."""
    for i in range(first, stop):
        v = voxel[i - first]
        mass_above[v] += mass[i]
        representative_above[v] = min(representative_above[v], representative[i])


@njit(cache=True, nogil=True, error_model="numpy")
def merge_keys(voxel: Any, first: int, stop: int, key: Any, key_above: Any) -> None:
    """Keep the maximum keys of a child's voxels."""
    for i in range(first, stop):
        v = voxel[i - first]
        key_above[v] = max(key_above[v], key[i])


@njit(cache=True, nogil=True, error_model="numpy")
def merge_sums(voxel: Any, first: int, stop: int, sums: Any, sums_above: Any) -> None:
    """Add the sums of a child's voxels."""
    for i in range(first, stop):
        v = voxel[i - first]
        for channel in range(4):
            sums_above[v, channel] += sums[i, channel]


@njit(cache=True, nogil=True, error_model="numpy")
def take_drawn(key: Any, first: int, stop: int, representative: Any) -> None:
    """Extract the positions of the points from the keys."""
    for v in range(first, stop):
        representative[v] = np.uint64(NO_POINT) - (key[v] & np.uint64(NO_POINT))


@njit(cache=True, nogil=True, error_model="numpy")
def take_colours(colour: Any, representative: Any, first: int, stop: int, out: Any) -> None:
    """Copy the colours of the representative points to their voxels."""
    for v in range(first, stop):
        for channel in range(4):
            out[v, channel] = colour[representative[v], channel]


@njit(cache=True, nogil=True, error_model="numpy")
def divide(sums: Any, by: Any, first: int, stop: int, out: Any) -> None:
    """Compute the mean colours of voxels, rounded down."""
    for v in range(first, stop):
        for channel in range(4):
            out[v, channel] = sums[v, channel] // np.uint64(by[v])
