"""How other runs are kept out of the folder of a job."""

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from spatialq.cluster.names import CALLER, JOURNAL, LOCK, MANIFEST, PARTS, UNFINISHED
from spatialq.errors import FileError, JobError
from spatialq.io.storage import ObjectPath

try:
    import fcntl
except ImportError:  # Windows, where two runs into one folder are not noticed
    fcntl = None  # type: ignore[assignment]

TRIES, PAUSE = 4, 0.05
"""How often the lock of a file is tried, and seconds between."""
BEAT = 5.0
"""Seconds between two writings of a lock that is an object."""
STALE = 20.0
"""Seconds after which such a lock that nobody has written is nobody's."""


class LocalLock:
    """A file that the operating system keeps locked until its process ends, however."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / LOCK

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock; the folder is made for that, and removed if no job was begun.

        Raises
        ------
        FileError
            If the file system has no locks.
        JobError
            If another run has it.
        OSError
            If the folder cannot be made.
        """
        inside = [self._folder / name for name in (PARTS, UNFINISHED)]
        wanted = [*reversed(self._folder.parents), self._folder, self._path, *inside]
        made = [each for each in (*wanted, self._folder / JOURNAL) if not each.exists()]
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._path.open("w") as lock:
            if fcntl is not None and not self._is_locked(lock):
                raise _has_it(self._folder)
            for each in inside:  # not before: a run that is refused removes them while it has it
                each.mkdir(exist_ok=True)
            try:
                yield
            finally:
                if not (self._folder / MANIFEST).exists():
                    _remove_empty(made)

    def _is_locked(self, lock: TextIO) -> bool:
        """Lock the file, unless another run has, or has removed it as it was refused."""
        for _ in range(TRIES):  # `is_held` of another process has it for a moment
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return os.path.samestat(os.fstat(lock.fileno()), self._path.stat())
            except (BlockingIOError, FileNotFoundError):
                time.sleep(PAUSE)
            except OSError as error:
                reason = f"cannot be locked: {error.strerror}: take a folder on another file system"
                raise FileError.of(CALLER, self._path, reason) from None
        return False

    def is_held(self) -> bool:
        """Whether a run has the lock."""
        with suppress(FileNotFoundError), self._path.open() as lock:
            try:
                if fcntl is not None:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:  # a file system without locks
                return False
        return False

    def is_kept(self, *, anew: bool) -> bool:
        """Whether this run still has it: always, nobody can take it over."""
        del anew
        return True


def _remove_empty(made: Sequence[Path]) -> None:
    """Remove folders and files of a run that wrote nothing into them.

    The lock is the last of those in the folder, since the next run makes the others when it has it.
    """
    for path in reversed(made):
        with suppress(OSError):  # others may have written into it meanwhile
            if path.is_dir():
                path.rmdir()
            elif not path.stat().st_size:
                path.unlink()


class ObjectLock:
    """An object that its run writes every few seconds.

    Another run takes it over when that has ceased. Each writing has the condition that the object
    is still the one that this run has written, so that none is lost unnoticed.

    Parameters
    ----------
    folder : ObjectPath
    also : callable
        Done after each writing; an OSError of it is passed over.
    """

    def __init__(self, folder: ObjectPath, also: Callable[[], None]) -> None:
        self._path: ObjectPath = folder / LOCK
        self._also, self._etag, self._written = also, "", 0.0
        self.is_lost = False
        """Whether another run has written the lock, or may have."""
        self._one_at_a_time = threading.Lock()
        self._is_ended = threading.Event()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock.

        Raises
        ------
        JobError
            If another run has it.
        OSError
            If it cannot be written.
        """
        self._etag, self._written = self._taken(), time.monotonic()
        beat = threading.Thread(target=self._keep, daemon=True)
        beat.start()
        try:
            yield
        finally:
            self._is_ended.set()
            beat.join()
            if self.is_kept(anew=True):
                with suppress(OSError):
                    self._path.unlink()

    def is_held(self) -> bool:
        """Whether a run has the lock, or had it some seconds ago."""
        with suppress(OSError):
            return bool(time.time() - self._path.found().changed / 1e9 < STALE)
        return False

    def is_kept(self, *, anew: bool) -> bool:
        """Whether this run still has it, also after its process was stopped for a while.

        Parameters
        ----------
        anew : bool
            Whether to write it in any case, not only if that was not done in time: before what
            another run must not lose. No clock is asked for its age.
        """
        if self._etag and (anew or time.monotonic() - self._written > 2 * BEAT):
            self._write()
        return not self.is_lost

    def _keep(self) -> None:
        while not self._is_ended.wait(BEAT) and not self.is_lost:
            self._write()
            with suppress(OSError):
                self._also()

    def _write(self) -> None:
        """Write the lock, unless it is lost."""
        with self._one_at_a_time:
            try:
                if not self.is_lost:
                    self._etag = self._path.put(_owner(), before=self._etag)
                    self._written = time.monotonic()
            except FileExistsError:
                self.is_lost = True
            except OSError:
                self.is_lost = time.monotonic() - self._written > STALE

    def _taken(self) -> str:
        """Take the lock; give its ETag."""
        own = _owner()
        for _ in range(TRIES):
            with suppress(FileNotFoundError):  # the run that had it has ended
                try:
                    etag = self._put(own)
                except FileExistsError:
                    break
                if self._path.read_bytes() == own:
                    return etag
                break  # a server without conditions lets the last one win
        raise _has_it(self._path.parent)

    def _put(self, own: bytes) -> str:
        """Write the lock, if need be after it was not written for a while.

        No clocks are compared: whether a lock is written is seen by waiting.
        """
        try:
            return self._path.put(own, new=True)
        except FileExistsError:
            etag, owner = self._path.found().etag, self._path.read_bytes()
        for _ in range(0 if _has_ended(owner) else int(STALE)):
            time.sleep(1)
            if self._path.read_bytes() != owner:
                raise FileExistsError
        return self._path.put(own, before=etag)


def _has_it(folder: Path) -> JobError:
    return JobError(f"{CALLER}: another run is writing into '{folder}'")


def _owner() -> bytes:
    """Write something that differs from any other writing of a lock, for people, too."""
    own = {"host": _host(), "process": os.getpid(), "time": time.time()}
    return json.dumps(own | {"token": secrets.token_hex(8)}).encode()


def _host() -> list[str]:
    """Say where numbers of processes mean the same ones: containers may have one name."""
    found = [socket.gethostname()]
    with suppress(OSError):  # of Linux
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        found.append(Path("/proc/self/ns/pid").readlink().name)
    return found


def _has_ended(owner: bytes) -> bool:
    """Whether the run that has written a lock was one of this machine that has ended."""
    try:
        said = json.loads(owner)
        if said["host"] == _host():
            os.kill(said["process"], 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return False
