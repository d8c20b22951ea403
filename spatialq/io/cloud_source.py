"""What readers of point clouds share: names and types of columns, and batches of their rows.

A reader gives `Part`s, some records each in the order of the file. Here they are numbered,
records without a position are left out, and what is left becomes batches of whole row groups.
"""

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spatialq.errors import FileError, FileWarning
from spatialq.io.files import require_file
from spatialq.io.source import READER, ROW_GROUP, Box, SequentialSource, in_row_groups
from spatialq.io.storage import as_path
from spatialq.io.text_lines import ALL, LineError, Lines, WrongValueError, read_values
from spatialq.runtime.arrays import Array, Bools, DType, Floats

AXES = ("x", "y", "z")
LAS_TYPES = {
    "intensity": "u2",
    "return_number": "u1",
    "number_of_returns": "u1",
    "scan_direction_flag": "?",
    "edge_of_flight_line": "?",
    "classification": "u1",
    "user_data": "u1",
    "scan_angle_rank": "i1",
    "scan_angle": "f4",
    "point_source_id": "u2",
    "gps_time": "f8",
    "red": "u2",
    "green": "u2",
    "blue": "u2",
    "nir": "u2",
}
"""LAS dimensions that files of other formats have, with their types."""
SPELLINGS = {
    **{name.replace("_", ""): name for name in (*AXES, *LAS_TYPES)},
    **{
        spelling: name
        for name in ("red", "green", "blue")
        for spelling in (f"color{name}", f"diffuse{name}")
    },
    "returncount": "number_of_returns",
}
"""Other spellings of LAS dimensions, in lower case without underscores and spaces."""
COLOUR = {"r": "red", "g": "green", "b": "blue"}
"""What these letters mean where all three are there."""
PREFIXES = re.compile(r"^(//|scalar_|las:)", re.IGNORECASE)
"""What CloudCompare and the LAS extension of E57 put before a name."""


@dataclass
class Part:
    """Some records of a file.

    Attributes
    ----------
    columns : mapping of str to array
        Those that were asked for, as NumPy or Arrow arrays; x, y and z are float64.
    keep : bool[], optional
        False where the file says that a record is no point.
    """

    columns: Mapping[str, Any]
    keep: Bools | None = None

    @property
    def rows(self) -> int:
        """Count the records."""
        return len(self.columns["x"])


