"""What clashes in building models, file to file: behind `spatialq clash`."""

import os
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.database.element_sets import DUPLICATES, rules_of
from spatialq.database.element_sets import pairs_sql as related_pairs
from spatialq.database.syntax import parse, result_name
from spatialq.errors import FileWarning, files_read_by
from spatialq.functions.sql_text import literal
from spatialq.workflows import clash_rules
from spatialq.workflows.clash_issues import ISSUES, archives_of, join_issues
from spatialq.workflows.clash_models import COMMAND, read
from spatialq.workflows.clash_project import SAID, run_in
from spatialq.workflows.clash_project_file import last_run
from spatialq.workflows.tables import dicts

if TYPE_CHECKING:
    import duckdb

    from spatialq.io.ifc.columns import Geometry
    from spatialq.io.source import Progress
    from spatialq.workflows.clash_rules import Rule

# The macros get the number of the row as the GlobalId, since real ones are not always unique.
SIDE = """
CREATE OR REPLACE VIEW clash_{side} AS
SELECT row AS global_id, mesh, ifc_class, file_name, step_id FROM {elements}
"""
PAIRS = {
    "clash": """
SELECT a, b, relation, penetration, thickness, volume, dx, dy, dz, 0.0::DOUBLE AS distance, x, y, z,
    flags
FROM intersects_with({a}, {b}, {options})
""",
    "clearance": """
SELECT a, b, coalesce(r.relation, 'disjoint') AS relation, r.penetration, r.thickness,
    r.volume, r.dx, r.dy, r.dz,
    coalesce(r.distance, n.distance) AS distance, coalesce(r.x, (n.ax + n.bx) / 2) AS x,
    coalesce(r.y, (n.ay + n.by) / 2) AS y, coalesce(r.z, (n.az + n.bz) / 2) AS z,
    coalesce(r.flags, n.flags) AS flags
FROM spatial_relations({a}, {b}, {options}) AS r
FULL JOIN closer_than({a}, {b}, {closer_than}, device := {device}) AS n USING (a, b)
""",
}
CLASHES = """
SELECT
    a.global_id AS a, b.global_id AS b, a.ifc_class AS a_class, b.ifc_class AS b_class,
    a.name AS a_name, b.name AS b_name, a.storey AS a_storey, b.storey AS b_storey,
    s.storey_unified AS a_storey_unified, t.storey_unified AS b_storey_unified,
    a.file_name AS a_file, b.file_name AS b_file,
    p.relation, p.penetration, p.thickness, p.volume, p.dx, p.dy, p.dz, p.distance, p.x, p.y, p.z,
    p.flags || [flag FOR flag IN ['a_duplicate_id', 'b_duplicate_id']
        IF CASE flag WHEN 'a_duplicate_id' THEN a.is_duplicate ELSE b.is_duplicate END] AS flags
    {more}, {excluded} AS excluded
FROM ({pairs}) AS p
JOIN elements AS a ON a.row = p.a::BIGINT
JOIN elements AS b ON b.row = p.b::BIGINT
JOIN unified AS s ON s.row = a.row
JOIN unified AS t ON t.row = b.row
LEFT JOIN ({related}) AS r
ON r.a = a.global_id AND r.b = b.global_id AND a.file_name = b.file_name
ORDER BY p.penetration DESC NULLS LAST, p.distance, a.row, b.row
"""
SPLIT = """
CREATE TABLE clashes AS SELECT * EXCLUDE (excluded) FROM found WHERE excluded IS NULL;
CREATE TABLE left_out AS SELECT * FROM found WHERE excluded IS NOT NULL;
"""
RULED = ("rule", "severity")
OF_PROJECT = ("clash", *SAID, "a_element", "b_element", "comments")
WAYS = ("element", "space")
"""Of groups, besides columns."""
LEFT_OUT = """
SELECT excluded, count(*) AS pairs FROM left_out GROUP BY excluded ORDER BY pairs DESC, excluded
"""


