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

FAST_WELD = 5e-5
"""Metres; coordinates of float32 differ by so much a kilometre from the origin."""

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
            Measures.joined([self.measures, other.measures]),
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
    meshes_of_all = Meshes.of(list(finite.values()))
    if source == FAST:
        cleaned, measures = mesh.clean(meshes_of_all, weld=FAST_WELD, fill=True)
    else:
        cleaned, measures = mesh.clean(meshes_of_all)
    step_ids = np.array(list(finite), np.int64)
    shapes = Shapes(step_ids, cleaned, measures, np.repeat(source, len(step_ids)))
    filled = np.diff(cleaned.face_starts) > 0
    for step_id in shapes.step_ids[~filled].tolist():
        unusable[step_id] = "all triangles of the mesh have no area"
    return shapes if filled.all() else shapes.take(np.flatnonzero(filled)), unusable


def trusted(
    shapes: Shapes,
    kinds: dict[int, str],
    places: dict[int, list[float]],
    origin: Sequence[float],
) -> Shapes:
    """Pick the meshes by `ifclite-geom` that are as good as those by IfcOpenShell.

    Parameters
    ----------
    shapes : Shapes
    kinds : dict from int to str
        Of each product by step id, see `spatialq.io.ifc.representations`.
    places : dict from int to three floats
        What each product's coordinates are relative to.
    origin : three floats
        Where the library's coordinates have their origin.
    """
    known = np.array([step_id in kinds for step_id in shapes.step_ids.tolist()], bool)
    shapes = shapes.take(np.flatnonzero(known))
    step_ids = shapes.step_ids.tolist()
    kind = np.array([kinds[step_id] for step_id in step_ids], object)
    place = np.array([places[step_id] for step_id in step_ids]).reshape(-1, 3)
    measures = shapes.measures
    near = np.ones(len(kind), bool)
    for centre in (place, np.array(origin)):
        reach = np.maximum(centre - measures.low, measures.high - centre)
        near &= (reach <= MAX_COORDINATE).all(axis=1)
    is_whole = measures.is_closed & ((kind == SOLID) | (measures.component_count == 1))
    good = shapes.take(np.flatnonzero(near & is_whole & ((kind == SOLID) | (kind == SURFACE))))
    rest = np.flatnonzero(near & ~is_whole & (kind == SURFACE))
    return good.followed_by(oriented(shapes.take(rest)))


def oriented(shapes: Shapes) -> Shapes:
    """Orient the parts of surfaces, and pick those that are closed or cannot be."""
    meshes, measures, has_boundary = mesh.orient(shapes.meshes, shapes.measures)
    each = Shapes(shapes.step_ids, meshes, measures, shapes.sources)
    return each.take(np.flatnonzero(measures.is_closed | has_boundary))
