"""`spatialq diff`: what changed from one building model to another."""

from pathlib import Path
from typing import Annotated

import typer

from spatialq.cli.errors import plain
from spatialq.cli.options import Json
from spatialq.cli.rendering import note, note_limit, show, show_json

LIMIT = 40
CHANGES = "CREATE TABLE changes AS FROM model_changes($old, $new, $unchanged, $tolerance)"
SHEET = """
SELECT
    array_to_string(changes, ', ') AS changes, ifc_class, name, storey,
    concat_ws('; ',
        CASE WHEN dx IS NOT NULL THEN format('by {:.3f} {:.3f} {:.3f} m', dx, dy, dz) END,
        CASE WHEN turn > 0 THEN format('turned {:.2f}°', turn) END,
        nullif(array_to_string([
            d.property || ': ' || coalesce(d.old, '-') || ' → ' || coalesce(d.new, '-')
            FOR d IN details
        ], '; '), '')
    ) AS what,
    global_id, old_global_id, matched_by
FROM changes
"""
"""The rows of a .csv or .xlsx, which people read: without lists."""
SHEETS = (".csv", ".xlsx")
COUNTS = """
SELECT change, ifc_class, count(*) AS objects
FROM (
    SELECT unnest(if(status = 'unchanged', [status], changes)) AS change, ifc_class FROM changes
)
GROUP BY ALL ORDER BY change, objects DESC, ifc_class
"""
RENUMBERED = "SELECT count(*) FROM changes WHERE global_id <> old_global_id"


def diff(
    old: Annotated[str, typer.Argument(help="An IFC file.")],
    new: Annotated[str, typer.Argument(help="Another one, a later state of the same model.")],
    *,
    unchanged: Annotated[
        bool, typer.Option("--unchanged", help="List objects that did not change as well.")
    ] = False,
    tolerance: Annotated[
        str, typer.Option(help="Length, such as 5mm: what moved less did not move.")
    ] = "1mm",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write: .xlsx, .csv, .parquet or .json."),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of objects to print.")] = LIMIT,
    as_json: Json = False,
) -> None:
    """Say what changed from one building model to another, object by object.

    Objects are the same by their GlobalId, or, where that is new, by their place and shape.
    """
    import duckdb

    from spatialq.data.units import metres
    from spatialq.database.connection import connect_quietly
    from spatialq.database.table_files import require_output, write_table
    from spatialq.workflows.tables import dicts

    if output is not None:
        require_output(output, takes=("rows",))
    given = {
        "old": old,
        "new": new,
        "unchanged": unchanged,
        "tolerance": metres("diff", "tolerance", tolerance),
    }
    with connect_quietly() as con:
        try:
            con.execute(CHANGES, given)
        except duckdb.Error as error:
            message = plain(error).replace("model_changes", "diff", 1)
            raise ValueError(message) from None
        if output is not None:
            query = SHEET if output.suffix.lower() in SHEETS else "FROM changes"
            rows = write_table(con, query, output)
            show([{"output": str(output), "rows": rows}], as_json=as_json)
            return
        counts = dicts(con.execute(COUNTS))
        query = "FROM changes" if as_json else SHEET
        shown = dicts(con.execute(f"{query} LIMIT {limit + 1}"))
        (renumbered,) = con.execute(RENUMBERED).fetchall()[0]
    has_more, shown = len(shown) > limit, shown[:limit]
    if as_json:
        show_json({"counts": counts, "changes": shown})
        return
    if not counts:
        note("nothing changed")
        return
    show(counts, as_json=False)
    brief = ("changes", "ifc_class", "name", "storey", "what")
    if shown:
        show([{name: row[name] for name in brief} for row in shown], as_json=False)
    if renumbered:
        note(f"{renumbered:,} of these objects have a new GlobalId")
    if has_more:
        note_limit(limit, "objects", "; -o writes all")
