"""Where each table came from: the table `spatialq_sources`, and the CRS check that rests on it."""

import json
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from spatialq.io import crs as crs_text
from spatialq.io import georeference

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
    georeference: str | None
    loaded_at: datetime


def of_table(con: "duckdb.DuckDBPyConnection", table: str) -> list[Loaded]:
    """List the files in a table; none when it is not ours."""
    return [loaded for loaded in _all(con) if loaded.table.lower() == table.lower()]


def models(con: "duckdb.DuckDBPyConnection") -> list[Loaded]:
    """List the building models in all tables."""
    return [loaded for loaded in _all(con) if loaded.kind == "ifc"]


def require_one_crs(con: "duckdb.DuckDBPyConnection", query: str) -> str | None:
    """Return the CRS of the tables of a query; tables without one go with any.

    The tables are those that DuckDB's plan reads, through views and macros too, and those that
    an INSERT names. Tables that were renamed or are in another schema than the current one, and
    files that the query reads itself, are not known here.

    Raises
    ------
    CrsError
        If it names tables of different CRS, or models at different places on the map.
    """
    known = [loaded for loaded in _all(con) if loaded.crs or loaded.georeference]
    if not known:
        return None
    names = tables_read(con, query)
    read = [loaded for loaded in known if loaded.table.lower() in names]
    georeference.require_same(
        "query",
        [
            (f"'{loaded.path}' in table {loaded.table}", json.loads(loaded.georeference))
            for loaded in read
            if loaded.georeference
        ],
    )
    return crs_text.require_same(
        "query", [(f"table {loaded.table}", loaded.crs) for loaded in read if loaded.crs]
    )


def _all(con: "duckdb.DuckDBPyConnection") -> list[Loaded]:
    exists = con.sql(  # not `execute`, which would end a pending result of the user
        "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'spatialq_sources' "
        "AND database_name = current_database() AND schema_name = current_schema()"
    ).fetchall()[0][0]
    if not exists:
        return []
    rows = con.execute(
        "SELECT table_name, path, kind, crs, georeference, loaded_at FROM spatialq_sources "
        "WHERE table_name IN (SELECT table_name FROM duckdb_tables() "
        "WHERE database_name = current_database() AND schema_name = current_schema())"
    ).fetchall()
    return [Loaded(*row) for row in rows]


def tables_read(con: "duckdb.DuckDBPyConnection", query: str) -> set[str]:
    """Names of the tables of the current schema that a query needs, in lower case."""
    import duckdb

    here = con.execute("SELECT current_database(), current_schema()").fetchall()[0]
    names = set()
    for statement in con.extract_statements(query):
        if statement.type == duckdb.StatementType.INSERT:
            names |= words(statement.query)  # the plan does not name the table that is filled
        try:
            with warnings.catch_warnings():  # the query itself will warn
                warnings.simplefilter("ignore")
                plans = con.execute(f"EXPLAIN (FORMAT JSON) {statement.query}").fetchall()
        except duckdb.Error:  # it has no plan, or none before an earlier statement ran
            names |= words(statement.query)
            continue
        for _, plan in plans:
            names |= {table for *schema, table in _scanned(json.loads(plan)) if (*schema,) == here}
    return {name.lower() for name in names}


def _scanned(operators: list[dict[str, Any]]) -> Iterator[list[str]]:
    """Give database, schema and name of each table that a plan reads."""
    part = re.compile(r'"((?:[^"]|"")*)"|([^".]+)')
    for operator in operators:
        if table := operator["extra_info"].get("Table"):
            yield [quoted.replace('""', '"') or plain for quoted, plain in part.findall(table)]
        yield from _scanned(operator["children"])


def words(query: str) -> set[str]:
    """Names and strings in a query: macros take tables by name or as a string."""
    import duckdb

    word = re.compile(r'"((?:[^"]|"")*)"|\'([^\']*)\'|(\w+)')
    text = query.encode()
    found = set()
    for offset, kind in duckdb.tokenize(query):  # offsets are bytes
        if kind in (duckdb.token_type.identifier, duckdb.token_type.string_const) and (
            match := word.match(text[offset:].decode())
        ):
            found.add(next(group for group in match.groups() if group is not None))
    return found
