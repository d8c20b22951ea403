"""Jobs of tiles: a survey of many files, worked on by many processes, that can be resumed.

`run` divides the work into tasks, an executor hands them to workers, and each task writes one part
of the result. The rows that travel between processes are tasks, never points.

A worker imports this package, but what its tasks need alone: the driver with all methods and
DuckDB would take most of the time in which it starts.
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
