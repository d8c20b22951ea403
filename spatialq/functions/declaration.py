"""What a spatial function is: the declaration in its folder, from which all else is derived.

A folder `udfs/<function>/` declares its parameters once, as the fields of a `Parameters` class, and
its inputs, outputs and work once, as a `Declaration`. SQL macros, comments in DuckDB's catalogue,
tables of parameters in the documentation, options of the command line, type stubs, validation with
its error sentences, and the tests of these are derived from it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from math import ceil, inf, isfinite, sqrt
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NoReturn, get_args, get_origin, get_type_hints

Device = Literal["cpu", "gpu"]
COORDINATES = ("unit", "crs")
"""The parameters of `CoordinateParameters`."""
BOUNDS = "bounds"
"""The parameter of `PointParameters`."""
BOX = "[xmin, ymin, xmax, ymax], finite numbers with the minima first, or NULL"
"""What it must be."""
LENGTH = "length"
"""Stands in a parameter's unit for `Parameters.LENGTH_UNIT` of the class that it is in."""

WORDS = {
    bool: ("true or false", "truth values"),
    float: ("a number", "numbers"),
    int: ("a whole number", "whole numbers"),
    str: ("text", "texts"),
}
"""A value of a type, and several, in an error sentence."""


@dataclass(frozen=True)
class Parameter:
    """One named argument of a function, as SQL, Python and the command line have it."""

    name: str
    type: type
    """bool, int, float or str; the type of the elements where `is_list`."""
    default: Any
    """None stands for NULL."""
    doc: str
    """One sentence."""
    unit: str = ""
    above: float = -inf
    at_least: float = -inf
    below: float = inf
    at_most: float = inf
    choices: tuple[str, ...] = ()
    must_be: str = ""
    """What a value must be, where the class checks it itself (`Parameters.check`)."""
    is_list: bool = False
    is_optional: bool = False
    """Whether None is allowed, NULL in SQL."""
    of_elements: bool = False
    """Whether NULL stands in SQL for what the tables of elements say in a column of this name."""

    @property
    def must(self) -> str:
        """What a value must be, as an error sentence has it: "> 0 and <= 45 degrees"."""
        text = self.must_be or " or ".join(map(repr, self.choices)) or self._range()
        if not self.is_optional or self.must_be:
            return text
        return f"{text}{',' if ' and ' in text else ''} or NULL"

    @property
    def in_metres(self) -> bool:
        """Whether its values are lengths in metres, not in the unit of the coordinates."""
        return self.unit == "metres"

    @property
    def is_length(self) -> bool:
        """Whether its values are lengths, in metres or in the unit of the coordinates."""
        is_length = self.in_metres or self.unit.startswith("units of x")
        return is_length and self.name not in COORDINATES

    @property
    def kind(self) -> str:
        """Its type in words, for the documentation."""
        word = {float: "number", int: "whole number", bool: "boolean", str: "text"}[self.type]
        return f"list of {word}s" if self.is_list else word

    def _range(self) -> str:
        signs = {">": self.above, ">=": self.at_least, "<": self.below, "<=": self.at_most}
        limits = [f"{sign} {_number(limit)}" for sign, limit in signs.items() if isfinite(limit)]
        spoken = self.unit if self.unit in ("metres", "degrees") else ""
        if limits:
            return f"{' and '.join(limits)} {spoken}".rstrip()
        if self.type is float:
            return f"a finite number of {spoken}" if spoken else "a finite number"
        return WORDS[self.type][self.is_list]

    def convert(self, value: object) -> Any:
        """Make Python's own value, not NumPy's, of what a caller gives; lists become tuples.

        Raises
        ------
        TypeError
            If the value is of another type; the message says what it must be.
        """
        if value is None and self.is_optional:
            return None
        one, several = WORDS[self.type]
        if not self.is_list:
            if self.fits(value):
                return self.type(value)
            raise TypeError(one)
        values = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(values, list | tuple) and all(map(self.fits, values)):
            return tuple(map(self.type, values))
        message = f"a list of {several}"
        raise TypeError(message)

    def fits(self, value: object) -> bool:
        """Whether a value, or one in a list, is of this parameter's type."""
        numbers = {int: Integral, float: Real}.get(self.type, self.type)
        return isinstance(value, numbers) and (self.type is bool or not isinstance(value, bool))

    def allows(self, value: Any) -> bool:
        """Whether a converted value, or each in a list, is in the range or among the choices."""
        if value is None or self.must_be:
            return True
        if self.is_list:
            return all(map(self._allows_one, value))
        return self._allows_one(value)

    def _allows_one(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        if self.type not in (int, float):
            return True
        is_finite = self.type is int or isfinite(value)
        return (
            is_finite and self.above < value < self.below and self.at_least <= value <= self.at_most
        )


def parameter(
    default: Any,
    doc: str,
    *,
    unit: str = "",
    above: float = -inf,
    at_least: float = -inf,
    below: float = inf,
    at_most: float = inf,
    must_be: str = "",
    of_elements: bool = False,
) -> Any:
    """Declare a parameter, as the default of a field of a `Parameters` class.

    Name, type, choices (`Literal`) and whether None is allowed come from the field's annotation.
    """
    declared = {
        "doc": doc,
        "unit": unit,
        "above": above,
        "at_least": at_least,
        "below": below,
        "at_most": at_most,
        "must_be": must_be,
        "of_elements": of_elements,
    }
    return field(default=default, metadata={"parameter": declared})


@dataclass(frozen=True)
class Parameters:
    """The parameters of a call; each function's class declares them as fields.

    Raises
    ------
    ValueError
        If a value is out of its range.
    """

    FUNCTION: ClassVar[str] = ""
    """The function that declares them."""
    LENGTH_UNIT: ClassVar[str] = "units of x and y"

    caller: str = field(default="", kw_only=True, compare=False, repr=False)
    """The function that is called, where it is another output or a composition."""

    @property
    def function(self) -> str:
        """The name that errors begin with."""
        return self.caller or self.FUNCTION

    def __post_init__(self) -> None:
        for each in parameters_of(type(self)):
            if not each.allows(getattr(self, each.name)):
                self.reject(each.name, each.must)
        self.check()

    def check(self) -> None:
        """Check what depends on several parameters; each class may have more to say."""

    def reject(self, name: str, must: str) -> NoReturn:
        """Raise the error sentence about a parameter's value."""
        value = getattr(self, name)
        got = list(value) if isinstance(value, tuple) else value
        message = f"{self.function}: {name} must be {must}, got {got!r}"
        raise ValueError(message)

    def values(self) -> dict[str, Any]:
        """Give the parameters and their values."""
        return {each.name: getattr(self, each.name) for each in parameters_of(type(self))}


@dataclass(frozen=True, kw_only=True)
class CoordinateParameters(Parameters):
    """What functions of coordinates may be told about them; the last parameters of a function."""

    unit: float | None = parameter(
        None,
        "Metres in one unit of x, y and z, such as 0.3048 for feet; NULL takes that of the CRS, "
        "and 1 where none is known.",
        unit="metres",
        above=0,
    )
    crs: str | None = parameter(
        None,
        "Coordinate reference system of the points, such as 'EPSG:25832'; NULL takes what is known "
        "of the table or file.",
    )

    @property
    def metres(self) -> float:
        """Metres in one unit of x, y and z."""
        return 1.0 if self.unit is None else self.unit


@dataclass(frozen=True, kw_only=True)
class PointParameters(CoordinateParameters):
    """What functions of points may be told about them; the last parameters of a function."""

    bounds: tuple[float, ...] | None = parameter(
        None,
        "xmin, ymin, xmax and ymax, in the unit of x and y: only the points inside or on the "
        "border are considered; NULL takes all.",
        must_be=BOX,
    )

    @property
    def more_columns(self) -> tuple[str, ...]:
        """Columns of numbers that a kernel gets beyond those that its declaration lists."""
        return ()

    def check(self) -> None:
        """Reject bounds that are no box."""
        super().check()
        if self.bounds is not None and not is_box(self.bounds):
            self.reject(BOUNDS, BOX)


def is_box(bounds: Sequence[float]) -> bool:
    """Whether numbers are what `BOX` says, but for NULL."""
    if len(bounds) != 4 or not all(map(isfinite, bounds)):
        return False
    xmin, ymin, xmax, ymax = bounds
    return xmin <= xmax and ymin <= ymax


def parameters_of(declared: type[Any]) -> tuple[Parameter, ...]:
    """List the parameters that a class declares, those of its bases first.

    Those of `PointParameters` and `CoordinateParameters` come last.
    """
    return _read_fields(declared)  # type: ignore[arg-type]  # a class is hashable


@cache
def _read_fields(declared: type[Any]) -> tuple[Parameter, ...]:
    hints = get_type_hints(declared)
    found = []
    for each in (each for each in fields(declared) if "parameter" in each.metadata):
        hint, known = hints[each.name], dict(each.metadata["parameter"])
        is_optional = type(None) in get_args(hint)
        if is_optional:
            (hint,) = (part for part in get_args(hint) if part is not type(None))
        choices = get_args(hint) if get_origin(hint) is Literal else ()
        first = next(iter(get_args(hint)), hint)
        kind = first if isinstance(first, type) else type(first)
        known["unit"] = declared.LENGTH_UNIT if known["unit"] == LENGTH else known["unit"]
        is_list = get_origin(hint) is tuple
        found.append(
            Parameter(each.name, kind, each.default, choices=choices, is_list=is_list,
                      is_optional=is_optional, **known)
        )  # fmt: skip
    last = (BOUNDS, *COORDINATES)
    return tuple(sorted(found, key=lambda each: last.index(each.name) if each.name in last else -1))


def _number(value: float) -> str:
    """Write a limit: 2**63 as that, 1e9 short."""
    if isinstance(value, int) and value >= 1 << 31 and value & (value - 1) == 0:
        return f"2**{value.bit_length() - 1}"
    return str(value) if isinstance(value, int) else f"{value:g}"


@dataclass(frozen=True)
class Boxes:
    """Bounding boxes of the elements of one set, of which a sample is looked at."""

    count: int
    """Elements of the set."""
    sample: Any
    """float64[k, 6]: xmin, ymin, zmin, xmax, ymax, zmax of some elements."""


@dataclass(frozen=True)
class Size:
    """What is known of a call's input before it runs, all of it cheap to find."""

    rows: int
    """Points, cells of a grid, or triangles of all elements."""
    extent: tuple[float, float, float] | None = None
    """Width, depth and height of the bounding box; None where it is not known."""
    sets: tuple[Boxes, ...] = ()
    """The elements: one set, or `a` and `b`."""
    device: Device = "cpu"
    """Whose memory it is in."""

    @property
    def area(self) -> float:
        """Area that points or cells cover, in squares of the unit of x and y."""
        if self.extent is None:
            return self.rows / POINTS_PER_AREA
        width, depth, _ = self.extent
        return width * depth

    @property
    def elements(self) -> int:
        """Number of elements of all sets."""
        if not self.sets:
            return self.rows // TRIANGLES_PER_ELEMENT
        return sum(each.count for each in self.sets)

    @property
    def all_pairs(self) -> float:
        """Number of pairs, of two sets or within one."""
        if len(self.sets) > 1:
            return float(self.sets[0].count) * self.sets[1].count
        return self.elements * max(self.elements - 1, 0) / 2

    def strip(self, tiles: int, halo: float) -> "Size":
        """Give the size of one of so many strips of a cloud of points, its halo included.

        Parameters
        ----------
        tiles : int
            Strips across the longer side, of equally many points.
        halo : float
            What a strip needs on either side, in the unit of x and y.
        """
        width, depth, height = self.extent or (sqrt(self.area), sqrt(self.area), 0.0)
        length = max(width, depth)
        share = min(1.0, 1 / tiles + (2 * halo / length if length > 0 else 0.0))
        rows = ceil(self.rows * share)
        return Size(rows, (length * share, min(width, depth), height), device=self.device)

    def pairs(self, axes: tuple[int, ...] = (0, 1, 2), margin: float = 0.0) -> float:
        """Estimate how many pairs of boxes meet along these axes, or are within a margin.

        The share of the pairs in the samples counts for all; at least every element has one, so
        that few pairs among many, which a sample misses, are not taken for none.
        """
        if not self.sets:
            return float(PAIRS_PER_ELEMENT * self.elements)
        a, b = self.sets[0].sample, self.sets[-1].sample
        met, tested = 0, len(a) * len(b)
        if tested:
            meet: Any = True
            for k in axes:
                meet &= a[:, None, k] <= b[:, k + 3] + margin
                meet &= b[:, k] <= a[:, None, k + 3] + margin
            met = int(meet.sum())
        if len(self.sets) == 1:  # each pair is there twice, and each element with itself
            met, tested = met - len(a), tested - len(a)
        return max(self.all_pairs * met / max(tested, 1), min(self.all_pairs, self.elements))


POINTS_PER_AREA = 10
"""Points in a square metre, where an extent is not known: an airborne survey."""
TRIANGLES_PER_ELEMENT = 50
PAIRS_PER_ELEMENT = 5
"""Of a building model, where its elements are not known."""
TILES_PER_ELEMENT = 2
"""Tiles that an element is in where the pairs of elements are divided into tiles."""


@dataclass(frozen=True)
class Work:
    """How much a call does, on whatever device: the planner turns it into seconds."""

    bytes_in: int
    """Bytes that travel to a device that has memory of its own."""
    bytes_out: int
    """Bytes that travel back."""
    steps: Mapping[str, float]
    """What the loops go over, by name, such as "points" or "cells": how many of each."""
    bytes_kernel: int
    """Device memory that the kernel needs at its peak, input included."""
    bytes_host: int = 0
    """Bytes that the host gathers into new arrays, one tile after the other."""

    def times(self, tiles: int) -> "Work":
        """Count so many tiles of this work, one after the other."""
        steps = {name: tiles * count for name, count in self.steps.items()}
        return replace(
            self, bytes_in=tiles * self.bytes_in, bytes_out=tiles * self.bytes_out, steps=steps
        )

    def of_pairs_in(self, tiles: int) -> "Work":
        """Count the same with the pairs of elements in so many tiles, each with its elements."""
        needed = ceil(TILES_PER_ELEMENT * self.bytes_kernel / tiles)
        copied = TILES_PER_ELEMENT * self.bytes_in
        return replace(self, bytes_in=copied, bytes_kernel=needed, bytes_host=copied)


@dataclass(frozen=True)
class PointsInput:
    """A table of points: the kernel gets `x`, `y`, `z`, `point_id` and the attributes as arrays."""

    attributes: Mapping[str, str] = field(default_factory=dict)
    """Columns of numbers that a table may have or not: column -> SQL type. The kernel gets
    None for a column that is absent, and a masked array where some values are NULL."""

    columns: ClassVar[tuple[str, ...]] = ("x", "y", "z")
    other: ClassVar[str] = ""


@dataclass(frozen=True)
class GridInput:
    """A table of cells `x`, `y`, `z`, or a file: the kernel gets a `spatialq.data.grid.Grid`."""

    columns: ClassVar[tuple[str, ...]] = ("x", "y", "z")
    other: ClassVar[str] = ""


@dataclass(frozen=True)
class ElementsInput:
    """One or two tables of elements: the kernel gets their `Meshes` as `a` and `b`.

    Its result has the columns `a` and `b`, rows of the two; `cpu.run` takes `pairs`, too: the rows
    that a function of two meshes per row asks for.
    """

    mirrored: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    """Of a function that finds the same of (b, a) as of (a, b), to the bit: makes the rows of the
    pairs (b, a) of those of (a, b). Its kernel takes `identities`, too: numbers of the elements of
    a and b, where the two may have elements in common; a pair of one number is no pair."""
    is_symmetric: Callable[[Any], bool] = lambda _: True
    """Whether that holds with these parameters."""
    columns: ClassVar[tuple[str, ...]] = ()
    other: ClassVar[str] = ""


@dataclass(frozen=True)
class PointsAndOtherInput:
    """A table of points and another one: arrays, and what the other one is as an argument."""

    attributes: Mapping[str, str] = field(default_factory=dict)
    """As of `PointsInput`."""
    columns: tuple[str, ...] = ("x", "y", "z")
    """Those of the points that the kernel gets, and a table must have."""
    other: str = "elements"
    """The argument that is the other table, in SQL, in Python and of the kernel."""


@dataclass(frozen=True)
class PointsAndElementsInput(PointsAndOtherInput):
    """A table of points and one of elements: arrays, and `Meshes` as `elements`.

    The result's column `element` has rows of the elements, -1 for none; SQL has it as `global_id`.
    """

    are_placed: bool = True
    """Whether the points must lie where the elements are: a scan that lies elsewhere is told of."""


@dataclass(frozen=True)
class PointsAndTableInput(PointsAndOtherInput):
    """A table of points and one that is of no elements, such as polygons.

    A column of the result that names rows of the other table has their numbers from the kernel; SQL
    puts there what that table has, of whatever type.
    """

    kind: Literal["polygons", "cloud"] = "polygons"
    """What its rows are: of polygons the kernel gets `spatialq.data.polygons.Polygons`, and
    `polygon_id` names them; of a cloud a `spatialq.data.cloud.Cloud`, and `reference_id` does."""


Inputs = PointsInput | GridInput | ElementsInput | PointsAndElementsInput | PointsAndTableInput


@dataclass(frozen=True)
class Output:
    """One table that a function gives."""

    name: str
    """Of the SQL function that gives it."""
    summary: str
    """What it is, for the catalogue, stubs and help: one or a few sentences."""
    columns: Mapping[str, str]
    """Column -> SQL type."""
    work: Callable[[Size, Any], Work]
    """How much a call for an input of this size, with these parameters, does."""
    examples: Sequence[str] = ()
    """In SQL."""
    codes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The names behind a column that the kernel gives as codes 0, 1, 2 ..."""
    heights: Sequence[str] = ()
    """Columns that are given back in the unit of z, where that is not the one of x and y."""
    of_heights: Sequence[str] = ()
    """Columns by which heights are multiplied, such as those of a matrix that moves points."""
    nulls: Mapping[str, int] = field(default_factory=dict)
    """What the kernel gives in a column of integers where there is no value."""
    of_strays: Mapping[str, Any] = field(default_factory=dict)
    """For an output with one row per point, in the order of the input, by `point_id`: what its
    other columns have for stray points. Other outputs have no rows of them."""
    work_in_tiles: Callable[[Size, Any, int], Work] | None = None
    """For a kernel of the GPU that takes `tiles`: how much a call does in so many tiles, one after
    the other; `bytes_kernel` is what the largest needs. None: it runs as a whole only."""
    are_apart: Callable[[Size, Any, int], bool] | None = None
    """Whether no tile needs what another one found, so that several GPUs may share them."""
    windows: Callable[[Any, Any], Any] = lambda *_: None
    """For a function of grids: of a grid and parameters, the `spatialq.data.grid.Windows` that a
    band of a large file must hold whole, and a tile of a job."""


@dataclass(frozen=True)
class Declaration:
    """What a folder of `udfs` declares: `DECLARATION`."""

    inputs: Inputs
    parameters: type[Parameters]
    outputs: tuple[Output, ...]
    """Of several, the kernel gets the wanted names as `outputs` and gives a dict of them."""
    takes_unit: bool = False
    """Whether the kernel converts lengths in metres itself, by `CoordinateParameters.metres`; else
    the lengths of a call are converted to the unit of x and y."""
    finds_unit: bool = False
    """Whether such a kernel finds the unit of x, y and z itself where `unit` is None."""
    is_spatial: bool = True
    """Whether z is compared with x and y: heights in another unit are converted then."""
    keeps_strays: bool = False
    """Whether the kernel gets stray points, which are left out for all others."""
    allows_degrees: bool = False
    """Whether coordinates in degrees are only warned about."""
    cpu_only: Callable[[Any], str] = lambda _: ""
    """Which of the parameters, if any, only the CPU's kernel has, such as "method := 'slow'"."""
    uses: tuple[str, ...] = ()
    """Functions whose kernels this one's are composed of."""
    doubt: str = ""
    """"module:attribute" of what says in a sentence, from the arguments of a call, its options and
    metres in a unit of x and y, why its result may miss much; empty text for no reason."""
