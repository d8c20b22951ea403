"""Copies of files of earlier stages, which a worker fetches from object storage for its tasks.

Many tasks of a worker need the same ones, such as the terrain of a whole survey. A worker therefore
keeps what it has fetched, while that leaves enough room on the disk.
"""

import shutil
from errno import ENOSPC
from pathlib import Path
from typing import Any

from spatialq.cluster.folder import CALLER
from spatialq.errors import FileError
from spatialq.io.storage import SCHEME, Copies, ObjectPath, as_path

PREFIX = "spatialq_stages_"
KEPT = 1 / 4
"""Bytes that a worker keeps at most between two tasks, as a share of those that are free on the
disk: workers that share a disk then leave room for each other."""


class StageFiles:
    """The copies of one worker, which does one task at a time."""

    def __init__(self) -> None:
        self._copies = Copies(PREFIX)

    def here(self, data: Any, start: str = f"{SCHEME}//") -> Any:
        """Replace names in the data of a task by those of copies.

        A folder of which a task needs few files has a "/" at the end of its name, which stays as
        it is: the task asks for these files itself.

        Parameters
        ----------
        data : values of JSON
        start : str
            How the names of files and folders begin that must be fetched; by default URLs.

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
            return self._copy(as_path(data))
        return data

    def trim(self) -> None:
        """Remove the copies that have not been used for longest, if there are too many bytes."""
        most = KEPT * shutil.disk_usage(self._copies.folder).free
        self._copies.trim(most, lambda found: found.size)

    def close(self) -> None:
        """Remove all copies; the worker can go on with new ones."""
        self._copies.close()

    def _copy(self, path: Path) -> str:
        """Give the copy of an object, or the folder with those of all objects in a folder."""
        assert isinstance(path, ObjectPath)
        try:
            if path.is_file():
                return str(self._kept(path))
            folder: Path = self._copies.folder / path.key
            folder.mkdir(parents=True, exist_ok=True)
            for found in path.objects():
                self._kept(path.other(found))
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
            raise FileError.of(CALLER, path, reason) from None
        return str(folder)

    def _kept(self, path: ObjectPath) -> Path:
        try:
            return self._copies.get(path, path.key)
        except OSError as error:
            if error.errno != ENOSPC:
                raise
            reason = (
                f"its {path.found().size} bytes have no room in '{self._copies.folder}', a "
                "temporary folder: set TMPDIR to one on a larger disk"
            )
            raise FileError.of(CALLER, path, reason) from None


STAGE_FILES = StageFiles()
"""Those of this process."""
