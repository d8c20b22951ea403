"""Loops over nodes and cells of the accumulator: votes, smoothing, peaks.

Votes are integers, so that their order does not matter. Only sums, products and square roots are
used, which are rounded identically on all devices.
"""

from math import sqrt

import numpy as np

from spatialq.runtime.compile_cache import njit

from .accumulator import BEYOND

CUT = 4.0
"""Squared distance, in standard deviations, at which the Gaussian of a node is cut off."""

ONE = float(1 << 30)
"""Integer that represents a vote of 1."""

PAPER_ONE = float(1 << 12)
"""Integer that represents a vote of 1 of the paper's kernel, whose votes go up to 10^7."""

SMOOTHED = 3 + 6 * 2
"""Sum of the weights of `smooth`."""

NOISE = 1e-5
"""Added to the variance of rho in the paper's kernel, squared units of the cloud."""

TINY = 1e-5
"""Replaces denominators of 0 in the paper's kernel."""

MAX_VOTE = float(1 << 40)
"""Maximum vote of the paper's kernel, which is not bounded for nodes without thickness."""


@njit(cache=True, nogil=True, error_model="numpy")
def gauss(m2):
    """Give exp(-m2 / 2) for m2 in [0, CUT]."""
    x = m2 * (-1.0 / 64.0)
    e = 1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0)))))
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@njit(cache=True, nogil=True, error_model="numpy")
def vote(
    means, values, vectors, weights, directions, rows, step, rho_step, n_rho, votes, start, stop
):  # fmt: skip
    """Let nodes vote for planes: a Gaussian around the plane of each node.

    Its variances are those of the points, plus half a cell: l1 / l2 and l1 / l3 along the tangents
    of the normal, l1 for rho.

    Parameters
    ----------
    means, values, vectors : float64[nodes, 3], float64[nodes, 3], float64[nodes, 3, 3]
        Means are relative to the centroid of the cloud.
    weights : float64[nodes]
    directions, rows, step
        Fields of the accumulator ball.
    rho_step, n_rho : float, int
        Rho is (k - BEYOND) * rho_step for k in range(n_rho).
    votes : int64[directions, n_rho]
        In and out.
    """
    for k in range(start, stop):
        nx, ny, nz = vectors[k, 0, 0], vectors[k, 0, 1], vectors[k, 0, 2]
        rho = (nx * means[k, 0] + ny * means[k, 1]) + nz * means[k, 2]
        if rho < 0.0:
            nx, ny, nz, rho = -nx, -ny, -nz, -rho
        half = 0.5 * step
        s2 = values[k, 0] / values[k, 1] + half * half
        s3 = values[k, 0] / values[k, 2] + half * half
        half = 0.5 * rho_step
        s_rho = values[k, 0] + half * half
        for _ in range(2):
            vote_around(
                nx, ny, nz, rho, vectors[k], s2, s3, s_rho, weights[k],
                directions, rows, rho_step, n_rho, votes,
            )  # fmt: skip
            # from the opposite side; has no effect far enough from the centroid
            nx, ny, nz, rho = -nx, -ny, -nz, -rho


@njit(cache=True, nogil=True, error_model="numpy")
def vote_around(
    nx, ny, nz, rho, vectors, s2, s3, s_rho, weight, directions, rows, rho_step, n_rho, votes
):  # fmt: skip
    """Vote for one side of a node's plane."""
    if rho + sqrt(CUT * s_rho) < -BEYOND * rho_step:
        return
    widest = CUT * (s2 if s2 > s3 else s3)
    for row in range(rows.size - 1):
        z = directions[rows[row], 2]
        # the maximum cosine of a direction of this row
        most = z * nz + sqrt(max(0.0, (1.0 - z * z) * (1.0 - nz * nz)))
        if most < 0.0 or 1.0 - most * most > widest:
            continue
        for k in range(rows[row], rows[row + 1]):
            mx, my, mz = directions[k, 0], directions[k, 1], directions[k, 2]
            if mx * nx + my * ny + mz * nz <= 0.0:
                continue
            a = (mx * vectors[1, 0] + my * vectors[1, 1]) + mz * vectors[1, 2]
            b = (mx * vectors[2, 0] + my * vectors[2, 1]) + mz * vectors[2, 2]
            m2 = a * a / s2 + b * b / s3
            if m2 > CUT:
                continue
            reach = sqrt((CUT - m2) * s_rho)
            first = max(0, int(np.ceil((rho - reach) / rho_step)) + BEYOND)
            last = min(n_rho - 1, int(np.floor((rho + reach) / rho_step)) + BEYOND)
            for r in range(first, last + 1):
                off = (r - BEYOND) * rho_step - rho
                votes[k, r] += np.int64(weight * gauss(m2 + off * off / s_rho) * ONE + 0.5)


