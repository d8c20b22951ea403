"""`read_vector` in SQL: the functions behind the table macro of `sql/read_vector.sql`.

As for `read_points`: the query is written while it is bound. It reads the features of a file at
once, as GDAL begins anew for each part.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from spatialq.data.arrow import ARROW_TYPES, SQL_TYPES
from spatialq.database.sql_functions import VECTOR_COLUMNS
from spatialq.errors import FileError
from spatialq.functions.sql_text import identifier, literal, unused
from spatialq.io import crs as crs_text
from spatialq.io.files import find_files, require_file
from spatialq.io.storage import as_path
from spatialq.io.vector import FID, GEOMETRY, PARQUET, READER, open_layer, read_layer


def read_vector_sql(given: str | None, layer: str | None, crs: str | None) -> str:
    """Write the query that reads the files, `given` as a path or a list of them as JSON.

    Raises
    ------
    FileError, CrsError, ValueError
        If a file cannot be read or an argument is wrong.
    """
    paths = None if given is None else json.loads(given)
    several = paths if isinstance(paths, list) else [paths]
    files = [file for path in several for file in find_files(READER, path)]
    if not files:
        message = f"{READER}: path must be a file, a pattern or a list of these, got []"
        raise ValueError(message)
    sources = [
        _parquet(file) if file.suffix.lower() in PARQUET else _of_gdal(file, layer)
        for file in files
    ]
    stated = [(each.path, each.crs) for each in sources if each.crs is not None]
    own = crs_text.require_same(READER, stated)
    system = own if crs is None else crs_text.from_argument(READER, crs)
    geometry = f"{GEOMETRY}::{GEOMETRY}"
    if system is not None:
        geometry = f"ST_SetCRS({geometry}, {literal(system)})"
    queries = []
    for each in sources:
        name = f", {literal(str(each.path))} AS file_name" if len(sources) > 1 else ""
        queries.append(f"SELECT * REPLACE ({geometry} AS {GEOMETRY}){name} FROM ({each.query})")
    return " UNION ALL BY NAME ".join(queries)


@dataclass(frozen=True)
class _Source:
    path: Path
    crs: str | None
    query: str


def _of_gdal(file: Path, name: str | None) -> _Source:
    layer = open_layer(file, name)
    chosen, taken = [], [GEOMETRY]
    for field, (kind, place) in zip(layer.schema, _places(layer.schema), strict=True):
        column = unused(field.name, taken)
        taken.append(column)
        chosen.append(
            f"unnest(p.{kind}[{place + 1}])::{_sql_type(field.type)} AS {identifier(column)}"
        )
    if FID not in [each.lower() for each in taken]:
        chosen.insert(0, f"unnest(p.{FID}) AS {FID}")
    plan = literal(json.dumps({"path": str(file), "layer": layer.name}))
    chosen.append(f"ST_GeomFromWKB(unnest(p.{GEOMETRY})) AS {GEOMETRY}")
    query = f"SELECT {', '.join(chosen)} FROM (SELECT spatialq_read_vector_layer({plan}) AS p)"
    return _Source(file, layer.crs, query)


def _parquet(file: Path) -> _Source:
    """Say how DuckDB itself reads GeoParquet, and what its metadata tell."""
    import pyarrow.parquet as pq

    require_file(READER, file)
    try:
        said = json.loads((pq.read_schema(file).metadata or {}).get(b"geo", b"null"))
        primary = said["primary_column"]
        # without a CRS, longitude and latitude are meant; null is unknown
        crs = said["columns"][primary].get("crs", "OGC:CRS84")
    except (pa.ArrowException, ValueError, TypeError, KeyError) as error:
        reason = "is no GeoParquet: it has no metadata of geometries"
        raise FileError.of(READER, file, reason) from error
    renamed = "" if primary == GEOMETRY else f" RENAME ({identifier(primary)} AS {GEOMETRY})"
    text = crs if crs is None or isinstance(crs, str) else json.dumps(crs)
    query = f"SELECT *{renamed} FROM read_parquet({literal(str(file))})"
    return _Source(file, text and crs_text.from_text(text), query)


def read_vector_layer(plans: Any) -> pa.Array:
    """Read the features that each plan of `read_vector_sql` names, a row each.

    Raises
    ------
    FileError
        If a file is damaged.
    """
    return pa.concat_arrays([_features(json.loads(text)) for text in plans.to_pylist()])


def _features(plan: dict[str, str]) -> pa.StructArray:
    layer = open_layer(as_path(plan["path"]), plan["layer"])
    fid, geometry, attributes = read_layer(layer)
    columns: dict[str, list[pa.Array]] = {kind: [] for kind in VECTOR_COLUMNS}
    kinds = [kind for kind, _ in _places(layer.schema)]
    for kind, column in zip(kinds, attributes.columns, strict=True):
        columns[kind].append(_as(kind, column))
    fields = {FID: _list(fid, 1), GEOMETRY: _list(geometry, 1)}
    for kind, parts in columns.items():
        values = pa.concat_arrays([pa.nulls(0, ARROW_TYPES[VECTOR_COLUMNS[kind]]), *parts])
        fields[kind] = _list(_list(values, len(parts)), 1)
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def _list(values: pa.Array, parts: int) -> pa.ListArray:
    """Divide values into lists of one length."""
    size = len(values) // parts if parts else 0
    return pa.ListArray.from_arrays(
        pa.array([size * k for k in range(parts + 1)], pa.int32()), values
    )


def _places(schema: pa.Schema) -> list[tuple[str, int]]:
    """Give each column the kind of lists that holds its values, and its position there."""
    used = dict.fromkeys(VECTOR_COLUMNS, 0)
    found = []
    for field in schema:
        kind = "texts"
        if pa.types.is_integer(field.type) or pa.types.is_boolean(field.type):
            kind = "integers"
        elif pa.types.is_floating(field.type):
            kind = "floats"
        found.append((kind, used[kind]))
        used[kind] += 1
    return found


def _sql_type(kind: pa.DataType) -> str:
    """Name the type that DuckDB has for a column; that of lists and bytes is text."""
    if kind in SQL_TYPES:
        return SQL_TYPES[kind]
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"  # of a zone that is known in UTC: Python needs pytz for the other type
    if pa.types.is_date(kind):
        return "DATE"
    return "TIME" if pa.types.is_time(kind) else "VARCHAR"


def _as(kind: str, column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if kind == "texts" and (pa.types.is_nested(whole.type) or pa.types.is_binary(whole.type)):
        written = (
            value.hex() if isinstance(value, bytes) else value and json.dumps(value)
            for value in whole.to_pylist()
        )
        return pa.array(written, pa.string())
    return whole.cast(ARROW_TYPES[VECTOR_COLUMNS[kind]])
