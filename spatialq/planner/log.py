"""The log of this process's last calls, and the corrections of estimates that follow from it."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from math import exp, log
from statistics import median
from typing import Any

from spatialq.runtime import forks


@dataclass(frozen=True)
class Entry:
    """One call of a kernel."""

    at: datetime
    """UTC."""
    function: str
    rows: int
    device: str
    reason: str
    estimated_seconds: float | None
    """Of what `seconds` measures."""
    seconds: float
    """From arrays to arrays, transfers to a GPU included."""
    error: str | None
    transport: str = "arrays"
    """How the data came and went."""
    transport_seconds: float | None = None
    """Estimate of what the transport added, before and after the kernel."""


CALLS_KEPT = 1000
"""Calls that a log keeps."""
LAST = 5
"""Calls that a correction is the median of."""
ALIKE = 10.0
"""Calls of up to so many times as many rows teach something; errors of small calls are others."""
TOLERATED = 1.25
"""Functions that are off by less, besides the machine, are not corrected for themselves."""
MAX_CORRECTION = 20.0
"""Largest correction, and its inverse the smallest."""

_entries: deque[Entry] = deque(maxlen=CALLS_KEPT)
_ratios: dict[tuple[str, str], deque[tuple[int, float]]] = {}
_listeners: list[Callable[[Entry], object]] = []
_lock = forks.lock()


def add(entry: Entry) -> None:
    """Keep an entry; the oldest of a thousand makes room."""
    with _lock:
        _entries.append(entry)
    for listener in _listeners:
        listener(entry)


def on_entry(listener: Callable[[Entry], object]) -> None:
    """Have something called with each entry, in the thread of the call."""
    _listeners.append(listener)


def values(entry: Entry) -> tuple[Any, ...]:
    """Give the fields of an entry as `spatialq_log()` has them: a time without a zone."""
    at, *others = vars(entry).values()  # without copies, as there is one for each small call
    return at.replace(tzinfo=None), *others  # DuckDB needs pytz for zones


def entries() -> list[Entry]:
    """List the entries, oldest first."""
    with _lock:
        return list(_entries)


def learn(function: str, device: str, rows: int, ratio: float) -> None:
    """Remember how many times as long as the rates say a call took that had nothing to load."""
    with _lock:
        _ratios.setdefault((function, device), deque(maxlen=8 * LAST)).append((rows, ratio))


def correction(function: str, device: str, rows: int) -> float:
    """Give the factor by which the rates are off here, for calls of about so many rows.

    It is the median of the last calls of the function, of two at least, so that one call that met a
    busy machine changes nothing. Where there are none, or where that is about the factor of the
    machine, it is the latter.
    """
    with _lock:
        known = list(_ratios.get((function, device), ()))
    last = [
        ratio
        for other, ratio in known
        if max(rows, other, 1) <= ALIKE * max(min(rows, other), 1)
    ][-LAST:]  # fmt: skip
    common = machine(device)
    if len(last) < 2:
        return common
    found = median(last)
    if 1 / TOLERATED <= found / common <= TOLERATED:
        return common
    return _bounded(found)


def machine(device: str) -> float:
    """Give the factor by which the rates of all functions of a device are off here.

    It is the median of the functions that were called twice at least and of one that is not off,
    so that a single function counts half.
    """
    with _lock:
        known = [
            [ratio for _, ratio in calls][-LAST:]
            for (_, other), calls in _ratios.items()
            if other == device and len(calls) >= 2
        ]
    return _bounded(exp(median([0.0, *(log(median(ratios)) for ratios in known)])))


def _bounded(factor: float) -> float:
    return min(max(factor, 1 / MAX_CORRECTION), MAX_CORRECTION)


def forget() -> None:
    """Forget what was learnt: the rates are others now."""
    with _lock:
        _ratios.clear()
