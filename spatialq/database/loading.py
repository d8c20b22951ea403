"""Files into tables: one transaction a file, so that a file is in the table whole or not at all."""

import json
import os
import re
import warnings
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import duckdb

from spatialq.database import revisions, sources
from spatialq.database.model_tables import PARTS, beside_elements
from spatialq.database.sources import Loaded, SourceRecord
from spatialq.database.transaction import is_open
from spatialq.errors import CrsWarning, FileError, FileWarning
from spatialq.functions.sql_text import identifier
from spatialq.io import crs as crs_text
from spatialq.io.access import for_connection
from spatialq.io.clouds import at_resolution
from spatialq.io.files import warn_about
from spatialq.io.formats import LOADED, files_of, open_source, reader_of
from spatialq.io.ifc.columns import Geometry
from spatialq.io.reproject import Reprojection
from spatialq.io.reprojected import moved, operations, warn_of_missing_grids
from spatialq.io.source import Box, Progress, Source
from spatialq.io.storage import as_path
from spatialq.runtime import forks

Mode = Literal["append", "replace", "update"]
READER = "load"
UNLOAD = "unload"
INCOMING = "spatialq_incoming"  # the view of the file that is being loaded
DEFAULT_TABLES = {"points": "points", "grid": "grid", "ifc": "elements"}
RESERVED = (INCOMING, "spatialq_calls", "spatialq_files", "spatialq_sources", "load_errors", *PARTS)
"""Tables that hold other things than a file's rows: no file is loaded under these names."""
RELATIVE = re.compile(r"^(\.{0,2}/)+")
"""How a path begins that is seen from a folder."""

_one_file = forks.lock()
"""DuckDB answers two connections that make the same table with a conflict, so they take turns."""


@for_connection
def load(
    con: duckdb.DuckDBPyConnection,
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    table: str | None = None,
    *,
    crs: str | None = None,
    override_crs: bool = False,
    to_crs: str | None = None,
    resolution: float | None = None,
    columns: Sequence[str] | None = None,
    geometry: Geometry = "auto",
    mode: Mode = "append",
    revision: str | None = None,
    progress: Progress | None = None,
) -> list[SourceRecord]:
    """Load point clouds, grids and building models into tables.

    Each file is one transaction. A table that exists gets the rows added, with `point_id`
    running on and new columns added; `spatialq_sources` tells which files are in it.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        With no transaction open.
    paths : path-like or sequence of them
        Files, patterns or folders.
    table : str, optional
        Name of the table; by default `points`, `grid` or `elements`. A building model also
        fills `<table>_objects`, `<table>_relations`, `<table>_properties` and so on (by default
        `objects`, `relations`, `properties`), and `load_errors`.
    crs : str, optional
        Coordinate reference system (such as 'EPSG:25832' or WKT) of files that do not say.
    override_crs : bool
        Whether `crs` also takes the place of one that a file names.
    to_crs : str, optional
        Coordinate reference system to reproject point clouds and grids to.
    resolution : float, optional
        Side of the cells of grids that are reprojected, in the unit of `to_crs`; by default cells
        keep the size that they have in the middle of the first grid. Of point clouds the spacing of
        points, in the unit of x and y of the file, at which the nodes of an octree (COPC, EPT) are
        dense enough.
    columns : sequence of str, optional
        Only these columns of point clouds and grids.
    geometry : 'auto', 'exact' or 'none'
        Which library makes the meshes of building models; 'none' loads everything else, and an
        empty table of elements.
    mode : 'append', 'replace' or 'update'
        Whether files are added to a table that exists, or the table, and of a model the tables
        beside it, is dropped and made anew; then all files are one transaction. 'update' adds
        files, too, but a building model that is in the table already is read again, and takes the
        place of its rows.
    revision : str, optional
        Name of a schema to which the tables belong, made if it is not there; by default the
        current one.
    progress : callable, optional
        Called with file, rows so far and rows in all; of a building model with its meshes.

    Returns
    -------
    list of SourceRecord

    Raises
    ------
    FileError
        If a file cannot be read, or is in the table already.
    CrsError
        If a file is in another CRS than the table, or names another one than `crs`.
    ValueError
        If a transaction is open, the table or revision cannot have that name, an existing table
        is of another kind, or one that is to be replaced is not from `load`.

    Warns
    -----
    FileWarning
        About each oddity of a file that was loaded all the same.
    """
    _check_name(table)
    if mode not in get_args(Mode):
        message = f"{READER}: mode must be 'append', 'replace' or 'update', got {mode!r}"
        raise ValueError(message)
    _require_no_transaction(con, READER, "each file is loaded in one of its own")
    if revision is not None:
        revisions.check_name(con, READER, revision)
    crs_text.given_or_own(READER, [], crs, override=override_crs)  # rejects a wrong one
    patterns = [paths] if isinstance(paths, str | os.PathLike) else paths
    found = [file for pattern in patterns for file in files_of(READER, pattern, LOADED)]
    files = [(file, reader_of(READER, file, LOADED).kind) for file in found]
    if resolution is not None and to_crs is None and "points" not in {kind for _, kind in files}:
        message = f"{READER}: resolution needs to_crs, to which grids are reprojected"
        raise ValueError(message)
    moves = {} if to_crs is None else _operations(files, to_crs, crs, override=override_crs)
    records = []
    for together in [files] if mode == "replace" else [[file] for file in files]:
        caught: list[warnings.WarningMessage] = []
        try:
            with _one_file, revisions.transaction_in(con, revision):
                sources.prepare(con)
                if mode == "replace":
                    for name in {table or DEFAULT_TABLES[kind] for _, kind in together}:
                        _drop(con, name)
                for file, kind in together:
                    name = table or DEFAULT_TABLES[kind]
                    with warnings.catch_warnings(record=True) as said:
                        for category in (FileWarning, CrsWarning):
                            warnings.simplefilter("always", category)
                        if kind == "ifc":
                            _drop_remains(con, name)
                            if mode == "update":
                                _remove(con, READER, _in_table(con, file, name))
                        _refuse_mixing(con, name, file, kind)
                        if kind == "ifc":
                            record = _load_model(con, file, name, geometry, progress, said)
                        else:
                            source = open_source(READER, file)
                            if kind == "points":
                                source = at_resolution(READER, source, resolution)
                            named = [(file, source.crs)]
                            own = crs_text.given_or_own(READER, named, crs, override=override_crs)
                            if file in moves:
                                source, own = _moved(source, moves[file], resolution)
                                if kind == "grid":  # those that follow have cells of this size
                                    resolution = resolution or source.cell_size[0]
                            record = _load_rows(con, source, name, own, columns, progress, said)
                    caught += said
                    sources.add(con, record)
                    records.append(record)
                sources.forget_dropped(con)
        finally:
            con.unregister(INCOMING)  # only now: an aborted transaction refuses it
        for warning in caught:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return records


