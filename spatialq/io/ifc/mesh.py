"""Triangle meshes as flat arrays: many meshes are cleaned and measured at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np

from spatialq.data.meshes import Meshes, spans_of
from spatialq.geometry.connected import connected
from spatialq.runtime.arrays import Bools, Floats, Ints
from spatialq.runtime.threads import workers

Result = TypeVar("Result")

WELD = 1e-6
"""Metres along each axis; a micrometre is far above rounding and far below any detail."""

HOLE = 1e-6
"""Square metres: how large a hole may be that is filled."""

MAX_SIDES = 8
"""How many edges a hole may have that is filled."""

FACES = 1 << 17
"""Faces that are cleaned at once, as sorting more edges takes more than in proportion."""


@dataclass(frozen=True)
class Measures:
    """What is known of each of k meshes.

    Parameters
    ----------
    low, high : float64[k, 3]
        Corners of the bounding boxes; NaN for a mesh without faces.
    is_closed : bool[k]
        Every edge is run through as often in one direction as in the other: no boundary, and
        neighbours agree on what is outside.
    component_count : int64[k]
        How many parts are connected over shared edges.
    volume : float64[k]
        Of what the surface encloses; NaN unless closed.
    area : float64[k]
        Of the surface.
    """

    low: Floats
    high: Floats
    is_closed: Bools
    component_count: Ints
    volume: Floats
    area: Floats

    def take(self, rows: Ints) -> "Measures":
        """Copy those of some of the meshes."""
        return Measures(*(values[rows] for values in vars(self).values()))

    @classmethod
    def joined(cls, parts: "Sequence[Measures]") -> "Measures":
        """Append those of several groups of meshes."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*map(np.concatenate, columns))


