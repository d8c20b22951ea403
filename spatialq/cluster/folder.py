"""The folder of a job: what it does, and a journal of the tasks that are done."""

import json
import os
import secrets
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from spatialq.cluster.task import Done, place_of, second_of
from spatialq.errors import FileError, JobError

try:
    import fcntl
except ImportError:  # Windows, where two runs into one folder are not noticed
    fcntl = None  # type: ignore[assignment]

CALLER = "cluster.run"
MANIFEST, JOURNAL, LOCK = "job.json", "journal.jsonl", ".lock"
PARTS, STAGES, UNFINISHED = "parts", "stages", ".unfinished"
OWN = (PARTS, STAGES, UNFINISHED)
"""Folders that a job makes in its own."""
NUMBER, COUNT = (int, float), (int, type(None))
KINDS: dict[str, Any] = {
    "function": str,
    "options": dict,
    "state": str,
    **dict.fromkeys(("tasks", "done", "resumed", "journal", "inputs"), int),
    **dict.fromkeys(("started", "begun", "told"), NUMBER),
    **dict.fromkeys(("parts", "points", "rows"), COUNT),
}
"""What a manifest has at least, and of which type."""
BLOCK = 1 << 20
TRIES, PAUSE = 4, 0.05
"""How often the lock is tried, and seconds between."""


def digest_of(path: Path, most: int | None = None) -> str:
    """Compute BLAKE2b, in hexadecimal, of a file or of its first bytes."""
    found = blake2b(digest_size=16)
    with path.open("rb") as file:
        left = path.stat().st_size if most is None else most
        while left > 0 and (block := file.read(min(BLOCK, left))):
            found.update(block)
            left -= len(block)
    return found.hexdigest()


def require_manifest(path: Path, content: bytes) -> dict[str, Any]:
    """Read a manifest.

    Raises
    ------
    FileError
        If it is damaged.
    """
    try:
        found: dict[str, Any] = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise FileError.of(CALLER, path, f"is no manifest of a job: {error}") from None
    for name, kind in KINDS.items():
        if not isinstance(found, dict) or name not in found:
            raise FileError.of(CALLER, path, f"is no manifest of a job: it has no {name}")
        if not isinstance(found[name], kind):
            reason = f"is no manifest of a job: its {name} is {found[name]!r}"
            raise FileError.of(CALLER, path, reason)
    return found


class Recorder(Protocol):
    """A journal to which tasks are added."""

    @property
    def position(self) -> int:
        """Where what is added next will be."""

    def add(self, done: Done) -> None:
        """Add a task that is done."""


