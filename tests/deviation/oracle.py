"""`deviation` by brute force: every point, every triangle, and the solid angle of every face."""

import numpy as np


def distances(point, triangles):
    """Distances of a point from triangles: the least of the three edges and the face.

    Parameters
    ----------
    point : float64[3]
    triangles : float64[m, 3, 3]

    Returns
    -------
    float64[m]
    """
    a, b, c = np.moveaxis(triangles - point, 1, 0)
    least = np.full(len(triangles), np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        along = end - start
        length = np.einsum("ij,ij->i", along, along)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(length > 0, -np.einsum("ij,ij->i", start, along) / length, 0.0)
        nearest = start + np.clip(share, 0, 1)[:, None] * along
        least = np.minimum(least, np.linalg.norm(nearest, axis=1))
    normal = np.cross(b - a, c - a)
    size = np.linalg.norm(normal, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = normal / size[:, None]
        height = np.einsum("ij,ij->i", a, unit)
        # the foot of the perpendicular is inside if it is to the left of every edge
        foot = height[:, None] * unit
        inside = size > 0
        for start, end in ((a, b), (b, c), (c, a)):
            inside &= np.einsum("ij,ij->i", np.cross(end - start, foot - start), unit) >= 0
    return np.where(inside, np.minimum(least, np.abs(height)), least)


def winding(point, triangles):
    """Generalised winding number of a mesh round a point (Jacobson et al. 2013)."""
    a, b, c = np.moveaxis(triangles - point, 1, 0)
    la, lb, lc = (np.linalg.norm(each, axis=1) for each in (a, b, c))
    above = np.einsum("ij,ij->i", a, np.cross(b, c))
    below = (
        la * lb * lc
        + np.einsum("ij,ij->i", a, b) * lc
        + np.einsum("ij,ij->i", b, c) * la
        + np.einsum("ij,ij->i", c, a) * lb
    )
    return float(np.arctan2(above, below).sum() / (2 * np.pi))


def is_closed(triangles):
    """Whether each edge between two positions is passed equally often in both directions."""
    balance = {}
    for face in (triangles + 0.0).tolist():
        corners = [tuple(each) for each in face]
        for tail, head in zip(corners, corners[1:] + corners[:1], strict=True):
            if tail != head:
                sign = 1 if tail < head else -1
                key = (min(tail, head), max(tail, head))
                balance[key] = balance.get(key, 0) + sign
    return len(triangles) > 0 and not any(balance.values())


def volume(triangles):
    """Volume that faces enclose, negative if they are inside out."""
    a, b, c = np.moveaxis(triangles - triangles.mean(axis=(0, 1)), 1, 0)
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def deviation(points, elements, max_distance):
    """Give the rows of each point: element, face, signed distance, and all faces as near.

    Parameters
    ----------
    points : float64[n, 3]
    elements : list of float64[m, 3, 3]
        The triangles of each element, relative coordinates kept as they are.
    max_distance : float

    Yields
    ------
    element, face : int
        -1 where none is near.
    distance : float
        Signed; NaN where none is near.
    nearest : set of (int, int)
        Elements and faces that are as near, to 1e-9 m.
    """
    everything = np.concatenate([np.empty((0, 3, 3)), *elements])
    owner = np.repeat(np.arange(len(elements)), [len(each) for each in elements])
    starts = np.concatenate([[0], np.cumsum([len(each) for each in elements])])
    closed = [is_closed(each) for each in elements]
    for point in points:
        found = distances(point, everything)
        row = int(np.argmin(found)) if len(found) else -1
        if row < 0 or not found[row] <= max_distance:
            yield -1, -1, np.nan, set()
            continue
        element = int(owner[row])
        ties = np.flatnonzero(found <= found[row] + 1e-9)
        nearest = {(int(owner[k]), int(k - starts[owner[k]])) for k in ties}
        signs = {
            -1 if closed[k] and abs(winding(point, elements[k])) > 0.5 else 1 for k, _ in nearest
        }
        sign = signs.pop() if len(signs) == 1 else np.nan
        yield element, int(row - starts[element]), sign * found[row], nearest
