"""A limit of resident memory for mapped files, kept by a loop that needs no GIL.

The loop is compiled, so that it looks at the resident memory as often as it should whatever Python
does meanwhile. It has a table of mappings, which threads change under a mutex; the loop holds it
while it takes pages out, so that a mapping that was removed from the table may be ended: nobody
takes out any more what others have at its addresses later.
"""

import mmap
from typing import Any

import numpy as np
from numba import types
from numba.core.types import ExternalFunction

from spatialq.runtime.compile_cache import njit

MAX_MAPPINGS = 1 << 16
"""Mappings in the table: more than Linux gives a process by default."""
N, OTHERS, IS_RUNNING, IS_ENDING, MUTEX, BUFFER, STATE = 0, 1, 2, 3, 8, 24, 64
"""Offsets into the state array: numbers, the mutex of 40 or 48 bytes, room for a line of text."""
ADDRESS, SIZE, BUDGET = 0, 1, 2
"""Columns of the table."""
WANTED, THERE = 1, 2
"""Of the loop, as IS_RUNNING has it: somebody starts it, and it looks."""
PAGE, DONTNEED = mmap.PAGESIZE, getattr(mmap, "MADV_DONTNEED", 0)

# functions of the C library, by their names, so that compiled code can be kept
_lock = ExternalFunction("pthread_mutex_lock", types.int32(types.uintp))
_unlock = ExternalFunction("pthread_mutex_unlock", types.int32(types.uintp))
_advise = ExternalFunction("madvise", types.int32(types.uintp, types.uintp, types.int32))
_sleep = ExternalFunction("usleep", types.int32(types.uint32))
_read = ExternalFunction("pread", types.intp(types.int32, types.uintp, types.uintp, types.intp))


def new_state() -> Any:
    """Make the numbers and the mutex, as they are before the first mapping."""
    return np.zeros(STATE, np.int64)


def new_table() -> Any:
    """Make a table without mappings; it takes memory as it fills."""
    return np.zeros((MAX_MAPPINGS, 3), np.int64)


@njit(cache=True, nogil=True)
def _mutex(state: Any) -> Any:
    return types.uintp(state.ctypes.data + state.itemsize * MUTEX)


@njit(cache=True, nogil=True)
def _resident(state: Any, statm: int) -> tuple[int, int]:
    """Read the resident bytes of this process, and those of files among them.

    The text is "all resident of_files ...", in pages; (0, 0) where it cannot be read.
    """
    text = state[BUFFER:].view(np.uint8)
    size = _read(
        types.int32(statm), types.uintp(text.ctypes.data), types.uintp(text.size), types.intp(0)
    )
    k, number, resident = 0, 0, 0
    for i in range(size):
        if text[i] != ord(" "):
            number = 10 * number + text[i] - ord("0")
            continue
        k += 1
        if k == 2:
            resident = number
        elif k == 3:
            return resident * PAGE, number * PAGE
        number = 0
    return 0, 0


@njit(cache=True, nogil=True)
def add(state: Any, table: Any, statm: int, address: int, size: int, budget: int) -> bool:
    """Put a mapping into the table; one beyond `MAX_MAPPINGS` is never taken out.

    Returns
    -------
    bool
        Whether the caller has to start the loop.
    """
    _lock(_mutex(state))
    n = state[N]
    if n == 0:
        state[OTHERS] = _resident(state, statm)[1]
    if n < MAX_MAPPINGS:
        table[n, ADDRESS], table[n, SIZE], table[n, BUDGET] = address, size, budget
        state[N] = n + 1
    starts = state[IS_RUNNING] == 0 and state[IS_ENDING] == 0
    if starts:
        state[IS_RUNNING] = WANTED
    _unlock(_mutex(state))
    return bool(starts)


@njit(cache=True, nogil=True)
def remove(state: Any, table: Any, address: int) -> None:
    """Take a mapping out of the table; only then may it be ended."""
    _lock(_mutex(state))
    last = state[N] - 1
    for i in range(last + 1):
        if table[i, ADDRESS] == address:
            table[i] = table[last]
            state[N] = last
            break
    _unlock(_mutex(state))


@njit(cache=True, nogil=True)
def _look(state: Any, table: Any, statm: int, share: float, least: int) -> None:
    """Do as `look`, with the mutex."""
    n = state[N]
    if n == 0:
        return
    resident, of_files = _resident(state, statm)
    mapped = max(of_files - state[OTHERS], 0)
    allowed = share * table[:n, BUDGET].min() - (resident - mapped)
    if mapped <= max(allowed, least):
        return
    for i in range(n):
        _advise(types.uintp(table[i, ADDRESS]), types.uintp(table[i, SIZE]), types.int32(DONTNEED))
    state[OTHERS] = _resident(state, statm)[1]  # libraries may have been loaded since


@njit(cache=True, nogil=True)
def look(state: Any, table: Any, statm: int, share: float, least: int) -> None:
    """Take the pages of all mappings out if there are too many.

    Parameters
    ----------
    state, table : array
    statm : int
        The open file /proc/self/statm.
    share : float
        Part of the least budget from which on there are too many.
    least : int
        Bytes of mappings that may be resident, however much the process has otherwise.
    """
    _lock(_mutex(state))
    _look(state, table, statm, share, least)
    _unlock(_mutex(state))


@njit(cache=True, nogil=True)
def wait(state: Any) -> None:
    """Wait until the loop looks: its thread needs the GIL before, and the caller may keep it."""
    while state[IS_RUNNING] == WANTED:
        _sleep(types.uint32(50))


@njit(cache=True, nogil=True)
def watch(state: Any, table: Any, statm: int, share: float, least: int, interval: int) -> None:
    """Look again and again, as long as there are mappings and the process does not end.

    Parameters
    ----------
    state, table, statm, share, least
        As for `look`.
    interval : int
        Microseconds from one look to the next.
    """
    while True:
        _lock(_mutex(state))
        is_over = state[N] == 0 or state[IS_ENDING] != 0
        state[IS_RUNNING] = 0 if is_over else THERE
        if is_over:
            _unlock(_mutex(state))
            return
        _look(state, table, statm, share, least)
        _unlock(_mutex(state))
        _sleep(types.uint32(interval))
