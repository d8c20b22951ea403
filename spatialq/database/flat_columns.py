"""Columns as formats take them that know numbers, texts, dates and truth values only."""

import re
from collections.abc import Mapping

from spatialq.functions.sql_text import identifier, literal

NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
           "FLOAT", "DOUBLE")  # fmt: skip
SAME = (*NUMBERS, "BOOLEAN", "VARCHAR", "BLOB", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
"""Types that stay."""
LARGE = ("UBIGINT", "HUGEINT", "UHUGEINT")
MAX_BIGINT = 2**63 - 1
TIMES = ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
NESTED = re.compile(r"STRUCT\(|MAP\(|UNION\(|.*\]$", re.DOTALL)


def flat(columns: Mapping[str, str], caller: str) -> dict[str, str]:
    """Write the expressions that make columns flat.

    Parameters
    ----------
    columns : mapping
        SQL type by name.
    caller : str
        What the error about a value that does not fit begins with.

    Returns
    -------
    dict
        SQL by name: whole numbers of at most 64 bits, texts of lists, structs and geometries (JSON
        and WKT), of UUID, INTERVAL, TIME and ENUM; numbers with decimals in double precision.
    """
    return {name: _flat(name, kind, caller) for name, kind in columns.items()}


def _flat(name: str, kind: str, caller: str) -> str:
    quoted = identifier(name)
    if kind in SAME:
        return quoted
    if kind in LARGE:
        said = literal(
            f"{caller}: column '{name}' must be of whole numbers up to {MAX_BIGINT}, got "
        )
        advice = literal(f"; select {quoted}::VARCHAR")
        refused = f"error({said} || {quoted} || {advice})::BIGINT"
        return (
            f"CASE WHEN {quoted} NOT BETWEEN {-MAX_BIGINT} AND {MAX_BIGINT} THEN {refused} "
            f"ELSE {quoted}::BIGINT END"
        )
    if kind.startswith("DECIMAL"):
        return f"{quoted}::DOUBLE"
    if kind in TIMES:
        return f"{quoted}::TIMESTAMP"
    if kind.startswith("GEOMETRY"):
        return f"ST_AsText({quoted}::GEOMETRY)"
    return f"to_json({quoted})::VARCHAR" if NESTED.match(kind) else f"{quoted}::VARCHAR"
