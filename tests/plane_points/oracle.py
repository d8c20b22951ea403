"""The plane of a point, by trying all that were detected; nothing of spatialq's."""

import struct
from itertools import pairwise


def ring_of(wkb):
    """Corners of a polygon with heights, the first once more at the end."""
    order, kind, rings, corners = struct.unpack_from("<BIII", wkb)
    assert (order, kind, rings) == (1, 1003, 1)
    return list(struct.iter_unpack("<3d", wkb[13 : 13 + 24 * corners]))


def depth(ring, normal, point):
    """How far inside a convex ring a point is, seen along the normal; negative beside it."""
    sides = []
    for (px, py, pz), (qx, qy, qz) in pairwise(ring):
        ex, ey, ez = qx - px, qy - py, qz - pz
        vx, vy, vz = point[0] - px, point[1] - py, point[2] - pz
        cross = ey * vz - ez * vy, ez * vx - ex * vz, ex * vy - ey * vx
        length = (ex * ex + ey * ey + ez * ez) ** 0.5
        sides.append(sum(c * n for c, n in zip(cross, normal, strict=True)) / length)
    # the orientation of a ring is not defined
    return max(min(sides), -max(sides))


def plane_points(points, planes, max_distance, slack):
    """Give point_id -> {plane_id: distance}: the planes that it may be of, None for none.

    That is the nearest of those whose boundary holds it, and nearer ones that it is at the edge
    of: a boundary has few corners, and where the points of a plane end it says only so far.

    planes: (plane_id, (nx, ny, nz), d, wkb); slack: half the width of an edge
    """
    rings = [ring_of(wkb) for *_, wkb in planes]
    result = {}
    for point_id, *place in points:
        near = []
        for (plane_id, normal, d, _), ring in zip(planes, rings, strict=True):
            distance = sum(n * c for n, c in zip(normal, place, strict=True)) - d
            if abs(distance) <= max_distance:
                inside = depth(ring, normal, place)
                if inside > -slack:
                    near.append((abs(distance), plane_id, distance, inside > slack))
        result[point_id] = {}
        for _, plane_id, distance, is_sure in sorted(near):
            result[point_id][plane_id] = distance
            if is_sure:
                break
        else:
            result[point_id][None] = None
    return result
