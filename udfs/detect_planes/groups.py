"""Which nodes make a plane: peaks of the accumulator, tried in order, take the nodes that agree.

A peak is a cell, some degrees wide; its plane is that of the moments of all nodes that agree, and
they are told anew by that plane until they stay the same. What one plane has taken, no later
peak gets: so doubles, antipodal ones too, and the ridges around a peak find nothing left.
"""

from math import sqrt

import numpy as np

from spatialq.geometry.eigen import eigen
from spatialq.runtime.compile_cache import njit

ROUNDS = 8
"""Times that a plane's nodes are told anew, at most."""

WIDE = 1.5
"""Cells of the ball between a peak and the normals of the nodes it starts with."""

SEEDS = 3
"""Nodes near a peak that a plane may grow from, the surest first, if not from all together."""

SAME = 3.0
"""Standard deviations of a plane within which others are the same: the border of a cell may cut
off but a tail of its noise."""

SURE = np.radians(4.0)
"""Angle within which normals agree, however sure they are: two sides of a low roof are apart."""

NOISES = 2.0
"""Standard deviations of its own points that a node's middle may be off its plane."""


FREE, EXPLAINED = -1, -2
"""Owners of nodes that are no plane's."""


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
    """Give the standard deviation of a node's normal, radians."""
    return sqrt(values[k, 0] / (counts[k] * values[k, 1]))


