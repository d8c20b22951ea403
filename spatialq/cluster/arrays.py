"""Arrays in files between the stages of a job: a head of JSON, and the arrays behind it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

ALIGNED = 64
"""Bytes at whose multiples arrays begin in a file."""
LENGTH = 8
"""Bytes of the length of a file's head."""
NOTHING: Mapping[str, Any] = {}


def write_arrays(
    path: Path, arrays: Mapping[str, Any], values: Mapping[str, Any] = NOTHING
) -> None:
    """Write arrays with names, and values of JSON.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    chosen = {name: np.ascontiguousarray(each) for name, each in arrays.items()}
    table = [[name, each.dtype.str, each.shape] for name, each in chosen.items()]
    head = json.dumps({"values": dict(values), "arrays": table}).encode()
    with path.open("wb") as file:
        file.write(len(head).to_bytes(LENGTH, "little") + head)
        for each in chosen.values():
            file.write(bytes(-file.tell() % ALIGNED))
            file.write(each.reshape(-1).view(np.uint8).data)


def read_arrays(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give the values and the arrays of a file.

    Of arrays, only what is used is read. They may be changed in memory, not in the file.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with Path(path).open("rb") as file:
        length = int.from_bytes(file.read(LENGTH), "little")
        head = json.loads(file.read(length))
    at, arrays = LENGTH + length, {}
    for name, kind, sizes in head["arrays"]:
        at, shape, dtype = at + -at % ALIGNED, tuple(sizes), np.dtype(kind)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        arrays[name] = (
            np.asarray(np.memmap(path, dtype, "c", at, shape)) if size else np.empty(shape, dtype)
        )
        at += size
    return head["values"], arrays
