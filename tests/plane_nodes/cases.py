"""Named clouds for `plane_nodes`, as lists of (point_id, x, y, z); used on every device."""

import numpy as np

from ..detect_planes.cases import CASES as PLANES
from ..detect_planes.cases import points

SHARED = (
    "empty", "one point", "all the same", "an oblique line", "flat", "a room", "a room, deep",
    "a room, only large planes", "a room, turned", "a room, UTM", "two tables, split", "a pipe",
    "a ball", "an outlier",
)  # fmt: skip


def depth_camera():
    """An oblique wall as a depth camera sees it that measures depths in steps of 20 cm."""
    x, z = np.mgrid[0:4:160j, 0:3:120j].reshape(2, -1)
    return points(x, np.round(5 * (2 + x)) / 5, z)


CASES = {
    **{name: PLANES[name] for name in SHARED},
    "a depth camera": (depth_camera(), {"s_level": 5, "s_ms": 6}),
}
