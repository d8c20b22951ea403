"""`plane_points` on the CPU: the plane of each point, as `detect_planes` finds them."""

from typing import TYPE_CHECKING, Any

from ..detect_planes import cpu as detect_planes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from . import Options


def run(
    x: "NDArray[np.float64]",
    y: "NDArray[np.float64]",
    z: "NDArray[np.float64]",
    point_id: "NDArray[np.int64]",
    options: "Options",
) -> "dict[str, NDArray[Any]]":
    """Find the plane of each point.

    Parameters
    ----------
    x, y, z : float64[n]
    point_id : int64[n]
    options : Options

    Returns
    -------
    dict of columns
        One row per point, in the order of the input. `point_id` as given; `plane_id` int64: the
        number of its plane in `detect_planes` with the same options, 0 for none; `distance`
        float64: signed distance from that plane along its normal, NaN for none.

    Raises
    ------
    ValueError
        If a coordinate is not finite.
    """
    found = detect_planes.detection(x, y, z, point_id, options, label=True)
    return {"point_id": point_id, "plane_id": found.owner, "distance": found.distance}
