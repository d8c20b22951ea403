"""The plane of a point, by trying all that were detected; nothing of spatialq's."""

import struct
from itertools import pairwise


def ring_of(wkb):
    """Corners of a polygon with heights, the first once more at the end."""
    order, kind, rings, corners = struct.unpack_from("<BIII", wkb)
    assert (order, kind, rings) == (1, 1003, 1)
    return list(struct.iter_unpack("<3d", wkb[13 : 13 + 24 * corners]))


def is_within(ring, normal, point, slack):
    """Whether a point, seen along the normal, lies in a convex ring or that little beside it."""
    sides = []
    for (px, py, pz), (qx, qy, qz) in pairwise(ring):
        ex, ey, ez = qx - px, qy - py, qz - pz
        vx, vy, vz = point[0] - px, point[1] - py, point[2] - pz
        cross = ey * vz - ez * vy, ez * vx - ex * vz, ex * vy - ey * vx
        length = (ex * ex + ey * ey + ez * ez) ** 0.5
        sides.append(sum(c * n for c, n in zip(cross, normal, strict=True)) / (length or 1.0))
    return min(sides) >= -slack or max(sides) <= slack


def plane_points(points, planes, max_distance, slack=1e-6):
    """Give point_id -> (plane_id, distance): the nearest plane whose boundary holds the point.

    planes: (plane_id, (nx, ny, nz), d, wkb); slack: beside a boundary, of a corner of the hull.
    """
    rings = [ring_of(wkb) for *_, wkb in planes]
    result = {}
    for point_id, *place in points:
        best = None, None
        for (plane_id, normal, d, _), ring in zip(planes, rings, strict=True):
            distance = sum(n * c for n, c in zip(normal, place, strict=True)) - d
            nearer = (
                abs(distance) <= max_distance if best[0] is None else abs(distance) < abs(best[1])
            )
            if nearer and is_within(ring, normal, place, slack):
                best = plane_id, distance
        result[point_id] = best
    return result
