"""Where each table came from: the table `spatialq_sources`, and the CRS check that rests on it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from spatialq.io import crs as crs_text

if TYPE_CHECKING:
    import duckdb

TABLE = """
CREATE TABLE IF NOT EXISTS spatialq_sources (
    table_name VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    row_count BIGINT NOT NULL,
    crs VARCHAR,
    crs_name VARCHAR,
    xmin DOUBLE, ymin DOUBLE, xmax DOUBLE, ymax DOUBLE,
    georeference VARCHAR,
    warnings VARCHAR[],
    loaded_at TIMESTAMP DEFAULT current_localtimestamp()
)
"""


@dataclass(frozen=True)
class SourceRecord:
    """One file in one table."""

    table: str
    path: str
    kind: str
    rows: int
    crs: str | None
    """PROJJSON."""
    box: Sequence[float] | None = None
    """xmin, ymin, xmax, ymax."""
    georeference: str | None = None
    """IfcMapConversion as JSON: kept, not applied."""
    warnings: Sequence[str] = field(default_factory=tuple)


def add(con: "duckdb.DuckDBPyConnection", record: SourceRecord) -> None:
    """Write a record; in the caller's transaction, so that it comes and goes with the rows."""
    con.execute(TABLE)
    con.execute(
        "INSERT INTO spatialq_sources BY NAME SELECT ? AS table_name, ? AS path, ? AS kind, "
        "? AS row_count, ? AS crs, ? AS crs_name, ? AS xmin, ? AS ymin, ? AS xmax, ? AS ymax, "
        "? AS georeference, ?::VARCHAR[] AS warnings",
        [
            record.table,
            record.path,
            record.kind,
            record.rows,
            record.crs,
            crs_text.name(record.crs),
            *(record.box or (None, None, None, None)),
            record.georeference,
            list(record.warnings),
        ],
    )


class Loaded(NamedTuple):
    """What a later load or query must know of a file in a table."""

    table: str
    path: str
    kind: str
    crs: str | None


def of_table(con: "duckdb.DuckDBPyConnection", table: str) -> list[Loaded]:
    """List the files in a table; none when it is not ours."""
    return [loaded for loaded in _all(con) if loaded.table.lower() == table.lower()]


def require_one_crs(con: "duckdb.DuckDBPyConnection", query: str) -> None:
    """Refuse a query that names tables of different CRS; tables without one go with any.

    Raises
    ------
    CrsError
        If it does.
    """
    names = set(_names(query))
    known = [
        (f"table {loaded.table}", loaded.crs)
        for loaded in _all(con)
        if loaded.table.lower() in names and loaded.crs is not None
    ]
    crs_text.require_same("query", known)


def _all(con: "duckdb.DuckDBPyConnection") -> list[Loaded]:
    exists = con.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'spatialq_sources' "
        "AND database_name = current_database() AND schema_name = current_schema()"
    ).fetchall()[0][0]
    if not exists:
        return []
    rows = con.execute(
        "SELECT table_name, path, kind, crs FROM spatialq_sources WHERE table_name IN "
        "(SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() "
        "AND schema_name = current_schema())"
    ).fetchall()
    return [Loaded(*row) for row in rows]


def _names(query: str) -> list[str]:
    """Names and strings in a query, in lower case: macros take tables by name or as a string."""
    import duckdb

    word = re.compile(r'"((?:[^"]|"")*)"|\'([^\']*)\'|(\w+)')
    found = []
    for offset, kind in duckdb.tokenize(query):
        if kind in (duckdb.token_type.identifier, duckdb.token_type.string_const) and (
            match := word.match(query, offset)
        ):
            found.append(next(group for group in match.groups() if group is not None).lower())
    return found
