"""Clashes that are kept from one run to the next: behind `spatialq clash --project`.

The database of a project holds the elements and pairs of its last run. The next one matches its
elements with those, searches only pairs of elements whose meshes are new, and says of each clash
what became of it. All of a run is written in one transaction.
"""

import hashlib
import json
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.functions.sql_text import identifier
from spatialq.io.storage import as_path
from spatialq.workflows import clash_issues
from spatialq.workflows.clash_models import COMMAND
from spatialq.workflows.clash_project_file import MEASURE, detach, written

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

TOLERANCE = 0.001
"""Metres: an element that moved less did not move, and a clash is as deep as it was."""
MARGIN = 0.001
"""Metres that boxes are looked at beyond where two elements may meet: more than rounding needs."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS project.runs (
    run BIGINT, ran_at TIMESTAMP, options VARCHAR, elements BIGINT, searched BIGINT, clashes BIGINT
);
CREATE TABLE IF NOT EXISTS project.models (run BIGINT, file_name VARCHAR, digest VARCHAR);
CREATE TABLE IF NOT EXISTS project.history (run BIGINT, clash UUID, status VARCHAR);
CREATE TABLE IF NOT EXISTS project.comments (
    clash UUID, written_at TIMESTAMP DEFAULT current_timestamp, author VARCHAR, comment VARCHAR
);
"""
COLUMNS = "row, global_id, ifc_class, name, file_name, mesh"

# of what the macros consider, the elements that are as they were there in the last run, and others
SIDE = """
CREATE TABLE side_{side} AS SELECT global_id::BIGINT AS row FROM spatial_elements('clash_{side}');
CREATE TABLE kept_rows_{side} AS
SELECT m.row, m.old_row FROM matched AS m SEMI JOIN side_{side} USING (row) WHERE m.kept_in_{side};
CREATE TABLE new_rows_{side} AS FROM side_{side} ANTI JOIN kept_rows_{side} USING (row);
"""
NEAR = """
CREATE TABLE near_rows AS
SELECT DISTINCT e.row
FROM elements AS e
JOIN elements AS n
ON e.xmin <= n.xmax + {margin} AND n.xmin <= e.xmax + {margin}
AND e.ymin <= n.ymax + {margin} AND n.ymin <= e.ymax + {margin}
AND e.zmin <= n.zmax + {margin} AND n.zmin <= e.zmax + {margin}
WHERE n.row IN (FROM new_rows_a UNION ALL FROM new_rows_{b})
"""
"""The elements that new ones may meet, the new ones included."""
VIEWS = """
CREATE VIEW all_{side} AS
SELECT row::VARCHAR AS global_id, mesh FROM elements
WHERE row IN (FROM near_rows) AND row IN (FROM side_{side});
CREATE VIEW new_{side} AS FROM all_{side} WHERE global_id::BIGINT IN (FROM new_rows_{side});
CREATE VIEW kept_{side} AS FROM all_{side} WHERE global_id::BIGINT NOT IN (FROM new_rows_{side});
"""
KEPT_PAIRS = """
SELECT a.row::VARCHAR AS a, b.row::VARCHAR AS b, p.* EXCLUDE (a, b) {measures}
FROM project.pairs AS p
JOIN kept_rows_a AS a ON a.old_row::VARCHAR = p.a
JOIN kept_rows_{b} AS b ON b.old_row::VARCHAR = p.b
"""
NOT_MEASURED = "REPLACE (NULL AS volume, NULL AS dx, NULL AS dy, NULL AS dz)"
MEASURED = """
SELECT k.* REPLACE (v.volume AS volume, v.dx AS dx, v.dy AS dy, v.dz AS dz)
FROM ({kept}) AS k LEFT JOIN measured AS v USING (a, b)
"""
REVISED = """
CREATE TABLE revised AS
SELECT c.* EXCLUDE (a_row, b_row), m.element AS a_element, n.element AS b_element,
    md5(least(m.element, n.element) || ' ' || greatest(m.element, n.element))::UUID AS clash,
    m.has_moved OR n.has_moved AS has_moved, c.rowid AS place
FROM found AS c
JOIN matched AS m ON m.row = c.a_row
JOIN matched AS n ON n.row = c.b_row
QUALIFY row_number() OVER (PARTITION BY clash ORDER BY place) = 1;
CREATE TABLE current AS SELECT * EXCLUDE (excluded) FROM revised WHERE excluded IS NULL;
CREATE TABLE left_out AS
SELECT * EXCLUDE (has_moved, place) FROM revised
WHERE excluded IS NOT NULL ORDER BY place;
"""
FIRST = """
CREATE TABLE clashes AS
SELECT clash, 'new' AS status, NULL::VARCHAR AS assignee, $run::BIGINT AS first_run,
    $run::BIGINT AS last_run, * EXCLUDE (clash, has_moved, place)
FROM current ORDER BY place
"""
OTHER_WAY = """CASE o.relation WHEN 'contains' THEN 'inside' WHEN 'inside' THEN 'contains'
    WHEN 'covers' THEN 'covered_by' WHEN 'covered_by' THEN 'covers' ELSE o.relation END"""
