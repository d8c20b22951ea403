"""The choice of a device for one call, with its reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from spatialq.errors import DeviceError
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Device, Work
from spatialq.planner import devices, rates

Requested = Literal["auto", "cpu", "gpu"]


@dataclass(frozen=True)
class Candidate:
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
    candidates: Sequence[Candidate]


def plan_call(functions: Sequence[Function], rows: int, options: Any, requested: str) -> Plan:
    """Choose the device for a call of `rows` rows.

    Of several outputs of one search the one that gives the most bytes is estimated; the first
    names the call in errors.

    Raises
    ------
    ValueError
        If the requested device is none of 'auto', 'cpu', 'gpu'.
    DeviceError
        If the requested device cannot take the call.
    """
    name = functions[0].name
    if requested not in get_args(Requested):
        message = f"{name}: device must be 'auto', 'cpu' or 'gpu', got {requested!r}"
        raise ValueError(message)
    works = [(each.output.work(rows, options), each) for each in functions]
    work, function = max(works, key=lambda pair: pair[0].bytes_out)
    candidates = [
        Candidate(
            info.device,
            _seconds(function, info, work),
            work.bytes_kernel,
            _problem(function, info, work.bytes_kernel, options),
        )
        for info in devices.devices()
    ]
    by_device = {candidate.device: candidate for candidate in candidates}
    cpu, gpu = by_device["cpu"], by_device["gpu"]
    if requested == "gpu" and gpu.problem:
        message = f"{name}: device 'gpu' cannot be used: {gpu.problem}"
        raise DeviceError(message)
    if requested != "auto":
        chosen = gpu if requested == "gpu" else cpu
        reason = f"device := '{requested}' was asked for"
        return Plan(chosen.device, chosen.seconds, reason, candidates)
    if gpu.problem:
        return Plan("cpu", cpu.seconds, gpu.problem, candidates)
    if gpu.seconds is None or cpu.seconds is None:
        return Plan("cpu", cpu.seconds, f"{function.name} was never measured on both", candidates)
    chosen, other = (gpu, cpu) if gpu.seconds < cpu.seconds else (cpu, gpu)
    reason = f"about {chosen.seconds:.2g} s, against {other.seconds:.2g} s on the {other.device}"
    return Plan(chosen.device, chosen.seconds, reason, candidates)


def _seconds(function: Function, info: devices.DeviceInfo, work: Work) -> float | None:
    rate = rates.rate(function.name, info.device)
    if rate is None:
        return None
    return rate.seconds(work, info.cores if info.device == "cpu" else 1)


def _problem(function: Function, info: devices.DeviceInfo, needed: int, options: Any) -> str:
    if not function.has_kernel(info.device):
        return f"{function.name} has no {info.device} kernel"
    if info.device == "gpu" and (option := function.declaration.cpu_only(options)):
        return f"{function.name} has no gpu kernel for {option}"
    if info.problem:
        return info.problem
    if info.device == "gpu" and needed > info.memory_bytes:
        return f"needs {needed / 2**30:.1f} GiB, the GPU has {info.memory_bytes / 2**30:.1f} GiB"
    return ""
