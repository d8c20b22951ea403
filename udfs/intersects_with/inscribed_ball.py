"""The largest ball inside two elements: the search for the thickness of their common part."""

from typing import Any

import numpy as np

from spatialq.geometry.solids import Solids
from spatialq.geometry.triangles import min3
from spatialq.runtime.arrays import Floats
from spatialq.runtime.compile_cache import njit

from .point_in_solid import in_both, nearest

MAX_STEPS = 512
"""Steps of a search, at most."""

MAX_SURFACES = 16
"""Surfaces that one step moves away from, at most."""


@njit(cache=True, nogil=True, error_model="numpy")
def common_ball(
    px: float, py: float, pz: float, box: Floats, t: float, a: int, b: int, solids: Solids
) -> Any:
    """Find the largest ball in the common part of two elements.

    Parameters
    ----------
    px, py, pz : float
        A point of the common part.
    box : float64[6]
        What the boxes of the elements share, larger by t on every side.
    t : float
        The tolerance.
    a, b : int
    solids : Solids

    Returns
    -------
    radius : float
        0 where the common part is thinner than what was tested.
    x, y, z : float
        The centre; the given point where no ball was found.
    """
    # The ball can be no larger than what the boxes share. In most cases it is about as large, in
    # the centre of the box; otherwise the search starts once more, from the given point.
    room = min3(box[3] - box[0], box[4] - box[1], box[5] - box[2]) - 2.0 * t
    enough = 0.49 * room
    radius, x, y, z = largest_ball(
        0.5 * (box[0] + box[3]), 0.5 * (box[1] + box[4]), 0.5 * (box[2] + box[5]),
        t, enough, a, b, solids,
    )  # fmt: skip
    if radius < enough:
        found, px, py, pz = largest_ball(px, py, pz, t, enough, a, b, solids)
        if found > radius:
            radius = found
            x = px
            y = py
            z = pz
    if radius < 0.0:
        return 0.0, px, py, pz
    return radius, x, y, z


@njit(cache=True, nogil=True, error_model="numpy")
def largest_ball(
    px: float, py: float, pz: float, t: float, enough: float, a: int, b: int, solids: Solids
) -> Any:
    """Search for the largest ball in both elements, starting with the ball round p.

    Parameters
    ----------
    px, py, pz : float
    t : float, > 0
        The tolerance: the minimum length of the first step.
    enough : float
        A radius at which the search ends.
    a, b : int
    solids : Solids

    Returns
    -------
    radius : float
        Negative if p is not in both.
    x, y, z : float
        The centre of the ball.

    Notes
    -----
    A ball grows where its centre moves away from the surface that it touches. If that brings it
    to another surface first, it moves away from both, and so on (a walk along the ridges of the
    distance); a direction that helped is kept. The first step is as long as the radius; after one
    that helped the next is twice, after others half as long, down to a twentieth of the radius.
    Where the common part is convex this leads to the largest ball.
    """
    away = np.empty(3)
    there = np.empty(3)
    radius = ball_radius(px, py, pz, a, b, solids, away)
    if radius < 0.0:
        return radius, px, py, pz
    step = radius if radius > t else t
    steps = 0
    moved = False
    while steps < MAX_STEPS and radius < enough and step > 0.05 * radius:
        if not moved:  # else on in the same direction
            ux = away[0]
            uy = away[1]
            uz = away[2]
        moved = False
        for _ in range(MAX_SURFACES):
            size = np.sqrt(ux * ux + uy * uy + uz * uz)
            if size < 0.0005:
                break
            steps += 1
            qx = px + step * ux / size
            qy = py + step * uy / size
            qz = pz + step * uz / size
            found = ball_radius(qx, qy, qz, a, b, solids, there)
            if found > radius + 0.0005 * step:
                px = qx
                py = qy
                pz = qz
                radius = found
                for k in range(3):
                    away[k] = there[k]
                moved = True
                break
            if found < 0.0:
                break
            # between both directions the one that leads away from both surfaces alike
            vx = ux - there[0]
            vy = uy - there[1]
            vz = uz - there[2]
            whole = vx * vx + vy * vy + vz * vz
            part = ux * vx + uy * vy + uz * vz
            share = part / whole if part < whole else 1.0
            if not share > 0.0:
                break
            ux -= share * vx
            uy -= share * vy
            uz -= share * vz
        step *= 2.0 if moved else 0.5
    return radius, px, py, pz


@njit(cache=True, nogil=True, error_model="numpy")
def ball_radius(
    px: float, py: float, pz: float, a: int, b: int, solids: Solids, away: Floats
) -> float:
    """Give the radius of the largest ball round p that lies in both elements; negative if none.

    Parameters
    ----------
    px, py, pz, a, b, solids
        See `largest_ball`.
    away : float64[3]
        Out: from the nearest point of both surfaces to p, of length 1.
    """
    if not in_both(px, py, pz, a, b, solids):
        return -1.0
    da, qx, qy, qz, _ = nearest(px, py, pz, np.inf, a, solids)
    db, rx, ry, rz, _ = nearest(px, py, pz, np.inf, b, solids)
    if db < da:
        qx = rx
        qy = ry
        qz = rz
    radius = np.sqrt(da if da < db else db)
    unit = 1.0 / radius if radius > 0.0 else 0.0
    away[0] = (px - qx) * unit
    away[1] = (py - qy) * unit
    away[2] = (pz - qz) * unit
    return float(radius)
