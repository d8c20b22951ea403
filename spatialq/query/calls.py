"""Which kernels the steps of a query call, and on which rows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from spatialq.functions.catalogue import Function, catalogue
from spatialq.functions.declaration import PointsInput
from spatialq.functions.generator import macros_of
from spatialq.query.steps import Quoted, Step, Table, in_order

CALL = re.compile(r"(\w+)\($")
"""What stands before the first table that a function takes."""
DEVICE = re.compile(r"device := '([\w:]+)'")


@dataclass(frozen=True)
class Call:
    """A function's kernel that a step calls."""

    macro: str
    """As it stands in the SQL."""
    function: Function
    rows: Step | Table
    """What it takes first."""
    kind: str
    """Of what these rows are, such as 'Points'."""
    device: str
    """'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'."""

    @property
    def is_of_points(self) -> bool:
        """Whether pinned columns serve it."""
        return isinstance(self.function.inputs, PointsInput)


def calls(last: Step | Table) -> Iterator[Call]:
    """List the kernels that run for the rows of a step, in the order of its statement."""
    for step in in_order(last):
        if not isinstance(step, Step):
            continue
        pieces = step.source.pieces
        for k, piece in enumerate(pieces[1:], start=1):
            before = pieces[k - 1]
            found = CALL.search(before) if isinstance(before, str) else None
            if found and isinstance(piece, Quoted) and found[1] in _kernels():
                function, kind = _kernels()[found[1]]
                behind = "".join(each for each in pieces[k:] if isinstance(each, str))
                chosen = DEVICE.search(behind.partition(")")[0])
                device = chosen[1] if chosen else "auto"
                yield Call(found[1], function, piece.step, kind, device)


@cache
def _kernels() -> dict[str, tuple[Function, str]]:
    """Say which function's kernel each table macro calls, and what the rows are that it takes."""
    kernels = {}
    for function in catalogue().values():
        for macro in macros_of(function.folder):
            if macro.is_table:
                called = catalogue().get(macro.name, function)
                kernels[macro.name] = called, macro.arguments[0].rows
    return kernels
