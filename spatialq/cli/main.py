"""The command line: `spatialq info | load | sql | run | shell | ground | planes | ...`."""

import signal
import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer

from spatialq.cli.commands.calibrate import calibrate
from spatialq.cli.commands.check import check
from spatialq.cli.commands.clash import clash
from spatialq.cli.commands.clip import clip
from spatialq.cli.commands.data import info, load, sql, unload
from spatialq.cli.commands.demo import demo
from spatialq.cli.commands.devices import devices
from spatialq.cli.commands.diff import diff
from spatialq.cli.commands.features import features
from spatialq.cli.commands.formats import formats
from spatialq.cli.commands.ground import ground
from spatialq.cli.commands.jobs import jobs, seeds
from spatialq.cli.commands.lod import lod
from spatialq.cli.commands.mcp import mcp
from spatialq.cli.commands.planes import planes
from spatialq.cli.commands.point_choice import noise, thin
from spatialq.cli.commands.render import render
from spatialq.cli.commands.report import report
from spatialq.cli.commands.run import run
from spatialq.cli.commands.shell import shell
from spatialq.cli.commands.terrain import terrain
from spatialq.cli.commands.tiles import tiles
from spatialq.cli.commands.verdict import verdict
from spatialq.cli.commands.view import view
from spatialq.cli.commands.warm import warm
from spatialq.cli.errors import sentence
from spatialq.cli.options import CommandGroup, register
from spatialq.cli.progress import announce_compiling
from spatialq.cli.rendering import forget_warnings, note, note_warning
from spatialq.errors import CrsWarning, FileWarning, SpatialqError

CTRL_C = 130
"""The exit status after it."""

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Point clouds, terrain grids and building models in SQL.",
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 (typer calls it so)
    if asked:
        from importlib.metadata import version

        typer.echo(f"spatialq {version('spatialq')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Point clouds, terrain grids and building models in SQL."""


COMMANDS = (
    info, load, unload, sql, run, shell, report, noise, thin, clip, ground, seeds, planes, clash,
    check, diff, verdict, features, terrain, lod, tiles, view, mcp, render, jobs, demo, formats,
    devices, calibrate, warm,
)  # fmt: skip
for command in COMMANDS:
    register(app, command)


def main() -> None:
    """Run the command line; errors of the user's making are one line and exit status 1.

    SIGTERM ends it as Ctrl-C does: after what is under way, such as a part of a kernel's work. The
    second signal does not wait for that.
    """
    from spatialq.runtime.progress import cancel_all

    forget_warnings()
    warnings.showwarning = _show_warning
    for kind in (FileWarning, CrsWarning):
        warnings.simplefilter("always", kind)
    announce_compiling()
    stopped_by: signal.Signals | None = None

    def end(number: int, _: Any) -> None:
        nonlocal stopped_by
        stopped_by = signal.Signals(number)
        cancel_all()
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    def interrupted() -> NoReturn:
        note("interrupted: nothing was half written")
        status = 128 + (stopped_by or signal.SIGINT)
        sys.exit(status)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        import duckdb

        status = app(prog_name="spatialq", standalone_mode=False)
    except typer.Abort:
        interrupted()
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except typer.TyperException as wrong:  # a wrong option or argument
        text = getattr(wrong, "format_message", wrong.__str__)()
        if text:  # none where the help was shown, since there was no command
            note(f"error: {text.removesuffix('.')}; see --help")
        sys.exit(2)
    except BaseException as error:
        # after a signal, DuckDB and the imports that it makes fail with errors of many kinds
        if stopped_by or isinstance(error, KeyboardInterrupt):
            interrupted()
        if not isinstance(error, SpatialqError | ValueError | OSError | duckdb.Error):
            raise  # an error in spatialq itself
        note(f"error: {sentence(error)}")
        sys.exit(1)
    if status == CTRL_C:  # typer returns it instead of raising
        interrupted()
    if status:
        sys.exit(status)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    note_warning(str(message))
