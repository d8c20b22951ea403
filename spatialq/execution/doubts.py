"""A call whose result may miss much: its user is told."""

import warnings
from collections.abc import Mapping
from typing import Any

from spatialq.errors import SparsePointsWarning
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Parameters
from spatialq.functions.implementations import call
from spatialq.runtime.callers import level_of_caller


def warn_of_doubt(
    function: Function, arguments: Mapping[str, Any], options: Parameters, metres: float
) -> None:
    """Warn with the sentence that the `doubt` of a declaration gives for the arguments, if any.

    Parameters
    ----------
    function : Function
    arguments
        As its kernel gets them, without stray points.
    options : Parameters
    metres : float
        In a unit of x and y.

    Warns
    -----
    SparsePointsWarning
    """
    warn_of(function.name, call(function.declaration.doubt, arguments, options, metres))


def warn_of(function: str, sentence: str) -> None:
    """Warn of what is said of a function's result, if anything.

    Warns
    -----
    SparsePointsWarning
    """
    if sentence:
        message = f"{function}: {sentence}"
        warnings.warn(message, SparsePointsWarning, stacklevel=level_of_caller())
