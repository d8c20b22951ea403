"""`registration` on the CPU: hypotheses about unit and vertical, and the placements of each."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.columns import Text
from spatialq.data.points import all_finite, not_finite
from spatialq.runtime import progress

from . import MATRIX, STATUSES, UPS, surfels
from .decide import Candidate, candidates, is_clear
from .refine import Faces
from .search import Pose
from .uprights import AXES, Upright, uprights

if TYPE_CHECKING:
    from spatialq.data.meshes import Meshes

    from . import Options

UNITS = {1.0: "metres", 0.001: "millimetres", 0.3048: "feet"}
"""Metres in a unit that coordinates may have where none is stated."""
SMALLEST, LARGEST = 1.0, 2.0
"""Metres, and multiple of the model's longest side: between these is the length of a scan."""
CLEAR = 0.8
"""Share of the surface that must lie on the model for no other vertical or unit to be tried."""
DIRECTIONS = (("east", "west"), ("north", "south"), ("above", "below"))
LEAST, LEAST_ANGLE = 5e-4, 0.005
"""Metres and degrees: less is not said."""
COARSER = 2.0
"""Multiple of the cells' edge where a scan has too few points for the smaller ones."""
COVERED = 0.2
"""Share of the surface of larger cells that smaller ones must cover to be taken: both faces of a
thin wall are in one larger cell, which tells nothing of it."""


def run(
    x: Any, y: Any, z: Any, point_id: Any, elements: "Meshes", options: "Options"
) -> dict[str, Any]:
    """List the placements of a scan in a model, the best first.

    Parameters
    ----------
    x, y, z : float64[n]
    point_id : int64[n] or None
        None for 0, 1, 2 ...
    elements : Meshes
        In metres.
    options : Options

    Returns
    -------
    dict of arrays
        One row per candidate; where there is none, one row with NaN; without points no row.

    Raises
    ------
    ValueError
        If a coordinate is not finite.

    Notes
    -----
    The result does not depend on the number of threads. README.md describes the method.
    """
    if not all_finite(x, y, z):
        raise ValueError(not_finite(options.function, x, y, z, point_id))
    progress.stage("surface of the model", 0.1)
    model = surfels.of_meshes(elements)
    if not (len(model) and x.size):
        return _rows([], 1.0, AXES["z"], Frame(np.zeros(3), np.zeros(3)), least=min(1, x.size))
    # numbers near zero: coordinates of a survey have seven digits before the point
    datum = (model.places.min(axis=0) + model.places.max(axis=0)) / 2
    model = model.moved(-datum)
    origin = np.array([float(np.median(values)) for values in (x, y, z)])
    x, y, z = (values - start for values, start in zip((x, y, z), origin, strict=True))
    faces = Faces.of(model)
    progress.stage("placements", 1.0)
    best: tuple[Any, ...] | None = None
    for metres in _units(x, y, z, model, options):
        scan = _surfels(x, y, z, metres)
        found = []
        if options.placed:
            here = scan.moved(origin * metres - datum)
            listed = candidates(here, model, faces, tilt=options.tilt, placed=True)
            best = listed, metres, AXES["z"]
            break
        for upright in uprights(scan, tilt=options.tilt):
            turned = upright.turned(scan)
            listed = candidates(turned, model, faces, tilt=options.tilt, placed=False)
            found.append((listed, metres, upright))
            if not options.tilt and _is_sure(listed):
                break
        if not found:  # a scan without a vertical
            continue
        chosen = _best_of(found, scan)
        if best is None or _rank(chosen[0]) > _rank(best[0]):
            best = chosen
        if _is_sure(best[0]):
            break
    frame = Frame(origin, datum, middle=None)
    if best is None:
        return _rows([], 1.0, AXES["z"], frame)
    if options.placed:
        middle = scan.places.mean(axis=0) if len(scan) else np.zeros(3)
        frame = Frame(origin, datum, middle + origin * best[1] - datum)
    listed, metres, upright = best
    return _rows(listed, metres, upright, frame)


@dataclass(frozen=True)
class Frame:
    """Where the numbers of scan and model that are compared have their zero.

    Parameters
    ----------
    origin : float64[3]
        Of the scan, in its own unit.
    datum : float64[3]
        Of the model, in metres.
    middle : float64[3] or None
        Of a scan that is placed: its middle, in metres from the datum. Such a scan is compared
        in coordinates of the model.
    """

    origin: Any
    datum: Any
    middle: Any = None


