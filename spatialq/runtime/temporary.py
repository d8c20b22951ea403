"""Temporary folders that the next process removes, where the one that made them was killed."""

import contextlib
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

LOCK = "owner"
"""The file that the process of a folder keeps locked, with the name of the running system."""


@contextlib.contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Make a folder that is removed at the end, and remove those that nobody can remove any more.

    Parameters
    ----------
    prefix : str
        How the names of such folders begin, "spatialq_ifc_".
    parent : Path, optional
        Where to make it, by default where temporary files go.
    """
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    with contextlib.suppress(OSError):  # the folder of somebody else, who may not be listed
        _remove_abandoned(prefix, parent)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as name, _locked(Path(name)):
        yield Path(name)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which the system gives up when the process ends, however."""
    new = folder / f"{LOCK}.new"
    with new.open("w", encoding="utf-8") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        file.write(_system())
        file.flush()
        new.rename(folder / LOCK)  # nobody sees it without its lock
        yield


def _remove_abandoned(prefix: str, parent: Path) -> None:
    """Remove folders whose owner is dead: of this user, made on this running system.

    A lock tells that, also between containers, which do not see each other's processes. Another
    system may have the same folder, but not the same locks.
    """
    for folder in parent.glob(f"{prefix}*") if fcntl is not None else ():
        with contextlib.suppress(OSError):
            state = folder.lstat()
            if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
                continue
            with (folder / LOCK).open(encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an OSError while it is held
                if file.read() == _system():
                    shutil.rmtree(folder, ignore_errors=True)


@cache
def _system() -> str:
    """Name the system that runs, since it was started."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8")
    except OSError:
        return platform.node()
