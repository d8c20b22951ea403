"""Narrow phase: how elements whose boxes meet are related, triangle by triangle.

The steps of `relate` for a pair of elements: put the two in an order that does not depend on which
is a (`comes_first`), gather the triangles near the other element, find which of them are in contact
(`find_contacts`), decide from these and from single points whether the elements have a common
interior and which of them sticks out (`relate_without_crossing`), and measure how thick the common
interior is (`inscribed_ball.common_ball`).
"""

from typing import Any

import numpy as np

from spatialq.geometry.clusters import CLUSTER
from spatialq.geometry.solids import Solids
from spatialq.geometry.triangles import squared_distance
from spatialq.runtime.arrays import Bytes, Floats, Int32s, Ints
from spatialq.runtime.compile_cache import njit

from .inscribed_ball import common_ball, largest_ball
from .point_in_solid import faces_inside, in_both, parts_inside
from .triangle_pair import (
    APART,
    COPLANAR,
    CROSS,
    SHALLOW,
    classify,
    crossing_centre,
    point_behind,
    point_below,
)

CLOSE = 0.001
"""Share of the tolerance by which a ball is searched for behind a crossing, where another face is
in front of the point that is tried first."""

MAX_SHALLOW = 4
"""Shallow pairs of triangles from which a ball is searched for, at most."""

DISJOINT, TOUCH, OVERLAP, CONTAINS, INSIDE, COVERS, COVERED_BY, EQUALS = range(8)
"""Codes, in the order of `RELATIONS`."""

COLUMNS = 18
"""Numbers kept of a triangle: its corners, its normal, its box."""


