"""Generated scans of planar scenes with their truth, for tests of what is made of planes.

As a program: ``python benchmarks/rooms.py {room,box,...} OUT.npz [--points N] [--seed N]``.

Every scene is a list of rectangles. A point is drawn on one of them, by area and with noise along
its normal, or is clutter: half of it anywhere in the scene, half on the skins of blobs, which are
curved. Rectangles of one plane are one plane of the truth and a patch each.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
Face = tuple[ArrayLike, ArrayLike, ArrayLike]  # a corner and the two edges from there

NOISE = 0.005
CLUTTER = 0.15  # share of the points
BLOBS = 20
BLOB_RADIUS = 0.15, 0.25
UNTURNED = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
CHUNK = 1 << 20  # points drawn at once: the arrays for it stay in the cache


@dataclass(frozen=True)
class Scene:
    """A cloud and what it was made of.

    Parameters
    ----------
    x, y, z : float64[n]
    plane : int32[n]
        Row of `planes` that the point is of; -1 for clutter.
    patch : int32[n]
        Rectangle that the point is of; -1 for clutter.
    planes : float64[k, 4]
        nx, ny, nz, d of the plane nx x + ny y + nz z = d.
    unit : float
        Length of a metre.
    noise : float
        Standard deviation of the points' distance from their plane.
    """

    x: FloatArray
    y: FloatArray
    z: FloatArray
    plane: IntArray
    patch: IntArray
    planes: FloatArray
    unit: float = 1.0
    noise: float = NOISE

    def moved(
        self, *, turn: ArrayLike = UNTURNED, scale: float = 1.0, shift: ArrayLike = (0, 0, 0)
    ) -> Self:
        """Turn by a rotation matrix, then scale, then shift."""
        turn, shift = np.asarray(turn, np.float64), np.asarray(shift, np.float64)
        x, y, z = (
            scale * (row[0] * self.x + row[1] * self.y + row[2] * self.z) + to
            for row, to in zip(turn, shift, strict=True)
        )
        normals = self.planes[:, :3] @ turn.T
        d = scale * self.planes[:, 3] + normals @ shift
        return replace(
            self, x=x, y=y, z=z, planes=np.column_stack([normals, d]),
            unit=scale * self.unit, noise=scale * self.noise,
        )  # fmt: skip


def turn(seed: int) -> FloatArray:
    """A rotation matrix, all rotations as likely."""
    a, b, c, d = (q := np.random.default_rng(seed).normal(size=4)) / np.linalg.norm(q)
    return np.array([
        [1 - 2 * (c * c + d * d), 2 * (b * c - a * d), 2 * (b * d + a * c)],
        [2 * (b * c + a * d), 1 - 2 * (b * b + d * d), 2 * (c * d - a * b)],
        [2 * (b * d - a * c), 2 * (c * d + a * b), 1 - 2 * (b * b + c * c)],
    ])  # fmt: skip


def scan(
    faces: list[Face], n: int, *, seed: int = 1, noise: float = NOISE, clutter: float = CLUTTER,
    from_above: bool = False,
) -> Scene:  # fmt: skip
    """Draw n points; `from_above` by the area that is seen from there."""
    corner, u, v = (np.array([face[k] for face in faces], np.float64) for k in range(3))
    across = np.cross(u, v)
    area = np.linalg.norm(across, axis=1)
    normals = across / area[:, None]
    weights = np.abs(across[:, 2]) if from_above else area
    planes, plane_of = _merged(normals, np.einsum("ij,ij->i", normals, corner))
    ends = np.concatenate([corner, corner + u, corner + v, corner + u + v])
    low, high = ends.min(axis=0), ends.max(axis=0)

    rng = np.random.default_rng(seed)
    blobs = low + (0.1 + 0.8 * rng.random((BLOBS, 3))) * (high - low)
    shares = np.concatenate([(1 - clutter) * weights / weights.sum(), 2 * [clutter / 2]])
    borders = np.cumsum(shares)[:-1]
    x, y, z = (np.empty(n) for _ in range(3))
    patch = np.empty(n, np.int32)
    for first in range(0, n, CHUNK):
        here = slice(first, min(first + CHUNK, n))
        m = here.stop - first
        kind = np.searchsorted(borders, rng.random(m), side="right")
        face = np.minimum(kind, len(faces) - 1)
        points = corner[face] + rng.random((m, 1)) * u[face] + rng.random((m, 1)) * v[face]
        points += noise * rng.standard_normal((m, 1)) * normals[face]
        anywhere, on_blob = kind == len(faces), kind > len(faces)
        points[anywhere] = low + rng.random((anywhere.sum(), 3)) * (high - low)
        direction = rng.standard_normal((on_blob.sum(), 3))
        direction *= rng.uniform(*BLOB_RADIUS, (len(direction), 1)) / np.linalg.norm(
            direction, axis=1, keepdims=True
        )
        points[on_blob] = blobs[rng.integers(0, BLOBS, len(direction))] + direction
        x[here], y[here], z[here] = points.T
        patch[here] = np.where(kind < len(faces), kind, -1)
    plane = np.where(patch >= 0, plane_of[patch], -1).astype(np.int32)
    return Scene(x, y, z, plane, patch, planes, noise=noise)


def _merged(normals: FloatArray, d: FloatArray) -> tuple[FloatArray, IntArray]:
    """Equal planes once, and which one each is."""
    lead = np.argmax(np.abs(normals) > 1e-9, axis=1)
    sign = np.sign(normals[np.arange(len(d)), lead])
    rows = np.column_stack([normals, d]) * sign[:, None]
    _, first, which = np.unique(np.round(rows, 9), axis=0, return_index=True, return_inverse=True)
    return rows[first], which.reshape(-1).astype(np.int32)


def block(low: ArrayLike, high: ArrayLike) -> list[Face]:
    """Give the six faces of a box along the axes."""
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    a, b, c = np.diag(high - low)
    return [(low, a, b), (low + c, a, b), (low, a, c), (low + b, a, c), (low, b, c),
            (low + a, b, c)]  # fmt: skip


def room(n: int, **choices: Any) -> Scene:
    """A room of 10 x 8 x 3 m with a table, a cabinet, a ramp and an oblique panel: 12 planes."""
    return scan([
        *block((0, 0, 0), (10, 8, 3)),
        ((3, 3, 0.75), (2, 0, 0), (0, 1.5, 0)),
        ((7, 6, 0), (2, 0, 0), (0, 0, 2)),
        ((7, 6, 0), (0, 1.5, 0), (0, 0, 2)),
        ((7, 6, 2), (2, 0, 0), (0, 1.5, 0)),
        ((6, 1, 0.2), (2.2, 0, 0), (0, 1.6, 1.2)),
        ((1, 5, 0), (1.2, 1.2, 0), (0, 0, 2.5)),
    ], n, **choices)  # fmt: skip


def box(n: int, **choices: Any) -> Scene:
    """Six faces, exactly flat and along the axes."""
    return scan(block((0, 0, 0), (6, 4, 3)), n, **{"noise": 0.0, "clutter": 0.0, **choices})


def flat(n: int, **choices: Any) -> Scene:
    """One plane, z = 2 in every bit."""
    return scan([((0, 0, 2), (9, 0, 0), (0, 7, 0))], n, **{"noise": 0, "clutter": 0, **choices})


def partitions(n: int, **choices: Any) -> Scene:
    """A room with two walls that cross in its middle: both pass through the centroid."""
    walls = [((5, 0, 0), (0, 8, 0), (0, 0, 3)), ((0, 4, 0), (10, 0, 0), (0, 0, 3))]
    return scan(block((0, 0, 0), (10, 8, 3)) + walls, n, **choices)


def crossing(n: int, **choices: Any) -> Scene:
    """Two planes of 10 x 10 m that cross in the centroid, 50 degrees between them."""
    faces: list[Face] = []
    for angle in np.radians([20.0, 70.0]):
        u = np.array([10 * np.cos(angle), 0, 10 * np.sin(angle)])
        faces.append((-u / 2 - [0, 5, 0], u, (0, 10, 0)))
    return scan(faces, n, **{"clutter": 0.0, **choices})


def tables(n: int, **choices: Any) -> Scene:
    """A room with two tables of one height: 7 planes, 8 patches."""
    tops = [((x, 2, 0.75), (2, 0, 0), (0, 1.5, 0)) for x in (1.5, 6.5)]
    return scan(block((0, 0, 0), (10, 6, 3)) + tops, n, **choices)


def thin_wall(n: int, **choices: Any) -> Scene:
    """A room parted by a wall of 10 cm of which both faces are seen."""
    faces = [((5 + side, 0, 0), (0, 8, 0), (0, 0, 3)) for side in (-0.05, 0.05)]
    return scan(block((0, 0, 0), (10, 8, 3)) + faces, n, **choices)


def building(n: int, **choices: Any) -> Scene:
    """Two storeys of 4 x 4 rooms of 5 x 4 m between walls of 12 cm: 20 planes, 192 patches."""
    corners = np.stack(np.meshgrid(range(4), range(4), range(2)), axis=-1).reshape(-1, 3)
    corners = corners * [5.12, 4.12, 3.1]
    size = np.array([5.0, 4.0, 2.7])
    faces = [face for low in corners for face in block(low, low + size)]
    return scan(faces, n, **choices)


def facade(n: int, **choices: Any) -> Scene:
    """A front of 24 x 13 m with 4 rows of 7 windows set back by 15 cm, a street, a roof."""
    faces: list[Face] = [
        ((0, 0, 0), (24, 0, 0), (0, -6, 0)),
        ((0, 0, 13), (24, 0, 0), (0, 4, 3)),
        *(((0, 0, z), (24, 0, 0), (0, 0, h)) for z, h in _gaps(13, 4, 1.6)),
    ]
    for z in _openings(13, 4, 1.6):
        faces += [((x, 0, z), (w, 0, 0), (0, 0, 1.6)) for x, w in _gaps(24, 7, 1.3)]
        faces += [((x, 0.15, z), (1.3, 0, 0), (0, 0, 1.6)) for x in _openings(24, 7, 1.3)]
    return scan(faces, n, **{"clutter": 0.05, **choices})


def _openings(length: float, count: int, size: float) -> FloatArray:
    """Starts of openings that are evenly spaced."""
    gap = (length - count * size) / (count + 1)
    return gap + (gap + size) * np.arange(count)


def _gaps(length: float, count: int, size: float) -> list[tuple[float, float]]:
    """Start and size of what is between them."""
    gap = (length - count * size) / (count + 1)
    return [((gap + size) * k, gap) for k in range(count + 1)]


def roofs(n: int, *, density: float = 4.0, seed: int = 1, **choices: Any) -> Scene:
    """Gabled houses from the air: one on each plot of 30 x 30 m, `density` points a square metre.

    The ground around the houses is level; trees and bushes are the clutter.
    """
    rng = np.random.default_rng(seed)
    side = max(1, round(np.sqrt(n / density) / 30.0))
    faces: list[Face] = []
    for i in range(side):
        for j in range(side):
            half, deep = rng.uniform([4.0, 3.0], [7.0, 5.0])
            rise = deep * np.tan(np.radians(rng.uniform(20, 50)))
            eaves = rng.uniform(3, 9)
            angle = rng.uniform(0, np.pi)
            along = np.array([np.cos(angle), np.sin(angle), 0])
            across = np.array([-along[1], along[0], 0])
            middle = np.array([30 * i + 15, 30 * j + 15, eaves])
            for way in (-1, 1):
                corner = middle - half * along + way * deep * across
                faces.append((corner, 2 * half * along, [*(-way * deep * across)[:2], rise]))
            faces += _around(30.0 * i, 30.0 * j)
    return scan(faces, n, seed=seed, from_above=True, **{"noise": 0.03, **choices})


def _around(x: float, y: float) -> list[Face]:
    """Give the ground of a plot but for the 18 x 18 m in its middle."""
    return [
        ((x, y, 0), (30, 0, 0), (0, 6, 0)), ((x, y + 24, 0), (30, 0, 0), (0, 6, 0)),
        ((x, y + 6, 0), (6, 0, 0), (0, 18, 0)), ((x + 24, y + 6, 0), (6, 0, 0), (0, 18, 0)),
    ]  # fmt: skip


SCENES: dict[str, Callable[..., Scene]] = {
    each.__name__: each
    for each in (
        room, box, flat, partitions, crossing, tables, thin_wall, building, facade, roofs,
    )
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a generated scan as NPZ, with its truth.")
    parser.add_argument("scene", choices=SCENES)
    parser.add_argument("out", type=Path)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    np.savez(options.out, **vars(SCENES[options.scene](options.points, seed=options.seed)))


if __name__ == "__main__":
    main()