def unload(
    con: duckdb.DuckDBPyConnection,
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    table: str | None = None,
    *,
    revision: str | None = None,
) -> list[Loaded]:
    """Remove building models from the tables that `load` put them into, in one transaction.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        With no transaction open.
    paths : path-like or sequence of them, optional
        Files as they were loaded; they need not be there any more. Without them a revision is
        removed with all that is in its schema.
    table : str, optional
        Name of the table of elements; by default all that have the files.
    revision : str, optional
        Name of the revision in whose tables the files are; by default the current schema.

    Returns
    -------
    list of Loaded
        What was removed, from which table.

    Raises
    ------
    FileError
        If a file is in no such table, or is a point cloud or grid, whose rows do not say which
        file they are of.
    ValueError
        If a transaction is open, there is no such revision, it is the current schema and is to be
        removed, or neither files nor a revision are given.
    """
    _require_no_transaction(con, UNLOAD, "all files are removed in one of their own")
    if paths is None and (revision is None or table is not None):
        message = f"{UNLOAD}: paths must be files, unless a whole revision is to be removed"
        raise ValueError(message)
    if revision is not None:
        revisions.require(con, UNLOAD, revision, is_dropped=paths is None)
    with _one_file, revisions.transaction_in(con, revision):
        if paths is None:
            return _remove_all(con, str(revision))
        given = [paths] if isinstance(paths, str | os.PathLike) else paths
        removed: list[Loaded] = []
        for file in map(as_path, given):
            found = _in_table(con, file, table)
            if not found:
                reason = "is in no table" if table is None else f"is not in table '{table}'"
                raise FileError.of(UNLOAD, file, f"{reason}; spatialq_sources lists what is loaded")
            _remove(con, UNLOAD, found)
            removed += found
    return removed


