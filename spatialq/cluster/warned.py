"""Warnings of tasks: of many that differ only in the names they quote, the first ones are shown."""

import inspect
import re
import warnings

from spatialq import errors

SHOWN = 3
"""Warnings of a kind that are shown one by one."""
OURS = ("spatialq", "contextlib")
"""Packages whose frames are between the line of a user and a warning."""
QUOTED = re.compile(r"'[^']*'")


class Warned:
    """The warnings of a job, counted by what they say but for names such as those of files."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def tell(self, category: str, text: str) -> None:
        """Show a warning, if it is one of the first of its kind."""
        key = category, QUOTED.sub("'...'", text)
        self._counts[key] = count = self._counts.get(key, 0) + 1
        if count <= SHOWN:
            warnings.warn(text, _kind(category), stacklevel=level_of_caller())

    def end(self) -> None:
        """Say how many more there were of each kind."""
        for (category, text), count in self._counts.items():
            if count > SHOWN:
                more = f"and {count - SHOWN} more of this kind: {text}"
                warnings.warn(more, _kind(category), stacklevel=level_of_caller())
        self._counts.clear()


def level_of_caller() -> int:
    """Give the `stacklevel` with which a warning of the calling function names the user's line."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals["__name__"].partition(".")[0] in OURS:
        frame, level = frame.f_back, level + 1
    return level


def _kind(category: str) -> type[Warning]:
    found = getattr(errors, category, UserWarning)
    return found if issubclass(found, Warning) else UserWarning
