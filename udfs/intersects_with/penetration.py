"""How far two elements reach into each other: a branch and bound with a guarantee.

The penetration of a and b is the largest distance, over the points of their common part, to the
surface of either. It is searched in cells: a bound from above of the distance in a cell discards
it, or the cell is divided.

The bound: the distance from a convex piece of a surface is a convex function, and so is any mean
of several; over a convex cell it is greatest at a corner. So the greatest value at a corner of a
mean of distances from faces bounds the distance from the surface. With faces on both sides of a
ridge, such as the axis of a beam, the slopes cancel, and one cell covers a long stretch of it.

The cells: where the distance from e has a maximum in the common part of e and o, that is on the
surface of o, or it is a maximum in the inside of e, which has nearest faces on all sides. So the
cells are the triangles of o, and boxes of the inside that have such faces near them.
"""

from typing import Any

import numpy as np

from spatialq.geometry.clusters import CLUSTER
from spatialq.geometry.solids import Solids
from spatialq.geometry.triangles import squared_distance_point_triangle
from spatialq.runtime.compile_cache import njit

from .point_in_solid import gap, is_inside, nearest

ACCURATE = 0.9e-4
"""Metres that the result may be too small."""

ACCURATE_SHARE = 0.9e-2
"""The same as a share of the result; the larger one counts."""

MAX_CELLS = 20000
"""Cells of a pair, at most."""

STACK = 256
"""Cells that wait, at most."""

WORK = (STACK + 64, 9)
"""Numbers of scratch."""

ROWS = 7
"""Faces of a mean, at most."""

PATCH = 32
"""Faces of a flat piece of a surface, or on the sides of a cell, at most."""

PULLED = 1e-4
"""Share of the way to its centre at which a corner of a cell is looked at."""

FLAT = 0.9999
"""Cosine between the normals of neighbours in a flat piece."""


@njit(cache=True, nogil=True, error_model="numpy")
def penetration(px: float, py: float, pz: float, a: int, b: int, solids: Solids, work: Any) -> Any:
    """Find how far two closed elements reach into each other.

    Parameters
    ----------
    px, py, pz : float
        A point of the common part.
    a, b : int
    solids : Solids
    work : float64[WORK]
        Scratch.

    Returns
    -------
    reach : float
        The penetration, or up to `ACCURATE` or `ACCURATE_SHARE` less; 0 where the common part
        has no inside.
    upper : float
        A bound from above.
    cells : int
        How many cells were looked at.
    """
    choose_frames(a, b, solids, work)
    reach = 0.0
    if is_inside(px, py, pz, a, solids) and is_inside(px, py, pz, b, solids):
        for e in (a, b):
            d2, _, _, _, _ = nearest(px, py, pz, np.inf, e, solids)
            if np.sqrt(d2) > reach:
                reach = np.sqrt(d2)
    upper = 0.0
    cells = 0
    box = work[STACK + 16]
    for axis in range(3):
        box[axis] = np.inf
        box[3 + axis] = -np.inf
    for way in range(4):
        e = a if way % 2 == 0 else b
        o = b if way % 2 == 0 else a
        own = work[STACK + 2 : STACK + 4] if way % 2 == 0 else work[STACK + 4 : STACK + 6]
        if way < 2:
            reach, upper, cells = over_surface(e, o, own, reach, upper, cells, solids, work)
        else:
            reach, upper, cells = over_inside(e, o, own, reach, upper, cells, solids, work)
    enough = accurate(reach)
    return reach, enough if enough > upper else upper, cells


@njit(cache=True, nogil=True, error_model="numpy")
def accurate(reach: float) -> float:
    """Give the bound from above at which a search ends."""
    share = ACCURATE_SHARE * reach
    return reach + (share if share > ACCURATE else ACCURATE)


