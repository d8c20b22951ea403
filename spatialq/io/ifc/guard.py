"""Checks of an IFC file before IfcOpenShell sees it: what it accepts silently is rejected here."""

import contextlib
import mmap
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spatialq.errors import FileError
from spatialq.io.archives import DAMAGED
from spatialq.io.files import require_file
from spatialq.runtime.temporary import temporary_folder

READER = "read_ifc"
FOLDER = "spatialq_ifc_"
"""Begins the names of folders with what a zip holds."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HEAD = 4096
TAIL = 65_536
"""Where the end mark is looked for: some writers add comments or padding after it."""

MAX_UNZIPPED = 4 << 30
MAX_RATIO = 400
"""STEP text shrinks to a tenth, very regular text to a fiftieth; a bomb to a thousandth."""

END_MARK = re.compile(rb"END-ISO-10303-21\s*;")
NOT_ASCII = re.compile(rb"[\x80-\xff]")
ENTITY = re.compile(rb"^[ \t]*#\d+[ \t]*=", re.MULTILINE)


@dataclass(frozen=True)
class StepFile:
    """A STEP text on disk that passed the checks.

    Parameters
    ----------
    path : Path
        The file, or a temporary copy of what a zip holds.
    entities : int
        How many lines of it define an entity.
    warnings : tuple of str
    """

    path: Path
    entities: int
    warnings: tuple[str, ...] = ()


@contextlib.contextmanager
def checked(path: Path) -> Iterator[StepFile]:
    """Check an `.ifc` or `.ifczip` file; what is inside a zip is a temporary file meanwhile.

    Raises
    ------
    FileError
        If it is no file, empty, no STEP file, IFCXML, cut off, or a zip without exactly one IFC
        file or one that is suspiciously large.
    """
    require_file(READER, path)
    try:
        with path.open("rb") as file:
            start = file.read(HEAD)
    except OSError as error:
        raise FileError.of(READER, path, error.strerror or str(error)) from error
    if start.startswith(b"PK\x03\x04"):
        with temporary_folder(FOLDER) as folder:
            yield check_step(unzip(path, folder), path)
    elif start.startswith(BYTE_ORDER_MARK):
        with temporary_folder(FOLDER) as folder:
            copy = folder / "model.ifc"
            copy.write_bytes(path.read_bytes().removeprefix(BYTE_ORDER_MARK))
            step = check_step(copy, path)
            warning = "the file begins with a UTF-8 byte order mark, which STEP forbids; ignored"
            yield StepFile(step.path, step.entities, (*step.warnings, warning))
    else:
        yield check_step(Path(os.fspath(path)), path)  # of an object, a temporary copy


def unzip(path: Path, folder: Path) -> Path:
    """Unpack the one IFC file of a zip.

    Raises
    ------
    FileError
        If there is none, more than one, or it does not unpack to a sensible size.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [
                member
                for member in archive.infolist()
                if member.filename.lower().endswith((".ifc", ".ifcxml", ".xml"))
                and not member.is_dir()
                and not member.filename.startswith("__MACOSX/")
            ]
            step = [member for member in members if member.filename.lower().endswith(".ifc")]
            if not step and members:
                reason = f"holds '{members[0].filename}': IFCXML is not supported, only STEP text"
                raise FileError.of(READER, path, reason)
            if len(step) != 1:
                reason = f"must hold exactly one .ifc file, holds {len(step)}"
                raise FileError.of(READER, path, reason)
            (member,) = step
            limit = min(MAX_UNZIPPED, max(64 << 20, MAX_RATIO * member.compress_size))
            if member.file_size > limit:
                reason = (
                    f"'{member.filename}' would unpack from {member.compress_size:,} to "
                    f"{member.file_size:,} bytes: refused as a zip bomb; unpack it yourself"
                )
                raise FileError.of(READER, path, reason)
            target = folder / "model.ifc"
            # zipfile stops at the size that the directory declares, and checks the sum.
            with archive.open(member) as packed, target.open("wb") as unpacked:
                while block := packed.read(1 << 20):
                    unpacked.write(block)
            return target
    except FileError:
        raise
    except DAMAGED as error:
        raise FileError.of(READER, path, f"the zip cannot be unpacked: {error}") from error


def check_step(step: Path, path: Path) -> StepFile:
    """Check that `step` is a whole STEP text; messages name `path`."""
    size = step.stat().st_size
    if size == 0:
        raise FileError.of(READER, path, "the file is empty")
    with step.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        start = text[:HEAD]
        if b"ISO-10303-21" not in start:
            kind = start.lstrip()[:200].lower()
            if kind.startswith((b"<?xml", b"<ifc", b"<iso")):
                raise FileError.of(READER, path, "IFCXML is not supported, only STEP text (.ifc)")
            raise FileError.of(
                READER, path, "no IFC STEP file: it does not begin with ISO-10303-21;"
            )
        entities = sum(1 for _ in ENTITY.finditer(text))
        if not END_MARK.search(text, max(0, size - TAIL)):
            reason = (
                f"cut off: the end mark END-ISO-10303-21; is missing after {entities:,} entities"
            )
            raise FileError.of(READER, path, reason)
        is_ascii = NOT_ASCII.search(text) is None
    warning = (
        "the file has characters outside of ASCII, which STEP requires to be encoded, as in "
        "\\X2\\00FC\\X0\\; IfcOpenShell leaves them out of texts"
    )
    return StepFile(step, entities, () if is_ascii else (warning,))
