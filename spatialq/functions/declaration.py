"""What a spatial function is, as SQL, the planner and the tests see it."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, NoReturn, get_args, get_origin, get_type_hints

import numpy as np

Device = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Kind:
    """What an option may be, as its hint says: a value or a list of values, or none at all."""

    value: type
    is_list: bool
    is_optional: bool

    @classmethod
    def of(cls, hint: Any) -> "Kind":
        """Read hints such as `float`, `int | None`, `Literal['a', 'b']`, `tuple[float, ...]`."""
        is_optional = type(None) in get_args(hint)
        if is_optional:
            (hint,) = (each for each in get_args(hint) if each is not type(None))
        first = next(iter(get_args(hint)), hint)
        value = first if isinstance(first, type) else type(first)
        return cls(value, get_origin(hint) is tuple, is_optional)

    def convert(self, value: Any) -> Any:
        """Give the value as options have it: Python's own, not NumPy's, and lists as tuples.

        Raises
        ------
        TypeError
            If it is of another kind; the message says what would be right.
        """
        if value is None and self.is_optional:
            return None
        one, several = WORDS[self.value]
        if not self.is_list and self.fits(value):
            return self.value(value)
        values = value.tolist() if isinstance(value, np.ndarray) else value
        if self.is_list and isinstance(values, list | tuple) and all(map(self.fits, values)):
            return tuple(map(self.value, values))
        must = f"a list of {several}" if self.is_list else one
        raise TypeError(must)

    def fits(self, value: Any) -> bool:
        """Whether it is a value, or one in a list, of this kind."""
        numbers = {int: Integral, float: Real}.get(self.value, self.value)
        return isinstance(value, numbers) and (self.value is bool or not isinstance(value, bool))


WORDS = {
    bool: ("true or false", "truth values"),
    float: ("a number", "numbers"),
    int: ("a whole number", "whole numbers"),
    str: ("text", "texts"),
}
"""A value of a kind, and several."""

NUMPY_TYPES = {
    "BIGINT": np.int64,
    "BOOLEAN": np.bool_,
    "DOUBLE": np.float64,
    "INTEGER": np.int32,
    "USMALLINT": np.uint16,
    "UTINYINT": np.uint8,
    "VARCHAR": np.str_,
}


def whole_numbers(kind: str) -> str:
    """Say what fits into a SQL type of whole numbers."""
    limits = np.iinfo(NUMPY_TYPES[kind])
    if limits.min == 0:
        return f"whole numbers from 0 to {limits.max}"
    return f"whole numbers of {limits.bits} bits"


@dataclass(frozen=True)
class Work:
    """How much a call does, whoever does it: what the planner turns into seconds."""

    bytes_in: int
    """Bytes that travel to a device that has memory of its own."""
    bytes_out: int
    """Bytes that travel back."""
    steps: int
    """Turns of the innermost loop."""
    bytes_kernel: int
    """Device memory that the kernel needs at its peak, input included."""


class Choices:
    """What the options of all functions share; `FUNCTION` is the name in their sentences."""

    FUNCTION = ""

    def refuse(self, name: str, must: str) -> NoReturn:
        """Raise the sentence about an option's value."""
        value = getattr(self, name)
        got = list(value) if isinstance(value, tuple) else value
        message = f"{self.FUNCTION}: {name} must be {must}, got {got!r}"
        raise ValueError(message)


@dataclass(frozen=True)
class Text:
    """A column of text that a kernel gives: codes into names, -1 where there is none."""

    codes: Any
    names: Sequence[str]


@dataclass(frozen=True)
class Lists:
    """A column of lists of structs that a kernel gives.

    Parameters
    ----------
    offsets : int64[rows + 1]
        The list of row k is ``offsets[k] : offsets[k + 1]`` of each column.
    columns : mapping of str to array
        The fields of the structs.
    """

    offsets: Any
    columns: Mapping[str, Any]


