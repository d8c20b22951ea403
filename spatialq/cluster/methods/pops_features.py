"""`pops_features` and `pops_patches` of grids: tiles of whole examples, which need no others."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.cluster.folder import CALLER
from spatialq.cluster.job import Call, Job, given
from spatialq.cluster.layout import MOST_TILES
from spatialq.cluster.method import Method
from spatialq.cluster.methods.grids import OF_FILE, check_of_file, open_file
from spatialq.cluster.methods.pops_tiles import write_raster, write_table
from spatialq.cluster.survey import SURVEY, stamp_of
from spatialq.cluster.task import Done, Task, name_of
from spatialq.errors import FileError, FileWarning
from spatialq.execution.frames import Fitted, announce
from spatialq.functions.catalogue import Function, catalogue
from spatialq.io.crs import require_same
from spatialq.io.files import warn_about
from spatialq.io.storage import as_path
from spatialq.udfs.pops_features.division import divide
from spatialq.udfs.pops_features.methods import BUILT_IN

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEAR = 1e-6
"""Tolerance, in examples, within which tiles have a whole number of these."""


def check(more: Mapping[str, Any], _: float | None, options: Any) -> None:
    """Refuse options of files that can be none, and methods that workers do not know.

    Raises
    ------
    ValueError
    """
    check_of_file(more)
    if own := [name for name in options.methods if name not in BUILT_IN]:
        message = (
            f"{CALLER}: methods must be of {', '.join(BUILT_IN)}, as workers know no others, got "
            f"{own[0]!r}"
        )
        raise ValueError(message)


def open_grids(
    function: Function, paths: Sequence[str], options: Any, more: dict[str, Any]
) -> tuple[Fitted, str | None]:
    """Give the parameters, which are fitted to each grid by its own tasks, and the CRS.

    Raises
    ------
    FileError
        If the first file cannot be read.
    CrsError
        If it cannot be reprojected.
    ValueError
        If an option does not fit the first file.

    Warns
    -----
    CrsWarning
        If x and y are degrees, or heights have another unit than x and y.
    """
    from spatialq.database.transport.grid import frame_of

    grid = open_file(function.name, paths[0], more)
    divide(grid.frame, options)
    announce(function, options, [frame_of(grid)])
    return Fitted({}, options), grid.crs


def run(job: Job) -> None:
    """Compute the features of all examples of all grids."""
    call = job.call
    headers = (_header_task(call, path) for path in call.paths)
    done = job.facts(SURVEY, headers, len(call.paths), job.is_unchanged)
    grids = Grids.of(call, done)
    grids.require_few()
    valued = np.zeros(len(call.paths), np.int64)

    def note(part: Done) -> None:
        valued[int(part.name.partition(".")[0].partition("_")[0])] += part.facts["valued"]

    job.parts(grids.tasks(), grids.total, note=note)
    empty = np.flatnonzero(valued == 0)
    if empty.size:
        message = (
            f"{call.function}: {empty.size} of {valued.size} grids have no value, such as "
            f"'{call.paths[int(empty[0])]}': all cells of their examples are missing"
        )
        warnings.warn(message, FileWarning, stacklevel=2)


def _header_task(call: Call, path: str) -> Task:
    data = {"path": path, "first": (call.paths[0], call.crs), "options": given(call.options)}
    data |= {"function": call.function, "of_file": _of_file(call)}
    return Task(path, name_of(look_at), data)


def _of_file(call: Call) -> dict[str, Any]:
    return {name: call.more[name] for name in OF_FILE}


def look_at(data: dict[str, Any], _: Path) -> dict[str, Any]:
    """Read the header of a file and divide its grid.

    Returns
    -------
    dict
        `stamp`; `examples`, how many along x and y; `steps`, in units of x and y.

    Raises
    ------
    FileError
        If the file cannot be read, or has no place for an example.
    CrsError
        If its CRS is another one than that of the first.
    """
    path, function = as_path(data["path"]), data["function"]
    stamp = stamp_of(path)
    grid = open_file(function, data["path"], data["of_file"])
    require_same(function, [data["first"], (path, grid.crs)])
    warn_about(function, grid)
    frame = grid.frame
    try:
        division = divide(frame, catalogue()[function].choose(data["options"]))
    except ValueError as error:
        reason = str(error).removeprefix(f"{function}: ")
        raise FileError.of(function, path, reason) from None
    x, y = division.x, division.y
    steps = [x.step * frame.dx, y.step * frame.dy]
    return {"stamp": stamp, "examples": [x.count, y.count], "steps": steps}


@dataclass(frozen=True)
class Grids:
    """All grids of a job, in the order of their files; arrays have a row for each."""

    call: Call
    stamps: "NDArray[np.int64]"
    """int64[n, 2]: times of the last change and sizes."""
    examples: "NDArray[np.int64]"
    """int64[n, 2]: how many along x and y."""
    each: "NDArray[np.int64]"
    """int64[n, 2]: how many of them a tile has, but for the last ones."""

    @classmethod
    def of(cls, call: Call, done: Iterable[Done]) -> "Grids":
        """Put together what the tasks found out, in the order of the files."""
        n = len(call.paths)
        number = {path: k for k, path in enumerate(call.paths)}
        stamps, examples = np.zeros((n, 2), np.int64), np.ones((n, 2), np.int64)
        steps = np.ones((n, 2))
        for file in done:
            k, facts = number[file.name], file.facts
            stamps[k], examples[k] = facts["stamp"][:2], facts["examples"]
            steps[k] = facts["steps"]
        each = examples
        if call.tile_size is not None:
            fit = np.minimum(np.floor(call.tile_size / steps + NEAR), examples)
            each = np.maximum(1, fit.astype(np.int64))
        return cls(call, stamps, examples, each)

    @property
    def total(self) -> int:
        """Tiles of all grids."""
        return int((-(-self.examples // self.each)).prod(axis=1).sum())

    def require_few(self) -> None:
        """Refuse tiles of which there would be too many.

        Raises
        ------
        ValueError
        """
        if self.call.tile_size is not None and self.total > MOST_TILES:
            message = (
                f"{CALLER}: tile_size must give at most {MOST_TILES} tiles, got "
                f"{self.call.tile_size!r}, of which there are {self.total}"
            )
            raise ValueError(message)

    def tasks(self) -> Iterator[Task]:
        """Give the task of each tile."""
        call = self.call
        work = name_of(write_raster if call.part_format == "tif" else write_table)
        shared = {
            "function": call.function,
            "options": given(call.options),
            "of_file": _of_file(call),
            "device": call.device,
            "is_named": len(call.paths) > 1,
        }
        for k, path in enumerate(call.paths):
            file = shared | {"path": path, "stamp": self.stamps[k].tolist()}
            for name, tile in self._tiles(k):
                whole = f"{k:07}{name}.{call.part_format}"
                yield Task(whole, work, file | {"tile": tile})

    def _tiles(self, k: int) -> Iterator[tuple[str, list[list[int]]]]:
        (columns, rows), (across, along) = self.examples[k].tolist(), self.each[k].tolist()
        for west in range(0, columns, across):
            for south in range(0, rows, along):
                is_all = self.call.tile_size is None
                name = "" if is_all else f"_{west // across}_{south // along}"
                tile = [
                    [west, min(west + across, columns)],
                    [south, min(south + along, rows)],
                ]
                yield name, tile


METHODS = tuple(
    Method(
        function,
        run,
        kind="grid",
        open=open_grids,
        formats=formats,
        more=OF_FILE,
        check=check,
    )
    for function, formats in (("pops_features", ("parquet", "tif")), ("pops_patches", ("parquet",)))
)
"""Those of both functions, whose tasks do the same."""