# What people said of a clash, in whatever columns they made, stays while the clash does.
LATER = f"""
CREATE TABLE clashes AS
SELECT c.clash,
    CASE
        WHEN o.clash IS NULL OR (o.last_run < $run - 1 AND o.status <> 'excluded') THEN 'new'
        WHEN c.has_moved OR abs(c.{MEASURE} - o.{MEASURE}) > {TOLERANCE}
            OR c.relation <> if(o.a_element = c.a_element, o.relation, {OTHER_WAY}) THEN 'changed'
        WHEN o.status IN ('new', 'changed', 'resolved', 'excluded') THEN 'active'
        ELSE o.status
    END AS status,
    o.assignee, coalesce(o.first_run, $run::BIGINT) AS first_run, $run::BIGINT AS last_run,
    c.* EXCLUDE (clash, has_moved, place){{added}}
FROM current AS c LEFT JOIN project.clashes AS o USING (clash)
ORDER BY c.place
"""
GONE = """
FROM (
    SELECT * REPLACE (
        if(clash IN (SELECT clash FROM left_out), 'excluded', 'resolved') AS status
    ), status AS before
    FROM project.clashes ANTI JOIN clashes USING (clash)
)
"""
"""The clashes that are none any more. One that is left out is still there, and not resolved."""
KEEP = f"""
CREATE OR REPLACE TABLE project.elements AS
SELECT {COLUMNS}, element, row IN (FROM side_a) AS in_a, row IN (FROM side_{{b}}) AS in_b
FROM elements JOIN (SELECT row, element FROM matched) USING (row)
ORDER BY row;
CREATE OR REPLACE TABLE project.pairs AS FROM pairs;
INSERT INTO project.history SELECT last_run, clash, status FROM clashes;
"""
"""The state of the project after a run: elements and pairs, and what became of each clash."""
AFTER_OTHERS = f"""
INSERT INTO project.history
SELECT $run, clash, status {GONE} WHERE status IS DISTINCT FROM before
"""
WITH_RESOLVED = f"""
CREATE OR REPLACE TABLE project.clashes AS
FROM clashes UNION ALL BY NAME SELECT * EXCLUDE (before) {GONE}
"""

FIRST_KEPT = "CREATE TABLE project.clashes AS FROM clashes"
SEARCHED = """
SELECT count(*), count(*) FILTER (NOT kept)
FROM (
    SELECT row, bool_and(kept) AS kept
    FROM (
        SELECT row, kept_in_a AS kept FROM matched SEMI JOIN side_a USING (row)
        UNION ALL SELECT row, kept_in_{b} FROM matched SEMI JOIN side_{b} USING (row)
    )
    GROUP BY row
)
"""
STATUSES = """
SELECT status, count(*) AS clashes FROM project.history WHERE run = $run GROUP BY ALL ORDER BY ALL
"""
SAID = ("status", "assignee", "first_run", "last_run")
"""Columns of `clashes` beside those of a run."""

Search = Callable[..., str]
"""Writes the query for the pairs of two views, `sides`, or `within_a`."""


