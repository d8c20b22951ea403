"""Files that appear complete or not at all."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from spatialq.errors import FileError
from spatialq.io.files import require_file

WRITER = "output"


def require_writable(path: Path) -> None:
    """Reject a path that cannot be written, before work is done for it.

    Raises
    ------
    FileError
        If its folder does not exist or is not writable, or the path is a folder itself.
    """
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileError.of(WRITER, path, f"there is no folder '{folder}'")
    if path.exists():
        require_file(WRITER, path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError.of(WRITER, path, f"folder '{folder}' cannot be written to")


def require_outputs(
    command: str, source: Path, targets: Sequence[Path], endings: Sequence[str]
) -> None:
    """Reject outputs that a command on a file cannot write, before work is done for them.

    Raises
    ------
    FileError
        If an output cannot be written, or is the source.
    ValueError
        If an output has none of the endings, or two outputs are the same file.
    """
    for target in targets:
        if target.suffix.lower() not in endings:
            message = f"{command}: output '{target}' must end in one of {', '.join(endings)}"
            raise ValueError(message)
        require_writable(target)
        if targets.count(target) > 1:
            message = f"{command}: outputs must be different files, got '{target}' twice"
            raise ValueError(message)
        if source.exists() and target.exists() and target.samefile(source):
            raise FileError.of(command, target, "output must be another file than the input")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`, which becomes `path` if the block ends without an error.

    A link stays; the file to which it points is replaced.

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
    except OSError as error:  # for example a full disk
        raise FileError.of(WRITER, path, f"cannot be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
