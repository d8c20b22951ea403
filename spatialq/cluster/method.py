"""How a function is run as a job: what it reads, its stages, and its options."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from spatialq.cluster.job import Job
from spatialq.data.frame import Frame
from spatialq.execution.units import Fitted, fit
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Parameters
from spatialq.io.clouds import what_reprojects
from spatialq.io.formats import open_source
from spatialq.io.storage import as_path

Opener = Callable[[Function, Sequence[str], Any, dict[str, Any]], tuple[Fitted, str | None]]
"""Gets a function, the paths of a job, its parameters and its other options, see `Method.more`, and
gives the parameters as kernels take them, and the CRS of the first file. What it refuses is refused
before there is a job."""


def open_points(
    function: Function, paths: Sequence[str], options: Parameters, _: dict[str, Any]
) -> tuple[Fitted, str | None]:
    """Give the parameters of a function of points as its kernel takes them, and the CRS.

    Raises
    ------
    FileError
        If the first file cannot be read.
    CrsError
        If coordinates are in degrees.
    """
    crs = open_source(function.name, as_path(paths[0]), ["points"]).crs
    subject = f"'{paths[0]}'" if len(paths) == 1 else f"{len(paths)} files"
    frame = Frame(subject, crs, remedy=what_reprojects(paths[0]))
    return fit(function, {"z": np.empty(0)}, options, frame), crs


def check_nothing(*_: Any) -> None:
    """Accept whatever `Method.check` is asked."""


@dataclass(frozen=True)
class Method:
    """How a function is run as a job."""

    function: str
    run: Callable[[Job], None]
    """Does all stages of a job, of which the last one is `Job.parts`."""
    kind: Literal["points", "grid", "ifc"] = "points"
    """The kind of its files, see `spatialq.io.formats.find_sources`."""
    open: Opener = open_points
    formats: tuple[str, ...] = ("parquet",)
    """What its parts may be, by their endings; the first is the default."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Its options besides the function's parameters, with their defaults: values of JSON."""
    check: Callable[[Mapping[str, Any], float | None, Any, str], None] = check_nothing
    """Gets those options, `tile_size`, the parameters and `part_format`; raises a ValueError where
    they cannot be used, before anything is read or written."""
    devices: tuple[str, ...] | None = None
    """What `device` may be where its tasks run on the CPU; None for all that the function takes."""
