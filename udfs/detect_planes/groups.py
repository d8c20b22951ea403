"""Which nodes make a plane: peaks of the accumulator, tried in order, take the nodes that agree.

A peak is a cell, some degrees wide; its plane is that of the moments of all nodes that agree, and
they are told anew by that plane until they stay the same. What one plane has taken, no later
peak gets: so doubles, antipodal ones too, and the ridges around a peak find nothing left.
"""

from math import sqrt

import numpy as np
from numba import njit

from .eigen import eigen

ROUNDS = 8
"""Times that a plane's nodes are told anew, at most."""

WIDE = 1.5
"""Cells of the ball between a peak and the normals of the nodes it starts with."""

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
def agreeing(plane, least_cosine, least_offset, means, values, vectors, owner, chosen):
    """List the free nodes that lie along a plane."""
    n = 0
    for k in range(owner.size):
        if owner[k] != FREE:
            continue
        cosine = (plane[0] * vectors[k, 0, 0] + plane[1] * vectors[k, 0, 1]) + plane[2] * vectors[
            k, 0, 2
        ]
        if abs(cosine) < least_cosine:
            continue
        off = ((plane[0] * means[k, 0] + plane[1] * means[k, 1]) + plane[2] * means[k, 2]) - plane[
            3
        ]
        limit = NOISES * sqrt(values[k, 0])
        if abs(off) <= max(limit, least_offset):
            chosen[n] = k
            n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def group(
    directions, rhos, weights, means, covariances, values, vectors,
    step, rho_step, least_offset, shares, least_nodes,
    owner, planes,
):  # fmt: skip
    """Give nodes to planes.

    Parameters
    ----------
    directions, rhos : float64[peaks, 3], float64[peaks]
        In the order in which they are tried.
    weights : float64[nodes]
        What they weigh when moments are merged.
    shares : float64[nodes]
        Of the support that a plane must have.
    least_nodes : int
        That a plane must have.
    owner : int32[nodes]
        Out: plane of each node, FREE, or EXPLAINED where its points are a plane's, too thin to
        tell how it lies.
    planes : float64[peaks, 5]
        Out: normal, offset, variance across.

    Returns
    -------
    int
        How many planes there are.
    """
    owner[:] = FREE
    chosen = np.empty(owner.size, np.int32)
    before = np.empty(owner.size, np.int32)
    lengths, axes = np.empty(3), np.empty((3, 3))
    plane = np.empty(4)
    wide, narrow = np.cos(WIDE * step), np.cos(step)
    found = 0
    for peak in range(rhos.size):
        plane[0], plane[1], plane[2] = directions[peak, 0], directions[peak, 1], directions[peak, 2]
        plane[3] = rhos[peak]
        n = starting(plane, wide, 2.0 * rho_step, means, vectors, owner, chosen)
        for _ in range(ROUNDS):
            if n < least_nodes or shares[chosen[:n]].sum() < 1.0:
                n = 0
                break
            merged(weights, means, covariances, chosen[:n], plane, lengths, axes)
            last = n
            before[:n] = chosen[:n]
            n = agreeing(plane, narrow, least_offset, means, values, vectors, owner, chosen)
            if n == last and np.array_equal(before[:n], chosen[:n]):
                break
        if n >= least_nodes and shares[chosen[:n]].sum() >= 1.0:
            merged(weights, means, covariances, chosen[:n], plane, lengths, axes)
            owner[chosen[:n]] = found
            planes[found, :4] = plane
            planes[found, 4] = lengths[0]
            explain(plane, lengths[0], means, covariances, owner)
            found += 1
    return found


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
def starting(plane, least_cosine, most_off, means, vectors, owner, chosen):
    """List the free nodes whose own normal and rho are near a peak's."""
    n = 0
    for k in range(owner.size):
        if owner[k] != FREE:
            continue
        x, y, z = vectors[k, 0, 0], vectors[k, 0, 1], vectors[k, 0, 2]
        cosine = (plane[0] * x + plane[1] * y) + plane[2] * z
        if abs(cosine) < least_cosine:
            continue
        rho = (x * means[k, 0] + y * means[k, 1]) + z * means[k, 2]
        if cosine < 0.0:
            rho = -rho
        if abs(rho - plane[3]) <= most_off:
            chosen[n] = k
            n += 1
    return n
