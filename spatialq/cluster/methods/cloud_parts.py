"""Parts of jobs that are LAZ files: their names."""

from pathlib import Path

from spatialq.cluster.folder import PARTS
from spatialq.cluster.job import Job
from spatialq.io.storage import as_path
from spatialq.workflows.outputs import Outputs

LAZ = "laz"


def names_of_clouds(job: Job, caller: str) -> list[str]:
    """Name the part of each file as commands name their outputs in a folder.

    Raises
    ------
    FileError
        If two would have one name.
    """
    paths, folder = [as_path(path) for path in job.call.paths], Path(job.path(PARTS, ""))
    targets = Outputs(caller, [], [folder])
    if job.call.tile_size is None:
        targets.require_names(folder, paths)
    return [path.name for path in targets.in_folder(folder, paths)]
