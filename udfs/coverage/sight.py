"""What of the faces a scanner could have seen, and what it saw there instead."""

from typing import Any

import numpy as np

from spatialq.geometry.rays import TriangleTree
from spatialq.runtime import progress
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import in_threads

from .faces import Faces
from .samples import AXIS_BITS, Samples, look_up

HIDDEN, BEHIND, OPEN, FREE = 0, 1, 2, 3
"""Of a cell: hidden by the model from all stations, or none in front of it; behind points; in view
without any point in that direction; in view."""
LIFT = 0.005
"""Metres above its face where the rays of a cell begin."""
STEEPEST = 0.1
"""Cosine of the angle between a ray and the normal of what can be seen: 84 degrees."""
COARSE = 2
"""Cubes of the sample along one of those through which a ray is followed."""
DISC, BARE = 1.0, 0.5
"""Radius of the disc of a point, which stops a ray, in edges of these cubes: none passes between
points that are some cubes of the sample apart. Where the surface is not known, the disc faces the
ray and is smaller."""
BRICK = 3
"""Bits of a cube's place within a brick of 8 x 8 x 8 of them: only bricks with points are kept."""
MAX_BRICKS = 100_000_000
"""Bricks of the box around all points: cubes are larger where there would be more."""


def look(
    tree: TriangleTree, faces: Faces, samples: Samples, stations: Any, search: float
) -> tuple[Any, Any]:
    """Look at each cell from all stations.

    Parameters
    ----------
    tree : TriangleTree
        The triangles of all elements.
    faces : Faces
    samples : Samples
    stations : float64[k, 3], metres
    search : float
        Metres along the normal: what is no farther in front of a cell may be the face itself.

    Returns
    -------
    sight : int8[n]
        `HIDDEN`, `BEHIND`, `OPEN` or `FREE`: the last of these from any station.
    height : float64[n]
        Metres above the face where the ray through a `FREE` cell ends on points, negative behind
        it: the lowest from any station; NaN elsewhere.
    """
    bricks, cubes, coarse = _cubes(samples)
    size = coarse * samples.size
    n = len(faces.centres)
    normal = np.ascontiguousarray(faces.normal[faces.cell_face])
    sight, height = np.zeros(n, np.int8), np.full(n, np.nan)
    starts = faces.centres + LIFT * normal
    halt = progress.stop_flag()
    for station in stations:
        way = station - starts
        length = np.linalg.norm(way, axis=1)
        front = np.flatnonzero(np.einsum("ij,ij->i", way, normal) > STEEPEST * length)
        is_hidden = tree.are_blocked(starts[front], way[front], 1.0)
        front = front[~is_hidden]

        def march(span: tuple[int, int], front: Any = front, station: Any = station) -> None:
            _march(
                front, *span, faces.centres, normal, station, samples.keys, samples.slots,
                samples.points, samples.normals, samples.low, size, bricks, cubes, coarse, search,
                halt, sight, height,
            )  # fmt: skip

        in_threads(march, len(front), worth=1 << 10)
    return sight, height


