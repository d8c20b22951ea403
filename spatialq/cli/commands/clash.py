"""`spatialq clash`: what clashes in building models."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spatialq.cli.jobs import Executor, Resume, Tasks, Workers, run_job
from spatialq.cli.options import Device, IfcGeometry, Json, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import note_limit, rounded, show, show_json

BRIEF = (
    "relation", "depth", "distance", "a_class", "a_name", "a_storey", "a", "b_class", "b_name",
    "b_storey", "b",
)  # fmt: skip
"""Columns that are printed where no file is written."""
LIMIT = 20
SHEET = """
SELECT relation, depth, distance, a_name, a_class, a_storey, b_name, b_class, b_storey, x, y, z,
    a AS a_global_id, b AS b_global_id, a_file, b_file, flags
FROM clashes
"""
"""The rows of an .xlsx, which people read: what clashes with what, and where."""


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
            help="File to write: .xlsx, .parquet, .csv or .json; or the folder of a job.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of pairs to print.")] = LIMIT,
    exclude_related: Annotated[
        bool,
        typer.Option("--exclude-related", help="Leave out pairs that belong together."),
    ] = False,
    executor: Executor = None,
    workers: Workers = None,
    resume: Resume = False,
    as_json: Json = False,
) -> None:
    """Find what clashes in building models: common interiors, or distances below a limit."""
    from spatialq.data.units import metres
    from spatialq.database.table_files import require_output, write_table
    from spatialq.workflows.clash import counts, find_clashes
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
            refused={"--limit": limit != LIMIT},
            command="clash",
            **chosen,
        )
        return
    if output is not None:
        require_output(output, takes="rows")
    with progress() as update:
        con = find_clashes(models, device=device, progress=update, **chosen)
    placed = places(con)
    if len(placed) > 1 and not as_json:
        show([readable(each) for each in placed], as_json=False)
    if output is not None:
        query = SHEET if output.suffix.lower() == ".xlsx" else "FROM clashes"
        rows = write_table(con, query, output)
        show([{"output": str(output), "rows": rows}], as_json=as_json)
        return
    shown = dicts(con.execute(f"FROM clashes LIMIT {limit + 1}"))
    has_more, shown = len(shown) > limit, shown[:limit]
    summary = counts(con)
    if as_json:
        show_json({"models": placed, "counts": summary, "clashes": shown})
    else:
        show(summary, as_json=False)
        if shown:
            brief = [name for name in BRIEF if name != "distance" or closer_than is not None]
            show([rounded({name: row[name] for name in brief}) for row in shown], as_json=False)
    if has_more:
        note_limit(limit, "pairs", "; -o writes all")
