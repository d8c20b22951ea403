"""`write_lod` in SQL: what `sql/write_lod.sql` calls."""

from typing import Any

from spatialq.udfs.write_lod import PARAMETERS, RESULT
from spatialq.workflows.lod import write_lod
from spatialq.workflows.sql_calls import written


def write_lod_rows(paths: Any, outputs: Any, options: Any) -> Any:
    """Write the files of each row.

    Raises
    ------
    ValueError
        If an argument is NULL that must have a value, or is of a wrong type.
    """
    return written("write_lod", write_lod, PARAMETERS, RESULT, (paths, outputs, options))