def _remove_all(con: duckdb.DuckDBPyConnection, revision: str) -> list[Loaded]:
    """Drop the schema of a revision, which is the current one of the caller's transaction."""
    removed = sources.loaded(con)
    con.execute(f"DROP SCHEMA {identifier(revision)} CASCADE")
    return removed


def _require_no_transaction(con: duckdb.DuckDBPyConnection, caller: str, why: str) -> None:
    if is_open(con):
        message = (
            f"{caller}: the connection has a transaction open; COMMIT or ROLLBACK it first, as "
            f"{why}"
        )
        raise ValueError(message)


def _in_table(con: duckdb.DuckDBPyConnection, file: Path, table: str | None) -> list[Loaded]:
    """List where a file is loaded."""
    path = str(file.resolve())
    loaded = sources.loaded(con) if table is None else sources.of_table(con, table)
    return [each for each in loaded if each.path == path]


def _remove(con: duckdb.DuckDBPyConnection, caller: str, loaded: Sequence[Loaded]) -> None:
    """Delete the rows of files from the tables of their models, and that they were loaded.

    Raises
    ------
    FileError
        If rows do not say which file they are of.
    """
    for each in loaded:
        if each.kind != "ifc":
            reason = (
                f"the rows of table '{each.table}' do not say which file they are of; load the "
                "files that are to stay with --replace, or mode='replace'"
            )
            raise FileError.of(caller, each.path, reason)
        names = [beside_elements(each.table, part) for part in ("elements", *PARTS)]
        file_name = _file_name(con, caller, each)
        for table in _with_rows_of(con, file_name, names):
            con.execute(f"DELETE FROM {identifier(table)} WHERE file_name = ?", [file_name])
        sources.forget(con, each)
        if each.path not in {other.path for other in sources.models(con)}:
            for errors in _with_rows_of(con, file_name, ["load_errors"]):
                con.execute(f"DELETE FROM {errors} WHERE file_name = ?", [file_name])


def _file_name(con: duckdb.DuckDBPyConnection, caller: str, loaded: Loaded) -> str:
    """Say how the tables of a model name its file: as whoever loaded it did, maybe elsewhere."""
    models = sources.identity(con, beside_elements(loaded.table, "models"))
    rows = models and con.execute(f"SELECT DISTINCT file_name FROM {identifier(models.table)}")
    names = [name for (name,) in rows.fetchall()] if rows else []
    found = [name for name in names if str(as_path(name).resolve()) == loaded.path]
    found = found or [
        name for name in names if f"/{loaded.path}".endswith(f"/{RELATIVE.sub('', name)}")
    ]
    if len(found) != 1:
        reason = (
            f"table '{beside_elements(loaded.table, 'models')}' does not say which rows are of it; "
            f"its file_name has {', '.join(map(repr, found or names)) or 'nothing'}"
        )
        raise FileError.of(caller, loaded.path, reason)
    return str(found[0])


def _operations(
    files: Sequence[tuple[Path, str]],
    to_crs: str,
    crs: str | None,
    *,
    override: bool,
) -> dict[Path, Reprojection]:
    """Choose how each file of rows is reprojected: those of one CRS alike."""
    opened = [open_source(READER, file) for file, kind in files if kind != "ifc"]
    systems = [
        crs_text.given_or_own(READER, [(source.path, source.crs)], crs, override=override)
        for source in opened
    ]
    chosen = operations(READER, opened, to_crs, systems)
    return {source.path: each for source, each in zip(opened, chosen, strict=True)}


def _moved(source: Any, operation: Reprojection, resolution: float | None) -> tuple[Any, str]:
    """Give a file in another CRS, and that."""
    warn_of_missing_grids(READER, [operation])
    if source.kind == "points":
        return moved(READER, source, operation), operation.target
    from spatialq.io.grid.grids import warped

    return warped(READER, source, operation, resolution), operation.target


class _Counted:
    """A source that reports how far it has been read."""

    def __init__(self, source: Source, progress: Progress) -> None:
        self._source = source
        self._progress = progress

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def batches(self, columns: Sequence[str], hint: Box | None = None) -> Iterator[Any]:
        rows = 0
        for batch in self._source.batches(columns, hint):
            yield batch
            rows += batch.num_rows
            self._progress(self._source.path, rows, self._source.rows)


