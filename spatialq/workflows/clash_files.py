"""The rows of the files that clashes are written to: behind `spatialq clash -o`."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.export.atomic import WRITER
from spatialq.workflows.clash_bcf import SUFFIXES
from spatialq.workflows.clash_elements import clashes_in, files_named, pictures_of, read_building
from spatialq.workflows.clash_matrix import default_per, matrix_sql
from spatialq.workflows.tables import dicts

if TYPE_CHECKING:
    import duckdb

SHEET = """
SELECT relation, penetration, thickness, distance, a_name, a_class, a_storey, b_name, b_class,
    b_storey, a_storey_unified, b_storey_unified, x, y, z, a AS a_global_id, b AS b_global_id,
    a_file, b_file, flags
FROM clashes
"""
"""The rows of an .xlsx, which people read: what clashes with what, and where."""
MEASURED = "thickness, volume, dx, dy, dz"
"""Columns of a sheet where volumes are asked for."""
SHEETS = ".xlsx"
MOST_PICTURES = 200
"""Rows of a sheet that have a picture."""
DEEPEST = """
FROM clashes
QUALIFY row_number() OVER (
    PARTITION BY group_id
    ORDER BY coalesce(penetration, '-inf'::DOUBLE) DESC, least(a, b), greatest(a, b)
) = 1
ORDER BY group_id
"""
"""The clash of each group that `clash_groups` names."""
TOPICS = (
    "SELECT *, concat_ws(' ', {per}, group_name) AS topic FROM clashes ORDER BY group_id, rowid"
)
"""One topic for each group, which the deepest of its clashes shows."""

BY_SEVERITY = """
SELECT * EXCLUDE (given), coalesce(given, upper(severity[1]) || severity[2:]) AS priority
FROM (
    SELECT * RENAME (priority AS given)
    FROM (({query}) UNION ALL BY NAME (SELECT NULL::VARCHAR AS priority WHERE false))
)
"""
"""What people said of a clash before goes before the severity of its rule."""


@dataclass(frozen=True)
class Asked:
    """What a file of clashes is to have, besides the clashes.

    Parameters
    ----------
    said : list of str
        Columns that a project or rules add.
    per : str or None
        What the clashes are grouped by, as SQL.
    reach : float
        Metres, of groups in space.
    topics : 'groups' or 'clashes'
        What a BCF file has a topic for.
    matrix : str or None
        What the clash matrix is of that is written instead.
    has_rules, has_volumes : bool
    """

    said: list[str]
    per: str | None
    reach: float
    topics: str
    matrix: str | None
    has_rules: bool
    has_volumes: bool


def query_of(
    con: "duckdb.DuckDBPyConnection", suffix: str, asked: Asked
) -> tuple[str, dict[str, str] | None]:
    """Give the query for the rows of a file, and those for further sheets of a workbook."""
    query = "FROM clashes"
    if asked.matrix:
        return matrix_sql(asked.matrix), None
    if suffix == SHEETS:
        more = asked.said + ([] if asked.per is None else ["group_id", "group_name"])
        query = SHEET.replace("SELECT", f"SELECT {', '.join(more)},") if more else SHEET
        query = query.replace("thickness", MEASURED) if asked.has_volumes else query
        sheets = {} if asked.per is None else {"groups": groups_sql(asked.per, asked.reach)}
        return query, sheets | {"matrix": matrix_sql(default_per(con))}
    if suffix in SUFFIXES:
        if asked.per is not None and asked.topics == "groups":
            query = TOPICS.format(per=asked.per)
        if "assignee" in asked.said:
            query = f"SELECT *, assignee AS assigned_to FROM ({query})"
        query = BY_SEVERITY.format(query=query) if asked.has_rules else query
    return query, None


def pictures(
    con: "duckdb.DuckDBPyConnection", path: Path, asked: Asked
) -> dict[str, Iterable[bytes]]:
    """Draw the clashes of a workbook, or one of each group, by the name of their sheet.

    Raises
    ------
    FileError
        If a model cannot be read.
    """
    rows = con.execute(f"{'FROM clashes' if asked.per is None else DEEPEST} LIMIT {MOST_PICTURES}")
    clashes = clashes_in(WRITER, dicts(rows), "ab", path)
    building = read_building(WRITER, clashes, files_named(clashes), path)
    name = "rows" if asked.per is None else "groups"
    return {} if building is None else {name: pictures_of(clashes, building)}


def groups_sql(per: str, reach: float) -> str:
    """Write the query for the groups of `clashes`."""
    return f"FROM clash_groups('clashes', per := {per}, distance := {reach})"