def run_in(
    con: "duckdb.DuckDBPyConnection",
    path: Path,
    last: tuple[int, str] | None,
    test: Mapping[str, Any],
    search: Search,
    clashes: str,
    archives: Sequence[Path] = (),
) -> None:
    """Make the table `clashes` of the tables of all models, and keep the run in a project.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        With the tables of the models and the views `clash_a` and `clash_b`.
    path : Path
        The database of the project; it is made if there is none.
    last : tuple of int and str, optional
        Of `clash_project_file.last_run`.
    test : mapping
        What decides which pairs are found; if it is another than in the last run, all are searched.
    search : callable
    clashes : str
        The query for the clashes, of the table `pairs`.
    archives : sequence of Path
        BCF archives with what people said of them: status, assignee, comments.

    Raises
    ------
    FileError
        If the database cannot be written, or an archive cannot be read.
    """
    from importlib.metadata import version

    run, options = 1, json.dumps({**test, "spatialq": version("spatialq")})
    was_measured = last is not None and bool(json.loads(last[1]).get("volume"))
    # which pairs there are does not depend on whether their common parts are measured
    is_same_test = last is not None and _without_volume(last[1]) == _without_volume(options)
    if last is not None:
        run = last[0] + 1
    other = "a" if test["b"] is None else "b"
    con.register("matches", _matched(con, is_first=last is None))
    con.execute("CREATE TABLE matched AS FROM matches")
    sides = dict.fromkeys(("a", other))
    for side in sides:
        con.execute(SIDE.format(side=side))
    ((elements, searched),) = con.execute(SEARCHED.format(b=other)).fetchall()
    # pairs of new elements are searched in both orders, so that this pays for few
    is_part = is_same_test and 2 * searched < elements
    pairs = search()
    if is_part:
        margin = MARGIN + max(2 * test["tolerance"], test["closer_than"] or 0.0)
        con.execute(NEAR.format(b=other, margin=margin))
        for side in sides:
            con.execute(VIEWS.format(side=side))
        kept = KEPT_PAIRS.format(b=other, measures="" if test["volume"] else NOT_MEASURED)
        if test["volume"] and not was_measured:
            con.register("measured", _measured(con, kept, test))
            kept = MEASURED.format(kept=kept)
        pairs = _changed_pairs(search, other, kept)
    con.execute(f"CREATE TABLE pairs AS {pairs}")
    con.execute(f"CREATE TABLE found AS {clashes}")
    con.execute(REVISED)
    if last is None:
        con.execute(FIRST, {"run": run})
    else:
        theirs = con.execute("FROM project.clashes LIMIT 0").description or []
        ours = {
            *(name for name, *_ in con.execute("FROM current LIMIT 0").description or []),
            *SAID,
        }
        added = (identifier(name) for name, *_ in theirs if name not in ours)
        con.execute(LATER.format(added="".join(f", o.{name}" for name in added)), {"run": run})
    clash_issues.read_issues(con, COMMAND, archives)
    con.execute(clash_issues.TAKEN)
    with written(con, path):
        con.execute(SCHEMA)
        con.execute(clash_issues.SAID)
        con.execute(KEEP.format(b=other))
        if last is not None:
            con.execute(AFTER_OTHERS, {"run": run})
        con.execute(WITH_RESOLVED if last is not None else FIRST_KEPT)
        con.executemany("INSERT INTO project.models VALUES (?, ?, ?)", _models(con, run))
        con.execute(
            """INSERT INTO project.runs
            SELECT ?, current_timestamp, ?, ?, ?, (SELECT count(*) FROM clashes)""",
            [run, options, elements, searched if is_part else elements],
        )
    con.execute("CREATE TABLE statuses AS " + STATUSES, {"run": run})
    con.execute(clash_issues.WITH_COMMENTS)
    detach(con, path)


def _matched(con: "duckdb.DuckDBPyConnection", *, is_first: bool) -> "pa.Table":
    """Say of each element which it is, and what it was in the last run.

    Kept is what has the same mesh to the bit, and stands in the same order: which of two elements
    is the first one of a pair, depends on that.
    """
    import pyarrow as pa

    from spatialq.database.element_matching import State, match
    from spatialq.geometry.motion import is_in_place

    there = con.sql(f"SELECT {COLUMNS} FROM elements ORDER BY row").to_arrow_table()
    before = there.slice(0, 0)
    was: dict[str, list[Any]] = {"element": [], "in_a": [], "in_b": [], "row": []}
    if not is_first:
        before = con.sql(
            f"SELECT {COLUMNS}, element, in_a, in_b FROM project.elements ORDER BY row"
        ).to_arrow_table()
        was = {name: before[name].to_pylist() for name in was}
    old, new = State.of_elements(before), State.of_elements(there)
    rows = there.num_rows
    columns: dict[str, list[Any]] = {
        "row": list(range(rows)),
        "old_row": [None] * rows,
        "has_moved": [False] * rows,
        "kept_in_a": [False] * rows,
        "kept_in_b": [False] * rows,
        "element": [None] * rows,
    }
    same = []
    for i, j, _ in match(old, new, TOLERANCE):
        columns["old_row"][j], columns["element"][j] = was["row"][i], was["element"][i]
        a, b = old.shape(i), new.shape(j)
        if a is None or b is None:
            continue
        if np.array_equal(a.vertices, b.vertices) and np.array_equal(a.faces, b.faces):
            same.append((j, i))
        else:
            columns["has_moved"][j] = not is_in_place(a, b, TOLERANCE)
    for j, i in _in_order(sorted(same)):
        columns["kept_in_a"][j], columns["kept_in_b"][j] = was["in_a"][i], was["in_b"][i]
    _name(columns["element"], there["global_id"].to_pylist())
    types = {"old_row": pa.int64(), "element": pa.string()}
    return pa.table({name: pa.array(each, types.get(name)) for name, each in columns.items()})