@dataclass(frozen=True)
class Edges:
    """The edges of the corners of m faces, in the order of each face's corners.

    Parameters
    ----------
    tails, heads : int64[3 * m]
        Vertices: first the edges from corner 0 to 1 of all faces, then 1 to 2, then 2 to 0.
    order : int64[3 * m]
        Sorts the edges so that those between the same two vertices follow each other.
    starts : int64[e]
        Where the edges between each two vertices begin in that order.
    """

    tails: Ints
    heads: Ints
    order: Ints
    starts: Ints

    @classmethod
    def of(cls, meshes: Meshes) -> "Edges":
        """Find the edges of all faces."""
        faces = meshes.global_faces
        tails, heads = faces.T.reshape(-1), faces[:, [1, 2, 0]].T.reshape(-1)
        keys = np.minimum(tails, heads) * len(meshes.vertices) + np.maximum(tails, heads)
        # Neighbouring faces mostly follow each other: such keys are sorted best by merging.
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        return cls(tails, heads, order, np.flatnonzero(np.diff(keys, prepend=-1)))

    @property
    def counts(self) -> Ints:
        """How many edges there are between each two vertices."""
        return np.diff(self.starts, append=len(self.order))

    def all_between(self, of_pairs: Bools) -> Ints:
        """Give the edges between the pairs of vertices that are marked."""
        return self.order[np.repeat(of_pairs, self.counts)]

    @property
    def faces(self) -> Ints:
        """The face that each edge belongs to."""
        return np.tile(np.arange(len(self.tails) // 3), 3)

    def open(self) -> Ints:
        """Give the edges that are run through more often one way than the other."""
        if not len(self.order):
            return self.order
        ways = np.where(self.tails < self.heads, 1, -1)[self.order]
        return self.all_between(np.add.reduceat(ways, self.starts) != 0)

    def sides(self) -> tuple[Ints, Ints]:
        """Give the pairs of edges that lie between the same two vertices, if these are just two."""
        first = self.starts[self.counts == 2]
        return self.order[first], self.order[first + 1]


def clean(meshes: Meshes, *, weld: float = WELD, fill: bool = False) -> tuple[Meshes, Measures]:
    """Weld, drop what is degenerate, turn the outside out, and measure.

    Dropped are triangles that name a vertex twice or have no area, and vertices that no triangle
    uses. A closed mesh whose signed volume is negative is turned inside out.

    Parameters
    ----------
    meshes : Meshes
    weld : float
        Metres along each axis within which vertices at open edges become one.
    fill : bool
        Whether holes are filled, see `fill_holes`.

    Notes
    -----
    Whether a mesh is closed is decided before triangles without area go: such a sliver may join
    the edges of its neighbours.

    Volumes are sums of signed tetrahedra seen from a vertex of the mesh itself, so coordinates far
    from the origin lose nothing.
    """
    parts = in_parts(meshes, partial(_clean, weld=weld, fill=fill))
    if not parts:
        return measure(meshes, Edges.of(meshes))
    return Meshes.joined([part for part, _ in parts]), Measures.joined([m for _, m in parts])


def _clean(meshes: Meshes, weld: float, *, fill: bool) -> tuple[Meshes, Measures]:
    meshes = drop_repeated_corners(meshes)
    edges = Edges.of(meshes)
    if len(edges.open()):
        meshes = drop_repeated_corners(weld_open_edges(meshes, edges, weld))
        if fill:
            meshes = fill_holes(meshes)
        edges = Edges.of(meshes)
    return measure(meshes, edges)


def measure(meshes: Meshes, edges: Edges) -> tuple[Meshes, Measures]:
    """Drop what has no area, turn the outside out, and measure; see `clean`."""
    k = len(meshes)
    is_closed = np.diff(meshes.face_starts) > 0
    is_closed[meshes.face_mesh[edges.faces[edges.open()]]] = False
    kept = drop_unused_vertices(keep_faces(meshes, twice_area(corners(meshes)) > 0))
    if kept is not meshes:
        meshes, edges = kept, Edges.of(kept)

    owner = meshes.face_mesh
    at = corners(meshes)
    # Relative to the first corner of the mesh. Empty meshes are never indexed.
    first = np.zeros((k, 3))
    filled = np.diff(meshes.face_starts) > 0
    first[filled] = at[meshes.face_starts[:-1][filled], 0]
    at -= first[owner][:, None]
    volume = np.bincount(owner, signed_volumes(at), minlength=k).astype(np.float64)
    flipped = turned(meshes, (is_closed & (volume < 0))[owner])
    volume = np.where(is_closed & filled, np.abs(volume), np.nan).astype(np.float64)
    low = np.full((k, 3), np.nan)
    high = np.full((k, 3), np.nan)
    if len(meshes.vertices):
        starts = meshes.vertex_starts[:-1][filled]
        low[filled] = np.minimum.reduceat(meshes.vertices, starts)
        high[filled] = np.maximum.reduceat(meshes.vertices, starts)
    area = np.bincount(owner, twice_area(at) / 2, minlength=k).astype(np.float64)
    components = count_components(meshes, edges)
    return flipped, Measures(low, high, is_closed & filled, components, volume, area)


def corners(meshes: Meshes) -> Floats:
    """Give the coordinates of each face's corners, float64[m, 3, 3]."""
    return np.asarray(meshes.vertices[meshes.global_faces])


def twice_area(at: Floats) -> Floats:
    """Give twice the area of each triangle of corners."""
    sides = np.cross(at[:, 1] - at[:, 0], at[:, 2] - at[:, 0])
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", sides, sides)))


def signed_volumes(at: Floats) -> Floats:
    """Give the volume of the tetrahedron of each triangle of corners and the origin."""
    return np.asarray(np.einsum("ij,ij->i", at[:, 0], np.cross(at[:, 1], at[:, 2])) / 6.0)


def turned(meshes: Meshes, flip: Bools) -> Meshes:
    """Turn some of the faces."""
    faces = np.where(flip[:, None], meshes.faces[:, ::-1], meshes.faces)
    return Meshes(meshes.vertices, faces, meshes.vertex_starts, meshes.face_starts)


def drop_repeated_corners(meshes: Meshes) -> Meshes:
    """Drop the faces that name a vertex twice."""
    a, b, c = meshes.faces.T
    return keep_faces(meshes, (a != b) & (b != c) & (c != a))


def keep_faces(meshes: Meshes, keep: Bools) -> Meshes:
    """Keep some faces and all vertices."""
    if keep.all():
        return meshes
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    starts = kept_before[meshes.face_starts]
    return Meshes(meshes.vertices, meshes.faces[keep], meshes.vertex_starts, starts)


def drop_unused_vertices(meshes: Meshes) -> Meshes:
    """Keep the vertices that a face names, in their order."""
    faces = meshes.global_faces
    used = np.zeros(len(meshes.vertices), bool)
    used[faces] = True
    if used.all():
        return meshes
    used_before = np.concatenate([[0], np.cumsum(used)])
    starts = used_before[meshes.vertex_starts]
    local = used_before[faces] - starts[meshes.face_mesh, None]
    return Meshes(meshes.vertices[used], local.astype(np.int32), starts, meshes.face_starts)


def weld_open_edges(meshes: Meshes, edges: Edges, weld: float) -> Meshes:
    """Make one of vertices at open edges that lie within `weld` of each other.

    Vertices of one place may differ in their last bits, where a boolean operation met an
    untouched face. Closed parts are left alone, so solids that touch stay apart.
    """
    is_open = edges.open()
    loose = np.unique(np.concatenate([edges.tails[is_open], edges.heads[is_open]]))
    if not len(loose):
        return meshes
    owner = np.searchsorted(meshes.vertex_starts, loose, side="right") - 1
    groups = np.empty((len(loose), 3), np.int64)
    for axis in range(3):
        at = meshes.vertices[loose, axis]
        order = np.lexsort((at, owner))
        is_new = (np.diff(at[order]) > weld) | (np.diff(owner[order]) > 0)
        groups[order, axis] = np.concatenate([[0], np.cumsum(is_new)])
    _, first, which = np.unique(groups, axis=0, return_index=True, return_inverse=True)
    stands_for = np.arange(len(meshes.vertices))
    stands_for[loose] = loose[first[which.reshape(-1)]]
    faces = stands_for[meshes.global_faces] - meshes.vertex_starts[meshes.face_mesh, None]
    return Meshes(meshes.vertices, faces.astype(np.int32), meshes.vertex_starts, meshes.face_starts)


def fill_holes(meshes: Meshes) -> Meshes:
    """Fill the holes of at most `MAX_SIDES` edges that are smaller than `HOLE`.

    A tessellator may drop a triangle that is too small for it, and one without area between two
    edges and a longer one.
    """
    edges = Edges.of(meshes)
    alone = edges.all_between(edges.counts == 1)
    # Round the hole the faces' edges run from `following[v]` to v.
    following = np.full(len(meshes.vertices), -1)
    following[edges.heads[alone]] = edges.tails[alone]
    forks = np.bincount(edges.heads[alone], minlength=len(following)) > 1
    following[forks] = -1
    loop = [np.flatnonzero(following >= 0)]
    added = []
    for _ in range(MAX_SIDES):
        ahead = np.where(loop[-1] >= 0, following[loop[-1]], -1)
        is_round = ahead == loop[0]
        if len(loop) > 2 and is_round.any():
            corner = np.column_stack([column[is_round] for column in loop])
            corner = corner[corner[:, 0] == corner.min(axis=1)]  # each hole once
            fans = np.stack(
                [corner[:, [0, side, side + 1]] for side in range(1, corner.shape[1] - 1)], axis=1
            )
            sizes = twice_area(meshes.vertices[fans.reshape(-1, 3)]).reshape(fans.shape[:2]) / 2
            faces = fans[sizes.sum(axis=1) <= HOLE].reshape(-1, 3)
            added.append(faces)
        loop = [column[~is_round] for column in (*loop, ahead)]
    faces = np.concatenate([np.empty((0, 3), np.int64), *added])
    if not len(faces):
        return meshes
    owner = np.searchsorted(meshes.vertex_starts, faces[:, 0], side="right") - 1
    every = np.concatenate([meshes.faces, faces - meshes.vertex_starts[owner, None]])
    owners = np.concatenate([meshes.face_mesh, owner])
    starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(meshes)))])
    order = np.argsort(owners, kind="stable")
    return Meshes(meshes.vertices, every[order].astype(np.int32), meshes.vertex_starts, starts)


