"""Points of files, straight into the arrays of a kernel, without one row per point."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from spatialq.data.boxes import in_box
from spatialq.data.columns import NUMBERS, NUMPY_TYPES
from spatialq.database.transport.columns import attributes_of
from spatialq.functions.catalogue import Function
from spatialq.io.clouds import are_las
from spatialq.io.filters import check_bounds
from spatialq.io.source import PointSource, Progress, numbers_of
from spatialq.runtime import buffers, progress

POINT_ID = "point_id"


def numbers_in(
    caller: str, clouds: Sequence[PointSource], names: Sequence[str]
) -> "dict[str, np.dtype[Any]]":
    """Find the types of columns of files, of which any may lack some.

    Raises
    ------
    ValueError
        If no file has a column of numbers of that name.
    """
    found = (types_of_cloud(cloud, names) for cloud in clouds)
    return common_types(caller, found, names) if names else {}


def types_of_cloud(cloud: PointSource, names: Sequence[str]) -> "dict[str, np.dtype[Any]]":
    """Give the types of some columns of a file, and that of objects for all others."""
    return {
        field.name: np.dtype(field.type.to_pandas_dtype() if field.name in names else object)
        for field in cloud.schema
    }


def common_types(
    caller: str, files: "Iterable[Mapping[str, np.dtype[Any]]]", names: Sequence[str]
) -> "dict[str, np.dtype[Any]]":
    """Find the types of columns of files by those of each file, as `numbers_in`.

    Raises
    ------
    ValueError
        If no file has a column of numbers of that name.
    """
    there: dict[str, set[np.dtype[Any]]] = {}
    for types in files:
        for name, dtype in types.items():
            there.setdefault(name, set()).add(dtype)
    found = {}
    for name in names:
        if name not in there or not all(each in NUMBERS for each in there[name]):
            message = (
                f"{caller}: attributes must be columns of numbers of the files, "
                f"{', '.join(there)}, got {name!r}"
            )
            raise ValueError(message)
        found[name] = np.result_type(*there[name])
    return found


def batches_of_clouds(
    function: Function,
    clouds: Sequence[PointSource],
    tick: Progress | None = None,
    more: Mapping[str, np.dtype[Any]] = {},
    bounds: Sequence[float] | None = None,
) -> Iterator[dict[str, Any]]:
    """Read the points of files, whose ids run on from file to file, some at a time.

    A column that a file lacks is None. Of the columns `more`, as `numbers_in` gives them, values
    that are NULL are masked. With bounds there are only the points inside or on the border; what a
    file's parts say to lie outside is not decoded.
    """
    hint = None if bounds is None else check_bounds(function.name, bounds)
    attributes, first = [*attributes_of(function), *more], 0
    for cloud in clouds:
        types, done = _types_in(function, cloud, more), 0
        for batch in cloud.batches(list(types), hint):
            progress.check()
            found = {
                name: _numbers_of(cloud, name, batch[name], dtype, keeps_nulls=name in more)
                for name, dtype in types.items()
            }
            points = {**dict.fromkeys(attributes), **found, POINT_ID: found[POINT_ID] + first}
            if bounds is not None:
                points = chosen(points, in_box(points["x"], points["y"], bounds))
            yield points
            done += batch.num_rows
            if tick is not None:
                tick(cloud.path, done, cloud.rows)
        first += cloud.rows


def read_clouds(
    function: Function,
    clouds: Sequence[PointSource],
    tick: Progress | None = None,
    bounds: Sequence[float] | None = None,
    more: Mapping[str, np.dtype[Any]] = {},
) -> dict[str, Any]:
    """Read the points of files, whose ids run on from file to file, as a kernel takes them.

    An attribute is masked where a file has none of that name, and None where all files lack it. The
    ids are None where they are the positions.

    Parameters
    ----------
    function : Function
    clouds : sequence of PointSource
    tick : callable, optional
        Called with a file, its rows so far and its rows in all.
    bounds : sequence of float, optional
        xmin, ymin, xmax, ymax: only the points inside or on the border.
    more : mapping, optional
        Columns beyond those of the function, as `numbers_in` gives them; masked also where a value
        is NULL.

    Raises
    ------
    MemoryError
        If memory, or the disk for what is beyond the budget, is not enough, in a sentence.
    """
    try:
        if bounds is not None or (more and not are_las(clouds)):
            batches = batches_of_clouds(function, clouds, tick, more, bounds)
            return joined(function, clouds, batches, more)
        return _read_all(function, clouds, tick, more)
    except MemoryError as full:
        message = f"{function.name}: not enough memory to read the files: {full}"
        raise MemoryError(message) from full


def _read_all(
    function: Function,
    clouds: Sequence[PointSource],
    tick: Progress | None,
    more: "Mapping[str, np.dtype[Any]]",
) -> dict[str, Any]:
    columns = _Columns(function, clouds, more)
    columns.reserve(sum(cloud.rows for cloud in clouds))
    first = 0
    for cloud in clouds:
        columns.add_all(cloud, first, tick)
        first += cloud.rows
    return columns.arrays()


def chosen(points: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    """Give some rows of points, of which columns may be None."""
    return {name: None if values is None else values[rows] for name, values in points.items()}


def joined(
    function: Function,
    clouds: Sequence[PointSource],
    batches: Iterable[Mapping[str, Any]],
    more: Mapping[str, np.dtype[Any]] = {},
) -> dict[str, Any]:
    """Put points of files together, as `batches_of_clouds` gives them; all have their ids."""
    columns = _Columns(function, clouds, more, has_ids=True)
    for found in batches:
        columns.add({name: values for name, values in found.items() if values is not None})
    return columns.arrays()


class _Columns:
    """Columns of points that are read file by file, in memory that grows.

    Parameters
    ----------
    function : Function
    clouds : sequence of PointSource
    more : mapping
        Columns beyond those of the function, and their types.
    has_ids : bool
        Whether the ids may be others than the positions; so they may where a file has records that
        are no points.
    """

    def __init__(
        self,
        function: Function,
        clouds: Sequence[PointSource],
        more: "Mapping[str, np.dtype[Any]]",
        *,
        has_ids: bool = False,
    ) -> None:
        self._function, self._more = function, more
        attributes = [*attributes_of(function), *more]
        there = [set(_types_in(function, cloud, more)) for cloud in clouds]
        self._absent = [
            name for name in attributes
            if name not in more and not any(name in each for each in there)
        ]  # fmt: skip
        self._partial = {
            name for name in attributes if name not in self._absent
            and not all(name in each for each in there)
        }  # fmt: skip
        if not are_las(clouds):
            self._partial.update(more)
        self._types = {
            name: dtype
            for name, dtype in _types_of(function, more).items()
            if name not in (POINT_ID, *self._absent)
        }
        if has_ids or not all(cloud.is_whole for cloud in clouds):
            self._types[POINT_ID] = np.dtype(np.int64)
        self._n = 0
        self._columns = {name: self._room(name, 0) for name in self._types}

    def types_in(self, cloud: PointSource) -> dict[str, "np.dtype[Any]"]:
        """Give the columns that a file has, and their types."""
        there = _types_in(self._function, cloud, self._more)
        return {name: dtype for name, dtype in self._types.items() if name in there}

    def reserve(self, rows: int) -> None:
        """Make room for so many rows in all."""
        if rows <= len(self._columns["x"]):
            return
        for name, values in self._columns.items():
            room = self._room(name, rows)
            room[: self._n] = values[: self._n]
            self._columns[name] = room

    def add_all(self, cloud: PointSource, first: int, tick: Progress | None) -> None:
        """Read all points of a file, whose first id is `first`; there is room for them."""
        part = slice(self._n, self._n + cloud.rows)
        types = self.types_in(cloud)
        arrays = {name: np.ma.getdata(self._columns[name])[part] for name in types}
        came = cloud.read_into(arrays, tick)  # fewer where records are no valid points
        if POINT_ID in arrays:
            arrays[POINT_ID] += first
        self._end(types, came)

    def add(self, found: dict[str, Any]) -> None:
        """Add some points of a file."""
        came = len(found["x"])
        if self._n + came > len(self._columns["x"]):
            self.reserve(max(2 * self._n, self._n + came))
        part = slice(self._n, self._n + came)
        for name, values in found.items():
            np.ma.getdata(self._columns[name])[part] = np.ma.getdata(values)
        self._end(found, came)

    def arrays(self) -> dict[str, Any]:
        """Give what the kernel gets."""
        found = {name: values[: self._n] for name, values in self._columns.items()}
        return {POINT_ID: None, **dict.fromkeys(self._absent), **found}

    def _end(self, there: Mapping[str, Any], came: int) -> None:
        """Count rows that are there, of which the values of other columns are masked."""
        part = slice(self._n, self._n + came)
        for name in self._partial:
            lost = np.ma.getmask(there[name]) if name in there else True
            np.ma.getmaskarray(self._columns[name])[part] = lost
        self._n += came

    def _room(self, name: str, rows: int) -> Any:
        room = buffers.empty(rows, self._types[name])
        if name not in self._partial:
            return room
        return np.ma.MaskedArray(room, buffers.zeros(rows, np.bool_))


def _types_of(
    function: Function, more: "Mapping[str, np.dtype[Any]]"
) -> "dict[str, np.dtype[Any]]":
    """Give all columns that a call may get of files, and their types."""
    kinds = {POINT_ID: "BIGINT", **dict.fromkeys(function.inputs.columns, "DOUBLE")}
    kinds |= attributes_of(function)
    return {name: np.dtype(NUMPY_TYPES[kind]) for name, kind in kinds.items()} | dict(more)


def _types_in(
    function: Function, cloud: PointSource, more: "Mapping[str, np.dtype[Any]]"
) -> "dict[str, np.dtype[Any]]":
    """Give the columns of a file that a call takes, of types that lose nothing.

    An intensity that is a fraction, say, is none that a function for LAS dimensions understands.
    """
    return {
        name: dtype
        for name, dtype in _types_of(function, more).items()
        if name in cloud.schema.names
        and np.can_cast(cloud.schema.field(name).type.to_pandas_dtype(), dtype)
    }


def common_attributes(function: Function, clouds: Sequence[PointSource]) -> list[str] | None:
    """Give the attributes of a function that all files have; None if only some have one."""
    attributes = attributes_of(function)
    there = [attributes.keys() & _types_in(function, cloud, {}).keys() for cloud in clouds]
    if any(each != there[0] for each in there[1:]):
        return None
    return [name for name in attributes if name in there[0]]


def _numbers_of(
    cloud: PointSource, name: str, values: Any, dtype: "np.dtype[Any]", *, keeps_nulls: bool
) -> Any:
    """Give the values of a column as numbers of a type, masked where they are NULL, or else 0."""
    numbers = numbers_of(cloud.path, name, values, dtype)
    if not keeps_nulls or not values.null_count:
        return numbers
    return np.ma.MaskedArray(numbers, values.is_null().to_numpy(zero_copy_only=False))
