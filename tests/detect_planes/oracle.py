"""Plain steps of `detect_planes`, by Limberger & Oliveira 2015, 10.1016/j.patcog.2014.12.020.

Nothing of ours is imported. All arithmetic is in double precision. One step is not of the paper: a
planar cell whose parts are much thinner contains several surfaces and is divided (README.md, 3).
"""

from typing import NamedTuple

import numpy as np

OUTLIER = 10  # a node's points farther from its plane than its size by this are not of it
NONZERO = 1e-5  # of the variance of rho
CUT = 4.0  # squared Mahalanobis distance up to which a node votes
DEEPEST = 20
LAST = 5  # level of the finest cells that are parts of others in one grid
PART, SPLIT = 6, 4.0  # points of a part; variance of a cell in units of that of its parts


class Node(NamedTuple):
    level: int
    middle: np.ndarray  # of the cell, as the mean relative to the middle of the root
    size: float
    n: int  # points that are no outliers
    mean: np.ndarray  # of these
    normal: np.ndarray
    values: np.ndarray  # eigenvalues of their covariance, ascending
    vectors: np.ndarray  # in columns


def principal(points):
    """Mean, eigenvalues in ascending order, eigenvectors in columns."""
    mean = points.mean(axis=0)
    values, vectors = np.linalg.eigh((points - mean).T @ (points - mean) / len(points))
    return mean, np.maximum(values, 0.0), vectors


def octree(points, middle, half, *, s_level, s_ms, max_thickness=1 / 25, min_isotropy=1 / 6):
    """Coplanar nodes of the octree with this root, depth first: sections 3.1 and 3.2."""

    def visit(inside, level, middle, half):
        if len(inside) < s_ms or level > DEEPEST:
            return
        if level >= s_level:
            mean, values, vectors = principal(inside)
            thin = values[0] < max_thickness * values[1] and values[1] > min_isotropy * values[2]
            if thin and not (level < LAST and has_several(inside, middle, values[0])):
                off = np.abs((inside - mean) @ vectors[:, 0])
                kept = inside[off <= 2 * half / OUTLIER]
                mean, values, vectors = principal(kept)
                yield Node(level, middle, 2 * half, len(kept), mean, vectors[:, 0], values, vectors)
                return
        upper = inside > middle
        for child in np.ndindex(2, 2, 2):
            here = (upper == child).all(axis=1)
            yield from visit(
                inside[here], level + 1, middle + half * (np.array(child) - 0.5), half / 2
            )

    return list(visit(points - middle, 0, np.zeros(3), half))


def has_several(inside, middle, variance):
    """Whether the parts of a cell are thinner, taken together, than one surface explains."""
    upper = inside > middle
    parts = [inside[(upper == child).all(axis=1)] for child in np.ndindex(2, 2, 2)]
    parts = [part for part in parts if len(part) >= PART]
    sizes = np.array([len(part) for part in parts])
    if sizes.sum() < len(inside) / 2:
        return False
    # three of the degrees of freedom of a part are those of its plane
    own = [principal(part)[1][0] * len(part) / (len(part) - 3) for part in parts]
    return variance > SPLIT * np.average(own, weights=sizes)


def directions(phi_num):
    """Row, phi and theta of every cell of the accumulator ball, row by row: section 3.3."""
    cells = []
    for row in range(phi_num + 1):
        phi = np.pi * row / phi_num
        count = max(1, round(2 * phi_num * np.sin(phi)))
        cells += [(row, phi, 2 * np.pi * t / count) for t in range(count)]
    rows, phi, theta = np.array(cells).T
    return rows.astype(int), phi, theta


def unit(phi, theta):
    return np.stack([np.sin(phi) * np.cos(theta), np.sin(phi) * np.sin(theta), np.cos(phi)], -1)


def outward(node):
    """Normal away from the origin, and the plane's distance from there."""
    normal = node.normal if node.normal @ node.mean >= 0 else -node.normal
    return normal, normal @ node.mean


def tangent_votes(node, phi_num, rhos, rho_step, weight):
    """Votes of one node for every cell [directions, rhos]: a Gaussian that no origin enters.

    Independent along the node's two axes in the tangent plane of its normal, each with the spread
    of its points and half a cell, and along rho. A plane is voted for from both its sides.
    """
    half = np.pi / phi_num / 2
    _, phi, theta = directions(phi_num)
    cells = unit(phi, theta)
    side = np.sign(cells @ node.normal)
    m2 = np.where(side != 0, 0.0, np.inf)
    for k in (1, 2):
        m2 += (cells @ node.vectors[:, k]) ** 2 / (node.values[0] / node.values[k] + half**2)
    off = rhos - (side * (node.normal @ node.mean))[:, None]
    m2 = m2[:, None] + off**2 / (node.values[0] + (rho_step / 2) ** 2)
    return np.where(m2 <= CUT, weight * np.exp(-m2 / 2), 0.0)


def paper_covariance(node):
    """Covariance of rho, phi and theta: that of the points, transformed by the Jacobian."""
    normal, rho = outward(node)
    px, py, pz = rho * normal
    w, p2 = px * px + py * py, rho * rho
    jacobian = np.array([
        normal,
        np.array([px * pz, py * pz, -w]) / (np.sqrt(w) * p2),
        np.array([-py, px, 0.0]) / w,
    ])  # fmt: skip
    spread = node.vectors @ np.diag(node.values) @ node.vectors.T
    return jacobian @ spread @ jacobian.T + np.diag([NONZERO, 0.0, 0.0])


def paper_votes(node, phi_num, rhos, weight):
    """Votes of one node for every cell [directions, rhos], by the paper's kernel.

    A cell beyond a pole or the origin has two places in rho, phi and theta; the nearer one counts.
    """
    normal, rho = outward(node)
    at = rho, np.arccos(normal[2]), np.arctan2(normal[1], normal[0])
    covariance = paper_covariance(node)
    inverse = np.linalg.inv(covariance)
    height = 1 / ((2 * np.pi) ** 1.5 * np.sqrt(np.linalg.det(covariance)))
    _, phi, theta = directions(phi_num)
    m2 = np.full((len(phi), len(rhos)), np.inf)
    for sign, turned, around in (
        (1, phi, 0.0), (1, -phi, np.pi), (1, 2 * np.pi - phi, np.pi), (-1, np.pi - phi, np.pi),
    ):  # fmt: skip
        off = np.empty((len(phi), len(rhos), 3))
        off[..., 0] = sign * rhos - at[0]
        off[..., 1] = (turned - at[1])[:, None]
        off[..., 2] = np.remainder(theta + around - at[2] + np.pi, 2 * np.pi)[:, None] - np.pi
        m2 = np.minimum(m2, ((off @ inverse) * off).sum(axis=-1))
    return np.where(m2 <= CUT, weight * height * np.exp(-m2 / 2), 0.0)


def marked_peaks(votes, near):
    """Peaks in the order of their votes, by marking: section 3.4.

    Every cell in turn, the most voted first, is a peak where it has not been marked, and marks all
    that is near it whether it is or not. (The paper marks one step around and looks one step
    around for marks; near are what two such steps reach.)

    Parameters
    ----------
    votes : float64[n]
    near : callable
        Gives the cells near one, itself too.
    """
    marked = np.zeros(len(votes), bool)
    peaks = []
    for cell in np.argsort(-votes, kind="stable"):
        if votes[cell] <= 0:
            break
        if not marked[cell]:
            peaks.append(int(cell))
        marked[near(cell)] = True
    return peaks
