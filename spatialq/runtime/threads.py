"""How many threads a CPU kernel may use, and how it divides its work among them.

Kernels run Numba code that holds no lock in plain Python threads. Numba's own parallel layers
are not used: DuckDB calls a function from several threads at once, which one of them answers by
aborting the process, and the others need a library that not every machine has.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

TURNS = 16
"""Parts of uneven work for each thread."""
STOPPED = Event()
"""Set when the process is to end: no more parts are begun."""


def n_threads() -> int:
    """Threads for one call: the cores this process may use, or `SPATIALQ_THREADS`."""
    wish = os.environ.get("SPATIALQ_THREADS", "")
    if wish.isdecimal() and int(wish) > 0:
        return int(wish)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spans(size: int, parts: int) -> list[tuple[int, int]]:
    """Divide range(size) into `parts` runs of nearly equal length."""
    return [(i * size // parts, (i + 1) * size // parts) for i in range(parts)]


def in_threads(work: Callable[[tuple[int, int]], Any], size: int) -> None:
    """Call work with runs of range(size), in several threads; a run may take long, or not.

    Raises
    ------
    KeyboardInterrupt
        If the process is to end.
    """
    threads = n_threads()

    def part(span: tuple[int, int]) -> None:
        if STOPPED.is_set():  # DuckDB calls from threads that a signal does not reach
            raise KeyboardInterrupt
        work(span)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(part, spans(size, min(size, TURNS * threads))))
