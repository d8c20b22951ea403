"""`spatialq warm`: compiles all kernels for this machine, before they are called."""

from pathlib import Path

from spatialq.cli.progress import progress
from spatialq.cli.rendering import note


def warm() -> None:
    """Compile all functions for this machine, several at once, so that no call has to.

    A wheel has compiled code for most processors; then there is nothing to do.
    """
    from spatialq.workflows.warming import warm as compile_all

    with progress() as update:
        count = compile_all(update=lambda done, total: update(Path("functions"), done, total))
    if count:
        note(f"compiled {count} functions, which are kept for later")
    else:
        note("nothing needs to be compiled: there is code of all functions for this processor")
