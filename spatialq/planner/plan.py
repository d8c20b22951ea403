"""The choice of a device for one call, with its reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from spatialq.errors import DeviceError
from spatialq.functions.declaration import Device, Udf, Work
from spatialq.planner import devices, rates

Wish = Literal["auto", "cpu", "gpu"]


@dataclass(frozen=True)
class Option:
    """One device that a call could go to."""

    device: Device
    seconds: float | None
    """Estimate; None where the kernel was never measured."""
    memory_bytes: int
    problem: str
    """Why this device cannot take the call; empty when it can."""


@dataclass(frozen=True)
class Plan:
    """Where a call goes, and why."""

    device: Device
    seconds: float | None
    reason: str
    options: Sequence[Option]


def plan(udf: Udf, rows: int, options: Any, wish: str) -> Plan:
    """Choose the device for a call of `rows` rows.

    Raises
    ------
    ValueError
        If the wish is none of 'auto', 'cpu', 'gpu'.
    DeviceError
        If the device that was wished for cannot take the call.
    """
    if wish not in get_args(Wish):
        message = f"{udf.name}: device must be 'auto', 'cpu' or 'gpu', got {wish!r}"
        raise ValueError(message)
    work = udf.work(rows, options)
    candidates = [
        Option(
            info.device,
            _seconds(udf, info, work),
            work.bytes_kernel,
            _problem(udf, info, work.bytes_kernel, options),
        )
        for info in devices.devices()
    ]
    by_device = {option.device: option for option in candidates}
    cpu, gpu = by_device["cpu"], by_device["gpu"]
    if wish == "gpu" and gpu.problem:
        message = f"{udf.name}: device 'gpu' cannot be used: {gpu.problem}"
        raise DeviceError(message)
    if wish != "auto":
        chosen = by_device["gpu" if wish == "gpu" else "cpu"]
        return Plan(chosen.device, chosen.seconds, f"device := '{wish}' was asked for", candidates)
    if gpu.problem:
        return Plan("cpu", cpu.seconds, gpu.problem, candidates)
    if gpu.seconds is None or cpu.seconds is None:
        return Plan("cpu", cpu.seconds, f"{udf.name} was never measured on both", candidates)
    chosen, other = (gpu, cpu) if gpu.seconds < cpu.seconds else (cpu, gpu)
    reason = f"about {chosen.seconds:.2g} s, against {other.seconds:.2g} s on the {other.device}"
    return Plan(chosen.device, chosen.seconds, reason, candidates)


def _seconds(udf: Udf, info: devices.DeviceInfo, work: Work) -> float | None:
    rate = rates.rate(udf.name, info.device)
    if rate is None:
        return None
    return rate.seconds(work, info.cores if info.device == "cpu" else 1)


def _problem(udf: Udf, info: devices.DeviceInfo, needed: int, options: Any) -> str:
    if not udf.has_kernel(info.device):
        return f"{udf.name} has no {info.device} kernel"
    if info.device == "gpu" and (option := udf.cpu_only(options)):
        return f"{udf.name} has no gpu kernel for {option}"
    if info.problem:
        return info.problem
    if info.device == "gpu" and needed > info.memory_bytes:
        return f"needs {needed / 2**30:.1f} GiB, the GPU has {info.memory_bytes / 2**30:.1f} GiB"
    return ""
