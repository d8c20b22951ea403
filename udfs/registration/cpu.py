"""`registration` on the CPU: hypotheses about unit and vertical, and the placements of each."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.columns import Text
from spatialq.data.points import all_finite, not_finite
from spatialq.runtime import progress

from . import MATRIX, STATUSES, UPS, surfels
from .decide import Candidate, candidates
from .refine import Faces
from .uprights import AXES, Upright, uprights

if TYPE_CHECKING:
    from spatialq.data.meshes import Meshes

    from . import Options

UNITS = {1.0: "metres", 0.001: "millimetres", 0.3048: "feet"}
"""Metres in a unit that coordinates may have where none is stated."""
SMALLEST, LARGEST = 1.0, 2.0
"""Metres, and multiple of the model's longest side: between these is the length of a scan."""
COARSER = 2.0
"""Multiple of the cells' edge where a scan has too few points for the smaller ones."""


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
        One row per candidate; where there is none, one row with NaN: see `registration.COLUMNS`.

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
        return _rows([], 1.0, AXES["z"], np.zeros(3), np.zeros(3))
    # numbers near zero: coordinates of a survey have seven digits before the point
    datum = (model.places.min(axis=0) + model.places.max(axis=0)) / 2
    model = surfels.Surfels(model.places - datum, model.normals, model.area)
    origin = np.array([float(np.median(values)) for values in (x, y, z)])
    x, y, z = (values - start for values, start in zip((x, y, z), origin, strict=True))
    faces = Faces.of(model)
    progress.stage("placements", 1.0)
    best: tuple[Any, ...] | None = None
    for metres in _units(x, y, z, model, options):
        scan = _surfels(x, y, z, metres)
        found = []
        for upright in uprights(scan, tilt=options.tilt):
            listed = candidates(upright.turned(scan), model, faces, tilt=options.tilt)
            found.append((listed, metres, upright))
            if not options.tilt and listed and listed[0].status != "not found":
                break
        chosen = _best_of(found)
        if best is None or _rank(chosen[0]) > _rank(best[0]):
            best = chosen
        if _rank(best[0])[0] == len(STATUSES) - 1:
            break
    if best is None:
        return _rows([], 1.0, AXES["z"], origin, datum)
    return _rows(*best, origin, datum)


def _units(x: Any, y: Any, z: Any, model: surfels.Surfels, options: "Options") -> list[float]:
    """List the units in which a scan may be: the stated one, or those that give it a likely size.

    Its size is that of the middle 98 % of its points.
    """
    if options.unit is not None:
        return [options.unit]
    extents = [np.subtract(*np.percentile(each[:: max(1, each.size // 100_000)], [99, 1])) 
               for each in (x, y, z)]
    length, longest = float(max(extents)), float(np.ptp(model.places, axis=0).max())
    return [each for each in UNITS if SMALLEST <= length * each <= LARGEST * longest]


def _surfels(x: Any, y: Any, z: Any, metres: float) -> surfels.Surfels:
    """Find the planar cells of a cloud; larger cells where these cover more of it."""
    fine = surfels.of_cloud(x, y, z, metres, surfels.EDGE)
    coarse = surfels.of_cloud(x, y, z, metres, COARSER * surfels.EDGE)
    return fine if fine.area.sum() >= 0.5 * coarse.area.sum() else coarse


def _rank(listed: list[Candidate]) -> tuple[int, float]:
    """Order the outcomes of hypotheses."""
    if not listed:
        return -1, 0.0
    return STATUSES[::-1].index(listed[0].status), listed[0].score


def _best_of(found: list[tuple[list[Candidate], float, Upright]]) -> tuple[Any, ...]:
    """Choose among verticals; where a scan fits with several of them, none is the right one."""
    chosen = max(found, key=lambda each: _rank(each[0]))
    fitting = [each for each in found if each[0] and each[0][0].status != "not found"]
    if len(fitting) > 1:
        return [replace(each, status="ambiguous") for each in chosen[0]], *chosen[1:]
    return chosen


def _rows(
    listed: list[Candidate], metres: float, upright: Upright, origin: Any, datum: Any
) -> dict[str, Any]:
    """Make the columns, in the coordinates of the scan and of the model."""
    n = max(1, len(listed))
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
        matrix[:3, 3] = each.pose.shift + datum - matrix[:3, :3] @ origin
        values = dict(zip(MATRIX, matrix.ravel(), strict=True))
        sigma = each.sigma
        values |= {
            "explained": each.explained, "worse": each.worse, "rmse": each.rmse,
            "sigma_x": sigma[0], "sigma_y": sigma[1], "sigma_z": sigma[2],
            "sigma_turn": float(np.linalg.norm(sigma[3:])), "unit": metres,
        }  # fmt: skip
        for name, value in values.items():
            numbers[name][row] = value if np.isfinite(value) else np.nan
        status[row] = STATUSES.index(each.status)
        sentences.append(_sentence(listed, row, metres, upright))
    if not listed:
        sentences = ["the scan or the model has too few plane surfaces to compare"]
    return {
        "candidate": np.arange(1, n + 1),
        "status": status,
        **numbers,
        "up": np.full(n, UPS.index(upright.name), np.int8),
        "sentence": Text(np.arange(n), sentences),
    }



def _sentence(listed: list[Candidate], row: int, metres: float, upright: Upright) -> str:
    each = listed[row]
    share = f"{100 * each.explained:.0f} % of the scan's surface lies on the model"
    if each.status == "not found" and row == 0:
        return f"no placement fits: at the best one {share}, {100 * each.least:.0f} % of one kind"
    if each.status == "not found":
        return f"fits less well than candidate 1: {share}"
    if each.status == "ambiguous":
        count = sum(other.status == "ambiguous" for other in listed)
        return f"one of {count} placements that fit about equally well: {share}"
    said = f"the scan fits in one place: {share}"
    if upright.name != "z":
        said += ", its vertical is not the z-axis" if upright.name == "other" else ", y is up"
    if metres != 1:
        said += f", its unit is {UNITS.get(metres, f'{metres:g} m')}"
    return said
