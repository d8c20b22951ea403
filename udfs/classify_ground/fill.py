"""Harmonic filling of unknown cells, coarse to fine: the Numba loops.

A pyramid of means of 2 x 2 cells is built up to a single cell. On the way down, unknown cells are
interpolated from their coarse neighbours and then smoothed by a few damped Jacobi sweeps. A sweep
reads one array and writes another, so that nothing depends on the order of the cells.
"""

from typing import Any

import numpy as np

from spatialq.runtime.compile_cache import njit

QUARTER = np.float32(0.25)
THREE_QUARTERS = np.float32(0.75)
ZERO = np.float32(0.0)


@njit(cache=True, nogil=True)
def halve(
    z: Any, known: Any, row: int, column: int, coarse_known: Any, coarse: Any, first: int, last: int
) -> None:
    """Means of the known cells of each 2 x 2, summed in the order of rows and columns.

    `row` and `column`, 0 or 1, are the place of the first cell in its 2 x 2.
    """
    rows, columns = z.shape
    for i in range(first, last):
        upper, lower = max(2 * i - row, 0), min(2 * i + 1 - row, rows - 1)
        two_rows = lower > upper
        for j in range(coarse.shape[1]):
            left, right = max(2 * j - column, 0), min(2 * j + 1 - column, columns - 1)
            two_columns = right > left
            a, b = known[upper, left], known[upper, right] and two_columns
            c = known[lower, left] and two_rows
            d = known[lower, right] and two_rows and two_columns
            total = z[upper, left] if a else ZERO
            total += z[upper, right] if b else ZERO
            total += z[lower, left] if c else ZERO
            total += z[lower, right] if d else ZERO
            n = np.int64(a) + np.int64(b) + np.int64(c) + np.int64(d)
            coarse_known[i, j] = n > 0
            coarse[i, j] = total / np.float32(n) if n > 0 else ZERO


@njit(cache=True, nogil=True)
def double(
    coarse: Any, z: Any, known: Any, row: int, column: int, result: Any, first: int, last: int
) -> None:
    """Copy known cells, and interpolate the others bilinearly from the coarse cells around them.

    `row` and `column` are those of `halve`.
    """
    columns = z.shape[1]
    n_rows, n_columns = coarse.shape
    mixed = np.empty(n_columns, np.float32)
    for i in range(first, last):
        near = (i + row) // 2
        far = min(max(near + 2 * ((i + row) % 2) - 1, 0), n_rows - 1)
        a, b = coarse[near], coarse[far]
        for k in range(n_columns):
            mixed[k] = THREE_QUARTERS * a[k] + QUARTER * b[k]
        for j in range(columns):
            k = (j + column) // 2
            other = min(max(k + 2 * ((j + column) % 2) - 1, 0), n_columns - 1)
            between = THREE_QUARTERS * mixed[k] + QUARTER * mixed[other]
            result[i, j] = z[i, j] if known[i, j] else between


@njit(cache=True, nogil=True)
def relax(z: Any, known: Any, step: Any, result: Any, first: int, last: int) -> None:
    """One damped Jacobi sweep: unknown cells move towards the mean of their four neighbours."""
    rows, columns = z.shape
    for i in range(first, last):
        up, row, down = z[i - 1 if i > 0 else 0], z[i], z[i + 1 if i + 1 < rows else i]
        fixed, out = known[i], result[i]
        for j in range(1, columns - 1):
            mean = QUARTER * ((up[j] + down[j]) + (row[j - 1] + row[j + 1]))
            moved = row[j] + step * (mean - row[j])
            out[j] = row[j] if fixed[j] else moved
        for j in (0, columns - 1):
            left, right = row[j - 1 if j > 0 else 0], row[j + 1 if j + 1 < columns else j]
            mean = QUARTER * ((up[j] + down[j]) + (left + right))
            out[j] = row[j] if fixed[j] else row[j] + step * (mean - row[j])


@njit(cache=True, nogil=True)
def fill(z: Any, known: Any, places: Any, sweeps: int, step: Any, result: Any) -> None:
    """Fill a small grid in one call: up the pyramid, and down again with sweeps.

    `places` are those of `method.places_in_pairs`, int64[levels, 2].
    """
    n = places.shape[0]
    shapes, starts = np.empty((n + 1, 2), np.int64), np.zeros(n + 2, np.int64)
    shapes[0, 0], shapes[0, 1] = z.shape
    starts[1] = z.size
    for k in range(n):
        rows = (shapes[k, 0] + places[k, 0] + 1) // 2
        columns = (shapes[k, 1] + places[k, 1] + 1) // 2
        shapes[k + 1, 0], shapes[k + 1, 1] = rows, columns
        starts[k + 2] = starts[k + 1] + rows * columns
    values, flags = np.empty(starts[n + 1], np.float32), np.empty(starts[n + 1], np.bool_)
    values[: z.size], flags[: z.size] = z.ravel(), known.ravel()
    for k in range(n):
        fine, coarse = slice(starts[k], starts[k + 1]), slice(starts[k + 1], starts[k + 2])
        a, b, c, d = shapes[k, 0], shapes[k, 1], shapes[k + 1, 0], shapes[k + 1, 1]
        halve(
            values[fine].reshape(a, b), flags[fine].reshape(a, b), places[k, 0], places[k, 1],
            flags[coarse].reshape(c, d), values[coarse].reshape(c, d), 0, c,
        )  # fmt: skip
    filled = np.zeros((1, 1), np.float32)
    if flags[-1]:
        filled[0, 0] = values[-1]
    for k in range(n - 1, -1, -1):
        fine, a, b = slice(starts[k], starts[k + 1]), shapes[k, 0], shapes[k, 1]
        given, is_known = values[fine].reshape(a, b), flags[fine].reshape(a, b)
        coarse_filled, filled = filled, np.empty((a, b), np.float32)
        other = np.empty((a, b), np.float32)
        double(coarse_filled, given, is_known, places[k, 0], places[k, 1], filled, 0, a)
        for _ in range(sweeps):
            relax(filled, is_known, step, other, 0, a)
            filled, other = other, filled
    result[:] = filled
