"""`spatialq clash`: what clashes in building models."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spatialq.cli.jobs import Executor, Resume, Tasks, Workers, run_job
from spatialq.cli.options import Device, IfcGeometry, Json, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import note, note_limit, rounded, show, show_json

BRIEF = (
    "relation", "penetration", "thickness", "volume", "distance", "a_class", "a_name", "a_storey",
    "a", "b_class", "b_name", "b_storey", "b",
)  # fmt: skip
"""Columns that are printed where no file is written."""
LIMIT = 20
SHEET = """
SELECT relation, penetration, thickness, distance, a_name, a_class, a_storey, b_name, b_class,
    b_storey, x, y, z, a AS a_global_id, b AS b_global_id, a_file, b_file, flags
FROM clashes
"""
"""The rows of an .xlsx, which people read: what clashes with what, and where."""
MEASURED = "thickness, volume, dx, dy, dz"
"""Columns of a sheet where volumes are asked for."""
GROUPED = """
CREATE OR REPLACE TABLE clashes AS
FROM grouped_clashes('clashes', per := {per}, distance := {distance})
"""
TOPICS = "SELECT *, {per} || ' ' || group_name AS topic FROM clashes ORDER BY group_id, rowid"
"""One topic for each group, which the deepest of its clashes shows."""


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
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write: .bcf, .xlsx, .parquet, .csv or .json; or the folder of a job.",
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
        str | None, typer.Option(help="Of a .bcf: 2.1, which is the default, or 3.0.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Group the clashes by 'element', that of the two with more clashes; by 'space', "
            "which are clusters; or by 'storey', 'class', 'file', 'relation'."
        ),
    ] = None,
    group_distance: Annotated[
        str, typer.Option(help="Length: of 'space', from one clash to the next at most.")
    ] = "1m",
    topics: Annotated[
        Literal["groups", "clashes"],
        typer.Option(help="What a .bcf has a topic for, where the clashes are grouped."),
    ] = "groups",
    exclude_related: Annotated[
        bool,
        typer.Option("--exclude-related", help="Leave out pairs that belong together."),
    ] = False,
    project: Annotated[
        Path | None,
        typer.Option(
            help="Database of a project, made if there is none: it keeps clashes, with what was "
            "said about them, from one run to the next."
        ),
    ] = None,
    executor: Executor = None,
    workers: Workers = None,
    resume: Resume = False,
    as_json: Json = False,
) -> None:
    """Find what clashes in building models: common interiors, or distances below a limit."""
    from spatialq.data.units import metres
    from spatialq.database.table_files import require_output, write_table
    from spatialq.functions.sql_text import literal
    from spatialq.io.files import find_files
    from spatialq.workflows.clash import counts, find_clashes
    from spatialq.workflows.clash_issues import join_issues
    from spatialq.workflows.places import places, readable
    from spatialq.workflows.tables import dicts

    chosen = {
        "a": a,
        "b": b,
        "closer_than": None if closer_than is None else metres("clash", "closer_than", closer_than),
        "exclude_related": exclude_related,
        "geometry": geometry,
        **options,
    }
    reach = metres("clash", "group_distance", group_distance)
    if bcf_in and project is not None:
        message = (
            "clash: --bcf-in must not be given with --project, whose database keeps status and "
            f"comments itself, got {bcf_in[0]!r}"
        )
        raise ValueError(message)
    tasks = Tasks(executor, workers, None, resume=resume)
    if tasks.are_wanted:
        run_job(
            "intersects_with",
            models,
            None if output is None else [output],
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
            },
            command="clash",
            **chosen,
        )
        return
    if output is not None:
        require_output(output, takes=("rows", "clashes"))
    with progress() as update:
        con = find_clashes(models, device=device, progress=update, project=project, **chosen)
    placed = places(con)
    if len(placed) > 1 and not as_json:
        show([readable(each) for each in placed], as_json=False)
    said = () if project is None else ("clash", "status", "assignee")
    archives = [path for pattern in bcf_in or () for path in find_files("clash", pattern)]
    if bcf_in:
        note(f"{join_issues(con, 'clash', archives):,} clashes are in {', '.join(bcf_in)}")
    per = None if group is None else literal(group)
    if per is not None:
        con.execute(GROUPED.format(per=per, distance=reach))
    if output is not None:
        suffix = output.suffix.lower()
        query = "FROM clashes"
        if suffix == ".xlsx":
            query = SHEET.replace("SELECT", f"SELECT {', '.join(said)},") if said else SHEET
            query = query.replace("thickness", MEASURED) if options["volume"] else query
        elif suffix in (".bcf", ".bcfzip"):
            query = TOPICS.format(per=per) if per is not None and topics == "groups" else query
            query = f"SELECT *, assignee AS assigned_to FROM ({query})" if said else query
        rows = write_table(con, query, output, bcf_version=bcf_version)
        show([{"output": str(output), "rows": rows}], as_json=as_json)
        return
    what = (
        "clashes" if per is None else f"clash_groups('clashes', per := {per}, distance := {reach})"
    )
    shown = dicts(con.execute(f"FROM {what} LIMIT {limit + 1}"))
    has_more, shown = len(shown) > limit, shown[:limit]
    summary = counts(con)
    statuses = dicts(con.execute("FROM statuses")) if said else []
    if as_json:
        counted = {"models": placed, "counts": summary, **({"statuses": statuses} if said else {})}
        show_json({**counted, "clashes" if per is None else "groups": shown})
    elif per is not None:
        show(summary, as_json=False)
        show([rounded(row) for row in shown], as_json=False)
    else:
        show(summary, as_json=False)
        if statuses:
            show(statuses, as_json=False)
        if shown:
            is_asked = {"distance": closer_than is not None, "volume": options["volume"]}
            brief = [*said[1:]] + [name for name in BRIEF if is_asked.get(name, True)]
            brief += ["status", "assigned_to"] if bcf_in else []
            show([rounded({name: row[name] for name in brief}) for row in shown], as_json=False)
    if has_more:
        note_limit(limit, "pairs" if per is None else "groups", "; -o writes all")