def _load_rows(
    con: duckdb.DuckDBPyConnection,
    source: Source,
    table: str,
    crs: str | None,
    columns: Sequence[str] | None,
    progress: Progress | None,
    caught: list[warnings.WarningMessage],
) -> SourceRecord:
    from spatialq.io.view import View, layout_of

    file = source.path
    before = sources.of_table(con, table)
    identity = sources.identity(con, table)
    if identity and (before or identity.crs):
        crs_text.require_same(READER, [(f"table {table}", identity.crs), (file, crs)])
    warn_about(READER, source)
    counted: Any = source if progress is None else _Counted(source, progress)
    view = View(READER, [counted], columns=columns)
    view.connection = weakref.ref(con)  # Ctrl-C while a batch is made interrupts the query
    con.register(INCOMING, view)
    (rows,) = _insert(con, table, grows=bool(before))
    return SourceRecord(
        table=table,
        path=str(file.resolve()),
        kind=source.kind,
        rows=rows,
        crs=crs,
        box=None if source.box is None else [source.box[k] for k in (0, 1, 3, 4)],
        layout=layout_of([source]),
        warnings=[str(warning.message) for warning in caught],
    )


def _load_model(
    con: duckdb.DuckDBPyConnection,
    file: Path,
    table: str,
    geometry: Geometry,
    progress: Progress | None,
    caught: list[warnings.WarningMessage],
) -> SourceRecord:
    from spatialq.database.readers.ifc_models import warn_about_model
    from spatialq.io.ifc.cache import read_models
    from spatialq.io.ifc.tables import SCHEMAS

    (model,) = read_models([file], geometry=geometry, progress=progress)
    warn_about_model(READER, model, stacklevel=3)
    # Without meshes the table of elements is empty: by its name the model is known.
    for errors in _with_rows_of(con, file, ["load_errors"]):  # of the file in another table
        con.execute(f"DELETE FROM {errors} WHERE file_name = ?", [str(file)])
    for name, rows in {"elements": SCHEMAS["elements"].empty_table(), **model.tables}.items():
        con.register(INCOMING, rows)
        # All models share one table of errors.
        kept_in = name if name == "load_errors" else beside_elements(table, name)
        _insert(con, kept_in, grows=False)
    return SourceRecord(
        table=table,
        path=str(file.resolve()),
        kind="ifc",
        rows=model.tables["elements"].num_rows if geometry != "none" else 0,
        crs=None,
        georeference=None if model.georeference is None else json.dumps(model.georeference),
        warnings=[str(warning.message) for warning in caught],
    )


def _check_name(table: str | None) -> None:
    if table is None:
        return
    reason = None
    if not table or "." in table:
        reason = "must be a plain name; for another schema, USE it before"
    elif not table.isprintable():
        reason = "must be a name without line breaks and other control characters"
    elif table.lower() in RESERVED:
        reason = "must be another name, as spatialq keeps other things there"
    if reason:
        message = f"{READER}: table {reason}; got {table!r}"
        raise ValueError(message)


def _insert(con: duckdb.DuckDBPyConnection, table: str, *, grows: bool) -> tuple[int]:
    """Append all incoming rows to a table, made if it is not there; return how many.

    A table that `grows` gets the columns that it lacks; another one must have them all.
    """
    name = identifier(table)
    if not sources.identity(con, table):
        counted: tuple[int] = con.execute(f"CREATE TABLE {name} AS FROM {INCOMING}").fetchall()[0]
        return counted
    have = {row[0].lower(): row[1] for row in con.execute(f"DESCRIBE {name}").fetchall()}
    columns = [(row[0], row[1]) for row in con.execute(f"DESCRIBE {INCOMING}").fetchall()]
    for column, kind in columns:
        if column.lower() in have:
            _require_room(con, table, column, kind, have[column.lower()])
        else:
            if not grows:
                message = (
                    f"{READER}: table '{table}' holds something else: it has no column "
                    f"'{column}'; choose another table"
                )
                raise ValueError(message)
            con.execute(f"ALTER TABLE {name} ADD COLUMN {identifier(column)} {kind}")
    chosen = "*"
    if "point_id" in have and "point_id" in dict(columns):
        (first,) = con.execute(f"SELECT coalesce(max(point_id) + 1, 0) FROM {name}").fetchall()[0]
        chosen = f"* REPLACE (point_id + {first} AS point_id)"
    inserted: tuple[int] = con.execute(
        f"INSERT INTO {name} BY NAME SELECT {chosen} FROM {INCOMING}"
    ).fetchall()[0]
    return inserted


