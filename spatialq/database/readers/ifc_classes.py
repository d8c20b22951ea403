"""What the macros of `sql/ifc_classes.sql` call: the classes of the IFC schemas."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from spatialq.io.ifc import schemas
from spatialq.io.ifc.columns import INVERSE_ATTRIBUTES, LINEAGE


def subtypes(supertypes: Any, ifc_schemas: Any) -> pa.Array:
    """List the classes that each supertype has, in lower case, as `schemas.subtypes` finds them.

    Of NULL it is a list of NULL, so that whether something is in it is NULL, too.
    """
    rows = zip(supertypes.to_pylist(), ifc_schemas.to_pylist(), strict=True)
    return pa.array([_subtypes(*row) for row in rows], pa.list_(pa.string()))


def _subtypes(supertype: str | None, ifc_schema: str | None) -> list[str | None]:
    if supertype is None:
        return [None]
    return [name.lower() for name in sorted(schemas.subtypes(supertype, ifc_schema))]


def lineage_table(calls: Any) -> pa.Array:
    """Give `ifc_lineage` as a list of structs."""
    return _lists(len(calls), LINEAGE, schemas.lineage())


def inverse_attributes_table(calls: Any) -> pa.Array:
    """Give `ifc_inverse_attributes` as a list of structs."""
    return _lists(len(calls), INVERSE_ATTRIBUTES, schemas.inverse_attributes())


def _lists(calls: int, columns: Iterable[str], rows: Sequence[tuple[str, ...]]) -> pa.Array:
    return pa.array([[dict(zip(columns, row, strict=True)) for row in rows]] * calls)
