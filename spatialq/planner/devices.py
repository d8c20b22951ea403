"""The devices of this machine. CuPy is not imported for it: the GPU's driver is asked."""

import ctypes
import importlib.util
import os
import platform
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from spatialq.functions.declaration import Device
from spatialq.runtime import budget, cuda, memory, nvml
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
    number: int = 0
    """Of a GPU, among those that the process sees."""
    bus: str = ""
    """PCI address of a GPU."""

    @property
    def room(self) -> int:
        """Bytes of memory that a call may use."""
        return self.memory_bytes if self.free_bytes is None else self.free_bytes


def devices() -> list[DeviceInfo]:
    """List the CPU, and the GPUs or why there is none."""
    return [cpu(), *gpus()]


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


GPU_MEMORY = "SPATIALQ_GPU_MEMORY"
"""Variable of the environment: the most memory of a GPU that a call may use, such as '8GB'."""


def gpu() -> DeviceInfo:
    """Describe the first NVIDIA GPU, or say why there is none to use; see `gpus`."""
    return gpus()[0]


def gpus() -> list[DeviceInfo]:
    """Describe the NVIDIA GPUs that `CUDA_VISIBLE_DEVICES` leaves, in the order of their numbers.

    Returns
    -------
    list of DeviceInfo
        At least one: where there is no GPU to use, one that says why.

    Raises
    ------
    ValueError
        If `SPATIALQ_GPU_MEMORY` is no size.
    """
    given = os.environ.get(GPU_MEMORY)
    most = budget.parse_size(given, GPU_MEMORY) if given else None
    return [each if each.problem else _with_room(each, most) for each in _found_gpus()]


def _with_room(info: DeviceInfo, most: int | None) -> DeviceInfo:
    free = cuda.free_bytes(info.memory_bytes, info.number)
    if free is None:
        free = info.memory_bytes
        if (reported := _reported_free(info.bus, int(4 * time.monotonic()))) is not None:
            free = min(free, reported)
    return replace(info, free_bytes=free if most is None else min(free, most))


@lru_cache(maxsize=64)
def _reported_free(bus: str, moment: int) -> int | None:
    """Ask the driver for the free memory of a GPU once in a moment."""
    del moment
    return nvml.free_bytes(bus)


@cache
def _found_gpus() -> tuple[DeviceInfo, ...]:
    try:
        found = _ask_driver()
    except OSError as error:
        return (DeviceInfo("gpu", "none", 0, 0, str(error)),)
    if importlib.util.find_spec("cupy") is None:
        problem = "CuPy is not installed (pip install 'spatialq[gpu-cuda12]' or [gpu-cuda13])"
        return tuple(replace(each, problem=problem) for each in found)
    return tuple(found)


SINGLES = {(6, 0): 64, (7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
"""Single-precision units of a multiprocessor by compute capability; the others have 128."""


def _ask_driver() -> list[DeviceInfo]:
    """Describe all GPUs by the CUDA driver API, which starts nothing on them.

    Raises
    ------
    OSError
        With the reason, when there is no driver or no device.
    """
    driver, count = _Driver(), ctypes.c_int()
    driver.ask("cuInit", 0)
    driver.ask("cuDeviceGetCount", ctypes.byref(count))
    if count.value == 0:
        message = "the NVIDIA driver sees no GPU"
        raise OSError(message)
    return [driver.describe(number) for number in range(count.value)]


class _Driver:
    """The CUDA driver API."""

    def __init__(self) -> None:
        library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
        try:
            self._functions = ctypes.CDLL(library)
        except OSError:
            message = "no NVIDIA driver on this machine"
            raise OSError(message) from None

    def ask(self, function: str, *arguments: object) -> None:
        """Call a function; raise an OSError if it fails."""
        status = getattr(self._functions, function)(*arguments)
        if status != 0:
            message = f"the NVIDIA driver has no usable GPU ({function} gave error {status})"
            raise OSError(message)

    def describe(self, number: int) -> DeviceInfo:
        """Describe the GPU of a number."""
        device, value, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
        name, bus = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
        self.ask("cuDeviceGet", ctypes.byref(device), number)
        self.ask("cuDeviceGetName", name, len(name), device)
        self.ask("cuDeviceTotalMem_v2", ctypes.byref(total), device)
        self.ask("cuDeviceGetPCIBusId", bus, len(bus), device)

        def attribute(which: int) -> int:
            self.ask("cuDeviceGetAttribute", ctypes.byref(value), which, device)
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
            number=number,
            bus=bus.value.decode(errors="replace"),
        )
