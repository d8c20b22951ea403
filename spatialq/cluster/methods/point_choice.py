"""`classify_noise` and `thin` of a survey: rows, or clouds as the commands write them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spatialq.cluster.job import Job
from spatialq.cluster.methods.cloud_parts import (
    LAZ,
    MORE,
    CloudWork,
    ConsideredWork,
    OwnPoints,
    require_laz,
)
from spatialq.cluster.points import CLASS, CorePart
from spatialq.cluster.staged import Make, method_of
from spatialq.udfs.thin import Options
from spatialq.workflows.cloud_points import IS_NOISE


def write_classes(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write the points of a core with their new classes, or those of them that are no noise."""
    found, own = make(part), OwnPoints(part)
    ids = own.columns["point_id"]
    classes = own.by_position(ids, own.columns[CLASS])
    classes[own.positions(found["point_id"])] = found[CLASS]
    if part.data["drop_noise"]:
        ids = ids[~IS_NOISE[classes[own.positions(ids)]]]
    return own.write(path, ids, classes=classes)


def write_kept(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write the points of a core that are kept."""
    return OwnPoints(part).write(path, make(part)["point_id"])


class NoiseCloudWork(CloudWork):
    """The stages of a job whose parts are clouds with classified noise, or without noise."""

    writes = staticmethod(write_classes)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.shared["drop_noise"] = job.call.more["drop_noise"]


class ThinCloudWork(CloudWork):
    """The stages of a job whose parts are clouds of fewer points."""

    writes = staticmethod(write_kept)


def check_noise(more: Mapping[str, Any], _: float | None, __: Any, part_format: str) -> None:
    """Refuse rows without noise.

    Raises
    ------
    ValueError
    """
    require_laz("drop_noise", more, part_format)


def check_thin(_: Any, __: Any, options: Options, *___: Any) -> None:
    """Refuse Poisson disks.

    Raises
    ------
    ValueError
    """
    if options.method == "poisson":
        message = (
            f"{options.function}: method must be 'voxel' or 'nearest_to_mean' in a job, got "
            "'poisson', of which no halo is wide enough"
        )
        raise ValueError(message)


METHODS = (
    method_of(
        "classify_noise",
        {"parquet": ConsideredWork, LAZ: NoiseCloudWork},
        more={**MORE, "drop_noise": False},
        check=check_noise,
        devices=("auto", "cpu"),
    ),
    method_of("thin", {"parquet": ConsideredWork, LAZ: ThinCloudWork}, more=MORE, check=check_thin),
)
