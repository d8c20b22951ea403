"""Measured speeds, which turn the work of a call into seconds.

`rates.json` has those of one machine (`benchmarks/rates.py`), scaled here to what is known of
another GPU; `spatialq calibrate` measures those of the machine itself, see `calibration.py`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from spatialq.functions.declaration import Device, Work
from spatialq.planner import calibration, devices
from spatialq.runtime import forks

Transport = Literal["arrays", "native", "lists", "files"]
"""The way the data comes and goes: arrays of Python (`spatialq.run`), the extension of DuckDB,
lists of DuckDB, or files that a function reads itself."""

TRANSPORTS: tuple[Transport, ...] = get_args(Transport)
PAGE_LOCKED: tuple[Transport, ...] = ("native",)
"""Transports whose columns lie in page-locked memory where a GPU is used."""

FLOAT64_SHARE = 0.5
"""Share of a GPU kernel's time that goes with the rate of double precision; the rest goes with the
bandwidth of its memory. Kernels are of both kinds, and most of them are some of each."""


@dataclass(frozen=True)
class Step:
    """Seconds for one iteration of a loop."""

    serial: float
    """What more threads do not shorten."""
    parallel: float = 0.0
    """What they share, on one thread."""

    def seconds(self, threads: int) -> float:
        """Give the time on a number of threads."""
        return self.serial + self.parallel / threads


@dataclass(frozen=True)
class Rate:
    """Speed of one kernel on one device."""

    start: float
    """Seconds of a call, however small it is."""
    steps: Mapping[str, Step]
    """For each of the names in `Work.steps`."""
    load: float = 0.0
    """Seconds that the first call in a process takes longer: compiled code is read from disk."""

    def seconds(self, work: Work, threads: int) -> float:
        """Give the time of a call on a number of threads (1 for a GPU), in memory and loaded.

        Raises
        ------
        KeyError
            If a loop was never measured.
        """
        loops = work.steps.items()
        return self.start + sum(n * self.steps[name].seconds(threads) for name, n in loops)

    def scaled(self, factor: float) -> "Rate":
        """Give the rate of a device on which loops take so many times as long."""
        steps = {
            name: Step(factor * each.serial, factor * each.parallel)
            for name, each in self.steps.items()
        }
        return replace(self, steps=steps)


@dataclass(frozen=True)
class TransportRate:
    """Speed of one way in and out."""

    start: float
    """Seconds of a call."""
    byte_in: float
    byte_out: float

    def seconds(self, work: Work) -> float:
        """Give the time that the transport adds to a call."""
        return self.start + work.bytes_in * self.byte_in + work.bytes_out * self.byte_out


@dataclass(frozen=True)
class Rates:
    """All measured speeds of a machine."""

    about: str
    """Where they were measured, in words."""
    start: Mapping[str, float]
    """Device -> seconds to start it in a process: imports, and the context of a GPU."""
    transfer: Mapping[str, float]
    """Seconds a byte to a GPU, 'pageable' and 'page-locked', and back: 'download'."""
    transports: Mapping[str, TransportRate]
    kernels: Mapping[str, Mapping[str, Rate]]
    """Function -> device -> rate."""
    gpu: Mapping[str, float] = field(default_factory=dict)
    """`bandwidth` and `float64_rate` of the GPU."""

    def rate(self, function: str, device: Device) -> Rate | None:
        """Look up the rate of a kernel; None where there is none."""
        return self.kernels.get(function, {}).get(device)

    def on(self, gpu: devices.DeviceInfo) -> "Rates":
        """Scale the figures of the GPU's kernels to another GPU, as far as that is known."""
        ratios = [
            self.gpu[name] / there if there and name in self.gpu else 1.0
            for name, there in (
                ("float64_rate", gpu.float64_rate), ("bandwidth", gpu.bandwidth)
            )
        ]  # fmt: skip
        factor = FLOAT64_SHARE * ratios[0] + (1 - FLOAT64_SHARE) * ratios[1]
        kernels = {
            function: {
                device: rate.scaled(factor) if device == "gpu" else rate
                for device, rate in rates.items()
            }
            for function, rates in self.kernels.items()
        }
        return replace(self, kernels=kernels)

    def as_json(self) -> dict[str, Any]:
        """Give what `from_json` takes."""
        kernels = {
            function: {
                device: {
                    "start": rate.start,
                    "load": rate.load,
                    "steps": {name: [s.serial, s.parallel] for name, s in rate.steps.items()},
                }
                for device, rate in rates.items()
            }
            for function, rates in self.kernels.items()
        }
        return {
            "about": self.about,
            "gpu": dict(self.gpu),
            "start": dict(self.start),
            "transfer": dict(self.transfer),
            "transports": {name: vars(transport) for name, transport in self.transports.items()},
            "kernels": kernels,
        }


def from_json(found: Mapping[str, Any]) -> Rates:
    """Read figures.

    Raises
    ------
    KeyError, TypeError, ValueError
        If something is missing, or no number.
    """
    kernels = {
        function: {
            device: Rate(
                _seconds(each["start"]),
                {name: Step(*map(_seconds, pair)) for name, pair in each["steps"].items()},
                _seconds(each["load"]),
            )
            for device, each in rates.items()
        }
        for function, rates in found["kernels"].items()
    }
    return Rates(
        str(found["about"]),
        {device: _seconds(found["start"][device]) for device in get_args(Device)},
        {way: _seconds(each) for way, each in found["transfer"].items()},
        {
            transport: TransportRate(
                *(
                    _seconds(found["transports"][transport][n])
                    for n in TransportRate.__annotations__
                )
            )
            for transport in TRANSPORTS
        },
        kernels,
        {name: float(value) for name, value in found["gpu"].items()},
    )


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not 0 <= seconds < 1e9:
        message = f"a time must be >= 0 and finite, got {seconds}"
        raise ValueError(message)
    return seconds


@cache
def shipped() -> Rates:
    """Give the figures of the package, of the machine on which they were measured."""
    text = files("spatialq.planner").joinpath("rates.json").read_text(encoding="utf-8")
    return from_json(json.loads(text))


_current: Rates | None = None
_lock = forks.lock()


def current() -> Rates:
    """Give the figures of this machine if it was calibrated, else those of the package."""
    global _current
    with _lock:
        if _current is None:
            kept = calibration.load(from_json)
            _current = shipped().on(devices.gpu()) if kept is None else kept
        return _current


def calibrated(rates: Rates) -> None:
    """Use other figures from now on."""
    global _current
    with _lock:
        _current = rates


def rate(function: str, device: Device) -> Rate | None:
    """Look up the rate of a kernel on this machine; None where it was never measured."""
    return current().rate(function, device)
