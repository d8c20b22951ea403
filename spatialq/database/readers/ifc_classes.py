"""What the macros of `sql/ifc_classes.sql` call: the classes of the IFC schemas."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from spatialq.io.ifc import schemas


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
    return _lists(len(calls), schemas.lineage())


def inverse_attributes_table(calls: Any) -> pa.Array:
    """Give `ifc_inverse_attributes` as a list of structs."""
    return _lists(len(calls), schemas.inverse_attributes())


def _lists(calls: int, rows: Sequence[NamedTuple]) -> pa.Array:
    return pa.array([[row._asdict() for row in rows]] * calls)
