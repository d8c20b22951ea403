"""Triangle meshes as flat arrays: many meshes are cleaned and measured at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spatialq.data.meshes import Meshes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

WELD = 1e-6
"""Metres along each axis; a micrometre is far above rounding and far below any detail."""


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
    is_closed: Booleans
    component_count: Integers
    volume: Floats
    area: Floats

    def take(self, rows: Integers) -> "Measures":
        """Copy those of some of the meshes."""
        return Measures(*(values[rows] for values in vars(self).values()))

    def followed_by(self, other: "Measures") -> "Measures":
        """Append those of other meshes."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Measures(*(np.concatenate(pair) for pair in pairs))


def clean(meshes: Meshes) -> tuple[Meshes, Measures]:
    """Weld, drop what is degenerate, turn the outside out, and measure.

    Dropped are triangles that name a vertex twice or have no area, and vertices that no triangle
    uses. A closed mesh whose signed volume is negative is turned inside out.

    Notes
    -----
    Whether a mesh is closed is decided before triangles without area go: such a sliver may join
    the edges of its neighbours.

    Volumes are sums of signed tetrahedra seen from a vertex of the mesh itself, so coordinates far
    from the origin lose nothing.
    """
    k = len(meshes)
    meshes = drop_repeated_corners(weld_open_edges(drop_repeated_corners(meshes)))
    is_closed = find_closed(meshes)
    meshes = keep_faces(meshes, twice_area(corners(meshes)) > 0)
    meshes = drop_unused_vertices(meshes)

    owner = meshes.face_mesh
    at = corners(meshes)
    # Relative to the first corner of the mesh. Empty meshes are never indexed.
    first = np.zeros((k, 3))
    filled = np.diff(meshes.face_starts) > 0
    first[filled] = at[meshes.face_starts[:-1][filled], 0]
    at -= first[owner][:, None]
    signed = np.einsum("ij,ij->i", at[:, 0], np.cross(at[:, 1], at[:, 2])) / 6.0
    volume = np.bincount(owner, signed, minlength=k).astype(np.float64)
    inverted = is_closed & (volume < 0)
    flip = inverted[owner]
    meshes.faces[flip] = meshes.faces[flip][:, ::-1]
    volume = np.where(is_closed & filled, np.abs(volume), np.nan).astype(np.float64)
    low = np.full((k, 3), np.nan)
    high = np.full((k, 3), np.nan)
    if len(meshes.vertices):
        starts = meshes.vertex_starts[:-1][filled]
        low[filled] = np.minimum.reduceat(meshes.vertices, starts)
        high[filled] = np.maximum.reduceat(meshes.vertices, starts)
    area = np.bincount(owner, twice_area(at) / 2, minlength=k).astype(np.float64)
    return meshes, Measures(low, high, is_closed & filled, count_components(meshes), volume, area)


def corners(meshes: Meshes) -> Floats:
    """Give the coordinates of each face's corners, float64[m, 3, 3]."""
    return np.asarray(meshes.vertices[meshes.global_faces])


def twice_area(at: Floats) -> Floats:
    """Give twice the area of each triangle of corners."""
    sides = np.cross(at[:, 1] - at[:, 0], at[:, 2] - at[:, 0])
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", sides, sides)))


def drop_repeated_corners(meshes: Meshes) -> Meshes:
    """Drop the faces that name a vertex twice."""
    a, b, c = meshes.faces.T
    return keep_faces(meshes, (a != b) & (b != c) & (c != a))


def keep_faces(meshes: Meshes, keep: Booleans) -> Meshes:
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


def edges(meshes: Meshes) -> tuple[Integers, Integers]:
    """Give the ends of each face's three edges, in the order of the face's corners.

    Returns
    -------
    tails, heads : int64[3 * m]
        First the edges from corner 0 to 1 of all faces, then 1 to 2, then 2 to 0.
    """
    faces = meshes.global_faces
    return faces.T.reshape(-1), faces[:, [1, 2, 0]].T.reshape(-1)


def undirected(tails: Integers, heads: Integers) -> Integers:
    """Give one number for an edge and its reverse."""
    span = max(int(tails.max(initial=0)), int(heads.max(initial=0))) + 1
    return np.minimum(tails, heads) * span + np.maximum(tails, heads)


def open_edges(meshes: Meshes) -> Booleans:
    """Mark the edges (see `edges`) that are run through more often one way than the other."""
    tails, heads = edges(meshes)
    _, which = np.unique(undirected(tails, heads), return_inverse=True)
    balance = np.bincount(which, np.where(tails < heads, 1, -1))
    return np.asarray(balance[which] != 0)


def find_closed(meshes: Meshes) -> Booleans:
    """Tell which meshes have faces and no open edge."""
    closed: Booleans = np.diff(meshes.face_starts) > 0
    closed[np.tile(meshes.face_mesh, 3)[open_edges(meshes)]] = False
    return closed


def weld_open_edges(meshes: Meshes) -> Meshes:
    """Make one of vertices at open edges that lie within `WELD` of each other.

    Vertices of one place may differ in their last bits, where a boolean operation met an
    untouched face. Closed parts are left alone, so solids that touch stay apart.
    """
    is_open = open_edges(meshes)
    tails, heads = edges(meshes)
    loose = np.unique(np.concatenate([tails[is_open], heads[is_open]]))
    if not len(loose):
        return meshes
    owner = np.searchsorted(meshes.vertex_starts, loose, side="right") - 1
    groups = np.empty((len(loose), 3), np.int64)
    for axis in range(3):
        at = meshes.vertices[loose, axis]
        order = np.lexsort((at, owner))
        is_new = (np.diff(at[order]) > WELD) | (np.diff(owner[order]) > 0)
        groups[order, axis] = np.concatenate([[0], np.cumsum(is_new)])
    _, first, which = np.unique(groups, axis=0, return_index=True, return_inverse=True)
    stands_for = np.arange(len(meshes.vertices))
    stands_for[loose] = loose[first[which.reshape(-1)]]
    faces = stands_for[meshes.global_faces] - meshes.vertex_starts[meshes.face_mesh, None]
    return Meshes(meshes.vertices, faces.astype(np.int32), meshes.vertex_starts, meshes.face_starts)


def count_components(meshes: Meshes) -> Integers:
    """Count the parts of each mesh that are connected over shared edges."""
    keys = undirected(*edges(meshes))
    order = np.argsort(keys, kind="stable")
    face = order % max(len(meshes.faces), 1)
    same = keys[order[1:]] == keys[order[:-1]]
    one, other = face[1:][same], face[:-1][same]
    # Each face points to a lower face of its part, in the end to the lowest.
    root = np.arange(len(meshes.faces))
    while True:
        here, there = root[one], root[other]
        if (here == there).all():
            break
        np.minimum.at(root, np.maximum(here, there), np.minimum(here, there))
        while True:
            further = root[root]
            if (further == root).all():
                break
            root = further
    is_root = root == np.arange(len(root))
    return np.bincount(meshes.face_mesh[is_root], minlength=len(meshes))
