"""Group nodes into planes: each peak of the accumulator, in order, takes the nodes that agree.

A peak is a cell that is some degrees wide. Its plane is fitted to the merged moments of all nodes
that agree with it, and these are selected again by the new plane until they do not change. A node
belongs to one plane only, so that duplicates of a peak, antipodal ones included, and the ridges
around it find no nodes.
"""

from math import sqrt

import numpy as np

from spatialq.geometry.eigen import eigen
from spatialq.runtime.compile_cache import njit

ROUNDS = 8
"""Maximum number of times that the nodes of a plane are selected again."""

WIDE = 1.5
"""Maximum angle between a peak and the normals of its first nodes, in cells of the ball."""

SEEDS = 3
"""Number of single nodes near a peak that are tried as seeds, the most precise first, if all
nodes near the peak together do not give a plane."""

SAME = 3.0
"""Standard deviations of a plane within which other planes are the same plane: the border of a
cell may cut off only a tail of its noise."""

SURE = np.radians(4.0)
"""Angle within which normals always agree, however precise they are; the two sides of a low roof
differ by more."""

NOISES = 2.0
"""Maximum distance of a node's centre from the plane, in standard deviations of its points."""

BENT = np.radians(10.0)
"""Maximum angle between planes that are parts of one bent surface."""

BEND, WAVES = 1.0, 3.0
"""Maximum distance of the nodes of a bent surface from its plane, root mean square, in standard
deviations of the points of a node: where the noise of the cloud is known, and where it is not told
from the waves of a sensor."""

BESIDE = 0.9
"""Two nodes are beside each other if their centres are closer than BESIDE times the sum of their
sides."""

ROUNDED = 1.000001
"""Factor of a distance that makes it certain that no rounding of coordinates hides a neighbour."""

SMOOTH = 0.7
"""Minimum share of the pairs of nodes beside each other at which a bent surface is continuous."""

FREE, EXPLAINED = -1, -2
"""Owners of nodes that belong to no plane."""

BLOCK = 32
"""Nodes that have a box in common. The nodes of a level are in Morton order: a block is compact."""

DOUBT, ROUNDING = 1e-3, 1e-12
"""Sums of a plane decide where they differ by more than this part, and this variance in squares of
half sides of the root, from a limit; they have relative errors of 1e-15 or so."""

SLACK = 1e-9
"""Added to distances from boxes, in half sides of the root: no rounding may hide a node."""


@njit(cache=True, nogil=True, error_model="numpy")
def merged(weights, means, covariances, chosen, n, plane):
    """Fit a plane to the merged moments of the first n chosen nodes.

    Parameters
    ----------
    weights : float64[nodes]
    chosen : int32[]
        Nodes.
    plane : float64[5]
        Out: normal, offset, and variance across.
    """
    values, vectors = np.empty(3), np.empty((3, 3))
    total = x = y = z = 0.0
    for i in range(n):
        k = chosen[i]
        c = weights[k]
        total += c
        x += c * means[k, 0]
        y += c * means[k, 1]
        z += c * means[k, 2]
    x, y, z = x / total, y / total, z / total
    xx = xy = xz = yy = yz = zz = 0.0
    for i in range(n):
        k = chosen[i]
        c = weights[k]
        dx, dy, dz = means[k, 0] - x, means[k, 1] - y, means[k, 2] - z
        xx += c * (covariances[k, 0] + dx * dx)
        xy += c * (covariances[k, 1] + dx * dy)
        xz += c * (covariances[k, 2] + dx * dz)
        yy += c * (covariances[k, 3] + dy * dy)
        yz += c * (covariances[k, 4] + dy * dz)
        zz += c * (covariances[k, 5] + dz * dz)
    eigen(
        xx / total, xy / total, xz / total, yy / total, yz / total, zz / total, values, vectors
    )  # fmt: skip
    plane[0], plane[1], plane[2] = vectors[0, 0], vectors[0, 1], vectors[0, 2]
    plane[3] = (plane[0] * x + plane[1] * y) + plane[2] * z
    plane[4] = values[0]


@njit(cache=True, nogil=True, error_model="numpy")
def off(plane, point):
    """Signed distance of a point from a plane."""
    return ((plane[0] * point[0] + plane[1] * point[1]) + plane[2] * point[2]) - plane[3]


