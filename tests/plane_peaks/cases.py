"""Named clouds for `plane_peaks`, as lists of (point_id, x, y, z); used on every device."""

from ..plane_nodes.cases import CASES as NODES

CASES = {
    **NODES,
    "a room, the paper's votes": (NODES["a room"][0], {"kernel": "paper"}),
    "a room, a coarse ball": (NODES["a room"][0], {"phi_num": 11, "rho_num": 37}),
}
