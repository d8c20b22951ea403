"""Features for other programs: a geometry each, with flat columns, written by GDAL."""

import json
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.database.duckdb_copy import said_of
from spatialq.database.flat_columns import flat
from spatialq.database.geoparquet import geometry_columns
from spatialq.database.staged import Staged, staged
from spatialq.database.writers import Result
from spatialq.errors import FileError
from spatialq.export import wkb
from spatialq.export.atomic import WRITER, whole
from spatialq.functions.sql_text import identifier, unused
from spatialq.runtime.progress import INTERVAL, Task
from spatialq.runtime.temporary import not_written

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 65_536
UNKNOWN = "Unknown"
"""The type of a layer whose geometries have several, or of which there is none."""
AXES = ("x", "y", "z")
AT_ONCE = 200_000
"""Rows that GDAL writes in a second or so."""
PROCESS = "from spatialq.database import vector_files; vector_files.write_from_standard_input()"


def write_features(driver: str, result: Result, path: Path) -> int:
    """Write rows as the features of one layer, which has the name of the file.

    Their geometry is the first column of type GEOMETRY, others become WKT; of rows without one it
    is the point x, y, z or x, y, which stay as columns. They go through a file beside `path`, since
    the type of all geometries must be known when a layer is begun.

    Parameters
    ----------
    driver : str
        Of GDAL.
    result : Result
    path : Path

    Returns
    -------
    int
        Rows written.

    Raises
    ------
    FileError
        If the file cannot be written.
    ValueError
        If the rows have no geometry.
    """
    geometry = next(iter(geometry_columns(result.relation)), None)
    axes = [] if geometry else [name for name in AXES if name in result.columns]
    if not geometry and axes[:2] != ["x", "y"]:
        message = (
            f"{WRITER}: rows for '{path.name}' must have a column of type GEOMETRY, or x and y, "
            f"got {', '.join(result.columns)}"
        )
        raise ValueError(message)
    crs = geometry_columns(result.relation, result.crs)[geometry] if geometry else result.crs
    selected = flat(result.columns, WRITER)
    if geometry:
        selected[geometry] = identifier(geometry)
    columns = ", ".join(f"{made} AS {identifier(name)}" for name, made in selected.items())
    made = replace(result, statement=f"SELECT {columns} FROM ({result.query}\n)")
    name = geometry or unused("geometry", result.columns)
    with whole(path) as partial, said_of(path, partial), staged(made, partial) as rows:
        kind = _type(rows, geometry, axes)
        layer = Layer(
            file=str(rows.file),
            target=str(partial),
            driver=driver,
            name=path.stem,
            geometry=name,
            kind=kind,
            axes=axes,
            crs=crs,
            options=_options(driver, name, result, rows, axes),
        )
        if rows.rows > AT_ONCE:
            _write_in_process(layer, path)
        else:
            with _said_by_gdal(path, partial):
                layer.write()
        if driver == "GPKG":
            _require_index(partial, path)
    return rows.rows


@dataclass(frozen=True)
class Layer:
    """What is to be written as one layer."""

    file: str
    """Parquet file of the rows."""
    target: str
    driver: str
    name: str
    geometry: str
    """The column of geometries, which is made of the axes where there are some."""
    kind: str
    axes: list[str]
    crs: str | None
    options: dict[str, str]

    def write(self) -> None:
        """Write the layer."""
        import pyogrio

        is_multiple = self.kind.startswith("Multi")
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # no CRS
            pyogrio.write_arrow(
                _features(Path(self.file), self.geometry, self.axes, is_multiple=is_multiple),
                Path(self.target),
                driver=self.driver,
                layer=self.name,
                geometry_name=self.geometry,
                geometry_type=self.kind,
                crs=self.crs,
                layer_options=self.options,
            )