def _cubes(samples: Samples) -> tuple[Any, Any, int]:
    """Mark the cubes that have points; and count those of the sample along one.

    Returns
    -------
    bricks : int32[a, b, c]
        The row of each brick, -1 where it has no point.
    cubes : uint8[n, 8, 8, 8]
        1 for those with points.
    coarse : int
    """
    mask, within = (1 << AXIS_BITS) - 1, (1 << BRICK) - 1
    keys = samples.keys
    places = [keys >> (2 * AXIS_BITS), (keys >> AXIS_BITS) & mask, keys & mask]
    step = COARSE
    while True:
        shape = [(int(each.max(initial=0)) // step >> BRICK) + 1 for each in places]
        if shape[0] * shape[1] * shape[2] <= MAX_BRICKS:
            break
        step += 1
    at = [each // step for each in places]
    brick = np.ravel_multi_index(tuple(each >> BRICK for each in at), shape)
    known, row = np.unique(brick, return_inverse=True)
    bricks = np.full(shape, -1, np.int32)
    bricks.ravel()[known] = np.arange(len(known))
    cubes = np.zeros((len(known), *(1 << BRICK,) * 3), np.uint8)
    cubes[row, at[0] & within, at[1] & within, at[2] & within] = 1
    return bricks, cubes, step


@njit(cache=True, nogil=True, error_model="numpy")
def _march(  # type: ignore[no-untyped-def]
    front, first, stop, centres, normal, station, keys, slots, points, normals, low, size, bricks,
    cubes, coarse, search, halt, sight, height,
):  # fmt: skip
    """Follow the rays from a station through cells to the first disc of a point."""
    shape = np.empty(3, np.int64)
    for k in range(3):
        shape[k] = bricks.shape[k] << BRICK
    within = (1 << BRICK) - 1
    cell, step, limit = np.empty(3, np.int64), np.empty(3, np.int64), np.empty(3)
    delta, place, way = np.empty(3), np.empty(3), np.empty(3)
    for n in range(first, stop):
        if halt[0]:
            return
        i = front[n]
        length = slope = 0.0
        for k in range(3):
            length += (centres[i, k] - station[k]) ** 2
        length = np.sqrt(length)
        enter, leave = 0.0, np.inf
        for k in range(3):
            way[k] = (centres[i, k] - station[k]) / length
            slope += way[k] * normal[i, k]
            place[k] = (station[k] - low[k]) / size
            delta[k] = way[k] / size
            if delta[k] == 0.0:
                if place[k] < 0.0 or place[k] >= shape[k]:
                    leave = -1.0
                continue
            a, b = -place[k] / delta[k], (shape[k] - place[k]) / delta[k]
            enter, leave = max(enter, min(a, b)), min(leave, max(a, b))
        found = np.inf
        if enter < leave:
            for k in range(3):
                at = place[k] + enter * delta[k]
                cell[k] = min(max(np.int64(np.floor(at)), 0), shape[k] - 1)
                step[k] = 1 if delta[k] > 0 else -1
                border = cell[k] + (1 if delta[k] > 0 else 0)
                limit[k] = (border - place[k]) / delta[k] if delta[k] != 0.0 else np.inf
                delta[k] = abs(1.0 / delta[k]) if delta[k] != 0.0 else np.inf
            while True:
                k = 0
                if limit[1] < limit[k]:
                    k = 1
                if limit[2] < limit[k]:
                    k = 2
                brick = bricks[cell[0] >> BRICK, cell[1] >> BRICK, cell[2] >> BRICK]
                if (
                    brick >= 0
                    and cubes[brick, cell[0] & within, cell[1] & within, cell[2] & within]
                ):
                    for a in range(cell[0] * coarse, (cell[0] + 1) * coarse):
                        for b in range(cell[1] * coarse, (cell[1] + 1) * coarse):
                            for c in range(cell[2] * coarse, (cell[2] + 1) * coarse):
                                row = look_up(keys, slots, a, b, c)
                                if row < 0:
                                    continue
                                along = square = facing = distance = 0.0
                                for j in range(3):
                                    d = points[row, j] - station[j]
                                    along += d * way[j]
                                    square += d * d
                                    facing += normals[row, j] * way[j]
                                    distance += normals[row, j] * d
                                at, beside, reach = along, square - along * along, BARE * size
                                if facing != 0.0:
                                    at, reach = distance / facing, DISC * size
                                    beside += (at - along) ** 2
                                if beside <= reach * reach:
                                    found = min(found, at)
                if found < np.inf:
                    break
                cell[k] += step[k]
                limit[k] += delta[k]
                if cell[k] < 0 or cell[k] >= shape[k]:
                    break
        if found == np.inf:
            sight[i] = max(sight[i], 2)
            continue
        above = (found - length) * slope
        if above > search:
            sight[i] = max(sight[i], 1)
            continue
        if sight[i] < 3 or above < height[i]:
            sight[i], height[i] = 3, above