def orient(meshes: Meshes, measures: Measures) -> tuple[Meshes, Measures, Bools]:
    """Make neighbours agree on what is outside, and turn each closed part outside out.

    A part is connected over edges of just two faces.

    Parameters
    ----------
    meshes : Meshes
    measures : Measures
        Of these meshes.

    Returns
    -------
    meshes : Meshes
    measures : Measures
    has_boundary : bool[k]
        Whether an edge has an odd number of faces, so that no orientation makes the mesh closed.
    """
    parts = in_parts(meshes, _orient)
    turned, is_closed, volume, has_boundary = zip(*parts, strict=True) if parts else 4 * [()]
    if not parts:
        return meshes, measures, measures.is_closed
    measures = replace(measures, is_closed=np.concatenate(is_closed), volume=np.concatenate(volume))
    return Meshes.joined(turned), measures, np.concatenate(has_boundary)


def _orient(meshes: Meshes) -> tuple[Meshes, Bools, Floats, Bools]:
    k, m = len(meshes), len(meshes.faces)
    edges = Edges.of(meshes)
    faces = edges.faces
    one, other = edges.sides()
    against = edges.tails[one] == edges.tails[other]
    # Each face twice: as it is, 2 f, and turned, 2 f + 1. Sides that fit together are connected.
    one, other = 2 * faces[one], 2 * faces[other]
    root = connected(
        2 * m,
        np.concatenate([one, one + 1]),
        np.concatenate([other + against, other + 1 - against]),
    )[::2]
    part, flip = root // 2, root % 2 == 1

    # A part is open where an edge is, or where it meets others and is not balanced in itself.
    ways = np.where((edges.tails < edges.heads) ^ flip[faces], 1, -1)
    is_open = np.zeros(m, bool)
    is_open[part[faces[edges.all_between(edges.counts == 1)]]] = True
    first, second = edges.sides()
    is_open[part[faces[first[ways[first] == ways[second]]]]] = True
    crowded = edges.all_between(edges.counts > 2)
    between = np.repeat(np.arange(len(edges.starts)), np.where(edges.counts > 2, edges.counts, 0))
    if len(crowded):
        of_part = part[faces[crowded]]
        order = np.lexsort((of_part, between))
        starts = np.flatnonzero(
            np.diff(between[order], prepend=-1) | np.diff(of_part[order], prepend=-1)
        )
        balance = np.add.reduceat(ways[crowded[order]], starts)
        is_open[of_part[order[starts[balance != 0]]]] = True

    at = corners(meshes)
    at -= at[meshes.face_starts[meshes.face_mesh], 0][:, None]
    volumes = np.where(flip, -1, 1) * signed_volumes(at)
    inverted = (np.bincount(part, volumes, minlength=m) < 0) & ~is_open
    flip ^= inverted[part]
    volumes[inverted[part]] *= -1

    ways[inverted[part[faces]]] *= -1
    is_closed = np.ones(k, bool)
    has_boundary = np.zeros(k, bool)
    if m:
        balance = np.add.reduceat(ways[edges.order], edges.starts)
        is_closed[meshes.face_mesh[faces[edges.all_between(balance != 0)]]] = False
        has_boundary[meshes.face_mesh[faces[edges.all_between(edges.counts % 2 == 1)]]] = True
    volume = np.bincount(meshes.face_mesh, volumes, minlength=k)
    return turned(meshes, flip), is_closed, np.where(is_closed, volume, np.nan), has_boundary


