"""Files that appear complete or not at all, alone or several together, with folders of parts."""

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from itertools import combinations
from pathlib import Path

from spatialq.errors import FileError
from spatialq.io.files import require_file
from spatialq.runtime.temporary import temporary_folder

WRITER = "output"
DATABASE = b"DUCK"
"""What a DuckDB database has after the first 8 bytes."""
STEM = 32
"""Characters of a name that stay in its temporary names, which must not become too long."""

_group: "ContextVar[_Group | None]" = ContextVar("files that appear together", default=None)


def require_writable(path: Path) -> None:
    """Reject a path that cannot be written, before work is done for it.

    Raises
    ------
    FileError
        If its folder does not exist or is not writable, or the path is a folder itself, or it is a
        database, which is easily named by a link: nobody wants a table or picture in its place.
    """
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileError.of(WRITER, path, f"there is no folder '{folder}'")
    if path.exists():
        require_file(WRITER, path)
        if _is_database(path):
            raise FileError.of(WRITER, path, "is a DuckDB database, which must not be overwritten")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError.of(WRITER, path, f"folder '{folder}' cannot be written to")


def _is_database(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(12)[8:] == DATABASE
    return False


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
        if source.exists() and target.exists() and target.samefile(source):
            raise FileError.of(command, target, "output must be another file than the input")
    require_different(command, targets)


def require_different(command: str, targets: Sequence[Path]) -> None:
    """Reject outputs of which two are one file, also by way of links.

    Raises
    ------
    ValueError
        If two are the same file.
    """
    for one, other in combinations(targets, 2):
        if _is_same(one, other):
            got = f"'{one}' twice" if one == other else f"'{one}' and '{other}', which are one"
            message = f"{command}: outputs must be different files, got {got}"
            raise ValueError(message)


def _is_same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`, which becomes `path` if the block ends without an error.

    A link stays; the file to which it points is replaced. Within `together`, the file appears when
    that block ends.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    require_writable(path)
    group = _group.get()
    if group is None:
        with together(), whole(path) as partial:
            yield partial
        return
    group.begun.append(path)
    require_different(WRITER, group.begun)
    partial = group.temporary(path, "part")
    with _said_of(path):
        yield partial
    group.written.append((partial, path))


def require_writable_with_folder(path: Path) -> None:
    """Reject a file in a folder that may be missing, if neither can be written.

    Raises
    ------
    FileError
        As `require_writable`; of a folder that is missing, if it cannot be made.
    """
    folder = path.resolve().parent
    require_writable(path if folder.is_dir() else folder)


@contextmanager
def whole_with_folder(path: Path, replaced: Path | None = None) -> Iterator[tuple[Path, Path, str]]:
    """Give temporary names of a file and of a folder with parts of it, as `whole` does.

    The folder of the file is made if it is missing. Nothing else in it is touched.

    Parameters
    ----------
    path : Path
    replaced : Path, optional
        The folder with parts of the file that is there now, which is removed in the end.

    Yields
    ------
    file, folder : Path
        The folder is there and empty.
    name : str
        Name that the folder will have beside the file.

    Raises
    ------
    FileError
        If they cannot be written.
    """
    require_writable_with_folder(path)
    group = _group.get()
    if group is None:
        with together(), whole_with_folder(path, replaced) as names:
            yield names
        return
    group.begun.append(path)
    require_different(WRITER, group.begun)
    with _said_of(path):
        file, parts = group.staged(path)
        final = _free_name(path.resolve())
        yield file, parts, final.name
    group.folders.append((parts, final, replaced))
    group.written.append((file, path))


def _free_name(path: Path) -> Path:
    """Name a folder beside a file: like the file, with a number if there is one already."""
    name, number = path.with_suffix(""), 2
    while name.exists():
        name, number = path.with_name(f"{path.stem}-{number}"), number + 1
    return name


@contextmanager
def together() -> Iterator[None]:
    """Let all files that are written in the block appear when it ends, or none if it fails.

    A block within another one is a part of it.

    Raises
    ------
    FileError
        If one cannot be written: then the files that were there before are there again.
    """
    if _group.get() is not None:
        yield
        return
    with ExitStack() as cleanup:
        group = _Group(cleanup)
        token = _group.set(group)
        try:
            yield
        finally:
            _group.reset(token)
        group.appear()


class _Group:
    """Files that appear together; the stack removes what is left of them."""

    def __init__(self, cleanup: ExitStack) -> None:
        self.begun: list[Path] = []
        self.written: list[tuple[Path, Path]] = []
        self.folders: list[tuple[Path, Path, Path | None]] = []
        self._cleanup = cleanup

    def temporary(self, path: Path, role: str) -> Path:
        """Name a file beside the one that a path means, to be removed in the end."""
        target = path.resolve()
        stem = target.stem[:STEM]
        name = target.with_name(f".{stem}.{secrets.token_hex(4)}.{role}{target.suffix}")
        self._cleanup.callback(name.unlink, missing_ok=True)
        return name

    def staged(self, path: Path) -> tuple[Path, Path]:
        """Name a file, and make a folder for its parts, where both can be renamed from."""
        target = path.resolve()
        home = target.parent
        beside = home if home.is_dir() else home.parent
        folder = self._cleanup.enter_context(temporary_folder(f".{target.stem[:STEM]}-", beside))
        parts = folder / "parts"
        parts.mkdir()
        return folder / target.name, parts

    def appear(self) -> None:
        """Rename all; where one cannot be, those before it become what they were."""
        with ExitStack() as undo:
            for parts, final, _ in self.folders:
                with _said_of(final):
                    if not final.parent.is_dir():
                        final.parent.mkdir()
                        undo.callback(final.parent.rmdir)
                    parts.rename(final)
                    undo.callback(shutil.rmtree, final, ignore_errors=True)
            for partial, path in self.written:
                target = path.resolve()
                with _said_of(path):
                    if target.exists():
                        old = self.temporary(path, "old")
                        with suppress(OSError):  # some file systems have no second names of files
                            old.hardlink_to(target)
                            undo.callback(old.replace, target)
                        partial.replace(target)
                    else:
                        partial.replace(target)
                        undo.callback(target.unlink)
            undo.pop_all()
        for _, _, replaced in self.folders:
            if replaced is not None:
                shutil.rmtree(replaced, ignore_errors=True)


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # for example a full disk
        raise FileError.of(WRITER, path, f"cannot be written: {error.strerror}") from error
