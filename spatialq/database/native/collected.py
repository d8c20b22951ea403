"""What a query collected, as Arrow arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spatialq.data.columns import NUMPY_TYPES
from spatialq.database.native.library import library
from spatialq.runtime import buffers
from spatialq.runtime.threads import n_threads, spans, workers

VALID, PARTIAL = 1, 2
"""States of a value, as in collect.c: not NULL; a list with NULL among its elements."""
ROWS_PER_THREAD = 1 << 18
"""With fewer rows per thread, starting another thread costs more than it saves."""
ELEMENTS: Mapping[str, Any] = {"DOUBLE[]": np.float64, "INTEGER[]": np.int32}


def take(
    number: int, part: int, columns: Mapping[str, str], *, page_locked: bool
) -> dict[str, Any]:
    """Copy collected columns into arrays, and give the memory of each back as soon as it is copied.

    Parameters
    ----------
    number : int
        What the library calls the rows.
    part : 0 or 1
        Of the first or the second table.
    columns : mapping of str to str
        All columns of the function, and their SQL types, in the order in which they were collected.
    page_locked : bool
        Whether a GPU may copy them.

    Returns
    -------
    dict of str to Arrow array
        None for a first column of ids that is 0, 1, 2 ...: nothing has to be copied.
    """
    rows = library().spatialq_rows(number, part)
    found: dict[str, Any] = {}
    for k, (name, kind) in enumerate(columns.items()):
        column = number, part, k
        if k == 0 and library().spatialq_counts(number, part):
            found[name] = None
            continue
        if kind == "VARCHAR" or kind in ELEMENTS:
            found[name] = _of_any_length(column, rows, kind)
        else:
            found[name] = _numbers(column, rows, kind, page_locked=page_locked)
        library().spatialq_forget(*column)
    return found


def _numbers(column: tuple[int, int, int], rows: int, kind: str, *, page_locked: bool) -> Any:
    known = library()
    values = buffers.empty(rows, NUMPY_TYPES[kind], page_locked=page_locked)
    nulls = known.spatialq_nulls(*column)
    states = buffers.empty(rows, np.uint8) if nulls else None
    pieces = known.spatialq_pieces(*column[:2])
    threads = max(1, min(n_threads(), rows // ROWS_PER_THREAD, pieces))

    def copy(span: tuple[int, int]) -> None:
        where = None if states is None else states.ctypes.data
        known.spatialq_copy(*column, *span, values.ctypes.data, where)

    with workers(threads) as pool:
        pool.map(copy, spans(pieces, 1 if threads == 1 else 4 * threads))
    return pa.array(values, mask=None if states is None else states != VALID)


def _of_any_length(column: tuple[int, int, int], rows: int, kind: str) -> Any:
    """Copy texts or lists."""
    known = library()
    data = buffers.empty(known.spatialq_bytes(*column), np.uint8)
    starts, states = np.empty(rows + 1, np.int64), np.empty(rows, np.uint8)
    known.spatialq_copy_bytes(*column, data.ctypes.data, starts.ctypes.data, states.ctypes.data)
    is_null = pa.array(states == 0)
    if kind == "VARCHAR":
        parts = [None, pa.py_buffer(starts), pa.py_buffer(data)]
        texts = pa.Array.from_buffers(pa.large_string(), rows, parts)
        return pc.if_else(is_null, pa.scalar(None, texts.type), texts).cast(pa.string())
    values = data.view(ELEMENTS[kind])
    starts //= values.itemsize
    partial = starts[:-1][states == PARTIAL]
    mask = np.zeros(values.size, bool) if partial.size else None
    if mask is not None:
        mask[partial] = True  # any one of them: a list that has NULL is rejected as a whole
    lists = pa.LargeListArray.from_arrays(pa.array(starts), pa.array(values, mask=mask))
    if not (states == 0).any():
        return lists
    return pc.if_else(is_null, pa.scalar(None, lists.type), lists)
