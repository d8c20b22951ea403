"""The folder of a job: one of a file system, or one of object storage."""

import os

from spatialq.cluster.folder import Folder, JobFolder
from spatialq.cluster.object_folder import ObjectFolder
from spatialq.io import access
from spatialq.io.storage import ObjectPath, as_path


def folder_of(caller: str, path: str | os.PathLike[str]) -> Folder:
    """Give the folder of a job, which may be a URL.

    Raises
    ------
    FileError
        If the connection that asks must not open it.
    ValueError
        If it is a URL that cannot be read, or has credentials in it.
    """
    try:
        found = as_path(path)
    except ValueError as error:
        message = f"{caller}: folder: {error}"
        raise ValueError(message) from None
    access.require(caller, found)
    return ObjectFolder(found) if isinstance(found, ObjectPath) else JobFolder(found)
