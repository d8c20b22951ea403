"""Which files are in which table: `spatialq_files`, and the identity in a table's comment.

DuckDB keeps the comment with the table when it is renamed, and drops it with the table; so the
view `spatialq_sources`, which joins the two, is right without any bookkeeping.
"""

import json
import re
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from spatialq.database import frames, lineage
from spatialq.database.model_tables import PARTS, beside_elements
from spatialq.functions.sql_text import identifier, literal, parts_of
from spatialq.io import crs as crs_text
from spatialq.io import georeference
from spatialq.io.access import for_connection

if TYPE_CHECKING:
    import duckdb

HERE = "database_name = current_database() AND lower(schema_name) = lower(current_schema())"
ID = "CASE WHEN json_valid(comment) THEN comment ->> '$.spatialq' END"
"""The identity of a row of `duckdb_tables()`; its comment may be any text of the user's."""
FILES = """
CREATE TABLE spatialq_files (
    table_id VARCHAR NOT NULL,
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
);
COMMENT ON TABLE spatialq_files IS
    'The files that load put into tables; table_id is in the comment of a table';
"""
SOURCES = f"""
CREATE VIEW IF NOT EXISTS spatialq_sources AS
SELECT tables.table_name, files.* EXCLUDE (table_id, table_name)
FROM spatialq_files files
JOIN (SELECT DISTINCT table_name, {ID} AS table_id FROM duckdb_tables()) tables USING (table_id)
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
    layout: Mapping[str, Any] = field(default_factory=dict)
    """Scale and offset of coordinates, as the comment of the table has them."""
    warnings: Sequence[str] = field(default_factory=tuple)


class Identity(NamedTuple):
    """What the comment of a table says."""

    table: str
    """As it is written in the catalogue."""
    id: str | None
    """The `table_id` of its files; None if `load` put nothing into it."""
    model: str | None
    """The `id` of the table of elements that this table is beside."""
    crs: str | None
    """PROJJSON."""
    said: dict[str, Any]
    """All of the comment; a text that is not JSON is its `comment`."""


def prepare(con: "duckdb.DuckDBPyConnection") -> None:
    """Make the table of files and its view, of an older `spatialq_sources` where there is one.

    In the caller's transaction.
    """
    present = _present(con)
    old = "spatialq_files" not in present and "spatialq_sources" in present
    if old:
        con.execute("ALTER TABLE spatialq_sources RENAME TO spatialq_old_sources")
    if "spatialq_files" not in present:
        con.execute(FILES)
    con.execute(SOURCES)  # which a user may have dropped
    if old:
        ids = {
            table: _identify(con, table, kind, crs)
            for table, kind, crs in con.execute(
                "SELECT table_name, any_value(kind), any_value(crs) FROM spatialq_old_sources "
                f"WHERE table_name IN (SELECT table_name FROM duckdb_tables() WHERE {HERE}) "
                "GROUP BY ALL"
            ).fetchall()
        }
        for table, table_id in ids.items():
            con.execute(
                "INSERT INTO spatialq_files BY NAME SELECT ? AS table_id, * "
                "FROM spatialq_old_sources WHERE table_name = ?",
                [table_id, table],
            )
            _identify_parts(con, table, table_id)
        con.execute("DROP TABLE spatialq_old_sources")
    # point clouds were called so when LAS was the only format
    con.execute("UPDATE spatialq_files SET kind = 'points' WHERE kind = 'las'")


def forget_dropped(con: "duckdb.DuckDBPyConnection") -> None:
    """Delete the records of files whose table is gone."""
    con.execute(
        "DELETE FROM spatialq_files WHERE NOT list_contains("
        f"(SELECT coalesce(list({ID}), []) FROM duckdb_tables() WHERE {HERE}), table_id)"
    )


def migrate(con: "duckdb.DuckDBPyConnection") -> None:
    """Bring the records of an older version to the present form, if there are any."""
    if _present(con) == {"spatialq_sources"}:
        prepare(con)


def identity(con: "duckdb.DuckDBPyConnection", table: str) -> Identity | None:
    """Read the comment of a table of the current schema; None where there is no such table."""
    rows = con.execute(
        f"SELECT table_name, comment FROM duckdb_tables() WHERE {HERE} "
        "AND lower(table_name) = lower(?)",
        [table],
    ).fetchall()
    if not rows:
        return None
    ((name, comment),) = rows
    said, crs = lineage.stated(comment), lineage.stated_crs(comment)
    return Identity(
        name,
        said.get("spatialq"),
        said.get("spatialq_model"),
        crs and lineage.read_crs(f"table {name}", crs),
        said,
    )


def named(con: "duckdb.DuckDBPyConnection", table_id: str) -> str | None:
    """Name the table of the current schema that has an id; None where it was dropped."""
    rows = con.execute(
        f"SELECT table_name FROM duckdb_tables() WHERE {HERE} AND {ID} = ?", [table_id]
    ).fetchall()
    return rows[0][0] if rows else None


def restore(con: "duckdb.DuckDBPyConnection") -> None:
    """Write the comments of tables again if DuckDB, which does not export them, imported all.

    A table gets that of the one that had its name when it was loaded, and as many rows.
    """
    if "spatialq_files" not in _present(con) or (said := identity(con, "spatialq_files")) is None:
        return
    if said.said:
        return
    con.execute(FILES[FILES.index("COMMENT") :])
    tables = con.execute(
        "SELECT table_id, arg_max(table_name, loaded_at), any_value(kind), any_value(crs), "
        "sum(row_count) FROM spatialq_files GROUP BY table_id"
    ).fetchall()
    for table_id, table, kind, crs, rows in tables:
        if (
            identity(con, table)
            and (rows,) == con.execute(f"SELECT count(*) FROM {identifier(table)}").fetchall()[0]
        ):
            _identify(con, table, kind, crs, table_id)
            if kind == "ifc":
                _identify_parts(con, table, table_id)


def _identify(
    con: "duckdb.DuckDBPyConnection",
    table: str,
    kind: str,
    crs: str | None,
    table_id: str | None = None,
) -> str:
    """Write into the comment of a table who it is and which CRS it has; give its id.

    What else the user wrote there stays.
    """
    before = identity(con, table)
    if before and before.id:
        return before.id
    said = before.said if before else {}
    table_id = table_id or uuid.uuid4().hex
    _comment(con, table, {**said, "spatialq": table_id, "kind": kind, "crs": crs_text.compact(crs)})
    return table_id


def _note_layout(con: "duckdb.DuckDBPyConnection", record: SourceRecord) -> None:
    """Write into the comment of a table how its coordinates were kept, if all files agree."""
    before = identity(con, record.table)
    assert before is not None
    there = {name: value for name, value in before.said.items() if name in ("scale", "offset")}
    is_first = len(of_table(con, record.table)) == 1
    agreed = record.layout if is_first or record.layout == there else {}
    if agreed != there:
        rest = {name: value for name, value in before.said.items() if name not in there}
        _comment(con, record.table, {**rest, **agreed})


def _identify_parts(con: "duckdb.DuckDBPyConnection", elements: str, model: str) -> None:
    """Write into the comments of the tables beside a table of elements which model they are of."""
    for part in PARTS:
        table = beside_elements(elements, part)
        before = identity(con, table)
        if before and before.model != model:
            _comment(con, table, {**before.said, "spatialq_model": model})


def _comment(con: "duckdb.DuckDBPyConnection", table: str, said: dict[str, Any]) -> None:
    text = json.dumps(said, ensure_ascii=False)
    con.execute(f"COMMENT ON TABLE {identifier(table)} IS {literal(text)}")


def add(con: "duckdb.DuckDBPyConnection", record: SourceRecord) -> None:
    """Write a record; in the caller's transaction, so that it comes and goes with the rows."""
    table_id = _identify(con, record.table, record.kind, record.crs)
    con.execute(
        "INSERT INTO spatialq_files BY NAME SELECT ? AS table_id, ? AS table_name, ? AS path, "
        "? AS kind, ? AS row_count, ? AS crs, ? AS crs_name, ? AS xmin, ? AS ymin, ? AS xmax, "
        "? AS ymax, ? AS georeference, ?::VARCHAR[] AS warnings",
        [
            table_id,
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
    if record.kind == "ifc":
        _identify_parts(con, record.table, table_id)
    elif record.kind == "points":
        _note_layout(con, record)


def forget(con: "duckdb.DuckDBPyConnection", file: "Loaded") -> None:
    """Delete the record of a file whose rows are deleted; in the caller's transaction."""
    table = identity(con, file.table)
    assert table is not None
    con.execute("DELETE FROM spatialq_files WHERE table_id = ? AND path = ?", [table.id, file.path])


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
    return [each for each in loaded(con) if each.table.lower() == table.lower()]


def models(con: "duckdb.DuckDBPyConnection") -> list[Loaded]:
    """List the building models in all tables."""
    return [each for each in loaded(con) if each.kind == "ifc"]


@for_connection
def require_one_crs(con: "duckdb.DuckDBPyConnection", query: str) -> str | None:
    """Return the CRS of the tables and files of a query; those without one go with any.

    The tables are those that DuckDB's plan reads, through views and macros too, those that an
    INSERT names, and those of other schemas that the query or its views name.

    Raises
    ------
    CrsError
        If they are of different CRS, or models at different places on the map.
    """
    models = [each for each in loaded(con) if each.georeference]
    stated = [
        (name.lower(), crs)
        for name, comment in con.sql(  # not `execute`, see `_present`
            f"SELECT table_name, comment FROM duckdb_tables() WHERE {HERE} AND comment IS NOT NULL"
        ).fetchall()
        if (crs := lineage.stated_crs(comment))
    ]
    names = tables_read(con, query) if models or stated else set()
    georeference.require_same(
        "query",
        [
            (f"'{each.path}' in table {each.table}", json.loads(each.georeference))
            for each in models
            if each.table.lower() in names and each.georeference
        ],
    )
    read = [(f"table {t}", lineage.read_crs(f"table {t}", crs)) for t, crs in stated if t in names]
    return crs_text.require_same("query", [*read, *frames.systems(con, query)])


def _present(con: "duckdb.DuckDBPyConnection") -> set[str]:
    """Which of the tables of files are there: since `spatialq_files`, the other is a view."""
    rows = con.sql(  # not `execute`, which would end a pending result of the user
        f"SELECT table_name FROM duckdb_tables() WHERE {HERE} "
        "AND table_name IN ('spatialq_files', 'spatialq_sources')"
    ).fetchall()
    return {name for (name,) in rows}


def loaded(con: "duckdb.DuckDBPyConnection") -> list[Loaded]:
    """List the files in all tables."""
    present = _present(con)
    if not present:
        return []
    is_present = "spatialq_files" in present  # else of an older version, in a read-only database
    files, key = ("spatialq_files", ID) if is_present else ("spatialq_sources", "table_name")
    rows = con.execute(
        "SELECT tables.table_name, path, kind, crs, georeference, loaded_at "
        f"FROM (SELECT table_name, {key} AS key FROM duckdb_tables() WHERE {HERE}) tables "
        f"JOIN {files} files ON key = files.{'table_id' if is_present else 'table_name'}"
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
    for operator in operators:
        if table := operator["extra_info"].get("Table"):
            yield parts_of(table)
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
