"""The folder of `spatialq view` in the user's cache: tables and tiles, and which of them go."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spatialq.runtime import user_cache
from spatialq.runtime.temporary import temporary_folder

try:
    import fcntl
except ImportError:  # Windows, where nothing is removed
    fcntl = None  # type: ignore[assignment]

LOCK = "in_use"
DAY = 86_400.0
KEPT = 30 * DAY
"""Seconds after which a folder that nobody opened goes."""
FREE = 0.1
"""Share of the disk that is to be free: below, folders that nobody opened for a day go, too."""


def digest(*said: Any) -> str:
    """Make a name of whatever decides what is in a folder."""
    text = json.dumps([version("spatialq"), *said], default=str)
    return sha256(text.encode()).hexdigest()[:24]


@contextmanager
def cache_folder() -> Iterator[Path]:
    """Give the folder for what can be made again; a temporary one where the user has none.

    Whoever opens it while nobody else has it open removes what is no longer used.
    """
    own = user_cache.folder()
    if own is None:
        with temporary_folder("spatialq_view_") as folder:
            yield folder
        return
    folder = own / "view"
    folder.mkdir(exist_ok=True)
    with (folder / LOCK).open("w", encoding="ascii") as lock:
        if fcntl is not None:
            with suppress(BlockingIOError):  # others have it open, and perhaps what would go
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _clean(folder, time.time())
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield folder


def is_there(folder: Path) -> bool:
    """Whether a folder has been made; it counts as opened now."""
    if not folder.is_dir():
        return False
    os.utime(folder)
    return True


def _clean(folder: Path, now: float) -> None:
    """Remove folders that nobody opened for long, the longest unused first."""
    made = [each for each in folder.iterdir() if each.is_dir()]
    for unused, each in sorted(((now - each.stat().st_mtime, each) for each in made), reverse=True):
        said = shutil.disk_usage(folder)
        if unused > KEPT or (unused > DAY and said.free < FREE * said.total):
            shutil.rmtree(each, ignore_errors=True)
