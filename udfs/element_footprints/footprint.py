"""The footprint of a mesh, as it comes from DuckDB and goes there."""

from typing import Any

import numpy as np

from spatialq.data.polygons import wkb_of
from spatialq.runtime.arrays import Floats, Ints

from .outline import outline

CALLER = "mesh_footprint"


def footprint(mesh: dict[str, Any] | None) -> bytes | None:
    """Find the footprint of a mesh, as WKB; None without one."""
    if mesh is None or mesh["vertices"] is None or mesh["faces"] is None:
        return None
    vertices, faces = _arrays(mesh["vertices"], mesh["faces"])
    polygons = outline(vertices[:, :2], faces)
    return wkb_of(polygons) if polygons else None


def _arrays(vertices: list[float], faces: list[int]) -> tuple[Floats, Ints]:
    """Check a mesh.

    Raises
    ------
    ValueError
        If its lists are no vertices and faces.
    """
    if len(vertices) % 3 or len(faces) % 3:
        got = f"{len(vertices)} and {len(faces)}"
        message = f"{CALLER}: vertices and faces of a mesh must be multiples of three, got {got}"
        raise ValueError(message)
    xyz = np.array(vertices, np.float64).reshape(-1, 3)  # NULL becomes NaN
    triangles = np.array([-1 if each is None else each for each in faces], np.int64).reshape(-1, 3)
    if not np.isfinite(xyz).all():
        message = f"{CALLER}: vertices of a mesh must be finite, got NULL, NaN or infinity"
        raise ValueError(message)
    if triangles.size and not 0 <= triangles.min() <= triangles.max() < len(xyz):
        wrong = triangles.min() if triangles.min() < 0 else triangles.max()
        message = f"{CALLER}: faces of a mesh must be of its {len(xyz)} vertices, got {wrong}"
        raise ValueError(message)
    return xyz, triangles
