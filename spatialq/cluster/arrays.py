"""Arrays in files between the stages of a job: `.npy` files, one after the other in one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def write_arrays(path: Path, *arrays: "NDArray[Any]") -> None:
    """Write arrays.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    with path.open("wb") as file:
        for each in arrays:
            np.lib.format.write_array(file, np.ascontiguousarray(each), (1, 0), allow_pickle=False)


def read_arrays(path: str | Path) -> "list[NDArray[Any]]":
    """Give the arrays of a file as they lie in it: only what is used of them is read.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    found: list[NDArray[Any]] = []
    path = Path(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        while file.tell() < size:
            np.lib.format.read_magic(file)
            shape, _, kind = np.lib.format.read_array_header_1_0(file)
            begin = file.tell()
            length = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
            there = np.memmap(path, kind, "r", begin, shape) if length else np.empty(shape, kind)
            found.append(there)
            file.seek(begin + length)
    return found
