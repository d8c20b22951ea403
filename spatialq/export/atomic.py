"""Files that appear complete or not at all, alone or several together."""

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from errno import ELOOP
from pathlib import Path
from typing import TypeVar

from spatialq.errors import FileError
from spatialq.io import access
from spatialq.io.files import require_file
from spatialq.io.source import COPC
from spatialq.runtime.temporary import temporary_folder

Value = TypeVar("Value")

WRITER = "output"
DATABASE = b"DUCK"
"""What a DuckDB database has after the first 8 bytes."""
STEM = 32
"""Characters of a name that stay in its temporary names, which must not become too long."""
PREFIX = ".spatialq-"
"""Of the folder beside the files in which they are until they appear; the next call removes those
of processes that were killed."""

_new_only: ContextVar[bool] = ContextVar("no file is replaced", default=False)
_group: "ContextVar[_Group | None]" = ContextVar("files that appear together", default=None)


def require_writable(path: Path) -> None:
    """Reject a path that cannot be written, before work is done for it.

    Raises
    ------
    FileError
        If its folder does not exist or is not writable, or the path is a folder itself, or it is a
        database, which is easily named by a link: nobody wants a table or picture in its place.
        Also if the connection that asks must not open it, or it is there within `new_only`.
    """
    access.require(WRITER, path)
    folder = _resolved(path).parent
    group = _group.get()
    if group is not None and folder in group.folders:
        return
    if not folder.is_dir():
        raise FileError.of(WRITER, path, f"there is no folder '{folder}'")
    if path.exists():
        require_file(WRITER, path)
        if _is_database(path):
            raise FileError.of(WRITER, path, "is a DuckDB database, which must not be overwritten")
        if _new_only.get():
            raise FileError.of(WRITER, path, "is there already; overwrite := true replaces it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError.of(WRITER, path, f"folder '{folder}' cannot be written to")


def _is_database(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(12)[8:] == DATABASE
    return False


def has_ending(path: Path, ending: str) -> bool:
    """Whether a name ends so: .laz, of which .copc.laz is none; or is the name metadata.json."""
    name = path.name.lower()
    own = COPC if name.endswith(COPC) else path.suffix.lower()
    return ending in (own, name)


def require_outputs(
    command: str, sources: Sequence[Path], targets: Sequence[Path], endings: Sequence[str]
) -> None:
    """Reject outputs that a command on files cannot write, before work is done for them.

    Raises
    ------
    FileError
        If an output cannot be written, or is one of the sources.
    ValueError
        If an output has none of the endings, or two outputs are the same file.
    """
    inputs = {_identity(source) for source in sources if source.exists()}
    for target in targets:
        if not any(has_ending(target, each) for each in endings):
            message = f"{command}: output '{target}' must end in one of {', '.join(endings)}"
            raise ValueError(message)
        require_writable(target)
        if _identity(target) in inputs:
            raise FileError.of(command, target, "output must be another file than the input")
    require_different(command, targets)


def require_different(command: str, targets: Sequence[Path]) -> None:
    """Reject outputs of which two are one file, also by way of links.

    Raises
    ------
    ValueError
        If two are the same file.
    """
    there: dict[object, Path] = {}
    for other in targets:
        identity = _identity(other)
        if one := there.get(identity):
            got = f"'{one}' twice" if one == other else f"'{one}' and '{other}', which are one"
            message = f"{command}: outputs must be different files, got {got}"
            raise ValueError(message)
        there[identity] = other


def _identity(path: Path) -> object:
    """Give what two names of one file have in common."""
    try:
        status = path.stat()
    except OSError:
        return _resolved(path)
    return status.st_dev, status.st_ino


def _resolved(path: Path) -> Path:
    """Follow links to the file that is meant, which need not be there.

    Raises
    ------
    FileError
        If links lead in a circle.
    """
    try:
        path.resolve().stat()
    except FileNotFoundError:
        pass
    except (OSError, RuntimeError) as error:  # Python 3.12 and before: RuntimeError
        if isinstance(error, RuntimeError) or error.errno == ELOOP:
            reason = "cannot be written: its links lead in a circle"
            raise FileError.of(WRITER, path, reason) from None
    return path.resolve()


def new_folder(path: Path) -> None:
    """Let a folder appear with the files of `together` that are written in it, unless it is there.

    Raises
    ------
    FileError
        If it cannot be made.
    """
    group = _group.get()
    assert group is not None, "files of a folder appear together"
    if path.is_dir() or _resolved(path) in group.folders:
        return
    if path.exists() or path.is_symlink():
        raise FileError.of(WRITER, path, "is no folder")
    require_writable(path)
    group.folders.append(_resolved(path))


@contextmanager
def whole(path: Path, kept: Path | None = None) -> Iterator[Path]:
    """Give a temporary name beside `path`, which becomes `path` if the block ends without an error.

    A link stays; the file to which it points is replaced. Within `together`, the file appears when
    that block ends.

    Parameters
    ----------
    path : Path
    kept : Path, optional
        A name to take instead, on the same file system, of a file that may be there and that stays
        where the block ends with an error.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    require_writable(path)
    group = _group.get()
    if group is None:
        with together(), whole(path, kept) as partial:
            yield partial
        return
    group.begin(path)
    with said_of(path):
        partial = kept or group.temporary(path, "part")
        yield partial
    group.written.append((partial, path))


@contextmanager
def whole_with_parts(
    path: Path, replaced: Path | None = None, kept: Path | None = None
) -> Iterator[tuple[Path, Path, str]]:
    """Give temporary names of a file and of a folder beside it with parts of it, as `whole` does.

    The folder of the file is made if it is missing. Nothing else in it is touched.

    Parameters
    ----------
    path : Path
    replaced : Path, optional
        The folder with parts of the file that is there now, which is removed in the end.
    kept : Path, optional
        A folder for parts to take, as for `whole`.

    Yields
    ------
    file, parts : Path
        The folder for parts is there, and empty unless it was kept.
    name : str
        That the folder will have.

    Raises
    ------
    FileError
        If they cannot be written.
    """
    with together():
        group = _group.get()
        assert group is not None
        new_folder(path.parent)
        with whole(path) as file:
            final = _free_name(_resolved(path))
            parts = kept or group.temporary(final, "parts")
            parts.mkdir(exist_ok=kept is not None)
            yield file, parts, final.name
        group.parts.append((parts, final, replaced))


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


def until_all_appeared(context: "AbstractContextManager[Value]") -> Value:
    """Enter a context, which is left when the files of the block of `together` have appeared.

    Where they do not appear, it is told the error.
    """
    group = _group.get()
    assert group is not None, "files that appear together"
    return group.enter(context)


@contextmanager
def new_only() -> Iterator[None]:
    """Replace no file in the block, neither one that is written nor parts of it."""
    token = _new_only.set(True)
    try:
        yield
    finally:
        _new_only.reset(token)


@contextmanager
def apart() -> Iterator[None]:
    """Let files that are written in the block, such as temporary ones, appear at once.

    They are no part of the block of `together` around it.
    """
    token = _group.set(None)
    try:
        yield
    finally:
        _group.reset(token)


class _Group:
    """Files that appear together; the stack removes what is left of them."""

    def __init__(self, cleanup: ExitStack) -> None:
        self.written: list[tuple[Path, Path]] = []
        self.folders: list[Path] = []
        """That are to appear, too."""
        self.parts: list[tuple[Path, Path, Path | None]] = []
        """Folders with parts of a file, the names that they get, and folders that they replace."""
        self._begun: dict[object, Path] = {}
        self._beside: dict[Path, Path] = {}
        self._cleanup = cleanup

    def enter(self, context: "AbstractContextManager[Value]") -> Value:
        """Enter a context, which is left at the end of the group."""
        return self._cleanup.enter_context(context)

    def begin(self, path: Path) -> None:
        """Reject a file that is one of the group already."""
        identity = _identity(path)
        if one := self._begun.get(identity):
            require_different(WRITER, [one, path])
        self._begun[identity] = path

    def temporary(self, path: Path, role: str) -> Path:
        """Name a file beside the one that a path means, in a folder that is removed in the end."""
        target = _resolved(path)
        parent = target.parent
        if parent in self.folders and not parent.is_dir():
            parent = parent.parent
        if parent not in self._beside:
            self._beside[parent] = self._cleanup.enter_context(temporary_folder(PREFIX, parent))
        name = f"{target.stem[:STEM]}.{secrets.token_hex(4)}.{role}{target.suffix}"
        return self._beside[parent] / name

    def appear(self) -> None:
        """Rename all files; where one cannot be, those before it become what they were."""
        with ExitStack() as undo:
            for folder in self.folders:
                with said_of(folder):
                    folder.mkdir()
                undo.callback(folder.rmdir)
            for parts, final, _ in self.parts:
                with said_of(final):
                    parts.rename(final)
                undo.callback(shutil.rmtree, final, ignore_errors=True)
            for partial, path in self.written:
                target = _resolved(path)
                with said_of(path):
                    if target.exists():
                        if _new_only.get():
                            require_writable(path)  # which it was, and has come meanwhile
                        old = self.temporary(path, "old")
                        with suppress(OSError):  # some file systems have no second names of files
                            old.hardlink_to(target)
                            undo.callback(old.replace, target)
                        partial.replace(target)
                    else:
                        partial.replace(target)
                        undo.callback(target.unlink)
            undo.pop_all()
        for _, final, replaced in self.parts:
            if replaced is not None and replaced != final:
                shutil.rmtree(replaced, ignore_errors=True)


@contextmanager
def said_of(path: Path) -> Iterator[None]:
    """Say of an error of the system which output could not be written."""
    try:
        yield
    except OSError as error:  # for example a full disk
        raise FileError.of(WRITER, path, f"cannot be written: {error.strerror}") from error
