"""`spatialq calibrate`: how fast this machine is, for the planner."""

from typing import Annotated

import typer

from spatialq.cli.options import Json
from spatialq.cli.rendering import note, show


def calibrate(
    *,
    limit: Annotated[
        float, typer.Option(min=1, help="Seconds after which no further measurement begins.")
    ] = 55.0,
    as_json: Json = False,
) -> None:
    """Measure how fast this machine is, so that the faster device is chosen on it.

    Takes less than a minute once all functions are compiled; run it on a machine that has nothing
    else to do.
    """
    from spatialq.workflows.calibration import calibrate as measure

    found = measure(limit=limit, update=note)
    rows = [
        {"function": function, "device": device, "times as long as shipped": round(factor, 2)}
        for function, device, factor in found.measured
    ]
    show(rows, as_json=as_json)
    if found.left_out:
        note(f"no time for {', '.join(found.left_out)}: see --limit")
    note(f"{found.seconds:.0f} s; the figures are in '{found.path}'")
