"""Named coloured clouds for `build_lod` with options, as columns; used on every device."""

import numpy as np
from spatialq.udfs.build_lod.tree import Cube, Points

from .oracle import prepared

SEED = 11
CHANNELS = ("red", "green", "blue", "intensity")
STRATEGIES = ("first", "random", "average", "weighted")


def cloud(x, y, z, *, colours=None, ids=None):
    """Columns of points; without colours (uint16[n, 4]) random ones."""
    n = len(x)
    rng = np.random.default_rng(SEED)
    if colours is None:
        colours = rng.integers(0, 65536, (n, 4))
    columns = zip(
        "xyz", (np.ascontiguousarray(each, np.float64) for each in (x, y, z)), strict=True
    )
    tints = np.asarray(colours, np.uint16).T.copy()
    return {
        **dict(columns),
        "point_id": np.asarray(np.arange(n) * 3 + 5 if ids is None else ids, np.int64),
        **dict(zip(CHANNELS, tints, strict=True)),
        "classification": rng.integers(0, 256, n).astype(np.uint8),
    }


def random(n, width=1.0, seed=1, **others):
    return cloud(*np.random.default_rng(seed).uniform(0, width, (3, n)), **others)


def moved(columns, *, scale=1.0, shift=(0.0, 0.0, 0.0)):
    places = {axis: columns[axis] * scale + by for axis, by in zip("xyz", shift, strict=True)}
    return {**columns, **places}


def joined(*clouds):
    parts = {name: np.concatenate([each[name] for each in clouds]) for name in clouds[0]}
    return {**parts, "point_id": np.arange(len(parts["x"]), dtype=np.int64)}


def surface(n):
    """Two sides of a wavy sheet, red above and blue below, closer than a voxel."""
    rng = np.random.default_rng(2)
    x, y, side = rng.uniform(0, 10, n), rng.uniform(0, 10, n), rng.integers(0, 2, n)
    z = np.sin(x) + np.cos(y) + 0.01 * side
    colours = np.where(side[:, None] == 1, [65000, 100, 100, 7], [100, 100, 65000, 9])
    return cloud(x, y, z, colours=colours + rng.integers(0, 100, (n, 4)))


def teapot_in_a_stadium(share=1e-6):
    """Most points in a corner of a corner: the tree is a chain for twenty levels."""
    rng = np.random.default_rng(3)
    stadium = rng.uniform(0, 1, (3, 200))
    teapot = 0.7 + rng.uniform(0, share, (3, 900))
    return cloud(*np.concatenate([stadium, teapot], axis=1))


def coincident(times, others=60):
    """One place `times` times, among some others."""
    rng = np.random.default_rng(4)
    around = rng.uniform(0, 1, (3, others))
    heap = np.repeat([[0.3], [0.4], [0.55]], times, axis=1)
    both = np.concatenate([around, heap], axis=1)
    return cloud(*both[:, rng.permutation(both.shape[1])])


def neighbours(times, bit=53):
    """Two places that differ in one bit, in a cube of side 1."""
    at = np.array([0.5, 0.5 + 2.0**-bit])
    x = np.concatenate([[0.0, 1.0], np.repeat(at, times)])
    return cloud(x, np.full_like(x, 7.0), np.full_like(x, 9.0))


def lattice(side, step):
    """Points on the faces of all cells, up to the upper face of the cube."""
    return cloud(*np.mgrid[0:side, 0:side, 0:side].reshape(3, -1) * step)


def dense_stack(times=1500):
    """More points in a voxel than ten bits count, all of the highest colours."""
    rng = np.random.default_rng(5)
    stack = 0.25 + rng.uniform(0, 1e-4, (3, times))
    corners = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1)
    both = np.concatenate([corners, stack], axis=1)
    return cloud(*both, colours=np.full((both.shape[1], 4), 65535))


def heavy():
    """A voxel of a node deep below with a great mass, beside voxels of single points."""
    rng = np.random.default_rng(6)
    heap = 0.5 + rng.uniform(0, 1e-3, (3, 3000))
    others = rng.uniform(0.49, 0.51, (3, 300))
    ends = np.array([[0.0, 1.0]] * 3)
    return cloud(*np.concatenate([ends, heap, others], axis=1))


def shuffled_ids(n):
    columns = random(n)
    columns["point_id"] = np.random.default_rng(7).permutation(10 * n)[:n] - 3 * n
    return columns


def eight_bits(n):
    colours = np.random.default_rng(8).integers(0, 256, (n, 4))
    return random(n, colours=colours)


def extremes(n):
    return random(n, colours=np.random.default_rng(9).choice([0, 1, 65534, 65535], (n, 4)))


def without(columns, *names):
    return {name: None if name in names else values for name, values in columns.items()}


LINE = np.linspace(0, 3, 700)
RANDOM = random(1500)
SMALL = {"max_points": 40, "grid_size": 8}

