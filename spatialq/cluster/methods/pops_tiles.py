"""Tiles of grids: whole examples, whose features one task computes and writes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spatialq.cluster.methods.grids import open_again
from spatialq.data.grid import count_values
from spatialq.execution.call import call
from spatialq.functions.catalogue import Function, catalogue
from spatialq.io.source import ROW_GROUP
from spatialq.udfs.pops_features.division import Division, Examples, WindowAxis, divide
from spatialq.udfs.pops_features.table import series_of

if TYPE_CHECKING:
    from spatialq.io.grid.source import GridSource


class Band(NamedTuple):
    """The features of some rows of examples of a tile."""

    found: dict[str, Any]
    """The columns of the function."""
    valued: int
    """Cells that have a value."""
    device: str


@dataclass(frozen=True)
class Tile:
    """Some adjacent examples of a grid, whose cells are read in bands."""

    function: Function
    source: "GridSource"
    options: Any
    division: Division
    """Of the whole grid."""
    examples: Examples
    device: str

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Tile":
        """Make the tile of a task.

        Raises
        ------
        FileError
            If the file cannot be read, or was changed since the job began.
        """
        function = catalogue()[data["function"]]
        options = function.choose(data["options"])
        source = open_again(function.name, data)
        examples = Examples(*(range(*each) for each in data["tile"]))
        division = divide(source.frame, options)
        return cls(function, source, options, division, examples, data["device"])

    def bands(self) -> Iterator[Band]:
        """Compute the features band by band, as a call on the file does.

        Raises
        ------
        FileError
            If the data are damaged.
        ValueError
            If a height is infinite.
        """
        from spatialq.database.transport.grid import frame_of

        columns, rows = self.examples
        frame, whose = self.source.frame, f"{self.function.name}: '{self.source.path}'"
        west, east = _cells(self.division.x, columns, frame.columns)
        window = replace(frame, z=np.empty((0, east - west), np.float32), first_column=west)
        windows = self.function.output.windows(window, self.options)
        n = windows.in_band(east - west)
        for first in range(rows.start, rows.stop, n):
            south, north = windows.rows(first, min(first + n, rows.stop))
            grid = self.source.grid(south, north, (west, east))
            valued = count_values(whose, grid)
            found, device = call(
                self.function, {"grid": grid}, self.options, self.device, road="files",
                frame=frame_of(self.source, is_announced=True),
            )  # fmt: skip
            yield Band(found, valued, device)


def _cells(axis: WindowAxis, examples: range, n: int) -> tuple[int, int]:
    """Give the first of the n cells along an axis that examples have, and the one behind the last.

    Cells between examples and behind the last one are read by some tile, too: a height that must
    not be is refused wherever a call on the file would find it.
    """
    last = (examples.stop - 1) * axis.step
    east = n if examples.stop == axis.count else last + max(axis.size, axis.step)
    return examples.start * axis.step, east


def write_table(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Write the features of a tile to Parquet.

    Returns
    -------
    dict
        `rows` written; `valued`, how many cells have a value; `device`, where they were found.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from spatialq.data.arrow import ARROW_TYPES
    from spatialq.database.transport.arrow import structs

    tile, name = Tile.of(data), pa.scalar(data["path"])
    kinds = tile.function.output.columns.items()
    schema = pa.schema([(column, ARROW_TYPES[kind]) for column, kind in kinds])
    if data["is_named"]:
        schema = schema.append(pa.field("file_name", pa.string()))
    facts: dict[str, Any] = {"rows": 0, "valued": 0}
    with pq.ParquetWriter(partial, schema, compression="zstd") as file:
        for band in tile.bands():
            columns = structs(tile.function, band.found).flatten()
            n = len(columns[0])
            if data["is_named"]:
                columns.append(pa.repeat(name, n))
            file.write_table(pa.table(columns, schema=schema), row_group_size=ROW_GROUP)
            facts["rows"] += n
            facts["valued"] += band.valued
            facts["device"] = band.device
    return facts


def write_raster(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Write the means of the features of a tile as a GeoTIFF whose cells are the examples.

    Returns
    -------
    dict
        `rows`, here cells; `valued` and `device` as of a table.
    """
    from spatialq.workflows.feature_choice import label_features
    from spatialq.workflows.feature_raster import write_examples

    tile = Tile.of(data)
    columns, rows = tile.examples
    series = series_of(tile.division, tile.options)
    bands = list(tile.bands())
    shape = len(columns), -1, len(series)
    found = np.concatenate([each.found["mean"].reshape(shape) for each in bands], axis=1)
    names = [name for features in tile.options.features.values() for name in features]
    place = {
        (tile.options.methods[each.method], names[each.feature], each.scale): k
        for k, each in enumerate(series)
    }
    write_examples(
        partial, tile.source, tile.division, tile.examples, label_features(tile.options),
        lambda *one: found[:, :, place[one]],
    )  # fmt: skip
    return {
        "rows": len(columns) * len(rows),
        "valued": sum(each.valued for each in bands),
        "device": bands[-1].device,
    }
