"""The compiled loops of `spatialq.io.text_lines`: they count lines and divide them."""

import numpy as np
import numpy.typing as npt

from spatialq.io.text_lines import SPACES
from spatialq.runtime.compile_cache import njit

Bytes = npt.NDArray[np.uint8]
TAB, NEWLINE, QUOTE, MINUS, ZERO, NINE = (ord(sign) for sign in '\t\n"-09')


@njit(cache=True, nogil=True)
def is_blank(sign: int) -> bool:
    """Whether a byte is a space, tab, CR, newline or the like, but none that no text has."""
    return bool(TAB <= sign <= SPACES)


@njit(cache=True, nogil=True)
def count(text: Bytes, size: int, limit: int) -> tuple[int, int]:
    """Count lines that are not blank, at most `limit`; give the number and the byte behind them."""
    lines, blank = 0, True
    for i in range(size):
        if not is_blank(text[i]):
            blank = False
        elif text[i] == NEWLINE and not blank:
            lines += 1
            blank = True
            if lines == limit:
                return lines, i + 1
    return lines, size


@njit(cache=True, nogil=True)
def divide(
    text: Bytes,
    part: tuple[int, int],
    limit: int,
    form: tuple[int, int],
    slots: npt.NDArray[np.int64],
    data: Bytes,
    ends: npt.NDArray[np.int32],
    integers: npt.NDArray[np.bool_],
    empty: npt.NDArray[np.bool_],
) -> tuple[int, int, int, int]:
    """Divide lines, and copy the values of the wanted columns.

    Parameters
    ----------
    text : uint8[]
    part : (int, int)
        Where the lines begin and end; the last byte is a newline.
    limit : int
        Lines at most, without blank ones.
    form : (int, int)
        Values in a line, and the delimiter.
    slots : int64[columns]
        Where the values of a column go; -1 where it is not wanted.
    data, ends : uint8[wanted, bytes], int32[wanted, rows + 1]
        Get the values and their ends.
    integers, empty : bool[wanted]
        Become False where a value is no whole number, and True where one is empty.

    Returns
    -------
    rows, lines : int
        Lines without and with blank ones; one that cannot be divided is the last.
    stop : int
        Byte behind the last one.
    found : int
        Values in the last one; 0 if something stands between two of them.
    """
    i, end = part
    columns, delimiter = form
    spaces = delimiter == SPACES
    separator = NEWLINE if spaces else delimiter
    rows = lines = 0
    while i < end and rows < limit:
        column = 0
        more = True
        while more:
            while is_blank(text[i]) and text[i] != NEWLINE and text[i] != separator:
                i += 1
            if text[i] == NEWLINE and (column == 0 or spaces):
                break
            quoted = text[i] == QUOTE
            i += quoted
            start = i
            if quoted:
                while text[i] != QUOTE and text[i] != NEWLINE:
                    i += 1
            else:
                while (
                    text[i] != NEWLINE
                    and text[i] != separator
                    and not (spaces and is_blank(text[i]))
                ):
                    i += 1
            stop = i
            if quoted:
                i += text[i] == QUOTE
            else:
                while stop > start and is_blank(text[stop - 1]):
                    stop -= 1
            slot = slots[column] if column < columns else -1
            if slot >= 0:
                at = ends[slot, rows]
                whole = not quoted
                for k in range(start, stop):
                    sign = text[k]
                    data[slot, at] = sign
                    at += 1
                    whole &= ZERO <= sign <= NINE or (sign == MINUS and k == start)
                ends[slot, rows + 1] = at
                integers[slot] &= whole
                empty[slot] |= stop == start
            column += 1
            if not spaces:
                while is_blank(text[i]) and text[i] != NEWLINE and text[i] != separator:
                    i += 1
                more = text[i] == separator
                i += more
        lines += 1
        if text[i] != NEWLINE:
            return rows, lines, i, 0
        i += 1
        if column == columns:
            rows += 1
        elif column > 0:
            return rows, lines, i, column
    return rows, lines, i, columns
