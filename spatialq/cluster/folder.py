"""The folder of a job: what it does, and a journal of the tasks that are done."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from spatialq.cluster.task import Done
from spatialq.errors import FileError, JobError

try:
    import fcntl
except ImportError:  # Windows, where two runs into one folder are not noticed
    fcntl = None  # type: ignore[assignment]

CALLER = "cluster.run"
MANIFEST, JOURNAL, LOCK = "job.json", "journal.jsonl", ".lock"
PARTS, STAGES, UNFINISHED = "parts", "stages", ".unfinished"
KEYS = (
    "function", "options", "state", "tasks", "done", "resumed", "journal", "started", "begun",
    "told", "parts", "points", "rows", "inputs",
)  # fmt: skip
"""What a manifest has at least."""
BLOCK = 1 << 20


def digest_of(path: Path, most: int | None = None) -> str:
    """Compute BLAKE2b, in hexadecimal, of a file or of its first bytes."""
    found = blake2b(digest_size=16)
    with path.open("rb") as file:
        left = path.stat().st_size if most is None else most
        while left > 0 and (block := file.read(min(BLOCK, left))):
            found.update(block)
            left -= len(block)
    return found.hexdigest()


class JobFolder:
    """A folder with the manifest, the journal and the parts of one job.

    Until the job is done it also has files that earlier stages write for later ones.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parts = path / PARTS
        self.unfinished = path / UNFINISHED

    def place(self, stage: str) -> Path:
        """Give the folder of the files that the tasks of a stage write."""
        return self.parts if stage == PARTS else self.path / STAGES / stage

    def remove_stages(self) -> None:
        """Remove what only later stages needed."""
        shutil.rmtree(self.path / STAGES, ignore_errors=True)

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
        try:
            for each in (self.path, self.parts, self.unfinished):
                each.mkdir(parents=True, exist_ok=True)
            lock = (self.path / LOCK).open("w")
        except OSError as error:
            reason = f"cannot be written: {error.strerror}"
            raise FileError.of(CALLER, self.path, reason) from None
        with lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    message = f"{CALLER}: another run is writing into '{self.path}'"
                    raise JobError(message) from None
            shutil.rmtree(self.unfinished)
            self.unfinished.mkdir()
            yield

    def is_held(self) -> bool:
        """Whether a run is going on in the folder."""
        with suppress(FileNotFoundError), (self.path / LOCK).open() as lock:
            try:
                if fcntl is not None:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return True
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
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise FileError.of(CALLER, path, f"is no manifest of a job: {error}") from None
        missing = [name for name in KEYS if not isinstance(found, dict) or name not in found]
        if missing:
            raise FileError.of(CALLER, path, f"is no manifest of a job: it has no {missing[0]}")
        return found

    def require_new(self) -> None:
        """Refuse a folder without a manifest that has parts or a journal all the same.

        They may be of other inputs or options, and parts that are not of the job would be in its
        result.

        Raises
        ------
        JobError
            If there are some.
        """
        if any(self.parts.iterdir()) or (self.path / JOURNAL).exists():
            message = (
                f"{CALLER}: there are parts or a journal in '{self.path}', but not the {MANIFEST} "
                "that says of which job: take another folder, or remove them"
            )
            raise JobError(message)

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
            raise FileError.of(CALLER, path, f"cannot be written: {error.strerror}") from None

    def forget(self) -> None:
        """Remove what is known of a job that was refused, so that another one may be begun."""
        self.remove_stages()
        for name in (MANIFEST, JOURNAL):
            (self.path / name).unlink(missing_ok=True)

    def lines_behind(self, position: int) -> int:
        """Count the whole lines of the journal that begin at a position or behind it."""
        with suppress(FileNotFoundError), (self.path / JOURNAL).open("rb") as file:
            file.seek(position)
            return sum(block.count(b"\n") for block in iter(lambda: file.read(BLOCK), b""))
        return 0

    def journal(self) -> Iterator[Done]:
        """Read the tasks that are done; a line that was being written when a run ended is none."""
        with suppress(FileNotFoundError), (self.path / JOURNAL).open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    with suppress(ValueError, TypeError):
                        yield Done.read(line.decode())

    @contextmanager
    def recording(self) -> Iterator["Journal"]:
        """Open the journal, to which tasks are added behind its last whole line."""
        with (self.path / JOURNAL).open("ab") as file:
            if file.tell() and not _ends_line(self.path / JOURNAL):
                file.write(b"\n")
            yield Journal(self.path / JOURNAL, file)

    def second(self, name: str) -> Path:
        """Give the second file of a task, by its stage and name."""
        return self.path / STAGES / name

    def is_there(self, done: Done, *, is_last: bool = False) -> bool:
        """Whether the files of a task are there as they were written.

        The second one counts unless it is of the last run of a job, after which nobody needs it.
        """
        path = self.place(done.stage) / done.name
        if not _is_same(path, done.size, done.digest):
            return False
        return is_last or not done.second or _is_same(self.second(done.second[0]), *done.second[1:])


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
        try:
            self._file.write((done.text() + "\n").encode())
            self._file.flush()
        except OSError as error:
            reason = f"cannot be written: {error.strerror}"
            raise FileError.of(CALLER, self._path, reason) from None


def _is_same(path: Path, size: int | None, digest: str) -> bool:
    with suppress(OSError):
        return path.stat().st_size == size and digest_of(path) == digest
    return False


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"
