"""What ran where, why, and how long: the last calls of this process, and what they teach."""

from collections import deque
from collections.abc import Callable
from dataclasses import astuple, dataclass
from datetime import datetime
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
TOLERATED = 2.0
"""Estimates that are off by less are not corrected."""
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
    at, *others = astuple(entry)
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

    It is the median of the last calls, of two at least, so that one call that met a busy machine
    changes nothing; 1 where that is less than a factor of two.
    """
    with _lock:
        known = list(_ratios.get((function, device), ()))
    last = [
        ratio
        for other, ratio in known
        if max(rows, other, 1) <= ALIKE * max(min(rows, other), 1)
    ][-LAST:]  # fmt: skip
    if len(last) < 2:
        return 1.0
    found = median(last)
    if 1 / TOLERATED <= found <= TOLERATED:
        return 1.0
    return min(max(found, 1 / MAX_CORRECTION), MAX_CORRECTION)


def forget() -> None:
    """Forget what was learnt: the rates are others now."""
    with _lock:
        _ratios.clear()
