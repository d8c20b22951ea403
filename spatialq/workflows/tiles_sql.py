"""`write_tiles` in SQL: what `sql/write_tiles.sql` calls."""

from typing import Any

from spatialq.udfs.write_tiles import PARAMETERS, RESULT
from spatialq.workflows.sql_calls import written
from spatialq.workflows.tiles import write_tiles


def write_tiles_rows(paths: Any, outputs: Any, options: Any) -> Any:
    """Write the tileset of each row.

    Raises
    ------
    ValueError
        If an argument is NULL that must have a value, or is of a wrong type.
    """
    columns = paths, outputs, options
    return written("write_tiles", write_tiles, PARAMETERS, RESULT, columns, targets="output")
