"""`spatialq check`: whether building models hold what an IDS asks for, and their quality."""

from pathlib import Path
from typing import Annotated

import typer

from spatialq.cli.errors import sentence
from spatialq.cli.options import Json
from spatialq.cli.rendering import note, note_limit, show, show_json

LIMIT = 40
RULES = (".ids", ".xml")
FAILED, UNUSABLE = 1, 2
"""Exit statuses: a specification failed; a file cannot be used."""
BRIEF = ("specification", "requirement", "reason", "ifc_class", "name", "global_id")


def check(
    models: Annotated[
        list[str],
        typer.Argument(help="IFC files or patterns, and the IDS file (.ids, .xml) as the last."),
    ],
    *,
    quality: Annotated[
        bool,
        typer.Option(
            "--quality", help="Check duplicates, storeys, meshes, units and so on as well."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Report to write: .html, .xlsx, .bcf, .json, .csv or .parquet."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, help="Maximum number of failed rows to print.")
    ] = LIMIT,
    as_json: Json = False,
) -> None:
    """Check building models by an IDS: what each specification asks of their objects.

    With --quality they are also checked by rules that hold for all models, and no IDS is needed.
    The exit status is 0 where all specifications pass, 1 where one fails, and 2 where a file cannot
    be used, such as an invalid IDS.
    """
    import duckdb

    from spatialq.errors import SpatialqError
    from spatialq.workflows.ids_report import check_models, require_report, write

    files, rules = models, None
    if not quality or models[-1].lower().endswith(RULES):
        *files, rules = models
    if not files:
        message = "check takes IFC files and, as the last, an IDS file, or IFC files and --quality"
        raise typer.BadParameter(message)
    try:
        if output is not None:
            require_report(models, output)
        report = check_models(files, rules, quality=quality)
        if output is not None:
            write(report, output)
    except (SpatialqError, ValueError, OSError, duckdb.Error) as error:
        note(f"error: {sentence(error)}")
        raise typer.Exit(UNUSABLE) from error
    summary = report.summary()
    failed = report.failed
    brief = BRIEF if len(report.models) == 1 else (*BRIEF, "file_name")
    shown = failed.select(brief).slice(0, 0 if output is not None else limit).to_pylist()
    if as_json:
        show_json({"passed": report.has_passed, "specifications": summary, "failed": shown})
    else:
        show(summary, as_json=False)
        if shown:
            show(shown, as_json=False)
        if output is not None:
            note(f"wrote {output}")
        elif failed.num_rows > limit:
            note_limit(limit, "failed rows", "; -o writes all")
    if not report.has_passed:
        raise typer.Exit(FAILED)
