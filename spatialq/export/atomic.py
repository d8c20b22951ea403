"""Files that appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spatialq.errors import FileError

WRITER = "output"


def require_folder(path: Path) -> None:
    """Refuse a path in a folder that does not exist, before work is done for it.

    Raises
    ------
    FileError
        If there is no such folder.
    """
    if not path.absolute().parent.is_dir():
        raise FileError.of(WRITER, path, f"there is no folder '{path.parent}'")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a name beside `path` to write to; it becomes `path` when the block ends well."""
    require_folder(path)
    partial = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
