"""Files that a file names, such as the contents of a tileset: only those in its folder are read."""

import os
from pathlib import Path

from spatialq.io.storage import is_url


class OutsideError(ValueError):
    """A file names one that is not in its folder; the sentence says which."""


def in_folder(folder: Path, name: str) -> Path:
    """Give the path of a file by its name relative to the folder of the file that was opened.

    Parameters
    ----------
    folder : Path
    name : str
        As it stands in the file; or, of a file in a folder of it, as it was joined with that.

    Raises
    ------
    OutsideError
        If it is a URL, an absolute path, or leads out of the folder, also by a link.
    """
    named = Path(os.path.normpath(name))
    is_outside = named.is_absolute() or named.parts[:1] == (os.pardir,)
    if is_url(name) or is_outside or "\0" in name:
        message = f"names '{name}', which is not in its folder"
        raise OutsideError(message)
    path = folder / named
    if not path.resolve().is_relative_to(folder.resolve()):
        message = f"names '{name}', which is a link to something that is not in its folder"
        raise OutsideError(message)
    return path
