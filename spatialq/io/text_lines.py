"""Lines of text as columns: what the text formats of point clouds share.

A compiled loop of `line_kernels` divides blocks of lines, and puts the values of each wanted column
one behind the other; Arrow makes numbers of them. So runs of spaces, tabs and CR cost nothing, and
every line is checked to have as many values as it should. The CSV readers of Arrow and DuckDB take
one sign between values: where two spaces stand, Arrow finds a value more, and DuckDB an error.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
import pyarrow as pa

from spatialq.runtime.arrays import Bytes, Int32s
from spatialq.runtime.threads import Pool

BLOCK = 1 << 22
"""Bytes that are divided at once; no line may be longer."""
SPACES = " "
"""The delimiter that stands for runs of spaces and tabs."""
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
"""A number in a header."""
ALL = (1 << 63) - 1
"""The limit that is none."""


class LineError(ValueError):
    """A line is not what it should be: the message says which, and why."""


class WrongValueError(ValueError):
    """A value is of another type.

    Attributes
    ----------
    row : int
        From 0.
    text : str
        The value.
    """

    def __init__(self, row: int, text: str) -> None:
        super().__init__(row, text)
        self.row, self.text = row, text


@dataclass(frozen=True)
class Lines:
    """Where lines of values are.

    Attributes
    ----------
    path : Path
    begin : int
        Byte at which they begin.
    before : int
        Lines before them, for messages.
    columns : int
        Values in a line.
    delimiter : str
        One sign; `SPACES` for runs of spaces and tabs.
    """

    path: Path
    begin: int
    before: int
    columns: int
    delimiter: str = SPACES


@dataclass(frozen=True)
class Values:
    """The values of a column in some lines, as text.

    Attributes
    ----------
    data, ends : uint8[], int32[]
        The texts one behind the other, and where each begins and ends.
    integer, empty : bool
        Whether all of them are whole numbers, and whether one of them is empty.
    """

    data: Bytes
    ends: Int32s
    integer: bool
    empty: bool

    @property
    def rows(self) -> int:
        """Count the values."""
        return len(self.ends) - 1

    def read(self, kind: pa.DataType) -> pa.Array:
        """Read the values as numbers of a type, or as strings; those that are empty are NULL.

        Raises
        ------
        WrongValueError
            If a value is none of that type.
        """
        text = self.data[: self.ends[-1]]
        # memory that the next block overwrites: numbers are read from it, strings are kept
        data = pa.py_buffer(text.tobytes() if pa.types.is_string(kind) else text)
        offsets = pa.py_buffer(self.ends.copy())
        array = pa.BinaryArray.from_buffers(pa.binary(), self.rows, [None, offsets, data])
        if self.empty:
            import pyarrow.compute as pc  # most processes that know the formats read no text

            array = pc.if_else(pc.equal(pc.binary_length(array), 0), None, array)
        try:
            return _cast(array, kind)
        except pa.ArrowInvalid:
            row = bisect_left(range(self.rows), 1, key=lambda i: _fails(array[: i + 1], kind))
            raise WrongValueError(row, array[row].as_py().decode("utf-8", "replace")) from None


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    # strings are checked to be UTF-8; of what is not, no number can be read
    return array.cast(kind) if pa.types.is_string(kind) else array.view(pa.string()).cast(kind)


def _fails(array: pa.Array, kind: pa.DataType) -> bool:
    try:
        _cast(array, kind)
    except pa.ArrowInvalid:
        return True
    return False


def read_values(lines: Lines, wanted: Sequence[int], limit: int = ALL) -> Iterator[list[Values]]:
    """Read the wanted columns, a block at a time, of at most `limit` lines that are not blank.

    The next block is divided by another thread in the meantime. What is given is overwritten by the
    one after that.

    Raises
    ------
    LineError
        If a line has another number of values, or is too long.
    """
    divided = _divided(lines, wanted, limit)
    with Pool(1, thread_name_prefix="spatialq-lines") as pool:
        coming = pool.submit(next, divided, None)
        while (values := coming.result()) is not None:
            coming = pool.submit(next, divided, None)
            yield values


def _divided(lines: Lines, wanted: Sequence[int], limit: int) -> Iterator[list[Values]]:
    from spatialq.io.line_kernels import divide, kinds_of

    slots = np.full(lines.columns, len(wanted), np.int64)
    slots[list(wanted)] = np.arange(len(wanted))
    kinds = kinds_of(lines.delimiter)
    spaces = cycle(
        (
            np.empty((len(wanted) + 1, BLOCK + 1), np.uint8),  # the last one is for no column
            # each value takes a byte, and so does what is behind it
            np.zeros((len(wanted), BLOCK // max(2 * lines.columns, 1) + 2), np.int32),
        )
        for _ in range(2)
    )
    line = lines.before
    for text, size in blocks(lines.path, lines.begin):
        begin = 0
        while begin < size and limit:
            data, ends = next(spaces)
            integers, empty = np.ones(len(wanted), np.bool_), np.zeros(len(wanted), np.bool_)
            rows, passed, begin, found = divide(
                text,
                (begin, size),
                min(limit, ends.shape[1] - 1),
                kinds,
                slots,
                data.reshape(-1),
                ends,
                integers,
                empty,
            )
            line += passed
            if found != lines.columns:
                what = f"has {found} values, not {lines.columns}" if found else "cannot be divided"
                message = f"line {line} {what}"
                raise LineError(message)
            if rows:
                yield [
                    Values(data[i], ends[i, : rows + 1], bool(integers[i]), bool(empty[i]))
                    for i in range(len(wanted))
                ]
            limit -= rows
        if not limit:
            return


def count_lines(path: Path, begin: int, limit: int = ALL) -> tuple[int, int]:
    """Count lines that are not blank, at most `limit` of them; also give the byte behind them.

    Raises
    ------
    LineError
        If a line is too long.
    """
    from spatialq.io.line_kernels import count, kinds_of

    lines, stop, kinds = 0, begin, kinds_of(SPACES)
    for text, size in blocks(path, begin):
        if lines == limit:
            break
        n, passed = count(text, size, kinds, limit - lines)
        lines += n
        stop += passed
    return lines, min(stop, path.stat().st_size)


def blocks(path: Path, begin: int) -> Iterator[tuple[Bytes, int]]:
    """Read whole lines: their bytes, which the next block overwrites, and how many bytes.

    Raises
    ------
    LineError
        If a line is longer than a block.
    """
    space = bytearray(BLOCK + 1)
    text = np.frombuffer(space, np.uint8)
    kept = 0
    with path.open("rb") as file:
        file.seek(begin)
        while n := file.readinto(memoryview(space)[kept:BLOCK]):
            size = kept + n
            whole = space.rfind(b"\n", 0, size) + 1
            if whole:
                yield text, whole
            elif size == BLOCK:
                message = f"a line is longer than {BLOCK} bytes"
                raise LineError(message)
            kept = size - whole
            space[:kept] = space[whole:size]
    if kept:  # the last line needs no end
        space[kept] = ord("\n")
        yield text, kept + 1
