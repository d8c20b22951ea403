"""The threads of CPU kernels, and the division of work among them.

Kernels run Numba code that releases the GIL in plain Python threads. Numba's own parallel layers
are not used: DuckDB calls a function from several threads at once, on which one of these layers
aborts the process, and the others need a library that is not installed on every machine.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

CHUNKS_PER_THREAD = 16
"""Chunks per thread, so that uneven work is distributed evenly."""
STOPPED = Event()
"""Set when the process is to end: no more chunks are started."""


def n_threads() -> int:
    """Threads for one call: the cores that this process may use, or `SPATIALQ_THREADS`."""
    requested = os.environ.get("SPATIALQ_THREADS", "")
    if requested.isdecimal() and int(requested) > 0:
        return int(requested)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spans(size: int, parts: int) -> list[tuple[int, int]]:
    """Divide range(size) into `parts` runs of nearly equal length."""
    return [(i * size // parts, (i + 1) * size // parts) for i in range(parts)]


def in_threads(work: Callable[[tuple[int, int]], Any], size: int) -> None:
    """Call work with chunks of range(size), in several threads; chunks may take unequal time.

    Raises
    ------
    KeyboardInterrupt
        If the process is to end.
    """
    threads = n_threads()

    def run(span: tuple[int, int]) -> None:
        if STOPPED.is_set():  # signals do not reach the threads of DuckDB
            raise KeyboardInterrupt
        work(span)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, spans(size, min(size, CHUNKS_PER_THREAD * threads))))
