"""Text files of points: x y z and further values, a line each."""

import csv
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from spatialq.io.cloud_source import (
    AXES,
    LAS_TYPES,
    CloudSource,
    Part,
    cloud_schema,
    column_names,
    text_parts,
)
from spatialq.io.formats import Reader
from spatialq.io.text_lines import (
    SPACES,
    LineError,
    Lines,
    Values,
    WrongValueError,
    read_values,
)

HEAD = 1 << 16
"""Bytes at the beginning in which the first line of values is."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
COMMENT = re.compile(r"\s*(#|//)")
IS_NUMBER = re.compile(r"[-+]?(\.?\d|(nan|inf|infinity)$)", re.IGNORECASE)
"""Matches the beginning of a value that is no name, such as 1.5 and 1,5."""
DELIMITERS = (";", "\t", ",")
"""Tried in this order; where none fits, values stand between runs of spaces and tabs."""


class TextSource(CloudSource):
    """A text file of points, a `spatialq.io.source.Source`.

    Opening it reads it once: lines are counted and checked, and types are those that hold all
    values of a column.
    """

    def _open(self) -> None:
        self._promised: int | None = None
        try:
            self._lines, fields = self._layout(Head(self))
            names = column_names(self, fields)
            guesses = [_Guess(name in AXES) for name in names]
            self.rows = 0
            for values in read_values(self._lines, range(len(names))):
                for guess, column in zip(guesses, values, strict=True):
                    guess.add(column)
                self.rows += values[0].rows
        except LineError as error:
            self.reject(str(error), error)
        self._places = {name: i for i, name in enumerate(names)}
        types = {name: guess.type(name) for name, guess in zip(names, guesses, strict=True)}
        self.schema = cloud_schema(self, types)
        for axis in AXES:
            if (wrong := guesses[self._places[axis]].wrong) is not None:
                row, text = wrong
                self.reject(f"{axis} of point_id {row} is {text!r}, no number")
        self._compare_count()

    def _layout(self, head: "Head") -> tuple[Lines, list[str]]:
        """Find the first line of values, and name the columns.

        Raises
        ------
        LineError
            If there is none, or it does not fit to the line of names.
        """
        comment = head.skip_comments()
        self._promised = head.take_count()
        delimiter = delimiter_of(head.line)
        found = head.line if not any(map(IS_NUMBER.match, split(head.line, delimiter))) else None
        if found is not None:
            head.skip()
            delimiter = delimiter_of(head.line or found)
        columns = len(split(head.line or found or "", delimiter))
        names = names_in(found or comment, delimiter, columns)
        if names is None and found is not None and head.line:
            message = (
                f"line {head.number} has {columns} values, but the line before names "
                f"{len(split(found, delimiter))} columns"
            )
            raise LineError(message)
        if found and columns < len(AXES):
            message = f"its line of names has no x, y and z: {found[:80]!r}"
            raise LineError(message)
        return head.lines(columns, delimiter), names or numbered(AXES, columns)

    def _compare_count(self) -> None:
        promised = self._promised
        if promised is None or promised == self.rows:
            return
        if promised > self.rows:
            self.reject(
                f"cut off: its first line promises {promised} points, but {self.rows} are there"
            )
        self.warnings.append(
            f"its first line promises {promised} points, but {self.rows} are there, which are read"
        )

    def _parts(self, columns: Sequence[str]) -> Iterator[Part]:
        stored = {name: (self._places[name], self.schema.field(name).type) for name in columns}
        return text_parts(self, self._lines, stored)


class Head:
    """The beginning of a text file, or of a part of it, line by line.

    Parameters
    ----------
    source : CloudSource
    begin, before : int
        The byte at which it begins, and the lines before it.

    Attributes
    ----------
    line : str
        The next line; empty at the end.
    number : int
        Its number, from 1.
    """

    def __init__(self, source: CloudSource, begin: int = 0, before: int = 0) -> None:
        self._path = source.path
        with source.path.open("rb") as file:
            file.seek(begin)
            self._raw = file.read(HEAD)
        if not self._raw and not begin:
            source.reject("the file is empty")
        if b"\0" in self._raw:
            source.reject("no text in UTF-8: it has bytes that are 0")
        self._begin, self.number = begin, before
        self._next = len(BYTE_ORDER_MARK) if self._raw.startswith(BYTE_ORDER_MARK) else 0
        self.skip()

    def skip(self) -> None:
        """Go to the next line that is not blank."""
        while True:
            self._at = self._next
            end = self._raw.find(b"\n", self._at) + 1
            self._next = end or len(self._raw)
            self.line = self._raw[self._at : self._next].decode("utf-8", "replace").strip("\r\n")
            self.number += 1
            if self.line.strip() or self._at == self._next:
                return

    def skip_comments(self) -> str:
        """Skip lines that begin with # or //; give the text of the last one."""
        comment = ""
        while found := COMMENT.match(self.line):
            comment = self.line[found.end() :]
            self.skip()
        return comment

    def take_count(self) -> int | None:
        """Skip a line that is one whole number, the count of points, and give it."""
        if not re.fullmatch(r"\s*\d{1,15}\s*", self.line):
            return None
        count = int(self.line)
        self.skip()
        return count

    def lines(self, columns: int, delimiter: str) -> Lines:
        """Give the lines from here to the end of the file."""
        if columns < len(AXES):
            message = f"line {self.number} must have x, y and z, got {self.line[:80]!r}"
            if not self.line:
                message = "has no lines of points"
            raise LineError(message)
        return Lines(self._path, self._begin + self._at, self.number - 1, columns, delimiter)


