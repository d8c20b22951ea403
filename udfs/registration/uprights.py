"""Which direction of a scan is the vertical."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .surfels import Surfels

CLOSE = 0.99
"""Cosine: normals that are this near to a direction are those of its planes."""
TRIED = 500
"""Normals that are tried as directions."""


@dataclass(frozen=True)
class Upright:
    """A turn that makes the z-axis the vertical."""

    name: str
    turn: Any

    def turned(self, scan: Surfels) -> Surfels:
        """Turn a scan."""
        if self.name == "z":
            return scan
        return Surfels(scan.places @ self.turn.T, scan.normals @ self.turn.T, scan.area)


AXES = {
    "z": Upright("z", np.eye(3)),
    "y": Upright("y", np.array([(1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0)])),
}


def uprights(scan: Surfels, *, tilt: bool) -> list[Upright]:
    """List the verticals that a scan may have: its z- or y-axis, or with `tilt` any direction.

    Then either way along each of the three directions, at right angles, in which most normals are.
    """
    if not tilt:
        return list(AXES.values())
    if not len(scan):
        return []
    found = []
    normals = scan.normals
    first = _main(normals)
    across = normals[np.abs(normals @ first) < 0.1]
    second = _main(across) if len(across) else np.roll(first, 1)
    second = second - (second @ first) * first
    second /= np.linalg.norm(second)
    for axis in (first, second, np.cross(first, second)):
        for sign in (1.0, -1.0):
            up = sign * axis
            other = np.eye(3)[int(np.argmin(np.abs(up)))]
            x = other - (other @ up) * up
            x /= np.linalg.norm(x)
            found.append(Upright("other", np.stack([x, np.cross(up, x), up])))
    return found


def _main(normals: Any) -> Any:
    """Find the direction, without a side, of most normals."""
    tried = normals[:: max(1, len(normals) // TRIED)]
    counts = (np.abs(tried @ normals.T) > CLOSE).sum(axis=1)
    axis = tried[int(np.argmax(counts))]
    near = normals[np.abs(normals @ axis) > CLOSE]
    return np.linalg.eigh(near.T @ near)[1][:, 2]
