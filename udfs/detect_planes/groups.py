"""Group nodes into planes: each peak of the accumulator, in order, takes the nodes that agree.

A peak is a cell that is some degrees wide. Its plane is fitted to the merged moments of all nodes
that agree with it, and these are selected again by the new plane until they do not change. A node
belongs to one plane only, so that duplicates of a peak, antipodal ones included, and the ridges
around it find no nodes.
"""

from math import sqrt

import numpy as np

from spatialq.geometry.eigen import eigen
from spatialq.runtime.compile_cache import njit

ROUNDS = 8
"""Maximum number of times that the nodes of a plane are selected again."""

WIDE = 1.5
"""Maximum angle between a peak and the normals of its first nodes, in cells of the ball."""

SEEDS = 3
"""Number of single nodes near a peak that are tried as seeds, the most precise first, if all
nodes near the peak together do not give a plane."""

SAME = 3.0
"""Standard deviations of a plane within which other planes are the same plane: the border of a
cell may cut off only a tail of its noise."""

SURE = np.radians(4.0)
"""Angle within which normals always agree, however precise they are; the two sides of a low roof
differ by more."""

NOISES = 2.0
"""Maximum distance of a node's centre from the plane, in standard deviations of its points."""


BENT = np.radians(10.0)
"""Maximum angle between planes that are parts of one bent surface."""

BEND = 3.0
"""Maximum distance of the nodes of a bent surface from its plane, root mean square, in standard
deviations of the points of a node."""

BESIDE = 0.9
"""Two nodes are beside each other if their centres are closer than BESIDE times the sum of their
sides."""

SMOOTH = 0.7
"""Minimum share of the pairs of nodes beside each other at which a bent surface is continuous."""

FREE, EXPLAINED = -1, -2
"""Owners of nodes that belong to no plane."""


@njit(cache=True, nogil=True, error_model="numpy")
def merged(weights, means, covariances, chosen, plane, values, vectors):
    """Fit a plane to the merged moments of nodes.

    Parameters
    ----------
    weights : float64[nodes]
    chosen : int32[]
        Nodes.
    plane : float64[4]
        Out: normal and offset.
    """
    n = x = y = z = 0.0
    for k in chosen:
        c = weights[k]
        n += c
        x += c * means[k, 0]
        y += c * means[k, 1]
        z += c * means[k, 2]
    x, y, z = x / n, y / n, z / n
    xx = xy = xz = yy = yz = zz = 0.0
    for k in chosen:
        c = weights[k]
        dx, dy, dz = means[k, 0] - x, means[k, 1] - y, means[k, 2] - z
        xx += c * (covariances[k, 0] + dx * dx)
        xy += c * (covariances[k, 1] + dx * dy)
        xz += c * (covariances[k, 2] + dx * dz)
        yy += c * (covariances[k, 3] + dy * dy)
        yz += c * (covariances[k, 4] + dy * dz)
        zz += c * (covariances[k, 5] + dz * dz)
    eigen(xx / n, xy / n, xz / n, yy / n, yz / n, zz / n, values, vectors)
    plane[0], plane[1], plane[2] = vectors[0, 0], vectors[0, 1], vectors[0, 2]
    plane[3] = (plane[0] * x + plane[1] * y) + plane[2] * z


@njit(cache=True, nogil=True, error_model="numpy")
def tilt(k, counts, values):
    """Give the standard deviation of the direction of a node's normal, radians."""
    return sqrt(values[k, 0] / (counts[k] * values[k, 1]))


