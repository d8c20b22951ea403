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
    from .own import Own

THREADS = 128
"""Of a block."""

SIGNATURE = "void(float32[:, :], float64, float64, float64[::1])"


def fill_gpu(
    own: "Own", z: Any, x_starts: Any, y_starts: Any, sx: int, sy: int, dx: float, dy: float,
    valid: Any, out: Any,
) -> None:  # fmt: skip
    """Fill in the features of patches of one size; see `own.fill_cpu`. The arrays are the GPU's."""
    out[:] = nan
    if valid.size:
        fill = _kernel(own.function, len(own.features))
        fill[-(-valid.size // THREADS), THREADS](z, x_starts, y_starts, sx, sy, dx, dy, valid, out)


@lru_cache(maxsize=64)
def problem(function: Function) -> str:
    """Say why a function cannot run on the GPU, or nothing."""
    if not cuda.is_available():
        return "without numba-cuda and a GPU"
    try:
        cuda.compile_ptx_for_current_device(function, SIGNATURE, device=True)
    except Exception as error:  # Numba raises all kinds of them
        return f"which does not compile for it: {reason(error)}"
    return ""


@lru_cache(maxsize=64)
def _kernel(function: Function, features: int) -> Any:
    on_device = cuda.jit(device=True)(function)

    @cuda.jit
    def fill(
        z: Any, x_starts: Any, y_starts: Any, sx: int, sy: int, dx: float, dy: float,
        valid: Any, out: Any,
    ) -> None:  # fmt: skip
        at = cuda.grid(1)
        if at >= valid.size or not valid[at]:
            return
        found = cuda.local.array(features, np.float64)
        for k in range(features):
            found[k] = nan
        south, west = y_starts[at], x_starts[at]
        on_device(z[south : south + sy, west : west + sx], dx, dy, found)
        for k in range(features):
            if isfinite(found[k]):
                out[k, at] = found[k]

    return fill
