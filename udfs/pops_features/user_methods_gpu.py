"""Methods of the user's own on the GPU: a thread a patch, by numba-cuda.

`cuda` is a name of this module, not of a function: Numba's simulator, with which this is tested
where there is no GPU, puts its own in its place.
"""

from functools import lru_cache
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda

from .own import Function, reason

if TYPE_CHECKING:
    from .division import Division, Scale
    from .own import Own

THREADS = 128
"""Of a block."""

FEWEST_BLOCKS = 128
"""Numba warns of fewer; one without a patch ends at once."""

SIGNATURE = "void(float32[:, :], float64, float64, float64[::1])"


def fill_gpu(
    own: "Own", z: Any, division: "Division", scale: "Scale", first: int, least: int, dx: float,
    dy: float, out: Any,
) -> None:  # fmt: skip
    """Fill in the features of all patches of one scale, in a band of whole rows of examples.

    Parameters
    ----------
    own : Own
    z : float32 or float64 [rows, columns]
        The first example starts in its south-western cell.
    division : Division
    scale : Scale
    first : int
        The scale's first patch in `out`.
    least : int
        Cells of a patch that must have a value.
    dx, dy : float
        Spacing of the cells.
    out : float64[features, columns of examples, rows of examples, patches of all scales]
        Out, for this scale: y of the patches is fastest; NaN where there is none.
    """
    blocks = -(-out.shape[1] * out.shape[2] * scale.patches // THREADS)
    _kernel(own.function, len(own.features))[max(blocks, FEWEST_BLOCKS), THREADS](
        z, division.x.step, division.y.step, scale.x.size, scale.y.size, scale.x.step,
        scale.y.step, scale.x.count, scale.y.count, first, least, dx, dy, out,
    )  # fmt: skip


@lru_cache(maxsize=64)
def problem(function: Function) -> str:
    """Say why a function cannot run on the GPU, after its name, or nothing."""
    if not cuda.is_available():
        return " without numba-cuda and a GPU"
    try:
        cuda.compile_ptx_for_current_device(function, SIGNATURE, device=True)
    except Exception as error:  # Numba raises all kinds of them
        return f", which does not compile for it: {reason(error)}"
    return ""


@lru_cache(maxsize=64)
def _kernel(function: Function, features: int) -> Any:
    on_device = cuda.jit(device=True)(function)

    @cuda.jit
    def fill(
        z: Any, step_x: int, step_y: int, sx: int, sy: int, tx: int, ty: int, nx: int, ny: int,
        first: int, least: int, dx: float, dy: float, out: Any,
    ) -> None:  # fmt: skip
        at = cuda.grid(1)  # neighbours along x, which read the same cells, side by side
        columns, rows = out.shape[1], out.shape[2]
        if at >= columns * rows * nx * ny:
            return
        px, py = at % nx, at // nx % ny
        column, row = at // (nx * ny) % columns, at // (nx * ny * columns)
        place = first + px * ny + py
        for k in range(features):
            out[k, column, row, place] = nan  # also for a function that raises: its thread ends
        west, south = column * step_x + px * tx, row * step_y + py * ty
        patch = z[south : south + sy, west : west + sx]
        count = 0
        for y in range(sy):
            for x in range(sx):
                if patch[y, x] == patch[y, x]:
                    count += 1
        if count < least:
            return
        found = cuda.local.array(features, np.float64)
        for k in range(features):
            found[k] = nan
        on_device(patch, dx, dy, found)
        for k in range(features):
            if isfinite(found[k]):
                out[k, column, row, place] = found[k]

    return fill
