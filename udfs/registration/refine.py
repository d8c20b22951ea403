"""A placement made exact: the distances of surfels from planes of the model become least."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.runtime.compile_cache import njit

from .search import Pose
from .surfels import Surfels

RADII = (0.3, 0.3, 0.3, 0.15, 0.15, 0.15, 0.08, 0.08, 0.08)
"""Metres: how far from a face a surfel of the scan may be, step by step."""
FINE = (0.05, 0.05, 0.05, 0.04, 0.04, 0.04)
"""Metres: further steps of the best candidates."""
CELL = 0.3
"""Metres: of the grid of the model's surfels; not less than a radius."""
BESIDE = 1.5
"""Multiple of the spacing of the model's surfels: how far beside one of them its face reaches."""
COSINE = 0.94
"""Of the angle between surfels that may be of one surface: 20 degrees."""
AXIS_BITS = 21


@dataclass(frozen=True)
class Faces:
    """The surfels of a model, sorted by cells of a grid."""

    surfels: Surfels
    low: Any
    shape: Any
    starts: Any
    beside: float

    @classmethod
    def of(cls, model: Surfels) -> "Faces":
        """Sort the surfels of a model."""
        low = model.places.min(axis=0) - CELL
        cells = ((model.places - low) / CELL).astype(np.int64)
        shape = cells.max(axis=0) + 2
        keys = (cells[:, 0] * shape[1] + cells[:, 1]) * shape[2] + cells[:, 2]
        order = np.argsort(keys, kind="stable")
        starts = np.zeros(int(shape.prod()) + 1, np.int64)
        np.cumsum(np.bincount(keys, minlength=int(shape.prod())), out=starts[1:])
        spacing = float(np.sqrt(model.area[0]))
        return cls(model.take(order), low, shape, starts, BESIDE * spacing)

    def measure(self, scan: Surfels, pose: Pose, radius: float, jacobian: Any) -> Any:
        """Measure how far surfels of a scan are from the faces.

        Returns
        -------
        distance : float64[n]
            Metres along the face's normal; NaN where no face of this direction is within the
            radius. `jacobian`, float64[n, 6], is how it changes with a shift (m) and a turn
            (radians) about the middle of the scan; 0 there.
        """
        distance = np.empty(len(scan))
        _measure(
            scan.places, scan.normals, pose.turn, pose.shift, scan.places.mean(axis=0),
            self.surfels.places, self.surfels.normals, scan.is_sided, self.surfels.is_sided,
            self.low, self.shape, self.starts, CELL, radius, self.beside, COSINE,
            distance, jacobian,
        )  # fmt: skip
        return distance


FOUR = np.array([0, 1, 2, 5])
SIX = np.arange(6)


def refine(
    faces: Faces, scan: Surfels, pose: Pose, radii: tuple[float, ...], free: Any = FOUR
) -> Pose:
    """Move a scan so that the distances from the faces near it become least.

    Parameters
    ----------
    faces : Faces
    scan : Surfels
    pose : Pose
    radii : tuple of float
        Metres, for each step: surfels that are farther from all faces do not count, and those
        near this limit little (Tukey's weights).
    free : int[k]
        Which of the six movements are free: shifts along x, y, z, and turns about them.
    """
    jacobian = np.empty((len(scan), 6))
    middle = scan.places.mean(axis=0)
    for radius in radii:
        distance = faces.measure(scan, pose, radius, jacobian)
        near = ~np.isnan(distance)
        weight = np.zeros(len(distance))
        weight[near] = (1 - (distance[near] / radius) ** 2) ** 2
        some = jacobian[:, free]
        matrix = (some * weight[:, None]).T @ some
        right = some.T @ (weight * np.where(near, distance, 0.0))
        # what the surfels say nothing of does not move
        lever = float(np.ptp(scan.places, axis=0).max()) / 4
        size = np.where(free < 3, 1.0, lever**2)
        matrix[np.diag_indices(len(free))] += size * (1e-3 * weight.sum() + 1e-9)
        step = np.zeros(6)
        step[free] = -np.linalg.solve(matrix, right)
        turn = _rotation(step[3:])
        at = pose.turn @ middle + pose.shift
        new = turn @ pose.turn
        pose = Pose(new, at + step[:3] - new @ middle)
    return pose


