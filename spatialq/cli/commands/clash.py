"""`spatialq clash`: what clashes in building models."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spatialq.cli.jobs import Executor, Resume, Tasks, Workers, run_job
from spatialq.cli.options import Device, IfcGeometry, Json, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import note, note_limit, rounded, show, show_json

if TYPE_CHECKING:
    import duckdb

    from spatialq.workflows.clash_files import Asked

BRIEF = (
    "relation", "penetration", "thickness", "volume", "distance", "a_class", "a_name", "a_storey",
    "a", "b_class", "b_name", "b_storey", "b",
)  # fmt: skip
"""Columns that are printed where no file is written."""
FILES = {"a_file": "a_storey", "b_file": "b_storey"}
"""Columns that are printed for several models, without folders, and those that they follow."""
LIMIT = 20
GROUPED = """
CREATE OR REPLACE TABLE clashes AS
FROM grouped_clashes('clashes', per := {per}, distance := {distance})
"""


@with_parameters("intersects_with", exclude=("relations",), of_file=False)
def clash(
    models: Annotated[list[str], typer.Argument(help="IFC files or patterns.")],
    *,
    a: Annotated[
        str | None,
        typer.Option(
            "--a",
            help="The elements a: a selector such as 'IfcBeam, material=S235', or an SQL condition "
            "such as \"ifc_class = 'IfcBeam'\".",
        ),
    ] = None,
    b: Annotated[
        str | None,
        typer.Option(
            "--b",
            help="The elements b, alike; by default all pairs within a are tested.",
        ),
    ] = None,
    options: dict[str, Any],
    closer_than: Annotated[
        str | None,
        typer.Option(help="Length, such as 50mm: pairs that are this close are given as well."),
    ] = None,
    geometry: IfcGeometry = "auto",
    device: Device = "auto",
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write: .html, .bcf, .ifc, .glb, .xlsx, .parquet, .csv or .json; .png, a "
            "picture of the clash matrix; or the folder of a job. May be given several times.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of pairs to print.")] = LIMIT,
    bcf_in: Annotated[
        list[str] | None,
        typer.Option(
            "--bcf-in",
            help="BCF archive or pattern: what it says of the clashes, status and comments, joins "
            "them; may be given several times.",
        ),
    ] = None,
    bcf_version: Annotated[
        Literal["2.1", "3.0"] | None, typer.Option(help="Of a .bcf; by default 2.1.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Group the clashes by 'element', that of the two with more clashes; by 'space', "
            "which are clusters; or by 'storey', 'class', 'file', 'relation', 'rule'."
        ),
    ] = None,
    group_distance: Annotated[
        str, typer.Option(help="Length: of 'space', from one clash to the next at most.")
    ] = "1m",
    topics: Annotated[
        Literal["groups", "clashes"],
        typer.Option(help="What a .bcf has a topic for, where the clashes are grouped."),
    ] = "groups",
    exclude: Annotated[
        str,
        typer.Option(
            help="Rules whose pairs are left out, with commas between: duplicates, openings, "
            "coverings, assemblies, connections, systems; 'default' is all but duplicates and "
            "systems; or 'none'."
        ),
    ] = "default",
    project: Annotated[
        Path | None,
        typer.Option(
            help="Database of a project, made if there is none: it keeps clashes, with what was "
            "said about them, from one run to the next."
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(help="YAML file of rules, each with its own sets, lengths and severity."),
    ] = None,
    matrix: Annotated[
        str | None,
        typer.Option(
            help="The clash matrix instead of the clashes: of 'file', 'class', 'storey' or 'name'."
        ),
    ] = None,
    pictures: Annotated[
        bool,
        typer.Option(
            "--pictures/--no-pictures",
            help="Whether an .xlsx has pictures of the first 200 clashes, or groups.",
        ),
    ] = True,
    executor: Executor = None,
    workers: Workers = None,
    resume: Resume = False,
    as_json: Json = False,
) -> None:
    """Find what clashes in building models: common interiors, or distances below a limit."""
    from spatialq.data.units import metres
    from spatialq.database.element_sets import say_left_out
    from spatialq.database.table_files import require_output
    from spatialq.export.atomic import require_different, require_writable
    from spatialq.functions.sql_text import literal
    from spatialq.workflows import clash_matrix
    from spatialq.workflows.clash import counts, find_clashes, left_out
    from spatialq.workflows.clash_bcf import SUFFIXES
    from spatialq.workflows.clash_files import SHEETS, Asked, groups_sql
    from spatialq.workflows.clash_rules import counts as counts_by_rule
    from spatialq.workflows.clash_rules import read_rules
    from spatialq.workflows.places import places, readable
    from spatialq.workflows.tables import dicts

    chosen = {
        "a": a,
        "b": b,
        "closer_than": None if closer_than is None else metres("clash", "closer_than", closer_than),
        "exclude": exclude,
        "geometry": geometry,
        **options,
    }
    reach = metres("clash", "group_distance", group_distance)
    tasks = Tasks(executor, workers, None, resume=resume)
    if tasks.are_wanted:
        run_job(
            "intersects_with",
            models,
            output,
            tasks,
            device=device,
            memory=None,
            as_json=as_json,
            refused={
                "--limit": limit != LIMIT,
                "--bcf-in": bcf_in,
                "--bcf-version": bcf_version,
                "--group": group,
                "--project": project is not None,
                "--rules": rules is not None,
                "--matrix": matrix is not None,
                "--no-pictures": not pictures,
            },
            command="clash",
            **chosen,
        )
        return
    outputs = output or []
    endings = {each.suffix.lower() for each in outputs}
    for each in outputs:
        if each.suffix.lower() == clash_matrix.PICTURE:
            require_writable(each)
        else:
            require_output(each, takes=("rows",) if matrix else ("rows", "clashes", "GlobalIds"))
    require_different("clash", outputs)
    got = ", ".join(f"'{each}'" for each in outputs) or "no file"
    if bcf_version is not None and not endings & {*SUFFIXES}:
        message = f"clash: --bcf-version is for -o of {' or '.join(SUFFIXES)}, got {got}"
        raise ValueError(message)
    if not pictures and SHEETS not in endings:
        message = f"clash: --no-pictures is for -o of {SHEETS}, got {got}"
        raise ValueError(message)
    ruled = () if rules is None else read_rules(rules)
    if matrix is not None:
        clash_matrix.require_matrix(matrix)
    with progress() as update:
        con = find_clashes(
            models,
            device=device,
            progress=update,
            project=project,
            rules=ruled,
            bcf_in=bcf_in or (),
            group=group,
            **chosen,
        )
    excluded = left_out(con)
    placed = places(con)
    if len(placed) > 1 and not as_json:
        show([readable(each) for each in placed], as_json=False)
    statuses = dicts(con.execute("FROM statuses")) if project else []
    if statuses:
        note("; ".join(f"{each['clashes']:,} {each['status']}" for each in statuses))
    said = [] if project is None else ["clash", "status", "assignee"]
    said += ["rule", "severity"] if ruled else []
    if bcf_in:
        ((count,),) = con.execute("SELECT count(*) FROM issues").fetchall()
        note(f"{count:,} clashes are in {', '.join(bcf_in)}")
    per = None if group is None else literal(clash_matrix.UNIFIED.get(group, group))
    if per is not None:
        con.execute(GROUPED.format(per=per, distance=reach))
    if outputs:
        asked = Asked(said, per, reach, topics, matrix, bool(ruled), options["volume"])
        written = [
            {"output": str(each), "rows": _write(con, each, asked, bcf_version, pictures=pictures)}
            for each in outputs
        ]
        more = {"left_out": excluded} | ({"statuses": statuses} if project else {})
        show([each | more if as_json else each for each in written], as_json=as_json)
        if excluded:
            note(say_left_out(excluded))
        return
    what = "FROM clashes" if per is None else groups_sql(per, reach)
    shown = dicts(con.execute(f"{what} LIMIT {limit + 1}"))
    has_more, shown = len(shown) > limit, shown[:limit]
    summary = counts(con)
    between = clash_matrix.table(con, matrix) if matrix else []
    by_rule = counts_by_rule(con, ruled) if ruled else []
    if as_json:
        counted: dict[str, Any] = {"models": placed, "counts": summary, "left_out": excluded}
        counted |= {"statuses": statuses} if project else {}
        counted |= {"rules": by_rule} if ruled else {}
        counted |= {"matrix": dicts(con.execute(clash_matrix.matrix_sql(matrix)))} if matrix else {}
        show_json({**counted, "clashes" if per is None else "groups": shown})
    elif matrix:
        show(between, as_json=False)
        has_more = False
    elif per is not None:
        show(summary, as_json=False)
        show([rounded(row) for row in shown], as_json=False)
    else:
        show(by_rule or summary, as_json=False)
        if shown:
            is_asked = {
                "distance": closer_than is not None or bool(ruled),
                "volume": options["volume"],
            }
            brief = [name for name in said if name != "clash"]
            brief += [name for name in BRIEF if is_asked.get(name, True)]
            brief += ["status", "assigned_to"] if bcf_in and not project else []
            for name, before in FILES.items() if len(placed) > 1 else ():
                brief.insert(brief.index(before) + 1, name)
            named = [
                row | {name: row[name] and Path(row[name]).name for name in FILES} for row in shown
            ]
            show([rounded({name: row[name] for name in brief}) for row in named], as_json=False)
    if excluded:
        note(say_left_out(excluded))
    if has_more:
        note_limit(limit, "pairs" if per is None else "groups", "; -o writes all")


def _write(
    con: "duckdb.DuckDBPyConnection",
    output: Path,
    asked: "Asked",
    bcf_version: str | None,
    *,
    pictures: bool,
) -> int:
    """Write a file of clashes; give its rows."""
    from spatialq.database.table_files import write_table
    from spatialq.workflows import clash_matrix
    from spatialq.workflows.clash_bcf import SUFFIXES
    from spatialq.workflows.clash_files import SHEETS, query_of
    from spatialq.workflows.clash_files import pictures as pictures_of

    suffix = output.suffix.lower()
    if suffix == clash_matrix.PICTURE:
        per = asked.matrix or clash_matrix.default_per(con)
        return clash_matrix.write_picture(con, per, output)
    query, sheets = query_of(con, suffix, asked)
    is_shown = pictures and suffix == SHEETS and not asked.matrix
    return write_table(
        con,
        query,
        output,
        bcf_version=bcf_version if suffix in SUFFIXES else None,
        sheets=sheets,
        pictures=pictures_of(con, output, asked) if is_shown else None,
    )
