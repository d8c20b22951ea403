"""`plane_elements` on the CPU: the planes of the points, then their elements."""

from typing import Any

from spatialq.data.meshes import Meshes
from spatialq.runtime import progress
from spatialq.runtime.arrays import Floats, Ints

from ..detect_planes.cpu import detection
from . import Options
from .match import match


def run(
    x: Floats, y: Floats, z: Floats, point_id: Ints | None, elements: Meshes, options: Options
) -> dict[str, Any]:
    """Find the planes of a cloud and the elements that they belong to.

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
        See `match.match`.

    Raises
    ------
    ValueError
        As `detect_planes`.
    """
    progress.stage("planes", 0.7)
    with progress.nested():
        found = detection(x, y, z, point_id, options, label=True)
    progress.stage("elements", 1.0)
    with progress.nested():
        return match(x, y, z, found.owner, found.columns, elements, options)
