"""What nodes of levels of detail can be written to besides a table, found by the name of the file.

A writer gets the nodes some at a time, children before their parents or after them.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spatialq.io.source import Box


@dataclass(frozen=True)
class Cloud:
    """What is known of a cloud before its first node.

    Attributes
    ----------
    function : str
        The function that was called, for messages.
    points : int
    box : Box
        xmin, ymin, zmin, xmax, ymax, zmax.
    crs : str, optional
        PROJJSON; heights have the unit of x and y.
    metres : float, optional
        In a unit of a cloud without a CRS.
    brightest : int
        Greatest red, green or blue of all points.
    """

    function: str
    points: int
    box: "Box"
    crs: str | None
    metres: float | None
    brightest: int


NodeWriter = Callable[[Mapping[str, Any]], None]
"""Writes nodes: arrays by column name."""
Writer = Callable[[Path, Cloud], AbstractContextManager[NodeWriter]]

WRITERS = {"tileset.json": "spatialq.export.tiles.points"}
"""Modules by the end of the file's name: each has `write_nodes`, a `Writer`, and `require_target`,
which rejects a path that cannot be written."""


def is_written_by_nodes(path: Path) -> bool:
    """Whether a file is one of these by its name."""
    return _ending(path) is not None


def writer_of(path: Path) -> Writer:
    """Give the writer of a file of such a name."""
    writer: Writer = _module(path).write_nodes
    return writer


def require_target(path: Path) -> None:
    """Reject a file that cannot be written, before work is done for it.

    Raises
    ------
    FileError
        If its folder cannot be written to, or something else is there.
    """
    _module(path).require_target(path)


def _ending(path: Path) -> str | None:
    return next((each for each in WRITERS if path.name.lower().endswith(each)), None)


def _module(path: Path) -> Any:
    return import_module(WRITERS[str(_ending(path))])
