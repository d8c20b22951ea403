"""`classify_noise` and `thin` of a survey: rows, or clouds as the commands write them."""

from pathlib import Path
from typing import Any

from spatialq.cluster.folder import CALLER
from spatialq.cluster.job import Job
from spatialq.cluster.methods.cloud_parts import LAZ, MORE, CloudWork, ConsideredWork, OwnPoints
from spatialq.cluster.points import CLASS, CorePart
from spatialq.cluster.staged import Make, method_of
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


class NoiseWork(ConsideredWork):
    """The stages of a job whose parts are rows, one for each point that is considered."""

    def __init__(self, job: Job) -> None:
        call = job.call
        if call.more["drop_noise"]:
            message = (
                f"{CALLER}: drop_noise must be false with part_format {call.part_format!r}: it is "
                f"for {LAZ!r}"
            )
            raise ValueError(message)
        super().__init__(job)


class NoiseCloudWork(CloudWork):
    """The stages of a job whose parts are clouds with classified noise, or without noise."""

    writes = staticmethod(write_classes)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.shared["drop_noise"] = job.call.more["drop_noise"]


class ThinCloudWork(CloudWork):
    """The stages of a job whose parts are clouds of fewer points."""

    writes = staticmethod(write_kept)


METHODS = (
    method_of(
        "classify_noise",
        {"parquet": NoiseWork, LAZ: NoiseCloudWork},
        more={**MORE, "drop_noise": False},
        devices=("auto", "cpu"),
    ),
    method_of("thin", {"parquet": ConsideredWork, LAZ: ThinCloudWork}, more=MORE),
)
