"""What others said of clashes, in BCF archives that came back: `spatialq clash --bcf-in`."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.errors import files_read_by
from spatialq.export.bcf import guid
from spatialq.io.bcf import Bcf, read_bcf
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


def join_issues(con: "duckdb.DuckDBPyConnection", caller: str, archives: Iterable[Path]) -> int:
    """Give the table `clashes` the columns of `ISSUES`, from BCF archives.

    The topic of a clash is the one with its GUID, which is that of the two GlobalIds, or else the
    first one in which both elements are selected, as in archives of other programs. A later
    archive hides an earlier one.

    Returns
    -------
    int
        Clashes that have a topic.

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
    con.register("issues", pa.Table.from_pylist(rows, schema))
    con.execute(JOINED)
    con.unregister("issues")
    return len(rows)


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
