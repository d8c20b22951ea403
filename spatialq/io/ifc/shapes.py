"""The meshes of a model's products: cleaned, measured, and chosen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spatialq.data.meshes import Meshes
from spatialq.io.ifc import mesh
from spatialq.io.ifc.mesh import Measures
from spatialq.io.ifc.representations import SOLID, SURFACE

RawMesh = tuple[NDArray[np.float64], NDArray[np.int32]]
"""Vertices, float64[n, 3], and faces, int32[m, 3]."""

FAST = "ifclite-geom"
EXACT = "IfcOpenShell"

MAX_COORDINATE = 1024.0
"""Metres from the origin up to which `ifclite-geom`, which has float32 inside, is within 0.1 mm."""


@dataclass(frozen=True)
class Shapes:
    """Meshes of k products, cleaned.

    Parameters
    ----------
    step_ids : int64[k]
    meshes : Meshes
    measures : Measures
    sources : str[k]
        Which library made each.
    """

    step_ids: NDArray[np.int64]
    meshes: Meshes
    measures: Measures
    sources: NDArray[np.str_]

    def take(self, rows: NDArray[np.int64]) -> "Shapes":
        """Copy some of the shapes."""
        return Shapes(
            self.step_ids[rows],
            self.meshes.take(rows),
            self.measures.take(rows),
            self.sources[rows],
        )

    def followed_by(self, other: "Shapes") -> "Shapes":
        """Append other shapes."""
        return Shapes(
            np.concatenate([self.step_ids, other.step_ids]),
            self.meshes.followed_by(other.meshes),
            self.measures.followed_by(other.measures),
            np.concatenate([self.sources, other.sources]),
        )


def measured(meshes: dict[int, RawMesh], source: str) -> tuple[Shapes, dict[int, str]]:
    """Clean and measure meshes.

    Returns
    -------
    shapes : Shapes
    unusable : dict from int to str
        The meshes that were left out, and why, by step id.
    """
    unusable = {}
    finite = {}
    for step_id, raw in meshes.items():
        if np.isfinite(raw[0]).all():
            finite[step_id] = raw
        else:
            unusable[step_id] = "the mesh has coordinates that are not finite"
    cleaned, measures = mesh.clean(Meshes.of(list(finite.values())))
    step_ids = np.array(list(finite), np.int64)
    shapes = Shapes(step_ids, cleaned, measures, np.repeat(source, len(step_ids)))
    filled = np.diff(cleaned.face_starts) > 0
    for step_id in shapes.step_ids[~filled].tolist():
        unusable[step_id] = "all triangles of the mesh have no area"
    return shapes if filled.all() else shapes.take(np.flatnonzero(filled)), unusable


def trusted(shapes: Shapes, kinds: dict[int, str], origin: Sequence[float]) -> Shapes:
    """Pick the meshes by `ifclite-geom` that are as good as those by IfcOpenShell.

    Parameters
    ----------
    shapes : Shapes
    kinds : dict from int to str
        Of each product by step id, see `spatialq.io.ifc.representations`.
    origin : three floats
        Where the library's coordinates have their origin.
    """
    kind = np.array([kinds.get(step_id, "") for step_id in shapes.step_ids.tolist()], object)
    measures = shapes.measures
    reach = np.maximum(origin - measures.low, measures.high - origin)
    near = (reach <= MAX_COORDINATE).all(axis=1)
    good = near & ((kind == SURFACE) | ((kind == SOLID) & measures.is_closed))
    return shapes.take(np.flatnonzero(good))