@njit(cache=True, nogil=True, error_model="numpy")
def smooth(votes, beside, smoothed, start, stop):
    """Smooth the votes: each cell has weight 3 and its six neighbours weight 2.

    Parameters
    ----------
    votes, smoothed : int64[directions, n_rho]
        Input and output.
    beside : int32[directions, 4]
    """
    n_rho = votes.shape[1]
    for k in range(start, stop):
        a, b, c, d = (
            votes[beside[k, 0]],
            votes[beside[k, 1]],
            votes[beside[k, 2]],
            votes[beside[k, 3]],
        )
        own, out = votes[k], smoothed[k]
        for r in range(n_rho):
            total = a[r] + b[r] + c[r] + d[r]
            if r > 0:
                total += own[r - 1]
            if r < n_rho - 1:
                total += own[r + 1]
            out[r] = 3 * own[r] + 2 * total


@njit(cache=True, nogil=True, error_model="numpy")
def peaks(smoothed, near, near_starts, radius, is_peak, start, stop):
    """Flag the cells that are the maximum of their surroundings; of equal ones the first.

    Parameters
    ----------
    smoothed : int64[directions, n_rho]
    near, near_starts
        Fields of the accumulator ball.
    radius : int
        Radius of the surroundings in steps of rho.
    is_peak : bool[directions, n_rho]
        Out; never true where rho < 0.
    """
    n_rho = smoothed.shape[1]
    for k in range(start, stop):
        for r in range(n_rho):
            is_peak[k, r] = r >= BEYOND and smoothed[k, r] > 0
        for r in range(BEYOND, n_rho):
            own = smoothed[k, r]
            if own == 0:
                continue
            first, last = max(0, r - radius), min(n_rho - 1, r + radius)
            for q in range(first, last + 1):  # most cells are rejected here
                if smoothed[k, q] > own or (smoothed[k, q] == own and q < r):
                    is_peak[k, r] = False
                    break
            if not is_peak[k, r]:
                continue
            for i in range(near_starts[k], near_starts[k + 1]):
                other = near[i]
                if other == k:
                    continue
                for q in range(first, last + 1):
                    v = smoothed[other, q]
                    if v > own or (v == own and other < k):
                        is_peak[k, r] = False
                        break
                if not is_peak[k, r]:
                    break


@njit(cache=True, nogil=True, error_model="numpy")
def arctan2(y, x):
    """Angle of a direction in [-pi, pi], computed by sums, products and square roots only."""
    if x == 0.0 and y == 0.0:
        return 0.0
    a, b = abs(x), abs(y)
    t = min(a, b) / max(a, b)
    for _ in range(3):  # tan of half the angle, three times
        t = t / (1.0 + sqrt(1.0 + t * t))
    s = t * t
    angle = 8.0 * t * (
        1.0 - s * (1.0 / 3.0 - s * (0.2 - s * (1.0 / 7.0 - s * (1.0 / 9.0 - s * (
            1.0 / 11.0 - s * (1.0 / 13.0 - s * (1.0 / 15.0)))))))
    )  # fmt: skip
    if b > a:
        angle = 0.5 * np.pi - angle
    if x < 0.0:
        angle = np.pi - angle
    return -angle if y < 0.0 else angle