def winding(meshes: Meshes, points: Floats, rows: Ints) -> Floats:
    """Tell how often a mesh goes round a point: 0 outside, 1 inside of a closed mesh.

    Parameters
    ----------
    meshes : Meshes
    points : float64[n, 3]
    rows : int64[n]
        Which mesh each point is compared with.
    """
    found = np.zeros(len(points))
    faces = meshes.global_faces
    counts = np.diff(meshes.face_starts)[rows]
    ends = np.cumsum(counts)
    bounds = np.searchsorted(ends, np.arange(0, counts.sum(), FACES))
    for start, stop in pairwise([*np.unique(bounds).tolist(), len(points)]):
        of_faces, _ = spans_of(meshes.face_starts, rows[start:stop])
        owner = np.repeat(np.arange(start, stop), counts[start:stop])
        at = meshes.vertices[faces[of_faces]] - points[owner][:, None]
        angles = solid_angles(at)
        found += np.bincount(owner, angles, minlength=len(points))
    return found / (4 * np.pi)


def solid_angles(at: Floats) -> Floats:
    """Give the signed solid angle of each triangle of corners, seen from the origin.

    After Van Oosterom and Strackee (1983).
    """
    a, b, c = at[:, 0], at[:, 1], at[:, 2]
    size_a, size_b, size_c = np.sqrt(np.einsum("ijk,ijk->ji", at, at))
    below = (
        size_a * size_b * size_c
        + np.einsum("ij,ij->i", a, b) * size_c
        + np.einsum("ij,ij->i", b, c) * size_a
        + np.einsum("ij,ij->i", c, a) * size_b
    )
    return np.asarray(2 * np.arctan2(6 * signed_volumes(at), below))


