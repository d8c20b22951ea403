"""What jobs there are in a folder, and the result of one as a table."""

import glob
import json
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.cluster.folder import PARTS, JobFolder, folder_of
from spatialq.cluster.methods import methods
from spatialq.cluster.points import COVERING, GEOMETRY
from spatialq.database.connection import add_object_storage
from spatialq.errors import FileError, FileWarning, JobError
from spatialq.functions.catalogue import divisible
from spatialq.functions.sql_text import identifier, literal
from spatialq.io.storage import ObjectPath, is_named

if TYPE_CHECKING:
    import duckdb

GEO = (GEOMETRY, COVERING)
PARQUET = "parquet"
LISTER, CALLER = "cluster.jobs", "cluster.table"


def jobs(folder: str | Path = ".") -> list[dict[str, Any]]:
    """List the jobs in a folder and in the folders in it.

    Parameters
    ----------
    folder : path

    Returns
    -------
    list of dict
        folder, function, state ('done', 'running', 'unfinished'); stage, such as 'survey' or
        'parts' (None of a job that is done), with done of its tasks; started, when the last run
        began, and active, when it last recorded what is done, both in UTC as ISO 8601; elapsed, the
        seconds of the last run that had something to do; rest, an estimate of those that the stage
        of a running job still takes, from the tasks that this run has done (None before the first);
        parts and points (None before they are known), rows (None before the end); source as it was
        given, of a list the first and how many more, and inputs, how many files these are; options,
        as JSON, those that differ from the defaults.

    Raises
    ------
    FileError
        If there is no such folder, its own manifest is damaged, or files of its own job cannot be
        read.

    Warns
    -----
    FileWarning
        If that is so of a folder in it.
    """
    top = folder_of(LISTER, folder).path
    try:
        if not top.is_dir():
            raise FileError.of(LISTER, top, "there is no such folder")
        if isinstance(top, ObjectPath):
            folders = [top / name for name in top.entries()[1]]
        else:
            folders = [each for each in top.iterdir() if each.is_dir()]
    except OSError as error:
        raise FileError.of(LISTER, top, f"cannot be read: {error.strerror}") from None
    found = []
    for path in (top, *sorted(folders)):
        job = folder_of(LISTER, path)
        try:
            if (manifest := job.manifest()) is not None:
                found.append(_described(job, manifest))
        except FileError as error:
            if path == top:
                raise
            warnings.warn(str(error), FileWarning, stacklevel=2)  # the other jobs are shown
    return found


def _described(job: JobFolder, manifest: dict[str, Any]) -> dict[str, Any]:
    state = manifest["state"]
    if state != "done":
        state = "running" if job.is_held() else "unfinished"
    begun, told, tasks = (manifest[name] for name in ("begun", "told", "tasks"))
    done, now = manifest["done"], time.time() if state == "running" else told
    if state != "done":  # the tasks since the manifest was written
        done += job.lines_behind(manifest["journal"])
    new, rest = done - manifest["resumed"], None
    if state == "running" and new > 0:
        rest = round((tasks - done) * (now - begun) / new, 1)
    return {
        "folder": str(job.path),
        "function": manifest["function"],
        "state": state,
        "stage": None if state == "done" else manifest["state"],
        "done": done,
        "tasks": tasks,
        "started": _utc(manifest["started"]),
        "active": _utc(told),
        "elapsed": round(now - manifest["started"], 1),
        "rest": rest,
        **{name: manifest[name] for name in ("parts", "points", "rows", "inputs")},
        "source": manifest.get("source"),  # older versions did not record it
        "options": json.dumps(_chosen(manifest)),
    }


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _chosen(manifest: dict[str, Any]) -> dict[str, Any]:
    """Give the options of a job that differ from the defaults, `tile_size` and the like too."""
    method = methods().get(manifest["function"])
    if method is None:  # of another version
        return dict(manifest["options"])
    defaults = {"tile_size": None, "part_format": method.formats[0], **method.more}
    defaults |= {each.name: each.default for each in divisible()[method.function].parameters}
    defaults = json.loads(json.dumps(defaults))  # lists where there were tuples, as in a manifest
    there = manifest["options"] | {
        name: manifest.get(name, defaults[name]) for name in ("tile_size", "part_format")
    }
    return {name: value for name, value in there.items() if value != defaults.get(name)}


def table(
    con: "duckdb.DuckDBPyConnection", folder: str | Path, name: str | None = None
) -> "duckdb.DuckDBPyRelation":
    """Give the result of a job as one table over its parts.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    folder : path
        Of a job that is done.
    name : str, optional
        Of a view that is made for it, in the place of one that is there.

    Returns
    -------
    duckdb.DuckDBPyRelation
        In no order.

    Raises
    ------
    FileError
        If there is no job in the folder.
    JobError
        If it is not done, or its parts are other files than Parquet.
    """
    job, manifest = _done_job(folder)
    if isinstance(job.path, ObjectPath):
        add_object_storage(con)
    query = _query(job, manifest)
    if name is not None:
        con.execute(f"CREATE OR REPLACE VIEW {identifier(name)} AS {query}")
    return con.sql(query)


def query_of(folder: str | Path) -> str:
    """Write the query that gives the rows of a job, see `table`.

    Raises
    ------
    FileError, JobError
        As `table`; and if the parts are in object storage, which connections cannot read here.
    """
    job, manifest = _done_job(folder)
    if isinstance(job.path, ObjectPath) and manifest["parts"] and not is_named():
        message = (
            f"{CALLER}: the parts of the job in '{job.path}' are in object storage, which SQL "
            "reads with fsspec (pip install 'spatialq[s3]') and in connections opened with "
            "AWS_REGION in the environment: or use spatialq.cluster.table in Python"
        )
        raise JobError(message)
    return _query(job, manifest)


def _query(job: JobFolder, manifest: dict[str, Any]) -> str:
    if manifest["parts"] == 0:
        columns = divisible()[manifest["function"]].output.columns
        nothing = ", ".join(f"NULL::{kind} AS {each}" for each, kind in columns.items())
        return f"SELECT {nothing} WHERE false"
    place = job.place(PARTS)
    parts = f"{glob.escape(str(place.resolve()))}/*.parquet"
    others = ", ".join(map(literal, _besides(manifest)))
    return f"SELECT COLUMNS(lambda c: c NOT IN ({others})) FROM read_parquet({literal(parts)})"


def _done_job(folder: str | Path) -> tuple[JobFolder, dict[str, Any]]:
    """Give a job that is done and whose parts are Parquet, and its manifest."""
    job = folder_of(CALLER, folder)
    manifest = job.manifest()
    if manifest is None:
        raise FileError.of(CALLER, folder, "there is no job in this folder")
    if manifest["function"] not in methods():
        message = (
            f"{CALLER}: the job in '{folder}' is of {manifest['function']!r}, which this version "
            "of spatialq does not have"
        )
        raise JobError(message)
    if manifest["state"] != "done":
        message = f"{CALLER}: the job in '{folder}' is not done: resume it"
        raise JobError(message)
    if (kind := manifest.get("part_format", PARQUET)) != PARQUET:
        message = (
            f"{CALLER}: the parts of the job in '{folder}' are {kind} files, no rows: read them as "
            f"any others, '{folder}/parts/*.{kind}'"
        )
        raise JobError(message)
    return job, manifest


def _besides(manifest: dict[str, Any]) -> list[str]:
    """Name the columns of GeoParquet that parts have beside those of the function."""
    columns = divisible()[manifest["function"]].output.columns
    return [name for name in GEO if name not in columns]
