"""`spatialq warm`: compiles functions for this machine, before they are called."""

from pathlib import Path
from typing import Annotated

import typer

from spatialq.cli.progress import progress
from spatialq.cli.rendering import note


def warm(
    functions: Annotated[
        list[str] | None, typer.Argument(help="By default all that there are.")
    ] = None,
) -> None:
    """Compile functions for this machine, several at once, so that no call has to.

    A wheel has compiled code for most processors; then there is nothing to do.
    """
    from spatialq.workflows.warming import kernels_of
    from spatialq.workflows.warming import warm as compile_all

    with progress() as update:
        count = compile_all(
            kernels_of(functions) if functions else None,
            update=lambda done, total: update(Path("functions"), done, total),
        )
    if count:
        note(f"compiled {count} functions, which are kept for later")
    else:
        note("nothing needs to be compiled: there is code of all functions for this processor")
