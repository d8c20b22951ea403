"""Coordinate reference systems: kept as PROJJSON text, compared before data are combined."""

import json
import math
import os
import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

from spatialq.data.units import METRES
from spatialq.errors import CrsError
from spatialq.runtime.threads import Pool

P = ParamSpec("P")
R = TypeVar("R")
SAME_UNIT = 1e-5
"""Relative: survey feet and international feet count as one unit."""
NAMES_FILE = re.compile(
    r"\b(?:init|\w*grids|(?P<of_proj>file|model|catalog))\s*=\s*"
    r"(?P<file>[\"'].*?(?=\s\+|$)|[^\s\"'\]]*)",
    re.IGNORECASE | re.DOTALL,
)
"""A parameter of PROJ that is a file or a list of files; in quotes it may go up to the next one."""


@cache
def _proj_thread(process: int) -> Pool:  # one a process: a fork has no threads
    del process
    return Pool(1, thread_name_prefix="spatialq-proj")


def in_proj_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function run in the one thread that uses pyproj.

    pyproj keeps a context for each Python thread. A thread of DuckDB becomes a Python thread
    anew with each call of a function, and what pyproj kept of the last one crashes the process.
    """

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return _proj_thread(os.getpid()).submit(function, *args, **kwargs).result()

    return wrapper


@lru_cache(maxsize=256)
@in_proj_thread
def from_text(text: str) -> str:
    """Turn WKT1, WKT2, PROJJSON or a code such as ``EPSG:25832`` into PROJJSON.

    Raises
    ------
    CrsError
        If PROJ cannot read it, or it names a file by a path.
    """
    import pyproj

    require_no_file(text)
    try:
        found = str(pyproj.CRS.from_user_input(text).to_json())
    except pyproj.exceptions.CRSError as error:
        message = f"PROJ cannot read the coordinate reference system '{text[:80]}': {error}"
        raise CrsError(message) from error
    require_no_file(found)
    return found


def require_no_file(text: str) -> None:
    """Reject a CRS with which PROJ would open a file that is none of its own: a grid, for example.

    Parameters
    ----------
    text : str
        Of any kind; of one that is no JSON only the parameters of PROJ are looked at.

    Raises
    ------
    CrsError
        If there is a path or a URL of a file in it.
    """
    named = files_named(text)
    if text.lstrip().startswith("{"):
        named += _files(_json_or_none(text))
    if named:
        message = (
            f"the coordinate reference system '{text[:80]}' names the file '{named[0]}': only "
            "those in the folders of PROJ can be used, by a name without a folder"
        )
        raise CrsError(message)


def files_named(text: str) -> list[str]:
    """Give the files with a folder, and URLs, that parameters of PROJ in a text name."""
    is_of_proj = "proj=" in text.lower()
    return [
        found["file"].strip("\"'")
        for found in NAMES_FILE.finditer(text)
        if re.search(r"[/\\]", found["file"]) and (is_of_proj or not found["of_proj"])
    ]


def _json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None  # PROJ has the words for what is wrong


def _files(found: Any) -> list[str]:
    """Give the values of parameters that are texts with a folder: names of grids in PROJJSON."""
    parts = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    value = found.get("value") if isinstance(found, dict) else None
    own = [value] if isinstance(value, str) and re.search(r"[/\\]", value) else []
    return own + [each for part in parts for each in _files(part)]


def is_readable(text: str) -> bool:
    """Whether PROJ can read a CRS."""
    try:
        from_text(text)
    except CrsError:
        return False
    return True


def from_argument(function: str, crs: object, argument: str = "crs") -> str:
    """Turn the argument `crs` of a function, or another one, into PROJJSON, as `from_text` does.

    Raises
    ------
    ValueError
        If it is no text.
    CrsError
        If PROJ cannot read it.
    """
    if not isinstance(crs, str):
        got = "NULL" if crs is None else repr(crs)
        message = f"{function}: {argument} must be text such as EPSG:25832, got {got}"
        raise ValueError(message)
    try:
        return from_text(crs)
    except CrsError as error:
        message = f"{function}: {argument}: {error}"
        raise CrsError(message) from error


@in_proj_thread
def compact(crs: str | None) -> Any:
    """Write a CRS as short as JSON has it: a code where that means the same, else PROJJSON.

    A compound one is ``EPSG:25832+7837``. `from_text` reads the code, or the text of the object.
    """
    import pyproj

    if crs is None:
        return None
    system = pyproj.CRS.from_json(crs)
    parts = [part.to_authority() for part in system.sub_crs_list] or [system.to_authority()]
    authorities = {part[0] for part in parts if part}
    if None not in parts and len(authorities) == 1:
        code = f"{authorities.pop()}:{'+'.join(part[1] for part in parts)}"
        if pyproj.CRS.from_user_input(code).equals(system):
            return code
    return json.loads(crs)


@in_proj_thread
def to_wkt(crs: str) -> str:
    """Give the WKT2:2019 of a PROJJSON text."""
    import pyproj

    return str(pyproj.CRS.from_json(crs).to_wkt())


@in_proj_thread
def to_wkt1(crs: str) -> str | None:
    """Give the WKT1 of a PROJJSON text, as LAS up to 1.4 has it; None where WKT1 cannot say it."""
    import pyproj

    try:
        return str(pyproj.CRS.from_json(crs).to_wkt("WKT1_GDAL"))
    except pyproj.exceptions.CRSError:
        return None


def name(crs: str | None) -> str:
    """Name a CRS for people: its authority code where it has one, else its own name."""
    if crs is None:
        return "no CRS"
    fields = json.loads(crs)
    code = fields.get("id")
    title = str(fields.get("name", "unnamed CRS"))
    return f"{title} ({code['authority']}:{code['code']})" if code else title


def unit_name(crs: str | None, *, of_heights: bool = False) -> str | None:
    """Name the unit of x and y, or that of heights, for people.

    None where x and y are no map coordinates, or the unit is not known.
    """
    units = None if crs is None else metres_per_unit(crs)
    if units is None:
        return None
    names = {**METRES, "km": 1000.0}.items()
    return next((each for each, metres in names if math.isclose(metres, units[of_heights])), None)


@lru_cache(maxsize=256)
def same(first: str | None, second: str | None) -> bool:
    """Whether two CRS mean the same coordinates; an unknown one is the same only as unknown."""
    if first is None or second is None:
        return first is second
    return first == second or _equal(first, second)


@in_proj_thread
def _equal(first: str, second: str) -> bool:
    import pyproj

    return bool(pyproj.CRS.from_json(first).equals(pyproj.CRS.from_json(second)))


@lru_cache(maxsize=256)
@in_proj_thread
def metres_per_unit(crs: str) -> tuple[float, float] | None:
    """Metres in a unit of x and y, and in one of z; None where x and y are no map coordinates.

    A CRS without a vertical axis has heights in the units of x and y.
    """
    import pyproj

    system = pyproj.CRS.from_json(crs)
    if system.is_geographic or system.is_geocentric or not system.axis_info:
        return None
    across, *_, up = system.axis_info
    factors = across.unit_conversion_factor, up.unit_conversion_factor
    return factors[0], factors[1] if up.direction == "up" else factors[0]


@lru_cache(maxsize=256)
@in_proj_thread
def horizontal(crs: str) -> str:
    """Give the part of a CRS that is about x and y, without heights.

    Parameters
    ----------
    crs : str
        PROJJSON.
    """
    import pyproj

    system = pyproj.CRS.from_json(crs)
    return str((system.sub_crs_list or [system])[0].to_2d().to_json())


def require_one_plane(
    caller: str,
    first: tuple[str, str | None],
    second: tuple[str, str | None],
    *,
    with_heights: bool = False,
) -> None:
    """Reject x and y in two coordinate reference systems.

    Parameters
    ----------
    caller : str
        Whose error it is.
    first, second : tuple
        What is in a CRS, with its verb, such as "polygons are", and the CRS as any text that
        `from_text` reads; one that is not known, None, goes with any.
    with_heights : bool
        Whether heights must be in one unit, too.

    Raises
    ------
    CrsError
        If they differ.
    """
    (one, of_one), (other, of_other) = first, second
    if of_one is None or of_other is None:
        return
    systems = [from_text(each) for each in (of_one, of_other)]
    flat = [horizontal(each) for each in systems]
    ours, theirs = systems if with_heights else flat
    is_one_unit = not with_heights or metres_per_unit(ours) == metres_per_unit(theirs)
    if not (same(*flat) and is_one_unit):
        message = (
            f"{caller}: {one} in {name(ours)} but {other} in {name(theirs)}; reproject one of them "
            "first"
        )
        raise CrsError(message)


def given_or_own(
    function: str, sources: Iterable[tuple[object, str | None]], crs: object, *, override: bool
) -> str | None:
    """Return the one CRS of several named sources: the argument `crs`, or what they say themselves.

    Parameters
    ----------
    function : str
    sources : iterable of (object, PROJJSON or None)
    crs : str, optional
        The argument, for sources that name none; as for `from_text`.
    override : bool
        Whether it also counts for sources that name another one: the argument `override_crs`.

    Raises
    ------
    CrsError
        If two sources differ, a source names another one than the argument and is not overridden,
        or PROJ cannot read the argument.
    ValueError
        If the argument is no text, or there is none that could override another.
    """
    if crs is None:
        if override:
            message = f"{function}: override_crs needs crs, which is what it puts in their place"
            raise ValueError(message)
        return require_same(function, sources)
    given = from_argument(function, crs)
    for source, own in sources:
        if own is not None and not override and not same(own, given):
            message = (
                f"{function}: '{source}' is in {name(own)}, but crs is {name(given)}: leave crs "
                "out, or give override_crs as well if the file is wrong"
            )
            raise CrsError(message)
    return given


def has_two_units(crs: str) -> bool:
    """Whether heights have another unit than x and y."""
    units = metres_per_unit(crs)
    return units is not None and not math.isclose(*units, rel_tol=SAME_UNIT)


def with_one_unit(crs: str) -> str:
    """Give a CRS whose heights have the unit of x and y; others come back unchanged.

    It is for coordinates whose heights were converted. The vertical axis gets the unit of x and y;
    the system then has no code, since no authority knows it.

    Parameters
    ----------
    crs : str
        PROJJSON.
    """
    if not has_two_units(crs):
        return crs
    system = json.loads(crs)
    parts = [_unbound(part) for part in system.get("components", [_unbound(system)])]
    unit = parts[0]["coordinate_system"]["axis"][0]["unit"]
    up = parts[-1]
    up["coordinate_system"]["axis"][-1]["unit"] = unit
    suffix = f" ({unit if isinstance(unit, str) else unit['name']})"
    for changed in [up] if up is system else [up, system]:
        changed.pop("id", None)
        changed["name"] += suffix
    return json.dumps(system)


def _unbound(system: dict[str, Any]) -> dict[str, Any]:
    """Give the system that has the axes: of one with a transformation, what it is based on."""
    return _unbound(system["source_crs"]) if system["type"] == "BoundCRS" else system


def require_same(function: str, sources: Iterable[tuple[object, str | None]]) -> str | None:
    """Return the one CRS of several named sources.

    Raises
    ------
    CrsError
        If two differ: the sentence names both sources and both systems.
    """
    first: tuple[object, str | None] | None = None
    for source, crs in sources:
        if first is None:
            first = (source, crs)
        elif not same(first[1], crs):
            message = (
                f"{function}: '{first[0]}' is in {name(first[1])} but '{source}' is in "
                f"{name(crs)}; reproject one of them first"
            )
            raise CrsError(message)
    return first[1] if first else None
