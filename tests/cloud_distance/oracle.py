"""`cloud_distance` by NumPy, point by point, from the definitions of Lague, Brodu, Leroux 2013."""

import numpy as np


def nearest(points, others):
    """Give the row of the nearest of others, the first of equals, and its distance."""
    apart = np.linalg.norm(points[:, None] - others[None], axis=2)
    rows = apart.argmin(axis=1)
    return rows, apart[np.arange(len(points)), rows]


def normal_of(points, at, radius):
    """Give the normal of the points within a radius of one, upwards; None of fewer than three."""
    local = points - points[at]
    local = local[np.linalg.norm(local, axis=1) <= radius]
    if len(local) < 3:
        return None
    values, vectors = np.linalg.eigh(np.cov(local.T, bias=True))
    if values[1] <= 1e-12 * values[2]:
        return None
    normal = vectors[:, 0]
    return -normal if normal[2] < 0 else normal


def in_cylinder(points, centre, normal, radius, length):
    """Give the positions along the axis of the points in a cylinder."""
    local = points - centre
    along = local @ normal
    beside = np.linalg.norm(local - along[:, None] * normal, axis=1)
    return along[(np.abs(along) <= length) & (beside <= radius)]


def m3c2(points, others, at, normal, radius, length, registration=0.0):
    """Give distance, both counts, both spreads and the level of detection at one point."""
    own = in_cylinder(points, points[at], normal, radius, length)
    far = in_cylinder(others, points[at], normal, radius, length)
    distance = own.mean() - far.mean() if len(own) and len(far) else np.nan
    spreads = [part.std(ddof=1) if len(part) > 1 else np.nan for part in (own, far)]
    detection = np.nan
    if min(len(own), len(far)) >= 5:
        error = spreads[0] ** 2 / len(own) + spreads[1] ** 2 / len(far)
        detection = 1.96 * (np.sqrt(error) + registration)
    return distance, len(own), len(far), *spreads, detection
