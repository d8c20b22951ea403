"""Commands that are done as jobs: options that they share, and how they are run."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spatialq.cli.progress import progress_of_job
from spatialq.cli.rendering import note, show
from spatialq.errors import CrsWarning

if TYPE_CHECKING:
    from spatialq.functions.declaration import Parameter

Executor = Annotated[
    str | None,
    typer.Option(
        help="Do the work as a job of many tasks that can be resumed, by: local, processes of this "
        "machine, or ray. The output is a folder then."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes; by default four for each GPU, but no more than cores; without GPUs one "
        "for each core.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the job in the folder: what is done stays.")
]
TileSize = Annotated[
    str | None,
    typer.Option(
        help="Side of square tiles, of which each is a task, such as 500m, or 500u or 500 for 500 "
        "units of x and y; by default each file is one."
    ),
]


FILES = (".laz", ".las", ".tif", ".tiff", ".png", ".parquet", ".csv", ".json", ".xlsx")
"""Endings of files that commands write, which no folder of a job has."""


@dataclass(frozen=True)
class Tasks:
    """The options of a command that make it a job."""

    executor: Executor = None
    workers: Workers = None
    tile_size: TileSize = None
    resume: Resume = False

    @property
    def are_wanted(self) -> bool:
        """Whether one of them is given."""
        return self.resume or any(
            each is not None for each in (self.executor, self.workers, self.tile_size)
        )


def run_job(
    function: str,
    files: Sequence[str],
    outputs: Sequence[str | Path] | None,
    tasks: Tasks,
    *,
    part_format: str | None = None,
    device: str,
    memory: str | None,
    as_json: bool,
    command: str | None = None,
    refused: Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Run a function as a job and show what became of it.

    Parameters
    ----------
    function, files, part_format, device, memory, options
        As for `spatialq.cluster.run`.
    outputs : sequence of path
        One folder.
    tasks : Tasks
    as_json : bool
    command : str, optional
        Whose errors they are; by default the function's.
    refused : mapping, optional
        Options of the command that a job does not have, such as '--png': refused if they are given.

    Raises
    ------
    ValueError
        If an option is given that a job does not have, or the output is not one folder.
    """
    from spatialq.cluster import run
    from spatialq.cluster.error_names import called
    from spatialq.database.element_sets import say_left_out

    command = command or function
    for name, value in (refused or {}).items():
        if value:
            message = (
                f"{command}: {name} is no option of a job: leave it out, or --executor and its like"
            )
            raise ValueError(message)
    if outputs is None or len(outputs) != 1:
        message = (
            f"{command}: --output must be one folder, that of the job, got {len(outputs or ())}"
        )
        raise ValueError(message)
    if Path(outputs[0]).suffix.lower() in FILES:
        message = f"{command}: --output must be the folder of the job, got '{outputs[0]}'"
        raise ValueError(message)
    try:
        with called(command), progress_of_job() as update:
            row = run(
                function,
                files,
                outputs[0],
                executor=tasks.executor or "local",
                workers=tasks.workers,
                tile_size=tasks.tile_size,
                part_format=part_format,
                resume=tasks.resume,
                device=device,
                memory=memory,
                progress=update,
                **options,
            )
    except KeyboardInterrupt:
        note(f"what is done stays in '{outputs[0]}': the same command with --resume goes on")
        raise
    left_out = row.get("left_out")
    show([row if as_json else {k: v for k, v in row.items() if k != "left_out"}], as_json=as_json)
    if left_out:
        note(say_left_out(left_out))


def refuse_part_format(part_format: str | None) -> None:
    """Raise a ValueError if `--part-format` is given to a command that is not run as a job."""
    if part_format is not None:
        message = "--part-format is an option of a job: give --executor, too"
        raise ValueError(message)


def with_lengths(
    command: str,
    function: str,
    files: Sequence[str],
    options: Mapping[str, Any],
    more: Iterable["Parameter"] = (),
) -> dict[str, Any]:
    """Convert the options of a job that are lengths with a unit to numbers.

    Parameters
    ----------
    command, function : str
    files : sequence of str
        Point clouds, patterns or folders; '2u' is two units of x and y of the first file.
    options : mapping
    more : iterable of Parameter
        Those of the job that are none of the function's.

    Raises
    ------
    FileError
        If the first file cannot be read.
    ValueError, CrsError
        As `spatialq.workflows.lengths.with_numbers`.
    """
    from spatialq.functions.catalogue import catalogue
    from spatialq.io.formats import open_source
    from spatialq.workflows.lengths import with_numbers
    from spatialq.workflows.outputs import input_files

    first = input_files(command, files)[0]
    crs = open_source(command, first, ["points"]).crs
    parameters = (*catalogue()[function].parameters, *more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrsWarning)  # the job itself warns
        return with_numbers(command, options, parameters, first, crs)
