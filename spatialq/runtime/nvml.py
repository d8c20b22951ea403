"""The free memory of GPUs, asked of NVML: the management library of the driver starts no GPU."""

import ctypes
import sys
from functools import cache
from typing import Any


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


@cache
def _library() -> Any:
    """Load NVML and begin with it; None where that fails."""
    try:
        library = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
        return library if library.nvmlInit_v2() == 0 else None
    except (OSError, AttributeError):
        return None


def free_bytes(bus: str) -> int | None:
    """Give the free memory of a GPU, what other processes have taken off; None if it is not told.

    Parameters
    ----------
    bus : str
        Its PCI address, as the CUDA driver API gives it.
    """
    library, handle, found = _library(), ctypes.c_void_p(), _Memory()
    if library is None:
        return None
    if library.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(handle)) != 0:
        return None
    if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(found)) != 0:
        return None
    return int(found.free)
