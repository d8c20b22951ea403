"""Named clouds for `detect_planes`, as lists of (point_id, x, y, z); used on every device."""

import importlib.util
from pathlib import Path

import numpy as np

spec = importlib.util.spec_from_file_location(
    "rooms", Path(__file__).parents[2] / "benchmarks" / "rooms.py"
)
rooms = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rooms)


def points(x, y, z):
    """Rows with ids in no order."""
    ids = np.random.default_rng(1).permutation(10 * len(x))[: len(x)]
    columns = (np.asarray(values, np.float64).tolist() for values in (x, y, z))
    return list(zip(ids.tolist(), *columns, strict=True))


def of(scene):
    return points(scene.x, scene.y, scene.z)


def random(n, width=10.0, depth=10.0, height=10.0, seed=1):
    return np.random.default_rng(seed).random((3, n)) * [[width], [depth], [height]]


def turned_about(axis, degrees):
    """The room turned so that its ceiling's normal is near a pole or where theta wraps around."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    turn = {
        "x": [[1, 0, 0], [0, c, -s], [0, s, c]],
        "y": [[c, 0, s], [0, 1, 0], [-s, 0, c]],
        "z": [[c, -s, 0], [s, c, 0], [0, 0, 1]],
    }
    return of(rooms.room(N).moved(turn=turn[axis]))


def two_at(degrees):
    """Two planes of 6 x 4 m, one after the other, with an angle between them."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    faces = [((0, 0, 0), (6, 0, 0), (0, 4, 0)), ((6, 0, 0), (6 * c, 0, 6 * s), (0, 4, 0))]
    return of(rooms.scan(faces, N, clutter=0.0, noise=0.002))


def ball(n):
    direction = np.random.default_rng(2).normal(size=(3, n))
    return points(*(4 * direction / np.linalg.norm(direction, axis=0)))


def pipe(n):
    angle, height = np.random.default_rng(3).random((2, n)) * [[2 * np.pi], [8.0]]
    return points(2 * np.cos(angle), 2 * np.sin(angle), height)


def doubled(cloud, times):
    return [(times * p + k, *rest) for p, *rest in cloud for k in range(times)]


N = 6000
ROOM = rooms.room(N)
LINE = np.linspace(0, 10, 500)

CASES = {
    "empty": ([], {}),
    "one point": ([(7, 3.0, 4.0, 5.0)], {}),
    "three points": ([(7, 3.0, 4.0, 5.0), (8, 3.0, 5.0, 5.0), (9, 4.0, 4.0, 5.0)], {}),
    "all the same": ([(i, 3.0, 4.0, 5.0) for i in range(100)], {}),
    "all the same, far": ([(i, 714947.98, 4286501.93, 612.03) for i in range(100)], {}),
    "two places": ([(i, 3.0 + i % 2, 4.0, 5.0) for i in range(100)], {}),
    "a line along x": (points(LINE, 0 * LINE + 4, 0 * LINE + 5), {}),
    "an oblique line": (points(LINE, 2 * LINE, 0.3 * LINE), {}),
    "flat": (of(rooms.flat(2000)), {}),
    "flat through the origin": (points(*np.add(random(2000, height=0.0), [[-5], [-5], [0]])), {}),
    "a wall, flat": (points(*np.add(random(2000, depth=0.0), [[0], [7], [0]])), {}),
    "flat and oblique": (of(rooms.flat(2000).moved(turn=rooms.turn(4))), {}),
    "a lattice": (points(*np.mgrid[0:50, 0:40, 3:4].reshape(3, -1) / 8), {}),
    "a few points of a plane": (of(rooms.flat(40)), {"s_ms": 4, "s_level": 1, "min_points": 3}),
    "a box": (of(rooms.box(N)), {}),
    "a box at the origin": (of(rooms.box(N).moved(shift=(-3, -2, -1.5))), {}),
    "a room": (of(ROOM), {}),
    "a room, the paper's kernel": (of(ROOM), {"kernel": "paper"}),
    "a room, the paper's options": (
        of(ROOM), {"kernel": "paper", "s_level": 3, "s_ps": 0.002, "rho_num": 300},
    ),
    "a room, few cells": (of(ROOM), {"phi_num": 10, "rho_num": 40}),
    "a room, many cells": (of(ROOM), {"phi_num": 60, "rho_num": 600}),
    "a room, deep": (of(ROOM), {"s_level": 5, "s_ms": 4}),
    "a room, only the root": (of(ROOM), {"s_level": 0}),
    "a room, only large planes": (of(ROOM), {"min_points": 500, "max_distance": 0.02}),
    "a room, split": (of(ROOM), {"split": True}),
    "a room, strict": (of(ROOM), {"max_thickness": 0.01, "min_isotropy": 0.5}),
    "a room, orientations": (of(ROOM), {"orientation_tolerance": 40.0}),
    "a room, turned": (of(ROOM.moved(turn=rooms.turn(5))), {}),
    "a room, turned again": (of(ROOM.moved(turn=rooms.turn(6))), {"split": True}),
    "a room, near the pole": (turned_about("y", 1.5), {}),
    "a room, near the equator": (turned_about("x", 89.0), {}),
    "a room, where theta wraps": (turned_about("z", 179.2), {}),
    "a room, half a cell from theta 0": (turned_about("z", -3.0), {}),
    "a room, UTM": (of(ROOM.moved(shift=(500_000.0, 5_000_000.0, 300.0))), {}),
    "a room, mm": (of(ROOM.moved(scale=1000)), {}),
    "a room, km": (of(ROOM.moved(scale=0.001)), {}),
    "planes through the centroid": (of(rooms.crossing(N)), {}),
    "planes through the centroid, the paper's": (of(rooms.crossing(N)), {"kernel": "paper"}),
    "partitions": (of(rooms.partitions(N)), {}),
    "two tables": (of(rooms.tables(2 * N)), {}),
    "two tables, split": (of(rooms.tables(2 * N)), {"split": True}),
    "a thin wall": (of(rooms.thin_wall(2 * N)), {}),
    "three degrees apart": (two_at(3.0), {}),
    "twelve degrees apart": (two_at(12.0), {}),
    "roofs": (of(rooms.roofs(N)), {}),
    "every point a thousand times": (doubled(of(rooms.flat(12)), 1000), {"s_ms": 30}),
    "every point twice": (doubled(of(rooms.room(N // 2)), 2), {}),
    "clutter": (points(*random(N)), {}),
    "a ball": (ball(N), {}),
    "a pipe": (pipe(N), {}),
    "a strip": (points(*random(N, width=1000.0, depth=0.5, height=0.01)), {}),
    "a tower": (points(*random(N, width=0.02, depth=2.0, height=500.0)), {}),
    "a building": (of(rooms.building(3 * N)), {}),
    "stray points": (
        [*of(ROOM), (10**9, 4e3, -3e7, 90.0), (10**9 + 1, 4e3, 3e3, 9.0)], {"split": True},
    ),
    "an outlier": ([*of(ROOM), (10**9, 4000.0, -3000.0, 90.0)], {}),
    "coordinates that tie": (
        points(*(np.round(16 * values) / 16 for values in (ROOM.x, ROOM.y, ROOM.z))), {},
    ),
}  # fmt: skip


HILLS_NOISE = 0.04


def hills(density, side, seed=1):
    """A survey of hills, with the noise of a laser: points per square metre, metres."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, side, (2, int(density * side**2)))
    z = 40 * np.sin(x / 311) * np.cos(y / 270) + 6 * np.sin(x / 37 + 1) * np.sin(y / 29)
    return x, y, z + rng.normal(0, HILLS_NOISE, x.size)
