"""`thin` in parts: voxels with points of a core are whole within its halo.

Whether a point of 'poisson' is kept depends on points near it whose turn is earlier, these on
others, and so on, so that no halo is wide enough to decide it: jobs refuse it.
"""

from dataclasses import replace

import numpy as np

from spatialq.functions.stages import Columns, Part, PointWork

from . import Options

FUNCTION = "thin"


def thin(work: PointWork[Options]) -> None:
    """Choose among the points of all cores."""
    options = work.options
    # voxels are numbered by rounded quotients, so that one may be a little wider than its edge
    work.rows(choose, options, halo=1.001 * options.distance)


def choose(part: Part, options: Options) -> Columns:
    """Give the points of a core that are kept."""
    rows = part.points()
    rows.pop("classification", None)
    kept = part.call(FUNCTION, rows, replace(options, bounds=None))
    chosen = np.isin(rows["point_id"], kept["point_id"])
    return part.own({name: values[chosen] for name, values in rows.items()})