CASES = {
    "one point": (cloud([3.0], [4.0], [5.0]), {}),
    "two points": (cloud([3.0, 3.5], [4.0, 4.0], [5.0, 5.0]), {"max_points": 1, "grid_size": 2}),
    "no more than a leaf holds": (random(40), SMALL),
    "one more than a leaf holds": (random(41), SMALL),
    "all identical": (cloud(*np.full((3, 100), 4.5)), SMALL),
    "all identical, far": (cloud([714947.98] * 90, [4286501.93] * 90, [612.03] * 90), SMALL),
    "random": (RANDOM, {"max_points": 100, "grid_size": 16}),
    "random, leaves of one point": (random(100), {"max_points": 1, "grid_size": 4}),
    "random, leaves of seven": (random(200), {"max_points": 7, "grid_size": 2}),
    "random, leaves of a thousand": (RANDOM, {"max_points": 1000, "grid_size": 128}),
    "random, fine grids": (RANDOM, {"max_points": 60, "grid_size": 128}),
    "random, another seed": (RANDOM, {**SMALL, "seed": 2**32 - 1}),
    "random, places of points": (RANDOM, {**SMALL, "full_precision": True}),
    "surface with two sides": (surface(2000), {"max_points": 120, "grid_size": 32}),
    "teapot in a stadium": (teapot_in_a_stadium(), {"max_points": 50, "grid_size": 16}),
    "smaller teapot": (teapot_in_a_stadium(1e-12), {"max_points": 200, "grid_size": 128}),
    "coincident points": (coincident(400), SMALL),
    "coincident points, leaves of one": (coincident(30), {"max_points": 1, "grid_size": 64}),
    "nearest places": (neighbours(60), {"max_points": 50, "grid_size": 128}),
    "nearest places, coarse grid": (neighbours(30, 51), {"max_points": 10, "grid_size": 2}),
    "a line": (cloud(LINE, 0 * LINE + 4, 0 * LINE - 5), SMALL),
    "an oblique line": (cloud(LINE, 2 * LINE, -0.3 * LINE), SMALL),
    "a plane": ({**random(900), "z": np.full(900, 2.0)}, SMALL),
    "a lattice, powers of two": (lattice(5, 0.25), {"max_points": 5, "grid_size": 4}),
    "a lattice of cells": (lattice(8, 1.0), {"max_points": 8, "grid_size": 16}),
    "a lattice of thirds": (lattice(5, 1 / 3), {"max_points": 3, "grid_size": 8}),
    "UTM": (moved(RANDOM, scale=120.0, shift=(714947.98, 4286501.93, 612.03)), SMALL),
    "negative": (moved(RANDOM, scale=3.0, shift=(-2.0, -5e6, -1.0)), SMALL),
    "1e-9 wide": (moved(RANDOM, scale=1e-9), SMALL),
    "1e-9 wide, far": (moved(RANDOM, scale=1e-9, shift=(1.0, 2.0, 1e-3)), SMALL),
    "1e9 wide": (moved(RANDOM, scale=1e9, shift=(-5e8, 0.0, 1.0)), SMALL),
    "smallest extents": (moved(RANDOM, scale=1e-300), SMALL),
    "largest extents": (moved(RANDOM, scale=1e300), SMALL),
    "shuffled ids": (shuffled_ids(800), SMALL),
    "8-bit colours": (eight_bits(900), SMALL),
    "lowest and highest colours": (extremes(1200), SMALL),
    "dense stack": (dense_stack(), {"max_points": 1400, "grid_size": 16}),
    "dense stack, split": (dense_stack(), {"max_points": 90, "grid_size": 64}),
    "a heavy voxel": (heavy(), {"max_points": 200, "grid_size": 16}),
    "no colours": (without(RANDOM, "red", "green", "blue"), SMALL),
    "no attributes": (without(RANDOM, *CHANNELS, "classification"), SMALL),
    "no intensity": (without(RANDOM, "intensity"), SMALL),
    "leaves beside nodes": (joined(random(60, seed=5), random(800, 0.2)), SMALL),
}  # fmt: skip
"""Options of a case lack the strategy: every case is one of each."""

BEYOND_FLOAT32 = ("smallest extents", "largest extents")
"""Cases that packed points cannot hold."""


def points_of(columns):
    """Points as the kernel gets them."""
    x, y, z, ids, colour, _ = prepared(columns)
    places = (np.array(each, np.float64) for each in (x, y, z))
    return Points(*places, np.array(colour, np.uint16), np.array(ids, np.int64))


def cube_of(points):
    places = (points.x, points.y, points.z)
    return Cube.around([each.min() for each in places], [each.max() for each in places])


def packed(points):
    """Records of 16 bytes, and the points that these are."""
    places = np.column_stack([points.x, points.y, points.z]).astype(np.float32)
    colour = (points.colour >> 8).astype(np.uint8)
    records = np.column_stack([places.view(np.uint32), colour.view(np.uint32)])
    shades = colour.astype(np.uint16)
    wide = (np.ascontiguousarray(each) for each in places.T.astype(np.float64))
    return records, Points(*wide, shades, np.arange(len(records)))
