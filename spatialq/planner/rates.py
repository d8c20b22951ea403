"""How fast each kernel is, as measured: what turns work into seconds.

The figures stand in `rates.json`, written by `benchmarks/rates.py` from measurements of all
devices on one machine. They rank devices; the log shows how far off they are on another machine.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from spatialq.functions.declaration import Device, Work


@dataclass(frozen=True)
class Rate:
    """Speed of one kernel on one device."""

    steps_per_second: float
    bytes_per_second: float
    """Transfer to and from the device; infinite where there is none."""
    start_seconds: float
    """What a call costs however small it is."""
    threads: int = 1
    """Of the processor that it was measured on; fewer are slower in proportion."""

    def seconds(self, work: Work, threads: int) -> float:
        """Estimate the time of a call on so many threads (1 on a GPU)."""
        transfer = (work.bytes_in + work.bytes_out) / self.bytes_per_second
        speed = self.steps_per_second * min(threads, self.threads) / self.threads
        return self.start_seconds + transfer + work.steps / speed


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
    )
