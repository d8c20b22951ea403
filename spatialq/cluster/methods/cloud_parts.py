"""Parts of jobs that are files of clouds, or have their names."""

from pathlib import Path

from spatialq.cluster.folder import PARTS
from spatialq.cluster.job import Job
from spatialq.errors import FileError
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


def names_of_rasters(job: Job, caller: str, ending: str) -> list[str]:
    """Name a raster of each file by the file's name without its ending.

    Raises
    ------
    FileError
        If two would have one name.
    """
    there: dict[str, str] = {}
    for path in job.call.paths:
        name = f"{as_path(path).stem}.{ending}"
        if one := there.get(name):
            reason = f"'{one}' and '{path}' would both be '{name}' in it: rename one of them"
            raise FileError.of(caller, job.path(PARTS, ""), reason)
        there[name] = path
    return list(there)
