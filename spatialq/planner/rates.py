"""Measured speeds of the kernels, which turn work into seconds.

The figures are in `rates.json`, which `benchmarks/rates.py` writes from measurements of all devices
on one machine. They rank the devices; the log shows how far off they are on another machine.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from spatialq.functions.declaration import Device, Work

SERIAL_SHARE = 0.1
"""Share of a CPU kernel's time on one thread that more threads do not shorten.

Used where `rates.json` has no measured share. `detect_planes` and `pops_features` are 3.4 and 3.2
times as fast on 16 threads as on 2 (10 million points, 9 million cells), for which Amdahl's law
gives shares of 0.10 and 0.12.
"""


@dataclass(frozen=True)
class Rate:
    """Speed of one kernel on one device."""

    steps_per_second: float
    bytes_per_second: float
    """Transfer to and from the device; infinite where there is none."""
    start_seconds: float
    """Time of a call, however small it is."""
    threads: int = 1
    """Number of CPU threads during the measurement."""
    serial_share: float = SERIAL_SHARE
    """Share of the time on one thread that more threads do not shorten."""

    def seconds(self, work: Work, threads: int) -> float:
        """Estimate the time of a call on a number of threads (1 on a GPU).

        The number of threads counts by Amdahl's law: the time of the steps is in proportion to
        ``serial_share + (1 - serial_share) / threads``. More threads than were
        measured are faster, but no number of them by more than the serial part allows.
        """
        transfer = (work.bytes_in + work.bytes_out) / self.bytes_per_second
        steps = work.steps / self.steps_per_second * self._time(threads) / self._time(self.threads)
        return self.start_seconds + transfer + steps

    def _time(self, threads: int) -> float:
        """Time on a number of threads, relative to that on one."""
        return self.serial_share + (1 - self.serial_share) / threads


@cache
def _measured() -> dict[str, dict[str, dict[str, float]]]:
    text = files("spatialq.planner").joinpath("rates.json").read_text(encoding="utf-8")
    rates: dict[str, dict[str, dict[str, float]]] = json.loads(text)["rates"]
    return rates


def rate(function: str, device: Device) -> Rate | None:
    """Look up the measured rate of a kernel; None where there is none."""
    figures = _measured().get(function, {}).get(device)
    if figures is None:
        return None
    return Rate(
        figures["steps_per_second"],
        figures.get("bytes_per_second", float("inf")),
        figures["start_seconds"],
        int(figures.get("threads", 1)),
        figures.get("serial_share", SERIAL_SHARE),
    )
