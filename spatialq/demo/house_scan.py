"""A laser scan of the model house as it was built: every wall face and floor that can be seen."""

import datetime as dt
import uuid
from pathlib import Path

import numpy as np

from spatialq.demo.house_plan import CLEAR, INNER, LENGTH, OUTER, STOREY, WALLS, WIDTH, Wall
from spatialq.runtime.arrays import Floats

DISPLACED = {"wall east 0": 30.0, "wall kitchen": 25.0}
"""Millimetres that walls were built off their place, across their length."""
SPACING = 80.0
NOISE = 3.0


def write_scan(path: str | Path, *, seed: int = 7) -> None:
    """Write the scan as LAS 1.4 in metres, in the model's coordinates; always the same bytes.

    Parameters
    ----------
    path
        File to write, ``.laz``, or ``.las`` for an uncompressed one.
    seed
        Of where the beams meet the faces, and of the noise.
    """
    rng = np.random.default_rng(seed)
    faces = [face for wall in WALLS for face in _wall_faces(wall, rng)]
    faces += [_floor(foot, rng) for foot in (0.0, STOREY)]
    write_las(path, np.concatenate(faces) / 1000.0)


def write_las(path: str | Path, xyz: Floats) -> None:
    """Write points, float64[n, 3] in metres, as a scan that was generated."""
    import laspy

    header = laspy.LasHeader(version="1.4", point_format=6)
    header.scales = np.full(3, 0.001)
    header.creation_date = dt.date(2026, 9, 14)
    header.generating_software = "spatialq demo"
    header.system_identifier = "generated, not measured"
    header.uuid = uuid.UUID(int=0)
    las = laspy.LasData(header)
    las.xyz = xyz
    las.return_number = las.number_of_returns = np.ones(len(las.xyz), np.uint8)
    las.classification = np.full(len(las.xyz), 6, np.uint8)
    las.write(str(path), do_compress=Path(path).suffix.lower() != ".las")


def _wall_faces(wall: Wall, rng: np.random.Generator) -> list[Floats]:
    """Sample both long faces of a wall, without its gaps."""
    along, across = (0, 1) if wall.along_x else (1, 0)
    faces = []
    for side in (wall.low[across], wall.high[across]):
        s, z = _sample(wall.low[along], wall.high[along], wall.foot, wall.foot + CLEAR, rng)
        is_gap = np.zeros(s.size, bool)
        for gap in wall.gaps:
            is_gap |= (s > gap.start) & (s < gap.end) & (z > gap.sill) & (z < gap.head)
        points = np.empty((s.size, 3))
        points[:, along], points[:, 2] = s, z
        points[:, across] = side + DISPLACED.get(wall.name, 0.0) + rng.normal(0.0, NOISE, s.size)
        faces.append(points[~is_gap])
    return faces


def _floor(foot: float, rng: np.random.Generator) -> Floats:
    x, y = _sample(OUTER, LENGTH - OUTER, OUTER, WIDTH - OUTER, rng)
    hidden = np.zeros(x.size, bool)
    for wall in WALLS:
        if wall.foot == foot and wall.thickness == INNER:
            inside = (x > wall.low[0]) & (x < wall.high[0]) & (y > wall.low[1]) & (y < wall.high[1])
            hidden |= inside
    if foot:  # where the stair comes up
        hidden |= (x > 5250.0) & (x < 9010.0) & (y > 6550.0) & (y < 7700.0)
    z = foot + rng.normal(0.0, NOISE, x.size)
    return np.column_stack([x, y, z])[~hidden]


def _sample(
    low: float, high: float, foot: float, head: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Give one place in each square of `SPACING`."""
    s, t = np.mgrid[low : high - SPACING : SPACING, foot : head - SPACING : SPACING]
    shift_s, shift_t = rng.uniform(0.0, SPACING, (2, s.size))
    return s.ravel() + shift_s, t.ravel() + shift_t
