"""User-defined methods: one function of a patch, compiled by Numba."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from inspect import isfunction, signature
from keyword import iskeyword
from math import isfinite, nan
from typing import Any

import numba
import numpy as np
from numba import types

from spatialq.runtime.arrays import Array, Bools, Floats, Ints

from .methods import FEATURES, USER_METHODS

Function = Callable[..., None]


def pops_method(name: str, features: Sequence[str]) -> Callable[[Function], Function]:
    """Register a function of a patch as a method of `pops_features` and `pops_patches`.

    Its name is then accepted in their `methods`, in SQL, in Python and on the command line, until
    the process ends. Registering a name again replaces the function.

    Parameters
    ----------
    name : str
        An identifier, and none of 'pca', 'stat', 'pca_ternary', 'stat_centred'.
    features : sequence of str
        Names of the features that the method computes: identifiers, one or more, all different.

    Returns
    -------
    decorator
        For a function `f(z, dx, dy, out)` that Numba can compile; the function is returned
        unchanged. `z` is float32 or float64 [rows, columns], the patch with its south-western cell
        first, NaN where there is no value, read-only; `dx` and `dy` are the spacing of the cells in
        map units; `out` is float64[features], to which the function writes. A feature that is not
        written, NaN or infinite becomes NULL, and so do all features of a patch for which the
        function raises.

    Raises
    ------
    ValueError
        If a name is wrong or taken, or the function does not compile.

    Notes
    -----
    The function is called only for patches with enough values (`min_valid`, `min_points`). An
    index outside the patch or `out` raises on the CPU; on the GPU it is not checked.

    Examples
    --------
    >>> import spatialq
    >>> @spatialq.pops_method("holes", features=["share_missing"])
    ... def holes(z, dx, dy, out):
    ...     missing = 0
    ...     for row in range(z.shape[0]):
    ...         for column in range(z.shape[1]):
    ...             missing += z[row, column] != z[row, column]
    ...     out[0] = missing / z.size
    """
    if not _is_name(name):
        message = f"pops_method: name must be an identifier such as 'slope', got {name!r}"
        raise ValueError(message)
    if name in FEATURES:
        message = f"pops_method: name must be none of {', '.join(FEATURES)}, got {name!r}"
        raise ValueError(message)
    listed = list(features) if isinstance(features, list | tuple) else []
    if not listed or not all(map(_is_name, listed)) or len(set(listed)) < len(listed):
        must = "one or more identifiers, all different"
        message = f"pops_method: features must be {must}, got {features!r}"
        raise ValueError(message)

    def register(function: Function) -> Function:
        method = UserMethod(name, tuple(listed), getattr(function, "py_func", function))
        method.check()
        USER_METHODS[name] = method
        return function

    return register


@dataclass(frozen=True)
class UserMethod:
    """A user-defined method."""

    name: str
    features: Sequence[str]
    function: Function

    def check(self) -> None:
        """Compile the function for the CPU; a ValueError says in one sentence why that fails."""
        if not isfunction(self.function):
            message = f"pops_method: {self.name} must be a plain function, got {self.function!r}"
            raise ValueError(message)
        given = signature(self.function)
        if len(given.parameters) != 4:
            message = f"pops_method: {self.name} must take (z, dx, dy, out), got {given}"
            raise ValueError(message)
        for real in (types.float32, types.float64):
            z = types.Array(real, 2, "A", readonly=True)
            with self._compiling():
                self.on_cpu.compile((z, types.float64, types.float64, types.float64[::1]))
        result = self.on_cpu.nopython_signatures[0].return_type
        if result != types.none:
            got = re.sub(r"Literal\[(\w+)\]", r"\1", str(result)).partition("(")[0]
            message = f"pops_method: {self.name} must fill in out and return nothing, got {got}"
            raise ValueError(message)

    @cached_property
    def on_cpu(self) -> Any:
        """The function, compiled for the CPU."""
        return numba.njit(error_model="numpy", boundscheck=True)(self.function)

    @contextmanager
    def _compiling(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # Numba raises many types of exceptions
            message = f"pops_method: {self.name} does not compile: {reason(error)}"
            raise ValueError(message) from None


def fill_cpu(
    method: UserMethod, z: Array, x_starts: Ints,
    y_starts: Ints, sx: int, sy: int, dx: float, dy: float,
    valid: Bools, out: Floats,
) -> None:  # fmt: skip
    """Compute the features of patches of one size.

    Parameters
    ----------
    method : UserMethod
    z : float32 or float64 [rows, columns], contiguous
        Read-only, so that Numba rejects functions that write to it.
    x_starts, y_starts : int64[patches]
        South-western cell of each patch.
    sx, sy : int
        Cells of a patch along x and y.
    dx, dy : float
        Spacing of the cells.
    valid : bool[patches]
        Whether a patch has enough values.
    out : float64[features, patches]
        Out: NaN where there is no feature.
    """
    found = np.empty(len(method.features))
    _fill(method.on_cpu, z, x_starts, y_starts, sx, sy, dx, dy, valid, found, out)


@numba.njit(nogil=True)
def _fill(
    function: Any, z: Any, x_starts: Any, y_starts: Any, sx: int, sy: int, dx: float, dy: float,
    valid: Any, found: Any, out: Any,
) -> None:  # fmt: skip
    out[:] = nan
    for at in range(valid.size):
        if not valid[at]:
            continue
        found[:] = nan
        south, west = y_starts[at], x_starts[at]
        try:
            function(z[south : south + sy, west : west + sx], dx, dy, found)
        except Exception:
            continue
        for k in range(found.size):
            if isfinite(found[k]):
                out[k, at] = found[k]


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isidentifier() and not iskeyword(value)


def reason(error: Exception) -> str:
    """Extract the relevant sentence from an error of Numba."""
    text = re.sub(r"\x1b\[\d*m|^Failed in .* mode pipeline .*\n", "", str(error))
    text = re.sub(r"^Untyped global name ('.*'): .*", r"Numba cannot call \1", text)
    call = re.search(r">>> (.+)", text)
    cause = re.search(r"^\s*\w+Error: (?!No implementation)(.+)", text, re.MULTILINE)
    if cause:
        reason = cause[1]
    elif call:
        reason = f"there is no {call[1]}"
    else:
        reason = re.split(r"\. Raised from |, defined at |\n", text.strip())[0]
    line = getattr(getattr(error, "loc", None), "line", None)
    return f"{reason} (line {line})" if line else reason
