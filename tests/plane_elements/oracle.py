"""`plane_elements` as slow and obvious code: every point of a plane against every triangle."""

import numpy as np

ROUNDING = 1e-6  # metres


def rows(
    planes, elements, *, max_angle=5.0, max_offset=0.05, min_overlap=0.2, few=10, areas, unit=1.0
):
    """(plane, element or None, nearest, overlap, coverage, angle, deviation), best first.

    Planes are (points, normal), the points in metres; `areas` are theirs, in units squared.
    """
    found = []
    for number, (points, normal) in enumerate(planes):
        on_both = [on_faces(points, normal, mesh, max_angle, max_offset) for mesh in elements]
        heights = [np.minimum(abs(along[0]), abs(against[0])) for along, against in on_both]
        nearest = np.min(heights, axis=0, initial=np.inf)
        matches = []
        for element, (along, against) in enumerate(on_both):
            on = np.isfinite(heights[element])
            if not on.any():
                continue
            nearer = on & (abs(along[0]) <= abs(against[0]))
            is_along = nearer.sum() >= on.sum() - nearer.sum()
            height, outwards, face = along if is_along else against
            share = np.isfinite(height).mean()
            coverage = min(1.0, areas[number] * unit**2 * share / face)
            nearer = nearer if is_along else on & ~nearer
            if on.mean() < min_overlap and (coverage < min_overlap or on.sum() < few):
                continue
            mean = outwards[nearer].sum(axis=0)
            cosine = abs(mean @ normal) / np.linalg.norm(mean)
            matches.append((
                number,
                element,
                np.mean(on & (heights[element] <= nearest + ROUNDING)),
                on.mean(),
                coverage,
                np.degrees(np.arccos(min(1.0, cosine))),
                height[nearer].mean(),
            ))  # fmt: skip
        matches.sort(key=lambda row: (-row[2], -row[3], round(abs(row[6]), 9), row[1]))
        found += matches or [(number, None)]
    return found


def on_faces(points, normal, mesh, max_angle, max_offset):
    """What a plane's points say of the faces that look along its normal, and against it.

    Of each point the height above the nearest such face it lies on (inf: none), and the face's
    normal; and the area of such faces in the plane.
    """
    vertices, faces = mesh
    sides = [[np.full(len(points), np.inf), np.zeros((len(points), 3)), 0.0] for _ in range(2)]
    level = np.mean(points @ normal)
    for face in faces:
        a, b, c = vertices[list(face)]
        across = np.cross(b - a, c - a)
        double = np.linalg.norm(across)
        if double == 0:
            continue
        out = across / double * (-1 if is_inside_out(mesh) else 1)
        if np.degrees(np.arccos(min(1.0, abs(out @ normal)))) > max_angle + 1e-4:
            continue
        side = sides[0 if out @ normal > 0 else 1]
        above = (points - a) @ out
        foot = points - np.outer(above, out)
        here = (abs(above) <= max_offset) & is_inside(foot, a, b, c)
        if here.any() or abs(np.mean([a, b, c], axis=0) @ normal - level) <= max_offset:
            side[2] += double / 2
        nearer = here & (abs(above) < abs(side[0]))
        side[0][nearer], side[1][nearer] = above[nearer], out
    return sides


def is_inside(points, a, b, c):
    """Whether points in the plane of a triangle are in it, by their barycentric coordinates."""
    shares = np.linalg.lstsq(np.stack([b - a, c - a], axis=1), (points - a).T, rcond=None)[0]
    s, t = shares
    return np.min([s, t, 1 - s - t], axis=0) >= -1e-9


def is_inside_out(mesh):
    """Whether a mesh is closed and its volume negative."""
    vertices, faces = mesh
    edges = sorted((face[i - 1], face[i]) for face in faces for i in range(3))
    volume = sum(np.linalg.det(vertices[list(f)] - vertices[faces[0][0]]) for f in faces)
    return edges == sorted((b, a) for a, b in edges) and volume < 0
