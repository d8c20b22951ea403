"""Object storage in DuckDB's own readers: `read_parquet('s3://bucket/parts/*.parquet')`.

DuckDB calls `Objects` in its threads. Objects are read by ranges, with the endpoint, the
credentials and the sentences of `spatialq.io.storage`. They are not written: DuckDB closes a file
in the same way after an error as at its end, so that half a file would become an object.
"""

import errno
import threading
from datetime import UTC, datetime
from typing import Any

from fsspec import AbstractFileSystem

from spatialq.errors import FileError
from spatialq.io.files import find_files
from spatialq.io.storage import ObjectPath, require_url

NAME = "s3"
READER = "read"


class Objects(AbstractFileSystem):  # type: ignore[misc] # of a library without types
    """What DuckDB asks of a file system."""

    protocol = NAME
    cachable = False

    def glob(self, path: str, **_: Any) -> list[str]:
        """List the objects of a pattern, or the one of a name; empty if there is none.

        Raises
        ------
        OSError
            If the server does not say.
        """
        require_url(READER, path)
        try:
            return [str(each) for each in find_files(READER, path) if each.is_file()]
        except FileError as error:
            if "no object matches" in str(error):
                return []
            raise

    def open(self, path: str, mode: str = "rb", **_: Any) -> "_Reading":
        """Open an object to be read.

        Raises
        ------
        OSError
            If it cannot be read, or was to be written.
        """
        if "r" not in mode:
            reason = "DuckDB cannot write objects: COPY TO a file of this machine, and upload it"
            raise OSError(errno.EROFS, reason, path)
        return _Reading(require_url(READER, path))

    def exists(self, path: str, **_: Any) -> bool:
        """Whether there is such an object or folder."""
        return require_url(READER, path).exists()

    def isfile(self, path: str) -> bool:
        """Whether there is such an object."""
        return require_url(READER, path).is_file()

    def isdir(self, path: str) -> bool:
        """Whether there are objects in such a folder."""
        return require_url(READER, path).is_dir()

    def size(self, path: str) -> int:
        """Give the bytes of an object."""
        return require_url(READER, path).found().size

    def modified(self, path: str) -> datetime:
        """Give the time of the last change."""
        return datetime.fromtimestamp(require_url(READER, path).found().changed / 1e9, UTC)


class _Reading:
    """An object that is read, by several threads at a time.

    DuckDB reads at a place in two calls, `seek` and `read`, between which another thread may make
    its own. So a read begins where the same thread sought before; without that, where the last
    read of any thread ended.
    """

    def __init__(self, path: ObjectPath) -> None:
        self._path, self._at = path, 0
        self._own = threading.local()
        path.found()

    def seek(self, offset: int, whence: int = 0) -> int:
        """Let the next read of this thread begin at a place."""
        assert whence == 0
        self._own.place = self._at = offset
        return offset

    def tell(self) -> int:
        """Say where the last read ended."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or fewer at the end.

        Raises
        ------
        OSError
            If the server does not give them.
        """
        own = vars(self._own)
        if "file" not in own:
            own["file"] = self._path.open("rb")
        file, place = own["file"], own.pop("place", self._at)
        file.seek(place)
        content: bytes = file.read(size)
        self._at = place + len(content)
        return content

    def close(self) -> None:
        """Give up what was read ahead."""
        self._own = threading.local()