class Folder(ABC):
    """A folder with the manifest, the journal and the parts of one job.

    Until the job is done it also has files that earlier stages write for later ones.
    """

    path: Path
    root: str
    """Its name for workers."""
    remote_stages: str = ""
    """How the names of files of stages begin, where a worker must fetch these to read them."""

    @abstractmethod
    def place(self, stage: str) -> Path:
        """Give the folder of the files that the tasks of a stage write."""

    @abstractmethod
    def begin(self, stage: str) -> None:
        """Make the folder of a stage."""

    @abstractmethod
    def remove_stages(self) -> None:
        """Remove what only later stages needed, and what workers left that were killed."""

    @abstractmethod
    def held(self) -> AbstractContextManager[None]:
        """Keep other runs out of the folder."""

    @abstractmethod
    def is_held(self) -> bool:
        """Whether a run is going on in the folder."""

    @abstractmethod
    def manifest(self) -> dict[str, Any] | None:
        """Read the manifest; None if there is no job in the folder."""

    @abstractmethod
    def require_new(self) -> None:
        """Refuse a folder that has no manifest, but files where those of a job are."""

    @abstractmethod
    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write the manifest, whole or not at all."""

    @abstractmethod
    def journal(self) -> Iterator[Done]:
        """Read the tasks that are done."""

    @abstractmethod
    def recording(self) -> AbstractContextManager[Recorder]:
        """Open the journal, to which tasks are added, and remove what a killed run half wrote."""

    @abstractmethod
    def lines_behind(self, position: int) -> int:
        """Count the whole lines of the journal that begin at a position or behind it."""

    @abstractmethod
    def has_files(self) -> bool:
        """Whether there are parts, or files where stages have theirs."""

    @abstractmethod
    def forget(self) -> None:
        """Remove all of a job that was refused, as if it had not been begun."""

    @abstractmethod
    def has(self, stage: str, name: str, size: int | None, digest: str) -> bool:
        """Whether a file of a stage is there as it was written."""

    def is_there(self, done: Done, *, is_last: bool = False) -> bool:
        """Whether the files of a task are there as they were written.

        The second one counts unless it is of the last run of a job, after which nobody needs it.
        """
        if not self.has(done.stage, done.name, done.size, done.digest):
            return False
        return is_last or not done.second or self.has(*place_of(done.second[0]), *done.second[1:])

    @abstractmethod
    def unfinished_file(self, suffix: str) -> AbstractContextManager[Path]:
        """Give the file for a part that is being written; what is left of it is removed."""

    @abstractmethod
    def keep(self, partial: Path, stage: str, name: str) -> tuple[int, str]:
        """Let a file that is written appear in the folder of a stage; give size and digest."""

    def no_manifest(self) -> JobError:
        """Make the error of `require_new`."""
        return JobError(
            f"{CALLER}: there are files in {STAGES}, {PARTS}, {UNFINISHED} or a journal in "
            f"'{self.path}', but not the {MANIFEST} that says of which job: take another folder, "
            "or remove them"
        )


def all_done(lines: Iterable[bytes]) -> Iterator[Done]:
    """Read the lines of a journal but for those that are damaged, whose tasks are done again."""
    for line in lines:
        with suppress(ValueError):
            yield Done.read(line.decode())


class JobFolder(Folder):
    """A folder of a file system with one job, see `Folder`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parts = path / PARTS
        self.unfinished = path / UNFINISHED

    @property
    def root(self) -> str:  # type: ignore[override] # a name for other processes
        """Its name for workers."""
        return str(self.path.resolve())

    def begin(self, stage: str) -> None:
        """Make the folder of a stage.

        Raises
        ------
        FileError
            If it cannot be made.
        """
        place = self.place(stage)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritten(place, error) from None

    @contextmanager
    def unfinished_file(self, suffix: str) -> Iterator[Path]:
        """Give a new file beside the parts; what is left of it is removed."""
        partial = self.unfinished / f"{secrets.token_hex(8)}{suffix}"
        try:
            yield partial
        finally:
            for each in (partial, second_of(partial)):
                each.unlink(missing_ok=True)

    def keep(self, partial: Path, stage: str, name: str) -> tuple[int, str]:
        """Let a file that is written appear in the folder of a stage; give size and digest."""
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        size, digest = partial.stat().st_size, digest_of(partial)
        partial.replace(self.place(stage) / name)
        return size, digest

    def place(self, stage: str) -> Path:
        """Give the folder of the files that the tasks of a stage write."""
        return self.parts if stage == PARTS else self.path / STAGES / stage

    def remove_stages(self) -> None:
        """Remove what only later stages needed, and what workers left that were killed."""
        shutil.rmtree(self.path / STAGES, ignore_errors=True)
        self._remove_unfinished()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs out of the folder until the block, or this process, ends.

        Raises
        ------
        FileError
            If the folder cannot be made.
        JobError
            If another run has it.
        """
        wanted = [*reversed(self.path.parents), self.path, self.path / LOCK]
        wanted += [self.parts, self.unfinished, self.path / JOURNAL]
        try:
            made = [each for each in wanted if not each.exists()]
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / LOCK).open("w")
        except OSError as error:
            raise _unwritten(self.path, error) from None
        with lock:
            if fcntl is not None and not self._is_locked(lock):
                message = f"{CALLER}: another run is writing into '{self.path}'"
                raise JobError(message)
            try:  # not before: a run that is refused removes them while it has the lock
                self.parts.mkdir(exist_ok=True)
                self.unfinished.mkdir(exist_ok=True)
            except OSError as error:
                raise _unwritten(self.path, error) from None
            try:
                yield
            finally:
                if not (self.path / MANIFEST).exists():  # no job was begun
                    _remove_empty(made)

    def _is_locked(self, lock: Any) -> bool:
        """Lock the file, unless another run has, or has removed it as it was refused."""
        for _ in range(TRIES):  # `is_held` of another process has it for a moment
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return os.path.samestat(os.fstat(lock.fileno()), (self.path / LOCK).stat())
            except (BlockingIOError, FileNotFoundError):
                time.sleep(PAUSE)
            except OSError as error:
                reason = f"cannot be locked: {error.strerror}: take a folder on another file system"
                raise FileError.of(CALLER, self.path / LOCK, reason) from None
        return False

    def _remove_unfinished(self) -> None:
        """Remove what is half-written; workers of a run that was killed may still write."""
        shutil.rmtree(self.unfinished, ignore_errors=True)
        self.unfinished.mkdir(exist_ok=True)

    def is_held(self) -> bool:
        """Whether a run is going on in the folder."""
        with suppress(FileNotFoundError), (self.path / LOCK).open() as lock:
            try:
                if fcntl is not None:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:  # a file system without locks
                return False
        return False

    def manifest(self) -> dict[str, Any] | None:
        """Read the manifest; None if there is no job in the folder.

        Raises
        ------
        FileError
            If it is damaged.
        """
        path = self.path / MANIFEST
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FileError.of(CALLER, path, f"cannot be read: {error.strerror}") from None
        return require_manifest(path, content)

    def require_new(self) -> None:
        """Refuse a folder that has no manifest, but files where those of a job are.

        They may be of other inputs or options, and parts that are not of the job would be in its
        result; files of stages would be removed at its end.

        Raises
        ------
        JobError
            If there are some.
        """
        journal = self.path / JOURNAL
        half_written = {each.name for each in self.unfinished.iterdir()} - {MANIFEST}
        if self.has_files() or half_written or (journal.exists() and journal.stat().st_size):
            raise self.no_manifest()

    def has_files(self) -> bool:
        """Whether there are parts, or files where stages have theirs."""
        stages = (self.path / STAGES).rglob("*")
        return any(self.parts.iterdir()) or any(
            each.is_symlink() or not each.is_dir() for each in stages
        )

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write the manifest, whole or not at all.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        path, partial = self.path / MANIFEST, self.unfinished / MANIFEST
        try:
            with partial.open("w", encoding="utf-8") as file:
                json.dump(manifest, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError as error:
            raise _unwritten(path, error) from None

    def forget(self) -> None:
        """Remove all of a job that was refused; `held` removes the folders that it has made.

        The manifest goes after the journal, without which it is a job that may be resumed.
        """
        self.remove_stages()
        for name in (JOURNAL, MANIFEST):
            (self.path / name).unlink(missing_ok=True)

    def lines_behind(self, position: int) -> int:
        """Count the whole lines of the journal that begin at a position or behind it."""
        with suppress(FileNotFoundError), (self.path / JOURNAL).open("rb") as file:
            file.seek(position)
            return sum(block.count(b"\n") for block in iter(lambda: file.read(BLOCK), b""))
        return 0

    def journal(self) -> Iterator[Done]:
        """Read the tasks that are done; a line that was being written when a run ended is none.

        Raises
        ------
        FileError
            If it cannot be read.
        """
        path = self.path / JOURNAL
        try:
            with path.open("rb") as file:
                yield from all_done(file)
        except FileNotFoundError:
            return
        except OSError as error:
            raise FileError.of(CALLER, path, f"cannot be read: {error.strerror}") from None

    @contextmanager
    def recording(self) -> Iterator["Journal"]:
        """Open the journal, to which tasks are added behind its last whole line.

        What a run that was killed has half written is removed.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        path = self.path / JOURNAL
        try:
            self._remove_unfinished()
            file = path.open("ab", buffering=0)  # a buffer would be written again when it is closed
        except OSError as error:
            raise _unwritten(path, error) from None
        with file:
            journal = Journal(path, file)
            if file.tell() and not _ends_line(path):
                journal.write(b"\n")
            yield journal

    def has(self, stage: str, name: str, size: int | None, digest: str) -> bool:
        """Whether a file of a stage is there as it was written."""
        path = self.place(stage) / name
        with suppress(OSError):
            return path.stat().st_size == size and digest_of(path) == digest
        return False


class Journal:
    """The journal, to which tasks are added."""

    def __init__(self, path: Path, file: Any) -> None:
        self._path, self._file = path, file

    @property
    def position(self) -> int:
        """Bytes that it has."""
        return int(self._file.tell())

    def add(self, done: Done) -> None:
        """Add a task that is done.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        self.write((done.line() + "\n").encode())

    def write(self, content: bytes) -> None:
        """Write some bytes, all of them.

        Raises
        ------
        FileError
            If they cannot be written.
        """
        try:
            while content:  # a disk that is all but full takes some
                content = content[self._file.write(content) :]
        except OSError as error:
            raise _unwritten(self._path, error) from None


def _unwritten(path: Path, error: OSError) -> FileError:
    return FileError.of(CALLER, path, f"cannot be written: {error.strerror}")


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


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"
