"""The meshes of a model's products: cleaned, measured, and chosen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spatialq.data.meshes import Meshes
from spatialq.io.ifc import mesh
from spatialq.io.ifc.mesh import Measures
from spatialq.io.ifc.representations import CUT, MAX_COORDINATE, SOLID, SURFACE
from spatialq.runtime.arrays import Bools, Floats, Int32s, Ints

RawMesh = tuple[Floats, Int32s]
"""Vertices, float64[n, 3], and faces, int32[m, 3]."""

FAST = "ifclite-geom"
EXACT = "IfcOpenShell"

FAST_WELD = 5e-5
"""Metres; coordinates of float32 differ by so much a kilometre from the origin."""


SAMPLES = np.stack(np.meshgrid(*3 * [[1 / 6, 1 / 2, 5 / 6]]), axis=-1).reshape(-1, 3)
"""Where openings are looked at, in fractions of a box."""

MAX_WORK = 1 << 24
"""Samples times faces of one host, beyond which IfcOpenShell makes it."""

MAX_PARTS = 1000
"""Parts of a solid that are compared with each other."""


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

    step_ids: Ints
    meshes: Meshes
    measures: Measures
    sources: NDArray[np.str_]

    def take(self, rows: Ints) -> "Shapes":
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
    openings: dict[int, list[int]],
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
    openings : dict from int to list of int
        The step ids of what is cut from each product.
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
    is_solid = (kind == SOLID) | (kind == CUT)
    is_whole = measures.is_closed & (is_solid | (measures.component_count == 1))
    good = shapes.take(np.flatnonzero(near & is_whole & (is_solid | (kind == SURFACE))))
    rest = np.flatnonzero(near & ~is_whole & (kind == SURFACE))
    good = without_fillings(good.followed_by(oriented(shapes.take(rest))), shapes, openings)
    return good.take(np.flatnonzero(~has_part_within(good, kinds)))


def oriented(shapes: Shapes) -> Shapes:
    """Orient the parts of surfaces, and pick those that are closed or cannot be."""
    meshes, measures, has_boundary = mesh.orient(shapes.meshes, shapes.measures)
    each = Shapes(shapes.step_ids, meshes, measures, shapes.sources)
    return each.take(np.flatnonzero(measures.is_closed | has_boundary))


def without_fillings(shapes: Shapes, every: Shapes, openings: dict[int, list[int]]) -> Shapes:
    """Pick the shapes of which no sample of an opening is left.

    `ifclite-geom` may not cut an opening whose sides nearly coincide with those of its host.

    Parameters
    ----------
    shapes : Shapes
    every : Shapes
        Also those that openings have.
    openings : dict from int to list of int
        The step ids of what is cut from each product.
    """
    closed = np.flatnonzero(every.measures.is_closed).tolist()
    row_of = {int(every.step_ids[row]): row for row in closed}
    pairs = [
        (host, row_of.get(opening, -1))
        for host, step_id in enumerate(shapes.step_ids.tolist())
        for opening in openings[step_id]
    ]
    if not pairs:
        return shapes
    host, opening = np.array(pairs).T
    is_good = np.ones(len(shapes.step_ids), bool)
    is_good[host[opening < 0]] = False
    host, opening = host[opening >= 0], opening[opening >= 0]
    work = np.bincount(
        host, len(SAMPLES) * np.diff(shapes.meshes.face_starts)[host], minlength=len(is_good)
    )
    is_good[work > MAX_WORK] = False
    low = np.maximum(shapes.measures.low[host], every.measures.low[opening])
    high = np.minimum(shapes.measures.high[host], every.measures.high[opening])
    tried = np.flatnonzero((low < high).all(axis=1) & is_good[host])
    points = low[tried, None] + (high - low)[tried, None] * SAMPLES
    points = points.reshape(-1, 3)
    host, opening = (np.repeat(rows[tried], len(SAMPLES)) for rows in (host, opening))
    inside = np.flatnonzero(np.abs(mesh.winding(every.meshes, points, opening)) > 0.5)
    # Hosts have many faces: every fourth sample of a full box still has all places on each axis.
    of_pair = np.bincount(inside // len(SAMPLES), minlength=len(tried))
    rank = np.arange(len(inside)) - np.repeat(np.cumsum(of_pair) - of_pair, of_pair)
    inside = inside[(np.repeat(of_pair, of_pair) < 8) | (rank % 4 == 0)]
    left = np.abs(mesh.winding(shapes.meshes, points[inside], host[inside])) > 0.5
    is_good[host[inside[left]]] = False
    return shapes.take(np.flatnonzero(is_good))


def has_part_within(shapes: Shapes, kinds: dict[int, str]) -> Bools:
    """Tell in which solids of boolean operations a part lies within another and adds to it.

    `ifclite-geom` adds what a boolean operation takes from the inside of a solid.
    """
    found = np.zeros(len(shapes.step_ids), bool)
    for row in np.flatnonzero(shapes.measures.component_count > 1).tolist():
        if kinds[int(shapes.step_ids[row])] != CUT:
            continue
        if shapes.measures.component_count[row] > MAX_PARTS:
            found[row] = True
            continue
        parts = mesh.separated(shapes.meshes.take(np.array([row])))
        low = np.minimum.reduceat(parts.vertices, parts.vertex_starts[:-1])
        high = np.maximum.reduceat(parts.vertices, parts.vertex_starts[:-1])
        within = (low[:, None] > low).all(axis=2) & (high[:, None] < high).all(axis=2)
        inner, outer = np.nonzero(within)
        if len(inner):
            at = mesh.corners(parts)
            volumes = np.add.reduceat(mesh.signed_volumes(at - at[0, 0]), parts.face_starts[:-1])
            centres = at[parts.face_starts[inner]].mean(axis=1)
            around = mesh.winding(parts, centres, outer) > 0.5
            found[row] = (around & (volumes[inner] > 0)).any()
    return found
