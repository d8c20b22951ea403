"""The folder of a job in object storage: parts, manifest, and a journal in segments.

An object appears whole or not at all and cannot be added to. So what is done is gathered for some
seconds and becomes a segment of the journal; and the lock is an object that its run writes again
and again, which another run takes over when that has ceased.
"""

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spatialq.cluster.digest_set import DigestSet
from spatialq.cluster.folder import (
    CALLER,
    LOCK,
    MANIFEST,
    PARTS,
    STAGES,
    Folder,
    all_done,
    require_manifest,
)
from spatialq.cluster.task import Done
from spatialq.errors import FileError, JobError
from spatialq.io.storage import ObjectPath
from spatialq.runtime.temporary import temporary_folder

SEGMENTS = "journal"
RECORDS = 5000
"""Tasks of a segment at most."""
BEAT = 5.0
"""Seconds between two writings of the lock, and of the journal."""
STALE = 20.0
"""Seconds after which a lock that nobody has written is nobody's."""
TRIES = 3
"""How often a lock is asked for whose run ends meanwhile."""
TEMPORARY = "spatialq_parts_"


class ObjectFolder(Folder):
    """A folder of object storage with one job, see `Folder`."""

    def __init__(self, path: ObjectPath) -> None:
        self.path: ObjectPath = path
        self.root = str(path)
        self.remote_stages = f"{path / STAGES}/"
        self._states: dict[str, DigestSet] = {}
        self._beat: _Beat | None = None

    def place(self, stage: str) -> ObjectPath:
        """Give the folder of the files that the tasks of a stage write."""
        found: ObjectPath = self.path / PARTS if stage == PARTS else self.path / STAGES / stage
        return found

    def begin(self, stage: str) -> None:
        """Do nothing: there are no folders but by their objects."""

    def remove_stages(self) -> None:
        """Remove what only later stages needed.

        Raises
        ------
        JobError
            If another run has taken the folder over.
        """
        self._require_lock()
        folder: ObjectPath = self.path / STAGES
        with suppress(OSError):  # they cost room, not rows
            keys = [found.key for found in folder.objects()]
            if keys:
                folder.remove(keys)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs out of the folder until the block ends, or no longer writes its lock.

        Raises
        ------
        FileError
            If it cannot be written.
        JobError
            If another run has it.
        """
        lock: ObjectPath = self.path / LOCK
        with _writing(self.path):
            beat = _Beat(lock, _taken(lock, self.path))
        self._beat = beat
        try:
            yield
        finally:
            self._beat = None
            beat.end()

    def is_held(self) -> bool:
        """Whether a run is going on in the folder, or was some seconds ago."""
        with suppress(OSError):
            changed = (self.path / LOCK).found().changed
            return bool(time.time() - changed / 1e9 < STALE)
        return False

    def _require_lock(self) -> None:
        """Write the lock before what another run must not lose; no clock is asked for its age."""
        if self._beat is not None:
            self._beat.require(anew=True)

    def manifest(self) -> dict[str, Any] | None:
        """Read the manifest; None if there is no job in the folder.

        Raises
        ------
        FileError
            If it is damaged, or cannot be read.
        """
        path: ObjectPath = self.path / MANIFEST
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FileError.of(CALLER, path, f"cannot be read: {error.strerror}") from None
        return require_manifest(path, content)

    def require_new(self) -> None:
        """Refuse a folder that has no manifest, but files where those of a job are.

        Raises
        ------
        JobError
            If there are some.
        """
        if self.has_files() or (self.path / SEGMENTS).is_dir():
            raise self.no_manifest()

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write the manifest, whole or not at all.

        Raises
        ------
        FileError
            If it cannot be written.
        JobError
            If another run has taken the folder over.
        """
        self._require_lock()
        path: ObjectPath = self.path / MANIFEST
        with _writing(path):
            path.put(json.dumps(manifest, indent=1).encode())

    def journal(self) -> Iterator[Done]:
        """Read the tasks that are done.

        Raises
        ------
        FileError
            If it cannot be read.
        """
        folder: ObjectPath = self.path / SEGMENTS
        try:
            for found in list(folder.objects()):
                yield from all_done(folder.other(found).read_bytes().splitlines())
        except OSError as error:
            raise FileError.of(CALLER, folder, f"cannot be read: {error.strerror}") from None

    @contextmanager
    def recording(self) -> Iterator["Segments"]:
        """Open the journal, to which tasks are added; the last segment is written at the end."""
        assert self._beat is not None
        journal = Segments(self.path / SEGMENTS, self._beat)
        self._beat.journal = journal
        try:
            yield journal
        finally:
            self._beat.journal = None
            journal.write()

    def lines_behind(self, position: int) -> int:
        """Give 0: the manifest is as new as the last segment of the journal."""
        del position
        return 0

    def has_files(self) -> bool:
        """Whether there are parts, or files where stages have theirs."""
        return any((self.path / name).is_dir() for name in (PARTS, STAGES))

    def forget(self) -> None:
        """Remove all of a job that was refused, unless another run has taken the folder over."""
        assert self._beat is not None
        self._beat.stop()
        if not self._beat.is_own():
            return
        self.remove_stages()
        segments: ObjectPath = self.path / SEGMENTS
        with _writing(self.path):
            self.path.remove(
                [(self.path / MANIFEST).key, *(each.key for each in segments.objects())]
            )

    def has(self, stage: str, name: str, size: int | None, digest: str) -> bool:
        """Whether a file of a stage is there as it was written: its size and its ETag."""
        if stage not in self._states:
            self._states[stage] = states = DigestSet()
            for found in self.place(stage).objects():
                states.add(_state(found.key.rpartition("/")[2], found.size, found.etag))
        return _state(name, size, digest) in self._states[stage]

    @contextmanager
    def unfinished_file(self, suffix: str) -> Iterator[Path]:
        """Give a file of this machine for a part that is being written; it is removed."""
        with temporary_folder(TEMPORARY) as folder:
            yield folder / f"part{suffix}"

    def keep(self, partial: Path, stage: str, name: str) -> tuple[int, str]:
        """Let a file that is written appear in the folder of a stage; give its size and ETag."""
        target: ObjectPath = self.place(stage) / name
        return partial.stat().st_size, target.put(partial)