@njit(cache=True, nogil=True, error_model="numpy")
def agreeing(
    plane, seed, most, least_offset, counts, means, values, vectors, owner, chosen
):  # fmt: skip
    """List the free nodes that lie along a plane.

    Parameters
    ----------
    plane : float64[4]
    seed : int
        Node whose plane it is, which is the less sure the farther from it; -1 if it is no one's.
    most : float
        Greatest angle, radians.
    chosen : int32[nodes]
        Out.

    Returns
    -------
    int
        How many there are.
    """
    n = 0
    for k in range(owner.size):
        if owner[k] != FREE:
            continue
        cosine = (plane[0] * vectors[k, 0, 0] + plane[1] * vectors[k, 0, 1]) + plane[2] * vectors[
            k, 0, 2
        ]
        angle = min(most, max(SURE, NOISES * tilt(k, counts, values)))
        if seed >= 0:
            angle = min(most, angle + NOISES * tilt(seed, counts, values))
        if 1.0 - cosine * cosine > angle * angle:
            continue
        x, y, z = means[k, 0], means[k, 1], means[k, 2]
        off = ((plane[0] * x + plane[1] * y) + plane[2] * z) - plane[3]
        limit = max(NOISES * sqrt(values[k, 0]), least_offset)
        if seed >= 0:
            x, y, z = x - means[seed, 0], y - means[seed, 1], z - means[seed, 2]
            limit += NOISES * tilt(seed, counts, values) * sqrt((x * x + y * y) + z * z)
        if abs(off) <= limit:
            chosen[n] = k
            n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def group(
    directions, rhos, counts, weights, means, covariances, values, vectors,
    step, rho_step, least_offset, shares, least_nodes, found,
    owner, planes,
):  # fmt: skip
    """Give free nodes to planes.

    Parameters
    ----------
    directions, rhos : float64[peaks, 3], float64[peaks]
        In the order in which they are tried.
    counts, weights : float64[nodes]
        Points; what they weigh when moments are merged.
    means, covariances, values, vectors
        Of the nodes, see `octree.PlanarNodes`.
    step, rho_step : float
        Between the cells of the accumulator.
    least_offset : float
        That a node's middle may be off its plane, however flat it is.
    shares : float64[nodes]
        Of the support that a plane must have.
    least_nodes, found : int
        Nodes that a plane must have; planes that there are already.
    owner : int32[nodes]
        In and out: plane of each node, FREE, or EXPLAINED where its points are a plane's, too
        thin to tell how it lies.
    planes : float64[found + peaks, 5]
        Out, from `found` on: normal, offset, variance across.

    Returns
    -------
    int
        How many planes there are now.
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
                    plane, seed, step, least_offset, counts, means, values, vectors, owner, chosen
                )  # fmt: skip
            for _ in range(ROUNDS):
                if n < least_nodes or shares[chosen[:n]].sum() < 1.0:
                    n = 0
                    break
                merged(weights, means, covariances, chosen[:n], plane, lengths, axes)
                last = n
                before[:n] = chosen[:n]
                n = agreeing(
                    plane, -1, step, least_offset, counts, means, values, vectors, owner, chosen
                )  # fmt: skip
                if n == last and np.array_equal(before[:n], chosen[:n]):
                    break
            if n < least_nodes or shares[chosen[:n]].sum() < 1.0:
                continue
            merged(weights, means, covariances, chosen[:n], plane, lengths, axes)
            if is_known(plane, chosen[:n], step, least_offset, weights, means, planes[:found]):
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
def is_known(plane, chosen, most, least_offset, weights, means, planes):
    """Tell whether nodes lie along a plane that there is, but for its noise."""
    for p in range(planes.shape[0]):
        cosine = (plane[0] * planes[p, 0] + plane[1] * planes[p, 1]) + plane[2] * planes[p, 2]
        if 1.0 - cosine * cosine > most * most:
            continue
        total = squares = 0.0
        for k in chosen:
            x, y, z = means[k, 0], means[k, 1], means[k, 2]
            off = ((planes[p, 0] * x + planes[p, 1] * y) + planes[p, 2] * z) - planes[p, 3]
            total += weights[k]
            squares += weights[k] * (off * off)
        limit = SAME * max(sqrt(planes[p, 4]), least_offset)
        if squares <= total * (limit * limit):
            return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def unite(most, least_offset, weights, means, covariances, owner, planes):
    """Give the nodes of planes that are others' but for noise to those: halves of one wall.

    Parameters
    ----------
    owner, planes
        In and out, see `group`; planes without nodes are left.
    """
    n_planes = planes.shape[0]
    lengths, axes, plane = np.empty(3), np.empty((3, 3)), np.empty(4)
    chosen = np.empty(owner.size, np.int32)
    sizes = np.zeros(n_planes)
    for k in range(owner.size):
        if owner[k] >= 0:
            sizes[owner[k]] += weights[k]
    for q in np.argsort(sizes):
        n = listed(owner, q, chosen)
        for p in range(n_planes):
            larger = sizes[p] > sizes[q] or (sizes[p] == sizes[q] and p < q)
            if n == 0 or not larger:
                continue
            if is_known(
                planes[q], chosen[:n], most, least_offset, weights, means, planes[p : p + 1]
            ):
                owner[chosen[:n]] = p
                sizes[p], sizes[q], n = sizes[p] + sizes[q], 0.0, 0
                all_of_p = listed(owner, p, chosen)
                merged(weights, means, covariances, chosen[:all_of_p], plane, lengths, axes)
                planes[p, :4] = plane
                planes[p, 4] = lengths[0]
                break


@njit(cache=True, nogil=True, error_model="numpy")
def listed(owner, plane, chosen):
    """List the nodes of a plane; give how many there are."""
    n = 0
    for k in range(owner.size):
        if owner[k] == plane:
            chosen[n] = k
            n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def explain(plane, variance, means, covariances, owner):
    """Mark the free nodes that lie within a plane's noise, however they are turned."""
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
def starting(plane, most, most_off, means, vectors, owner, chosen):
    """List the free nodes whose own normal and rho are near a peak's."""
    n = 0
    for k in range(owner.size):
        if owner[k] != FREE:
            continue
        x, y, z = vectors[k, 0, 0], vectors[k, 0, 1], vectors[k, 0, 2]
        cosine = (plane[0] * x + plane[1] * y) + plane[2] * z
        if 1.0 - cosine * cosine > most * most:
            continue
        rho = (x * means[k, 0] + y * means[k, 1]) + z * means[k, 2]
        if cosine < 0.0:
            rho = -rho
        if abs(rho - plane[3]) <= most_off:
            chosen[n] = k
            n += 1
    return n
