"""Jobs of tiles: a survey of many files, worked on by many processes, that can be resumed.

`run` divides the work into tasks, an executor hands them to workers, and each task writes one part
of the result. The rows that travel between processes are tasks, never points.
"""

from spatialq.cluster.driver import run
from spatialq.cluster.results import jobs, table

__all__ = ["jobs", "run", "table"]
