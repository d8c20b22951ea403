"""Files that appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spatialq.errors import FileError
from spatialq.io.files import require_file

WRITER = "output"


def require_writable(path: Path) -> None:
    """Refuse a path that cannot be written, before work is done for it.

    Raises
    ------
    FileError
        If its folder is not there or nothing can be written there, or it is a folder itself.
    """
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileError.of(WRITER, path, f"there is no folder '{folder}'")
    if path.exists():
        require_file(WRITER, path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError.of(WRITER, path, f"folder '{folder}' cannot be written to")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a name beside `path` to write to; it becomes `path` when the block ends well.

    A link stays: the file that it points to is written.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    require_writable(path)
    target = path.resolve()
    partial = target.with_name(f".{target.stem}.{os.getpid()}.part{target.suffix}")
    try:
        yield partial
        partial.replace(target)
    except OSError as error:  # a full disk, say
        raise FileError.of(WRITER, path, f"cannot be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
