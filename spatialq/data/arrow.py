"""The one map of types: what SQL and Arrow call the columns of tables."""

import re
from collections.abc import Mapping

import pyarrow as pa

MESH = "STRUCT(vertices DOUBLE[], faces INTEGER[])"

ARROW_TYPES = {
    "BIGINT": pa.int64(),
    "BLOB": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "GEOMETRY": pa.binary(),  # DuckDB reads WKB
    "INTEGER": pa.int32(),
    "SMALLINT": pa.int16(),
    "TIMESTAMP": pa.timestamp("us"),
    "TINYINT": pa.int8(),
    "UBIGINT": pa.uint64(),
    "UINTEGER": pa.uint32(),
    "USMALLINT": pa.uint16(),
    "UTINYINT": pa.uint8(),
    "VARCHAR": pa.string(),
    "VARCHAR[]": pa.list_(pa.string()),
    MESH: pa.struct([("vertices", pa.list_(pa.float64())), ("faces", pa.list_(pa.int32()))]),
}
SQL_TYPES = {arrow: sql for sql, arrow in ARROW_TYPES.items()}


def arrow_fields(columns: Mapping[str, str]) -> list[tuple[str, pa.DataType]]:
    """Give the fields of an Arrow schema or struct for columns and their SQL types."""
    return [(name, arrow_type(kind)) for name, kind in columns.items()]


def arrow_type(kind: str) -> pa.DataType:
    """Give the Arrow type of a SQL type: a plain one, a struct, or a list of them.

    A struct may have structs of plain ones as fields, or lists of these.
    """
    if kind in ARROW_TYPES:
        return ARROW_TYPES[kind]
    if kind.endswith("[]"):
        return pa.list_(arrow_type(kind.removesuffix("[]")))
    found = re.fullmatch(r"STRUCT\((.*)\)", kind)
    if found is None:
        message = f"no Arrow type is known for {kind}"
        raise KeyError(message)
    fields = (field.split(" ", 1) for field in re.split(r", (?![^(]*\))", found[1]))
    return pa.struct([(name.strip('"'), arrow_type(inner)) for name, inner in fields])
