"""Samples of a node in few bytes: voxels as masks of an octree, points as differences of steps.

Schütz et al. 2023 (doi 10.1111/cgf.14877), section 6: a voxel is a bit of a mask of 8, relative to
the cell that it lies in, which is about 2 bits where a cell has 4 of its 8 children. The paper's
masks begin at the voxels of the parent node; here they begin at the node itself, so that it is read
without its parent, for a third more. Colours are planes of bytes in Morton order, where the paper
has blocks of BC.

A stream is little-endian:

- a byte: 1 for voxels, 2 for points;
- a byte: how colours are kept, see `MODES`;
- of voxels: a byte, the depth d of the grid of 2^d cells along each side; then masks, level by
  level from the node down and in Morton order, a byte for each cell that has voxels: bit
  4 x + 2 y + z is set if the half to that side has some;
- of points: u32 their number; then for x, y and z: f64 step, f64 offset, i64 the first whole
  number, u8 width w, and w planes of bytes, the lowest first, of the differences from each whole
  number to the next, with the sign as the lowest bit, the first of them 0; a coordinate is a whole
  number times step, plus offset. Where no step gives all back, step is 0, w is 8, and the planes
  are those of float64;
- red of all samples, then green, then blue: a plane of bytes each, or two, the lower first.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from spatialq.export.las_scale import SCALES
from spatialq.io.source import Layout
from spatialq.runtime.arrays import Array, Floats, Ints, Uint16s

VOXELS, POINTS = 1, 2
AS_IS, TIMES_257, TIMES_256, TWO_BYTES = range(4)
MODES: Mapping[int, int] = {AS_IS: 1, TIMES_257: 257, TIMES_256: 256, TWO_BYTES: 1}
"""How colours are kept -> what a byte is multiplied by; `TWO_BYTES` has all values."""
COLOURS = ("red", "green", "blue")
AXIS = struct.Struct("<ddqB")
"""What is before the planes of a coordinate."""
MAX_DEPTH = 10
WHOLE = float(1 << 52)
"""Up to which a float64 has all whole numbers, and their differences fit."""
SPREAD = np.array(
    [sum((k >> bit & 1) << 3 * bit for bit in range(MAX_DEPTH)) for k in range(1 << MAX_DEPTH)],
    np.int64,
)
"""The bits of a number, two zeros before each."""


def pack(
    samples: Mapping[str, Array],
    low: Sequence[float],
    size: float,
    spacing: float,
    layouts: Sequence[Layout] = (),
) -> bytes:
    """Pack positions and colours of the samples of a node.

    Parameters
    ----------
    samples : mapping of str to array[n]
        x, y, z (float64), red, green, blue (uint16).
    low : three float
        Lowest corner of the node's cube.
    size, spacing : float
        Sides of its cube and of its voxels; spacing is 0 where the samples are points.
    layouts : sequence of Layout
        Steps and offsets that are tried first.

    Returns
    -------
    bytes
        Positions come back as they are. So do colours, except those of voxels that need more than a
        byte: they are rounded to 8 bits, which is at most 128 of 65535.
    """
    xyz = [samples[axis] for axis in "xyz"]
    colour = np.stack([samples[name] for name in COLOURS])
    depth = round(size / spacing).bit_length() - 1 if spacing else 0
    codes = _codes(xyz, low, spacing, depth) if spacing and depth <= MAX_DEPTH else None
    if codes is None:
        mode = _mode(colour, is_exact=True)
        parts = [struct.pack("<BBI", POINTS, mode, len(xyz[0]))]
        parts += [_packed_axis(k, values, layouts) for k, values in enumerate(xyz)]
    else:
        mode = _mode(colour, is_exact=False)
        parts = [struct.pack("<BBB", VOXELS, mode, depth), _masks(codes, depth)]
    return b"".join([*parts, *_packed_colours(colour, mode)])


def unpack(packed: bytes, low: Sequence[float], size: float) -> dict[str, Array]:
    """Give the samples that `pack` was given.

    Parameters
    ----------
    packed : bytes
    low, size
        As for `pack`.

    Returns
    -------
    dict of str to array[n]
        x, y, z (float64), red, green, blue (uint16).

    Raises
    ------
    ValueError
        If it is no such stream, or a part of one.
    """
    try:
        mode, rest = packed[1], memoryview(packed)[2:]
        if packed[0] == VOXELS:
            xyz, rest = _centres(rest, low, size)
        elif packed[0] == POINTS:
            xyz, rest = _points(rest)
        else:
            raise KeyError(packed[0])
        planes = np.frombuffer(rest, np.uint8).reshape(3, -1, len(xyz[0])).astype(np.uint16)
        colour = planes[:, 0] * np.uint16(MODES[mode])
        if mode == TWO_BYTES:
            colour |= planes[:, 1] << np.uint16(8)
    except (KeyError, IndexError, ValueError, struct.error):
        message = "lod_samples: packed must be what spatialq lod --compact wrote, whole"
        raise ValueError(message) from None
    return dict(zip("xyz", xyz, strict=True)) | dict(zip(COLOURS, colour, strict=True))


def along_curve(samples: Mapping[str, Array], low: Sequence[float], size: float) -> Ints:
    """Give the order of points along a Morton curve of the node's cube, in which they take least.

    Points of one of its 2^30 cells stay in their order.
    """
    codes = np.zeros(len(samples["x"]), np.int64)
    for axis, at in zip("xyz", low, strict=True):
        cells = (samples[axis] - at) * ((1 << MAX_DEPTH) / size) if size else codes
        codes = codes << 1 | SPREAD[np.clip(cells, 0, (1 << MAX_DEPTH) - 1).astype(np.int64)]
    return np.argsort(codes, kind="stable")


def _codes(xyz: Sequence[Array], low: Sequence[float], spacing: float, depth: int) -> Ints | None:
    """Give the Morton codes of voxels; None if they are not in the middle of cells, in order."""
    codes = np.zeros(len(xyz[0]), np.int64)
    for axis, (values, at) in enumerate(zip(xyz, low, strict=True)):
        cells = np.rint((values - at) / spacing - 0.5)
        if cells.min() < 0 or cells.max() >= 1 << depth:
            return None
        if not np.array_equal(at + (cells + 0.5) * spacing, values):
            return None
        codes |= SPREAD[cells.astype(np.int64)] << (2 - axis)
    return codes if bool((codes[1:] > codes[:-1]).all()) else None


def _masks(codes: Ints, depth: int) -> bytes:
    """Write which children each cell has, level by level from the coarsest on."""
    levels = []
    for _ in range(depth):
        parents = codes >> 3
        begins = np.flatnonzero(np.concatenate([[True], parents[1:] != parents[:-1]]))
        levels.append(np.bitwise_or.reduceat(1 << (codes & 7), begins).astype(np.uint8))
        codes = parents[begins]
    return b"".join(each.tobytes() for each in levels[::-1])


def _centres(
    rest: memoryview, low: Sequence[float], size: float
) -> "tuple[list[Floats], memoryview]":
    """Read the centres of voxels; and give what follows them."""
    depth, rest = rest[0], rest[1:]
    codes = np.zeros(1, np.int64)
    for _ in range(depth):
        masks = np.frombuffer(rest[: len(codes)], np.uint8)
        bits = np.unpackbits(masks[:, None], axis=1, bitorder="little").reshape(len(codes), 8)
        row, child = np.nonzero(bits)
        rest, codes = rest[len(codes) :], codes[row] << 3 | child
    spacing = size / (1 << depth)
    xyz = []
    for axis, at in enumerate(low):
        cell = sum((codes >> 3 * bit + 2 - axis & 1) << bit for bit in range(depth))
        xyz.append(at + (cell + np.full(len(codes), 0.5)) * spacing)
    return xyz, rest


def _packed_axis(axis: int, values: Array, layouts: Sequence[Layout]) -> bytes:
    """Write a coordinate of points: steps if some give all back, else all bits."""
    given = [(each.scales[axis], each.offsets[axis]) for each in layouts]
    for step, offset in (*given, *((scale, 0.0) for scale in SCALES)):
        numbers = np.rint((values - offset) / step)
        if np.abs(numbers).max() < WHOLE and np.array_equal(numbers * step + offset, values):
            turns = np.zeros(len(values), np.int64)
            turns[1:] = np.diff(numbers.astype(np.int64))
            codes = (turns << 1 ^ turns >> 63).astype("<u8")
            width = -(-int(codes.max()).bit_length() // 8)
            head = AXIS.pack(step, offset, int(numbers[0]), width)
            return head + _planes(codes, width)
    return AXIS.pack(0.0, 0.0, 0, 8) + _planes(np.ascontiguousarray(values, "<f8"), 8)


def _planes(values: Array, width: int) -> bytes:
    """Write the lowest byte of each value of 8 bytes, then the next of each ..."""
    return values.view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes()


def _points(rest: memoryview) -> "tuple[list[Floats], memoryview]":
    """Read the coordinates of points; and give what follows them."""
    (n,), rest = struct.unpack_from("<I", rest), rest[4:]
    if n * len(COLOURS) > len(rest):  # before there is an array of a number that is damaged
        raise ValueError(n)
    xyz = []
    for _ in "xyz":
        step, offset, first, width = AXIS.unpack_from(rest)
        end = AXIS.size + width * n
        wide = np.zeros((n, 8), np.uint8)
        wide[:, :width] = np.frombuffer(rest[AXIS.size : end], np.uint8).reshape(width, n).T
        rest = rest[end:]
        if step:
            codes = wide.view("<u8")[:, 0]
            turns = (codes >> 1).astype(np.int64) ^ -(codes & 1).astype(np.int64)
            xyz.append((np.cumsum(turns) + first) * step + offset)
        else:
            xyz.append(wide.view("<f8")[:, 0].astype(np.float64))
    return xyz, rest


def _mode(colour: Uint16s, *, is_exact: bool) -> int:
    """Choose how colours are kept: in a byte if that gives them back, or if it may round."""
    if colour.max() <= 255:
        return AS_IS
    for mode in (TIMES_257, TIMES_256):
        if not (colour % MODES[mode]).any():
            return mode
    return TWO_BYTES if is_exact else TIMES_257


def _packed_colours(colour: Uint16s, mode: int) -> Iterator[bytes]:
    """Write the planes of colours."""
    if mode == TWO_BYTES:
        planes = np.ascontiguousarray(colour, "<u2").view(np.uint8).reshape(3, -1, 2)
        yield planes.transpose(0, 2, 1).tobytes()
    else:
        times = MODES[mode]
        yield ((colour.astype(np.uint32) + times // 2) // times).astype(np.uint8).tobytes()
