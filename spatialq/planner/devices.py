"""What there is to compute with. CuPy is not imported here: the driver itself is asked."""

import ctypes
import importlib.util
import os
import platform
import sys
from dataclasses import dataclass
from functools import cache

from spatialq.functions.declaration import Device
from spatialq.runtime.threads import n_threads


@dataclass(frozen=True)
class DeviceInfo:
    """One device, usable or not."""

    device: Device
    name: str
    cores: int
    """Threads a kernel may use on a CPU, multiprocessors of a GPU."""
    memory_bytes: int
    problem: str
    """Why it cannot be used; empty when it can."""


def devices() -> list[DeviceInfo]:
    """List the CPU and the first GPU."""
    return [cpu(), gpu()]


def cpu() -> DeviceInfo:
    """Describe the machine's processor."""
    name = platform.processor() or platform.machine()
    return DeviceInfo("cpu", name, n_threads(), _main_memory(), "")


@cache
def gpu() -> DeviceInfo:
    """Describe the first NVIDIA GPU, or say why there is none to use."""
    try:
        name, cores, memory = _ask_driver()
    except OSError as error:
        return DeviceInfo("gpu", "none", 0, 0, str(error))
    problem = ""
    if importlib.util.find_spec("cupy") is None:
        problem = "CuPy is not installed (pip install 'spatialq[gpu-cuda12]' or [gpu-cuda13])"
    return DeviceInfo("gpu", name, cores, memory, problem)


def _main_memory() -> int:
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 0


def _ask_driver() -> tuple[str, int, int]:
    """Name, multiprocessors and memory of device 0 by the CUDA driver API.

    Raises
    ------
    OSError
        With the reason, when there is no driver or no device.
    """
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        cuda = ctypes.CDLL(library)
    except OSError:
        message = "no NVIDIA driver on this machine"
        raise OSError(message) from None

    def ask(function: str, *arguments: object) -> None:
        status = getattr(cuda, function)(*arguments)
        if status != 0:
            message = f"the NVIDIA driver has no usable GPU ({function} gave error {status})"
            raise OSError(message)

    count, device, cores = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t()
    multiprocessor_count = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    ask("cuInit", 0)
    ask("cuDeviceGetCount", ctypes.byref(count))
    if count.value == 0:
        message = "the NVIDIA driver sees no GPU"
        raise OSError(message)
    ask("cuDeviceGet", ctypes.byref(device), 0)
    ask("cuDeviceGetName", name, len(name), device)
    ask("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
    ask("cuDeviceGetAttribute", ctypes.byref(cores), multiprocessor_count, device)
    return name.value.decode(errors="replace"), cores.value, memory.value
