"""Copies of files of earlier stages, which a worker fetches from object storage for its tasks.

Many tasks of a worker need the same ones, such as the terrain of a whole survey. A worker therefore
keeps what it has fetched, while that leaves enough room on the disk.
"""

import atexit
import shutil
from collections import OrderedDict
from contextlib import ExitStack
from errno import ENOSPC
from pathlib import Path
from typing import Any

from spatialq.cluster.folder import CALLER
from spatialq.errors import FileError
from spatialq.io.storage import ObjectInfo, ObjectPath, as_path, is_url
from spatialq.runtime.temporary import temporary_folder

PREFIX = "spatialq_stages_"
KEPT = 1 / 4
"""Bytes that a worker keeps at most between two tasks, as a share of those that are free on the
disk: workers that share a disk then leave room for each other."""


class StageFiles:
    """The copies of one worker, which does one task at a time."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._folder: Path | None = None
        self._kept: OrderedDict[Path, ObjectInfo] = OrderedDict()
        """What each copy is of, the one that was used last at the end."""

    def here(self, data: Any, start: str) -> Any:
        """Replace names in the data of a task by those of copies.

        A folder of which a task needs few files has a "/" at the end of its name, which stays as
        it is: the task asks for the files by `one`.

        Parameters
        ----------
        data : values of JSON
        start : str
            How the names of files and folders begin that must be fetched.

        Raises
        ------
        FileError
            If one cannot be read, or the disk is full.
        """
        if isinstance(data, dict):
            return {name: self.here(each, start) for name, each in data.items()}
        if isinstance(data, list | tuple):
            return [self.here(each, start) for each in data]
        if isinstance(data, str) and data.startswith(start) and not data.endswith("/"):
            return str(self._copy(as_path(data)))
        return data

    def one(self, name: str) -> str:
        """Give the copy of a file, or the file itself if it is one of this machine.

        Raises
        ------
        FileError
            If it cannot be read, or the disk is full.
        """
        return str(self._copy(as_path(name))) if is_url(name) else name

    def trim(self) -> None:
        """Remove the copies that have not been used for longest, if there are too many bytes."""
        kept = sum(found.size for found in self._kept.values())
        while self._folder and kept > KEPT * shutil.disk_usage(self._folder).free:
            copy, found = self._kept.popitem(last=False)
            copy.unlink(missing_ok=True)
            kept -= found.size

    def close(self) -> None:
        """Remove all copies; the worker can go on with new ones."""
        self._stack.close()
        self._folder = None
        self._kept.clear()

    def _copy(self, path: Path) -> Path:
        assert isinstance(path, ObjectPath)
        try:
            return self._copied(path)
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
            raise FileError.of(CALLER, path, reason) from None

    def _copied(self, path: ObjectPath) -> Path:
        """Give the copy of an object, or the folder with those of all objects in a folder."""
        if self._folder is None:
            self._folder = self._stack.enter_context(temporary_folder(PREFIX))
            atexit.register(self.close)
        target: Path = self._folder / path.key
        if path.is_file():
            self._keep(path, target)
            return target
        target.mkdir(parents=True, exist_ok=True)
        there = {self._folder / found.key: path.other(found) for found in path.objects()}
        for old in {copy for copy in self._kept if target in copy.parents} - there.keys():
            del self._kept[old]
            old.unlink(missing_ok=True)
        for copy, each in there.items():
            self._keep(each, copy)
        return target

    def _keep(self, path: ObjectPath, copy: Path) -> None:
        found = path.found()
        if self._kept.get(copy) != found:
            copy.parent.mkdir(parents=True, exist_ok=True)
            try:
                path.fetch(copy)
            except OSError as error:
                if error.errno != ENOSPC:
                    raise
                reason = (
                    f"its {found.size} bytes have no room in '{self._folder}', a temporary folder: "
                    "set TMPDIR to one on a larger disk"
                )
                raise FileError.of(CALLER, path, reason) from None
            self._kept[copy] = found
        self._kept.move_to_end(copy)


STAGE_FILES = StageFiles()
"""Those of this process."""
