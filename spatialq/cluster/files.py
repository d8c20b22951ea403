"""How a job writes and reads its files: in a folder of a file system, or in object storage.

Names of files are those in the folder of the job, such as 'parts/0000000.parquet'.
"""

import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

from spatialq.cluster.digest_set import DigestSet
from spatialq.cluster.locks import LocalLock, ObjectLock
from spatialq.cluster.names import JOURNAL, MANIFEST, STAGES, UNFINISHED
from spatialq.cluster.task import second_of
from spatialq.io.storage import ObjectPath
from spatialq.runtime.temporary import temporary_folder

BLOCK = 1 << 20
RECORDS = 5000
"""Tasks of a segment of a journal at most."""
TEMPORARY = "spatialq_parts_"


def digest_of(path: Path) -> str:
    """Compute BLAKE2b, in hexadecimal, of a file."""
    with path.open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


class LocalFiles:
    """Files of a file system.

    They are written in a folder beside the parts, forced to the disk, and renamed; the journal is
    a file, to which each task is added at once.
    """

    def __init__(self, path: Path) -> None:
        self.lock = LocalLock(path)
        self.journal = path / JOURNAL
        self._path, self._unfinished = path, path / UNFINISHED
        self._file: Any = None

    @contextmanager
    def unfinished(self, suffix: str) -> Iterator[Path]:
        """Give a new file that is to be written; what is left of it is removed."""
        partial = self._unfinished / f"{secrets.token_hex(8)}{suffix}"
        try:
            yield partial
        finally:
            for each in (partial, second_of(partial)):
                each.unlink(missing_ok=True)

    def keep(self, partial: Path, name: str) -> tuple[int, str]:
        """Let a file appear; give its size and digest."""
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        state = partial.stat().st_size, digest_of(partial)
        partial.replace(self._path / name)
        return state

    def write(self, name: str, content: bytes) -> None:
        """Let a file with a content appear."""
        partial = self._unfinished / name
        try:
            partial.write_bytes(content)
            self.keep(partial, name)
        finally:
            partial.unlink(missing_ok=True)

    def has(self, name: str, size: int | None, digest: str) -> bool:
        """Whether a file is there as it was kept."""
        path = self._path / name
        with suppress(OSError):
            return path.stat().st_size == size and digest_of(path) == digest
        return False

    def has_files(self, folder: str) -> bool:
        """Whether there are files in a folder, or in those in it."""
        there = (self._path / folder).rglob("*")
        return any(each.is_symlink() or not each.is_dir() for each in there)

    def has_journal(self) -> bool:
        """Whether a journal was begun, or some other file than a manifest."""
        half_written = {each.name for each in self._unfinished.iterdir()} - {MANIFEST}
        return bool(half_written) or (self.journal.exists() and self.journal.stat().st_size > 0)

    def lines(self) -> Iterator[bytes]:
        """Read the journal; the last line may be one that was being written when a run ended."""
        with suppress(FileNotFoundError), self.journal.open("rb") as file:
            yield from file

    def lines_behind(self, position: int) -> int:
        """Count the whole lines of the journal that begin at a position or behind it."""
        with suppress(FileNotFoundError), self.journal.open("rb") as file:
            file.seek(position)
            return sum(block.count(b"\n") for block in iter(lambda: file.read(BLOCK), b""))
        return 0

    def begin_journal(self) -> None:
        """Open the journal behind its last whole line, and remove what killed runs half wrote."""
        self._remove_unfinished()
        # a buffer would be written again when it is closed
        self._file = self.journal.open("ab", buffering=0)
        if self.position:
            with self.journal.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                if file.read() != b"\n":
                    self.add(b"\n")

    @property
    def position(self) -> int:
        """Bytes of the journal."""
        return int(self._file.tell())

    def add(self, line: bytes) -> None:
        """Add a line to the journal."""
        while line:  # a disk that is all but full takes some
            line = line[self._file.write(line) :]

    def end_journal(self) -> None:
        """Close the journal."""
        self._file.close()

    def remove_journal(self) -> None:
        """Remove the journal."""
        self.journal.unlink(missing_ok=True)

    def remove_stages(self) -> None:
        """Remove files of stages, and what workers left that were killed."""
        shutil.rmtree(self._path / STAGES, ignore_errors=True)
        self._remove_unfinished()

    def _remove_unfinished(self) -> None:
        """Remove what is half-written; workers of a run that was killed may still write."""
        shutil.rmtree(self._unfinished, ignore_errors=True)
        self._unfinished.mkdir(exist_ok=True)


class ObjectFiles:
    """Objects, which appear whole or not at all and cannot be added to.

    So what is done is gathered for some seconds and becomes a segment of the journal.
    """

    position = 0
    """The manifest is as new as the last segment of the journal."""

    def __init__(self, path: ObjectPath) -> None:
        self.lock = ObjectLock(path, self.end_journal)
        self.journal: ObjectPath = path / "journal"
        self._path, self._lines = path, list[bytes]()
        self._begun, self._count = "", 0
        self._one_at_a_time = threading.Lock()
        self._states: dict[str, DigestSet] = {}

    @contextmanager
    def unfinished(self, suffix: str) -> Iterator[Path]:
        """Give a new file of this machine that is to be written; it is removed."""
        with temporary_folder(TEMPORARY) as folder:
            yield folder / f"part{suffix}"

    def keep(self, partial: Path, name: str) -> tuple[int, str]:
        """Let an object appear; give its size and ETag."""
        return partial.stat().st_size, (self._path / name).put(partial)

    def write(self, name: str, content: bytes) -> None:
        """Let an object with a content appear."""
        (self._path / name).put(content)

    def has(self, name: str, size: int | None, etag: str) -> bool:
        """Whether an object is there as it was kept, when its folder was listed first."""
        folder = name.rpartition("/")[0]
        if folder not in self._states:
            self._states[folder] = states = DigestSet()
            for found in (self._path / folder).objects():
                states.add(f"{found.key}/{found.size}/{found.etag}")
        return f"{(self._path / name).key}/{size}/{etag}" in self._states[folder]

    def has_files(self, folder: str) -> bool:
        """Whether there are objects in a folder."""
        return bool((self._path / folder).is_dir())

    def has_journal(self) -> bool:
        """Whether a journal was begun."""
        return self.journal.is_dir()

    def lines(self) -> Iterator[bytes]:
        """Read the journal."""
        for found in list(self.journal.objects()):
            yield from self.journal.other(found).read_bytes().splitlines()

    def lines_behind(self, position: int) -> int:
        """Give 0, see `position`."""
        del position
        return 0

    def begin_journal(self) -> None:
        """Name the segments of this run, behind those of others."""
        self._begun = f"{time.time_ns():020d}-{secrets.token_hex(4)}"

    def add(self, line: bytes) -> None:
        """Add a line to the next segment of the journal."""
        with self._one_at_a_time:
            self._lines.append(line)
            is_full = len(self._lines) >= RECORDS
        if is_full:
            self.end_journal()

    def end_journal(self) -> None:
        """Write what was added since the last segment; that is done every few seconds, too."""
        with self._one_at_a_time:
            if self._lines and not self.lock.is_lost:
                segment = f"{self._begun}-{self._count:06d}.jsonl"
                (self.journal / segment).put(b"".join(self._lines))
                self._lines.clear()
                self._count += 1

    def remove_journal(self) -> None:
        """Remove the journal."""
        self.journal.remove_all()

    def remove_stages(self) -> None:
        """Remove files of stages."""
        with suppress(OSError):  # they cost room, not rows
            (self._path / STAGES).remove_all()
