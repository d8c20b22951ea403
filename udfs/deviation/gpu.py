"""`deviation` on the GPU: the faces are prepared here, the points searched there."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.data.points import (
    all_finite,
    ids_of,
    in_one_memory,
    normals_of,
    normals_to_device,
    not_finite,
    read_only,
)
from spatialq.data.tiles import runs_of
from spatialq.geometry.nearest_faces import NearestFaces
from spatialq.runtime import buffers, cuda, progress

from . import Options

SOURCE = Path(__file__).parent / "kernels.cu"
THREADS = 128
MAX_BLOCKS = 1 << 20
COLUMNS = {
    "element": np.int64,
    "face": np.int64,
    "distance": np.float64,
    "angle": np.float64,
    "orientation": np.int8,
}


def run(
    x: Any, y: Any, z: Any, point_id: Any, elements: Meshes, options: Options,
    nx: Any = None, ny: Any = None, nz: Any = None, tiles: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """Find the nearest face of each point of a cloud.

    Parameters
    ----------
    x, y, z : float64[n]
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n] or None
        Where the coordinates are; None for 0, 1, 2 ...
    elements : Meshes
        In metres, in the memory of the host.
    options : Options
    nx, ny, nz : float64[n] or None
        As for `cpu.run`; in either memory.
    tiles : int
        Runs that points of the host are divided into, of which one at a time is on the device; the
        result is the same.

    Returns
    -------
    dict of arrays
        As from `cpu.run`, to the bit, where the coordinates are.

    Raises
    ------
    ValueError
        As from `cpu.run`.
    """
    device = cuda.device()
    with device.use():
        progress.stage("faces", 0.4)
        here = in_one_memory(device, options.function, (x, y, z, point_id))
        if here:
            x, y, z = (device.xp.ascontiguousarray(device.view(each)) for each in (x, y, z))
            point_id = None if point_id is None else device.view(point_id)
        if not all_finite(x, y, z):
            raise ValueError(not_finite(options.function, x, y, z, point_id))
        n = len(x)
        searched = _Search(device, elements, options)
        to_memory = normals_to_device if here else _normals_to_host
        normals = to_memory(device, nx, ny, nz)
        progress.stage("distances", 1.0)
        if here:
            columns = searched.rows((x, y, z), normals)
            return {"point_id": ids_of(point_id, n, device.xp), **columns}
        columns = {
            name: buffers.empty(n, dtype, page_locked=True) for name, dtype in COLUMNS.items()
        }
        cloud = [read_only(each) for each in (x, y, z)]
        for run_of in runs_of(n, tiles):
            there = device.upload([each[run_of] for each in (*cloud, *normals)])
            for name, values in searched.rows(there[:3], there[3:]).items():
                device.download(values, columns[name][run_of])
        return {"point_id": ids_of(point_id, n), **columns}


class _Search:
    """The faces on a device."""

    def __init__(self, device: cuda.Device, elements: Meshes, options: Options) -> None:
        self.device, self.metres = device, options.metres
        nearest = NearestFaces(elements, options.max_distance)
        self.lengths = np.float64(nearest.max_distance), np.float64(nearest.rounding)
        arrays = (*nearest.search_arrays, *nearest.sign_arrays, elements.face_starts)
        self.arrays = device.upload([np.ascontiguousarray(each) for each in arrays])

    def rows(self, cloud: Any, normals: Any) -> dict[str, Any]:
        """Make the rows of points on the device."""
        n = len(cloud[0])
        columns = {name: self.device.xp.empty(n, dtype) for name, dtype in COLUMNS.items()}
        if n:
            blocks = (min(-(-n // THREADS), MAX_BLOCKS),)
            self.device.launch(
                SOURCE, "deviation_rows", blocks, THREADS, *cloud, n, np.float64(self.metres),
                *self.lengths, *self.arrays, len(normals), *(normals or cloud), *columns.values(),
            )  # fmt: skip
        return columns


def _normals_to_host(device: cuda.Device, nx: Any, ny: Any, nz: Any) -> tuple[Any, ...]:
    """Bring normals of points to the host, as `normals_to_device`."""
    given = (nx, ny, nz)
    if any(each is None for each in given):
        return ()
    there = (device.download(device.view(each)) if device.is_here(each) else each for each in given)
    return normals_of(*there)
