"""User-defined methods on the GPU: one thread per patch, compiled by numba-cuda.

`cuda` is imported at the top of the module because Numba's simulator, with which this is tested
without a GPU, replaces it there.
"""

from collections.abc import Callable
from contextvars import copy_context
from functools import lru_cache
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda

from spatialq.runtime import cuda as gpus
from spatialq.runtime.threads import Pool

from .user_methods import Function, UserMethod, reason

if TYPE_CHECKING:
    from .division import Division, Scale

THREADS = 128
"""Threads per block."""

MIN_BLOCKS = 128
"""Numba warns of fewer blocks; a block without a patch ends at once."""

SIGNATURE = "void(float32[:, :], float64, float64, float64[::1])"


def fill_gpu(
    method: UserMethod, z: Any, division: "Division", scale: "Scale", first: int, min_cells: int,
    dx: float, dy: float, out: Any,
) -> None:  # fmt: skip
    """Compute the features of all patches of one scale, in a band of complete rows of examples.

    Parameters
    ----------
    method : UserMethod
    z : float32 or float64 [rows, columns]
        Its south-western cell is that of the first example.
    division : Division
    scale : Scale
    first : int
        The scale's first patch in `out`.
    min_cells : int
        Minimum number of cells of a patch that have a value.
    dx, dy : float
        Spacing of the cells.
    out : float64[features, columns of examples, rows of examples, patches of all scales]
        Out, for this scale: y of the patches varies fastest; NaN where there is no feature.
    """
    blocks = -(-out.shape[1] * out.shape[2] * scale.patches // THREADS)

    def fill() -> None:
        _kernel(method.function, len(method.features))[max(blocks, MIN_BLOCKS), THREADS](
            z, division.x.step, division.y.step, scale.x.size, scale.y.size, scale.x.step,
            scale.y.step, scale.x.count, scale.y.count, first, min_cells, dx, dy, out,
        )  # fmt: skip

    if gpus.numbers()[0] == 0:
        fill()
    else:
        _in_new_thread(fill)


def _in_new_thread(work: Callable[[], None]) -> None:
    """Do work on the GPU of the call in a thread in which Numba has used no other one.

    Numba keeps the GPU that it used first in a thread.
    """

    def on_gpu() -> None:
        with gpus.device().use():
            work()

    with Pool(1) as pool:
        pool.submit(copy_context().run, on_gpu).result()


@lru_cache(maxsize=64)
def problem(function: Function) -> str:
    """Say why a function cannot run on the GPU, to follow its name; empty if it can."""
    if not cuda.is_available():
        return " without numba-cuda and a GPU"
    try:
        cuda.compile_ptx_for_current_device(function, SIGNATURE, device=True)
    except Exception as error:  # Numba raises many types of exceptions
        return f", which does not compile for it: {reason(error)}"
    return ""


@lru_cache(maxsize=64)
def _kernel(function: Function, features: int) -> Any:
    on_device = cuda.jit(device=True)(function)

    @cuda.jit
    def fill(
        z: Any, step_x: int, step_y: int, sx: int, sy: int, tx: int, ty: int, nx: int, ny: int,
        first: int, min_cells: int, dx: float, dy: float, out: Any,
    ) -> None:  # fmt: skip
        at = cuda.grid(1)  # consecutive threads are neighbours along x, which read the same cells
        columns, rows = out.shape[1], out.shape[2]
        if at >= columns * rows * nx * ny:
            return
        px, py = at % nx, at // nx % ny
        column, row = at // (nx * ny) % columns, at // (nx * ny * columns)
        place = first + px * ny + py
        for k in range(features):
            out[k, column, row, place] = (
                nan  # in case that the function raises, which ends the thread
            )
        west, south = column * step_x + px * tx, row * step_y + py * ty
        patch = z[south : south + sy, west : west + sx]
        count = 0
        for y in range(sy):
            for x in range(sx):
                if patch[y, x] == patch[y, x]:
                    count += 1
        if count < min_cells:
            return
        found = cuda.local.array(features, np.float64)
        for k in range(features):
            found[k] = nan
        on_device(patch, dx, dy, found)
        for k in range(features):
            if isfinite(found[k]):
                out[k, column, row, place] = found[k]

    return fill
