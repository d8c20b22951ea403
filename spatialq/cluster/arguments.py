"""Arguments of jobs, checked before anything is written."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spatialq.cluster.folder import CALLER, MANIFEST, OWN, PARTS, JobFolder, folder_of
from spatialq.database.writers import find_writer
from spatialq.errors import FileError
from spatialq.io.files import is_pattern, matches, require_name
from spatialq.io.formats import Kind, find_sources, would_match
from spatialq.io.storage import ObjectPath, as_path
from spatialq.runtime.budget import parse_size
from spatialq.runtime.extras import require


def check_types(*, resume: object, memory: str | float | None, progress: object) -> None:
    """Refuse arguments that are of a wrong type.

    Raises
    ------
    ValueError
        If `resume` is no bool, `memory` no size, or `progress` cannot be called.
    """
    if not isinstance(resume, bool):
        message = f"{CALLER}: resume must be true or false, got {resume!r}"
        raise ValueError(message)
    if memory is not None:
        parse_size(memory, f"{CALLER}: memory")
    if progress is not None and not callable(progress):
        message = f"{CALLER}: progress must be a function or None, got {progress!r}"
        raise ValueError(message)


def files_of_job(source: object, kind: Kind, argument: str = "source") -> list[Path]:
    """Give the files of a job, or of another argument of it.

    Raises
    ------
    FileError
        As `find_sources`.
    ValueError
        If there are none, or `source` is neither a path nor several.
    """
    found = find_sources(CALLER, _several(source, argument), kind)
    if not found:
        message = f"{CALLER}: {argument} must be at least one file, pattern or folder, got none"
        raise ValueError(message)
    for path in found:
        require_name(CALLER, path)
    return [path.resolve() for path in found]


def _path(given: Any) -> Any:
    is_other = isinstance(given, os.PathLike) and not isinstance(given, Path)
    return Path(given) if is_other else given


def _several(source: object, argument: str = "source") -> list[str | Path]:
    several = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(several, Sequence) and not isinstance(several, bytes):
        given = [_path(each) for each in several]
        if all(isinstance(each, str | Path) for each in given):
            return given
    message = f"{CALLER}: {argument} must be a path or a list of paths, got {source!r}"
    raise ValueError(message)


def new_folder_of(
    folder: Any, source: object, files: Sequence[Path], part_format: str
) -> JobFolder:
    """Give the folder of a job that is run, which is not made yet.

    Parameters
    ----------
    folder : path
    source : path or paths
        What the user gave.
    files : sequence of Path
        The files that it means.
    part_format : str
        The ending of the parts.

    Raises
    ------
    FileError
        If it is a file; if a file of the job is in it, or `source` would mean its own files; if
        its parts need an extra that is not installed.
    ValueError
        If it is no path, a bucket, or a URL that cannot be read.
    """
    if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
        message = f"{CALLER}: folder must be the path of a folder, got {folder!r}"
        raise ValueError(message)
    found = folder_of(CALLER, folder)
    path = found.path
    if isinstance(path, ObjectPath):
        if not path.key:
            message = (
                f"{CALLER}: folder must be one in the bucket, such as '{path}/out', got '{folder}'"
            )
            raise ValueError(message)
    elif path.exists() and not path.is_dir():
        raise FileError.of(CALLER, folder, "folder must be a folder, this is a file")
    if writer := find_writer(Path(f"part.{part_format}")):
        require(writer.extra, CALLER, folder)
    own = path.resolve()
    for each in files:
        if each.parent == own or _is_within(each, own):
            reason = f"this file of source is in the folder of the job, '{folder}': take another"
            raise FileError.of(CALLER, each, reason)
    for given in filter(_means_several, _several(source)):
        # parts may have the names of their files, all of which fit if one does
        named = next((f"{each.stem}.{part_format}" for each in files if matches(given, each)), "")
        written = own / PARTS / f"0000000.{part_format}", own / PARTS / named, own / MANIFEST
        if any(would_match(given, target) for target in written):
            reason = f"files of the job in this folder would be found as source '{given}', too"
            raise FileError.of(CALLER, folder, f"{reason}: take a folder elsewhere")
    return found


def _means_several(given: str | Path) -> bool:
    return is_pattern(given) or not as_path(given).is_file()


def _is_within(file: Path, folder: Path) -> bool:
    """Whether a file is in one of the folders that a job makes in its own."""
    return any((folder / name) in file.parents for name in OWN)
