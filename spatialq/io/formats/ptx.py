"""PTX: scans of a terrestrial scanner as text, each a grid of points with its own matrix."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spatialq.io.cloud_source import AXES, CloudSource, Part, cloud_schema, moved, text_parts
from spatialq.io.formats import Reader
from spatialq.io.formats.text import Head, split
from spatialq.io.text_lines import NUMBER, SPACES, LineError, Lines, count_lines
from spatialq.runtime.arrays import Floats

TYPES = {
    **dict.fromkeys(AXES, pa.float64()),
    "intensity": pa.float64(),
    **dict.fromkeys(("red", "green", "blue"), pa.uint16()),
}
"""The values of a line; colour is not in all files."""
LENGTHS = (4, 7)
WHOLE = re.compile(r"\d{1,9}")


@dataclass(frozen=True)
class Scan:
    """One scan: where its lines are, how many, and the matrix that puts its points in place."""

    lines: Lines
    rows: int
    matrix: Floats
    """4 x 4: `[x y z 1] @ matrix`."""


class PtxSource(CloudSource):
    """A PTX file, a `spatialq.io.source.Source`; opening it reads it once, to find its scans."""

    def _open(self) -> None:
        self._scans: list[Scan] = []
        head = Head(self)
        try:
            while head.line:
                scan = self._read_scan(head)
                there, stop = count_lines(self.path, scan.lines.begin, scan.rows)
                if there < scan.rows:
                    self.reject(
                        f"cut off: scan {len(self._scans)} has {scan.rows} points, the file holds "
                        f"{there} of them"
                    )
                self._scans.append(scan)
                head = Head(self, stop, scan.lines.before + there)
        except LineError as error:
            self.reject(str(error), error)
        self.rows = sum(scan.rows for scan in self._scans)
        longest = max((scan.lines.columns for scan in self._scans), default=0)
        types = dict(list(TYPES.items())[:longest])
        self.schema = cloud_schema(self, {**types, "scan": pa.int32()})

    def _read_scan(self, head: Head) -> Scan:
        """Read the ten lines before the points of a scan.

        Raises
        ------
        LineError
            If one of them is not what it should be.
        """
        sizes = [self._numbers(head, 1, "a number of points", WHOLE) for _ in range(2)]
        for _ in range(4):  # position and axes of the scanner, which the matrix repeats
            self._numbers(head, 3, "the scanner's position and axes: 3 numbers", NUMBER)
        matrix = np.array(
            [self._numbers(head, 4, "a row of the matrix: 4 numbers", NUMBER) for _ in range(4)]
        )
        if not np.isfinite(matrix).all() or not np.allclose(matrix[:, 3], (0, 0, 0, 1)):
            message = f"the matrix before line {head.number} does more than rotate, scale and shift"
            raise LineError(message)
        rows = int(sizes[0][0] * sizes[1][0])
        values = len(split(head.line, SPACES)) if rows and head.line else LENGTHS[0]
        if values not in LENGTHS:
            message = (
                f"line {head.number} has {values} values; in PTX a point has 4, or 7 with colour"
            )
            raise LineError(message)
        return Scan(head.lines(values, SPACES), rows, matrix)

    def _numbers(self, head: Head, n: int, what: str, form: re.Pattern[str]) -> list[float]:
        words = head.line.split()
        if len(words) != n or not all(map(form.fullmatch, words)):
            message = f"line {head.number} must be {what}, got {head.line[:80]!r}"
            raise LineError(message)
        head.skip()
        return [float(word) for word in words]

    def _parts(self, columns: Sequence[str]) -> Iterator[Part]:
        first = 0
        places = {name: place for place, name in enumerate(TYPES)}
        for number, scan in enumerate(self._scans):
            stored = {
                name: (places[name], TYPES[name])
                for name in columns
                if name in places and places[name] < scan.lines.columns
            }
            for part in text_parts(self, scan.lines, stored, scan.rows, first):
                read = {name: part.columns[name] for name in stored}
                read |= {axis: read[axis].to_numpy(zero_copy_only=False) for axis in AXES}
                rows = part.rows
                found = np.any([read[axis] != 0 for axis in AXES], axis=0)
                read = moved(read, scan.matrix[:3, :3].T, scan.matrix[3, :3])
                read["scan"] = np.full(rows, number, np.int32)
                for name in columns:
                    if name not in read:
                        read[name] = pa.nulls(rows, TYPES[name])
                yield Part(read, keep=found)
            first += scan.rows


READER = Reader(
    name="PTX",
    suffixes=(".ptx",),
    kind="points",
    open=PtxSource,
    skips="columns",
    keeps="intensity, colour; scans, put in place by their matrices",
    loses="positions of the scanner, points without a return",
)
