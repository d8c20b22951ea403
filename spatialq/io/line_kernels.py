"""The compiled loops of `spatialq.io.text_lines`: they count lines and divide them."""

import numpy as np

from spatialq.runtime.arrays import Bools, Bytes, Int32s, Ints
from spatialq.runtime.compile_cache import njit

NEWLINE, QUOTE, MINUS = (ord(sign) for sign in '\n"-')
ENDS, DIGIT, BLANK = 1, 2, 4
"""What a byte may be: the end of a value, a digit, a blank that is no newline and no delimiter."""


def kinds_of(delimiter: str) -> Bytes:
    """Say of each byte what it is where a delimiter is between the values.

    A space stands for runs of blanks. Those are what text may have: the bytes from the tab on.
    """
    kinds = np.zeros(256, np.uint8)
    kinds[ord("0") : ord("9") + 1] = DIGIT
    kinds[ord("\t") : ord(" ") + 1] = BLANK | (ENDS if delimiter == " " else 0)
    kinds[NEWLINE] = ENDS
    if delimiter != " ":
        kinds[ord(delimiter)] = ENDS
    return kinds


@njit(cache=True, nogil=True)
def count(text: Bytes, size: int, kinds: Bytes, limit: int) -> tuple[int, int]:
    """Count lines that are not blank, at most `limit`; give the number and the byte behind them."""
    lines, blank = 0, True
    for i in range(size):
        if text[i] == NEWLINE:
            if not blank:
                lines += 1
                blank = True
                if lines == limit:
                    return lines, i + 1
        elif not kinds[text[i]] & BLANK:
            blank = False
    return lines, size


@njit(cache=True, nogil=True)
def divide(
    text: Bytes,
    part: tuple[int, int],
    limit: int,
    kinds: Bytes,
    slots: Ints,
    data: Bytes,
    ends: Int32s,
    integers: Bools,
    empty: Bools,
) -> tuple[int, int, int, int]:
    """Divide lines, and copy the values of the wanted columns.

    Parameters
    ----------
    text : uint8[]
    part : (int, int)
        Where the lines begin and end; the last byte is a newline.
    limit : int
        Lines at most, without blank ones.
    kinds : uint8[256]
        What each byte is.
    slots : int64[columns]
        Where the values of a column go; the number of wanted columns where it is not wanted.
    data, ends : uint8[(wanted + 1) * bytes], int32[wanted, rows + 1]
        Get the values, as many bytes for each column as `text` has, and their ends.
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
    columns, unwanted = slots.size, integers.size
    spaces = kinds[32] & ENDS != 0
    rows = lines = 0
    while i < end and rows < limit:
        column = 0
        more = True
        while more:
            while kinds[text[i]] & BLANK:
                i += 1
            if text[i] == NEWLINE and (column == 0 or spaces):
                break
            slot = slots[column] if column < columns else unwanted
            column += 1
            at = ends[slot, rows] if slot != unwanted else 0
            to = slot * text.size + at
            quoted = text[i] == QUOTE
            digits = DIGIT
            if quoted:
                i += 1
                digits = 0
                while text[i] != QUOTE and text[i] != NEWLINE:
                    data[to] = text[i]
                    to += 1
                    i += 1
                i += text[i] == QUOTE
            else:
                if text[i] == MINUS:
                    data[to] = MINUS
                    to += 1
                    i += 1
                while not kinds[text[i]] & ENDS:
                    digits &= kinds[text[i]]
                    data[to] = text[i]
                    to += 1
                    i += 1
            length = to - slot * text.size - at
            if not spaces and not quoted and length and kinds[data[to - 1]] & BLANK:
                while length and kinds[data[to - 1]] & BLANK:
                    to -= 1
                    length -= 1
                digits = DIGIT
                for k in range(to - length, to):
                    if data[k] != MINUS or k > to - length:
                        digits &= kinds[data[k]]
            if slot != unwanted:
                ends[slot, rows + 1] = at + length
                integers[slot] &= digits != 0
                empty[slot] |= length == 0
            if not spaces:
                while kinds[text[i]] & BLANK:
                    i += 1
                more = text[i] != NEWLINE and kinds[text[i]] & ENDS != 0
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
