"""Paths that workflows get: inputs found, outputs checked before any work."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = (".parquet", ".csv", ".json", ".xlsx")
VECTOR = (".gpkg", ".fgb")
RASTER = (".tif", ".tiff")
PICTURE = (".png",)


def input_files(command: str, source: Any) -> list[Path]:
    """Find the files of an argument `source` that is a path, a pattern, or several of them.

    Raises
    ------
    FileError
        If nothing matches a pattern.
    ValueError
        If there is no path, or something else is given.
    """
    from spatialq.io.files import find_files

    sources = _paths(command, "source", source)
    if not sources:
        message = f"{command}: source must be at least one file or pattern, got none"
        raise ValueError(message)
    return [path for each in sources for path in find_files(command, each)]


@dataclass(frozen=True)
class Outputs:
    """The files that a workflow writes; their endings say what each is."""

    command: str
    paths: Sequence[Path]

    @classmethod
    def of(cls, command: str, outputs: Any) -> "Outputs":
        """Read an argument `outputs` that is a path or several.

        Raises
        ------
        ValueError
            If something else is given.
        """
        return cls(command, [Path(each) for each in _paths(command, "outputs", outputs)])

    @property
    def names(self) -> list[str]:
        """The paths as text."""
        return list(map(str, self.paths))

    def ending_in(self, *endings: str) -> list[Path]:
        """Select the paths that have one of the endings."""
        from spatialq.export.atomic import has_ending

        return [path for path in self.paths if any(has_ending(path, each) for each in endings)]

    def check(self, sources: Sequence[Path], endings: Sequence[str]) -> None:
        """Reject outputs that cannot be written, before work is done for them.

        Raises
        ------
        FileError
            If one cannot be written, or is one of the sources.
        ValueError
            If one has none of the endings or is a COPC file, or two are one file.
        """
        from spatialq.export.atomic import COPC, has_ending, require_outputs

        for path in self.paths:
            if has_ending(path, COPC) and COPC not in endings:
                message = (
                    f"{self.command}: output '{path}' must be no COPC file, which cannot be "
                    "written here but by `spatialq lod`"
                )
                raise ValueError(message)
        for source in sources:
            require_outputs(self.command, source, self.paths, endings)


def _paths(command: str, name: str, given: Any) -> list[str | Path]:
    """Give the paths of an argument that may be one or several."""
    if isinstance(given, str | Path):
        return [given]
    if isinstance(given, Sequence) and all(isinstance(each, str | Path) for each in given):
        return list(given)
    message = f"{command}: {name} must be a path or a list of paths, got {given!r}"
    raise ValueError(message)