def in_parts(meshes: Meshes, work: Callable[[Meshes], Result]) -> list[Result]:
    """Do some work for all meshes, in threads for groups of them of about `FACES` faces."""
    bounds = np.searchsorted(meshes.face_starts, np.arange(0, meshes.face_starts[-1], FACES))
    spans = pairwise([*np.unique(bounds).tolist(), len(meshes)])
    parts = [np.arange(start, stop) for start, stop in spans]
    if len(parts) <= 1:
        return [work(meshes)] if parts else []
    with workers() as pool:
        return pool.map(lambda rows: work(meshes.take(rows)), parts)


def count_components(meshes: Meshes, edges: Edges) -> Ints:
    """Count the parts of each mesh that are connected over shared edges."""
    root = components(meshes, edges)
    is_root = root == np.arange(len(root))
    return np.bincount(meshes.face_mesh[is_root], minlength=len(meshes))


def components(meshes: Meshes, edges: Edges) -> Ints:
    """Give the first face of the part that each face belongs to, connected over shared edges."""
    face = edges.faces[edges.order]
    same = np.ones(len(face), bool)
    same[edges.starts] = False
    after = np.flatnonzero(same)
    found: Ints = connected(len(meshes.faces), face[after], face[after - 1])
    return found


def separated(meshes: Meshes) -> Meshes:
    """Make a mesh of each part of one mesh."""
    _, part = np.unique(components(meshes, Edges.of(meshes)), return_inverse=True)
    order = np.argsort(part, kind="stable")
    faces = meshes.faces[order]
    face_starts = np.concatenate([[0], np.cumsum(np.bincount(part))])
    vertex_starts = 3 * face_starts
    corners_of_part = (
        np.arange(3 * len(faces)).reshape(-1, 3)
        - np.repeat(vertex_starts[:-1], np.diff(face_starts))[:, None]
    )
    return Meshes(
        meshes.vertices[faces.reshape(-1)],
        corners_of_part.astype(np.int32),
        vertex_starts,
        face_starts,
    )