def _require_room(
    con: duckdb.DuckDBPyConnection, table: str, column: str, kind: str, room: str
) -> None:
    """Reject a column that would round or cut off values; INSERT does so without a word."""
    fits = f"SELECT can_cast_implicitly(NULL::{kind}, NULL::{room})"
    if kind != room and not con.execute(fits).fetchall()[0][0]:
        message = (
            f"{READER}: column '{column}' of table '{table}' is {room}, which does not hold all "
            f"values of {kind}; ALTER it or choose another table"
        )
        raise ValueError(message)


def _refuse_mixing(con: duckdb.DuckDBPyConnection, table: str, file: Path, kind: str) -> None:
    before = sources.of_table(con, table)
    if others := {other.kind for other in before} - {kind}:
        reason = f"is of kind {kind}, table '{table}' of kind {others.pop()}; choose another table"
        raise FileError.of(READER, file, reason)
    is_here = str(file.resolve()) in {other.path for other in before}
    loaded = [table] if is_here else []
    if kind == "ifc":
        loaded += _with_rows_of(
            con, file, [beside_elements(table, n) for n in ("elements", *PARTS)]
        )
    if loaded:
        names = ", ".join(f"'{name}'" for name in dict.fromkeys(loaded))
        which = "table" if len(loaded) == 1 else "tables"
        update = "update it (--update, or mode='update'), " if kind == "ifc" and is_here else ""
        reason = (
            f"is in {which} {names} already; {update}replace the table (--replace, or "
            "mode='replace') or load the file into another one"
        )
        if not is_here:
            reason = (
                f"rows of a file of this name are in {which} {names} already; drop the {which} "
                "first, or name another file with its folder"
            )
        raise FileError.of(READER, file, reason)


def _drop(con: duckdb.DuckDBPyConnection, table: str) -> None:
    """Drop a table that is to be replaced, and what is beside it.

    Raises
    ------
    ValueError
        If it is not a table that `load` filled.
    """
    before = sources.identity(con, table)
    if before is None:
        return
    if before.id is None:
        message = (
            f"{READER}: table '{table}' is not from load, so it is not replaced; drop it first or "
            "choose another table"
        )
        raise ValueError(message)
    con.execute(f"DROP TABLE {identifier(table)}")
    _drop_remains(con, table)


def _drop_remains(con: duckdb.DuckDBPyConnection, elements: str) -> None:
    """Drop the other tables of a model whose elements were dropped, and its errors.

    Raises
    ------
    ValueError
        If they belong to a model whose elements were renamed.
    """
    if sources.identity(con, elements):
        return
    gone: set[str] = set()
    for name in PARTS:
        part = sources.identity(con, beside_elements(elements, name))
        if part is None or part.model is None:
            continue
        if owner := sources.named(con, part.model):
            message = (
                f"{READER}: table '{part.table}' belongs to the model in table '{owner}'; rename "
                f"it to '{beside_elements(owner, name)}' or choose another table"
            )
            raise ValueError(message)
        if name == "models":
            files = con.execute(f"SELECT DISTINCT file_name FROM {identifier(part.table)}")
            gone = {file for (file,) in files.fetchall()}
        con.execute(f"DROP TABLE {identifier(part.table)}")
    left = {model.path for model in sources.models(con)}
    for file in {file for file in gone if str(as_path(file).resolve()) not in left}:
        for errors in _with_rows_of(con, as_path(file), ["load_errors"]):
            con.execute(f"DELETE FROM {errors} WHERE file_name = ?", [file])


def _with_rows_of(
    con: duckdb.DuckDBPyConnection, file: str | Path, tables: Sequence[str]
) -> list[str]:
    """Choose the tables with rows of a model: a user may have made them, or dropped one."""
    here = con.execute(
        "SELECT table_name FROM duckdb_columns() WHERE column_name = 'file_name' "
        f"AND table_name IN (SELECT unnest(?)) AND {sources.HERE}",
        [list(tables)],
    ).fetchall()
    return [
        name
        for (name,) in here
        if con.execute(
            f"SELECT 1 FROM {identifier(name)} WHERE file_name = ? LIMIT 1", [str(file)]
        ).fetchall()
    ]