def _in_order(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Choose as many pairs as possible, sorted by the first, that are sorted by the second, too."""
    lasts: list[int] = []  # the smallest end of a sequence of each length
    before: list[int] = []
    ends: list[int] = []
    for k, (_, i) in enumerate(pairs):
        at = bisect_left(lasts, i)
        before.append(ends[at - 1] if at else -1)
        lasts[at : at + 1], ends[at : at + 1] = [i], [k]
    found, k = [], ends[-1] if ends else -1
    while k >= 0:
        found.append(pairs[k])
        k = before[k]
    return found[::-1]


def _name(elements: list[str | None], global_ids: list[str]) -> None:
    """Name the elements that are new by their GlobalIds, with a number where that is not enough."""
    taken = {name for name in elements if name is not None}
    for row, global_id in enumerate(global_ids):
        if elements[row] is None:
            names = (f"{global_id}#{k}" for k in count(2))
            name = next(each for each in chain([global_id], names) if each not in taken)
            elements[row] = name
            taken.add(name)


def _without_volume(options: str) -> dict[str, Any]:
    return {name: value for name, value in json.loads(options).items() if name != "volume"}


def _measured(con: "duckdb.DuckDBPyConnection", kept: str, test: Mapping[str, Any]) -> "pa.Table":
    """Measure the common parts of pairs that are known: a, b, and the columns of volumes."""
    import pyarrow as pa

    from spatialq.database.transport.elements import meshes_of
    from spatialq.udfs.intersects_with import MEASURES, RELATIONS, Options
    from spatialq.udfs.intersects_with.common_parts import columns

    pairs = con.sql(
        f"SELECT a, b, relation, flags FROM ({kept}) WHERE relation <> 'disjoint'"
    ).to_arrow_table()
    elements = con.sql(
        "SELECT row, mesh FROM elements WHERE row IN "
        f"(SELECT unnest([a, b])::BIGINT FROM ({kept})) ORDER BY row"
    ).to_arrow_table()
    meshes = meshes_of("elements", elements["mesh"].combine_chunks())
    rows = elements["row"].to_numpy()
    flags = pairs["flags"].to_pylist()
    found = {
        "a": np.searchsorted(rows, pairs["a"].cast(pa.int64()).to_numpy()),
        "b": np.searchsorted(rows, pairs["b"].cast(pa.int64()).to_numpy()),
        "relation": np.array([RELATIONS.index(each) for each in pairs["relation"].to_pylist()]),
        "a_open": np.array(["a_open" in each for each in flags], bool),
        "b_open": np.array(["b_open" in each for each in flags], bool),
    }
    measures = columns(found, meshes, None, Options(tolerance=test["tolerance"], volume=True))
    values = {name: pa.array(measures[name], from_pandas=True) for name in MEASURES}
    return pa.table({"a": pairs["a"], "b": pairs["b"], **values})


def _changed_pairs(search: Search, other: str, kept: str) -> str:
    """Write the query for all pairs that searches only those of elements that are not kept.

    `kept` is the query for the pairs of those.

    Of pairs within a, the lower row is the first one, as where all are searched.
    """
    lower = " WHERE a::BIGINT < b::BIGINT" if other == "a" else ""
    found = (
        f"SELECT * FROM ({search(sides=sides, within_a=False)}){lower}"
        for sides in (("new_a", f"all_{other}"), ("kept_a", f"new_{other}"))
    )
    return " UNION ALL BY NAME ".join(f"({each})" for each in (*found, kept))


def _models(con: "duckdb.DuckDBPyConnection", run: int) -> list[tuple[int, str, str]]:
    """Give the files of a run and the digests of their content."""
    names = con.execute("SELECT file_name FROM models").fetchall()
    return [(run, name, _digest(as_path(name))) for (name,) in names]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
