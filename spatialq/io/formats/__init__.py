"""The formats that can be read, a module each."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Reader:
    """A format and how to open a file of it."""

    name: str
    suffixes: tuple[str, ...]
    kind: Literal["points", "grid", "ifc"]
    open: Callable[[Path], Any]
    skips: str
    keeps: str
    loses: str
    extra: str = ""
