"""`detect_planes` and `plane_points` of a survey, without noise or with it, and planes in LAZ."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.job import Job
from spatialq.cluster.layout import Core
from spatialq.cluster.methods.cloud_parts import LAZ, names_of_clouds
from spatialq.cluster.points import CorePart, open_cloud
from spatialq.cluster.staged import Make, StagedWork, method_of
from spatialq.workflows.cloud_points import NOISE

PLANES, OF_POINTS = "detect_planes", "plane_points"
MORE = {"noise": True}
DEVICES = ("auto", "cpu")


class PlaneWork(StagedWork):
    """The stages of a job, in which noise may be left out."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, () if job.call.more["noise"] else NOISE, whole=True)


class CloudWork(PlaneWork):
    """The stages of a job whose parts are clouds."""

    def __init__(self, job: Job) -> None:
        self.names = names_of_clouds(job, OF_POINTS)
        super().__init__(job)
        self.write = write_cloud

    def named_cores(self) -> Iterator[tuple[str, Core]]:
        """Give the name of each part, and its core."""
        for core in self.layout.cores():
            yield f"{core.name}.{LAZ}" if core.file is None else self.names[core.file], core


def write_cloud(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write the points of a core as their files have them, with their planes.

    Returns
    -------
    dict
        `rows` written.
    """
    from spatialq.export.las import write_copy
    from spatialq.workflows.planes import fields_of

    data = part.data
    clouds = [open_cloud(data["caller"], path, stamp) for path, _, *stamp in data["sources"]]
    files = [cloud.path for cloud in clouds]
    firsts = np.array([first for _, first, *_ in data["sources"]])
    rows = [cloud.rows for cloud in clouds]
    starts = np.concatenate([[0], np.cumsum(rows)])

    def positions(ids: Any) -> Any:
        file = np.searchsorted(firsts, ids, side="right") - 1
        return ids - firsts[file] + starts[file]

    n = int(starts[-1])
    found = make(part)
    plane_id, distance = np.zeros(n, np.int32), np.full(n, np.nan, np.float32)
    at = positions(found["point_id"])
    plane_id[at], distance[at] = found["plane_id"], found["distance"]
    every = CorePart(data | {"left_out": []})
    keep = np.zeros(n, np.bool_)
    keep[positions(every.own(every.read())["point_id"])] = True
    fields = fields_of(plane_id, distance)
    return {"rows": write_copy(files, path, fields=fields, keep=keep, crs=data["crs"])}


METHODS = (
    method_of(PLANES, {"parquet": PlaneWork}, more=MORE, devices=DEVICES),
    method_of(
        OF_POINTS,
        {"parquet": PlaneWork, LAZ: CloudWork},
        more=MORE,
        devices=DEVICES,
    ),
)
