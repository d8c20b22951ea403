"""Whether a scan lies where the elements are that it is compared with.

Functions that compare points with elements believe any placement, and floors or the other side of a
wall match in a wrong one, too. So a sample of the scan's surface is compared with the elements
beforehand, and the user is told if it lies beside them.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.geometry import boxes
from spatialq.runtime import cuda
from spatialq.runtime.cuda import on_gpu

from . import decide, surfels
from .cpu import CLEAR, UNITS, off_by
from .decide import (
    LEAST_EXPLAINED,
    LEAST_SHARE,
    LEAST_SURFELS,
    TIGHT,
    TOLERANCE,
    Candidate,
    beside,
    cubes_of,
    is_better,
    judge,
    some,
)
from .refine import FINE, FOUR, RADII, Faces, refine
from .search import Pose, classes_of, main_axis, poses_near

if TYPE_CHECKING:
    from spatialq.data.meshes import Meshes

LIMIT, LIMIT_ANGLE = 0.02, 0.2
"""Metres and degrees: a scan that lies off by less is not spoken of."""
EDGE = 0.4
"""Metres: of the cells of the scan. Smaller ones have too few points in a sparse one."""
POINTS, LARGEST_SHARE = 300_000, 64
"""Of about so many points cells are made: of one of so many cells at most."""
SURFELS, MODEL_SURFELS = 1000, 100_000
"""Of the scan and of the elements, at most."""
AROUND = 1.0
"""Metres around all elements within which points count."""
TRIED = 8
"""Of the placements nearby, how many are adjusted."""
BESIDE = (-0.9, -0.6, 0.6, 0.9)
"""Metres along each axis to where what is explained is so by chance."""
TIMES = 2.0
"""How many times as much as by chance must be explained of each of the `KINDS`."""
LEAST_CHANCE = 10, 0.05
"""Surfels, and share of all of their direction, that chance must explain: with fewer of them, such
as of a few elements, nobody can tell."""
UNFIT = "does not fit the elements"
KINDS = ("floors and ceilings", "walls one way", "walls the other way")
ALIKE = 0.5, 1.5
"""Multiples of the model's length between which a scan of it is long."""
SIZES = 0.4, 2.5
"""Multiples between which a scan among the elements may be of a part of them or of more."""


def sentence(x: Any, y: Any, z: Any, metres: float, elements: "Meshes") -> str:
    """Say how a scan lies beside the elements; nothing where it does not, or nobody can tell.

    Parameters
    ----------
    x, y, z : float64[n]
        Of the scan, in the memory of the host or of the GPU.
    metres : float
        In a unit of x, y and z.
    elements : Meshes
        In metres.

    Returns
    -------
    str
        What follows "the scan"; empty if there is nothing to say.
    """
    box = box_around(elements, metres)
    if box is None or not len(x):
        return ""
    x, y, z = (_on_host(each) for each in (x, y, z))
    return of_sample(sample(x, y, z, metres, box, len(x)), (x, y, z), metres, elements)


def of_sample(scan: surfels.Surfels | None, xyz: Any, metres: float, elements: "Meshes") -> str:
    """Say how a scan lies by its surfels; where these are too few, by its points or its corners."""
    box = box_around(elements, metres)
    if scan is None or len(scan) < LEAST_SURFELS:
        return _of_extents(xyz, metres, box)
    said = _of_surface(scan, elements)
    if not said.startswith(UNFIT):
        return said
    unit = _unit(xyz, *(box * metres))
    return said + ("" if unit in (None, metres) else f"; {_in_unit(unit)}")


def box_around(elements: "Meshes", metres: float) -> Any:
    """Give the box within which points may be of elements: float64[2, 3], in units of metres.

    None if no element has a surface.
    """
    limits = boxes.of(elements)
    limits = limits[boxes.not_empty(limits)]
    if not len(limits):
        return None
    low, high = limits[:, :3].min(axis=0), limits[:, 3:].max(axis=0)
    return np.stack([low - AROUND, high + AROUND]) / metres