@njit(cache=True, nogil=True, error_model="numpy")
def choose_frames(a: int, b: int, solids: Solids, work: Any) -> None:
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
            axes_of(a if choice == 1 else b, solids, frame)
        room = 1.0
        for axis in range(3):
            x = frame[3 * axis]
            y = frame[3 * axis + 1]
            z = frame[3 * axis + 2]
            low, high = along(x, y, z, a, solids)
            low_b, high_b = along(x, y, z, b, solids)
            if choice > 0:
                of = work[STACK + 2 * choice + 1]
                of[axis] = low if choice == 1 else low_b
                of[3 + axis] = high if choice == 1 else high_b
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
def axes_of(e: int, solids: Solids, frame: Any) -> None:
    """Give the axes of an element: the normal of its largest face, and that face's shortest edge.

    In a right-angled triangle the shortest edge is along one of the sides.
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
    if largest == 0.0:
        for k in range(9):
            frame[k] = 1.0 if k % 4 == 0 else 0.0
    frame[3] = frame[7] * frame[2] - frame[8] * frame[1]
    frame[4] = frame[8] * frame[0] - frame[6] * frame[2]
    frame[5] = frame[6] * frame[1] - frame[7] * frame[0]


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
def distances_in_box(own: Any, corners: Any, n: int, row: Any) -> float:
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
def over_surface(
    e: int, o: int, own: Any, reach: float, upper: float, cells: int, solids: Solids, work: Any
) -> Any:
    """Search the largest distance from the surface of e over the part of o's surface inside e.

    Parameters
    ----------
    e, o : int
    reach, upper : float
        The largest distance so far; the largest bound of cells that were given up.
    cells : int
        How many there were so far.
    solids, work
        See `penetration`.

    Returns
    -------
    reach, upper, cells
    """
    frame = work[STACK : STACK + 2]
    polygon = work[STACK + 54 : STACK + 64]
    spare = work[STACK + 6 : STACK + 16]
    corners = work[STACK + 22 : STACK + 30]
    vertices = solids.vertices
    v0 = solids.vertex_starts[o]
    for f in range(solids.face_starts[o], solids.face_starts[o + 1]):
        for corner in range(3):
            v = v0 + solids.faces[f, corner]
            for k in range(3):
                polygon[corner, k] = vertices[v, k]
        n = 3
        for side in range(6):
            n = cut(polygon, n, spare, frame, side)
            if n < 3:
                break
        # a fan of triangles
        for last in range(n - 1, 1, -1):
            count = 1
            for k in range(3):
                work[0, k] = polygon[0, k]
                work[0, 3 + k] = polygon[last - 1, k]
                work[0, 6 + k] = polygon[last, k]
            while count > 0:
                count -= 1
                for corner in range(3):
                    for k in range(3):
                        corners[corner, k] = work[count, 3 * corner + k]
                reach, bound = bound_in_cell(3, e, -1, own, reach, solids, work)
                cells += 1
                if bound > accurate(reach):
                    face = longest_crossing(e, solids, work)
                    if cells < MAX_CELLS and count + 3 <= STACK:
                        if face >= 0:
                            count = cut_triangle(face, e, corners, solids, work, count)
                        else:
                            count = divide_triangle(corners, work, count)
                        continue
                    upper = bound if bound > upper else upper
                if bound >= 0.0:
                    enlarge(frame, corners, work[STACK + 16])
    return reach, upper, cells


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


@njit(cache=True, nogil=True, error_model="numpy")
def longest_crossing(e: int, solids: Solids, work: Any) -> int:
    """Find the face of e along which a triangle is best divided.

    Parameters
    ----------
    e, solids, work
        See `bound_in_cell`.

    Returns
    -------
    int
        That which passes through the triangle along most of its size. -1 if no face passes
        through it, or ends in it: all of its inside is inside of e, or outside, or on its surface.
        -2 if those that do are small.
    """
    corners = work[STACK + 22 : STACK + 30]
    vertices = solids.vertices
    faces = solids.faces
    clusters = solids.clusters
    ux = corners[1, 0] - corners[0, 0]
    uy = corners[1, 1] - corners[0, 1]
    uz = corners[1, 2] - corners[0, 2]
    vx = corners[2, 0] - corners[0, 0]
    vy = corners[2, 1] - corners[0, 1]
    vz = corners[2, 2] - corners[0, 2]
    mx = uy * vz - uz * vy
    my = uz * vx - ux * vz
    mz = ux * vy - uy * vx
    size = np.sqrt(mx * mx + my * my + mz * mz)
    if size == 0.0:
        return -1
    mx /= size
    my /= size
    mz /= size
    px, py, pz, radius = centre_of(corners, 3)
    slack = 1e-9 * (1.0 + radius)
    most = 0.0
    found = -1
    v0 = solids.vertex_starts[e]
    first = solids.cluster_starts[e]
    for c in range(first, solids.cluster_starts[e + 1]):
        if (
            gap(px, clusters[c, 0], clusters[c, 3]) > radius
            or gap(py, clusters[c, 1], clusters[c, 4]) > radius
            or gap(pz, clusters[c, 2], clusters[c, 5]) > radius
        ):
            continue
        begin = solids.face_starts[e] + (c - first) * CLUSTER
        for f in range(begin, min(begin + CLUSTER, solids.face_starts[e + 1])):
            i = v0 + faces[f, 0]
            nx, ny, nz = unit_normal(i, v0 + faces[f, 1], v0 + faces[f, 2], vertices)
            # along the line of both planes
            ux = my * nz - mz * ny
            uy = mz * nx - mx * nz
            uz = mx * ny - my * nx
            size = np.sqrt(ux * ux + uy * uy + uz * uz)
            if size < 1e-9:
                continue
            ux /= size
            uy /= size
            uz /= size
            begins = np.inf
            ends = -np.inf
            low = np.inf
            high = -np.inf
            for k in range(3):
                j = v0 + faces[f, k]
                x = vertices[j, 0] - px
                y = vertices[j, 1] - py
                z = vertices[j, 2] - pz
                d = mx * x + my * y + mz * z
                along = ux * x + uy * y + uz * z
                low = d if d < low else low
                high = d if d > high else high
                if abs(d) <= slack:
                    begins = along if along < begins else begins
                    ends = along if along > ends else ends
                j = v0 + faces[f, k + 1 if k < 2 else 0]
                x = vertices[j, 0] - px
                y = vertices[j, 1] - py
                z = vertices[j, 2] - pz
                there = mx * x + my * y + mz * z
                if (d < 0.0) != (there < 0.0):
                    along += d / (d - there) * (ux * x + uy * y + uz * z - along)
                    begins = along if along < begins else begins
                    ends = along if along > ends else ends
            if low > slack or high < -slack:
                continue
            low = np.inf
            high = -np.inf
            starts = np.inf
            stops = -np.inf
            for k in range(3):
                x = corners[k, 0] - vertices[i, 0]
                y = corners[k, 1] - vertices[i, 1]
                z = corners[k, 2] - vertices[i, 2]
                d = nx * x + ny * y + nz * z
                x = corners[k, 0] - px
                y = corners[k, 1] - py
                z = corners[k, 2] - pz
                along = ux * x + uy * y + uz * z
                low = d if d < low else low
                high = d if d > high else high
                j = k + 1 if k < 2 else 0
                there = (
                    nx * (corners[j, 0] - vertices[i, 0])
                    + ny * (corners[j, 1] - vertices[i, 1])
                    + nz * (corners[j, 2] - vertices[i, 2])
                )
                if (d < 0.0) != (there < 0.0):
                    x = corners[j, 0] - px
                    y = corners[j, 1] - py
                    z = corners[j, 2] - pz
                    along += d / (d - there) * (ux * x + uy * y + uz * z - along)
                    starts = along if along < starts else starts
                    stops = along if along > stops else stops
            if low >= -slack or high <= slack:
                continue
            length = (ends if ends < stops else stops) - (begins if begins > starts else starts)
            if length <= slack:
                continue
            if length > most and length > 0.5 * (stops - starts):
                most = length
                found = f
            elif found == -1:
                found = -2
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def cut_triangle(f: int, e: int, corners: Any, solids: Solids, work: Any, count: int) -> int:
    """Put the parts of a triangle on both sides of a face of e on the stack."""
    vertices = solids.vertices
    v0 = solids.vertex_starts[e]
    i = v0 + solids.faces[f, 0]
    nx, ny, nz = unit_normal(i, v0 + solids.faces[f, 1], v0 + solids.faces[f, 2], vertices)
    at = 0
    for k in range(3):
        j = (k + 1) % 3
        other = (k + 2) % 3
        d = side_of(corners, k, nx, ny, nz, i, vertices)
        if (d < 0.0) != (side_of(corners, j, nx, ny, nz, i, vertices) < 0.0) and (d < 0.0) != (
            side_of(corners, other, nx, ny, nz, i, vertices) < 0.0
        ):
            at = k
    j = (at + 1) % 3
    k = (at + 2) % 3
    d = side_of(corners, at, nx, ny, nz, i, vertices)
    one = side_of(corners, j, nx, ny, nz, i, vertices)
    two = side_of(corners, k, nx, ny, nz, i, vertices)
    one = d / (d - one)
    two = d / (d - two)
    for c in range(3):
        x = corners[at, c]
        y = x + one * (corners[j, c] - x)
        z = x + two * (corners[k, c] - x)
        work[count, c] = x
        work[count, 3 + c] = y
        work[count, 6 + c] = z
        work[count + 1, c] = y
        work[count + 1, 3 + c] = corners[j, c]
        work[count + 1, 6 + c] = corners[k, c]
        work[count + 2, c] = y
        work[count + 2, 3 + c] = corners[k, c]
        work[count + 2, 6 + c] = z
    return count + 3


@njit(cache=True, nogil=True, error_model="numpy")
def side_of(corners: Any, c: int, nx: float, ny: float, nz: float, i: int, vertices: Any) -> float:
    """Give the distance of a corner from the plane of a face."""
    return float(
        nx * (corners[c, 0] - vertices[i, 0])
        + ny * (corners[c, 1] - vertices[i, 1])
        + nz * (corners[c, 2] - vertices[i, 2])
    )


@njit(cache=True, nogil=True, error_model="numpy")
def divide_triangle(corners: Any, work: Any, count: int) -> int:
    """Put the halves of a triangle on the stack; its longest edge is divided."""
    longest = -1.0
    at = 0
    for k in range(3):
        j = k + 1 if k < 2 else 0
        x = corners[j, 0] - corners[k, 0]
        y = corners[j, 1] - corners[k, 1]
        z = corners[j, 2] - corners[k, 2]
        size = x * x + y * y + z * z
        if size > longest:
            longest = size
            at = k
    i = at
    j = (at + 1) % 3
    k = (at + 2) % 3
    for c in range(3):
        middle = 0.5 * (corners[i, c] + corners[j, c])
        work[count, c] = corners[i, c]
        work[count, 3 + c] = middle
        work[count, 6 + c] = corners[k, c]
        work[count + 1, c] = middle
        work[count + 1, 3 + c] = corners[j, c]
        work[count + 1, 6 + c] = corners[k, c]
    return count + 2


@njit(cache=True, nogil=True, error_model="numpy")
def over_inside(
    e: int, o: int, own: Any, reach: float, upper: float, cells: int, solids: Solids, work: Any
) -> Any:
    """Search the largest distance from the surface of e over its maxima inside both elements.

    Parameters, returns
        See `over_surface`.
    """
    frame = work[STACK : STACK + 2]
    corners = work[STACK + 22 : STACK + 30]
    box = work[STACK + 16]
    count = 1
    for axis in range(3):
        work[0, axis] = box[axis]
        work[0, 3 + axis] = box[3 + axis]
        if not box[3 + axis] > box[axis]:
            return reach, upper, cells
    while count > 0:
        count -= 1
        for corner in range(8):
            u = work[count, 0 if corner & 1 == 0 else 3]
            v = work[count, 1 if corner & 2 == 0 else 4]
            w = work[count, 2 if corner & 4 == 0 else 5]
            for c in range(3):
                corners[corner, c] = u * frame[0, c] + v * frame[0, 3 + c] + w * frame[0, 6 + c]
        reach, bound = bound_in_cell(8, e, o, own, reach, solids, work)
        cells += 1
        if bound <= accurate(reach) or has_no_maximum(e, bound, solids, work):
            continue
        if cells >= MAX_CELLS or count + 2 > STACK:
            upper = bound if bound > upper else upper
            continue
        axis = 0
        for k in range(1, 3):
            if work[count, 3 + k] - work[count, k] > work[count, 3 + axis] - work[count, axis]:
                axis = k
        middle = 0.5 * (work[count, axis] + work[count, 3 + axis])
        for k in range(6):
            work[count + 1, k] = work[count, k]
        work[count, 3 + axis] = middle
        work[count + 1, axis] = middle
        count += 2
    return reach, upper, cells


@njit(cache=True, nogil=True, error_model="numpy")
def bound_in_cell(n: int, e: int, o: int, own: Any, reach: float, solids: Solids, work: Any) -> Any:
    """Bound the distance from the surface of e in the part of a cell that is inside e and o.

    Parameters
    ----------
    n : int
        Corners of the cell: 3 of a triangle, 8 of a box.
    e : int
    o : int
        Negative if the cell lies on its surface.
    reach : float
        The largest distance so far.
    solids, work
        See `penetration`.

    Returns
    -------
    reach : float
        Larger where a point was found that is farther.
    bound : float
        Negative where nothing of the cell is inside of both.
    """
    corners = work[STACK + 22 : STACK + 30]
    rows = work[STACK + 30 : STACK + 30 + ROWS]
    mean = work[STACK + 37]
    mx, my, mz, radius = centre_of(corners, n)
    px = mx
    py = my
    pz = mz
    d2, _, _, _, f = nearest(px, py, pz, np.inf, e, solids)
    d = np.sqrt(d2)
    inside = is_inside(px, py, pz, e, solids)
    if not inside and d > radius:
        return reach, -1.0
    if not inside and o < 0 and longest_crossing(e, solids, work) == -1:
        return reach, 0.0 if d <= 1e-9 * (1.0 + radius) else -1.0
    if o >= 0:
        inside_other = is_inside(px, py, pz, o, solids)
        if not inside_other:
            d2, _, _, _, _ = nearest(px, py, pz, np.inf, o, solids)
            if np.sqrt(d2) > radius:
                return reach, -1.0
        inside = inside and inside_other
    if inside and d > reach:
        reach = d
    upper = d + radius
    most = distances_in_box(own, corners, n, rows[0])
    upper = most if most < upper else upper
    if upper <= accurate(reach):
        return reach, upper
    lower_mean(rows, 1, mean, n)
    for m in range(1, ROWS):
        distances_from(f, px, py, pz, corners, n, rows[m], e, solids, work)
        at = lower_mean(rows, m + 1, mean, n)
        mean[8] = m + 1
        before = upper
        if mean[at] < upper:
            upper = mean[at]
        if upper <= accurate(reach) or (m > 1 and upper > 0.75 * before):
            break
        # at the corner itself several faces may be nearest
        px = corners[at, 0] + PULLED * (mx - corners[at, 0])
        py = corners[at, 1] + PULLED * (my - corners[at, 1])
        pz = corners[at, 2] + PULLED * (mz - corners[at, 2])
        d2, _, _, _, f = nearest(px, py, pz, np.inf, e, solids)
        d = np.sqrt(d2)
        if (
            d > reach
            and is_inside(px, py, pz, e, solids)
            and (o < 0 or is_inside(px, py, pz, o, solids))
        ):
            reach = d
        if mean[at] - d <= 0.1 * (accurate(reach) - reach):
            break
    return reach, upper


@njit(cache=True, nogil=True, error_model="numpy")
def centre_of(corners: Any, n: int) -> Any:
    """Give the mean of the corners of a cell, and the largest distance from it."""
    px = 0.0
    py = 0.0
    pz = 0.0
    for k in range(n):
        px += corners[k, 0]
        py += corners[k, 1]
        pz += corners[k, 2]
    px /= n
    py /= n
    pz /= n
    radius = 0.0
    for k in range(n):
        x = corners[k, 0] - px
        y = corners[k, 1] - py
        z = corners[k, 2] - pz
        size = x * x + y * y + z * z
        radius = size if size > radius else radius
    return px, py, pz, np.sqrt(radius)


@njit(cache=True, nogil=True, error_model="numpy")
def lower_mean(rows: Any, m: int, mean: Any, n: int) -> int:
    """Find a mean of rows whose largest value is small.

    Parameters
    ----------
    rows : float64[:, 9]
    m : int
        How many rows; the last one is new.
    mean : float64[9]
        In: a mean of the rows before. Out: the mean that was found.
    n : int
        Values of a row.

    Returns
    -------
    int
        Where its largest value is.
    """
    if m == 1:
        for k in range(n):
            mean[k] = rows[0, k]
    at = 0
    for _ in range(3 if m > 2 else 1):
        for r in range(m - 1, -1, -1):
            # along the line from the mean to the row, whose largest value is convex
            share = 0.0
            at = 0
            for k in range(1, n):
                if mean[k] > mean[at] or (
                    mean[k] == mean[at] and rows[r, k] - mean[k] > rows[r, at] - mean[at]
                ):
                    at = k
            while rows[r, at] < mean[at] and share < 1.0:
                slope = rows[r, at] - mean[at]
                step = 1.0
                then = at
                for k in range(n):
                    steeper = rows[r, k] - mean[k] - slope
                    if steeper > 0.0:
                        there = (mean[at] - mean[k]) / steeper
                        if there < step or (
                            there == step and rows[r, k] - mean[k] > rows[r, then] - mean[then]
                        ):
                            step = there
                            then = k
                share = step if step > share else share
                if then == at:
                    break
                at = then
            for k in range(n):
                mean[k] += share * (rows[r, k] - mean[k])
    at = 0
    for k in range(1, n):
        if mean[k] > mean[at]:
            at = k
    return at


@njit(cache=True, nogil=True, error_model="numpy")
def distances_from(
    f: int, px: float, py: float, pz: float, corners: Any, n: int, row: Any, e: int,
    solids: Solids, work: Any,
) -> None:  # fmt: skip
    """Fill in distances of the corners of a cell from a convex piece of a surface.

    The piece is the face, or the plane below the cell if flat neighbours of the face cover it.

    Parameters
    ----------
    f : int
        A face of e; that nearest to p, a point of the cell.
    px, py, pz : float
    corners : float64[8, 9]
    n : int
    row : float64[9]
        Out: the distances.
    e, solids, work
        See `bound_in_cell`.
    """
    vertices = solids.vertices
    faces = solids.faces
    v0 = solids.vertex_starts[e]
    i = v0 + faces[f, 0]
    j = v0 + faces[f, 1]
    k = v0 + faces[f, 2]
    nx, ny, nz = unit_normal(i, j, k, vertices)
    flat = True
    for c in range(n):
        d2, _, _, _ = squared_distance_point_triangle(
            corners[c, 0], corners[c, 1], corners[c, 2],
            vertices[i, 0], vertices[i, 1], vertices[i, 2],
            vertices[j, 0], vertices[j, 1], vertices[j, 2],
            vertices[k, 0], vertices[k, 1], vertices[k, 2],
        )  # fmt: skip
        row[c] = np.sqrt(d2)
        high = abs(
            nx * (corners[c, 0] - vertices[i, 0])
            + ny * (corners[c, 1] - vertices[i, 1])
            + nz * (corners[c, 2] - vertices[i, 2])
        )
        if row[c] > high * (1.0 + 1e-9) + 1e-9:
            flat = False
    if flat:
        return
    d2, _, _, _ = squared_distance_point_triangle(
        px, py, pz,
        vertices[i, 0], vertices[i, 1], vertices[i, 2],
        vertices[j, 0], vertices[j, 1], vertices[j, 2],
        vertices[k, 0], vertices[k, 1], vertices[k, 2],
    )  # fmt: skip
    high = abs(nx * (px - vertices[i, 0]) + ny * (py - vertices[i, 1]) + nz * (pz - vertices[i, 2]))
    if np.sqrt(d2) > high * (1.0 + 1e-9) + 1e-9:
        return
    rough = covered(f, nx, ny, nz, corners, n, e, solids, work)
    if rough < 0.0:
        return
    for c in range(n):
        high = rough + abs(
            nx * (corners[c, 0] - vertices[i, 0])
            + ny * (corners[c, 1] - vertices[i, 1])
            + nz * (corners[c, 2] - vertices[i, 2])
        )
        row[c] = high if high < row[c] else row[c]


@njit(cache=True, nogil=True, error_model="numpy")
def unit_normal(i: int, j: int, k: int, vertices: Any) -> Any:
    """Give the normal of a face, of length 1; 0 if it has no area."""
    ux = vertices[j, 0] - vertices[i, 0]
    uy = vertices[j, 1] - vertices[i, 1]
    uz = vertices[j, 2] - vertices[i, 2]
    vx = vertices[k, 0] - vertices[i, 0]
    vy = vertices[k, 1] - vertices[i, 1]
    vz = vertices[k, 2] - vertices[i, 2]
    nx = uy * vz - uz * vy
    ny = uz * vx - ux * vz
    nz = ux * vy - uy * vx
    size = np.sqrt(nx * nx + ny * ny + nz * nz)
    unit = 1.0 / size if size > 0.0 else 0.0
    return nx * unit, ny * unit, nz * unit


@njit(cache=True, nogil=True, error_model="numpy")
def covered(
    f: int, nx: float, ny: float, nz: float, corners: Any, n: int, e: int, solids: Solids, work: Any
) -> float:
    """Tell whether flat neighbours of a face cover the projection of a cell on its plane.

    The projection has a point in the face. It is covered if each edge that passes through it has
    a face on both sides.

    Returns
    -------
    float
        How far the neighbours are from the plane, at most; negative if they do not cover it.
    """
    vertices = solids.vertices
    faces = solids.faces
    clusters = solids.clusters
    near = work[STACK + 38 : STACK + 38 + 4]  # 36 places
    v0 = solids.vertex_starts[e]
    origin = v0 + faces[f, 0]
    ox = vertices[origin, 0]
    oy = vertices[origin, 1]
    oz = vertices[origin, 2]
    # the box of the projection
    lx = np.inf
    ly = np.inf
    lz = np.inf
    hx = -np.inf
    hy = -np.inf
    hz = -np.inf
    for c in range(n):
        high = nx * (corners[c, 0] - ox) + ny * (corners[c, 1] - oy) + nz * (corners[c, 2] - oz)
        x = corners[c, 0] - high * nx
        y = corners[c, 1] - high * ny
        z = corners[c, 2] - high * nz
        lx = x if x < lx else lx
        ly = y if y < ly else ly
        lz = z if z < lz else lz
        hx = x if x > hx else hx
        hy = y if y > hy else hy
        hz = z if z > hz else hz
    size = max(hx - lx, hy - ly, hz - lz)
    loose = 1e-9 + 1e-5 * size
    count = 0
    rough = 0.0
    first = solids.cluster_starts[e]
    for c in range(first, solids.cluster_starts[e + 1]):
        if (
            clusters[c, 0] > hx + loose
            or clusters[c, 3] < lx - loose
            or clusters[c, 1] > hy + loose
            or clusters[c, 4] < ly - loose
            or clusters[c, 2] > hz + loose
            or clusters[c, 5] < lz - loose
        ):
            continue
        begin = solids.face_starts[e] + (c - first) * CLUSTER
        for g in range(begin, min(begin + CLUSTER, solids.face_starts[e + 1])):
            i = v0 + faces[g, 0]
            j = v0 + faces[g, 1]
            k = v0 + faces[g, 2]
            away = 0.0
            for corner in range(3):
                v = v0 + faces[g, corner]
                high = abs(
                    nx * (vertices[v, 0] - ox)
                    + ny * (vertices[v, 1] - oy)
                    + nz * (vertices[v, 2] - oz)
                )
                away = high if high > away else away
            if away > loose:
                continue
            mx, my, mz = unit_normal(i, j, k, vertices)
            if mx * nx + my * ny + mz * nz < FLAT:
                continue
            if count == PATCH:
                return -1.0
            near[count // 9, count % 9] = g
            count += 1
            rough = away if away > rough else rough
    for s in range(count):
        g = int(near[s // 9, s % 9])
        for side in range(3):
            i = v0 + faces[g, side]
            j = v0 + faces[g, (side + 1) % 3]
            if apart_in_plane(i, j, nx, ny, nz, corners, n, vertices):
                continue
            met = False
            for r in range(count):
                h = int(near[r // 9, r % 9])
                for k in range(3):
                    p = v0 + faces[h, k]
                    q = v0 + faces[h, (k + 1) % 3]
                    if (
                        vertices[p, 0] == vertices[j, 0]
                        and vertices[p, 1] == vertices[j, 1]
                        and vertices[p, 2] == vertices[j, 2]
                        and vertices[q, 0] == vertices[i, 0]
                        and vertices[q, 1] == vertices[i, 1]
                        and vertices[q, 2] == vertices[i, 2]
                    ):
                        met = True
                        break
                if met:
                    break
            if not met:
                return -1.0
    return rough


@njit(cache=True, nogil=True, error_model="numpy")
def apart_in_plane(
    i: int, j: int, nx: float, ny: float, nz: float, corners: Any, n: int, vertices: Any
) -> Any:
    """Tell whether an edge surely does not pass through the projection of a cell on a plane.

    All corners are on one side of the edge, or beyond one of its ends.
    """
    ux = vertices[j, 0] - vertices[i, 0]
    uy = vertices[j, 1] - vertices[i, 1]
    uz = vertices[j, 2] - vertices[i, 2]
    length = np.sqrt(ux * ux + uy * uy + uz * uz)
    if length == 0.0:
        return True
    ux /= length
    uy /= length
    uz /= length
    # to the left, where the face is
    wx = ny * uz - nz * uy
    wy = nz * ux - nx * uz
    wz = nx * uy - ny * ux
    left = np.inf
    right = -np.inf
    low = np.inf
    high = -np.inf
    for c in range(n):
        x = corners[c, 0] - vertices[i, 0]
        y = corners[c, 1] - vertices[i, 1]
        z = corners[c, 2] - vertices[i, 2]
        across = wx * x + wy * y + wz * z
        along = ux * x + uy * y + uz * z
        left = across if across < left else left
        right = across if across > right else right
        low = along if along < low else low
        high = along if along > high else high
    slack = 1e-9 * (1.0 + length)
    return left >= -slack or right <= slack or low >= length - slack or high <= slack


@njit(cache=True, nogil=True, error_model="numpy")
def has_no_maximum(e: int, bound: float, solids: Solids, work: Any) -> Any:
    """Tell whether the distance from the surface of e has surely no maximum in a box.

    At a maximum the normals of the nearest faces, into e, have no direction in common.

    Parameters
    ----------
    e : int
    bound : float
        Of the distance in the box.
    solids, work
        See `bound_in_cell`.
    """
    corners = work[STACK + 22 : STACK + 30]
    rows = work[STACK + 30 : STACK + 30 + ROWS]
    normals = work[STACK + 42 : STACK + 42 + 11]  # 33 places
    highs = work[STACK + 53]
    vertices = solids.vertices
    faces = solids.faces
    clusters = solids.clusters
    px, py, pz, radius = centre_of(corners, 8)
    d2, _, _, _, _ = nearest(px, py, pz, np.inf, e, solids)
    far = np.sqrt(d2) + 2.0 * radius
    if bound + radius < far:
        far = bound + radius
    far = far * (1.0 + 1e-9)
    v0 = solids.vertex_starts[e]
    first = solids.cluster_starts[e]
    count = 0
    for c in range(first, solids.cluster_starts[e + 1]):
        dx = gap(px, clusters[c, 0], clusters[c, 3])
        dy = gap(py, clusters[c, 1], clusters[c, 4])
        dz = gap(pz, clusters[c, 2], clusters[c, 5])
        if dx * dx + dy * dy + dz * dz > far * far:
            continue
        begin = solids.face_starts[e] + (c - first) * CLUSTER
        for f in range(begin, min(begin + CLUSTER, solids.face_starts[e + 1])):
            i = v0 + faces[f, 0]
            j = v0 + faces[f, 1]
            k = v0 + faces[f, 2]
            d2, _, _, _ = squared_distance_point_triangle(
                px, py, pz,
                vertices[i, 0], vertices[i, 1], vertices[i, 2],
                vertices[j, 0], vertices[j, 1], vertices[j, 2],
                vertices[k, 0], vertices[k, 1], vertices[k, 2],
            )  # fmt: skip
            if d2 > far * far:
                continue
            nx, ny, nz = unit_normal(i, j, k, vertices)
            nx *= -solids.side[e]
            ny *= -solids.side[e]
            nz *= -solids.side[e]
            lowest = np.inf
            for corner in range(8):
                highs[corner] = (
                    nx * (corners[corner, 0] - vertices[i, 0])
                    + ny * (corners[corner, 1] - vertices[i, 1])
                    + nz * (corners[corner, 2] - vertices[i, 2])
                )
                lowest = highs[corner] if highs[corner] < lowest else lowest
            # others are nearer everywhere, by more than rounding: its own row does not count
            nearer = False
            for r in range(int(work[STACK + 37, 8]) + 1):
                row = rows[r] if r < int(work[STACK + 37, 8]) else work[STACK + 37]
                beyond = True
                for corner in range(8):
                    if highs[corner] <= row[corner] + 1e-7 * (1.0 + radius):
                        beyond = False
                nearer = nearer or beyond
            if nearer:
                continue
            if solids.parts[e] > 1 and lowest < -1e-9 * (1.0 + radius):
                return False
            known = nx == 0.0 and ny == 0.0 and nz == 0.0
            for s in range(count):
                if (
                    normals[s // 3, s % 3 * 3] * nx
                    + normals[s // 3, s % 3 * 3 + 1] * ny
                    + normals[s // 3, s % 3 * 3 + 2] * nz
                ) > 1.0 - 1e-14:
                    known = True
            if known:
                continue
            if count == PATCH:
                return False
            normals[count // 3, count % 3 * 3] = nx
            normals[count // 3, count % 3 * 3 + 1] = ny
            normals[count // 3, count % 3 * 3 + 2] = nz
            count += 1
    # a direction that all of them have in common, by the perceptron's rule
    ux = 0.0
    uy = 0.0
    uz = 0.0
    for _ in range(2 * PATCH):
        least = np.inf
        at = 0
        for s in range(count):
            along = (
                normals[s // 3, s % 3 * 3] * ux
                + normals[s // 3, s % 3 * 3 + 1] * uy
                + normals[s // 3, s % 3 * 3 + 2] * uz
            )
            if along < least:
                least = along
                at = s
        if least > 1e-3:
            return True
        ux += normals[at // 3, at % 3 * 3]
        uy += normals[at // 3, at % 3 * 3 + 1]
        uz += normals[at // 3, at % 3 * 3 + 2]
    return False
