"""Results of unfinished runs, kept on the disk so that a resumed run goes on with them.

They are in hidden folders beside the outputs, whose names follow from the outputs. A process locks
its folders; those of a process that was killed stay until a run resumes or clears them. Files are
not flushed to the disk: they survive the end of a process, but not that of the system.
"""

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from spatialq.errors import FileError, FileWarning
from spatialq.export.atomic import PREFIX as OF_WRITERS
from spatialq.export.atomic import said_of
from spatialq.runtime.temporary import LOCK, held_folder, remove_abandoned

PREFIX = ".lod-"
MANIFEST = "made of"
"""What names and options the kept things have been made of."""


@dataclass(frozen=True)
class KeptOutput:
    """What is kept of one output.

    Parameters
    ----------
    path : Path
        Of the part that is there, or of a folder of parts.
    kept : Kept
    name : str
        Under which the state is saved.
    """

    path: Path
    kept: "Kept"
    name: str

    def beside(self, role: str) -> Path:
        """Name another file of the output."""
        return self.path.with_name(f"{self.path.name}.{role}")

    def load(self) -> dict[str, Any] | None:
        """Give the state that was saved last, or None."""
        return self.kept.load(self.name)

    def save(self, state: Mapping[str, Any]) -> None:
        """Save the state, in the place of the one before."""
        self.kept.save(self.name, state)

    def take_back(self, target: Path) -> None:
        """Take a folder of parts back that has its name already, which was saved as `folder`.

        So it is where a run was killed while outputs appeared.
        """
        name = (self.load() or {}).get("folder")
        if name is not None and not self.path.exists():
            with suppress(FileNotFoundError):
                target.resolve().with_name(name).rename(self.path)


class Journal:
    """Values that were added to a file one after the other, each a line of JSON.

    Parameters
    ----------
    file : binary file or None
        None to keep nothing.
    entries : sequence
        The values that are in it already.
    """

    def __init__(self, file: BinaryIO | None, entries: Sequence[Any] = ()) -> None:
        self._file, self.entries = file, entries

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> "Iterator[Journal]":
        """Open a file, which is made if it is missing; a line that was cut off is dropped."""
        with path.open("a+b") as file:
            file.seek(0)
            lines = file.read().splitlines(keepends=True)
            whole = [line for line in lines if line.endswith(b"\n")]
            file.truncate(sum(map(len, whole)))
            yield cls(file, [json.loads(line) for line in whole])

    def add(self, values: Sequence[Any]) -> None:
        """Add values; they are there when this returns."""
        if self._file is not None:
            self._file.writelines(f"{json.dumps(value)}\n".encode() for value in values)
            self._file.flush()


