"""Warnings of tasks: of those that differ only in the names they quote, the first few are shown."""

import re
import warnings

from spatialq import errors
from spatialq.runtime.callers import level_of_caller

SHOWN = 3
"""Warnings of a kind that are shown one by one."""
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


def _kind(category: str) -> type[Warning]:
    found = getattr(errors, category, UserWarning)
    return found if issubclass(found, Warning) else UserWarning
