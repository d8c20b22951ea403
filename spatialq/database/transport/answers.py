"""Who answers a request, by what the function is a function of."""

from collections.abc import Iterator, Sequence
from importlib import import_module

import pyarrow as pa

from spatialq.database.transport.arrow import Columns
from spatialq.database.transport.request import Request
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import (
    ElementsInput,
    GridInput,
    PointsAndElementsInput,
    PointsAndTableInput,
    PointsInput,
)

MODULES = {
    PointsInput: "points",
    GridInput: "grid",
    ElementsInput: "elements",
    PointsAndElementsInput: "points_and_other",
    PointsAndTableInput: "points_and_other",
}
"""Modules beside this one; each is imported when it is needed, since some import readers."""


def answers(
    function: Function, request: Request, parts: Sequence[Columns]
) -> Iterator[pa.StructArray]:
    """Run the kernel and give its result as Arrow arrays of structs, for the extension.

    Parameters
    ----------
    function : Function
    request : Request
    parts : sequence of mapping of str to Arrow array
        The columns of the tables that the function gets.
    """
    module = import_module(f"spatialq.database.transport.{MODULES[type(function.inputs)]}")
    yield from module.answers(function, request, parts, transport="native")
