"""A scan that does not lie where the elements are: its user is told."""

import warnings
from collections.abc import Sequence
from typing import Any

from spatialq.data.meshes import Meshes
from spatialq.errors import PlacementWarning
from spatialq.functions.implementations import call
from spatialq.runtime.callers import level_of_caller


def warn_if_misplaced(name: str, xyz: Sequence[Any], metres: float, elements: Meshes) -> None:
    """Warn of a scan that lies beside the elements.

    Parameters
    ----------
    name : str
        The function that was called.
    xyz : three of float64[n]
        Of the scan.
    metres : float
        In a unit of x, y and z.
    elements : Meshes

    Warns
    -----
    PlacementWarning
    """
    warn_of_placement(name, call("misplaced", *xyz, metres, elements))


def warn_of_placement(name: str, sentence: str) -> None:
    """Warn of what is said of a scan, if anything is."""
    if sentence:
        message = f"{name}: the scan {sentence}"
        warnings.warn(message, PlacementWarning, stacklevel=level_of_caller())
