"""Jobs in SQL: rows of arguments, checked as Python checks them."""

import json
from datetime import datetime
from itertools import chain
from typing import Any

import pyarrow as pa

from spatialq.cluster.driver import run
from spatialq.cluster.error_names import called
from spatialq.cluster.methods import methods
from spatialq.cluster.results import jobs, query_of
from spatialq.data.arrow import arrow_fields
from spatialq.database.sql_functions import JOB, JOBS
from spatialq.functions.catalogue import divisible
from spatialq.io import access

RUN, LIST, TABLE = "cluster_run", "cluster_jobs", "cluster_table"
NEEDED = ("executor", "resume", "device")


def run_jobs(functions: Any, paths: Any, folders: Any, options: Any) -> pa.Array:
    """Run the job of each row.

    Parameters
    ----------
    functions, paths, folders, options : Arrow array
        Names of functions, paths and lists of them as JSON, folders, and JSON of the other
        arguments, of which `options` has the parameters of the function.

    Raises
    ------
    ValueError
        If an argument is NULL that must have a value, or is of a wrong type, or the connection is
        read-only.
    """
    access.require_writing(RUN)
    columns = (each.to_pylist() for each in (functions, paths, folders, options))
    rows = []
    for function, path, folder, text in zip(*columns, strict=True):
        source: Any = None if path is None else json.loads(path)
        given = json.loads(text)
        chosen = _chosen(function, given.pop("options"))
        named = {"function": function, "path": source, "folder": folder}
        for name, value in (named | {each: given[each] for each in NEEDED}).items():
            if value is None:
                message = f"{RUN}: {name} must not be NULL"
                raise ValueError(message)
        with called(RUN):
            rows.append([run(function, source, folder, **given, **chosen)])
    return pa.array(rows, pa.list_(pa.struct(arrow_fields(JOB))))


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


def jobs_table(folders: Any) -> pa.Array:
    """List the jobs in each folder and in the folders in it; times are in UTC.

    Raises
    ------
    ValueError
        If a folder is NULL.
    """
    with called(LIST):
        tables = [jobs(_required(LIST, folder)) for folder in folders.to_pylist()]
    for row in chain.from_iterable(tables):
        row |= {name: datetime.fromisoformat(row[name]) for name in ("started", "active")}
    return pa.array(tables, pa.list_(pa.struct(arrow_fields(JOBS))))


def table_sql(folders: Any) -> pa.Array:
    """Write the query of the rows of the job in each folder.

    Raises
    ------
    ValueError
        If a folder is NULL.
    """
    with called(TABLE):
        return pa.array([query_of(_required(TABLE, folder)) for folder in folders.to_pylist()])


def _required(function: str, folder: str | None) -> str:
    if folder is None:
        message = f"{function}: folder must not be NULL"
        raise ValueError(message)
    return folder