def _rotation(vector: Any) -> Any:
    """Make the matrix of a turn about an axis by the length of the vector, in radians."""
    angle = float(np.linalg.norm(vector))
    if angle == 0:
        return np.eye(3)
    x, y, z = vector / angle
    cross = np.array([(0, -z, y), (z, 0, -x), (-y, x, 0)])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)


@njit(cache=True, nogil=True)
def _measure(  # type: ignore[no-untyped-def]
    places, normals, turn, shift, middle, at, facing, is_sided, is_closed, low, shape, starts, cell,
    radius, beside, cosine, distance, jacobian,
):  # fmt: skip
    """Find the face that is nearest along its normal to each surfel; see `Faces.measure`."""
    mx = turn[0, 0] * middle[0] + turn[0, 1] * middle[1] + turn[0, 2] * middle[2]
    my = turn[1, 0] * middle[0] + turn[1, 1] * middle[1] + turn[1, 2] * middle[2]
    mz = turn[2, 0] * middle[0] + turn[2, 1] * middle[1] + turn[2, 2] * middle[2]
    square = beside * beside
    for i in range(places.shape[0]):
        a, b, c = places[i, 0], places[i, 1], places[i, 2]
        x = turn[0, 0] * a + turn[0, 1] * b + turn[0, 2] * c
        y = turn[1, 0] * a + turn[1, 1] * b + turn[1, 2] * c
        z = turn[2, 0] * a + turn[2, 1] * b + turn[2, 2] * c
        armx, army, armz = x - mx, y - my, z - mz
        x, y, z = x + shift[0], y + shift[1], z + shift[2]
        a, b, c = normals[i, 0], normals[i, 1], normals[i, 2]
        nx = turn[0, 0] * a + turn[0, 1] * b + turn[0, 2] * c
        ny = turn[1, 0] * a + turn[1, 1] * b + turn[1, 2] * c
        nz = turn[2, 0] * a + turn[2, 1] * b + turn[2, 2] * c
        u, v, w = (x - low[0]) / cell, (y - low[1]) / cell, (z - low[2]) / cell
        distance[i] = np.nan
        for k in range(6):
            jacobian[i, k] = 0.0
        if u < -1 or v < -1 or w < -1:
            continue
        if u > shape[0] + 1 or v > shape[1] + 1 or w > shape[2] + 1:
            continue
        reach = max(radius, beside) / cell
        first, last = max(int(w - reach), 0), min(int(w + reach), shape[2] - 1)
        nearest, best = radius, -1
        for p in range(max(int(u - reach), 0), min(int(u + reach), shape[0] - 1) + 1):
            for q in range(max(int(v - reach), 0), min(int(v + reach), shape[1] - 1) + 1):
                row = (p * shape[1] + q) * shape[2]
                if last < first:
                    continue
                for j in range(starts[row + first], starts[row + last + 1]):
                    fx, fy, fz = facing[j, 0], facing[j, 1], facing[j, 2]
                    along = fx * nx + fy * ny + fz * nz
                    if abs(along) < cosine or (along < 0.0 and is_sided[i] and is_closed[j]):
                        continue
                    dx, dy, dz = x - at[j, 0], y - at[j, 1], z - at[j, 2]
                    along = fx * dx + fy * dy + fz * dz
                    if abs(along) >= nearest:
                        continue
                    if dx * dx + dy * dy + dz * dz - along * along <= square:
                        nearest, best = abs(along), j
        if best >= 0:
            fx, fy, fz = facing[best, 0], facing[best, 1], facing[best, 2]
            dx, dy, dz = x - at[best, 0], y - at[best, 1], z - at[best, 2]
            distance[i] = fx * dx + fy * dy + fz * dz
            jacobian[i, 0], jacobian[i, 1], jacobian[i, 2] = fx, fy, fz
            jacobian[i, 3] = army * fz - armz * fy
            jacobian[i, 4] = armz * fx - armx * fz
            jacobian[i, 5] = armx * fy - army * fx
