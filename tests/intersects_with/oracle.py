"""Relations, depths and distances of solids by other means; imports nothing of ours.

Boxes along the axes by interval arithmetic; convex bodies by linear programming over their
half-spaces; any closed meshes by manifold3d's boolean volumes, and the ball that fits into their
common part by sampling it densely.
"""

import manifold3d
import numpy as np
from scipy.optimize import linprog

CONVERSE = {
    "disjoint": "disjoint",
    "touch": "touch",
    "overlap": "overlap",
    "contains": "inside",
    "inside": "contains",
    "covers": "covered_by",
    "covered_by": "covers",
    "equals": "equals",
}

INTERIOR = ("overlap", "contains", "inside", "covers", "covered_by", "equals")
"""The relations of two elements with a common interior."""


def named(*, contact, a_out, b_out):
    """Name the relation of two solids with a common interior."""
    if a_out and b_out:
        return "overlap"
    if a_out:
        return "covers" if contact else "contains"
    if b_out:
        return "covered_by" if contact else "inside"
    return "equals"


# boxes: low x y z, high x y z


def box_relation(a, b, tolerance):
    """Relation of two boxes, none of whose faces are nearly `tolerance` apart."""
    (low_a, high_a), (low_b, high_b) = np.reshape(a, (2, 3)), np.reshape(b, (2, 3))
    common = np.minimum(high_a, high_b) - np.maximum(low_a, low_b)
    if (common > tolerance).all():
        gaps = np.concatenate([low_b - low_a, high_a - high_b])
        return named(
            contact=bool((np.abs(gaps) <= tolerance).any()),
            a_out=bool((gaps > tolerance).any()),
            b_out=bool((-gaps > tolerance).any()),
        )
    gap = np.linalg.norm(np.maximum(-common, 0))
    return "touch" if gap <= tolerance else "disjoint"


def box_depth(a, b):
    (low_a, high_a), (low_b, high_b) = np.reshape(a, (2, 3)), np.reshape(b, (2, 3))
    return max(0.0, float((np.minimum(high_a, high_b) - np.maximum(low_a, low_b)).min()))


# convex bodies


def face_planes(mesh):
    """Outward unit normals and corners of the faces that have an area."""
    corners = mesh[0][mesh[1]]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1)
    corners, normals = corners[lengths > 0], normals[lengths > 0] / lengths[lengths > 0, None]
    return normals, corners


def half_spaces(mesh):
    """Outward unit normals and offsets: the body is where normal . x <= offset."""
    normals, corners = face_planes(mesh)
    return normals, np.einsum("ij,ij->i", normals, corners[:, 0])


def convex_depth(a, b):
    """Diameter of the largest ball in both of two convex bodies; negative when there is none."""
    normals, offsets = map(np.concatenate, zip(half_spaces(a), half_spaces(b), strict=True))
    rows = np.column_stack([normals, np.ones(len(normals))])
    best = linprog([0, 0, 0, -1], A_ub=rows, b_ub=offsets, bounds=[(None, None)] * 4)
    assert best.status == 0, best.message
    return 2 * float(best.x[3])


def convex_penetration(a, b):
    """Largest distance, over the common part of two convex bodies, to the surface of either."""
    (normals_a, offsets_a), (normals_b, offsets_b) = half_spaces(a), half_spaces(b)
    normals, offsets = (
        np.concatenate([normals_a, normals_b]),
        np.concatenate([offsets_a, offsets_b]),
    )
    found = []
    for of_a in (1.0, 0.0):
        which = np.r_[np.full(len(normals_a), of_a), np.full(len(normals_b), 1 - of_a)]
        rows = np.column_stack([normals, which])
        best = linprog([0, 0, 0, -1], A_ub=rows, b_ub=offsets, bounds=[(None, None)] * 4)
        assert best.status == 0, best.message
        found.append(float(best.x[3]))
    return max(found)


# any closed meshes


