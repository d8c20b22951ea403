"""The line of the user's code that called spatialq, which a warning names."""

import inspect

OURS = ("spatialq", "contextlib")
"""Packages whose frames are between the line of a user and a warning."""


def level_of_caller() -> int:
    """Give the `stacklevel` with which a warning of the calling function names the user's line."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals["__name__"].partition(".")[0] in OURS:
        frame, level = frame.f_back, level + 1
    return level