@njit(cache=True, nogil=True, error_model="numpy")
def vote_as_paper(
    means, covariances, vectors, weights, phis, thetas, rows, step, rho_step, unit, n_rho, votes,
    start, stop,
):  # fmt: skip
    """Let nodes vote as in the paper: their covariance is transformed to rho, phi and theta.

    Parameters
    ----------
    phis, thetas : float64[directions]
    unit : float
        Length of our unit in units of the cloud, in which NOISE is given.
    others
        As for `vote`.

    References
    ----------
    Limberger, Oliveira (2015), section 3.2.
    """
    for k in range(start, stop):
        nx, ny, nz = vectors[k, 0, 0], vectors[k, 0, 1], vectors[k, 0, 2]
        rho = (nx * means[k, 0] + ny * means[k, 1]) + nz * means[k, 2]
        if rho < 0.0:
            nx, ny, nz, rho = -nx, -ny, -nz, -rho
        rho *= unit
        flat = nx * nx + ny * ny
        phi, theta = arctan2(sqrt(flat), nz), arctan2(ny, nx)
        pz = rho * nz
        p2 = max(rho * rho, TINY)
        level = sqrt(flat)
        # at a pole theta is arbitrary
        ux, uy = (nx / level, ny / level) if level > 0.0 else (1.0, 0.0)
        lever = max(rho * level, TINY)
        j00, j01, j02 = nx, ny, nz
        j10, j11, j12 = ux * pz / p2, uy * pz / p2, -rho * level / p2
        j20, j21, j22 = -uy / lever, ux / lever, 0.0
        u = unit * unit
        sxx, sxy, sxz = covariances[k, 0] * u, covariances[k, 1] * u, covariances[k, 2] * u
        syy, syz, szz = covariances[k, 3] * u, covariances[k, 4] * u, covariances[k, 5] * u
        ax, ay, az = (
            j00 * sxx + j01 * sxy + j02 * sxz,
            j00 * sxy + j01 * syy + j02 * syz,
            j00 * sxz + j01 * syz + j02 * szz,
        )
        bx, by, bz = (
            j10 * sxx + j11 * sxy + j12 * sxz,
            j10 * sxy + j11 * syy + j12 * syz,
            j10 * sxz + j11 * syz + j12 * szz,
        )
        cx, cy, cz = (
            j20 * sxx + j21 * sxy + j22 * sxz,
            j20 * sxy + j21 * syy + j22 * syz,
            j20 * sxz + j21 * syz + j22 * szz,
        )
        c00 = ax * j00 + ay * j01 + az * j02 + NOISE
        c01 = ax * j10 + ay * j11 + az * j12
        c02 = ax * j20 + ay * j21 + az * j22
        c11 = bx * j10 + by * j11 + bz * j12
        c12 = bx * j20 + by * j21 + bz * j22
        c22 = cx * j20 + cy * j21 + cz * j22
        m00, m01, m02 = c11 * c22 - c12 * c12, c02 * c12 - c01 * c22, c01 * c12 - c02 * c11
        m11, m12, m22 = c00 * c22 - c02 * c02, c01 * c02 - c00 * c12, c00 * c11 - c01 * c01
        det = c00 * m00 + c01 * m01 + c02 * m02
        if not det > 0.0:
            continue  # no variance in one of the three: the Gaussian has no width
        height = weights[k] / (2.0 * sqrt(2.0) * np.pi**1.5 * sqrt(det))
        height = min(height, MAX_VOTE)
        vote_in_angles(
            rho, phi, theta, m00 / det, m01 / det, m02 / det, m11 / det, m12 / det, m22 / det,
            sqrt(CUT * c00), sqrt(CUT * c11), height, phis, thetas, rows, step, rho_step * unit,
            n_rho, votes,
        )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def vote_in_angles(
    rho, phi, theta, i00, i01, i02, i11, i12, i22, reach_rho, reach_phi, height,
    phis, thetas, rows, step, rho_step, n_rho, votes,
):  # fmt: skip
    """Vote in all cells within the cut-off in rho, phi and theta; i is the inverse covariance."""
    first_r = max(0, int(np.ceil((rho - reach_rho) / rho_step)) + BEYOND)
    last_r = min(n_rho - 1, int(np.floor((rho + reach_rho) / rho_step)) + BEYOND)
    for row in range(rows.size - 1):
        if abs(row * step - phi) > reach_phi:
            continue
        for k in range(rows[row], rows[row + 1]):
            df = phis[k] - phi
            dt = thetas[k] - theta
            if dt > np.pi:
                dt -= 2.0 * np.pi
            if dt < -np.pi:
                dt += 2.0 * np.pi
            angles = i11 * df * df + 2.0 * i12 * df * dt + i22 * dt * dt
            for r in range(first_r, last_r + 1):
                dr = (r - BEYOND) * rho_step - rho
                m2 = angles + 2.0 * dr * (i01 * df + i02 * dt) + i00 * dr * dr
                if 0.0 <= m2 <= CUT:
                    votes[k, r] += np.int64(height * gauss(m2) * PAPER_ONE + 0.5)
