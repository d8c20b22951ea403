"""Logarithm and cube root, by sums, products and quotients only.

Every device rounds these alike, so that CPU and GPU give the same features of points; libraries
differ in the last bit. `elementary.cuh` has the same functions.
"""

from math import frexp, inf, ldexp

from spatialq.runtime.compile_cache import njit

HALF_ROOT = 0.7071067811865476
"""Square root of a half."""
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""Logarithm of 2, in two parts: multiples of the first are exact."""
NEWTON_STEPS = 4
"""The first value is within 7 % of the root, and each step squares the error."""


@njit(cache=True, nogil=True, error_model="numpy")
def logarithm(x):  # type: ignore[no-untyped-def]
    """Give the natural logarithm of a finite number above 0, within a unit in the last place.

    As `e_log.c` of FDLIBM (Sun Microsystems 1993), with its polynomial.
    """
    m, k = frexp(x)
    if m < HALF_ROOT:
        m, k = 2.0 * m, k - 1
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = w * (
        3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01)
    )
    even = z * (
        6.666666666666735130e-01
        + w
        * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    half = 0.5 * f * f
    return k * LN2_HIGH - ((half - (s * (half + (even + odd)) + k * LN2_LOW)) - f)


@njit(cache=True, nogil=True, error_model="numpy")
def cube_root(x):  # type: ignore[no-untyped-def]
    """Give the cube root of a number that is not negative, within two units in the last place."""
    if not 0.0 < x < inf:
        return x
    m, k = frexp(x)
    third = k // 3
    m = ldexp(m, k - 3 * third)  # from 0.5 to 4
    root = 0.7 + 0.25 * m
    for _ in range(NEWTON_STEPS):
        root = root - (root * root * root - m) / (3.0 * root * root)
    return ldexp(root, third)
