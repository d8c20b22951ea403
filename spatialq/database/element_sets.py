"""What the macros of elements call to leave out the pairs that belong together."""

from typing import Any

import pyarrow as pa

from spatialq.database.model_tables import beside_elements
from spatialq.functions.sql_text import literal

NO_PAIRS = "SELECT NULL::VARCHAR AS a, NULL::VARCHAR AS b WHERE false"


def related_sql(excludes: Any, firsts: Any, relations: Any) -> pa.Array:
    """Write the query for the pairs that are left out: none, or those that belong together."""
    rows = zip(excludes.to_pylist(), firsts.to_pylist(), relations.to_pylist(), strict=True)
    return pa.array([_related(*row) for row in rows], pa.string())


def _related(exclude: bool | None, a: str, relations: str | None) -> str:  # noqa: FBT001
    if not exclude:
        return NO_PAIRS
    if relations is None:
        relations = beside_elements(a, "relations")
    return f"FROM related_elements({literal(relations)})"
