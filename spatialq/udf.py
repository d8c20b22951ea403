"""What a spatial function is, as SQL, the planner and the tests see it."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, NoReturn, get_args, get_type_hints

Device = Literal["cpu", "gpu"]
WORDS = {bool: "true or false", float: "a number", int: "a whole number", str: "text"}


def value_type(hint: Any) -> type:
    """Python type behind `int | None`, `Literal['a', 'b']` and the like."""
    first = next((each for each in get_args(hint) if each is not type(None)), hint)
    return first if isinstance(first, type) else type(first)


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
        message = f"{self.FUNCTION}: {name} must be {must}, got {getattr(self, name)!r}"
        raise ValueError(message)


@dataclass(frozen=True)
class Text:
    """A column of text that a kernel gives: codes into names."""

    codes: Any
    names: Sequence[str]


@dataclass(frozen=True)
class Udf:
    """One spatial function over the rows of a relation.

    A function of points gets float64 columns of one length, and `point_id` (int64) before them.
    A function of elements has no columns: it gets the meshes of one or two relations as `a` and
    `b`, and its result has columns `a` and `b`, rows of theirs. One of points and elements gets
    the meshes as `elements`; the rows in its result, -1 for none, are `element`, which SQL has as
    `global_id`.
    """

    name: str
    columns: tuple[str, ...]
    options: type
    """A frozen dataclass whose fields are the named arguments; it refuses bad values."""
    returns: Mapping[str, str]
    """Out: column -> SQL type."""
    work: Callable[[int, Any], Work]
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
        for name, value in options.items():
            kind = value_type(hints[name])
            numbers = {int: Integral, float: Real}.get(kind, kind)
            fits = isinstance(value, numbers) and (kind is bool or not isinstance(value, bool))
            if not (fits or (value is None and type(None) in get_args(hints[name]))):
                message = f"{self.name}: {name} must be {WORDS[kind]}, got {value!r}"
                raise ValueError(message)
        return self.options(**options)

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
