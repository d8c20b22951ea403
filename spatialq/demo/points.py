"""Returns as points: coordinates, classes, intensities and colours."""

from typing import NamedTuple

import numpy as np
from numba import prange

from spatialq.demo.scan import GROUND, HIGH_NOISE, LOW_NOISE, TREES, WATER, Pulses
from spatialq.demo.scene import Scene
from spatialq.demo.terrain import road_distance
from spatialq.runtime.arrays import Bytes, Int32s, Ints, Uint16s
from spatialq.runtime.compile_cache import njit

SCALE = 0.01
LUSH, DRY = (92.0, 128.0, 60.0), (150.0, 142.0, 92.0)
ASPHALT, STREAM, CONIFER, BROADLEAF = (
    (118.0, 116.0, 114.0),
    (62.0, 84.0, 92.0),
    (44.0, 74.0, 46.0),
    (96.0, 122.0, 52.0),
)


class Points(NamedTuple):
    """Points in flight order, n of them.

    `xyz` is int32[n, 3] in units of `SCALE` from the tile's origin (height from 0), `pulse`
    int64[n] the number of the point's pulse, `number` uint8[n] its return number,
    `classification` uint8[n], `intensity` uint16[n], `colour` uint16[n, 3].
    """

    xyz: Int32s
    pulse: Ints
    number: Bytes
    classification: Bytes
    intensity: Uint16s
    colour: Uint16s


def make_points(scene: Scene, pulses: Pulses, used: Ints, seed: int) -> Points:
    """Turn the returns of the pulses numbered `used` (ascending) into points."""
    ends = np.cumsum(pulses.returns[used], dtype=np.int64)
    n = int(ends[-1]) if ends.size else 0
    out = Points(
        np.empty((n, 3), np.int32),
        np.empty(n, np.int64),
        np.empty(n, np.uint8),
        np.empty(n, np.uint8),
        np.empty(n, np.uint16),
        np.empty((n, 3), np.uint16),
    )
    bodies = scene.bodies
    _fill(
        pulses,
        used,
        ends,
        seed,
        np.array([body.classification for body in bodies], np.uint8),
        np.array([body.colour for body in bodies], np.float64),
        np.ascontiguousarray(scene.trees[:, 5]),
        out,
    )
    return out


@njit(cache=True)
def _mix(a, b, share):  # type: ignore[no-untyped-def]
    return (
        a[0] + (b[0] - a[0]) * share,
        a[1] + (b[1] - a[1]) * share,
        a[2] + (b[2] - a[2]) * share,
    )


@njit(cache=True)
def _look(kind, u, v, body_colours, hues):  # type: ignore[no-untyped-def]
    """Colour (8 bit) and near-infrared brightness (0 to 1) of what a beam met."""
    if kind >= 0:
        return (body_colours[kind, 0], body_colours[kind, 1], body_colours[kind, 2]), 0.5
    if kind <= TREES:
        return _mix(CONIFER, BROADLEAF, hues[TREES - kind]), 0.42
    if kind == WATER:
        return STREAM, 0.04
    if kind == GROUND:
        road = road_distance(u, v)
        if road < 2.9:
            return ASPHALT, 0.18
        # fields: a patchwork of lush and dry grass
        patch = 0.5 + 0.5 * np.sin(u / 31.0 + np.sin(v / 23.0) * 2.0) * np.cos(v / 37.0)
        return _mix(LUSH, DRY, patch), 0.62
    return (128.0, 128.0, 128.0), 0.1


@njit(parallel=True, cache=True)
def _fill(pulses, used, ends, seed, classes, body_colours, hues, out):  # type: ignore[no-untyped-def]
    # Numba's parallel loops do not write through a tuple: its arrays must be named
    xyz, pulse, number, classification, intensity, colours = out
    aim, lean, above, kinds, returns = pulses[:5]
    block = 8192
    for job in prange((used.size + block - 1) // block):
        np.random.seed((seed * 7_368_787 + job) % 4_294_967_291)  # noqa: NPY002
        for m in range(job * block, min((job + 1) * block, used.size)):
            i = used[m]
            count = returns[i]
            start = ends[m] - count
            for r in range(count):
                at = start + r
                s = above[i, r]
                kind = kinds[i, r]
                u = aim[i, 0] + s * lean[i, 0]
                v = aim[i, 1] + s * lean[i, 1]
                xyz[at, 0] = round(u / SCALE)
                xyz[at, 1] = round(v / SCALE)
                xyz[at, 2] = round((aim[i, 2] + s) / SCALE)
                pulse[at] = i
                number[at] = r + 1
                if kind >= 0:
                    code = classes[kind]
                elif kind <= TREES:
                    code = 5
                elif kind == GROUND:
                    code = 2
                elif kind == WATER:
                    code = 9
                elif kind == LOW_NOISE:
                    code = 7
                else:
                    code = 18 if kind == HIGH_NOISE else 0
                classification[at] = code
                colour, brightness = _look(kind, u, v, body_colours, hues)
                light = 1.0 + 0.07 * np.random.standard_normal()  # noqa: NPY002
                for band in range(3):
                    value = min(max(colour[band] * light, 0.0), 255.0)
                    colours[at, band] = int(value) * 257
                # the light of a pulse is shared between its returns
                strength = 42_000.0 * brightness / count * light
                intensity[at] = int(min(max(strength, 1.0), 65_535.0))
