"""`plane_points` on the GPU: the plane of each point, as `detect_planes` finds them."""

from typing import TYPE_CHECKING, Any

from spatialq.runtime import cuda

from ..detect_planes import gpu as detect_planes

if TYPE_CHECKING:
    from . import Options


def run(x: Any, y: Any, z: Any, point_id: Any, options: "Options") -> dict[str, Any]:
    """Find the plane of each point.

    Parameters
    ----------
    x, y, z : float64[n]
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n]
        In the same memory as the coordinates.
    options : Options

    Returns
    -------
    dict of columns
        As from `cpu.run`, in the memory of the coordinates.

    Raises
    ------
    ValueError
        As from `cpu.run`.
    """
    found = detect_planes.detection(x, y, z, point_id, options, label=True)
    owner, distance = found.owner, found.distance
    device = cuda.device()
    if not device.is_here(x):
        with device.use():
            owner, distance = device.download(owner), device.download(distance)
    return {"point_id": point_id, "plane_id": owner, "distance": distance}