@dataclass(frozen=True)
class Udf:
    """One spatial function over the rows of a relation.

    A function of points gets float64 columns of one length, and `point_id` (int64) before them;
    what it `carries` as arrays of its type, masked where there is no value, or None.
    A function of elements has no columns: it gets the meshes of one or two relations as `a` and
    `b`, and its result has columns `a` and `b`, rows of theirs. One of points and elements gets
    the meshes as `elements`; the rows in its result, -1 for none, are `element`, which SQL has as
    `global_id`. One of grids gets a `spatialq.data.grid.Grid` as `grid`.
    """

    name: str
    columns: tuple[str, ...]
    options: type
    """A frozen dataclass whose fields are the named arguments; it refuses bad values."""
    returns: Mapping[str, str]
    """Out: column -> SQL type."""
    work: Callable[[int, Any], Work]
    carries: Mapping[str, str] = field(default_factory=dict)
    """Columns of whole numbers that a table of points may have or not: column -> SQL type."""
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names behind the codes of a column: what the kernel gives as 0, 1, 2 ..."""
    nulls: Mapping[str, int] = field(default_factory=dict)
    """What the kernel gives in a column of integers where there is no value."""
    cpu_only: Callable[[Any], str] = lambda _: ""
    """Which of the options, if any, only the CPU's kernel has, such as "method := 'slow'"."""
    takes_elements: bool = False
    """Whether a function of points gets elements, too."""
    takes_grid: bool = False
    """Whether the columns are the cells of a grid, which the kernel gets as `grid`."""
    windows: Callable[[Any, Any], Any] = lambda *_: None
    """Of a grid and options: the `spatialq.data.grid.Windows` that a band must hold whole."""

    @property
    def takes_points(self) -> bool:
        """Whether it is a function of points alone."""
        return bool(self.columns) and not (self.takes_elements or self.takes_grid)

    def choose(self, options: Mapping[str, Any]) -> Any:
        """Make the options of a call of named arguments.

        Raises
        ------
        ValueError
            If there is no such option, or its value is wrong; so is a value of another kind.
        """
        known = {each.name for each in fields(self.options)}
        if unknown := sorted(set(options) - known):
            names = ", ".join(sorted(known))
            message = f"{self.name}: no option {unknown[0]!r}; there is {names}"
            raise ValueError(message)
        hints = get_type_hints(self.options)
        chosen = {}
        for name, value in options.items():
            try:
                chosen[name] = Kind.of(hints[name]).convert(value)
            except TypeError as error:
                message = f"{self.name}: {name} must be {error}, got {value!r}"
                raise ValueError(message) from None
        return self.options(**chosen)

    def no_rows(self) -> dict[str, Any]:
        """Give the columns of a result without a row, but for geometries and lists."""
        kinds = {
            name: NUMPY_TYPES[kind] for name, kind in self.returns.items() if kind in NUMPY_TYPES
        }
        return {name: np.empty(0, kind) for name, kind in kinds.items()}

    def has_kernel(self, device: Device) -> bool:
        """Whether there is a kernel for this device; does not import it."""
        return importlib.util.find_spec(f"spatialq.udfs.{self.name}.{device}") is not None

    def kernel(self, device: Device) -> Callable[..., dict[str, Any]]:
        """Import the kernel for a device: the device is the module's name."""
        module = importlib.import_module(f"spatialq.udfs.{self.name}.{device}")
        run: Callable[..., dict[str, Any]] = module.run
        return run


@cache
def catalog() -> Mapping[str, Udf]:
    """All spatial functions by name: every folder of `spatialq.udfs` is one."""
    import spatialq.udfs

    names = sorted(info.name for info in pkgutil.iter_modules(spatialq.udfs.__path__))
    return {name: importlib.import_module(f"spatialq.udfs.{name}").UDF for name in names}


def find(function: str, name: str) -> Udf:
    """Look up a spatial function; a ValueError names the nearest ones."""
    known = catalog()
    if name in known:
        return known[name]
    near = get_close_matches(name, known) or sorted(known)
    message = f"{function}: no spatial function {name!r}; there is {', '.join(near)}"
    raise ValueError(message)