@njit(cache=True, nogil=True, error_model="numpy")
def agreeing(
    plane, seed, max_angle, min_offset, counts, means, values, vectors, owner, chosen
):  # fmt: skip
    """List the free nodes that lie along a plane.

    Parameters
    ----------
    plane : float64[4]
    seed : int
        Node from which the plane was taken: the plane is less precise farther from it; -1 if the
        plane is not that of a single node.
    max_angle : float
        Maximum angle between normals, radians.
    chosen : int32[nodes]
        Out.

    Returns
    -------
    int
        Number of nodes listed.
    """
    n = 0
    for k in range(owner.size):
        if owner[k] != FREE:
            continue
        cosine = (plane[0] * vectors[k, 0, 0] + plane[1] * vectors[k, 0, 1]) + plane[2] * vectors[
            k, 0, 2
        ]
        angle = min(max_angle, max(SURE, NOISES * tilt(k, counts, values)))
        if seed >= 0:
            angle = min(max_angle, angle + NOISES * tilt(seed, counts, values))
        if 1.0 - cosine * cosine > angle * angle:
            continue
        x, y, z = means[k, 0], means[k, 1], means[k, 2]
        off = ((plane[0] * x + plane[1] * y) + plane[2] * z) - plane[3]
        limit = max(NOISES * sqrt(values[k, 0]), min_offset)
        if seed >= 0:
            x, y, z = x - means[seed, 0], y - means[seed, 1], z - means[seed, 2]
            limit += NOISES * tilt(seed, counts, values) * sqrt((x * x + y * y) + z * z)
        if abs(off) <= limit:
            chosen[n] = k
            n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def supported(chosen, n, shares, parts, min_parts):
    """Tell whether the first n of `chosen` are enough for a plane, see `group`."""
    total = count = 0.0
    for i in range(n):
        total += shares[chosen[i]]
        count += parts[chosen[i]]
    return count >= min_parts and total >= 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def group(
    directions, rhos, counts, weights, means, covariances, values, vectors,
    step, rho_step, min_offset, shares, parts, min_parts, found,
    owner, planes,
):  # fmt: skip
    """Assign free nodes to planes.

    Parameters
    ----------
    directions, rhos : float64[peaks, 3], float64[peaks]
        The peaks in the order in which they are tried.
    counts, weights : float64[nodes]
        Points of each node; its weight when moments are merged.
    means, covariances, values, vectors
        Of the nodes, see `octree.PlanarNodes`.
    step, rho_step : float
        Distances between the cells of the accumulator.
    min_offset : float
        Distance that a node's centre may always have from the plane, however flat the node is.
    shares : float64[nodes]
        Contribution of each node to the support of a plane, which must be 1.
    parts : float64[nodes]
        Parts of each node, see `octree.PlanarNodes`.
    min_parts, found : int
        Minimum number of parts of a plane; number of planes found so far.
    owner : int32[nodes]
        In and out: plane of each node, FREE, or EXPLAINED if its points belong to a plane although
        its own normal is too imprecise.
    planes : float64[found + peaks, 5]
        Out, from `found` on: normal, offset, variance across.

    Returns
    -------
    int
        Number of planes.
    """
    chosen, near = np.empty(owner.size, np.int32), np.empty(owner.size, np.int32)
    before = np.empty(owner.size, np.int32)
    tried = np.zeros(owner.size, np.bool_)
    lengths, axes = np.empty(3), np.empty((3, 3))
    plane = np.empty(4)
    for peak in range(rhos.size):
        plane[0], plane[1], plane[2] = directions[peak, 0], directions[peak, 1], directions[peak, 2]
        plane[3] = rhos[peak]
        n_near = starting(plane, WIDE * step, 2.0 * rho_step, means, vectors, owner, near)
        for attempt in range(1 + SEEDS):
            if attempt == 0:
                n = n_near
                chosen[:n] = near[:n]
            else:
                seed = -1
                for k in near[:n_near]:
                    if not tried[k] and (seed < 0 or weights[k] > weights[seed]):
                        seed = k
                if seed < 0:
                    break
                tried[seed] = True
                x, y, z = vectors[seed, 0, 0], vectors[seed, 0, 1], vectors[seed, 0, 2]
                plane[0], plane[1], plane[2] = x, y, z
                plane[3] = (x * means[seed, 0] + y * means[seed, 1]) + z * means[seed, 2]
                n = agreeing(
                    plane, seed, step, min_offset, counts, means, values, vectors, owner, chosen
                )  # fmt: skip
            for _ in range(ROUNDS):
                if not supported(chosen, n, shares, parts, min_parts):
                    n = 0
                    break
                merged(weights, means, covariances, chosen[:n], plane, lengths, axes)
                last = n
                before[:n] = chosen[:n]
                n = agreeing(
                    plane, -1, step, min_offset, counts, means, values, vectors, owner, chosen
                )  # fmt: skip
                if n == last and np.array_equal(before[:n], chosen[:n]):
                    break
            if not supported(chosen, n, shares, parts, min_parts):
                continue
            merged(weights, means, covariances, chosen[:n], plane, lengths, axes)
            if is_known(plane, chosen[:n], step, min_offset, weights, means, planes[:found]):
                owner[chosen[:n]] = EXPLAINED
                continue
            owner[chosen[:n]] = found
            planes[found, :4] = plane
            planes[found, 4] = lengths[0]
            explain(plane, lengths[0], means, covariances, owner)
            found += 1
            break
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def is_known(plane, chosen, max_angle, min_offset, weights, means, planes):
    """Tell whether nodes lie along a known plane, within its noise."""
    for p in range(planes.shape[0]):
        cosine = (plane[0] * planes[p, 0] + plane[1] * planes[p, 1]) + plane[2] * planes[p, 2]
        if 1.0 - cosine * cosine > max_angle * max_angle:
            continue
        total = squares = 0.0
        for k in chosen:
            x, y, z = means[k, 0], means[k, 1], means[k, 2]
            off = ((planes[p, 0] * x + planes[p, 1] * y) + planes[p, 2] * z) - planes[p, 3]
            total += weights[k]
            squares += weights[k] * (off * off)
        limit = SAME * max(sqrt(planes[p, 4]), min_offset)
        if squares <= total * (limit * limit):
            return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def unite(
    max_angle, min_offset, counts, weights, means, covariances, values, vectors, sides, owner,
    planes,
):  # fmt: skip
    """Merge planes of one surface: halves of a wall, and slices of a slightly bent one.

    Parameters
    ----------
    sides : float64[nodes]
        Sides of the nodes.
    owner, planes
        In and out, see `group`; planes without nodes remain in `planes`.
    """
    n_planes = planes.shape[0]
    lengths, axes, plane = np.empty(3), np.empty((3, 3)), np.empty(4)
    own, other = np.empty(owner.size, np.int32), np.empty(owner.size, np.int32)
    sizes = np.zeros(n_planes)
    for k in range(owner.size):
        if owner[k] >= 0:
            sizes[owner[k]] += weights[k]
    for q in np.argsort(sizes):
        n = listed(owner, q, own)
        for p in range(n_planes):
            larger = sizes[p] > sizes[q] or (sizes[p] == sizes[q] and p < q)
            if n == 0 or not larger:
                continue
            same = is_known(
                planes[q], own[:n], max_angle, min_offset, weights, means, planes[p : p + 1]
            )
            if not same:
                cosine = (
                    planes[p, 0] * planes[q, 0] + planes[p, 1] * planes[q, 1]
                ) + planes[p, 2] * planes[q, 2]
                if 1.0 - cosine * cosine <= BENT * BENT:
                    m = listed(owner, p, other)
                    other[m:m + n] = own[:n]
                    merged(counts, means, covariances, other[: m + n], plane, lengths, axes)
                    same = is_bent(
                        plane, own[:n], other[:m], min_offset, counts, means, values, vectors, sides
                    )
            if same:
                owner[own[:n]] = p
                sizes[p], sizes[q], n = sizes[p] + sizes[q], 0.0, 0
                all_of_p = listed(owner, p, own)
                merged(weights, means, covariances, own[:all_of_p], plane, lengths, axes)
                planes[p, :4] = plane
                planes[p, 4] = lengths[0]
                break