@njit(cache=True, nogil=True, error_model="numpy")
def enclose(owner, means, reaches):
    """Find boxes around the centres of the free nodes of each block of BLOCK nodes.

    Returns
    -------
    float64[blocks, 7]
        Centre, half sides, and the greatest reach; the centre is NaN where no node is free.
    """
    boxes = np.empty(((owner.size + BLOCK - 1) // BLOCK, 7))
    low, high = np.empty(3), np.empty(3)
    for b in range(boxes.shape[0]):
        for i in range(3):
            low[i], high[i] = np.inf, -np.inf
        boxes[b, 6] = 0.0
        for k in range(b * BLOCK, min((b + 1) * BLOCK, owner.size)):
            if owner[k] == FREE:
                for i in range(3):
                    low[i], high[i] = min(low[i], means[k, i]), max(high[i], means[k, i])
                boxes[b, 6] = max(boxes[b, 6], reaches[k])
        for i in range(3):
            boxes[b, i], boxes[b, 3 + i] = 0.5 * (low[i] + high[i]), 0.5 * (high[i] - low[i])
    return boxes


@njit(cache=True, nogil=True, error_model="numpy")
def crosses(plane, box, reach):
    """Tell whether a centre in a box of `enclose` may be within some distance of a plane."""
    half = (abs(plane[0]) * box[3] + abs(plane[1]) * box[4]) + abs(plane[2]) * box[5]
    return abs(off(plane, box)) <= (half + reach) + SLACK


@njit(cache=True, nogil=True, error_model="numpy")
def agreeing(plane, seed, max_angle, tilts, reaches, means, normals, owner, boxes, chosen):
    """List the free nodes that lie along a plane.

    Parameters
    ----------
    plane : float64[5]
    seed : int
        Node from which the plane was taken: the plane is less precise farther from it; -1 if the
        plane is not that of a single node.
    max_angle : float
        Maximum angle between normals, radians.
    tilts, reaches, means, normals
        Of the nodes, see `group`.
    owner : int32[nodes]
        See `group`.
    boxes : float64[blocks, 7]
        See `enclose`; of nodes among which are all that are free.
    chosen : int32[nodes]
        Out.

    Returns
    -------
    int
        Number of nodes listed.
    """
    n = 0
    more = tilts[seed] if seed >= 0 else 0.0
    for b in range(boxes.shape[0]):
        box = boxes[b]
        reach = box[6]
        if seed >= 0:
            x, y, z = (
                abs(box[0] - means[seed, 0]) + box[3],
                abs(box[1] - means[seed, 1]) + box[4],
                abs(box[2] - means[seed, 2]) + box[5],
            )
            reach += more * sqrt((x * x + y * y) + z * z)
        if not crosses(plane, box, reach):
            continue
        for k in range(b * BLOCK, min((b + 1) * BLOCK, owner.size)):
            if owner[k] != FREE:
                continue
            cosine = (plane[0] * normals[k, 0] + plane[1] * normals[k, 1]) + plane[2] * normals[
                k, 2
            ]
            angle = min(max_angle, max(SURE, tilts[k]) + more)
            if 1.0 - cosine * cosine > angle * angle:
                continue
            limit = reaches[k]
            if seed >= 0:
                x, y, z = (
                    means[k, 0] - means[seed, 0],
                    means[k, 1] - means[seed, 1],
                    means[k, 2] - means[seed, 2],
                )
                limit += more * sqrt((x * x + y * y) + z * z)
            if abs(off(plane, means[k])) <= limit:
                chosen[n] = k
                n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def group(
    directions, rhos, tilts, reaches, weights, means, covariances, normals,
    step, rho_step, min_offset, shares, parts, min_parts, found,
    owner, tried, planes,
):  # fmt: skip
    """Assign free nodes to planes.

    Parameters
    ----------
    directions, rhos : float64[peaks, 3], float64[peaks]
        The peaks in the order in which they are tried.
    tilts : float64[nodes]
        NOISES times the standard deviation of the direction of each node's normal, radians.
    reaches : float64[nodes]
        Maximum distance of each node's centre from a plane.
    weights : float64[nodes]
        Of each node when moments are merged.
    means, covariances, normals
        Of the nodes, see `octree.PlanarNodes`.
    step, rho_step : float
        Distances between the cells of the accumulator.
    min_offset : float
        Distance that a node's centre may always have from the plane, however flat the node is.
    shares : float64[nodes]
        Contribution of each node to the support of a plane, which must be 1.
    parts : float64[nodes]
        Parts of each node, see `octree.PlanarNodes`.
    min_parts, found : int
        Minimum number of parts of a plane; number of planes found so far.
    owner : int32[nodes]
        In and out: plane of each node, FREE, or EXPLAINED if its points belong to a plane although
        its own normal is too imprecise.
    tried : bool[nodes]
        In and out: nodes that were seeds already, with more free nodes than now.
    planes : float64[found + peaks, 5]
        Out, from `found` on: normal, offset, variance across.

    Returns
    -------
    int
        Number of planes.
    """
    size = owner.size
    near, chosen, before = (
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size, np.int32),
    )
    plane = np.empty(5)
    boxes = enclose(owner, means, reaches)
    starts, by_rho = sort_by_rho(owner, means, normals, rho_step)
    for peak in range(rhos.size):
        for i in range(3):
            plane[i] = directions[peak, i]
        plane[3] = rhos[peak]
        n_near = starting(
            plane, WIDE * step, rho_step, means, normals, owner, starts, by_rho, near
        )  # fmt: skip
        for attempt in range(1 + SEEDS):
            if attempt == 0:
                n = n_near
                for i in range(n):
                    chosen[i] = near[i]
            else:
                seed = -1
                for i in range(n_near):
                    k = near[i]
                    if not tried[k] and (seed < 0 or weights[k] > weights[seed]):
                        seed = k
                if seed < 0:
                    break
                tried[seed] = True
                for i in range(3):
                    plane[i] = normals[seed, i]
                plane[3] = 0.0
                plane[3] = off(plane, means[seed])
                n = agreeing(
                    plane, seed, step, tilts, reaches, means, normals, owner, boxes, chosen
                )  # fmt: skip
            for _ in range(ROUNDS):
                if not supported(chosen, n, shares, parts, min_parts):
                    n = 0
                    break
                merged(weights, means, covariances, chosen, n, plane)
                last, same = n, True
                for i in range(n):
                    before[i] = chosen[i]
                n = agreeing(
                    plane, -1, step, tilts, reaches, means, normals, owner, boxes, chosen
                )  # fmt: skip
                for i in range(min(n, last)):
                    same = same and before[i] == chosen[i]
                if same and n == last:
                    break
            if not supported(chosen, n, shares, parts, min_parts):
                continue
            merged(weights, means, covariances, chosen, n, plane)
            mark = found
            for p in range(found):
                if is_known(plane, chosen, n, step, min_offset, weights, means, planes[p]):
                    mark = EXPLAINED
                    break
            for i in range(n):
                owner[chosen[i]] = mark
            if mark == found:
                for i in range(5):
                    planes[found, i] = plane[i]
                explain(plane, means, covariances, boxes, owner)
                found += 1
            if mark != EXPLAINED:
                break
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def count_near(directions, rhos, step, rho_step, means, normals, owner, counts):
    """Count the free nodes whose normal and rho are close to those of each peak, see `group`.

    Parameters
    ----------
    counts : int64[peaks]
        Out.
    """
    plane, chosen = np.empty(5), np.empty(owner.size, np.int32)
    starts, by_rho = sort_by_rho(owner, means, normals, rho_step)
    for peak in range(rhos.size):
        for i in range(3):
            plane[i] = directions[peak, i]
        plane[3] = rhos[peak]
        counts[peak] = starting(
            plane, WIDE * step, rho_step, means, normals, owner, starts, by_rho, chosen
        )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def supported(chosen, n, shares, parts, min_parts):
    """Tell whether the first n chosen nodes are enough for a plane, see `group`."""
    total = count = 0.0
    for i in range(n):
        total += shares[chosen[i]]
        count += parts[chosen[i]]
    return count >= min_parts and total >= 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def is_known(plane, chosen, n, max_angle, min_offset, weights, means, known):
    """Tell whether the first n chosen nodes lie along a known plane, within its noise."""
    cosine = (plane[0] * known[0] + plane[1] * known[1]) + plane[2] * known[2]
    if 1.0 - cosine * cosine > max_angle * max_angle:
        return False
    total = squares = 0.0
    for i in range(n):
        total += weights[chosen[i]]
    limit = SAME * max(sqrt(known[4]), min_offset)
    most = total * (limit * limit)
    for i in range(n):
        k = chosen[i]
        d = off(known, means[k])
        squares += weights[k] * (d * d)
        if squares > most:  # it only grows
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def join(max_angle, tilts, reaches, weights, means, covariances, normals, owner, planes):
    """Add free nodes to the planes along which they lie, and fit the planes again.

    Parameters
    ----------
    owner, planes
        In and out, see `group`.
    """
    n_planes, chosen = planes.shape[0], np.empty(owner.size, np.int32)
    near = np.empty(n_planes, np.int32)
    boxes = enclose(owner, means, reaches)
    for b in range(boxes.shape[0]):
        n = 0
        for p in range(n_planes):
            if crosses(planes[p], boxes[b], max(boxes[b, 6], NOISES * sqrt(planes[p, 4]))):
                near[n] = p
                n += 1
        for k in range(b * BLOCK, min((b + 1) * BLOCK, owner.size)):
            if owner[k] != FREE:
                continue
            angle = min(max_angle, max(SURE, tilts[k]))
            best = np.inf
            for i in range(n):
                p = near[i]
                cosine = (planes[p, 0] * normals[k, 0] + planes[p, 1] * normals[k, 1]) + planes[
                    p, 2
                ] * normals[k, 2]
                if 1.0 - cosine * cosine > angle * angle:
                    continue
                d = abs(off(planes[p], means[k]))
                if d < best and d <= max(reaches[k], NOISES * sqrt(planes[p, 4])):
                    best = d
                    owner[k] = p
    first, following = np.full(n_planes, -1, np.int32), np.empty(owner.size, np.int32)
    link(owner, first, following)
    for p in range(n_planes):
        n = linked(first[p], following, chosen)
        if n > 0:
            merged(weights, means, covariances, chosen, n, planes[p])
        explain(planes[p], means, covariances, boxes, owner)


@njit(cache=True, nogil=True, error_model="numpy")
def unite(
    order, sizes, max_angle, min_offset, bend, counts, weights, means, covariances, variances,
    normals, sides, owner, planes,
):  # fmt: skip
    """Merge planes of one surface: halves of a wall, and slices of a slightly bent one.

    Parameters
    ----------
    order, sizes : int64[planes], float64[planes]
        The planes with the least weight first, and their weights, which are added up.
    bend : float
        Maximum distance of the nodes of a bent surface from its plane, root mean square, in
        standard deviations of the points of a node.
    counts : float64[nodes]
        Points.
    variances : float64[nodes]
        Across the nodes.
    sides : float64[nodes]
        Sides of the nodes.
    owner, planes
        In and out, see `group`; planes without nodes remain in `planes`.
    """
    n_planes = planes.shape[0]
    own, other = np.empty(owner.size, np.int32), np.empty(owner.size, np.int32)
    first, following = np.full(n_planes, -1, np.int32), np.empty(owner.size, np.int32)
    plane, boxes, noises = np.empty(5), np.empty((n_planes, 6)), np.zeros(n_planes)
    widest = max(max_angle, BENT)
    surround(owner, means, sides, boxes)
    points, centres = np.zeros(n_planes), np.zeros((n_planes, 9))
    for k in range(owner.size):
        if owner[k] >= 0:
            points[owner[k]] += counts[k]
            noises[owner[k]] += counts[k] * variances[k]
            add_centre(counts[k], means[k], centres[owner[k]])
    link(owner, first, following)
    for rank in range(n_planes):
        q = order[rank]
        n = linked(first[q], following, own)
        for p in range(n_planes):
            larger = sizes[p] > sizes[q] or (sizes[p] == sizes[q] and p < q)
            if n == 0 or not larger:
                continue
            cosine = (planes[p, 0] * planes[q, 0] + planes[p, 1] * planes[q, 1]) + planes[
                p, 2
            ] * planes[q, 2]
            if 1.0 - cosine * cosine > widest * widest:
                continue
            # a bent plane is thicker than its noise: taking all planes within that would not end
            for i in range(4):
                plane[i] = planes[p, i]
            plane[4] = min(planes[p, 4], noises[p] / points[p])
            same = is_known(planes[q], own, n, max_angle, min_offset, weights, means, plane)
            if (
                not same
                and 1.0 - cosine * cosine <= BENT * BENT
                and meet(boxes[p], boxes[q])
                and may_be_flat(
                    points[p] + points[q], noises[p] + noises[q], centres[p], centres[q],
                    min_offset, bend,
                )
            ):  # fmt: skip
                m = linked(first[p], following, other)
                for i in range(n):
                    other[m + i] = own[i]
                merged(counts, means, covariances, other, m + n, plane)
                same = is_bent(
                    plane, other, m, m + n, boxes[p], boxes[q], min_offset, bend, counts, means,
                    variances, normals, sides,
                )  # fmt: skip
            if same:
                for i in range(n):
                    owner[own[i]] = p
                first[p] = interleave(first[p], first[q], following)
                sizes[p], sizes[q], n = sizes[p] + sizes[q], 0.0, 0
                points[p], noises[p] = points[p] + points[q], noises[p] + noises[q]
                for i in range(9):
                    centres[p, i] += centres[q, i]
                for i in range(6):
                    boxes[p, i] = min(boxes[p, i], boxes[q, i])
                m = linked(first[p], following, other)
                merged(weights, means, covariances, other, m, planes[p])


@njit(cache=True, nogil=True, error_model="numpy")
def link(owner, first, following):
    """Link the nodes of each plane, in ascending order.

    Parameters
    ----------
    first : int32[planes]
        In: -1; out: first node of each plane.
    following : int32[nodes]
        Out: see `linked`.
    """
    for k in range(owner.size - 1, -1, -1):
        if owner[k] >= 0:
            following[k], first[owner[k]] = first[owner[k]], k


@njit(cache=True, nogil=True, error_model="numpy")
def linked(k, following, chosen):
    """List the nodes of a plane, which are linked in ascending order; return their number.

    Parameters
    ----------
    k : int
        The first node; -1 where there is none.
    following : int32[nodes]
        The next node of the plane of each node, -1 after the last.
    chosen : int32[nodes]
        Out.
    """
    n = 0
    while k >= 0:
        chosen[n] = k
        n += 1
        k = following[k]
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def interleave(a, b, following):
    """Link the nodes of two planes, see `linked`; return the first."""
    head = last = -1
    while a >= 0 or b >= 0:
        if b < 0 or (a >= 0 and a < b):
            k = a
            a = following[a]
        else:
            k = b
            b = following[b]
        if last < 0:
            head = k
        else:
            following[last] = k
        last = k
    return head


@njit(cache=True, nogil=True, error_model="numpy")
def surround(owner, means, sides, boxes):
    """Find boxes around the nodes of planes: nodes beside each other are in boxes that meet.

    Parameters
    ----------
    boxes : float64[planes, 6]
        Out: minimum x, y, z, and maximum x, y, z with the sign reversed.
    """
    for p in range(boxes.shape[0]):
        for i in range(6):
            boxes[p, i] = np.inf
    for k in range(owner.size):
        if owner[k] >= 0:
            box, reach = boxes[owner[k]], BESIDE * sides[k]
            for i in range(3):
                box[i] = min(box[i], means[k, i] - reach)
                box[3 + i] = min(box[3 + i], -means[k, i] - reach)


@njit(cache=True, nogil=True, error_model="numpy")
def add_centre(count, mean, sums):
    """Add the points of a node, all at its centre, to the first and second moments of a plane."""
    x, y, z = count * mean[0], count * mean[1], count * mean[2]
    sums[0] += x
    sums[1] += y
    sums[2] += z
    sums[3] += x * mean[0]
    sums[4] += x * mean[1]
    sums[5] += x * mean[2]
    sums[6] += y * mean[1]
    sums[7] += y * mean[2]
    sums[8] += z * mean[2]


@njit(cache=True, nogil=True, error_model="numpy")
def may_be_flat(n, across, a, b, min_offset, bend):
    """Tell whether the centres of the nodes of two planes may be as flat as `is_bent` wants.

    Across every plane their variance is more than a limit if the least eigenvalue of their
    covariance is, that is, if the covariance less the limit is positive definite. That is told
    from the sums of each plane, without its nodes; if it is not certain, the answer is yes.

    Parameters
    ----------
    n, across : float
        Points of both planes, and the sum of their squares across their nodes.
    a, b : float64[9]
        See `add_centre`.
    """
    limit = (1.0 + DOUBT) * (bend * bend) * max(across / n, min_offset * min_offset) + ROUNDING
    x, y, z = (a[0] + b[0]) / n, (a[1] + b[1]) / n, (a[2] + b[2]) / n
    xx, xy = ((a[3] + b[3]) / n - x * x) - limit, (a[4] + b[4]) / n - x * y
    xz, yy = (a[5] + b[5]) / n - x * z, ((a[6] + b[6]) / n - y * y) - limit
    yz, zz = (a[7] + b[7]) / n - y * z, ((a[8] + b[8]) / n - z * z) - limit
    trace = (xx + yy) + zz
    minor = xx * yy - xy * xy
    whole = (minor * zz + 2.0 * (xy * yz) * xz) - (xx * (yz * yz) + yy * (xz * xz))
    return not (
        xx > ROUNDING
        and minor > ROUNDING * (trace * trace)
        and whole > ROUNDING * (trace * trace * trace)
    )


@njit(cache=True, nogil=True, error_model="numpy")
def meet(a, b):
    """Tell whether two boxes of `surround` meet."""
    x = a[0] <= -b[3] and b[0] <= -a[3]
    y = a[1] <= -b[4] and b[1] <= -a[4]
    return x and y and a[2] <= -b[5] and b[2] <= -a[5]


@njit(cache=True, nogil=True, error_model="numpy")
def is_beside(k, box, means, sides):
    """Tell whether a node may be beside one of those in a box of `surround`."""
    reach = BESIDE * ROUNDED * sides[k]
    for i in range(3):
        if means[k, i] - reach > -box[3 + i] or means[k, i] + reach < box[i]:
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def is_bent(
    plane, chosen, first, n, box, other_box, min_offset, bend, counts, means, variances, normals,
    sides,
):  # fmt: skip
    """Tell whether two planes are parts of one surface that is a little bent.

    Their nodes must lie along one plane, within a few standard deviations of the points of a node,
    and the surface must be continuous where the planes meet: layers are not one surface.

    Parameters
    ----------
    plane : float64[5]
        Plane through all nodes.
    chosen : int32[]
        Nodes of one plane, and from `first` to n those of the other; those that are not near the
        other plane may be lost.
    box, other_box : float64[6]
        Around the nodes of each plane, see `surround`.
    """
    total = across = 0.0
    for i in range(n):
        total += counts[chosen[i]]
        across += counts[chosen[i]] * variances[chosen[i]]
    limit = bend * bend * max(across / total, min_offset * min_offset)
    points = squares = 0.0
    for i in range(n):
        if i == first:
            if squares > limit * points:
                return False
            points = squares = 0.0
        k = chosen[i]
        d = off(plane, means[k])
        points += counts[k]
        squares += counts[k] * (d * d)
    if squares > limit * points:
        return False
    facing = 0
    for t in range(first):
        if is_beside(chosen[t], other_box, means, sides):
            chosen[facing] = chosen[t]
            facing += 1
    near = smooth = 0
    for s in range(first, n):
        i = chosen[s]
        if not is_beside(i, box, means, sides):
            continue
        for t in range(facing):
            j = chosen[t]
            x, y, z = (
                means[i, 0] - means[j, 0],
                means[i, 1] - means[j, 1],
                means[i, 2] - means[j, 2],
            )
            reach = BESIDE * (sides[i] + sides[j])
            if (x * x + y * y) + z * z > reach * reach:
                continue
            a, b, c = normals[i, 0], normals[i, 1], normals[i, 2]
            cosine = (a * normals[j, 0] + b * normals[j, 1]) + c * normals[j, 2]
            sign = 1.0 if cosine >= 0.0 else -1.0
            a += sign * normals[j, 0]
            b += sign * normals[j, 1]
            c += sign * normals[j, 2]
            # the chord of an arc is at right angles to the mean of the normals at its ends
            d = (a * x + b * y) + c * z
            noise = max(variances[i], variances[j], min_offset * min_offset)
            near += 1
            if d * d <= NOISES * NOISES * noise * ((a * a + b * b) + c * c):
                smooth += 1
    return smooth > 0 and smooth >= SMOOTH * near


@njit(cache=True, nogil=True, error_model="numpy")
def explain(plane, means, covariances, boxes, owner):
    """Mark the free nodes that lie within a plane's noise, whatever their normal."""
    x, y, z = plane[0], plane[1], plane[2]
    limit = NOISES * NOISES * plane[4]
    for b in range(boxes.shape[0]):
        if not crosses(plane, boxes[b], sqrt(limit)):
            continue
        for k in range(b * BLOCK, min((b + 1) * BLOCK, owner.size)):
            if owner[k] != FREE:
                continue
            d = off(plane, means[k])
            across = (
                x * x * covariances[k, 0] + y * y * covariances[k, 3] + z * z * covariances[k, 5]
            ) + 2.0 * (
                x * y * covariances[k, 1] + x * z * covariances[k, 2] + y * z * covariances[k, 4]
            )
            if d * d <= limit and across <= limit:
                owner[k] = EXPLAINED


@njit(cache=True, nogil=True, error_model="numpy")
def distance_of(k, means, normals):
    """Signed distance of the plane of a node from the centroid."""
    return (normals[k, 0] * means[k, 0] + normals[k, 1] * means[k, 1]) + normals[k, 2] * means[k, 2]


@njit(cache=True, nogil=True, error_model="numpy")
def sort_by_rho(owner, means, normals, rho_step):
    """Sort the free nodes by the distance of their planes from the centroid, in steps of rho.

    Returns
    -------
    starts : int64[steps + 1]
        First node of each step in `nodes`.
    nodes : int32[free nodes]
    """
    most, n = 0.0, 0
    for k in range(owner.size):
        if owner[k] == FREE:
            most, n = max(most, abs(distance_of(k, means, normals))), n + 1
    starts, nodes = np.zeros(int(most / rho_step) + 2, np.int64), np.empty(n, np.int32)
    for k in range(owner.size):
        if owner[k] == FREE:
            starts[int(abs(distance_of(k, means, normals)) / rho_step) + 1] += 1
    for i in range(starts.size - 1):
        starts[i + 1] += starts[i]
    for k in range(owner.size - 1, -1, -1):
        if owner[k] == FREE:
            step = int(abs(distance_of(k, means, normals)) / rho_step)
            starts[step + 1] -= 1
            nodes[starts[step + 1]] = k
    # where each step began, its successor's nodes begin now
    for i in range(starts.size - 1):
        starts[i] = starts[i + 1]
    starts[starts.size - 1] = n
    return starts, nodes


@njit(cache=True, nogil=True, error_model="numpy")
def starting(plane, max_angle, rho_step, means, normals, owner, starts, by_rho, chosen):
    """List the free nodes whose normal and rho are close to those of a peak.

    Parameters
    ----------
    starts, by_rho
        From `sort_by_rho`.
    """
    max_offset, n = 2.0 * rho_step, 0
    low, high = abs(plane[3]) - max_offset - SLACK, abs(plane[3]) + max_offset + SLACK
    last = min(int(high / rho_step), starts.size - 2)
    for i in range(starts[min(int(max(low, 0.0) / rho_step), last)], starts[last + 1]):
        k = by_rho[i]
        if owner[k] != FREE:
            continue
        x, y, z = normals[k, 0], normals[k, 1], normals[k, 2]
        cosine = (plane[0] * x + plane[1] * y) + plane[2] * z
        if 1.0 - cosine * cosine > max_angle * max_angle:
            continue
        rho = distance_of(k, means, normals)
        if cosine < 0.0:
            rho = -rho
        if abs(rho - plane[3]) <= max_offset:
            chosen[n] = k
            n += 1
    chosen[:n].sort()
    return n