@files_read_by(COMMAND)
def find_clashes(
    models: Sequence[str | os.PathLike[str]],
    *,
    a: str | None = None,
    b: str | None = None,
    closer_than: float | None = None,
    exclude: str = "default",
    geometry: "Geometry" = "auto",
    device: str = "auto",
    progress: "Progress | None" = None,
    project: Path | None = None,
    rules: "Sequence[Rule]" = (),
    bcf_in: Sequence[str | os.PathLike[str]] = (),
    group: str | None = None,
    **options: Any,
) -> "duckdb.DuckDBPyConnection":
    """Find the pairs of elements that clash.

    Parameters
    ----------
    models : sequence of path
        IFC files or glob patterns, in the same coordinates.
    a, b : str, optional
        Selectors, if they begin with a class or a GlobalId, such as "IfcBeam, material=S235";
        else SQL conditions over the columns of `read_ifc`, such as "ifc_class = 'IfcBeam'".
        Without `b` all pairs within `a`, without `a` all elements.
    closer_than : float, >= 0, optional
        Metres: also pairs that are this close without a clash, those that touch included.
    exclude : str
        Rules whose pairs are left out, with commas between: 'duplicates', elements that are equal;
        those of `related_elements`; 'default', which is openings, coverings, assemblies and
        connections; or 'none'.
    geometry : 'auto' or 'exact'
        Which library makes the meshes, see `read_ifc`.
    device : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
    progress : callable, optional
        Called with a model, its meshes so far and in all.
    project : Path, optional
        A database that keeps the clashes of one run for the next, see `clash_project`: `clashes`
        has their ids and what people said about them as well.
    rules : sequence of Rule
        Each has sets and options of its own, see `clash_rules`; what one does not say is as given
        here, but for `a`, `b` and `closer_than`, which must not be given.
    bcf_in : sequence of path
        BCF archives or patterns: what is said there of the clashes joins them, see `clash_issues`.
        A project keeps it.
    group : str, optional
        What the clashes will be grouped by: 'element', 'space' or a column that they have.
    **options
        Options of `intersects_with`: `tolerance` and `min_thickness` in metres, `method`,
        `broad_phase`, `volume`.

    Returns
    -------
    duckdb.DuckDBPyConnection
        A database in memory with the tables `clashes`, deepest first, and `left_out`, the pairs
        that are none, with the rule by which they are `excluded`. With `rules` they have the
        `rule` that found them, and its `severity`.

    Raises
    ------
    FileError
        If a model cannot be read, or the project is another database.
    CrsError
        If models lie at different places on the map.
    ValueError
        If an option is wrong; conditions and selectors before the models are read.

    Warns
    -----
    FileWarning
        For models that are odd in some way, far from each other, or misplaced, and for a
        condition that no element meets.
    """
    from spatialq.database.connection import connect_quietly
    from spatialq.functions.catalogue import catalogue

    chosen = catalogue()["intersects_with"].choose(options).values()
    del chosen["relations"]  # follows from `closer_than`
    excluding = rules_of(COMMAND, exclude)
    if rules and any(each is not None for each in (a, b, closer_than, project)):
        message = f"{COMMAND}: with rules there must be no a, b, closer_than and project"
        raise ValueError(message)
    archives = archives_of(COMMAND, bcf_in)
    con = connect_quietly()
    require_sides(con, a, b)
    last = None if project is None else last_run(con, project)
    if group not in (None, *WAYS):
        known = columns(con, has_rules=bool(rules), has_issues=bool(archives),
                        has_project=project is not None, is_new=last is None)  # fmt: skip
        if not known & {group, f"a_{group}"}:
            message = (
                f"{COMMAND}: --group must be element, space or a column of the clashes such as "
                f"storey, got {group!r}"
            )
            raise ValueError(message)
    read(con, models, geometry, progress)
    if rules:
        _find_by_rules(con, rules, {**chosen, "device": device}, exclude)
        join_issues(con, COMMAND, archives)
        return con
    select(con, a, b, stacklevel=3)
    search = partial(
        pairs_sql, {**chosen, "device": device}, within_a=b is None, closer_than=closer_than
    )
    if project is not None:
        test = {"a": a, "b": b, "closer_than": closer_than, **chosen}
        rows = ", a.row AS a_row, b.row AS b_row"
        query = clashes_sql("FROM pairs", excluding, more=rows)
        run_in(con, project, last, test, search, query, archives)
        return con
    con.execute(f"CREATE TABLE found AS {clashes_sql(search(), excluding)}")
    con.execute(SPLIT)
    join_issues(con, COMMAND, archives)
    return con


def columns(
    con: "duckdb.DuckDBPyConnection",
    *,
    has_rules: bool = False,
    has_issues: bool = False,
    has_project: bool = False,
    is_new: bool = True,
) -> set[str]:
    """Name the columns that clashes will have, with those that people made in a project.

    The project is open in the connection, unless it is new.
    """
    (query,) = parse(clashes_sql("FROM pairs", ()))
    found = {result_name(each) for each in query["select_list"]} - {"excluded"}
    found |= {*RULED} if has_rules else set()
    if not has_project:
        return found | (ISSUES.keys() if has_issues else set())
    kept = [] if is_new else con.execute("FROM project.clashes LIMIT 0").description or []
    return found | {*OF_PROJECT} | {name for name, *_ in kept}


