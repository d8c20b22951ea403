"""What the macros of `sql/ifc_classes.sql` call: the classes of the IFC schemas."""

from spatialq.io.ifc import schemas
from spatialq.io.ifc.columns import INVERSE_ATTRIBUTES, LINEAGE


def subtypes(supertype: str | None, ifc_schema: str | None) -> list[str | None]:
    """List the classes that a supertype has, in lower case, as `schemas.subtypes` finds them.

    Of NULL it is a list of NULL, so that whether something is in it is NULL, too.
    """
    if supertype is None:
        return [None]
    return [name.lower() for name in sorted(schemas.subtypes(supertype, ifc_schema))]


def lineage_table(_: None) -> list[dict[str, str]]:
    """Give the rows of `ifc_lineage`."""
    return [dict(zip(LINEAGE, row, strict=True)) for row in schemas.lineage()]


def inverse_attributes_table(_: None) -> list[dict[str, str]]:
    """Give the rows of `ifc_inverse_attributes`."""
    return [dict(zip(INVERSE_ATTRIBUTES, row, strict=True)) for row in schemas.inverse_attributes()]
