"""Where Numba keeps compiled code when it finds no folder of its own choice to write to."""

import tempfile
from functools import cache


@cache
def ensure() -> None:
    """Give Numba a temporary folder if neither the package nor the user's cache can be written.

    Call it before a module with cached functions is imported: Numba refuses them without a
    folder. The temporary one lasts as long as the process.
    """
    import numba

    try:
        numba.njit(cache=True)(_probe)
    except RuntimeError:
        numba.config.CACHE_DIR = _temporary_folder().name


def _probe() -> None:
    """Stand for all cached functions: Numba looks for a folder when it gets one."""


@cache
def _temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="spatialq_numba_")
