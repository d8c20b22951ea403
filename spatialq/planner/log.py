"""What ran where, why, and how long: the last calls of this process."""

from collections import deque
from dataclasses import dataclass
from datetime import datetime


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
    seconds: float
    error: str | None


_entries: deque[Entry] = deque(maxlen=1000)


def add(entry: Entry) -> None:
    """Keep an entry; the oldest of a thousand makes room."""
    _entries.append(entry)


def entries() -> list[Entry]:
    """List the entries, oldest first."""
    return list(_entries)
