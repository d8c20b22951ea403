"""Tables as sheets of Excel: a header that stays in view, a filter, dates that are dates."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from spatialq.errors import FileError
from spatialq.export.atomic import WRITER, whole

MAX_ROWS, MAX_COLUMNS, MAX_TEXT = 1_048_576, 16_384, 32_767
EXACT = 2**53
"""Excel has numbers in double precision: whole ones beyond this are written as text."""
FIRST, LAST = datetime(1900, 3, 1), datetime(9999, 12, 31)
"""Before the first day Excel counts one that did not exist; the last one is the last it has."""
NARROW, WIDE = 8, 60
"""Limits of the width of a column, in characters."""
MEASURED = 1000
"""Rows by which the width of columns is chosen."""
PICTURE = "picture"
"""The header of a column of pictures."""
PICTURE_SCALE, PICTURE_ROW, PICTURE_COLUMN = 0.25, 114.0, 29
"""Of pictures of 800 by 600 pixels: the height of their rows in points, the width in characters."""


def write_sheets(
    path: Path,
    sheets: Mapping[str, tuple[Sequence[str], Iterable[Sequence[Any]]]],
    pictures: Mapping[str, Iterable[bytes]] | None = None,
) -> int:
    """Write tables as the sheets of a workbook.

    Parameters
    ----------
    path : Path
    sheets : mapping of str to tuple
        The name of each sheet, and its columns and rows: sequences of None, bool, int, float, str,
        date or datetime. NaN, infinity, whole numbers beyond 2^53 and days before March 1900
        become texts; of times milliseconds stay. Rows of a sheet are asked for after those before.
    pictures : mapping of str to iterable of bytes, optional
        By the name of a sheet PNGs of its first rows, which a last column shows.

    Returns
    -------
    int
        Rows of the first sheet.

    Raises
    ------
    FileError
        If the file cannot be written.
    ValueError
        If there are more rows, columns or characters of a text than a sheet can hold, or a sheet
        cannot have its name.
    """
    import xlsxwriter

    for columns, _ in sheets.values():
        if len(columns) > MAX_COLUMNS:
            message = f"{WRITER}: '{path}' can have {MAX_COLUMNS:,} columns, got {len(columns):,}"
            raise ValueError(message)
    settings = {
        "constant_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
    }
    try:
        with whole(path) as partial, xlsxwriter.Workbook(partial, settings) as book:
            counts = [
                _fill(book, path, name, *table, (pictures or {}).get(name))
                for name, table in sheets.items()
            ]
    except xlsxwriter.exceptions.XlsxInputError as error:  # a name that no sheet can have
        message = f"{WRITER}: '{path}': {error}"
        raise ValueError(message) from None
    except xlsxwriter.exceptions.XlsxFileError as error:
        raise FileError.of(WRITER, path, f"cannot be written: {error}") from error
    return counts[0]


def _fill(
    book: Any,
    path: Path,
    name: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    pictures: Iterable[bytes] | None,
) -> int:
    sheet = book.add_worksheet(name)
    shown: Iterator[bytes] = iter(pictures or ())
    bold = book.add_format({"bold": True, "bottom": 1})
    day = book.add_format({"num_format": "yyyy-mm-dd"})
    moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
    widths = [len(name) + 3 for name in columns]  # beside the button of the filter
    sheet.write_row(0, 0, columns, bold)
    if pictures is not None:
        sheet.write_string(0, len(columns), PICTURE, bold)
        sheet.set_column(len(columns), len(columns), PICTURE_COLUMN)
    number = 0
    for number, row in enumerate(rows, 1):
        if number == MAX_ROWS:
            message = (
                f"{WRITER}: '{path}' can have {MAX_ROWS - 1:,} rows, got more; write .parquet or "
                ".csv, or a part with LIMIT"
            )
            raise ValueError(message)
        if (picture := next(shown, None)) is not None:
            _show(sheet, number, len(columns), picture)
        for place, value in enumerate(row):
            match _cell(value):
                case None:
                    continue
                case bool(truth):
                    sheet.write_boolean(number, place, truth)
                case int(amount) | float(amount):
                    sheet.write_number(number, place, amount)
                case datetime() as time:
                    sheet.write_datetime(number, place, time, moment)
                case date() as time:
                    sheet.write_datetime(number, place, time, day)
                case str(text):
                    _require_short(path, columns[place], number, text)
                    sheet.write_string(number, place, text)
            if number <= MEASURED:
                widths[place] = max(widths[place], len(str(value)) + 1)
    for place, width in enumerate(widths):
        sheet.set_column(place, place, min(max(width, NARROW), WIDE))
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, number, max(len(columns) - 1, 0))
    return number


def _show(sheet: Any, row: int, column: int, picture: bytes) -> None:
    """Put a picture over a cell: a filter that hides the row hides the picture as well."""
    sheet.set_row(row, PICTURE_ROW)
    options = {
        "image_data": BytesIO(picture), "x_scale": PICTURE_SCALE, "y_scale": PICTURE_SCALE,
        "object_position": 1,
    }  # fmt: skip
    sheet.insert_image(row, column, f"{PICTURE}.png", options)


def _cell(value: object) -> Any:
    """Give a value as a cell can hold it."""
    match value:
        case bool():
            return value
        case int() if abs(value) > EXACT:
            return str(value)
        case float() if not math.isfinite(value):
            return str(value)
        case datetime.max | datetime.min:  # what DuckDB gives for them
            return "infinity" if value == datetime.max else "-infinity"
        case datetime():
            return value if FIRST <= value <= LAST else value.isoformat(" ")
        case date():
            return value if FIRST.date() <= value <= LAST.date() else value.isoformat()
    return value


def _require_short(path: Path, column: str, row: int, text: str) -> None:
    # as Excel counts: a character beyond the first 65,536 is two
    length = len(text.encode("utf-16-le")) // 2 if len(text) > MAX_TEXT // 2 else 0
    if length > MAX_TEXT:
        message = (
            f"{WRITER}: a text in '{path}' can have {MAX_TEXT:,} characters, got {length:,} in "
            f"column '{column}' of row {row}; leave the column out, or select left(..., {MAX_TEXT})"
        )
        raise ValueError(message)