@njit(cache=True, nogil=True, error_model="numpy")
def relate(
    pairs_a: Ints,
    pairs_b: Ints,
    first: int,
    stop: int,
    solids: Solids,
    t: float,
    touches: Any,
    max_faces: int,
    max_vertices: int,
    halt: Bytes,
    relation: Any,
    measures: Floats,
) -> None:
    """Find the relations of the pairs first to stop.

    Parameters
    ----------
    pairs_a, pairs_b : int64[n]
        Elements whose boxes are at most the tolerance apart.
    first, stop : int
    solids : Solids
    t : float
        The tolerance, metres.
    touches : bool
        Whether pairs without common interior are distinguished.
    max_faces, max_vertices : int
        Of any element.
    halt : uint8[1]
        1 to stop before the next pair.
    relation : int8[n]
        Out: the code; without `touches` disjoint for touch as well.
    measures : float64[n, 5]
        Out: thickness, distance, x, y, z.
    """
    one = np.empty((max_faces, COLUMNS))
    other = np.empty((max_faces, COLUMNS))
    state = np.empty(max_vertices, np.int8)
    groups = np.empty((max_faces // CLUSTER + 1, 6))
    near = np.empty(max_faces // CLUSTER + 1, np.int64)
    polygon = np.empty((9, 3))
    spare = np.empty((9, 3))
    box = np.empty(6)
    contacts = np.empty((256, 3), np.int32)
    for p in range(first, stop):
        if halt[0]:
            return
        a = pairs_a[p]
        b = pairs_b[p]
        turned = comes_first(b, a, solids)
        if turned:
            a = b
            b = pairs_a[p]
        side_a = solids.side[a]
        side_b = solids.side[b]
        closed = side_a != 0 and side_b != 0
        shared_box(solids.boxes, a, b, t, box)
        n = gather_triangles(a, box, solids, one)
        m = gather_triangles(b, box, solids, other) if n > 0 else 0
        contacts, count = find_contacts(
            one, n, other, m, side_a, side_b, t, touches, groups, near, contacts
        )
        crossing = count > 0 and contacts[count - 1, 2] == CROSS
        d2 = np.inf
        px = np.nan
        py = np.nan
        pz = np.nan
        cx = np.nan
        cy = np.nan
        cz = np.nan
        if crossing:
            code = OVERLAP
            i = contacts[count - 1, 0]
            j = contacts[count - 1, 1]
            x, y, z = crossing_centre(one, i, other, j, side_a, side_b, t)
            cx = x
            cy = y
            cz = z
            if closed:
                px, py, pz = point_behind(cx, cy, cz, one, i, other, j, side_a, side_b, 0.1 * t)
        else:
            code, d2, x, y, z, px, py, pz = relate_without_crossing(
                a, b, one, other, contacts, count, solids, t, touches, state, polygon, spare
            )
        radius = 0.0
        if code >= OVERLAP:
            d2 = 0.0
            if closed:
                radius, x, y, z = common_ball(px, py, pz, box, t, a, b, solids)
                if radius == 0.0 and crossing:  # another face is in front of that point
                    px, py, pz = point_behind(
                        cx, cy, cz, one, i, other, j, side_a, side_b, CLOSE * t
                    )
                    radius, x, y, z = common_ball(px, py, pz, box, t, a, b, solids)
            else:
                radius = np.nan
                if not crossing:
                    x = px
                    y = py
                    z = pz
        if turned:
            if code in (CONTAINS, COVERS):
                code += 1
            elif code in (INSIDE, COVERED_BY):
                code -= 1
        relation[p] = code
        measures[p, 0] = 2.0 * radius
        measures[p, 1] = np.sqrt(d2)
        measures[p, 2] = x
        measures[p, 3] = y
        measures[p, 4] = z


@njit(cache=True, nogil=True, error_model="numpy")
def comes_first(a: int, b: int, solids: Solids) -> Any:
    """Tell whether a is the first of the two in an order by what their meshes are.

    A pair is related in this order, so that (a, b) and (b, a) give the same to the bit.
    """
    n = solids.face_starts[a + 1] - solids.face_starts[a]
    m = solids.face_starts[b + 1] - solids.face_starts[b]
    if n != m:
        return n < m
    n = solids.vertex_starts[a + 1] - solids.vertex_starts[a]
    m = solids.vertex_starts[b + 1] - solids.vertex_starts[b]
    if n != m:
        return n < m
    for v in range(n):
        for axis in range(3):
            x = solids.vertices[solids.vertex_starts[a] + v, axis]
            y = solids.vertices[solids.vertex_starts[b] + v, axis]
            if x != y:
                return x < y
    for f in range(solids.face_starts[a + 1] - solids.face_starts[a]):
        for corner in range(3):
            i = solids.faces[solids.face_starts[a] + f, corner]
            j = solids.faces[solids.face_starts[b] + f, corner]
            if i != j:
                return i < j
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def shared_box(boxes: Any, a: int, b: int, t: float, box: Any) -> None:
    """Fill in what the boxes of two elements share, larger by t on every side."""
    for axis in range(3):
        low = boxes[a, axis] if boxes[a, axis] > boxes[b, axis] else boxes[b, axis]
        high = boxes[a, 3 + axis] if boxes[a, 3 + axis] < boxes[b, 3 + axis] else boxes[b, 3 + axis]
        box[axis] = low - t
        box[3 + axis] = high + t


@njit(cache=True, nogil=True, error_model="numpy")
def gather_triangles(e: int, box: Floats, solids: Solids, kept: Floats) -> int:
    """Copy the triangles of an element that meet a box; those without area are left out.

    Parameters
    ----------
    e : int
    box : float64[6]
    solids : Solids
    kept : float64[:, COLUMNS]
        Out: the triangles.

    Returns
    -------
    int
        How many.
    """
    vertices = solids.vertices
    faces = solids.faces
    clusters = solids.clusters
    end = solids.face_starts[e + 1]
    first = solids.cluster_starts[e]
    v0 = solids.vertex_starts[e]
    n = 0
    for c in range(first, solids.cluster_starts[e + 1]):
        if (
            clusters[c, 0] > box[3]
            or clusters[c, 3] < box[0]
            or clusters[c, 1] > box[4]
            or clusters[c, 4] < box[1]
            or clusters[c, 2] > box[5]
            or clusters[c, 5] < box[2]
        ):
            continue
        begin = solids.face_starts[e] + (c - first) * CLUSTER
        for f in range(begin, min(begin + CLUSTER, end)):
            i = v0 + faces[f, 0]
            j = v0 + faces[f, 1]
            k = v0 + faces[f, 2]
            outside = False
            for axis in range(3):
                p = vertices[i, axis]
                q = vertices[j, axis]
                r = vertices[k, axis]
                low = p if p < q else q
                low = r if r < low else low
                high = p if p > q else q
                high = r if r > high else high
                if low > box[3 + axis] or high < box[axis]:
                    outside = True
                    break
                kept[n, axis] = p
                kept[n, 3 + axis] = q
                kept[n, 6 + axis] = r
                kept[n, 12 + axis] = low
                kept[n, 15 + axis] = high
            if outside:
                continue
            ux = kept[n, 3] - kept[n, 0]
            uy = kept[n, 4] - kept[n, 1]
            uz = kept[n, 5] - kept[n, 2]
            vx = kept[n, 6] - kept[n, 0]
            vy = kept[n, 7] - kept[n, 1]
            vz = kept[n, 8] - kept[n, 2]
            nx = uy * vz - uz * vy
            ny = uz * vx - ux * vz
            nz = ux * vy - uy * vx
            size = np.sqrt(nx * nx + ny * ny + nz * nz)
            if size == 0.0:
                continue
            unit = 1.0 / size
            kept[n, 9] = nx * unit
            kept[n, 10] = ny * unit
            kept[n, 11] = nz * unit
            n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def find_contacts(
    one: Floats,
    n: int,
    other: Floats,
    m: int,
    side: int,
    other_side: int,
    t: float,
    touches: Any,
    groups: Floats,
    near: Ints,
    contacts: Int32s,
) -> Any:
    """Classify the pairs of triangles, in the order of the faces, up to the first that cross.

    Parameters
    ----------
    one, other : float64[:, COLUMNS]
        The triangles of two elements.
    n, m : int
        How many there are.
    side, other_side, t, touches
        See `triangle_pair.classify`.
    groups : float64[:, 6]
    near : int64[:]
        Scratch, with a place for each cluster of any element.
    contacts : int32[:, 3]
        A longer array takes its place if it is too short.

    Returns
    -------
    contacts : int32[:, 3]
        Rows of `one` and of `other`, and how they meet, of all pairs that are not surely apart.
    count : int
        How many these are. Triangles that cross are the last ones.
    """
    count = 0
    n_groups = group_boxes(other, m, groups)
    n_near = 0
    for i in range(n):
        if i % CLUSTER == 0:
            last = i + CLUSTER if i + CLUSTER < n else n
            n_near = groups_within(one, i, last, groups, n_groups, t, near)
        for h in range(n_near * CLUSTER):
            j = near[h // CLUSTER] * CLUSTER + h % CLUSTER
            if j >= m or (
                other[j, 12] - one[i, 15] > t
                or one[i, 12] - other[j, 15] > t
                or other[j, 13] - one[i, 16] > t
                or one[i, 13] - other[j, 16] > t
                or other[j, 14] - one[i, 17] > t
                or one[i, 14] - other[j, 17] > t
            ):
                continue
            kind = classify(
                one[i, 0], one[i, 1], one[i, 2], one[i, 3], one[i, 4], one[i, 5],
                one[i, 6], one[i, 7], one[i, 8], one[i, 9], one[i, 10], one[i, 11],
                other[j, 0], other[j, 1], other[j, 2], other[j, 3], other[j, 4], other[j, 5],
                other[j, 6], other[j, 7], other[j, 8], other[j, 9], other[j, 10], other[j, 11],
                side, other_side, t, touches,
            )  # fmt: skip
            if kind == APART:
                continue
            if count == len(contacts):
                contacts = np.concatenate((contacts, np.empty_like(contacts)))
            contacts[count, 0] = i
            contacts[count, 1] = j
            contacts[count, 2] = kind
            count += 1
            if kind == CROSS:
                return contacts, count
    return contacts, count


@njit(cache=True, nogil=True, error_model="numpy")
def relate_without_crossing(
    a: int,
    b: int,
    one: Any,
    other: Any,
    contacts: Any,
    count: int,
    solids: Solids,
    t: float,
    touches: Any,
    state: Any,
    polygon: Floats,
    spare: Floats,
) -> Any:
    """Find the relation of two elements none of whose triangles cross.

    Parameters
    ----------
    a, b : int
    one, other, contacts, count
        See `find_contacts`.
    solids : Solids
    t : float
    touches : bool
        See `relate`.
    state : int8[]
    polygon, spare : float64[9, 3]
        Scratch.

    Returns
    -------
    code : int
    d2 : float
        Squared distance of the surfaces, where it was needed.
    x, y, z : float
        Between the nearest points of both surfaces.
    px, py, pz : float
        A point of the common interior.
    """
    closed = solids.side[a] != 0 and solids.side[b] != 0
    a_out = sticks_out(solids.boxes, a, b, t)
    b_out = sticks_out(solids.boxes, b, a, t)
    d2 = np.inf
    x = np.nan
    y = np.nan
    z = np.nan
    px = np.nan
    py = np.nan
    pz = np.nan
    interior = False
    if closed:
        interior, px, py, pz = interior_at_contacts(
            a, b, one, other, contacts, count, solids, t, polygon, spare
        )
    if touches or not closed:
        d2, x, y, z = closest_points(one, other, contacts, count)
    touching = interior or d2 <= t * t
    if interior:
        # One surface inside the other body has that body on both its sides.
        if not (a_out and b_out):
            b_in_a, b_out_of_a = faces_inside(b, a, t, solids)
            a_in_b, a_out_of_b = faces_inside(a, b, t, solids)
            a_out = a_out or a_out_of_b or b_in_a
            b_out = b_out or b_out_of_a or a_in_b
    elif closed or not touching:
        # An open surface has no inside: what it touches, it only touches.
        interior, a_out, b_out, px, py, pz = interior_of_parts(a, b, a_out, b_out, solids, t, state)
        if interior and closed and not touches:
            d2, x, y, z = closest_points(one, other, contacts, count)
            touching = d2 <= t * t
    return code_of(interior, touching, a_out, b_out), d2, x, y, z, px, py, pz


@njit(cache=True, nogil=True, error_model="numpy")
def interior_at_contacts(
    a: int,
    b: int,
    one: Any,
    other: Any,
    contacts: Any,
    count: int,
    solids: Solids,
    t: float,
    polygon: Any,
    spare: Any,
) -> Any:
    """Look for a common interior where triangles of two closed elements are in contact.

    Coplanar triangles that have their bodies on the same side have one below them. From shallow
    pairs of triangles a ball that is wider than the tolerance is searched for.

    Parameters
    ----------
    a, b, one, other, contacts, count, solids, t, polygon, spare
        See `relate_without_crossing`.

    Returns
    -------
    found : bool
    x, y, z : float
        A point of the common interior.
    """
    side_a = solids.side[a]
    side_b = solids.side[b]
    for k in range(count):
        if contacts[k, 2] == COPLANAR:
            x, y, z = point_below(
                one, contacts[k, 0], other, contacts[k, 1], side_a, side_b, t, polygon, spare
            )
            if not np.isnan(x) and in_both(x, y, z, a, b, solids):
                return True, x, y, z
    searches = 0
    for k in range(count):
        if contacts[k, 2] != SHALLOW:
            continue
        if searches == MAX_SHALLOW:
            break
        searches += 1
        i = contacts[k, 0]
        j = contacts[k, 1]
        x, y, z = crossing_centre(one, i, other, j, side_a, side_b, t)
        x, y, z = point_behind(x, y, z, one, i, other, j, side_a, side_b, 0.25 * t)
        radius, x, y, z = largest_ball(x, y, z, t, t, a, b, solids)
        if 2.0 * radius > t:
            return True, x, y, z
    return False, np.nan, np.nan, np.nan


@njit(cache=True, nogil=True, error_model="numpy")
def interior_of_parts(
    a: int, b: int, a_out: Any, b_out: Any, solids: Solids, t: float, state: Any
) -> Any:
    """Look for a common interior where no surfaces cross: parts of one that are inside the other.

    Parameters
    ----------
    a, b : int
    a_out, b_out : bool
        Whether the box of each sticks out of that of the other.
    solids, t, state
        See `relate_without_crossing`.

    Returns
    -------
    found, a_out, b_out : bool
        Whether there is a common interior, and whether each element sticks out of the other.
    x, y, z : float
        A point of the common interior.
    """
    b_in_a = False
    a_in_b = False
    b_out_of_a = True
    a_out_of_b = True
    x = np.nan
    y = np.nan
    z = np.nan
    if solids.parts[b] > 1 or not b_out:
        b_in_a, b_out_of_a, x, y, z = parts_inside(b, a, t, state, solids)
    if solids.parts[a] > 1 or not a_out:
        a_in_b, a_out_of_b, ix, iy, iz = parts_inside(a, b, t, state, solids)
        if not b_in_a:
            x = ix
            y = iy
            z = iz
    return b_in_a or a_in_b, a_out_of_b or b_in_a, b_out_of_a or a_in_b, x, y, z


@njit(cache=True, nogil=True, error_model="numpy")
def code_of(interior: Any, touching: Any, a_out: Any, b_out: Any) -> int:
    """Give the code of a relation: see the table in README.md."""
    if not interior:
        return TOUCH if touching else DISJOINT
    if a_out and b_out:
        return OVERLAP
    if a_out:
        return COVERS if touching else CONTAINS
    if b_out:
        return COVERED_BY if touching else INSIDE
    return EQUALS


@njit(cache=True, nogil=True, error_model="numpy")
def group_boxes(kept: Any, n: int, groups: Any) -> int:
    """Find the boxes of groups of `CLUSTER` triangles each, and return how many there are."""
    count = -(-n // CLUSTER)
    for g in range(count):
        for axis in range(3):
            low = np.inf
            high = -np.inf
            for k in range(g * CLUSTER, min(n, (g + 1) * CLUSTER)):
                low = kept[k, 12 + axis] if kept[k, 12 + axis] < low else low
                high = kept[k, 15 + axis] if kept[k, 15 + axis] > high else high
            groups[g, axis] = low
            groups[g, 3 + axis] = high
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def groups_within(
    kept: Any, first: int, stop: int, groups: Any, count: int, t: float, near: Any
) -> int:
    """List the groups within t of the box of some triangles, and return how many there are."""
    low_x = np.inf
    low_y = np.inf
    low_z = np.inf
    high_x = -np.inf
    high_y = -np.inf
    high_z = -np.inf
    for k in range(first, stop):
        low_x = kept[k, 12] if kept[k, 12] < low_x else low_x
        low_y = kept[k, 13] if kept[k, 13] < low_y else low_y
        low_z = kept[k, 14] if kept[k, 14] < low_z else low_z
        high_x = kept[k, 15] if kept[k, 15] > high_x else high_x
        high_y = kept[k, 16] if kept[k, 16] > high_y else high_y
        high_z = kept[k, 17] if kept[k, 17] > high_z else high_z
    n = 0
    for g in range(count):
        if not (
            groups[g, 0] - high_x > t
            or low_x - groups[g, 3] > t
            or groups[g, 1] - high_y > t
            or low_y - groups[g, 4] > t
            or groups[g, 2] - high_z > t
            or low_z - groups[g, 5] > t
        ):
            near[n] = g
            n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def sticks_out(boxes: Any, a: int, b: int, t: float) -> Any:
    """Tell whether the box of a reaches beyond that of b by more than t."""
    return (
        boxes[a, 0] < boxes[b, 0] - t
        or boxes[a, 1] < boxes[b, 1] - t
        or boxes[a, 2] < boxes[b, 2] - t
        or boxes[a, 3] > boxes[b, 3] + t
        or boxes[a, 4] > boxes[b, 4] + t
        or boxes[a, 5] > boxes[b, 5] + t
    )


@njit(cache=True, nogil=True, error_model="numpy")
def closest_points(one: Any, other: Any, contacts: Any, count: int) -> Any:
    """Find the minimum distance of the pairs of triangles in contact.

    Returns
    -------
    d2 : float
        Squared.
    x, y, z : float
        Half-way between the closest points, of several those of the first pair.
    """
    d2 = np.inf
    x = np.nan
    y = np.nan
    z = np.nan
    for k in range(count):
        i = contacts[k, 0]
        j = contacts[k, 1]
        found, ax, ay, az, bx, by, bz = squared_distance(
            one[i, 0], one[i, 1], one[i, 2], one[i, 3], one[i, 4], one[i, 5],
            one[i, 6], one[i, 7], one[i, 8],
            other[j, 0], other[j, 1], other[j, 2], other[j, 3], other[j, 4], other[j, 5],
            other[j, 6], other[j, 7], other[j, 8],
        )  # fmt: skip
        if found < d2:
            d2 = found
            x = 0.5 * (ax + bx)
            y = 0.5 * (ay + by)
            z = 0.5 * (az + bz)
        if d2 == 0.0:
            break
    return d2, x, y, z