class CloudSource(SequentialSource, ABC):
    """A point cloud that is read from its beginning: the part that all formats share.

    A subclass reads the header in `_open`, which sets `schema` and `rows`, and gives the records
    by `_parts`.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    FileError
        If the file cannot be read, or its header promises what it does not hold.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = as_path(path)
        require_file(READER, self.path)
        self.warnings: list[str] = []
        try:
            self.size = self.path.stat().st_size
            self._open()
        except OSError as error:
            self.reject(f"cannot be read: {error.strerror or error}", error)

    @abstractmethod
    def _open(self) -> None:
        """Read the header: set `schema` and `rows`, and `crs` where the file states it."""

    @abstractmethod
    def _parts(self, columns: Sequence[str]) -> Iterator[Part]:
        """Read the columns, x, y and z among them, of all records in the order of the file."""

    def batches(self, columns: Sequence[str], hint: Box | None = None) -> Iterator[pa.RecordBatch]:
        """Read the columns in batches of `ROW_GROUP` rows, the last one shorter.

        Records without a position are left out: those that the file marks as invalid, and those
        where x, y or z is not finite.

        Raises
        ------
        FileError
            If the file is damaged, or has fewer records than its header promises.

        Warns
        -----
        FileWarning
            At the end, of records that were left out.
        """
        yield from in_row_groups(self._batches(columns))

    def reject(self, reason: str, error: Exception | None = None) -> NoReturn:
        """Raise the error of this file."""
        raise FileError.of(READER, self.path, reason) from error

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([self.schema.field(name) for name in columns])
        needed = [name for name in dict.fromkeys([*columns, *AXES]) if name != "point_id"]
        done = kept = 0
        try:
            for part in self._parts(needed):
                ids = pa.array(np.arange(done, done + part.rows))
                arrays = [
                    ids if name == "point_id" else _as_arrow(part.columns[name], field.type)
                    for name, field in zip(columns, schema, strict=True)
                ]
                batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
                chosen = with_position(part)
                if chosen is not None:
                    batch = batch.filter(pa.array(chosen))
                done += part.rows
                kept += batch.num_rows
                yield batch
        except OSError as error:
            self.reject(f"cannot be read: {error.strerror or error}", error)
        if done < self.rows:
            self.reject(f"cut off: its header promises {self.rows} points, but {done} are there")
        if kept < done:
            message = (
                f"{READER}: '{self.path}': {done - kept} of its {done} records have no position "
                "and are left out"
            )
            warnings.warn(message, FileWarning, stacklevel=4)


def _as_arrow(values: Any, wanted: pa.DataType) -> pa.Array:
    if not isinstance(values, pa.Array):
        # fields of records are strided, and in files of other machines the bytes are swapped
        dtype = np.dtype(wanted.to_pandas_dtype())
        values = pa.array(np.ascontiguousarray(values, dtype))
    return values if values.type == wanted else values.cast(wanted)


def with_position(part: Part) -> Bools | None:
    """Say which records have a position; None: all of them."""
    keep = part.keep if part.keep is None or not part.keep.all() else None
    for axis in AXES:
        values = part.columns[axis]
        if isinstance(values, pa.Array):
            values = values.to_numpy(zero_copy_only=False)  # NULL becomes NaN
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):  # which it is not if one value is not
                continue
        finite = np.isfinite(values)
        keep = finite if keep is None else keep & finite
    return None if keep is None or keep.all() else keep


def records(source: CloudSource, begin: int, dtype: DType, rows: int) -> Iterator[Array]:
    """Read binary records, in memory that the next ones overwrite.

    Raises
    ------
    FileError
        If the file became shorter.
    """
    space = np.empty(min(rows, ROW_GROUP), dtype)
    with source.path.open("rb") as file:
        file.seek(begin)
        for first in range(0, rows, ROW_GROUP):
            part = space[: rows - first]
            if file.readinto(part.view(np.uint8).data) != part.nbytes:
                source.reject("became shorter while it was read")
            yield part


def moved(
    columns: dict[str, Any],
    rotation: Floats,
    translation: Floats,
) -> dict[str, Any]:
    """Give columns whose points were rotated, by a 3 x 3 matrix, and shifted."""
    x, y, z = (columns[axis] for axis in AXES)
    to = {
        axis: row[0] * x + row[1] * y + row[2] * z + shift
        for axis, row, shift in zip(AXES, rotation, translation, strict=True)
    }
    return {**columns, **to}


def text_parts(
    source: CloudSource,
    lines: Lines,
    stored: Mapping[str, tuple[int, pa.DataType]],
    limit: int = ALL,
    row: int = 0,
) -> Iterator[Part]:
    """Read columns from lines of text: for each its place in a line, from 0, and its type there.

    `row` is the `point_id` of the first line, for messages.

    Raises
    ------
    FileError
        If a line has another number of values, or a value is of another type.
    """
    places = list(dict.fromkeys(place for place, _ in stored.values()))
    try:
        for values in read_values(lines, places, limit):
            columns = {}
            for name, (place, kind) in stored.items():
                try:
                    columns[name] = values[places.index(place)].read(kind)
                except WrongValueError as error:
                    what = "text in UTF-8" if pa.types.is_string(kind) else kind
                    source.reject(
                        f"{name} of point_id {row + error.row} is {error.text!r}, no {what}"
                    )
            yield Part(columns)
            row += values[0].rows
    except LineError as error:
        source.reject(str(error), error)


def column_names(source: CloudSource, fields: Sequence[str]) -> list[str]:
    """Name the column of each field: as LAS does where it has the meaning, else as the file.

    SQL does not tell X from x: a name that another column has gets a number and a warning.
    """
    taken, names = {"point_id", "file_name"}, []
    letters = COLOUR if set(COLOUR) <= {field.lower() for field in fields} else {}
    for field in fields:
        plain = PREFIXES.sub("", field.strip())
        spelling = re.sub(r"[\s_]", "", plain).lower()
        name = letters.get(spelling) or SPELLINGS.get(spelling) or plain or "column"
        chosen, number = name, 2
        while chosen.lower() in taken:
            chosen, number = f"{name}_{number}", number + 1
        if chosen != name:
            source.warnings.append(f"its field '{field}' is called '{chosen}' here")
        taken.add(chosen.lower())
        names.append(chosen)
    return names


def column_type(name: str, stored: npt.DTypeLike) -> DType:
    """Give the type of a column whose file has values of type `stored`.

    x, y and z are float64. A LAS dimension has its type of LAS if that holds every value of the
    type in the file; all other columns have that of the file.
    """
    kind = np.dtype(stored).newbyteorder("=")
    if name in AXES:
        return np.dtype(np.float64)
    las = LAS_TYPES.get(name)
    return np.dtype(las) if las is not None and np.can_cast(kind, las) else kind


def cloud_schema(source: CloudSource, types: Mapping[str, Any]) -> pa.Schema:
    """Make the schema: `point_id`, x, y, z, and the other columns in the order of the file.

    Parameters
    ----------
    source : CloudSource
    types : mapping of str to NumPy type or pyarrow.DataType
        Of all columns but `point_id`.

    Raises
    ------
    FileError
        If there is no x, y or z.
    """
    for axis in AXES:
        if axis not in types:
            source.reject(f"its points have no {axis}: there are {', '.join(types) or 'no fields'}")
    ordered = {name: types[name] for name in (*AXES, *types)}
    fields = [
        (name, kind if isinstance(kind, pa.DataType) else pa.from_numpy_dtype(kind))
        for name, kind in ordered.items()
    ]
    return pa.schema([("point_id", pa.int64()), *fields])
