"""What others said of clashes, in BCF archives that came back: `spatialq clash --bcf-in`."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.errors import files_read_by
from spatialq.export.bcf import AUTHOR, guid
from spatialq.io.bcf import Bcf, read_bcf
from spatialq.io.files import find_files, require_file
from spatialq.workflows.clash_bcf import key_of

if TYPE_CHECKING:
    import duckdb

KEPT = ("title", "status", "priority", "assigned_to", "due", "labels")
"""Columns of topics that clashes get, besides `comments`."""
COMMENTS = "STRUCT(text VARCHAR, author VARCHAR, date TIMESTAMP)[]"
ISSUES = {
    "a": "VARCHAR",
    "b": "VARCHAR",
    **dict.fromkeys(("title", "status", "priority", "assigned_to"), "VARCHAR"),
    "due": "TIMESTAMP",
    "labels": "VARCHAR[]",
    "comments": COMMENTS,
}
JOINED = """
CREATE OR REPLACE TABLE clashes AS
SELECT c.*, i.* EXCLUDE (a, b) FROM clashes AS c LEFT JOIN issues AS i USING (a, b)
ORDER BY c.rowid
"""

# Of a project, whose statuses say what the search found. What people said of a clash that has
# changed since, was about another one.
FOUND = (
    "new", "active", "changed", "resolved", "excluded", "open", "reopened", "in progress",
)  # fmt: skip
"""Statuses of topics that say no more than that the clash is there, or ought not to be."""
TAKEN = f"""
CREATE OR REPLACE TABLE clashes AS
SELECT c.* REPLACE (
    if(i.status IS NULL OR lower(i.status) IN {FOUND} OR c.status = 'changed', c.status, i.status)
        AS status,
    coalesce(i.assigned_to, c.assignee) AS assignee
)
FROM clashes AS c LEFT JOIN issues AS i USING (a, b)
ORDER BY c.rowid
"""
# Comments that were read before, or that the writer made of a clash's measures, are no news.
SAID = f"""
INSERT INTO project.comments (clash, written_at, author, comment)
SELECT DISTINCT s.clash, s.n.date, s.n.author, s.n.text
FROM (SELECT clash, unnest(comments) AS n FROM clashes JOIN issues USING (a, b)) AS s
WHERE s.n.author IS DISTINCT FROM '{AUTHOR}' AND NOT EXISTS (
    FROM project.comments AS c
    WHERE c.clash = s.clash AND c.comment = s.n.text AND c.author IS NOT DISTINCT FROM s.n.author
    AND date_trunc('second', c.written_at) IS NOT DISTINCT FROM date_trunc('second', s.n.date)
)
"""
WITH_COMMENTS = """
CREATE OR REPLACE TABLE clashes AS
SELECT c.*, m.comments
FROM clashes AS c
LEFT JOIN (
    SELECT clash, list({text: comment, author: author, date: written_at}
        ORDER BY written_at, comment) AS comments
    FROM project.comments GROUP BY clash
) AS m USING (clash)
ORDER BY c.rowid
"""


def archives_of(caller: str, patterns: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Find the BCF archives that are named, or that patterns stand for.

    Raises
    ------
    FileError
        If there is none.
    """
    found = [path for pattern in patterns for path in find_files(caller, pattern)]
    for path in found:
        require_file(caller, path)
    return found


def join_issues(con: "duckdb.DuckDBPyConnection", caller: str, archives: Sequence[Path]) -> None:
    """Give the table `clashes` the columns of `ISSUES` if there are archives, see `read_issues`."""
    if archives:
        read_issues(con, caller, archives)
        con.execute(JOINED)


def read_issues(con: "duckdb.DuckDBPyConnection", caller: str, archives: Iterable[Path]) -> None:
    """Make the table `issues`, with the columns of `ISSUES`, of the topics of `clashes`.

    The topic of a clash is the one with its GUID, which is that of the two GlobalIds, or else the
    first one in which both elements are selected, as in archives of other programs. A later
    archive hides an earlier one.

    Raises
    ------
    FileError
        If an archive cannot be read.
    """
    import pyarrow as pa

    from spatialq.data.arrow import arrow_type

    pairs = con.execute("SELECT DISTINCT a, b FROM clashes").fetchall()
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in archives:
        with files_read_by(caller):
            archive = read_bcf(path)
        topics = _Topics(archive)
        found |= {pair: row for pair in pairs if (row := topics.of(*pair)) is not None}
    rows = [{"a": a, "b": b, **row} for (a, b), row in found.items()]
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in ISSUES.items()])
    con.register("issues_read", pa.Table.from_pylist(rows, schema))
    con.execute("CREATE TABLE issues AS FROM issues_read")
    con.unregister("issues_read")


class _Topics:
    """The topics of an archive, by what they are of."""

    def __init__(self, archive: Bcf) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.of_element: dict[str, dict[str, None]] = {}
        for each in archive.rows["topics"]:
            kept = {name: each[name] for name in KEPT}
            self.rows[each["topic"].lower()] = {**kept, "comments": []}
        for each in archive.rows["comments"]:
            said = {"text": each["comment"], "author": each["author"], "date": each["created"]}
            if said["text"]:
                self.rows[each["topic"].lower()]["comments"].append(said)
        for each in archive.rows["components"]:
            if each["role"] == "selection" and each["global_id"]:
                self.of_element.setdefault(each["global_id"], {})[each["topic"].lower()] = None

    def of(self, a: str, b: str) -> dict[str, Any] | None:
        """Give the topic of a clash."""
        own = self.rows.get(guid(key_of(a, b)))
        if own is not None:
            return own
        others = self.of_element.get(b, {})
        both = (each for each in self.of_element.get(a, {}) if each in others)
        return self.rows.get(next(both, ""))
