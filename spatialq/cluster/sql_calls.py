"""Jobs in SQL: arguments checked as Python checks them."""

import json
from datetime import datetime
from typing import Any

from spatialq.cluster.driver import run
from spatialq.cluster.error_names import called
from spatialq.cluster.methods import methods
from spatialq.cluster.results import jobs, query_of
from spatialq.functions.catalogue import divisible
from spatialq.io import access

RUN, LIST, TABLE = "cluster_run", "cluster_jobs", "cluster_table"
NEEDED = ("executor", "resume", "device")


def run_job(
    function: str | None, path: str | None, folder: str | None, options: str
) -> list[dict[str, Any]]:
    """Run a job.

    Parameters
    ----------
    function : str
    path : str
        Or a list of them, as JSON.
    folder : str
    options : str
        JSON of the other arguments, of which `options` has the parameters of the function.

    Raises
    ------
    ValueError
        If an argument is NULL that must have a value, or is of a wrong type, or the connection is
        read-only.
    """
    access.require_writing(RUN)
    source: Any = None if path is None else json.loads(path)
    given = json.loads(options)
    chosen = _chosen(function, given.pop("options"))
    named: dict[str, Any] = {"function": function, "path": source, "folder": folder}
    for name, value in (named | {each: given[each] for each in NEEDED}).items():
        if value is None:
            message = f"{RUN}: {name} must not be NULL"
            raise ValueError(message)
    with called(RUN):
        return [run(*named.values(), **given, **chosen)]


def _chosen(function: str | None, options: Any) -> dict[str, Any]:
    """Check that options are some that the function has as a job."""
    if options is None:
        return {}
    if not isinstance(options, dict):
        message = (
            f"{RUN}: options must be a struct of parameters of the function, such as "
            f"{{'window_size': 10.0}}, got {str(options)[:80]!r}"
        )
        raise ValueError(message)
    method = methods().get(function or "")
    if method is not None:
        known = {*(each.name for each in divisible()[method.function].parameters), *method.more}
        for name in options.keys() - known:
            message = f"{RUN}: options must be parameters of {function}, which has no '{name}'"
            raise ValueError(message)
    return options


def jobs_table(folder: str | None) -> list[dict[str, Any]]:
    """List the jobs in a folder and in the folders in it; times are in UTC.

    Raises
    ------
    ValueError
        If a folder is NULL.
    """
    with called(LIST):
        rows = jobs(_required(LIST, folder))
    for row in rows:
        row |= {name: datetime.fromisoformat(row[name]) for name in ("started", "active")}
    return rows


def table_sql(folder: str | None) -> str:
    """Write the query of the rows of the job in a folder.

    Raises
    ------
    ValueError
        If a folder is NULL.
    """
    with called(TABLE):
        return query_of(_required(TABLE, folder))


def _required(function: str, folder: str | None) -> str:
    if folder is None:
        message = f"{function}: folder must not be NULL"
        raise ValueError(message)
    return folder
