"""Axes in which the box of a common part is small, and what boxes bound."""

from typing import Any

import numpy as np

from spatialq.geometry.solids import Solids
from spatialq.runtime.arrays import Floats
from spatialq.runtime.compile_cache import njit

from .cells import STACK


@njit(cache=True, nogil=True, error_model="numpy")
def choose_frames(a: int, b: int, solids: Solids, work: Floats) -> None:
    """Find axes in which the boxes of two elements share little, and axes of each element.

    Parameters
    ----------
    a, b, solids
        See `penetration`.
    work : float64[:, 9]
        Out: of the common part, a and b each three axes, and low and high along them.
    """
    common = work[STACK]
    limits = work[STACK + 1]
    least = np.inf
    for choice in range(3):
        frame = work[STACK + 2 * choice]
        if choice == 0:
            for k in range(9):
                frame[k] = 1.0 if k % 4 == 0 else 0.0
        else:
            axes_of(a if choice == 1 else b, solids, frame, work[STACK + 2 * choice + 1])
        room = 1.0
        for axis in range(3):
            x = frame[3 * axis]
            y = frame[3 * axis + 1]
            z = frame[3 * axis + 2]
            low, high = along(x, y, z, a, solids)
            low_b, high_b = along(x, y, z, b, solids)
            low = low_b if low_b > low else low
            high = high_b if high_b < high else high
            room *= high - low if high > low else 0.0
        # others must be better by more than rounding
        if choice == 0 or room < 0.99 * least:
            least = room
            for k in range(9):
                common[k] = frame[k]
    for axis in range(3):
        x = common[3 * axis]
        y = common[3 * axis + 1]
        z = common[3 * axis + 2]
        low, high = along(x, y, z, a, solids)
        low_b, high_b = along(x, y, z, b, solids)
        low = low_b if low_b > low else low
        high = high_b if high_b < high else high
        # faces on a side of the box stay in it whatever rounding does
        slack = 1e-9 + 1e-12 * (abs(low) + abs(high))
        limits[axis] = low - slack
        limits[3 + axis] = high + slack


@njit(cache=True, nogil=True, error_model="numpy")
def axes_of(e: int, solids: Solids, frame: Any, limits: Any) -> None:
    """Give the axes of an element in which its box is small, and low and high along them.

    They are those of the coordinates, or the normal of its largest face and that face's shortest
    edge: in a right-angled triangle this is along one of the sides.
    """
    vertices = solids.vertices
    faces = solids.faces
    v0 = solids.vertex_starts[e]
    largest = 0.0
    for f in range(solids.face_starts[e], solids.face_starts[e + 1]):
        i = v0 + faces[f, 0]
        j = v0 + faces[f, 1]
        k = v0 + faces[f, 2]
        x1 = vertices[j, 0] - vertices[i, 0]
        y1 = vertices[j, 1] - vertices[i, 1]
        z1 = vertices[j, 2] - vertices[i, 2]
        x2 = vertices[k, 0] - vertices[i, 0]
        y2 = vertices[k, 1] - vertices[i, 1]
        z2 = vertices[k, 2] - vertices[i, 2]
        nx = y1 * z2 - z1 * y2
        ny = z1 * x2 - x1 * z2
        nz = x1 * y2 - y1 * x2
        size = nx * nx + ny * ny + nz * nz
        if not size > largest:
            continue
        largest = size
        size = np.sqrt(size)
        frame[6] = nx / size
        frame[7] = ny / size
        frame[8] = nz / size
        one = x1 * x1 + y1 * y1 + z1 * z1
        two = x2 * x2 + y2 * y2 + z2 * z2
        x3 = x2 - x1
        y3 = y2 - y1
        z3 = z2 - z1
        three = x3 * x3 + y3 * y3 + z3 * z3
        size = one
        if two < size:
            size = two
            x1 = x2
            y1 = y2
            z1 = z2
        if three < size:
            size = three
            x1 = x3
            y1 = y3
            z1 = z3
        size = np.sqrt(size)
        frame[0] = x1 / size
        frame[1] = y1 / size
        frame[2] = z1 / size
    frame[3] = frame[7] * frame[2] - frame[8] * frame[1]
    frame[4] = frame[8] * frame[0] - frame[6] * frame[2]
    frame[5] = frame[6] * frame[1] - frame[7] * frame[0]
    room = 1.0
    upright = 1.0
    for axis in range(3):
        x = frame[3 * axis]
        y = frame[3 * axis + 1]
        z = frame[3 * axis + 2]
        limits[axis], limits[3 + axis] = along(x, y, z, e, solids)
        room *= limits[3 + axis] - limits[axis]
        upright *= solids.boxes[e, 3 + axis] - solids.boxes[e, axis]
    # others must be better by more than rounding
    if largest == 0.0 or not room < 0.99 * upright:
        for k in range(9):
            frame[k] = 1.0 if k % 4 == 0 else 0.0
        for k in range(6):
            limits[k] = solids.boxes[e, k]


