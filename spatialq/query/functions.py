"""The kinds of rows, with a method for each function that takes such rows.

The methods are made of the declarations; `functions.pyi`, which is generated, tells editors and
type checkers the same.
"""

from collections.abc import Callable, Sequence  # noqa: F401  # annotations of methods name these
from typing import Any, Literal, Self  # noqa: F401

from spatialq.functions.generator import table_macros
from spatialq.functions.methods import COLUMNS, Method, methods
from spatialq.query.verbs import (
    ElementVerbs,
    GridVerbs,
    NodeVerbs,
    ObjectVerbs,
    PairVerbs,
    PointVerbs,
    Query,
)


class Points(PointVerbs):
    """Points of a cloud."""

    KIND = "points"
    NEEDS = COLUMNS["Points"]


class Elements(ElementVerbs):
    """Elements of building models."""

    KIND = "elements"
    NEEDS = COLUMNS["Elements"]


class Objects(ObjectVerbs):
    """Objects of building models, with or without geometry."""

    KIND = "objects"
    NEEDS = COLUMNS["Objects"]


class Pairs(PairVerbs[Elements]):
    """Pairs of elements, by GlobalIds."""

    KIND = "pairs"
    NEEDS = COLUMNS["Pairs"]


class Nodes(NodeVerbs):
    """Nodes of a tree of a cloud."""

    KIND = "nodes"
    NEEDS = COLUMNS["Nodes"]


class Grid(GridVerbs):
    """Cells of a terrain grid."""

    KIND = "cells"
    NEEDS = COLUMNS["Grid"]


def _bound(kind: type[Query], method: Method) -> Callable[..., Query]:
    """Make the function that is the method of a class."""

    def call(self: Any, /, *given: Any, **named: Any) -> Query:
        return self._called(method, given, named)

    call.__name__, call.__doc__ = method.name, method.doc
    call.__qualname__ = f"{kind.__qualname__}.{method.name}"
    call.__signature__, call.__annotations__ = method.signature, method.annotations
    return call


def _bind() -> None:
    """Give each class its methods."""
    kinds = {each.__name__: each for each in Query.KINDS}
    for method in methods(table_macros()):
        kind = kinds[method.kind]
        setattr(kind, method.name, _bound(kind, method))


_bind()
