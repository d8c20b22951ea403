"""Columns that a kernel gives and that are no plain arrays; and SQL's types as NumPy has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.runtime import buffers

NUMPY_TYPES = {
    "BIGINT": np.int64,
    "BOOLEAN": np.bool_,
    "DOUBLE": np.float64,
    "FLOAT": np.float32,
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


def length(column: Any) -> int:
    """Count the rows of a column."""
    return len(column.codes if isinstance(column, Text) else column)


def concatenate(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Concatenate the rows of one or more tables with the same columns."""
    if len(tables) == 1:
        return dict(tables[0])
    return {name: _concatenate([table[name] for table in tables]) for name in tables[0]}


def _concatenate(columns: Sequence[Any]) -> Any:
    if isinstance(columns[0], Text):
        before = np.cumsum([0, *(len(column.names) for column in columns)])
        codes = [
            np.where(column.codes < 0, -1, column.codes + first)
            for column, first in zip(columns, before[:-1], strict=True)
        ]
        return Text(np.concatenate(codes), [name for column in columns for name in column.names])
    if isinstance(columns[0], Lists):
        before = np.cumsum([0, *(column.offsets[-1] for column in columns)])
        offsets = [
            column.offsets[:-1] + first for column, first in zip(columns, before[:-1], strict=True)
        ]
        fields = concatenate([column.columns for column in columns])
        return Lists(np.concatenate([*offsets, before[-1:]]), fields)
    return buffers.concatenate(columns)


def whole_numbers(kind: str) -> str:
    """Say what fits into a SQL type of whole numbers."""
    limits = np.iinfo(NUMPY_TYPES[kind])
    if limits.min == 0:
        return f"whole numbers from 0 to {limits.max}"
    return f"whole numbers of {limits.bits} bits"
