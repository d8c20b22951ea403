"""Point cloud files as workflows read them: checked and opened, their CRS, their columns."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import FileError
from spatialq.io.las.source import LasSource, open_las
from spatialq.io.source import LAS, Progress
from spatialq.workflows.outputs import Outputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS = {"x": np.float64, "y": np.float64, "z": np.float64, "classification": np.uint8}
NOISE = (7, 18)  # ASPRS classes


def open_clouds(
    sources: Sequence[Path], outputs: Outputs, endings: Sequence[str]
) -> list[LasSource]:
    """Open point clouds, after checking that the outputs can be written.

    Raises
    ------
    FileError
        If a source cannot be read or is given twice, or an output cannot be written.
    ValueError
        If an output has none of the endings, or two are one file.
    """
    from spatialq.export.las import require_format
    from spatialq.io.files import require_file

    command = outputs.command
    outputs.check(sources, endings)
    opened: dict[Path, LasSource] = {}
    for source in sources:
        require_file(command, source)
        if source.suffix.lower() not in LAS:
            raise FileError.of(command, source, "is no point cloud: LAS, LAZ or COPC")
        if source.resolve() in opened:
            raise FileError.of(command, source, "is given twice")
        for target in outputs.ending_in(*LAS):
            require_format(source, target)
        opened[source.resolve()] = open_las(source)
    return list(opened.values())


def crs_of(
    command: str, clouds: Sequence[LasSource], crs: str | None, *, override: bool
) -> str | None:
    """Give the CRS of clouds, or the argument `crs`, and warn about the clouds.

    Raises
    ------
    CrsError, ValueError
        As `spatialq.io.crs.given_or_own`.
    """
    from spatialq.io import crs as crs_text
    from spatialq.io.files import warn_about

    named = [(cloud.path, cloud.crs) for cloud in clouds]
    crs = crs_text.given_or_own(command, named, crs, override=override)
    for cloud in clouds:
        warn_about(command, cloud)
    return crs


def read_columns(cloud: LasSource, progress: Progress | None) -> "list[NDArray[Any]]":
    """Read x, y, z and class of all points."""
    arrays = {name: np.empty(cloud.rows, kind) for name, kind in COLUMNS.items()}
    cloud.read_into(arrays, progress)
    return list(arrays.values())


def without_noise(classes: "NDArray[np.uint8]") -> "NDArray[np.int64]":
    """Give the rows of the points that are not classified as noise."""
    return np.flatnonzero(~np.isin(classes, NOISE))
