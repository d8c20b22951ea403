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


@njit(cache=True, nogil=True, error_model="numpy")
def merged(counts, means, covariances, chosen, plane, values, vectors):
    """Fit a plane to the points of nodes.

    Parameters
    ----------
    chosen : int32[]
        Nodes.
    plane : float64[4]
        Out: normal and offset.

    Returns
    -------
    float
        Points.
    """
    n = x = y = z = 0.0
    for k in chosen:
        c = counts[k]
        n += c
        x += c * means[k, 0]
        y += c * means[k, 1]
        z += c * means[k, 2]
    if n == 0.0:
        return n
    x, y, z = x / n, y / n, z / n
    xx = xy = xz = yy = yz = zz = 0.0
    for k in chosen:
        c = counts[k]
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
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def agreeing(plane, least_cosine, least_offset, means, values, vectors, owner, mine, chosen):
    """List the free nodes that lie along a plane, or that are its own already."""
    n = 0
    for k in range(owner.size):
        if owner[k] != -1 and owner[k] != mine:
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
    directions, rhos, counts, means, covariances, values, vectors,
    step, rho_step, least_offset, least_points, least_nodes,
    owner, planes,
):  # fmt: skip
    """Give nodes to planes.

    Parameters
    ----------
    directions, rhos : float64[peaks, 3], float64[peaks]
        In the order in which they are tried.
    owner : int32[nodes]
        Out: plane of each node, or -1.
    planes : float64[peaks, 5]
        Out: normal, offset, variance across.

    Returns
    -------
    int
        How many planes there are.
    """
    owner[:] = -1
    chosen = np.empty(owner.size, np.int32)
    before = np.empty(owner.size, np.int32)
    lengths, axes = np.empty(3), np.empty((3, 3))
    plane = np.empty(4)
    wide, narrow = np.cos(WIDE * step), np.cos(step)
    found = 0
    for peak in range(rhos.size):
        plane[0], plane[1], plane[2] = directions[peak, 0], directions[peak, 1], directions[peak, 2]
        plane[3] = rhos[peak]
        n = starting(plane, wide, 2.0 * rho_step, means, values, vectors, owner, chosen)
        for _ in range(ROUNDS):
            points = merged(counts, means, covariances, chosen[:n], plane, lengths, axes)
            if points < least_points or n < least_nodes:
                break
            last = n
            before[:n] = chosen[:n]
            n = agreeing(plane, narrow, least_offset, means, values, vectors, owner, -1, chosen)
            if n == last and np.array_equal(before[:n], chosen[:n]):
                break
        points = merged(counts, means, covariances, chosen[:n], plane, lengths, axes)
        if points >= least_points and n >= least_nodes:
            owner[chosen[:n]] = found
            planes[found, :4] = plane
            planes[found, 4] = lengths[0]
            found += 1
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def starting(plane, least_cosine, most_off, means, values, vectors, owner, chosen):
    """List the free nodes whose own normal and rho are near a peak's."""
    n = 0
    for k in range(owner.size):
        if owner[k] != -1:
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
