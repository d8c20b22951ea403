"""Made-up inputs of any size, on which `calibrate` times the kernels."""

import struct
from math import ceil, sqrt
from typing import Any

import numpy as np

from spatialq.data.cloud import Cloud
from spatialq.data.grid import Grid
from spatialq.data.meshes import Meshes
from spatialq.data.polygons import Polygons
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import (
    ElementsInput,
    GridInput,
    PointsAndElementsInput,
    PointsAndTableInput,
    PointsInput,
)
from spatialq.runtime.arrays import Float32s, Floats

CORNERS = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float64)
FACES = np.array(
    [
        (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
        (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
    ],
    np.int32,
)  # fmt: skip
RING = struct.pack("<BIII", 1, 3, 1, 5)
"""What WKB has before the five corners of a polygon."""
DENSITY = 10.0
"""Points in a square metre."""
PLOT = 20.0
"""Every other square of this side has a house."""
ROOM = 8.0, 5.0, 3.0
CELL = 60.0
"""Side of a cell of a grid in metres: planetary laser altimetry, as in the paper of POPS."""
MIN_SIDE = 40
"""Cells along a grid: the default examples of POPS, of 2 km, must be on it."""
CHOSEN: dict[str, dict[str, Any]] = {"distance": {"max_distance": 0.1}}
"""Parameters that are not the defaults: all distances of all pairs are seldom wanted."""


def make(function: Function, size: int) -> dict[str, Any]:
    """Make what a function's kernel gets, of about so many points, cells or triangles."""
    match function.inputs:
        case GridInput():
            side = max(ceil(sqrt(size)), MIN_SIDE)
            return {"grid": Grid(heights(side), dx=CELL, dy=CELL)}
        case ElementsInput():
            return {"a": building(max(size // len(FACES), 2)), "b": None}
        case PointsAndElementsInput():
            return {**columns(*scan(size)), "elements": box(ROOM)}
        case PointsAndTableInput() as inputs:
            given = columns(*survey(size))
            kept = {name: given[name] for name in (*inputs.columns, "point_id")}
            kept |= dict.fromkeys(inputs.attributes)
            is_cloud = inputs.kind == "cloud"
            return kept | {inputs.other: Cloud(*survey(size)) if is_cloud else plots(size)}
        case PointsInput(attributes=attributes):
            return {**columns(*survey(size)), **dict.fromkeys(attributes)}


def columns(x: Floats, y: Floats, z: Floats) -> dict[str, Any]:
    """Give the columns of points, with ids."""
    return {"x": x, "y": y, "z": z, "point_id": np.arange(len(x))}


def survey(n: int) -> tuple[Floats, Floats, Floats]:
    """Make points of rolling terrain with houses, as an aircraft sees them."""
    rng = np.random.default_rng(n)
    side = sqrt(max(n, 1) / DENSITY)
    x, y = rng.uniform(0, side, (2, n))
    z = 10 * np.sin(x / 60) * np.cos(y / 45) + rng.normal(0, 0.03, n)
    column, row = np.floor(x / PLOT), np.floor(y / PLOT)
    inside = (np.abs(x / PLOT - column - 0.5) < 0.3) & (np.abs(y / PLOT - row - 0.5) < 0.25)
    built = inside & ((column + row) % 2 == 0)
    z[built] = 16 + (column + 3 * row)[built] % 5
    return x, y, z


def plots(n: int) -> Polygons:
    """Make squares, one for a hundred points, in the area of such a survey."""
    side = sqrt(max(n, 1) / DENSITY)
    count = ceil(sqrt(n / 100))
    edges = np.linspace(0, side, 2 * count + 1)
    shapes = []
    for row in range(count):
        for column in range(count):
            (west, east), (south, north) = (edges[2 * k : 2 * k + 2] for k in (column, row))
            ring = [(west, south), (east, south), (east, north), (west, north), (west, south)]
            shapes.append(RING + np.array(ring, "<f8").tobytes())
    return Polygons.of(shapes)


def scan(n: int) -> tuple[Floats, Floats, Floats]:
    """Make points on the walls, the floor and the ceiling of a room."""
    rng = np.random.default_rng(n)
    places = rng.random((n, 3))
    axis = rng.integers(0, 3, n)
    places[np.arange(n), axis] = rng.integers(0, 2, n)
    x, y, z = np.ascontiguousarray((places * ROOM + rng.normal(0, 0.004, (n, 3))).T)
    return x, y, z


def box(size: tuple[float, float, float]) -> Meshes:
    """Make one box, from the origin."""
    return Meshes.of([(CORNERS * size, FACES)])


def building(n: int) -> Meshes:
    """Make a building of walls and slabs, each a box, on storeys of 40 by 40 m."""
    rng = np.random.default_rng(n)
    storeys = ceil(n / 200)
    low = rng.uniform(0, (40, 40, 0.01), (n, 3))
    low[:, 2] += 3.0 * rng.integers(0, storeys, n)
    size = np.where(
        (np.arange(n) % 2 == 0)[:, None],
        np.column_stack([rng.uniform(1, 5, n), np.full(n, 0.3), np.full(n, 2.8)]),
        np.column_stack([rng.uniform(1, 4, (n, 2)), np.full((n, 1), 0.2)]),
    )
    vertices = (low[:, None] + CORNERS * size[:, None]).reshape(-1, 3)
    starts = np.arange(n + 1)
    return Meshes(vertices, np.tile(FACES, (n, 1)), len(CORNERS) * starts, len(FACES) * starts)


def heights(side: int) -> Float32s:
    """Make a square grid of waves and noise."""
    rng = np.random.default_rng(side)
    across = np.sin(np.arange(side) / 7) + np.cos(np.arange(side) / 31)
    z: Float32s = rng.standard_normal((side, side), np.float32)
    z += (20 * across[:, None] * across).astype(np.float32)
    return z
