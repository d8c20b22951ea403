"""The choice of a device for one call, with its reason."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from spatialq.errors import DeviceError
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Device, Parameters, Size, Work
from spatialq.planner import devices, process, tiles
from spatialq.planner.estimate import Estimate, estimate
from spatialq.planner.rates import Transport
from spatialq.runtime import cuda

NAMES = "'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'"
"""What a device may be called, in words."""
REQUESTED = re.compile(r"auto|cpu|gpu|gpu:([0-9]{1,4})")
AS_GOOD = 0.5
"""A GPU that is in use already keeps its calls while it has this part of the most free memory that
another has: another one would have to be started."""


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
    """Tiles that it takes the call in."""
    gpus: tuple[int, ...] = ()
    """Numbers of the GPUs that it stands for, which share the tiles."""
    room: int = 0
    """Bytes of memory that a call may use, of each."""

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
    """The CPU, and each GPU alone."""
    tiles: int = 1
    """Tiles that the call runs in."""
    most_tiles: int = 1
    """Tiles that it may be divided into, if memory runs out after all."""
    gpus: tuple[int, ...] = ()
    """Numbers of the GPUs that it runs on."""
    estimate: Estimate | None = None
    """Of the call where it goes."""

    def is_chosen(self, candidate: Candidate) -> bool:
        """Whether the call goes to a candidate, alone or with others."""
        return candidate.device == self.device and {*candidate.gpus} <= {*self.gpus}


def require_device(caller: str, requested: object) -> None:
    """Raise a ValueError if a device cannot be requested by this name."""
    if not isinstance(requested, str) or not REQUESTED.fullmatch(requested):
        message = f"{caller}: device must be {NAMES}, got {requested!r}"
        raise ValueError(message)


def kind_of(requested: str) -> Literal["auto", "cpu", "gpu"]:
    """Give the kind of device that is requested, such as 'gpu' for 'gpu:1'."""
    return "auto" if requested == "auto" else "cpu" if requested == "cpu" else "gpu"


def number_of(requested: str) -> int | None:
    """Give the number of the one GPU that is requested; None for any."""
    found = REQUESTED.fullmatch(requested)
    return int(found[1]) if found and found[1] else None


def plan_call(
    functions: Sequence[Function],
    size: Size,
    options: Parameters,
    requested: str,
    transport: Transport = "arrays",
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
    requested : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
    transport : 'arrays', 'native', 'lists' or 'files'
        How the data comes and goes.

    Raises
    ------
    ValueError
        If a device cannot be requested by this name.
    DeviceError
        If the requested device cannot take the call.
    """
    name = functions[0].name
    require_device(name, requested)
    works = [(each.output.work(size, options), each) for each in functions]
    work, function = max(works, key=lambda pair: pair[0].bytes_out)
    infos = devices.devices()
    cpu, *gpus = [_candidate(function, info, size, options, work, transport) for info in infos]
    here = _requestable(name, requested, size, gpus)
    best = _best(here)
    shared = None
    if number_of(requested) is None and size.device == "cpu" and not best.problem:
        shared = _shared(function, infos[1:], size, options, best, transport)
    chosen, reason = _choose(name, function, size, requested, cpu, shared or best)
    if chosen is not cpu:
        reason = f"{reason}{_in_tiles(chosen, best)}{_which(chosen, here)}"
    most = tiles.most(function, size, options) if chosen is not cpu else 1
    return Plan(
        chosen.device, chosen.seconds, reason, [cpu, *gpus], chosen.tiles, most, chosen.gpus,
        chosen.estimate,
    )  # fmt: skip


def _requestable(
    name: str, requested: str, size: Size, gpus: Sequence[Candidate]
) -> Sequence[Candidate]:
    """Give the GPUs that a call may go to: the one that was asked for, or that has its arrays.

    Raises
    ------
    DeviceError
        If there is no GPU of the number that was asked for.
    """
    number = cuda.numbers()[0] if size.device == "gpu" else number_of(requested)
    if number is None:
        return gpus
    found = [each for each in gpus if number in each.gpus]
    if found:
        return found
    if gpus[0].gpus:
        there = "only gpu:0" if len(gpus) == 1 else f"gpu:0 to gpu:{len(gpus) - 1}"
        message = f"{name}: device '{requested}' cannot be used: there is {there}"
        raise DeviceError(message)
    return gpus