@njit(cache=True, nogil=True, error_model="numpy")
def is_bent(plane, own, other, min_offset, counts, means, values, vectors, sides):
    """Tell whether two planes are parts of one surface that is a little bent.

    Their nodes must lie along one plane, within a few standard deviations of the points of a node,
    and the surface must be continuous where the planes meet: layers are not one surface.

    Parameters
    ----------
    plane : float64[4]
        Plane through all nodes.
    own, other : int32[]
        Nodes of the two planes.
    """
    total = across = 0.0
    for k in own:
        total += counts[k]
        across += counts[k] * values[k, 0]
    for k in other:
        total += counts[k]
        across += counts[k] * values[k, 0]
    limit = BEND * BEND * max(across / total, min_offset * min_offset)
    for part in range(2):
        nodes = own if part == 0 else other
        points = squares = 0.0
        for k in nodes:
            off = (
                (plane[0] * means[k, 0] + plane[1] * means[k, 1]) + plane[2] * means[k, 2]
            ) - plane[3]
            points += counts[k]
            squares += counts[k] * (off * off)
        if squares > limit * points:
            return False
    near = smooth = 0
    for i in own:
        for j in other:
            x, y, z = means[i, 0] - means[j, 0], means[i, 1] - means[j, 1], means[i, 2] - means[j, 2]
            reach = BESIDE * (sides[i] + sides[j])
            if (x * x + y * y) + z * z > reach * reach:
                continue
            a, b, c = vectors[i, 0, 0], vectors[i, 0, 1], vectors[i, 0, 2]
            sign = 1.0
            if (a * vectors[j, 0, 0] + b * vectors[j, 0, 1]) + c * vectors[j, 0, 2] < 0.0:
                sign = -1.0
            a += sign * vectors[j, 0, 0]
            b += sign * vectors[j, 0, 1]
            c += sign * vectors[j, 0, 2]
            # the chord of an arc is at right angles to the mean of the normals at its ends
            off = (a * x + b * y) + c * z
            step = NOISES * NOISES * max(values[i, 0], values[j, 0], min_offset * min_offset)
            near += 1
            if off * off <= step * ((a * a + b * b) + c * c):
                smooth += 1
    return smooth > 0 and smooth >= SMOOTH * near


