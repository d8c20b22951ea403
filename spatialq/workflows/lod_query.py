"""The rows of a query as COPC, Potree or 3D Tiles: what their writers call.

The points are written once, as LAS beside the output, of which the levels of detail are built.
"""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.errors import CrsError, FileError, FileWarning
from spatialq.export.atomic import PREFIX, WRITER, apart
from spatialq.export.las_dimensions import dimensions_of
from spatialq.export.las_points import write_points
from spatialq.export.point_columns import AXES, LEFT_OUT
from spatialq.export.tiles.options import TileOptions
from spatialq.export.tiles.points import WHOLE
from spatialq.io.source import LAS, ROW_GROUP
from spatialq.runtime.temporary import temporary_folder
from spatialq.workflows.lod import write_lod
from spatialq.workflows.lod_nodes import COLOURS

if TYPE_CHECKING:
    import pyarrow as pa

    from spatialq.database.writers import Result

BATCH = ROW_GROUP // 6
"""Rows that are checked and packed at a time: their columns stay in the processor's cache."""
ALWAYS_THERE = ("intensity", "classification")
"""Attributes that samples have anyhow."""
MOST_SHOWN = 14
"""Attributes besides positions and colours: WebGL is sure to have 16 in all."""
BECOME_FLOAT = (
    "INTEGER", "BIGINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL", "FLOAT", "DOUBLE",
)  # fmt: skip
"""SQL types of attributes that tiles have as FLOAT."""


def write(result: "Result", path: Path) -> int:
    """Write the rows as COPC or Potree, by the name of the path.

    Returns
    -------
    int
        Points written.

    Raises
    ------
    FileError
        If a column or a value cannot be held, or the output cannot be written.
    CrsError
        If x and y are degrees, or the rows come from tables of different CRS.
    """
    return _write(result, path, result.columns, result.batches(BATCH))


def write_tiles(result: "Result", path: Path) -> int:
    """Write the rows as 3D Tiles: other columns than coordinates and colours become attributes.

    Returns
    -------
    int
        Points written: without stray points.

    Raises
    ------
    FileError, CrsError
        As `write`.
    ValueError
        If an option is wrong.
    """
    tiles = TileOptions(**result.options)
    tiles.check(WRITER)
    values = _values(path, result.columns)
    _warn_of_many(path, result.columns)
    kinds = {**result.columns, **dict.fromkeys(values, "DOUBLE")}
    batches = (_with_doubles(path, batch, values) for batch in result.batches(BATCH))
    return _write(result, path, kinds, batches, tiles=tiles, attributes=_names(kinds))


def _write(
    result: "Result",
    path: Path,
    columns: Mapping[str, str],
    batches: "Iterable[pa.RecordBatch]",
    **options: Any,
) -> int:
    parent = path.resolve().parent
    beside = parent if parent.is_dir() else parent.parent
    with temporary_folder(PREFIX, beside) as folder:
        copy = folder / f"points{LAS[0]}"
        with _said_of(path, copy):
            with apart():
                write_points(copy, columns, batches, crs=result.crs, layout=result.layout)
            return int(write_lod(copy, path, **options)["points"])


def _names(columns: Mapping[str, str]) -> list[str]:
    """Name the columns that become attributes as a file of points names them."""
    spelled = {column: name for name, column in dimensions_of(list(columns)).items()}
    left_out = {*AXES, *COLOURS, *LEFT_OUT}
    return [spelled.get(name, name) for name in columns if name.lower() not in left_out]


def _warn_of_many(path: Path, columns: Mapping[str, str]) -> None:
    """Warn of more attributes than a viewer can draw."""
    of_points = {*_names(columns), *ALWAYS_THERE}
    if len(of_points) > MOST_SHOWN:
        message = (
            f"{WRITER}: '{path}' has {len(of_points)} attributes besides positions and colours, of "
            f"which WebGL draws {MOST_SHOWN}: viewers such as CesiumJS may show nothing; choose "
            "fewer columns"
        )
        warnings.warn(message, FileWarning, stacklevel=2)


def _values(path: Path, columns: Mapping[str, str]) -> list[str]:
    """Name the columns that become FLOAT in tiles, in which NULL can be held.

    Raises
    ------
    FileError
        If a column has several values a row.
    """
    of_points = {*dimensions_of(list(columns)).values(), *LEFT_OUT}
    others = {name: kind for name, kind in columns.items() if name.lower() not in of_points}
    for name, kind in others.items():
        if kind.endswith("]"):
            reason = (
                f"column '{name}' is {kind}, but attributes of points are numbers; leave it out"
            )
            raise FileError.of(WRITER, path, reason)
    return [
        name
        for name, kind in others.items()
        if name.lower() not in AXES and kind.partition("(")[0] in BECOME_FLOAT
    ]


def _with_doubles(path: Path, batch: "pa.RecordBatch", names: Sequence[str]) -> "pa.RecordBatch":
    """Give rows with columns as DOUBLE, NaN where they were NULL.

    Raises
    ------
    FileError
        If a whole number is not one of FLOAT.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in names:
        column = batch.column(name)
        numbers = pc.cast(column, pa.float64(), safe=False)
        if not pa.types.is_floating(column.type):
            most = pc.max(pc.abs(numbers)).as_py() or 0
            if most > WHOLE and not pa.types.is_decimal(column.type):
                reason = (
                    f"column '{name}' has the value {most:.0f}, but attributes of points have "
                    f"whole numbers up to {WHOLE}; leave it out: * EXCLUDE ({name})"
                )
                raise FileError.of(WRITER, path, reason)
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, name, numbers.fill_null(math.nan))
    return batch


@contextmanager
def _said_of(path: Path, copy: Path) -> Iterator[None]:
    """Turn errors and warnings about the copy into those about the file that is written."""

    def said(text: str) -> str:
        return text.replace(str(copy), str(path)).replace(copy.name, path.name)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except (FileError, CrsError) as error:
            raise type(error)(said(str(error))) from error
        finally:
            again = list(caught)
    for each in again:
        warnings.warn(said(str(each.message)), each.category, stacklevel=4)
