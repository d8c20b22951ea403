"""Columns that a kernel gives and that are no plain arrays; and SQL's types as NumPy has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

NUMPY_TYPES = {
    "BIGINT": np.int64,
    "BOOLEAN": np.bool_,
    "DOUBLE": np.float64,
    "INTEGER": np.int32,
    "UBIGINT": np.uint64,
    "USMALLINT": np.uint16,
    "UTINYINT": np.uint8,
    "VARCHAR": np.str_,
}
NUMBERS = tuple(np.dtype(name) for name in ("?", *"bhilBHILfd"))
"""Types of numbers and truth values that SQL has, too."""


@dataclass(frozen=True)
class Text:
    """A column of text: codes into names, -1 where there is none."""

    codes: Any
    names: Sequence[str]


@dataclass(frozen=True)
class Lists:
    """A column of lists of structs.

    Parameters
    ----------
    offsets : int64[rows + 1]
        The list of row k is ``offsets[k] : offsets[k + 1]`` of each column.
    columns : mapping of str to array
        The fields of the structs.
    """

    offsets: Any
    columns: Mapping[str, Any]


def whole_numbers(kind: str) -> str:
    """Say what fits into a SQL type of whole numbers."""
    limits = np.iinfo(NUMPY_TYPES[kind])
    if limits.min == 0:
        return f"whole numbers from 0 to {limits.max}"
    return f"whole numbers of {limits.bits} bits"
