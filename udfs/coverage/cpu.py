"""`coverage` on the CPU: cells of faces, points on them, rays from them, and the verdict."""

from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.data.points import all_finite, not_finite, read_only
from spatialq.geometry.rays import TriangleTree
from spatialq.runtime import progress

from . import Options
from .faces import Faces
from .match import Touches, measure
from .samples import Samples
from .sight import HIDDEN, LIFT, OPEN, look
from .verdict import rows

COVERED = 0.05
"""Metres: a cell with a face of the model as near before it is covered, if no station is given."""


def run(
    x: Any, y: Any, z: Any, point_id: Any, elements: Meshes, options: Options
) -> dict[str, Any]:
    """Compare a scan with the elements of a model.

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
        `element` (int64, the row), and the columns of the declaration; see `verdict.rows`.

    Raises
    ------
    ValueError
        If a coordinate is not finite.
    """
    if not all_finite(x, y, z):
        raise ValueError(not_finite(options.function, x, y, z, point_id))
    progress.stage("faces", 0.1)
    faces = Faces.of(elements, options.cell)
    progress.stage("sample of the points", 0.5)
    x, y, z = (read_only(np.ascontiguousarray(each, np.float64)) for each in (x, y, z))
    samples = Samples.of(x, y, z, options.metres, options.sample)
    progress.stage("points on faces", 0.65)
    touches = Touches.of(faces, samples, options.search)
    progress.stage("rays", 0.9)
    tree = TriangleTree.of(elements)
    cells = len(faces.centres)
    if options.scanner is None:
        normal = faces.normal[faces.cell_face]
        is_covered = tree.are_blocked(faces.centres + LIFT * normal, COVERED * normal, 1.0)
        sight = np.where(is_covered, HIDDEN, OPEN).astype(np.int8)
        height = np.full(cells, np.nan)
    else:
        stations = np.array(options.scanner, np.float64).reshape(-1, 3) * options.metres
        sight, height = look(tree, faces, samples, stations, options.search)
    progress.stage("elements", 1.0)
    measured = measure(faces, touches, samples.counts, sight, height, options.search, len(elements))
    return rows(elements, faces, samples, *measured, options)