class Segments:
    """The journal, to which tasks are added; it is written from time to time."""

    def __init__(self, folder: ObjectPath, beat: "_Beat") -> None:
        self._folder, self._beat, self._lines = folder, beat, list[str]()
        self._lock = threading.Lock()
        self._begun, self._count = f"{time.time_ns():020d}-{secrets.token_hex(4)}", 0
        self.position = 0

    def add(self, done: Done) -> None:
        """Add a task that is done.

        Raises
        ------
        FileError
            If the journal cannot be written.
        JobError
            If another run has taken the folder over.
        """
        self._beat.require()
        with self._lock:
            self._lines.append(done.line())
            is_full = len(self._lines) >= RECORDS
        if is_full:
            self.write()

    def write(self) -> None:
        """Write what was added since the last segment.

        Raises
        ------
        FileError
            If it cannot be written; it is tried again next time.
        """
        with self._lock:
            if not self._lines or self._beat.is_lost:
                return
            text = "".join(f"{line}\n" for line in self._lines)
            path: ObjectPath = self._folder / f"{self._begun}-{self._count:06d}.jsonl"
            with _writing(path):
                path.put(text.encode())
            self._lines.clear()
            self._count += 1


class _Beat:
    """Writes the lock of a run, and its journal, every few seconds."""

    def __init__(self, lock: ObjectPath, etag: str) -> None:
        self.journal: Segments | None = None
        self._lock, self._etag = lock, etag
        self._written = time.monotonic()
        self.is_lost = False
        """Whether another run has written the lock, or may have."""
        self._one_at_a_time = threading.Lock()
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_ended.wait(BEAT) and not self.is_lost:
            self._write()
            if self.journal is not None and not self.is_lost:
                with suppress(FileError):  # it is tried again
                    self.journal.write()

    def _write(self) -> None:
        """Write the lock, unless it is lost."""
        with self._one_at_a_time:
            try:
                if not self.is_lost:
                    self._etag = self._lock.put(_owner(), before=self._etag)
                    self._written = time.monotonic()
            except FileExistsError:
                self.is_lost = True
            except OSError:
                self.is_lost = time.monotonic() - self._written > STALE

    def require(self, *, anew: bool = False) -> None:
        """Make sure that the run still has the lock, also after its process was stopped.

        Parameters
        ----------
        anew : bool
            Whether to write it in any case, not only if that was not done in time.

        Raises
        ------
        JobError
            If it does not.
        """
        if anew or time.monotonic() - self._written > 2 * BEAT:
            self._write()
        if self.is_lost:
            message = (
                f"{CALLER}: the lock of '{self._lock.parent}' could not be kept: resume the job, "
                "unless another run does"
            )
            raise JobError(message)

    def stop(self) -> None:
        """Cease to write the lock."""
        self._is_ended.set()
        self._thread.join()

    def is_own(self) -> bool:
        """Whether nobody else has written the lock."""
        with suppress(OSError):
            return _etag_now(self._lock) == self._etag
        return False

    def end(self) -> None:
        """Give the lock up."""
        self.stop()
        with suppress(OSError):
            if self.is_own():
                self._lock.remove()


