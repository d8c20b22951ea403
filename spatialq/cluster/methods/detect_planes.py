"""`detect_planes` and `plane_points` of a survey, without noise or with it, and planes in LAZ."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.methods.cloud_parts import LAZ, MORE, CloudWork, ConsideredWork, OwnPoints
from spatialq.cluster.points import CorePart
from spatialq.cluster.staged import Make, method_of

PLANES, OF_POINTS = "detect_planes", "plane_points"
DEVICES = ("auto", "cpu")


def write_cloud(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write the points of a core as their files have them, with their planes.

    Returns
    -------
    dict
        `rows` written.
    """
    from spatialq.workflows.planes import fields_of

    found, own = make(part), OwnPoints(part)
    ids = found["point_id"]
    plane_id = own.by_position(ids, np.asarray(found["plane_id"], np.int32))
    distance = own.by_position(ids, np.asarray(found["distance"], np.float32), np.nan)
    return own.write(path, own.columns["point_id"], fields=fields_of(plane_id, distance))


class PlaneCloudWork(CloudWork):
    """The stages of a job whose parts are clouds with planes."""

    writes = staticmethod(write_cloud)


METHODS = (
    method_of(PLANES, {"parquet": ConsideredWork}, more=MORE, devices=DEVICES),
    method_of(
        OF_POINTS,
        {"parquet": ConsideredWork, LAZ: PlaneCloudWork},
        more=MORE,
        devices=DEVICES,
    ),
)
