"""`plane_elements` on the GPU: planes and their points are found there, their elements here."""

from typing import TYPE_CHECKING, Any

from spatialq.runtime import cuda, progress

from ..detect_planes.gpu import detection
from . import Options
from .match import match

if TYPE_CHECKING:
    from spatialq.data.meshes import Meshes


def run(
    x: Any, y: Any, z: Any, point_id: Any, elements: "Meshes", options: Options,
    tiles: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """Find the planes of a cloud and the elements that they belong to.

    Parameters
    ----------
    x, y, z : float64[n]
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n] or None
        Where the coordinates are; None for 0, 1, 2 ...
    elements : Meshes
        In metres, in the memory of the host.
    options : Options
    tiles : int
        As for `detect_planes`.

    Returns
    -------
    dict of arrays
        As from `cpu.run`, where the coordinates are; but `boundary` is a NumPy array.

    Raises
    ------
    ValueError
        As from `cpu.run`.
    """
    progress.stage("planes", 0.7)
    with progress.nested():
        found = detection(x, y, z, point_id, options, label=True, tiles=tiles)
    progress.stage("elements", 1.0)
    device = cuda.device()
    with device.use():
        owner = found.owner if tiles > 1 else device.download(found.owner)
        here = device.is_here(x)
        if here:
            x, y, z = (device.download(device.view(each)) for each in (x, y, z))
        with progress.nested():
            columns = match(x, y, z, owner, found.columns, elements, options)
        if not here:
            return columns
        return {
            name: values if values.dtype == object else device.upload_small(values)
            for name, values in columns.items()
        }
