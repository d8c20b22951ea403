"""Temporary folders. The next process removes those of a process that was killed.

A folder with a fixed name can be taken over instead, with its contents.
"""

import contextlib
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Iterator
from errno import EPERM
from functools import cache
from pathlib import Path
from typing import TextIO

try:
    import fcntl
except ImportError:  # Windows, where folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

ROOM = 1 << 18
"""Bytes that a disk must have to be not full."""
LOCK = "owner"
"""The file that the process of a folder keeps locked, with the name of the running system."""
NEW_LOCK = f"{LOCK}.new"
"""Its name until it is locked."""


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
    remove_abandoned(prefix, parent)
    with contextlib.ExitStack() as cleanup:
        yield _new_folder(prefix, parent, cleanup)


def _new_folder(prefix: str, parent: Path, cleanup: contextlib.ExitStack) -> Path:
    """Make a folder and lock it; the stack removes it."""
    while True:
        made = tempfile.TemporaryDirectory(prefix=prefix, dir=parent)
        folder = Path(cleanup.enter_context(made))
        with contextlib.suppress(FileNotFoundError):  # removed as abandoned before it had its lock
            cleanup.enter_context(_locked(folder))
            return folder


def why_full(folder: Path) -> str | None:
    """Say why a folder has no room, as libraries that write do not; None where it has.

    For as long as what was written in vain is still there.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
    except OSError as error:
        return error.strerror
    return None


def not_written(folder: Path, said: str) -> str:
    """Say why a library could not write in a folder: that it has no room, or else `said`."""
    full = why_full(folder)
    return f"cannot be written: {full}" if full else said


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which the system gives up when the process ends, however.

    At the end everything but the lock is removed, so that what a killed process leaves has it.
    """
    new = folder / NEW_LOCK
    with new.open("w", encoding="utf-8") as file:
        file.write(_system())
        file.flush()
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        new.rename(folder / LOCK)  # nobody sees it without its lock
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # what cannot be removed is told by the caller
                _empty(folder)


def _empty(folder: Path) -> None:
    """Remove everything but the lock."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


@contextlib.contextmanager
def held_folder(folder: Path) -> Iterator[bool]:
    """Hold a folder of a fixed name, which is made unless it is there; it stays at the end.

    Yields
    ------
    bool
        Whether what is in it is of a process of this running system, which has ended.

    Raises
    ------
    BlockingIOError
        If another process holds it.
    OSError
        If it cannot be made, or is somebody else's.
    """
    with _open_lock(folder) as file:
        file.seek(0)
        is_left = fcntl is not None and file.read() == _system()
        file.truncate(0)
        file.write(_system())
        file.flush()
        yield is_left


def _open_lock(folder: Path) -> TextIO:
    """Make a folder unless it is there, and lock it by the file that is given."""
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
        if not stat.S_ISDIR(state.st_mode) or (fcntl is not None and state.st_uid != os.geteuid()):
            raise PermissionError(EPERM, "is no folder of this user")
        try:
            file = (folder / LOCK).open("a+", encoding="utf-8")
        except FileNotFoundError:  # it was removed as abandoned meanwhile
            continue
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, folder / LOCK):
                return file
        except OSError:
            file.close()
            raise
        file.close()


def _is_at(file: TextIO, path: Path) -> bool:
    """Whether an open file still has a name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


def remove_abandoned(prefix: str, parent: Path) -> None:
    """Remove folders whose owner is dead: of this user, made on this running system.

    A lock tells that, also between containers, which do not see each other's processes. Another
    system may have the same folder, but not the same locks. A process that was killed before it had
    the lock, or when it had removed it, leaves an empty folder or the lock's first name; where that
    has nothing in it yet, the folder stays, as another system may be making it.
    """
    with contextlib.suppress(OSError):  # the folder of somebody else, who may not be listed
        _remove_abandoned(prefix, parent)


def _remove_abandoned(prefix: str, parent: Path) -> None:
    for folder in parent.glob(f"{prefix}*") if fcntl is not None else ():
        with contextlib.suppress(OSError):
            state = folder.lstat()
            if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
                continue
            there = [name for name in (LOCK, NEW_LOCK) if (folder / name).exists()]
            if not there:
                folder.rmdir()  # an OSError unless it is empty
                continue
            with (folder / there[0]).open(encoding="utf-8") as file:
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