def sample(x: Any, y: Any, z: Any, metres: float, box: Any, total: int) -> surfels.Surfels:
    """Find surfels of a scan of so many points in all, or of a part of it, in a box."""
    share = min(max(1, total // POINTS), LARGEST_SHARE)
    return surfels.of_cloud(x, y, z, metres, EDGE, box=box, share=share)


def _of_surface(scan: surfels.Surfels, elements: "Meshes") -> str:
    """Say how surfels of a scan lie beside the elements."""
    limits = boxes.of(elements)
    low, high = scan.places.min(axis=0) - AROUND, scan.places.max(axis=0) + AROUND
    # those of all storeys: a scan may lie one too high
    near = ((limits[:, :2] <= high[:2]) & (limits[:, 3:5] >= low[:2])).all(axis=1)
    model = surfels.of_meshes(elements.take(np.flatnonzero(near)), MODEL_SURFELS)
    if not len(model):
        return ""
    # numbers near zero: coordinates of a survey have seven digits before the point
    datum = model.places.mean(axis=0)
    model, scan = model.moved(-datum), some(scan, SURFELS).moved(-datum)
    faces, axis = Faces.of(model), main_axis(model)
    nowhere = Pose(np.eye(3), np.zeros(3))
    best = judge(faces, scan, refine(faces, scan, nowhere, FINE + TIGHT), axis, FOUR)
    here = best

    def improve(poses: list[Pose], radii: tuple[float, ...]) -> Candidate:
        moved = (judge(faces, scan, refine(faces, scan, p, radii), axis, FOUR) for p in poses)
        return max((best, *moved), key=lambda each: each.score)

    if here.least < CLEAR or _is_off(here.pose, scan):
        listed = poses_near(scan, model, storeys=True)[:TRIED]
        best = improve([pose for _, pose in listed], RADII + FINE + TIGHT)
        if best is not here:
            poses = beside(faces, scan, best.pose, axis, TOLERANCE, decide.BESIDE)
            best = improve(poses, FINE + TIGHT)
    counts = np.bincount(classes_of(scan.normals, axis), minlength=3)
    # surfaces that all lie along one axis may be anywhere along it
    is_told = bool((counts >= LEAST_SHARE * len(scan)).all())
    is_found = is_told and (best is here or best.least >= LEAST_EXPLAINED)
    if is_found and _is_off(best.pose, scan):
        # most of the surface must agree on it: some walls that were built elsewhere do not
        now, then = (
            judge(faces, scan, each, axis, FOUR, TIGHT[-1]) for each in (nowhere, best.pose)
        )
        if is_better(then, now, cubes_of(scan)):
            off = off_by(best.pose, scan.places.mean(axis=0))
            return f"{off}: registration gives the movement that puts it right"
    return _by_chance(faces, scan, here, axis) if here.least < LEAST_EXPLAINED else ""


def _is_off(pose: Pose, scan: surfels.Surfels) -> bool:
    """Whether a movement is more than the limits."""
    middle = scan.places.mean(axis=0)
    shift = pose.turn @ middle + pose.shift - middle
    angle = abs(np.degrees(np.arctan2(pose.turn[1, 0], pose.turn[0, 0])))
    return bool(np.linalg.norm(shift) > LIMIT or angle > LIMIT_ANGLE)


def _by_chance(faces: Faces, scan: surfels.Surfels, here: Candidate, axis: float) -> str:
    """Say of which surfaces no more lies on the elements than by chance."""
    classes = classes_of(scan.normals, axis)
    counts = np.bincount(classes, minlength=3)
    beside = np.stack(np.meshgrid(BESIDE, BESIDE, BESIDE), axis=-1).reshape(-1, 3)
    chance = np.zeros(3)
    for shift in beside:
        other = judge(faces, scan, Pose(np.eye(3), shift), axis, FOUR)
        chance = np.maximum(chance, np.bincount(classes, other.is_on, 3))
    there = np.bincount(classes, here.is_on, 3)
    is_some = counts >= LEAST_SHARE * len(scan)
    asked = is_some & (chance >= np.maximum(LEAST_CHANCE[0], LEAST_CHANCE[1] * counts))
    # where all walls fit, its height would have been found: these are elements without floors
    asked[0] &= not (is_some[1:] & (there >= LEAST_EXPLAINED * counts)[1:]).all()
    found = np.flatnonzero(asked & (there < TIMES * chance))
    if not found.size:
        return ""
    which = " and ".join(KINDS[k] for k in found)
    return (
        f"{UNFIT}: {100 * here.explained:.0f} % of its surface lies on them, that "
        f"of {which} no more than by chance; registration looks for its place"
    )


def _of_extents(xyz: Any, metres: float, box: Any) -> str:
    """Say that a scan of which hardly a surface is near the elements lies beside them."""
    ends = np.array([(each.min(), each.max()) for each in xyz]).T
    if not np.isfinite(ends).all():
        return ""
    low, high = box * metres + np.array([[AROUND], [-AROUND]])
    unit = _unit(xyz, low, high)
    if unit == metres:
        return ""
    if len(xyz[0]) > 2:
        within = np.ones(len(xyz[0]), np.bool_)
        for axis, values in enumerate(xyz):
            within &= (values >= box[0, axis]) & (values <= box[1, axis])
        is_near = bool(within.any())
    else:  # the corners of a scan of many files
        is_near = bool(((ends[0] <= box[1]) & (ends[1] >= box[0])).all())
    share = metres * (ends[1] - ends[0]).max() / (high - low).max()
    if is_near and (unit is None or SIZES[0] <= share <= SIZES[1]):
        return ""
    hint = "registration looks for its place" if unit is None else _in_unit(unit)
    what = "is of another size than they are" if is_near else "has no point near the elements"
    first, last = (_text(each * metres) for each in ends)
    return (
        f"{what}: it is at x y z {first} to {last} m, the elements are at {_text(low)} to "
        f"{_text(high)} m; {hint}"
    )


def _unit(xyz: Any, low: Any, high: Any) -> float | None:
    """Guess the metres in a unit with which a scan is as long as the elements and among them."""
    step = max(1, len(xyz[0]) // 100_000)
    middle = [np.percentile(each[::step], [1, 50, 99]) for each in xyz]
    length = max(last - first for first, _, last in middle)
    for unit in UNITS:
        place = unit * np.array([each[1] for each in middle])
        share = unit * length / float((high - low).max())
        if ALIKE[0] <= share <= ALIKE[1] and ((place >= low) & (place <= high)).all():
            return unit
    return None


def _in_unit(unit: float) -> str:
    return f"in {UNITS[unit]} it would be among them: unit := {unit:g}"


def _text(place: Any) -> str:
    return " ".join(f"{each:.2f}" for each in place)


def _on_host(values: Any) -> Any:
    """Give a column in main memory; of one on a GPU some values that are spread over it."""
    if not on_gpu(values):
        return values
    device = cuda.device()
    return device.download(device.view(values)[:: max(1, len(values) // POINTS)])
