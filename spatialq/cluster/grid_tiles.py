"""Jobs on grids: tiles of whole windows, as the output of a function declares them.

Each grid is one of its own, and a tile needs no others.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.folder import CALLER
from spatialq.cluster.grids import OF_FILE, open_again, open_file
from spatialq.cluster.job import Job, given
from spatialq.cluster.layout import MOST_TILES
from spatialq.cluster.survey import SURVEY, stamp_of
from spatialq.cluster.task import Done, Task, name_of, named
from spatialq.data.grid import WindowAxis, count_values
from spatialq.database.transport.grid import frame_of
from spatialq.errors import FileError, FileWarning
from spatialq.execution.call import call
from spatialq.functions.catalogue import catalogue
from spatialq.io.crs import require_same
from spatialq.io.files import warn_about
from spatialq.io.source import ROW_GROUP
from spatialq.io.storage import as_path
from spatialq.runtime.arrays import Ints
from spatialq.runtime.callers import level_of_caller

NEAR = 1e-6
"""Tolerance, in windows, within which tiles have a whole number of these."""
Write = Callable[["Tile", Path], dict[str, Any]]


def run(job: Job, write: "Write | None" = None) -> None:
    """Have a task done for each file, which looks at it, and one for each tile.

    `write` writes a part of the result and gives its `rows`; without it, parts are Parquet.
    """
    call = job.call
    n = len(call.paths)
    shared = {
        "function": call.function,
        "options": given(replace(call.options, crs=None)),
        "of_file": {**{name: call.more[name] for name in OF_FILE}, "crs": call.options.crs},
        "first": (call.paths[0], call.crs),
        "write": name_of(write or write_bands),
        "device": call.device,
        "is_named": n > 1,
    }
    headers = (Task(path, name_of(look_at), shared | {"path": path}) for path in call.paths)
    tiles = Tiles.of(job, job.facts(SURVEY, headers, n, job.is_unchanged))
    tasks = (Task(name, name_of(perform), shared | tile) for name, tile in tiles.named())
    valued = np.zeros(n, np.int64)

    def note(part: Done) -> None:
        valued[int(part.name.partition(".")[0].partition("_")[0])] += part.facts["valued"]

    job.parts(tasks, tiles.total, note=note)
    empty = np.flatnonzero(valued == 0)
    if empty.size:
        message = (
            f"{call.function}: {empty.size} of {n} grids have no value, such as "
            f"'{call.paths[int(empty[0])]}': all cells of their examples are missing"
        )
        warnings.warn(message, FileWarning, stacklevel=level_of_caller())


@dataclass(frozen=True)
class Tiles:
    """The tiles of all grids of a job, in the order of their files; arrays have a row for each."""

    job: Job
    stamps: Ints
    """int64[n, 2]: times of the last change and sizes."""
    windows: Ints
    """int64[n, 2]: how many along x and y."""
    each: Ints
    """int64[n, 2]: how many of them a tile has, but for the last ones."""

    @classmethod
    def of(cls, job: Job, done: Iterable[Done]) -> "Tiles":
        """Put together what the tasks found out, in the order of the files.

        Raises
        ------
        ValueError
            If there would be too many tiles.
        """
        paths, side = job.call.paths, job.call.tile_size
        n, number = len(paths), {path: k for k, path in enumerate(paths)}
        stamps, windows = np.zeros((n, 2), np.int64), np.ones((n, 2), np.int64)
        steps = np.ones((n, 2))
        for file in done:
            k, facts = number[file.name], file.facts
            stamps[k], windows[k] = facts["stamp"][:2], facts["windows"]
            steps[k] = facts["steps"]
        each = windows
        if side is not None:
            fit = np.minimum(np.floor(side / steps + NEAR), windows)
            each = np.maximum(1, fit.astype(np.int64))
        tiles = cls(job, stamps, windows, each)
        if side is not None and tiles.total > MOST_TILES:
            message = (
                f"{CALLER}: tile_size must give at most {MOST_TILES} tiles, got {side!r}, of which "
                f"there are {tiles.total}"
            )
            raise ValueError(message)
        return tiles

    @property
    def total(self) -> int:
        """Tiles of all grids."""
        return int((-(-self.windows // self.each)).prod(axis=1).sum())

    def named(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the name of the part of each tile, and what its task gets of it."""
        call = self.job.call
        for k, path in enumerate(call.paths):
            file = {"path": path, "stamp": self.stamps[k].tolist()}
            (columns, rows), (across, along) = self.windows[k].tolist(), self.each[k].tolist()
            for west in range(0, columns, across):
                for south in range(0, rows, along):
                    name = f"{k:07}"
                    if call.tile_size is not None:
                        name += f"_{west // across}_{south // along}"
                    tile = [
                        [west, min(west + across, columns)],
                        [south, min(south + along, rows)],
                    ]
                    yield f"{name}.{call.part_format}", file | {"tile": tile}