def surface_distances(points, mesh):
    """Distance of each point from the nearest triangle of a mesh."""
    found = np.full(len(points), np.inf)
    for a, b, c in mesh[0][mesh[1]]:
        u, v, p = b - a, c - a, points - a
        uu, uv, vv, pu, pv = u @ u, u @ v, v @ v, p @ u, p @ v
        whole = uu * vv - uv * uv
        if whole > 0:
            s, t = (vv * pu - uv * pv) / whole, (uu * pv - uv * pu) / whole
            above = (s >= 0) & (t >= 0) & (s + t <= 1)
            height = np.abs(p @ (np.cross(u, v) / np.sqrt(whole)))
            found = np.where(above, np.minimum(found, height), found)
        for start, end in ((a, b), (b, c), (c, a)):
            along, q = end - start, points - start
            length = along @ along
            share = np.clip(q @ along / length, 0, 1) if length > 0 else np.zeros(len(points))
            found = np.minimum(found, np.linalg.norm(q - share[:, None] * along, axis=1))
    return found


def are_inside(points, mesh):
    """Whether points are inside a closed mesh, by the sum of the solid angles of its faces."""
    total = np.zeros(len(points))
    for corners in mesh[0][mesh[1]]:
        a, b, c = corners[:, None] - points
        la, lb, lc = (np.linalg.norm(each, axis=1) for each in (a, b, c))
        upper = np.einsum("ij,ij->i", a, np.cross(b, c))
        ab, bc, ca = (np.einsum("ij,ij->i", p, q) for p, q in ((a, b), (b, c), (c, a)))
        total += 2 * np.arctan2(upper, la * lb * lc + ab * lc + bc * la + ca * lb)
    return np.abs(total) > 2 * np.pi


def sampled_penetration(a, b, rng, n=3000):
    """A bound from below of the penetration: of points of the common part the farthest one."""
    common = mesh_of(solid(a) ^ solid(b))
    low, high = common[0].min(axis=0), common[0].max(axis=0)
    corners = common[0][common[1]]
    sizes = np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    chosen = corners[rng.choice(len(corners), n, p=sizes / sizes.sum())]
    on_surface = np.einsum("ij,ijk->ik", rng.dirichlet([1, 1, 1], n), chosen)
    anywhere = rng.uniform(low, high, (n, 3))
    points = np.concatenate([common[0], on_surface, anywhere[are_inside(anywhere, common)]])

    def reach(points):
        return np.maximum(surface_distances(points, a), surface_distances(points, b))

    found = reach(points)
    step = (high - low).max() / 20
    for _ in range(12):  # the best ones move on
        best = points[np.argsort(found)[-10:]]
        moved = np.repeat(best, 20, axis=0) + rng.normal(0, step, (200, 3))
        moved = moved[are_inside(moved, common)]
        points, found = np.concatenate([best, moved]), np.concatenate([reach(best), reach(moved)])
        step *= 0.6
    return float(found.max())


def solid(mesh):
    vertices, faces = mesh
    made = manifold3d.Manifold(
        manifold3d.Mesh64(
            np.ascontiguousarray(vertices, np.float64), np.ascontiguousarray(faces, np.uint64)
        )
    )
    assert made.status() == manifold3d.Error.NoError, made.status()
    return made


def mesh_of(body):
    made = body.to_mesh64()
    return made.vert_properties[:, :3].copy(), made.tri_verts.astype(np.int64)


def is_thick(body, tolerance):
    """Whether a boolean result is a part, by the rules of the golden labels; None: hard to say."""
    if body.is_empty():
        return False
    bounds = np.reshape(body.bounding_box(), (2, 3))
    thickness = 2 * body.volume() / body.surface_area()
    if min(bounds[1] - bounds[0]) >= 2 * tolerance and thickness >= tolerance:
        return True
    return False if thickness < tolerance / 100 else None


def gap(a, b, limit):
    """Least distance of the surfaces of two bodies without a common part, up to a limit."""
    return a.min_gap(b, limit)


