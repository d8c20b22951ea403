"""What commands on a point cloud file share: outputs checked first, units, columns read whole."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import CrsError, FileError
from spatialq.io.source import LAS, Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spatialq.io.las.source import LasSource

COLUMNS = ("x", "y", "z", "classification")
NOISE = (7, 18)  # ASPRS classes


def open_clouds(
    command: str, sources: Sequence[Path], targets: Sequence[Path], endings: Sequence[str]
) -> "list[LasSource]":
    """Open point clouds, after looking whether the outputs can be written.

    Raises
    ------
    FileError
        If a source cannot be read or is there twice, or an output cannot be written.
    ValueError
        If an output has none of the endings, or two are one file.
    """
    from spatialq.export.atomic import require_outputs
    from spatialq.export.las import require_format
    from spatialq.io.files import require_file
    from spatialq.io.las.source import open_las

    for source in sources:
        require_outputs(command, source, targets, endings)
    for target in targets:
        if target.name.lower().endswith(".copc.laz"):
            message = f"{command}: output '{target}' must be no COPC file, which cannot be written"
            raise ValueError(message)
    opened: dict[Path, LasSource] = {}
    for source in sources:
        require_file(command, source)
        if source.suffix.lower() not in LAS:
            raise FileError.of(command, source, "is no point cloud: LAS, LAZ or COPC")
        if source.resolve() in opened:
            raise FileError.of(command, source, "is given twice")
        for target in targets:
            if target.suffix.lower() in LAS:
                require_format(source, target)
        opened[source.resolve()] = open_las(source)
    return list(opened.values())


def metres_per_unit(command: str, source: Path, crs: str | None) -> tuple[float, float]:
    """Metres in a unit of x and y, and of z; 1 without a CRS.

    Raises
    ------
    CrsError
        If the CRS is not projected.
    """
    from spatialq.io import crs as crs_text

    if crs is None:
        return 1.0, 1.0
    units = crs_text.metres_per_unit(crs)
    if units is None:
        message = (
            f"{command}: '{source}' is in {crs_text.name(crs)}, which is not projected; reproject "
            "it first, or give the right crs"
        )
        raise CrsError(message)
    return units


def read_columns(cloud: "LasSource", tick: Progress) -> "list[NDArray[Any]]":
    """Read x, y, z and class of all points."""
    kinds = (np.float64, np.float64, np.float64, np.uint8)
    arrays: list[NDArray[Any]] = [np.empty(cloud.rows, kind) for kind in kinds]
    cloud.read_into(dict(zip(COLUMNS, arrays, strict=True)), tick)
    return arrays
