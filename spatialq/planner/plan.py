"""The choice of a device for one call, with its reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from spatialq.errors import DeviceError
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Device, Size, Work
from spatialq.planner import devices, tiles
from spatialq.planner.estimate import Estimate, estimate
from spatialq.planner.rates import Road

Requested = Literal["auto", "cpu", "gpu"]


@dataclass(frozen=True)
class Candidate:
    """One device that a call could go to."""

    device: Device
    estimate: Estimate | None
    """None where the kernel was never measured."""
    memory_bytes: int
    problem: str
    """Why this device cannot take the call; empty when it can."""
    doubt: str = ""
    """Why it may turn out that it cannot, after all."""
    tiles: int = 1
    """Tiles that it takes the call in, one after the other."""

    @property
    def seconds(self) -> float | None:
        """Estimate of all that the caller waits for."""
        return None if self.estimate is None else self.estimate.total


@dataclass(frozen=True)
class Plan:
    """Where a call goes, and why."""

    device: Device
    seconds: float | None
    """Estimate of all that the caller waits for."""
    reason: str
    candidates: Sequence[Candidate]
    tiles: int = 1
    """Tiles that the call runs in, one after the other."""
    most_tiles: int = 1
    """Tiles that it may be divided into, if memory runs out after all."""

    @property
    def estimate(self) -> Estimate | None:
        """Estimate for the device that was chosen."""
        return self.estimate_on(self.device)

    def estimate_on(self, device: str) -> Estimate | None:
        """Estimate for a device, such as the one that a call went to after all."""
        return next((each.estimate for each in self.candidates if each.device == device), None)


def require_device(caller: str, requested: Any) -> None:
    """Raise a ValueError if a device cannot be requested by this name."""
    if requested not in get_args(Requested):
        message = f"{caller}: device must be 'auto', 'cpu' or 'gpu', got {requested!r}"
        raise ValueError(message)


def plan_call(
    functions: Sequence[Function], size: Size, options: Any, requested: str, road: Road = "arrays"
) -> Plan:
    """Choose the device for a call.

    Of several outputs of one search the one that gives the most bytes is estimated; the first
    names the call in errors.

    Parameters
    ----------
    functions : sequence of Function
    size : Size
        What is known of the input.
    options : Parameters
    requested : 'auto', 'cpu' or 'gpu'
    road : 'arrays', 'native', 'lists' or 'files'
        How the data comes and goes.

    Raises
    ------
    ValueError
        If the requested device is none of 'auto', 'cpu', 'gpu'.
    DeviceError
        If the requested device cannot take the call.
    """
    name = functions[0].name
    require_device(name, requested)
    works = [(each.output.work(size, options), each) for each in functions]
    work, function = max(works, key=lambda pair: pair[0].bytes_out)
    candidates = [
        _candidate(function, info, size, options, work, road) for info in devices.devices()
    ]
    chosen, reason = _choose(name, function, requested, candidates)
    if chosen.tiles > 1:
        reason = f"{reason}; in {chosen.tiles} tiles, as it {chosen.doubt}"
    most = tiles.most(function, size, options) if chosen.device == "gpu" else 1
    return Plan(chosen.device, chosen.seconds, reason, candidates, chosen.tiles, most)


def _choose(
    name: str, function: Function, requested: str, candidates: Sequence[Candidate]
) -> tuple[Candidate, str]:
    """Choose a candidate, with the reason."""
    by_device = {candidate.device: candidate for candidate in candidates}
    cpu, gpu = by_device["cpu"], by_device["gpu"]
    if requested == "gpu" and gpu.problem:
        message = f"{name}: device 'gpu' cannot be used: {gpu.problem}"
        raise DeviceError(message)
    if requested != "auto":
        return gpu if requested == "gpu" else cpu, f"device := '{requested}' was asked for"
    if gpu.problem:
        return cpu, gpu.problem
    if cpu.doubt:
        return gpu, cpu.doubt
    if gpu.seconds is None or cpu.seconds is None:
        return cpu, f"{function.name} was never measured on both"
    chosen, other = (gpu, cpu) if gpu.seconds < cpu.seconds else (cpu, gpu)
    reason = (
        f"about {chosen.seconds:.2g} s, against {other.seconds:.2g} s on the {other.device}"
        f"{_corrections(candidates)}"
    )
    return chosen, reason


def _candidate(
    function: Function,
    info: devices.DeviceInfo,
    size: Size,
    options: Any,
    work: Work,
    road: Road,
) -> Candidate:
    """Look at a device: what a call costs there, as a whole or in tiles, or why it cannot be."""
    problem, count = _problem(function, info, options), 1
    doubt = "" if problem else _doubt(info, work.bytes_kernel)
    if info.device == "gpu" and doubt:
        fitting = tiles.fitting(function, size, options, info.room)
        if fitting is None:
            problem, doubt = doubt, ""
        else:
            count, work = fitting
    seconds = estimate(function, info, size, work, road)
    return Candidate(info.device, seconds, work.bytes_kernel, problem, doubt, count)


def _corrections(candidates: Sequence[Candidate]) -> str:
    """Say which estimates the log has corrected."""
    corrected = [
        f"{each.device} x {each.estimate.correction:.2g}"
        for each in candidates
        if each.estimate is not None and each.estimate.correction != 1
    ]
    return f" (corrected by earlier calls: {', '.join(corrected)})" if corrected else ""


def _problem(function: Function, info: devices.DeviceInfo, options: Any) -> str:
    if not function.has_kernel(info.device):
        return f"{function.name} has no {info.device} kernel"
    if info.device == "gpu" and (option := function.declaration.cpu_only(options)):
        return f"{function.name} has no gpu kernel for {option}"
    return info.problem


def _doubt(info: devices.DeviceInfo, needed: int) -> str:
    """Say that a device lacks memory: what fits on neither runs on the host, in spite of that."""
    if info.device == "gpu" and needed > info.room:
        return f"needs {_in_words(needed)}, the GPU has {_in_words(info.room)} free"
    if info.device == "cpu" and 0 < info.room < needed:
        return f"needs {_in_words(needed)}, the host has {_in_words(info.room)} free"
    return ""


def _in_words(size: int) -> str:
    unit, name = (2**30, "GiB") if size >= 2**29 else (2**20, "MiB")
    return f"{size / unit:.1f} {name}"
