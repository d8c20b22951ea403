"""The flight: laser pulses in strips, each with its returns.

A pulse is a straight line from the aircraft through an aimed point of the terrain. The highest
body it enters stops it; the crowns that it crosses above may give returns of their own and may
swallow the rest.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import prange

from spatialq.demo.scene import Scene
from spatialq.demo.terrain import (
    POND_SHORE,
    SIZE,
    STREAM_DEPTH,
    STREAM_HALF_WIDTH,
    height,
    pond_radius,
    stream_bed,
    stream_distance,
)
from spatialq.runtime.arrays import Bools, Bytes, Float32s, Floats, Int32s, Ints
from spatialq.runtime.compile_cache import njit

MAX_RETURNS = 4
ALTITUDE = 450.0  # above the terrain
SPEED = 60.0
HALF_SWATH = 82.0
STRIP_LENGTH = 500.0
# heading in degrees counter-clockwise from east, offset of the flight line to its left
STRIPS = [(82.0, -165.0), (262.0, 55.0), (82.0, 55.0), (262.0, -165.0), (352.0, 20.0)]
BIN = 10.0
MARGIN = 7.0  # a beam leans by less than this between the top of a house and the ground
RANGE_NOISE = 0.025

# kinds of a return; a body is its number, a tree TREES - number
GROUND, WATER, LOW_NOISE, HIGH_NOISE, TREES = -1, -2, -3, -4, -10


class Pulses(NamedTuple):
    """Pulses of all strips in flight order; n of them, with up to four returns each.

    `aim` is float64[n, 3] (u, v, height on the terrain), `lean` float64[n, 2] the metres that the
    beam moves per metre of height, `above` float32[n, 4] the height of each return over the aimed
    point, `kind` int32[n, 4], `returns` uint8[n]; `strip` uint8[n], `time` float64[n] seconds since
    the take-off, `line_end` and `rightward` bool[n].
    """

    aim: Floats
    lean: Floats
    above: Float32s
    kind: Int32s
    returns: Bytes
    strip: Bytes
    time: Floats
    line_end: Bools
    rightward: Bools


def fly(scene: Scene, spacing: float, seed: int) -> Pulses:
    """Scan the tile with one pulse every `spacing` metres along and across each strip."""
    lines = max(2, round(STRIP_LENGTH / spacing))
    per_line = max(2, round(2 * HALF_SWATH / spacing))
    strips = np.array(STRIPS)
    n = len(strips) * lines * per_line
    out = Pulses(
        np.empty((n, 3)),
        np.zeros((n, 2)),
        np.empty((n, MAX_RETURNS), np.float32),
        np.empty((n, MAX_RETURNS), np.int32),
        np.zeros(n, np.uint8),
        np.empty(n, np.uint8),
        np.empty(n),
        np.empty(n, np.bool_),
        np.empty(n, np.bool_),
    )
    planes, first_plane = _flatten([body.planes for body in scene.bodies])
    trees = scene.trees
    crowns = np.column_stack([trees[:, :2] - trees[:, 3:4], trees[:, :2] + trees[:, 3:4]])
    bins = (*_bins(np.array([body.box for body in scene.bodies])), *_bins(crowns))
    _scan(strips, lines, per_line, seed, planes, first_plane, trees, *bins, out)
    return out


def _flatten(parts: list[Floats]) -> tuple[Floats, Ints]:
    return np.concatenate(parts), np.cumsum([0, *(len(part) for part in parts)])


def _bins(boxes: Floats) -> tuple[Ints, Ints]:
    """List, for each square of `BIN` metres, the boxes within `MARGIN` of it."""
    across = math.ceil(SIZE / BIN)
    members: list[list[int]] = [[] for _ in range(across * across)]
    low = np.clip((boxes[:, :2] - MARGIN) // BIN, 0, across - 1).astype(int)
    high = np.clip((boxes[:, 2:] + MARGIN) // BIN, 0, across - 1).astype(int)
    for number, ((i0, j0), (i1, j1)) in enumerate(zip(low, high, strict=True)):
        for i in range(i0, i1 + 1):
            for j in range(j0, j1 + 1):
                members[i * across + j].append(number)
    starts = np.cumsum([0, *(len(each) for each in members)])
    return starts, np.array([number for each in members for number in each], np.int64)


@njit(cache=True)
def _enter(planes, first, last, u, v, z, lean_u, lean_v):  # type: ignore[no-untyped-def]
    """Height above the aimed point at which a beam from above enters a body; -1 for a miss."""
    top, bottom = 1e9, 0.0
    for p in range(first, last):
        a, b, c, d = planes[p]
        rate = a * lean_u + b * lean_v + c
        room = d - (a * u + b * v + c * z)
        if rate > 1e-12:
            top = min(top, room / rate)
        elif rate < -1e-12:
            bottom = max(bottom, room / rate)
        elif room < 0.0:
            return -1.0
    return top if top > bottom else -1.0


@njit(cache=True)
def _cross(tree, u, v, z, lean_u, lean_v):  # type: ignore[no-untyped-def]
    """Lower and upper height above the aimed point where a beam crosses a crown; NaN if not."""
    wide, high = 1.0 / tree[3], 1.0 / tree[4]
    pu, pv, pz = (u - tree[0]) * wide, (v - tree[1]) * wide, (z - tree[2]) * high
    du, dv, dz = lean_u * wide, lean_v * wide, high
    a = du * du + dv * dv + dz * dz
    b = pu * du + pv * dv + pz * dz
    root = b * b - a * (pu * pu + pv * pv + pz * pz - 1.0)
    if root <= 0.0:
        return math.nan, math.nan
    root = math.sqrt(root)
    return (-b - root) / a, (-b + root) / a


@njit(cache=True)
def _insert(above, kind, count, s, what):  # type: ignore[no-untyped-def]
    """Keep the returns of a pulse from the highest down; those beyond the fourth are lost."""
    at = count
    while at > 0 and above[at - 1] < s:
        at -= 1
    if at >= MAX_RETURNS:
        return count
    count = min(count + 1, MAX_RETURNS)
    for i in range(count - 1, at, -1):
        above[i] = above[i - 1]
        kind[i] = kind[i - 1]
    above[at] = s
    kind[at] = what
    return count


@njit(parallel=True, cache=True)
def _scan(  # type: ignore[no-untyped-def]
    strips,
    lines,
    per_line,
    seed,
    planes,
    first_plane,
    trees,
    body_starts,
    body_list,
    tree_starts,
    tree_list,
    out,
):
    # Numba's parallel loops do not write through a tuple: its arrays must be named
    aim, lean, above, kind, returns, strip_of, time, line_end, scans_right = out
    along_step = STRIP_LENGTH / lines
    bins = math.ceil(SIZE / BIN)
    for job in prange(strips.shape[0] * lines):
        # one seed a scan line: the result does not depend on the number of threads
        np.random.seed((seed * 1_000_003 + job) % 4_294_967_291)  # noqa: NPY002
        strip, line = job // lines, job % lines
        heading = math.radians(strips[strip, 0])
        cos, sin = math.cos(heading), math.sin(heading)
        rightward = line % 2 == 0
        for j in range(per_line):
            i = job * per_line + j
            share = (j + np.random.random()) / per_line  # noqa: NPY002
            along = -STRIP_LENGTH / 2 + (line + share) * along_step
            across = HALF_SWATH * (1.0 - 2.0 * share if rightward else 2.0 * share - 1.0)
            offset = strips[strip, 1] + across
            u = SIZE / 2 + along * cos - offset * sin
            v = SIZE / 2 + along * sin + offset * cos
            strip_of[i] = strip
            scans_right[i] = rightward
            line_end[i] = j == per_line - 1
            time[i] = strip * 600.0 + (line + (j + 0.5) / per_line) * along_step / SPEED
            if not (0.0 <= u < SIZE and 0.0 <= v < SIZE):
                continue
            z = height(u, v)
            # the aircraft is on the flight line: the beam leans back to it
            lean_u, lean_v = across / ALTITUDE * sin, -across / ALTITUDE * cos
            aim[i, 0], aim[i, 1], aim[i, 2] = u, v, z
            lean[i, 0], lean[i, 1] = lean_u, lean_v

            stop, what = 0.0, GROUND
            cell = int(u / BIN) * bins + int(v / BIN)
            for k in range(body_starts[cell], body_starts[cell + 1]):
                body = body_list[k]
                s = _enter(
                    planes, first_plane[body], first_plane[body + 1], u, v, z, lean_u, lean_v
                )
                if s > stop:
                    stop, what = s, body
            if what == GROUND:
                if pond_radius(u, v) < POND_SHORE:
                    continue
                if stream_distance(u, v) < STREAM_HALF_WIDTH:
                    # most of the light is mirrored away from the aircraft
                    if np.random.random() < 0.7:  # noqa: NPY002
                        continue
                    stop, what = stream_bed(v) + STREAM_DEPTH - z, WATER

            count = 0
            passes = True
            for k in range(tree_starts[cell], tree_starts[cell + 1]):
                tree = tree_list[k]
                low, high = _cross(trees[tree], u, v, z, lean_u, lean_v)
                low = max(low, stop + 0.5)
                if not high > low:
                    continue
                depth = high - low
                # the share of light that a crown lets through falls with the way through it
                if np.random.random() < 1.0 - math.exp(-0.45 * depth - 0.25):  # noqa: NPY002
                    s = high - min(np.random.exponential(0.7), depth)  # noqa: NPY002
                    count = _insert(above[i], kind[i], count, s, TREES - tree)
                    if np.random.random() < 0.45:  # noqa: NPY002
                        s = low + (s - low) * np.random.random()  # noqa: NPY002
                        count = _insert(above[i], kind[i], count, s, TREES - tree)
                    if np.random.random() < 0.5:  # noqa: NPY002
                        passes = False
            if passes:
                s = stop + RANGE_NOISE * np.random.standard_normal()  # noqa: NPY002
                count = _insert(above[i], kind[i], count, s, what)
            chance = np.random.random()  # noqa: NPY002
            if chance < 2e-5:
                above[i, count - 1] = -3.0 - 12.0 * np.random.random()  # noqa: NPY002
                kind[i, count - 1] = LOW_NOISE
            elif chance < 4e-5:
                above[i, 0] += 45.0 + 40.0 * np.random.random()  # noqa: NPY002
                kind[i, 0] = HIGH_NOISE
            returns[i] = count
