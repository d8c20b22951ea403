"""`write_ground` in SQL: what `sql/write_ground.sql` calls."""

from typing import Any

from spatialq.udfs.write_ground import PARAMETERS, RESULT
from spatialq.workflows.ground import write_ground
from spatialq.workflows.sql_calls import written


def write_ground_rows(paths: Any, outputs: Any, options: Any) -> Any:
    """Write the files of each row.

    Raises
    ------
    ValueError
        If an argument is NULL that must have a value, or is of a wrong type.
    """
    columns = paths, outputs, options
    return written("write_ground", write_ground, PARAMETERS, RESULT, columns)
