"""Reading attributes of IfcOpenShell's entities safely: those that a class may lack, or a file."""

import math
from typing import Any

FORWARD = 1
"""What IfcOpenShell says of an attribute that stands in the file."""


def attribute(entity: Any, name: str) -> Any:
    """Give the value of an attribute; None if the entity's class has none of this name.

    ``getattr(entity, name, None)`` would first import the rules of the schema, to see whether they
    derive it.
    """
    if entity.get_attribute_category(name) != FORWARD:
        return None
    return entity.get_argument(entity.get_argument_index(name))


def entities(value: object) -> list[Any]:
    """List the entities in the value of an attribute, through lists and typed values."""
    found = []
    for part in value if isinstance(value, tuple) else (value,):
        if isinstance(part, tuple):
            found += entities(part)
        elif hasattr(part, "is_a"):
            if part.id():
                found.append(part)
            else:  # a typed value, such as IfcPropertySetDefinitionSet
                found += entities(part.get_argument(0))
    return found


def text(value: object) -> str | None:
    """Give an attribute that is text; damaged files have numbers or entities in its place."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) else None


def number(value: object) -> float | None:
    """Give an attribute that should be a finite number as one, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Turn an IFC value into a JSON value: typed ones unwrapped, NaN as null.

    An entity becomes its name, or its class.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if hasattr(value, "is_a"):
        if value.id() == 0:  # a typed value, such as IfcLabel('A')
            return plain(value.get_argument(0))
        return text(attribute(value, "Name")) or value.is_a()
    return str(value)
