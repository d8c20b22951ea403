"""Building models of a job: each is read by one task."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.cluster.job import Job
from spatialq.cluster.survey import read_stamp
from spatialq.cluster.task import Task, name_of
from spatialq.database.connection import connect_quietly
from spatialq.errors import FileError, files_read_by
from spatialq.functions.sql_text import literal
from spatialq.io import georeference
from spatialq.io.storage import as_path
from spatialq.runtime import budget
from spatialq.runtime.temporary import temporary_folder
from spatialq.runtime.threads import n_threads

if TYPE_CHECKING:
    import duckdb

    from spatialq.io.ifc.model import IfcModel

MODELS = "models"
"""The stage of these tasks."""


def read_models(
    job: Job,
    caller: str,
    paths: Sequence[str],
    work: Callable[[dict[str, Any], Path], dict[str, Any]],
    name: Callable[[int], str],
) -> list[dict[str, Any]]:
    """Have a task write what later stages need of each model.

    Parameters
    ----------
    job : Job
    caller : str
        Whose errors they are.
    paths : sequence of str
    work : callable
        The work of a task, which calls `read_model` with its data.
    name : callable
        Names the file of a model by its number.

    Returns
    -------
    list of dict
        The facts of the tasks, in the order of the files.

    Raises
    ------
    CrsError
        If models lie at different places on the map.
    """
    shared = {"caller": caller, "geometry": job.call.more["geometry"]}
    names = {name(k): k for k in range(len(paths))}
    tasks = (Task(each, name_of(work), shared | {"path": paths[k]}) for each, k in names.items())
    found: list[dict[str, Any]] = [{} for _ in paths]
    for done in job.files(MODELS, tasks, len(paths), job.is_unchanged):
        found[names[done.name]] = done.facts
    places = [
        (f"'{path}'", facts["georeference"]) for path, facts in zip(paths, found, strict=True)
    ]
    georeference.require_same(caller, places)
    return found


def read_model(data: dict[str, Any]) -> "tuple[IfcModel, dict[str, Any]]":
    """Read the model of a task.

    Returns
    -------
    model : IfcModel
    facts : dict
        `path`; its `stamp`; `georeference`, see `IfcModel`.

    Raises
    ------
    FileError
        If the model cannot be read.
    """
    from spatialq.database.readers.ifc_models import warn_about_model
    from spatialq.io.ifc.cache import CACHE
    from spatialq.io.ifc.cache import read_models as read

    path, caller = as_path(data["path"]), data["caller"]
    stamp = read_stamp(caller, path)
    with files_read_by(caller):
        (model,) = read([path], geometry=data["geometry"])
    CACHE.clear()
    warn_about_model(caller, model, stacklevel=2)
    if read_stamp(caller, path) != stamp:
        raise FileError.of(caller, path, "was changed while the job ran")
    return model, {"path": data["path"], "stamp": stamp, "georeference": model.georeference}


@contextmanager
def connected() -> "Iterator[duckdb.DuckDBPyConnection]":
    """Connect to a database in memory that has the share of this worker."""
    with temporary_folder("spatialq_models_", budget.folder()) as folder, connect_quietly() as con:
        con.execute(f"SET threads = {n_threads()}; SET memory_limit = '{budget.current()}B'")
        con.execute(f"SET temp_directory = {literal(str(folder))}")
        yield con
