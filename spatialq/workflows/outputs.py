"""Paths that workflows get: inputs found, outputs checked before any work."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spatialq.data.frame import Frame
from spatialq.errors import FileError
from spatialq.io.formats import SLASHES, Kind, find_sources, would_match
from spatialq.io.source import COPC, LAS
from spatialq.runtime.extras import require

PARQUET = ".parquet"
TABLE = (PARQUET, ".csv", ".json", ".xlsx")
VECTOR = (".gpkg", ".fgb")
RASTER = (".tif", ".tiff")
PICTURE = (".png",)


def input_files(command: str, source: object, kind: Kind = "points") -> list[Path]:
    """Find the files of an argument `source`: a path, a pattern, a folder, or several of them.

    Raises
    ------
    FileError
        As `find_sources`.
    ValueError
        If there is no path, or something else is given.
    """
    sources = _paths(command, "source", source)
    if not sources:
        message = f"{command}: source must be at least one file or pattern, got none"
        raise ValueError(message)
    return find_sources(command, sources, kind)


def named(paths: Sequence[Path]) -> str:
    """Name input files for people."""
    return paths[0].name if len(paths) == 1 else f"{len(paths)} files"


def subject(paths: Sequence[Path]) -> str:
    """Name input files at the beginning of a sentence about their coordinates."""
    return f"'{paths[0]}'" if len(paths) == 1 else named(paths)


def frame_of(
    paths: Sequence[Path], crs: str | None, to_crs: str | None, *, is_announced: bool = False
) -> Frame:
    """Say whose coordinates those of input files are, which may have been reprojected."""
    if to_crs is None:
        return Frame(subject(paths), crs, is_announced=is_announced)
    remedy = "give to_crs a projected CRS, such as EPSG:25832"
    moved = f"{subject(paths)} after to_crs"
    return Frame(moved, crs, remedy=remedy, is_announced=is_announced)


@dataclass(frozen=True)
class Outputs:
    """The files that a workflow writes; their endings say what each is."""

    command: str
    paths: Sequence[Path]
    folders: Sequence[Path] = ()
    """Each gets a file for each input."""

    @classmethod
    def of(cls, command: str, outputs: object, files: Sequence[str] | None = None) -> "Outputs":
        """Read an argument `outputs` that is a path or several.

        Parameters
        ----------
        command : str
        outputs : path or paths
        files : sequence of str, optional
            Endings of files, where folders may be written as well: a name that ends in a slash, or
            that of a folder that is there and has none of the endings.

        Raises
        ------
        ValueError
            If something else is given.
        """
        paths: list[Path] = []
        found: list[Path] = []
        for each in _paths(command, "outputs", outputs):
            path = Path(each)
            is_folder = files is not None and (
                str(each).endswith(SLASHES) or (path.is_dir() and path.suffix.lower() not in files)
            )
            (found if is_folder else paths).append(path)
        return cls(command, paths, found)

    @property
    def names(self) -> list[str]:
        """The paths as text."""
        return [*map(str, self.paths), *(f"{folder}/" for folder in self.folders)]

    @property
    def beside(self) -> Path | None:
        """The folder in which the first output lies, where there is room for temporary files."""
        if self.paths:
            folder = self.paths[0].resolve().parent
            return folder if folder.is_dir() else folder.parent
        if self.folders:
            first = self.folders[0].resolve()
            return first if first.is_dir() else first.parent
        return None

    def ending_in(self, *endings: str) -> list[Path]:
        """Select the paths that have one of the endings."""
        from spatialq.export.atomic import has_ending

        return [path for path in self.paths if any(has_ending(path, each) for each in endings)]

    def in_folder(self, folder: Path, sources: Sequence[Path]) -> list[Path]:
        """Name the file of each input in a folder: as the input, or its stem with .laz."""
        return [folder / _name_of_output(source) for source in sources]

    def check(self, sources: Sequence[Path], endings: Sequence[str]) -> None:
        """Reject outputs that cannot be written, before work is done for them.

        Raises
        ------
        FileError
            If one cannot be written, needs an extra that is not installed, or is one of the
            sources, or two inputs have one name in a folder.
        ValueError
            If one has none of the endings or is a COPC file, or two are one file.
        """
        from spatialq.database.writers import find_writer
        from spatialq.export.atomic import has_ending, new_folder, require_outputs

        for path in self.paths:
            if writer := find_writer(path):
                require(writer.extra, self.command, path)
            if has_ending(path, COPC) and COPC not in endings:
                message = (
                    f"{self.command}: output '{path}' must be no COPC file: write a .laz, "
                    "of which spatialq lod makes one"
                )
                raise ValueError(message)
            if not path.suffix and set(LAS) <= set(endings):
                message = (
                    f"{self.command}: output '{path}' must end in one of {', '.join(endings)}, or "
                    "in a slash to be a folder with a file for each input"
                )
                raise ValueError(message)
            if path.name.lower() in endings:  # one of several files in a folder of their own
                new_folder(path.parent)
        targets = list(self.paths)
        for folder in self.folders:
            new_folder(folder)
            self.require_names(folder, sources)
            targets += self.in_folder(folder, sources)
        require_outputs(self.command, sources, targets, endings)

    def require_outside(
        self, given: object, sources: Sequence[Path], kinds: Sequence[Kind] = ("points",)
    ) -> None:
        """Reject outputs that the next run would read, since they are new in a folder of inputs.

        Parameters
        ----------
        given : path or paths
            What the user gave as `source`.
        sources : sequence of Path
            The files that it means.
        kinds : sequence of str
            What is read of a folder.

        Raises
        ------
        FileError
            If an output matches a pattern, or is of these kinds and in a folder that is given.
        """
        targets = [*self.paths]
        for folder in self.folders:
            targets += self.in_folder(folder, sources)
        for each in _paths(self.command, "source", given):
            for target in targets:
                if would_match(each, target, kinds):
                    reason = f"output must not be one of '{each}', which the next run would read"
                    raise FileError.of(self.command, target, reason)

    def require_names(self, folder: Path, sources: Sequence[Path]) -> None:
        """Reject a folder in which two inputs would have one name.

        Raises
        ------
        FileError
            If there are two.
        """
        there: dict[str, Path] = {}
        for source, target in zip(sources, self.in_folder(folder, sources), strict=True):
            if one := there.get(target.name):
                reason = (
                    f"'{one}' and '{source}' would both be '{target.name}' in it; rename one of "
                    "them, or write one file"
                )
                raise FileError.of(self.command, f"{folder}/", reason)
            there[target.name] = source


def _name_of_output(source: Path) -> str:
    name = source.name
    if name.lower().endswith(COPC):
        return f"{name[: -len(COPC)]}{source.suffix}"
    return name if source.suffix.lower() in LAS else f"{source.stem}.laz"


def _paths(command: str, name: str, given: object) -> list[str | Path]:
    """Give the paths of an argument that may be one or several."""
    if isinstance(given, str | Path):
        return [given]
    if isinstance(given, Sequence) and all(isinstance(each, str | Path) for each in given):
        return list(given)
    message = f"{command}: {name} must be a path or a list of paths, got {given!r}"
    raise ValueError(message)
