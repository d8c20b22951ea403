"""The volumes of what elements have in common, and their extents: by manifold3d, on the host.

An element becomes a solid of manifold3d once for all its pairs: vertices in one place are one
vertex, the bodies of an element are united, and an inner surface stays a hollow. Coordinates are
relative to a corner of a coarse grid near the pair, which takes no digit from them.

manifold3d holds Python's lock, and has threads of its own for large meshes: so there are none here.
"""

from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry.indexed_meshes import boxes_of, rows_by_place
from spatialq.geometry.smallest_box import extents
from spatialq.runtime import progress
from spatialq.runtime.threads import steps

from . import MEASURES, Options
from .narrow_phase import OVERLAP

if TYPE_CHECKING:
    from manifold3d import Manifold

GRID = 1024.0
"""Metres between the corners that coordinates may be relative to."""
KEPT = 256
"""Solids that are kept for further pairs."""
SLIVER = 1e-6
"""Metres: thinner parts are left out of the box; flush faces that were rounded have such."""


class Solid(NamedTuple):
    """What is made of an element's mesh."""

    digest: bytes
    """Of its mesh: by it a pair is put in order, so that (a, b) and (b, a) give the same."""
    manifold: "Manifold"


def columns(found: dict[str, Any], a: Meshes, b: Meshes | None, options: Options) -> dict[str, Any]:
    """Give the columns `volume dx dy dz` of pairs, float64[n].

    Parameters
    ----------
    found : dict of arrays
        The other columns of the pairs, in the memory of the host.
    a, b, options
        As for `cpu.run`.

    Returns
    -------
    dict of arrays
        The volume of the common part in cubic metres; the sides of the smallest box around it with
        a face in the plane of one of its convex hull's, the longest first, in metres. Zero for
        pairs that touch; NaN for others where a mesh is open, and if it was not asked for.

    Notes
    -----
    manifold3d moves vertices by no more than 1e-12 of the elements' extent, or of `GRID`: far less
    than a nanometre in buildings. A volume is wrong by that times the surface of the common part at
    most, a side by `SLIVER`. Where a body passes through itself, it counts as often as it is there.
    """
    measures = np.full((len(MEASURES), len(found["a"])), np.nan)
    if options.volume:
        is_common = found["relation"] >= OVERLAP
        measures[:, ~is_common] = 0.0
        pairs = np.flatnonzero(is_common & ~found["a_open"] & ~found["b_open"])
        progress.stage("volumes", 1.0)
        _measure(found["a"], found["b"], pairs, a, a if b is None else b, measures)
    return dict(zip(MEASURES, measures, strict=True))


def _measure(rows_a: Any, rows_b: Any, pairs: Any, a: Meshes, b: Meshes, measures: Any) -> None:
    """Write the measures of some of the pairs."""
    boxes_a, boxes_b = boxes_of(a), boxes_of(b)
    pairs = pairs[rows_by_place(boxes_a, rows_a[pairs])]
    low = np.maximum(boxes_a[rows_a[pairs], :3], boxes_b[rows_b[pairs], :3])
    origins = GRID * np.round(low / GRID)

    @lru_cache(KEPT)
    def solid(is_of_b: bool, row: int, *origin: float) -> Solid:  # noqa: FBT001
        return _solid(b if is_of_b else a, row, origin)

    for first, stop in steps(0, len(pairs), most=1):
        for k in range(first, stop):
            pair, origin = pairs[k], origins[k].tolist()
            one = solid(False, int(rows_a[pair]), *origin)  # noqa: FBT003
            other = solid(a is not b, int(rows_b[pair]), *origin)
            if one.digest > other.digest:
                one, other = other, one
            measures[:, pair] = _measures(one.manifold ^ other.manifold)


def _measures(part: "Manifold") -> tuple[float, ...]:
    """Give the volume and the sides of a common part; NaN where manifold3d refused a mesh."""
    from manifold3d import Error

    if part.status() != Error.NoError:
        return (np.nan,) * len(MEASURES)
    hull = part.simplify(SLIVER).hull().to_mesh64()
    corners = np.ascontiguousarray(hull.vert_properties[:, :3])
    return part.volume(), *extents(corners, hull.tri_verts.astype(np.int64))


def _solid(meshes: Meshes, row: int, origin: tuple[float, ...]) -> Solid:
    """Make the solid of an element, relative to an origin."""
    v0, v1 = meshes.vertex_starts[row : row + 2]
    f0, f1 = meshes.face_starts[row : row + 2]
    vertices, faces = meshes.vertices[v0:v1] - origin, meshes.faces[f0:f1]
    digest = blake2b(vertices.tobytes())
    digest.update(faces.tobytes())
    # -0 is no other place than 0
    places, there = np.unique(vertices + 0.0, axis=0, return_inverse=True)
    faces = there.reshape(-1)[faces].astype(np.uint64)
    faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
    whole = _manifold(places, faces)
    if whole.volume() < 0:  # its inside is out
        whole = _manifold(places, faces[:, ::-1])
    return Solid(digest.digest(), _united(whole))


def _manifold(vertices: Any, faces: Any) -> "Manifold":
    from manifold3d import Manifold, Mesh64

    return Manifold(Mesh64(np.array(vertices, order="C"), np.array(faces, order="C")))


def _united(whole: "Manifold") -> "Manifold":
    """Unite the bodies of an element, which may overlap, each with the hollows in it."""
    from manifold3d import Manifold, OpType

    parts = whole.decompose()
    if len(parts) == 1:
        return whole
    parts.sort(key=lambda part: abs(part.volume()))
    bodies = [part for part in parts if part.volume() > 0]
    for inner in (part for part in parts if part.volume() < 0):
        mesh = inner.to_mesh64()
        hollow = _manifold(mesh.vert_properties[:, :3], mesh.tri_verts[:, ::-1])
        around = (k for k, body in enumerate(bodies) if _is_within(hollow, body))
        for k in islice(around, 1):  # the smallest one
            bodies[k] = bodies[k] - hollow
    return Manifold.batch_boolean(bodies, OpType.Add)


def _is_within(inner: "Manifold", outer: "Manifold") -> bool:
    """Tell whether most of a body is in another one."""
    (*low, a, b, c), (*other, p, q, r) = inner.bounding_box(), outer.bounding_box()
    is_in_box = all(map(float.__ge__, low, other)) and all(map(float.__le__, (a, b, c), (p, q, r)))
    return is_in_box and (inner ^ outer).volume() > 0.5 * inner.volume()
