"""What the rows of a query select: a bit or a number for each point of a cloud, and the legend."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.runtime.arrays import Array, Bytes, Float32s, Ints
from spatialq.serve.limits import QueryRefusedError

if TYPE_CHECKING:
    import pyarrow as pa

MASK, BYTES, NUMBERS = "mask", "bytes", "numbers"
RAMP = "viridis"
STEPS = 254
"""Bytes of values: 1 is the least, 255 the greatest; 0 stands for no value and for no row."""
MOST_CATEGORIES = 32
"""Distinct whole numbers that are categories; more are a range."""
DENSE = 8
"""Ids up to so many times the number of points have an array by id; above, they are searched."""
RUN = 1 << 20
"""Numbers that become bytes at a time."""
COLOURS = (
    (31, 119, 180), (255, 127, 14), (44, 160, 44), (214, 39, 40), (148, 103, 189), (140, 86, 75),
    (227, 119, 194), (127, 127, 127), (188, 189, 34), (23, 190, 207),
)  # fmt: skip
"""Of categories, in turn: those of Tableau 10."""
FALSE, TRUE = (120, 120, 120), (230, 110, 40)


@dataclass(frozen=True)
class Selection:
    """A value for each point of a cloud by its id.

    Parameters
    ----------
    kind : 'mask', 'bytes' or 'numbers'
    values : uint8[n] or float32[n]
        Of a mask eight points a byte, the first in the lowest bit. By id; where `ids` are there,
        in their order.
    ids : int64[k], optional
        Ascending.
    """

    kind: str
    values: Array
    ids: Ints | None = None

    def of(self, wanted: Ints) -> bytes:
        """Give the values of some points in their order, 0 or NaN of those that have none."""
        is_mask = self.kind == MASK
        if self.ids is None:
            is_there = wanted < len(self.values) * (8 if is_mask else 1)
            at = np.where(is_there, wanted, 0)
        elif len(self.ids):
            at = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
            is_there = self.ids[at] == wanted
        else:
            at, is_there = wanted, np.zeros(len(wanted), np.bool_)
        missing = np.nan if self.kind == NUMBERS else 0
        found = np.full(len(wanted), missing, self.values.dtype)
        at = at[is_there]
        if is_mask:
            found[is_there] = self.values[at >> 3] >> (at & 7).astype(np.uint8) & 1
            return np.packbits(found, bitorder="little").tobytes()
        found[is_there] = self.values[at]
        return found.astype(found.dtype.newbyteorder("<")).tobytes()


class Gathered:
    """Collects a value for each point, batch by batch; of several rows of a point the last counts.

    Parameters
    ----------
    points, greatest : int
        Number of points of the cloud, and their greatest id.
    dtype : dtype
    missing : value
        Of points without a row.
    """

    def __init__(self, points: int, greatest: int, dtype: Any, missing: Any) -> None:
        is_dense = greatest < DENSE * points
        self._dense = np.full(greatest + 1, missing, dtype) if is_dense else None
        self._ids: list[Ints] = []
        self._values: list[Array] = []
        self._greatest, self._dtype = greatest, dtype

    def add(self, ids: Ints, values: Any) -> None:
        """Take some rows."""
        is_there = (ids >= 0) & (ids <= self._greatest)
        if not is_there.all():
            ids = ids[is_there]
            values = values[is_there] if np.ndim(values) else values
        if self._dense is not None:
            self._dense[ids] = values
            return
        self._ids.append(ids)
        self._values.append(np.broadcast_to(values, ids.shape).astype(self._dtype))

    def collected(self) -> tuple[Array, Ints | None]:
        """Give all values, and the ids that they are of unless that is their position."""
        if self._dense is not None:
            return self._dense, None
        ids = np.concatenate([np.empty(0, np.int64), *self._ids])
        values = np.concatenate([np.empty(0, self._dtype), *self._values])
        last, where = np.unique(ids[::-1], return_index=True)
        return values[::-1][where], last


class Values:
    """The numbers of a column that colours, and the legend: a range or categories.

    Parameters
    ----------
    kind : pyarrow.DataType
    """

    def __init__(self, kind: "pa.DataType") -> None:
        import pyarrow.types as types

        self._is_boolean, self._is_whole = types.is_boolean(kind), types.is_integer(kind)
        self._is_number = self._is_whole or types.is_floating(kind) or types.is_decimal(kind)
        self._known: dict[Any, int] = {}
        self._low, self._high = math.inf, -math.inf
        self._distinct: set[float] | None = set() if self._is_whole else None

    def numbers(self, values: "pa.Array") -> Float32s:
        """Give numbers of a batch: texts have those of their categories; NaN for NULL."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._is_boolean or self._is_number:
            kind = values.cast(pa.uint8()) if self._is_boolean else values
            found = kind.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            is_finite = np.isfinite(found)
            finite = found if is_finite.all() else found[is_finite]
            if finite.size:
                self._low = min(self._low, float(finite.min()))
                self._high = max(self._high, float(finite.max()))
            if self._distinct is not None:
                self._distinct |= set(
                    pc.unique(values.drop_null()).to_pylist()[: MOST_CATEGORIES + 1]
                )
                if len(self._distinct) > MOST_CATEGORIES:
                    self._distinct = None
            single: Float32s = found.astype(np.float32)
            return single
        try:
            coded = values.cast(pa.string()).dictionary_encode()
        except pa.ArrowException:
            message = f"view: colour must be a column of numbers or texts, got {values.type}"
            raise QueryRefusedError(message) from None
        codes = [
            self._known.setdefault(each, min(len(self._known), STEPS))
            for each in coded.dictionary.to_pylist()
        ]
        at = coded.indices.cast(pa.float32()).to_numpy(zero_copy_only=False)
        found = np.full(len(at), np.nan, np.float32)
        is_there = np.isfinite(at)
        found[is_there] = np.array(codes, np.float32)[at[is_there].astype(np.int64)]
        return found

    @property
    def _categories(self) -> list[Any] | None:
        """The values that are categories, in their order; None of a range."""
        if self._is_boolean:
            return [False, True]
        if self._is_number:
            return None if self._distinct is None else sorted(self._distinct)
        return list(self._known)[: STEPS + 1]

    @property
    def is_empty(self) -> bool:
        """Whether there was no value at all."""
        categories = self._categories
        return not (self._low <= self._high if categories is None else categories)

    def legend(self) -> Any:
        """Say what bytes mean: a range with its ramp, or categories in the order of the bytes."""
        categories = self._categories
        if categories is None:
            is_known = self._low <= self._high
            ends = (self._low, self._high) if is_known else (None, None)
            return {"min": ends[0], "max": ends[1], "ramp": RAMP}
        colours = (FALSE, TRUE) if self._is_boolean else COLOURS
        return [
            {"value": value, "colour": list(colours[k % len(colours)]), "label": str(value)}
            for k, value in enumerate(categories)
        ]

    def scaled(self, numbers: Float32s) -> Bytes:
        """Give a byte for each number: 0 where there is none, else 1 to 255."""
        found = np.zeros(len(numbers), np.uint8)
        categories = self._categories
        for begin in range(0, len(numbers), RUN):
            some, bytes_of = numbers[begin : begin + RUN], found[begin : begin + RUN]
            is_there: Any = np.isfinite(some)
            if is_there.all():
                is_there = slice(None)  # which copies nothing
            if categories is None:
                share = some[is_there].astype(np.float64)
                share -= self._low
                share /= (self._high - self._low) or 1.0
                share *= STEPS
                np.clip(np.rint(share, out=share), 0, STEPS, out=share)
                bytes_of[is_there] = 1 + share.astype(np.uint8)
            elif self._is_whole:
                known = np.array(categories, np.float32)
                bytes_of[is_there] = 1 + np.searchsorted(known, some[is_there])
            else:
                bytes_of[is_there] = 1 + some[is_there].astype(np.uint8)
        return found