class Tile:
    """Some adjacent windows of a grid, whose cells are read in bands.

    Raises
    ------
    FileError
        If the file cannot be read, or was changed since the job began.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.function = catalogue()[data["function"]]
        self.options = self.function.choose(data["options"])
        self.source = open_again(self.function.name, data)
        self.columns, self.rows = (range(*each) for each in data["tile"])
        """The windows along x and y."""
        self.facts: dict[str, Any] = {"valued": 0}
        """What is recorded of the task: how many cells have a value, and the `device`."""

    def bands(self) -> Iterator[dict[str, Any]]:
        """Give the columns of the function band by band, as a call on the file does.

        Raises
        ------
        FileError
            If the data are damaged.
        ValueError
            If a height is infinite.
        """
        source, frame = self.source, self.source.frame
        find_windows, whose = self.function.output.windows, f"{self.function.name}: '{source.path}'"
        west, east = _cells(find_windows(frame, self.options).x, self.columns, frame.columns)
        there = replace(frame, z=np.empty((0, east - west), np.float32), first_column=west)
        windows = find_windows(there, self.options)
        for south, north in windows.bands(east - west, self.rows):
            grid = source.grid(south, north, (west, east))
            self.facts["valued"] += count_values(whose, grid)
            found, self.facts["device"] = call(
                self.function, {"grid": grid}, self.options, self.data["device"], transport="files",
                frame=frame_of(source, is_announced=True),
            )  # fmt: skip
            yield found


def _cells(axis: WindowAxis, windows: range, n: int) -> tuple[int, int]:
    """Give the first of the n cells along an axis that windows have, and the one behind the last.

    Cells between windows and behind the last one are read by some tile, too: a height that must
    not be is refused wherever a call on the file would find it.
    """
    last = (windows.stop - 1) * axis.step
    east = n if windows.stop == axis.count else last + max(axis.size, axis.step)
    return windows.start * axis.step, east


def look_at(data: dict[str, Any], _: Path) -> dict[str, Any]:
    """Read the header of a file, and find the windows of its grid.

    Returns
    -------
    dict
        `stamp`; `windows`, how many along x and y; `steps`, in units of x and y.

    Raises
    ------
    FileError
        If the file cannot be read, or has no place for a window.
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
        declared = catalogue()[function]
        windows = declared.output.windows(frame, declared.choose(data["options"]))
    except ValueError as error:
        reason = str(error).removeprefix(f"{function}: ")
        raise FileError.of(function, path, reason) from None
    steps = [windows.x.step * frame.dx, windows.step * frame.dy]
    return {"stamp": stamp, "windows": [windows.x.count, windows.count], "steps": steps}


def perform(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Compute the rows of a tile, and write them."""
    tile, write = Tile(data), named(data["write"])
    facts: dict[str, Any] = write(tile, partial)
    return facts | tile.facts


def write_bands(tile: Tile, partial: Path) -> dict[str, Any]:
    """Write the rows of a tile to Parquet; give their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from spatialq.data.arrow import ARROW_TYPES
    from spatialq.database.transport.arrow import structs

    kinds = tile.function.output.columns.items()
    schema = pa.schema([(column, ARROW_TYPES[kind]) for column, kind in kinds])
    if tile.data["is_named"]:
        schema = schema.append(pa.field("file_name", pa.string()))
    total = 0
    with pq.ParquetWriter(partial, schema, compression="zstd") as file:
        for band in tile.bands():
            columns = structs(tile.function, band).flatten()
            n = len(columns[0])
            if tile.data["is_named"]:
                columns.append(pa.repeat(pa.scalar(tile.data["path"]), n))
            file.write_table(pa.table(columns, schema=schema), row_group_size=ROW_GROUP)
            total += n
    return {"rows": total}
