"""Forks of the process: what would hang in one, which has its parent's memory but not its threads.

Some libraries start threads of their own once, and wait for them for ever where a fork has lost
them. A lock that another thread held at the fork is never given back.
"""

import os
import sys
import threading
import weakref
from typing import Any

STARTED_BY = {
    "lazrs": ("laspy",),
    "polars": ("polars",),
    "obstore": ("obstore",),
    "rasterio": (),
}
"""Libraries, and the modules by which a program may have started their threads without us."""

_started: set[str] = set()
_lost: set[str] = set()
_locks: "weakref.WeakSet[Any]" = weakref.WeakSet()


def lock() -> threading.Lock:
    """Make a lock of a module, which is free in a fork whichever thread held it."""
    made = threading.Lock()
    _locks.add(made)
    return made


def rlock() -> Any:
    """Make a lock as `lock` does, which its holder may take again."""
    made = threading.RLock()
    _locks.add(made)
    return made


def may_use_threads(library: str) -> bool:
    """Whether a call may be made that uses the threads of a library, and starts them at first.

    Parameters
    ----------
    library : str
        One of `STARTED_BY`.
    """
    if library in _lost:
        return False
    _started.add(library)
    return True


def _forked() -> None:
    imported = (
        name for name, modules in STARTED_BY.items() if any(each in sys.modules for each in modules)
    )
    _lost.update(_started, imported)
    for each in _locks:
        each._at_fork_reinit()  # as the standard library does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
