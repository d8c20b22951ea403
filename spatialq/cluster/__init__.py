"""Jobs of tiles: a survey of many files, worked on by many processes, that can be resumed.

`run` divides the work into tasks, an executor hands them to workers, and each task writes one part
of the result. The rows that travel between processes are tasks, never points.

Names of this package are imported when they are first used. Workers import it, too, and the driver
with all methods and DuckDB, which they do not need, would take most of their start.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spatialq.cluster.driver import run
    from spatialq.cluster.results import jobs, table

__all__ = ["jobs", "run", "table"]

LAZY = {
    "jobs": "spatialq.cluster.results",
    "run": "spatialq.cluster.driver",
    "table": "spatialq.cluster.results",
}


def __getattr__(name: str) -> Any:
    if name in LAZY:
        return getattr(import_module(LAZY[name]), name)
    message = f"module 'spatialq.cluster' has no attribute '{name}'"
    raise AttributeError(message)