def _find_by_rules(
    con: "duckdb.DuckDBPyConnection",
    rules: "Sequence[Rule]",
    chosen: Mapping[str, Any],
    exclude: str,
) -> None:
    for number, rule in enumerate(rules):
        select(con, rule.a, rule.b, stacklevel=4, caller=f"{COMMAND}: rule '{rule.name}'")
        pairs = pairs_sql(
            {**chosen, **rule.options}, within_a=rule.b is None, closer_than=rule.clearance
        )
        more = (
            f", {literal(rule.name)} AS rule, {literal(rule.severity)} AS severity, "
            f"a.row AS a_row, b.row AS b_row, {number} AS number"
        )
        excluding = rules_of(COMMAND, rule.exclude or exclude)
        query = clashes_sql(rule.pairs(pairs), excluding, more=more)
        con.execute(f"INSERT INTO found {query}" if number else f"CREATE TABLE found AS {query}")
    clash_rules.choose(con)


def clashes_sql(
    pairs: str, rules: tuple[str, ...], *, related: str | None = None, more: str = ""
) -> str:
    """Write the query for the rows of pairs, with the rule that excludes a pair in `excluded`.

    `related` is the query for the pairs that `rules` say belong together, if it is another one.
    """
    duplicate = "CASE WHEN p.relation = 'equals' THEN 'duplicates' ELSE r.rule END"
    return CLASHES.format(
        pairs=pairs,
        excluded=duplicate if DUPLICATES in rules else "r.rule",
        related=related or related_pairs(rules, "relations"),
        more=more,
    )


def require_sides(con: "duckdb.DuckDBPyConnection", a: str | None, b: str | None) -> None:
    """Make sure that `a` and `b` of `find_clashes` mean elements, before models are read.

    `con` is without tables of models.

    Raises
    ------
    ValueError
        If one is no selector and no condition.
    """
    from spatialq.database import selection

    for side, condition in (("a", a), ("b", b)):
        selection.require(con, COMMAND, side, condition)


def select(
    con: "duckdb.DuckDBPyConnection",
    a: str | None,
    b: str | None,
    *,
    stacklevel: int,
    caller: str = COMMAND,
) -> None:
    """Make the views `clash_a` and `clash_b` of the tables of all models.

    Warns
    -----
    FileWarning
        If there is no such element, with `stacklevel` as in `warnings.warn`, and if a selector
        names a property that no model has.
    """
    from spatialq.database import selection

    for side, condition in (("a", a), ("b", b)):
        rows = selection.elements(caller, side, condition)
        con.execute(SIDE.format(side=side, elements=rows))
        if con.sql(f"SELECT count(*) FROM clash_{side}").fetchall() == [(0,)]:
            which = "has a mesh" if condition is None else f"matches {side}: {condition}"
            message = f"{caller}: no element of the models {which}"
            warnings.warn(message, FileWarning, stacklevel=stacklevel)


def pairs_sql(
    options: Mapping[str, Any],
    *,
    within_a: bool,
    closer_than: float | None,
    sides: tuple[str, str] = ("clash_a", "clash_b"),
) -> str:
    """Write the query for the pairs of two views of elements, by the numbers of their rows.

    `options` are `device` and those of `intersects_with`.
    """
    return PAIRS["clash" if closer_than is None else "clearance"].format(
        a=literal(sides[0]),
        b="NULL" if within_a else literal(sides[1]),
        closer_than=closer_than,
        options=", ".join(f"{name} := {literal(value)}" for name, value in options.items()),
        device=literal(options["device"]),
    )


COUNTS = """
SELECT
    least(a_class, b_class) AS class, greatest(a_class, b_class) AS other_class,
    CASE WHEN a_class <= b_class THEN relation ELSE coalesce(MAP {
        'contains': 'inside', 'inside': 'contains', 'covers': 'covered_by', 'covered_by': 'covers'
    }[relation], relation) END AS relation,
    count(*) AS pairs, round(max(penetration), 4) AS deepest
FROM clashes
GROUP BY ALL
ORDER BY pairs DESC, class, other_class, relation
"""


def left_out(con: "duckdb.DuckDBPyConnection") -> dict[str, int]:
    """Count the pairs that were left out, by rule."""
    return dict(con.execute(LEFT_OUT).fetchall())


def counts(con: "duckdb.DuckDBPyConnection") -> list[dict[str, Any]]:
    """Count `clashes` by the classes of the two elements and their relation."""
    return dicts(con.execute(COUNTS))
