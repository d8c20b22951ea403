"""The rows of a query as COPC, Potree or 3D Tiles: what their writers call.

The points are written once, as LAS beside the output, of which the levels of detail are built.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.errors import CrsError, FileError
from spatialq.export.atomic import apart
from spatialq.export.las_points import write_points
from spatialq.export.lod_writers import NODE_WRITERS
from spatialq.io.source import LAS, ROW_GROUP
from spatialq.runtime.temporary import temporary_folder
from spatialq.workflows.lod import write_lod

if TYPE_CHECKING:
    from spatialq.database.writers import Result

BATCH = ROW_GROUP // 6
"""Rows that are checked and packed at a time: their columns stay in the processor's cache."""


def write(result: "Result", path: Path) -> int:
    """Write the rows, x, y and z among their columns; the name of the path tells the format.

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
    parent = path.resolve().parent
    beside = parent if parent.is_dir() else parent.parent
    with temporary_folder(".lod-", beside) as folder:
        copy = folder / f"points{LAS[0]}"
        with _said_of(path, copy):
            with apart():
                write_points(
                    copy, result.columns, result.batches(BATCH), crs=result.crs,
                    layout=result.layout,
                )  # fmt: skip
            return int(write_lod(copy, path)["points"])


@contextmanager
def _said_of(path: Path, copy: Path) -> Iterator[None]:
    """Turn errors and warnings about the copy into those about the file that is written."""

    def said(text: str) -> str:
        return text.replace(str(copy), str(path)).replace(copy.name, path.name)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            yield
        except (FileError, CrsError) as error:
            raise type(error)(said(str(error))) from error
        finally:
            again = list(told)
    for each in again:
        warnings.warn(said(str(each.message)), each.category, stacklevel=4)
