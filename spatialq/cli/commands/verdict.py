"""`spatialq verdict`: which elements of building models were built as modelled."""

from typing import Annotated, Any

import typer

from spatialq.cli.options import (
    SEPARATOR,
    Crs,
    Device,
    Json,
    Memory,
    OverrideCrs,
    with_parameters,
)
from spatialq.cli.progress import progress
from spatialq.cli.rendering import note, note_limit, rounded, show, show_written

BRIEF = ("status", "dx", "dy", "dz", "offset", "seen", "ifc_class", "name", "storey", "global_id")
"""Columns that are printed where no file is written."""
HIDDEN = ("matrix", "sentence", "statuses", "verdicts")
"""What is not printed of files that are written."""
AS_MODELLED = ("installed", "not applicable")
"""Statuses of elements that are only counted."""


@with_parameters("coverage", exclude=("scanner", "faces", "memory"))
def verdict(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Point clouds, which together are one scan, and IFC files; or patterns or folders "
            "of them."
        ),
    ],
    *,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write; may be given several times: .xlsx, .csv, .json or .parquet for a "
            "row per element, .laz or .las for the points coloured by their deviation, .bcf for a "
            "topic per element that is displaced or not found, .ifc for the elements coloured by "
            "status, .png for a picture.",
        ),
    ] = None,
    options: dict[str, Any],
    register: Annotated[
        str,
        typer.Option(
            help="How the scan is placed in the models: auto, by its planes; none, where it lies; "
            "or the 16 numbers of a matrix, row by row, with commas between."
        ),
    ] = "auto",
    scanner: Annotated[
        list[str] | None,
        typer.Option(
            help="x,y,z of the scanner in the coordinates of the clouds; once for each position."
        ),
    ] = None,
    crs: Crs = None,
    override_crs: OverrideCrs = False,
    device: Device = "auto",
    memory: Memory = None,
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of elements to print.")] = 20,
    as_json: Json = False,
) -> None:
    """Compare a scan with building models: which elements were built, where, and how well seen."""
    from spatialq.workflows.verdict import REGISTER, write_verdict
    from spatialq.workflows.verdict_outputs import gravity

    matrix = register if register in REGISTER else _numbers("register", register, 16)
    with progress() as update:
        row = write_verdict(
            files,
            output or (),
            register=matrix,
            scanners=[_numbers("scanner", each, 3) for each in scanner or ()],
            crs=crs,
            override_crs=override_crs,
            device=device,
            memory=memory,
            progress=update,
            **options,
        )
    if as_json:
        show([row], as_json=True)
        return
    if row["sentence"]:
        note(row["sentence"])
    if output:
        counted = {name: value for name, value in row.items() if name not in HIDDEN}
        show_written({**counted, **row["statuses"]}, as_json=False)
        return
    show([{"status": name, "elements": n} for name, n in row["statuses"].items()], as_json=False)
    odd = [each for each in row["verdicts"] if each["status"] not in AS_MODELLED]
    odd.sort(key=gravity)
    if odd and limit:
        brief = ({name: each[name] for name in BRIEF} for each in odd[:limit])
        show([rounded(each) for each in brief], as_json=False)
    if len(odd) > limit:
        note_limit(limit, "elements", "; -o writes all")


def _numbers(name: str, given: str, count: int) -> list[float]:
    """Read numbers with commas between them."""
    try:
        numbers = [float(each) for each in given.split(SEPARATOR)]
    except ValueError:
        numbers = []
    if len(numbers) != count:
        message = f"verdict: --{name} must be {count} numbers with commas between, got {given!r}"
        raise ValueError(message)
    return numbers
