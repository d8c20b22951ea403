"""Eigenvalues and eigenvectors of symmetric 3 x 3 matrices, by sums, products and roots only.

Every device rounds these alike, so that CPU and GPU find the same planes; the closed form needs
cosines. `eigen.cuh` has the same loop.
"""

from math import sqrt

from spatialq.runtime.compile_cache import njit

SWEEPS = 8
"""Of Jacobi rotations: convergence is quadratic, in most cases four are enough."""


@njit(cache=True, nogil=True, error_model="numpy")
def rotation(p, q, off):
    """Give cosine, sine and tangent of the rotation that makes an off-diagonal 0."""
    if off == 0.0:
        return 1.0, 0.0, 0.0
    tau = (q - p) / (2.0 * off)
    t = 1.0 / (abs(tau) + sqrt(1.0 + tau * tau))
    if tau < 0.0:
        t = -t
    c = 1.0 / sqrt(1.0 + t * t)
    return c, t * c, t


@njit(cache=True, nogil=True, error_model="numpy")
def eigen(xx, xy, xz, yy, yz, zz, values, vectors):
    """Fill in the eigenvalues, ascending, and the eigenvectors, a row each.

    Parameters
    ----------
    xx, xy, xz, yy, yz, zz : float
        The matrix.
    values : float64[3]
    vectors : float64[3, 3]
    """
    ax, ay, az = 1.0, 0.0, 0.0
    bx, by, bz = 0.0, 1.0, 0.0
    cx, cy, cz = 0.0, 0.0, 1.0
    for _ in range(SWEEPS):
        if xy == 0.0 and xz == 0.0 and yz == 0.0:
            break
        c, s, t = rotation(xx, yy, xy)
        xx, yy, xy = xx - t * xy, yy + t * xy, 0.0
        xz, yz = c * xz - s * yz, s * xz + c * yz
        ax, bx = c * ax - s * bx, s * ax + c * bx
        ay, by = c * ay - s * by, s * ay + c * by
        az, bz = c * az - s * bz, s * az + c * bz
        c, s, t = rotation(xx, zz, xz)
        xx, zz, xz = xx - t * xz, zz + t * xz, 0.0
        xy, yz = c * xy - s * yz, s * xy + c * yz
        ax, cx = c * ax - s * cx, s * ax + c * cx
        ay, cy = c * ay - s * cy, s * ay + c * cy
        az, cz = c * az - s * cz, s * az + c * cz
        c, s, t = rotation(yy, zz, yz)
        yy, zz, yz = yy - t * yz, zz + t * yz, 0.0
        xy, xz = c * xy - s * xz, s * xy + c * xz
        bx, cx = c * bx - s * cx, s * bx + c * cx
        by, cy = c * by - s * cy, s * by + c * cy
        bz, cz = c * bz - s * cz, s * bz + c * cz
    if yy < xx:
        xx, yy, ax, ay, az, bx, by, bz = yy, xx, bx, by, bz, ax, ay, az
    if zz < yy:
        yy, zz, bx, by, bz, cx, cy, cz = zz, yy, cx, cy, cz, bx, by, bz
    if yy < xx:
        xx, yy, ax, ay, az, bx, by, bz = yy, xx, bx, by, bz, ax, ay, az
    # rounding may make the variance across a plane negative
    values[0] = xx if xx > 0.0 else 0.0
    values[1] = yy if yy > 0.0 else 0.0
    values[2] = zz if zz > 0.0 else 0.0
    vectors[0, 0], vectors[0, 1], vectors[0, 2] = ax, ay, az
    vectors[1, 0], vectors[1, 1], vectors[1, 2] = bx, by, bz
    vectors[2, 0], vectors[2, 1], vectors[2, 2] = cx, cy, cz