def _state(name: str, size: int | None, etag: str) -> str:
    return f"{name}/{size}/{etag}"


def _owner() -> bytes:
    """Write something that differs from any other writing of a lock, for people, too."""
    return json.dumps(
        {
            "host": _host(),
            "process": os.getpid(),
            "time": time.time(),
            "token": secrets.token_hex(8),
        }
    ).encode()


def _host() -> list[str]:
    """Say where numbers of processes mean the same ones: containers may have one name."""
    found = [socket.gethostname()]
    with suppress(OSError):  # of Linux
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        found.append(Path("/proc/self/ns/pid").readlink().name)
    return found


def _taken(lock: ObjectPath, folder: ObjectPath) -> str:
    """Take the lock, if need be after it was not written for a while; give its ETag.

    No clocks are compared: whether a lock is written is seen by waiting.
    """
    own = _owner()
    for _ in range(TRIES):
        with suppress(FileNotFoundError):  # the run that had it has ended
            etag = _put(own, lock, folder)
            if lock.read_bytes() == own:  # a server without conditions lets the last one win
                return etag
            break
    raise _has_it(folder)


def _put(own: bytes, lock: ObjectPath, folder: ObjectPath) -> str:
    try:
        return lock.put(own, new=True)
    except FileExistsError:
        before = lock.found().etag
    if not _is_ended(lock):
        for _ in range(int(STALE)):
            time.sleep(1)
            if lock.read_bytes() and _etag_now(lock) != before:
                raise _has_it(folder)
    try:
        return lock.put(own, before=before)
    except FileExistsError:
        raise _has_it(folder) from None


def _is_ended(lock: ObjectPath) -> bool:
    """Whether the run that has written a lock was one of this machine that has ended."""
    try:
        owner = json.loads(lock.read_bytes())
        if owner["host"] != _host():
            return False
        os.kill(owner["process"], 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return False


def _etag_now(lock: ObjectPath) -> str:
    return next((found.etag for found in lock.parent.entries()[0] if found.key == lock.key), "")


def _has_it(folder: ObjectPath) -> JobError:
    return JobError(f"{CALLER}: another run is writing into '{folder}'")


@contextmanager
def _writing(path: ObjectPath) -> Iterator[None]:
    """Tell errors of writing as those of the job.

    Raises
    ------
    FileError
    """
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise FileError.of(CALLER, path, f"cannot be written: {error.strerror}") from None
