"""What there is to compute with. CuPy is not imported here: the driver itself is asked."""

import ctypes
import importlib.util
import platform
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from spatialq.functions.declaration import Device
from spatialq.runtime import cuda, memory
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
    free_bytes: int | None = None
    """Memory that a call may use now; None stands for all of it."""
    bandwidth: float = 0.0
    """Bytes per second of a GPU's own memory; 0 where it is not known."""
    float64_rate: float = 0.0
    """Operations per second of a GPU in double precision; 0 where it is not known."""

    @property
    def room(self) -> int:
        """Bytes of memory that a call may use."""
        return self.memory_bytes if self.free_bytes is None else self.free_bytes


def devices() -> list[DeviceInfo]:
    """List the CPU and the first GPU."""
    return [cpu(), gpu()]


@lru_cache(maxsize=1)
def _host_free(moment: int) -> int:
    """Ask for the free memory once in a moment: that takes as long as a very small call."""
    del moment
    return memory.host_free()


def cpu() -> DeviceInfo:
    """Describe the machine's processor."""
    return DeviceInfo(
        "cpu",
        cpu_name(),
        n_threads(),
        memory.host_total(),
        "",
        _host_free(int(4 * time.monotonic())),
    )


@cache
def cpu_name() -> str:
    """Name the model of the processor, or else its architecture."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def gpu() -> DeviceInfo:
    """Describe the first NVIDIA GPU, or say why there is none to use."""
    found = _first_gpu()
    if found.problem:
        return found
    return replace(found, free_bytes=cuda.free_bytes(found.memory_bytes))


@cache
def _first_gpu() -> DeviceInfo:
    try:
        found = _ask_driver()
    except OSError as error:
        return DeviceInfo("gpu", "none", 0, 0, str(error))
    if importlib.util.find_spec("cupy") is None:
        problem = "CuPy is not installed (pip install 'spatialq[gpu-cuda12]' or [gpu-cuda13])"
        return replace(found, problem=problem)
    return found


SINGLES = {(6, 0): 64, (7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
"""Single-precision units of a multiprocessor by compute capability; the others have 128."""


def _ask_driver() -> DeviceInfo:
    """Describe device 0 by the CUDA driver API, which starts nothing on the GPU.

    Raises
    ------
    OSError
        With the reason, when there is no driver or no device.
    """
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        message = "no NVIDIA driver on this machine"
        raise OSError(message) from None

    def ask(function: str, *arguments: object) -> None:
        status = getattr(driver, function)(*arguments)
        if status != 0:
            message = f"the NVIDIA driver has no usable GPU ({function} gave error {status})"
            raise OSError(message)

    count, device, value = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name, total = ctypes.create_string_buffer(256), ctypes.c_size_t()
    ask("cuInit", 0)
    ask("cuDeviceGetCount", ctypes.byref(count))
    if count.value == 0:
        message = "the NVIDIA driver sees no GPU"
        raise OSError(message)
    ask("cuDeviceGet", ctypes.byref(device), 0)
    ask("cuDeviceGetName", name, len(name), device)
    ask("cuDeviceTotalMem_v2", ctypes.byref(total), device)

    def attribute(number: int) -> int:
        ask("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    multiprocessors, kilohertz = attribute(16), attribute(13)
    memory_kilohertz, bus_bits = attribute(36), attribute(37)
    singles_per_double, major, minor = attribute(87), attribute(75), attribute(76)
    singles = multiprocessors * SINGLES.get((major, minor), 128) * 2e3 * kilohertz
    return DeviceInfo(
        "gpu",
        name.value.decode(errors="replace"),
        multiprocessors,
        total.value,
        "",
        bandwidth=2e3 * memory_kilohertz * bus_bits / 8,  # double data rate
        float64_rate=singles / singles_per_double if singles_per_double else 0.0,
    )