@njit(cache=True, nogil=True, error_model="numpy")
def along(ux: float, uy: float, uz: float, e: int, solids: Solids) -> Any:
    """Give the interval along a direction in which an element is."""
    vertices = solids.vertices
    low = np.inf
    high = -np.inf
    for v in range(solids.vertex_starts[e], solids.vertex_starts[e + 1]):
        x = ux * vertices[v, 0] + uy * vertices[v, 1] + uz * vertices[v, 2]
        low = x if x < low else low
        high = x if x > high else high
    return low, high


@njit(cache=True, nogil=True, error_model="numpy")
def distances_in_box(own: Floats, corners: Floats, n: int, row: Floats) -> float:
    """Fill in a bound of the distance from a surface that holds inside of it: from its box.

    Parameters
    ----------
    own : float64[2, 9]
        The axes of the element, and its box.
    corners : float64[8, 9]
    n : int
    row : float64[9]
        Out: at the corners the distance from one side of the box, or the mean of two.

    Returns
    -------
    float
        The largest of them.
    """
    least = np.inf
    for axis in range(3):
        low = own[1, axis]
        high = own[1, 3 + axis]
        first = np.inf
        last = -np.inf
        for c in range(n):
            x = (
                own[0, 3 * axis] * corners[c, 0]
                + own[0, 3 * axis + 1] * corners[c, 1]
                + own[0, 3 * axis + 2] * corners[c, 2]
            )
            first = x if x < first else first
            last = x if x > last else last
        side = 0
        best = 0.5 * (high - low)
        if last - low < best:
            side = 1
            best = last - low
        if high - first < best:
            side = 2
            best = high - first
        if best < least:
            least = best
            for c in range(n):
                x = (
                    own[0, 3 * axis] * corners[c, 0]
                    + own[0, 3 * axis + 1] * corners[c, 1]
                    + own[0, 3 * axis + 2] * corners[c, 2]
                )
                row[c] = best if side == 0 else (x - low if side == 1 else high - x)
    return least


@njit(cache=True, nogil=True, error_model="numpy")
def cut(polygon: Any, n: int, spare: Any, frame: Any, side: int) -> int:
    """Cut a convex polygon off at a side of the shared box; give the number of its corners."""
    axis = side % 3
    ux = frame[0, 3 * axis]
    uy = frame[0, 3 * axis + 1]
    uz = frame[0, 3 * axis + 2]
    out = -1.0 if side < 3 else 1.0
    limit = out * frame[1, side]
    kept = 0
    for k in range(n):
        j = k + 1 if k + 1 < n else 0
        p = out * (ux * polygon[k, 0] + uy * polygon[k, 1] + uz * polygon[k, 2]) - limit
        q = out * (ux * polygon[j, 0] + uy * polygon[j, 1] + uz * polygon[j, 2]) - limit
        if p <= 0.0:
            for c in range(3):
                spare[kept, c] = polygon[k, c]
            kept += 1
        if (p <= 0.0) != (q <= 0.0):
            share = p / (p - q)
            for c in range(3):
                spare[kept, c] = polygon[k, c] + share * (polygon[j, c] - polygon[k, c])
            kept += 1
    for k in range(kept):
        for c in range(3):
            polygon[k, c] = spare[k, c]
    return kept


@njit(cache=True, nogil=True, error_model="numpy")
def enlarge(frame: Any, corners: Any, box: Any) -> None:
    """Let a box along the axes of a frame have the corners of a triangle in it."""
    for c in range(3):
        for axis in range(3):
            x = (
                frame[0, 3 * axis] * corners[c, 0]
                + frame[0, 3 * axis + 1] * corners[c, 1]
                + frame[0, 3 * axis + 2] * corners[c, 2]
            )
            box[axis] = x if x < box[axis] else box[axis]
            box[3 + axis] = x if x > box[3 + axis] else box[3 + axis]
