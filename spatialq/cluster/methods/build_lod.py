"""`build_lod` of a survey: what its jobs are asked, and the files of nodes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spatialq.cluster.folder import CALLER
from spatialq.cluster.job import Job
from spatialq.cluster.points import CorePart
from spatialq.cluster.staged import Make, method_of
from spatialq.cluster.staged_nodes import AttributePart, StagedNodes, make_node
from spatialq.udfs.build_lod import Options
from spatialq.workflows.lod_table import TreeSummary, metadata_of, own_options, partial_writer

FUNCTION = "build_lod"
CHUNK_POINTS = 2_000_000


class TreeWork(StagedNodes):
    """The stages of a job, whose parts say what they are."""

    def __init__(self, job: Job) -> None:
        call = job.call
        super().__init__(job, write_nodes, call.more["chunk_points"])
        self.shared["known"] = metadata_of(own_options(call.options, call.options.bounds), call.crs)


def write_nodes(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write the rows of nodes.

    Returns
    -------
    dict
        `rows`, `leaves` and `voxels`.
    """
    nodes, types = make_node(part, make, path), AttributePart(part).types
    of_all, summary = TreeSummary(brightest=part.data["brightest"]), TreeSummary()
    summary.add(nodes)
    with partial_writer(path, part.data["known"], of_all, types) as write:
        write(nodes)
    return {"rows": summary.nodes, "leaves": summary.leaves, "voxels": summary.voxels}


def check(more: Mapping[str, Any], tile_size: float | None, options: Options, *_: Any) -> None:
    """Refuse tiles, which the tree does not have, and chunks that are no whole number of points.

    Raises
    ------
    ValueError
    """
    from spatialq.udfs.build_lod.validation import MAX_POINTS

    if tile_size is not None:
        message = (
            f"{CALLER}: tile_size must be left out for build_lod, whose parts are cells of its "
            f"octree with at most chunk_points points, got {tile_size!r}"
        )
        raise ValueError(message)
    points = more["chunk_points"]
    is_whole = isinstance(points, int) and not isinstance(points, bool)
    if not (is_whole and options.max_points <= points <= MAX_POINTS):
        message = (
            f"{CALLER}: chunk_points must be a whole number from max_points, {options.max_points}, "
            f"to {MAX_POINTS}, got {points!r}"
        )
        raise ValueError(message)


METHOD = method_of(
    FUNCTION,
    {"parquet": TreeWork},
    more={"chunk_points": CHUNK_POINTS},
    check=check,
)