def relation(a, b, tolerance=0.001):
    """Relation of two closed meshes, or None where it hangs on less than the tolerance."""
    middle = np.vstack([a[0], b[0]]).mean(axis=0)
    one, other = (solid((vertices - middle, faces)) for vertices, faces in (a, b))
    common = is_thick(one ^ other, tolerance)
    if common is None:
        return None
    if not common:
        distance = gap(one, other, 3 * tolerance)
        if distance <= tolerance / 10:
            return "touch"
        return "disjoint" if distance >= 2 * tolerance else None
    a_out, b_out = is_thick(one - other, tolerance), is_thick(other - one, tolerance)
    if a_out is None or b_out is None:
        return None
    if a_out and b_out:
        return "overlap"
    outer, inner = (one, other) if a_out else (other, one)
    bounds = np.reshape(outer.bounding_box(), (2, 3))
    around = manifold3d.Manifold.cube(bounds[1] - bounds[0] + 2).translate(bounds[0] - 1)
    distance = gap(around - outer, inner, 3 * tolerance)
    if tolerance / 10 < distance < 2 * tolerance:
        return None
    return named(contact=distance <= tolerance / 10, a_out=a_out, b_out=b_out)


def common_part(a, b):
    """The common part of two closed meshes, as a mesh."""
    return mesh_of(solid(a) ^ solid(b))


def winding(mesh, points):
    """How often a closed surface goes around each point: 1 inside, 0 outside (van Oosterom)."""
    corners = mesh[0][mesh[1]][None] - points[:, None, None]
    a, b, c = corners[:, :, 0], corners[:, :, 1], corners[:, :, 2]
    la, lb, lc = (np.linalg.norm(each, axis=2) for each in (a, b, c))
    above = np.einsum("pti,pti->pt", a, np.cross(b, c))
    below = (
        la * lb * lc
        + np.einsum("pti,pti->pt", a, b) * lc
        + np.einsum("pti,pti->pt", b, c) * la
        + np.einsum("pti,pti->pt", c, a) * lb
    )
    return np.arctan2(above, below).sum(axis=1) / (2 * np.pi)


def to_surface(mesh, points):
    """Distance of each point to the nearest triangle: to its plane above it, else to its edges."""
    normals, corners = face_planes(mesh)
    from_corner = points[:, None] - corners[None, :, 0]
    best = np.abs(np.einsum("pti,ti->pt", from_corner, normals))
    beside = np.zeros(best.shape, bool)
    edges = np.full(best.shape, np.inf)
    for k in range(3):
        start, along = corners[:, k], corners[:, (k + 1) % 3] - corners[:, k]
        offset = points[:, None] - start[None]
        beside |= np.einsum("pti,ti->pt", offset, np.cross(normals, along)) < 0
        square = np.einsum("ti,ti->t", along, along)
        t = np.clip(np.einsum("pti,ti->pt", offset, along) / square, 0, 1)
        nearest = np.linalg.norm(offset - t[:, :, None] * along[None], axis=2)
        edges = np.minimum(edges, nearest)
    return np.where(beside, edges, best).min(axis=1)


def sampled_depth(mesh, rounds=12):
    """Diameter of the largest ball in a closed mesh, from below.

    Starts in a lattice, and at all depths below the middles and corners of the faces; then looks
    around the best points in ever smaller steps.
    """
    low, high = mesh[0].min(axis=0), mesh[0].max(axis=0)
    cell = (high - low) / 8
    axes = [np.arange(8) + 0.5] * 3
    lattice = low + cell * np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    normals, corners = face_planes(mesh)
    tops, inward = corners.mean(axis=1), -normals
    places, place = np.unique(corners.reshape(-1, 3).round(9), axis=0, return_inverse=True)
    at_places = np.column_stack([place.ravel(), np.repeat(inward, 3, axis=0).round(6)])
    at_places = np.unique(at_places, axis=0)  # one for each plane, however many faces lie in it
    slopes = np.zeros_like(places)
    np.add.at(slopes, at_places[:, 0].astype(int), at_places[:, 1:])
    tops, inward = np.concatenate([tops, places]), np.concatenate([inward, slopes])
    depths = 0.7 ** np.arange(1, 25) * (high - low).max()
    below = tops[:, None] + depths[:, None] * inward[:, None]
    points = np.concatenate([lattice, below.reshape(-1, 3)])
    around = np.stack(np.meshgrid(*[[-1, 0, 1]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    for _ in range(rounds):
        radius = np.where(winding(mesh, points) > 0.5, to_surface(mesh, points), 0)
        keep = np.argsort(-radius)[:16]
        points, cell = (points[keep][:, None] + cell * around).reshape(-1, 3), cell / 2
    return 2 * float(radius.max())