@njit(cache=True, nogil=True, error_model="numpy")
def listed(owner, plane, chosen):
    """List the nodes of a plane; return their number."""
    n = 0
    for k in range(owner.size):
        if owner[k] == plane:
            chosen[n] = k
            n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def explain(plane, variance, means, covariances, owner):
    """Mark the free nodes that lie within a plane's noise, whatever their normal."""
    x, y, z = plane[0], plane[1], plane[2]
    limit = NOISES * NOISES * variance
    for k in range(owner.size):
        if owner[k] != FREE:
            continue
        off = ((x * means[k, 0] + y * means[k, 1]) + z * means[k, 2]) - plane[3]
        across = (
            x * x * covariances[k, 0] + y * y * covariances[k, 3] + z * z * covariances[k, 5]
        ) + 2.0 * (
            x * y * covariances[k, 1] + x * z * covariances[k, 2] + y * z * covariances[k, 4]
        )
        if off * off <= limit and across <= limit:
            owner[k] = EXPLAINED


@njit(cache=True, nogil=True, error_model="numpy")
def starting(plane, max_angle, max_offset, means, vectors, owner, chosen):
    """List the free nodes whose normal and rho are close to those of a peak."""
    n = 0
    for k in range(owner.size):
        if owner[k] != FREE:
            continue
        x, y, z = vectors[k, 0, 0], vectors[k, 0, 1], vectors[k, 0, 2]
        cosine = (plane[0] * x + plane[1] * y) + plane[2] * z
        if 1.0 - cosine * cosine > max_angle * max_angle:
            continue
        rho = (x * means[k, 0] + y * means[k, 1]) + z * means[k, 2]
        if cosine < 0.0:
            rho = -rho
        if abs(rho - plane[3]) <= max_offset:
            chosen[n] = k
            n += 1
    return n
