"""`registration` on the GPU: its points come to the host, where the placements are found."""

from typing import TYPE_CHECKING, Any

from spatialq.runtime import cuda

from . import cpu

if TYPE_CHECKING:
    from spatialq.data.meshes import Meshes

    from . import Options


def run(
    x: Any, y: Any, z: Any, point_id: Any, elements: "Meshes", options: "Options"
) -> dict[str, Any]:
    """As `cpu.run`, with points where they are; the columns are NumPy arrays."""
    device = cuda.device()
    with device.use():
        if device.is_here(x):
            x, y, z = (device.download(device.view(each)) for each in (x, y, z))
            if point_id is not None:
                point_id = device.download(device.view(point_id))
    return cpu.run(x, y, z, point_id, elements, options)