def _units(x: Any, y: Any, z: Any, model: surfels.Surfels, options: "Options") -> list[float]:
    """List the units in which a scan may be: the stated one, or those that give it a likely size.

    Its size is that of the middle 98 % of its points.
    """
    if options.unit is not None or options.placed:
        return [options.metres]
    extents = [
        np.subtract(*np.percentile(each[:: max(1, each.size // 100_000)], [99, 1]))
        for each in (x, y, z)
    ]
    length, longest = float(max(extents)), float(np.ptp(model.places, axis=0).max())
    return [each for each in UNITS if SMALLEST <= length * each <= LARGEST * longest]


def _surfels(x: Any, y: Any, z: Any, metres: float) -> surfels.Surfels:
    """Find the planar cells of a cloud; larger cells where these cover more of it."""
    fine = surfels.of_cloud(x, y, z, metres, surfels.EDGE)
    coarse = surfels.of_cloud(x, y, z, metres, COARSER * surfels.EDGE)
    return fine if fine.area.sum() >= COVERED * coarse.area.sum() else coarse


def _rank(listed: list[Candidate]) -> float:
    """Order the outcomes of hypotheses: by how well the best candidate fits."""
    return listed[0].score if listed else -1.0


def _is_sure(listed: list[Candidate]) -> bool:
    """Whether no other hypothesis has to be looked at."""
    return bool(listed) and listed[0].status == "found" and listed[0].explained >= CLEAR


def _best_of(
    found: list[tuple[list[Candidate], float, Upright]], scan: surfels.Surfels
) -> tuple[Any, ...]:
    """Choose among verticals; where a scan fits as well with another, none is the right one."""
    chosen = max(found, key=lambda each: _rank(each[0]))
    rivals = [
        listed[0]
        for listed, *_ in found
        if listed and listed is not chosen[0] and listed[0].status != "not found"
    ]
    if not all(is_clear(chosen[0][0], rival, scan) for rival in rivals):
        return [replace(each, status="ambiguous") for each in chosen[0]], *chosen[1:]
    return chosen


def _rows(
    listed: list[Candidate], metres: float, upright: Upright, frame: Frame, least: int = 1
) -> dict[str, Any]:
    """Make the columns, in the coordinates of the scan and of the model; at least so many rows."""
    n = max(least, len(listed))
    numbers = {
        name: np.full(n, np.nan)
        for name in (*MATRIX, "explained", "worse", "rmse", "sigma_x", "sigma_y", "sigma_z",
                     "sigma_turn", "unit")
    }  # fmt: skip
    status = np.full(n, STATUSES.index("not found"), np.int8)
    sentences = []
    for row, each in enumerate(listed):
        matrix = np.eye(4)
        matrix[:3, :3] = metres * each.pose.turn @ upright.turn
        shift = each.pose.shift
        if frame.middle is not None:
            shift = shift + each.pose.turn @ (frame.origin * metres - frame.datum)
        matrix[:3, 3] = shift + frame.datum - matrix[:3, :3] @ frame.origin
        values: dict[str, Any] = dict(zip(MATRIX, matrix.ravel(), strict=True))
        sigma = each.sigma
        values |= {
            "explained": each.explained, "worse": each.worse, "rmse": each.rmse,
            "sigma_x": sigma[0], "sigma_y": sigma[1], "sigma_z": sigma[2],
            "sigma_turn": float(np.linalg.norm(sigma[3:])), "unit": metres,
        }  # fmt: skip
        for name, value in values.items():
            numbers[name][row] = value if np.isfinite(value) else np.nan
        status[row] = STATUSES.index(each.status)
        sentences.append(_sentence(listed, row, metres, upright, frame.middle))
    if not listed:
        sentences = ["the scan or the model has too few plane surfaces to compare"] * n
    return {
        "candidate": np.arange(1, n + 1),
        "status": status,
        **numbers,
        "up": np.full(n, UPS.index(upright.name), np.int8),
        "sentence": Text(np.arange(n), sentences),
    }


def _sentence(
    listed: list[Candidate], row: int, metres: float, upright: Upright, middle: Any
) -> str:
    each = listed[row]
    share = f"{100 * each.explained:.0f} % of the scan's surface lies on the model"
    if each.status == "not found" and row == 0:
        return f"no placement fits: at the best one {share}, {100 * each.least:.0f} % of one kind"
    if each.status == "not found":
        return f"fits less well than candidate 1: {share}"
    if each.status == "ambiguous":
        count = sum(other.status == "ambiguous" for other in listed)
        return f"one of {count} placements that fit about equally well: {share}"
    if middle is not None:
        return f"the scan {off_by(each.pose, middle)}: moved there, {share}"
    said = f"the scan fits in one place: {share}"
    if upright.name != "z":
        said += ", its vertical is not the z-axis" if upright.name == "other" else ", y is up"
    if metres != 1:
        said += f", its unit is {UNITS.get(metres, f'{metres:g} m')}"
    return said


def off_by(pose: Pose, middle: Any) -> str:
    """Say where a scan with this middle lies that would have to be moved to fit."""
    off = middle - (pose.turn @ middle + pose.shift)
    parts = [
        f"{1000 * abs(metres):.0f} mm {names[0] if metres > 0 else names[1]}"
        for metres, names in zip(off, DIRECTIONS, strict=True)
        if abs(metres) >= LEAST
    ]
    angle = float(np.degrees(np.arctan2(pose.turn[1, 0], pose.turn[0, 0])))
    before = "" if parts and parts[-1].endswith(DIRECTIONS[2]) else " of"
    said = f"lies {', '.join(parts)}{before} the model" if parts else "lies where the model is"
    if abs(angle) >= LEAST_ANGLE:
        said += (
            f", turned {abs(angle):.2f} degrees {'clockwise' if angle > 0 else 'counter-clockwise'}"
        )
    return said