def _write_in_process(layer: Layer, path: Path) -> None:
    """Write a layer in another process: GDAL lets no other thread run, and hears no Ctrl-C.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    task = Task()
    with subprocess.Popen(
        [sys.executable, "-c", PROCESS],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,  # Ctrl-C in a terminal is for this process
    ) as process:
        given: str | None = json.dumps(asdict(layer))
        try:
            while process.returncode is None:
                task.check()
                with suppress(subprocess.TimeoutExpired):
                    _, said = process.communicate(given, timeout=INTERVAL)
                given = None
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        reason = said.strip().rpartition("\n")[2] or f"it ended with status {process.returncode}"
        reason = f"cannot be written by GDAL: {reason}"
        raise FileError.of(WRITER, path, not_written(Path(layer.target).parent, reason))


def write_from_standard_input() -> None:
    """Write the layer that standard input describes: what the other process does."""
    import pyogrio

    layer = Layer(**json.load(sys.stdin))
    try:
        layer.write()
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, OSError) as error:
        sys.exit(str(error))


def _require_index(partial: Path, path: Path) -> None:
    """Reject a file without the spatial index, which GDAL leaves out in silence on a full disk."""
    query = "FROM gpkg_extensions WHERE extension_name = 'gpkg_rtree_index'"
    indexes = 0
    with suppress(sqlite3.Error), closing(sqlite3.connect(partial)) as database:
        ((indexes,),) = database.execute(f"SELECT count(*) {query}").fetchall()
    if not indexes:
        reason = not_written(partial.parent, "cannot be written: GDAL made no spatial index")
        raise FileError.of(WRITER, path, reason)


def _type(rows: Staged, geometry: str | None, axes: list[str]) -> str:
    """Name the type of all geometries; with polygons and several the one of several, as of lines.

    Names are those of GeoParquet and of GDAL.
    """
    if geometry is None:
        return "Point Z" if len(axes) == 3 else "Point"
    types = set(rows.geometries.get(geometry, {}).get("geometry_types", ()))
    several = {each if each.startswith("Multi") else f"Multi{each}" for each in types}
    chosen = types if len(types) == 1 else several
    return chosen.pop() if len(chosen) == 1 else UNKNOWN


def _features(
    file: Path, name: str, axes: list[str], *, is_multiple: bool
) -> "pa.RecordBatchReader":
    """Read the rows with their geometries as WKB."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pq.ParquetFile(file)
    # a column that DuckDB knows to have no NULL may have NaN, which is NULL in a GeoPackage
    schema = pa.schema([field.with_nullable(nullable=True) for field in found.schema_arrow])
    field = pa.field(name, pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})
    place = schema.get_field_index(name)
    schema = schema.append(field) if place < 0 else schema.set(place, field)

    def batches() -> "Iterator[pa.RecordBatch]":
        for batch in found.iter_batches(ROWS):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            if axes:
                places = [columns[axis].cast(pa.float64()) for axis in axes]
                columns[name] = wkb.points(
                    *(np.ma.masked_invalid(each.to_numpy(zero_copy_only=False)) for each in places)
                )
            elif is_multiple:
                columns[name] = wkb.multiple(columns[name])
            arrays = [columns[each.name].cast(each.type) for each in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _options(driver: str, name: str, result: Result, rows: Staged, axes: list[str]) -> Any:
    """Choose the options of a layer."""
    if driver == "GPKG":
        # the numbers of a column that is called fid would have to differ
        return {"GEOMETRY_NAME": name, "FID": unused("fid", result.columns)}
    missing = " OR ".join(
        [f"{axis} IS NULL OR NOT isfinite({axis}::DOUBLE)" for axis in axes]
        or [_has_no_vertex(identifier(name))]
    )
    ((has_null,),) = result.con.sql(f"SELECT bool_or({missing}) FROM {rows.source}").fetchall()
    # GDAL makes no index of features of which one has no geometry
    return {"SPATIAL_INDEX": "NO"} if has_null else {}


def _has_no_vertex(geometry: str) -> str:
    """Write a condition; a text is made of those geometries only that are short enough."""
    shape = f"{geometry}::GEOMETRY"
    is_empty = f"octet_length(ST_AsWKB({shape})) < 40 AND ST_AsText({shape}) LIKE '%EMPTY%'"
    return f"{geometry} IS NULL OR ({is_empty})"


@contextmanager
def _said_by_gdal(path: Path, partial: Path) -> Iterator[None]:
    import pyogrio

    try:
        yield
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
        reason = not_written(partial.parent, f"cannot be written by GDAL: {error}")
        raise FileError.of(WRITER, path, reason) from error
