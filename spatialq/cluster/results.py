"""What jobs there are in a folder, and the result of one as a table."""

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.cluster.folder import PARTS, JobFolder
from spatialq.errors import FileError, JobError
from spatialq.functions.catalogue import catalogue
from spatialq.functions.sql_text import identifier, literal

if TYPE_CHECKING:
    import duckdb

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
        folder, function, state ('done', 'running', 'unfinished'), done and parts (None before they
        are known), points, rows (None before the end), inputs.

    Raises
    ------
    FileError
        If there is no such folder, or a manifest is damaged.
    """
    top = Path(folder)
    if not top.is_dir():
        raise FileError.of(LISTER, top, "there is no such folder")
    found = []
    for path in (top, *sorted(each for each in top.iterdir() if each.is_dir())):
        job = JobFolder(path)
        manifest = job.manifest()
        if manifest is not None:
            found.append(_described(job, manifest))
    return found


def _described(job: JobFolder, manifest: dict[str, Any]) -> dict[str, Any]:
    state = manifest["state"]
    if state != "done":
        state = "running" if job.is_held() else "unfinished"
    parts = {done.name for done in job.journal() if done.stage == PARTS}
    return {
        "folder": str(job.path),
        "function": manifest["function"],
        "state": state,
        "done": len(parts),
        **{name: manifest[name] for name in ("parts", "points", "rows", "inputs")},
    }


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
    job = JobFolder(Path(folder))
    manifest = job.manifest()
    if manifest is None:
        raise FileError.of(CALLER, folder, "there is no job in this folder")
    if manifest["state"] != "done":
        message = f"{CALLER}: the job in '{folder}' is not done: resume it"
        raise JobError(message)
    if (kind := manifest.get("part_format", PARQUET)) != PARQUET:
        message = (
            f"{CALLER}: the parts of the job in '{folder}' are {kind} files, no rows: read them as "
            f"any others, '{folder}/parts/*.{kind}'"
        )
        raise JobError(message)
    columns = catalogue()[manifest["function"]].output.columns
    if manifest["parts"] == 0:
        nothing = ", ".join(f"NULL::{kind} AS {each}" for each, kind in columns.items())
        query = f"SELECT {nothing} WHERE false"
    else:
        parts = f"{glob.escape(str(job.parts.resolve()))}/*.parquet"
        names = ", ".join(map(identifier, columns))  # GeoParquet has boxes besides
        query = f"SELECT {names} FROM read_parquet({literal(parts)})"
    if name is not None:
        con.execute(f"CREATE OR REPLACE VIEW {identifier(name)} AS {query}")
    return con.sql(query)