def _best(gpus: Sequence[Candidate]) -> Candidate:
    """Choose a GPU: with the fewest tiles, in use already, or else with the most free memory."""
    able = [each for each in gpus if not each.problem] or gpus
    least = min(each.tiles for each in able)
    able = [each for each in able if each.tiles == least]
    freest = max(able, key=lambda each: each.room)
    used = [
        each
        for each in able
        if each.room >= AS_GOOD * freest.room and process.is_started("gpu", *each.gpus)
    ]
    return max(used, key=lambda each: each.room, default=freest)


def _shared(
    function: Function,
    infos: Sequence[devices.DeviceInfo],
    size: Size,
    options: Parameters,
    alone: Candidate,
    transport: Transport,
) -> Candidate | None:
    """Let several GPUs share the tiles of a call; None if one alone is as fast."""
    able = sorted((each for each in infos if not each.problem), key=lambda each: -each.room)
    best = None
    for count in range(2, len(able) + 1):
        chosen = able[:count]
        fitting = tiles.shared(function, size, options, chosen[-1].room, count)
        if fitting is None:
            continue
        number, work = fitting
        found = replace(
            alone,
            estimate=estimate(function, chosen[0], size, work, transport, tuple(_numbers(chosen))),
            memory_bytes=work.bytes_kernel,
            tiles=number,
            gpus=tuple(_numbers(chosen)),
            room=chosen[-1].room,
        )
        if found.seconds is None or (best or alone).seconds is None:
            best = found if alone.tiles > 1 else best
        elif found.seconds < (best or alone).seconds:
            best = found
    return best


def _numbers(infos: Sequence[devices.DeviceInfo]) -> list[int]:
    return sorted(each.number for each in infos)


def _in_tiles(chosen: Candidate, alone: Candidate) -> str:
    """Say why a call runs in tiles."""
    if chosen.tiles == 1:
        return ""
    why = f"it {alone.doubt}" if alone.doubt else f"{len(chosen.gpus)} GPUs share them"
    return f"; in {chosen.tiles} tiles, as {why}"


def _which(chosen: Candidate, gpus: Sequence[Candidate]) -> str:
    """Say which GPUs were chosen of several, and why."""
    if len(gpus) == 1:
        return ""
    names = [f"gpu:{number}" for number in chosen.gpus]
    if len(names) > 1:
        return f"; on {', '.join(names[:-1])} and {names[-1]}"
    freest = max(gpus, key=lambda each: each.room)
    why = "has the most free memory" if chosen.room == freest.room else "is in use already"
    alone = ", its tiles build on each other" if chosen.tiles > 1 else ""
    return f"; on {names[0]}, which {why}{alone}"


def _choose(
    name: str, function: Function, size: Size, requested: str, cpu: Candidate, gpu: Candidate
) -> tuple[Candidate, str]:
    """Choose the CPU, or the GPU that is best or has the input, with the reason."""
    if size.device == "gpu":
        if gpu.problem:
            message = f"{name}: its input is in the memory of a GPU, but {gpu.problem}"
            raise DeviceError(message)
        return gpu, "its input is in the memory of the GPU"
    kind = kind_of(requested)
    if kind == "gpu" and gpu.problem:
        message = f"{name}: device '{requested}' cannot be used: {gpu.problem}"
        raise DeviceError(message)
    if kind != "auto":
        return gpu if kind == "gpu" else cpu, f"device := '{requested}' was asked for"
    if gpu.problem:
        return cpu, gpu.problem
    if cpu.doubt:
        return gpu, cpu.doubt
    if gpu.seconds is None or cpu.seconds is None:
        return cpu, f"{function.name} was never measured on both"
    chosen, other = (gpu, cpu) if gpu.seconds < cpu.seconds else (cpu, gpu)
    reason = (
        f"about {chosen.seconds:.2g} s, against {other.seconds:.2g} s on the {other.device}"
        f"{_corrections([cpu, gpu])}"
    )
    return chosen, reason


def _candidate(
    function: Function,
    info: devices.DeviceInfo,
    size: Size,
    options: Parameters,
    work: Work,
    transport: Transport,
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
    gpus = (info.number,) if info.device == "gpu" and info.memory_bytes else ()
    seconds = estimate(function, info, size, work, transport, gpus)
    return Candidate(
        info.device, seconds, work.bytes_kernel, problem, doubt, count, gpus, info.room
    )


def _corrections(candidates: Sequence[Candidate]) -> str:
    """Say which estimates the log has corrected."""
    corrected = [
        f"{each.device} x {each.estimate.correction:.2g}"
        for each in candidates
        if each.estimate is not None and each.estimate.correction != 1
    ]
    return f" (corrected by earlier calls: {', '.join(corrected)})" if corrected else ""


def _problem(function: Function, info: devices.DeviceInfo, options: Parameters) -> str:
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