class Kept:
    """Files and states of outputs that are not whole yet.

    Parameters
    ----------
    folders : sequence of Path
        For each output the one on its file system.
    outputs : sequence of Path
    """

    def __init__(self, folders: Sequence[Path], outputs: Sequence[Path]) -> None:
        self._folders = dict(zip(outputs, folders, strict=True))
        self.folders, self.folder = tuple(dict.fromkeys(folders)), folders[0]

    def path(self, name: str) -> Path:
        """Name a file or folder."""
        return self.folder / name

    def empty_folder(self, name: str) -> Path:
        """Make a folder with nothing in it."""
        folder = self.path(name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def forget(self, prefix: str) -> None:
        """Remove the values and arrays that were saved under names that begin so."""
        path = self.path(prefix)
        for each in path.parent.glob(f"{path.name}*"):
            each.unlink()

    def output(self, target: Path) -> KeptOutput:
        """Say where the parts of an output are."""
        number = list(self._folders).index(target)
        return KeptOutput(self._folders[target] / f"output {number}", self, f"state {number}")

    def load(self, name: str) -> dict[str, Any] | None:
        """Give values that were saved, or None."""
        try:
            found: dict[str, Any] = json.loads(self.path(f"{name}.json").read_bytes())
        except FileNotFoundError:
            return None
        return found

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Save values that JSON has, at once or not at all."""
        new = self.path(f"{name}.new")
        with self._said():
            new.write_text(json.dumps(values), encoding="utf-8")
            new.replace(self.path(f"{name}.json"))

    def load_arrays(self, name: str) -> dict[str, Any] | None:
        """Give arrays that were saved, or None."""
        try:
            with np.load(self.path(f"{name}.npz"), allow_pickle=False) as file:
                return dict(file)
        except FileNotFoundError:
            return None

    def save_arrays(self, name: str, arrays: Mapping[str, Any]) -> None:
        """Save arrays, at once or not at all."""
        new = self.path(f"{name}.new")
        with self._said():
            with new.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
            new.replace(self.path(f"{name}.npz"))

    def _said(self) -> AbstractContextManager[None]:
        return said_of(next(iter(self._folders)))


@contextmanager
def keeping(
    command: str, outputs: Sequence[Path], made_of: Mapping[str, Any], *, resume: bool
) -> Iterator[Kept]:
    """Hold the folders of outputs, which are removed if the block ends without an error.

    Parameters
    ----------
    command : str
        For messages.
    outputs : sequence of Path
        At least one.
    made_of : mapping
        What they are made of, by what to call it; values that JSON has.
    resume : bool
        Whether to go on with what is there, and to keep it where the block ends with an error.

    Raises
    ------
    FileError
        If another process holds a folder, or one cannot be made.

    Warns
    -----
    FileWarning
        If what is there was made of something else, so that the work starts over.
    """
    wanted = json.loads(json.dumps(made_of))
    folders = [_folder(output, outputs) for output in outputs]
    with ExitStack() as after, ExitStack() as stack:
        by_folder = dict(zip(folders, outputs, strict=True))
        is_left = [
            _held(command, output, folder, stack, resume=resume)
            for folder, output in by_folder.items()
        ]
        kept = Kept(folders, outputs)
        known = kept.load(MANIFEST) if resume and all(is_left) else None
        if known is not None and known != wanted:
            other = next(name for name in wanted if known.get(name) != wanted[name])
            message = (
                f"{command}: what an earlier run left of '{outputs[0]}' cannot be used, as "
                f"{other} changed: it starts over"
            )
            warnings.warn(message, FileWarning, stacklevel=4)
        try:
            _begin(command, kept, outputs, None if known == wanted else wanted)
            yield kept
        except BaseException:
            if not resume:
                _remove(by_folder, after)
            raise
        _remove(by_folder, after)


def _begin(
    command: str, kept: Kept, outputs: Sequence[Path], made_of: Mapping[str, Any] | None
) -> None:
    """Say what things are made of, in the place of all that is there; None if that is of use."""
    try:
        if made_of is not None:
            for folder in kept.folders:
                _clear(folder)
            kept.save(MANIFEST, made_of)
        for output in outputs:
            kept.output(output).take_back(output)
    except OSError as error:  # for example a full disk
        reason = f"cannot be written: {error.strerror}"
        raise FileError.of(command, outputs[0], reason) from error


def _folder(output: Path, outputs: Sequence[Path]) -> Path:
    """Name the folder beside an output, or beside that of the output if it has yet to be made."""
    names = json.dumps(sorted(str(each.resolve()) for each in outputs))
    name = f"{PREFIX}{hashlib.sha256(names.encode()).hexdigest()[:12]}"
    own = output.resolve().parent
    return (own.parent if not own.is_dir() or (own.parent / name).is_dir() else own) / name


def _held(command: str, output: Path, folder: Path, stack: ExitStack, *, resume: bool) -> bool:
    """Hold a folder; tell whether what is in it can be used."""
    try:
        is_left = stack.enter_context(held_folder(folder))
    except BlockingIOError:
        raise FileError.of(command, output, "is being written by another process") from None
    except OSError as error:
        reason = f"folder '{folder}' for what is not whole yet cannot be made: {error.strerror}"
        raise FileError.of(command, output, reason) from error
    remove_abandoned(OF_WRITERS, folder.parent)
    if not resume:
        remove_abandoned(PREFIX, folder.parent)
    return is_left


def _clear(folder: Path) -> None:
    """Remove all but the lock."""
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        elif each.name != LOCK:
            each.unlink()


def _remove(folders: Iterable[Path], after: ExitStack) -> None:
    """Remove folders while they are locked; on Windows, which cannot, after that."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        if os.name == "nt":
            after.callback(shutil.rmtree, folder, ignore_errors=True)
