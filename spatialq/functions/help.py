"""Help on a function in Python, from its declaration."""

import textwrap

from spatialq.functions.catalogue import find
from spatialq.functions.declaration import (
    ElementsInput,
    GridInput,
    PointsAndOtherInput,
    PointsInput,
)
from spatialq.functions.macros import description
from spatialq.functions.stubs import annotation


def describe(function: str) -> str:
    """Describe a spatial function: its call in Python, its parameters and its result.

    Parameters
    ----------
    function : str
        Such as 'owm_ground'.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If there is no such function; the message names the nearest ones.

    Examples
    --------
    >>> print(spatialq.describe("owm_ground"))  # doctest: +SKIP
    """
    found = find("describe", function)
    given = [f"{each.name}={each.default!r}" for each in found.parameters]
    match found.inputs:
        case ElementsInput():
            caller, arguments = "run_elements", ["a", "b=None"]
        case GridInput():
            caller, arguments = "run_grid", ["z", "dx=..."]
        case PointsAndOtherInput(attributes=attributes, other=other):
            more = (f"{name}=None" for name in attributes)
            caller, arguments = "run", ["x", "y", "z", f"{other}=...", *more]
        case PointsInput(attributes=attributes):
            caller, arguments = "run", ["x", "y", "z", *(f"{name}=None" for name in attributes)]
    call = ", ".join([f'"{function}"', *arguments, *given, 'device="auto"', "memory=None"])
    indent = " " * len(f"spatialq.{caller}(")
    lines = textwrap.wrap(f"spatialq.{caller}({call})", 88, subsequent_indent=indent)
    lines += ["", *textwrap.wrap(found.output.summary, 88), "", "Parameters", "----------"]
    for each in found.parameters:
        lines.append(f"{each.name} : {annotation(each)}")
        lines += textwrap.wrap(
            description(each), 88, initial_indent="    ", subsequent_indent="    "
        )
    lines += ["", "Returns", "-------"]
    lines += [f"{name} : {kind}" for name, kind in found.output.columns.items()]
    return "\n".join(lines)
