"""The accumulator of some nodes and its peaks, cell by cell; nothing of spatialq's."""

import numpy as np

from ..detect_planes import oracle

WITHIN = 2.5  # steps of phi, of the directions around a peak
STEPS = 2  # of rho, around a peak


def accumulated(nodes, weights, phi_num, rhos, rho_step):
    """Votes of all nodes: float64[directions, rhos]."""
    total = 0.0
    for node, weight in zip(nodes, weights, strict=True):
        total = total + oracle.tangent_votes(node, phi_num, rhos, rho_step, weight)
    return total


def smoothed(votes, phi_num):
    """Mean of each cell, three times, and its six neighbours, twice."""
    row, _, theta = oracle.directions(phi_num)
    rows = [np.flatnonzero(row == k) for k in range(phi_num + 1)]
    total = 3.0 * votes
    total[:, 1:] += 2.0 * votes[:, :-1]
    total[:, :-1] += 2.0 * votes[:, 1:]
    for k, own in enumerate(rows):
        for at, cell in enumerate(own):
            if k in (0, phi_num):
                ring = rows[1 if k == 0 else phi_num - 1]
                beside = ring[np.arange(4) * ring.size // 4]
            else:
                beside = [own[at - 1], own[(at + 1) % own.size]]
                for other in (rows[k - 1], rows[k + 1]):
                    nearest = round(theta[cell] / (2 * np.pi) * other.size)
                    beside.append(other[nearest % other.size])
            total[cell] += 2.0 * votes[beside].sum(axis=0)
    return total / 15.0


def excess(votes, phi_num):
    """How far each cell is above the highest of the others around it, less than 0 where below."""
    _, phi, theta = oracle.directions(phi_num)
    cells = oracle.unit(phi, theta)
    near = cells @ cells.T >= np.cos(WITHIN * np.pi / phi_num)
    padded = np.pad(votes, ((0, 0), (STEPS, STEPS)))
    shifts = [padded[:, k : k + votes.shape[1]] for k in range(2 * STEPS + 1)]
    along = np.max([shift for k, shift in enumerate(shifts) if k != STEPS], axis=0)
    highest = np.max(shifts, axis=0)
    beside = np.array([
        highest[np.flatnonzero(near[k] & (np.arange(len(cells)) != k))].max(axis=0)
        for k in range(len(cells))
    ])  # fmt: skip
    return votes - np.maximum(along, beside)
