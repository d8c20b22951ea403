"""What this process has started already. The first call of a function pays for its start."""

import sys

from spatialq.functions.declaration import Device
from spatialq.runtime import cuda, forks

_loaded: set[tuple[str, Device, int]] = set()
_lock = forks.lock()


def is_started(device: Device, number: int = 0) -> bool:
    """Whether what all kernels of a device, of GPUs the one of a number, need is in memory."""
    if device == "gpu":
        return "cupy" in sys.modules and cuda.is_started(number)
    return "numba" in sys.modules


def is_loaded(folder: str, device: Device, number: int = 0) -> bool:
    """Whether the kernels of a function were used here before."""
    with _lock:
        return (folder, device, number) in _loaded


def loaded(folder: str, device: Device, number: int = 0) -> None:
    """Remember that the kernels of a function were used."""
    with _lock:
        _loaded.add((folder, device, number))