class _Guess:
    """The type of a column, from all of its values."""

    def __init__(self, is_axis: bool) -> None:  # noqa: FBT001
        self._kinds = [pa.float64()] if is_axis else [pa.int64(), pa.float64(), pa.bool_()]
        self._range = 0, 0
        self._has_values = False
        self.rows = 0
        self.wrong: tuple[int, str] | None = None
        """The first value that is nothing but text, and its row."""

    def add(self, values: Values) -> None:
        """Look at the values of a block."""
        if self._kinds and self._kinds[0] == pa.int64() and not values.integer:
            del self._kinds[0]
        while self._kinds and not self._holds(values):
            # what was a number before is no truth value now
            self._kinds = [] if self._has_values and len(self._kinds) == 2 else self._kinds[1:]
        self.rows += values.rows

    def _holds(self, values: Values) -> bool:
        try:
            read = values.read(self._kinds[0])
        except WrongValueError as error:
            self.wrong = self.rows + error.row, error.text
            return False
        self._has_values |= read.null_count < len(read)
        if self._kinds[0] == pa.int64():
            import pyarrow.compute as pc  # most processes that know the formats read no text

            limits = pc.min_max(read).as_py()
            self._range = (
                min(self._range[0], limits["min"] or 0),
                max(self._range[1], limits["max"] or 0),
            )
        return True

    def type(self, name: str) -> pa.DataType:
        """Give the type: that of LAS if the name is a LAS dimension's and all values fit."""
        if name in AXES:
            return pa.float64()
        if not self._kinds or not self._has_values:
            return pa.string()
        if self._kinds[0] != pa.int64() or name not in LAS_TYPES:
            return self._kinds[0]
        smallest = np.result_type(*map(np.min_scalar_type, self._range))
        fits = np.can_cast(smallest, LAS_TYPES[name])
        return pa.from_numpy_dtype(np.dtype(LAS_TYPES[name])) if fits else pa.int64()


def delimiter_of(line: str) -> str:
    """Find what stands between the values of a line."""
    fitting = [sign for sign in DELIMITERS if len(split(line, sign)) >= len(AXES)]
    return fitting[0] if fitting else SPACES


def split(line: str, delimiter: str) -> list[str]:
    """Divide a line into its values."""
    if delimiter == SPACES:
        return [value.strip('"') for value in re.findall(r'"[^"]*"|\S+', line)]
    rows = csv.reader([line.replace("\r", " ")], delimiter=delimiter)
    return [value.strip() for row in rows for value in row]


def names_in(line: str, delimiter: str, columns: int) -> list[str] | None:
    """Read a line of names; None if it is none for so many columns."""
    for names in (split(line, delimiter), re.split(r"[;,\s]+", line.strip())):
        if len(names) == columns and not any(map(IS_NUMBER.match, names)):
            return [
                name.strip('"') or rest
                for name, rest in zip(names, numbered((), columns), strict=True)
            ]
    return None


def numbered(names: Sequence[str], columns: int) -> list[str]:
    """Name columns; those that have no name are called by their place, from 1."""
    return [*names, *(f"column_{i + 1}" for i in range(len(names), columns))]


READER = Reader(
    name="text",
    suffixes=(".xyz", ".txt", ".csv"),
    kind="points",
    open=TextSource,
    skips="columns",
    keeps="all columns, with the names of a header",
    loses="comments",
)
