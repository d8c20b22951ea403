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


def entities(value: Any) -> tuple[Any, ...]:
    """List the entities that an attribute holds: one, several or none; damaged ones hold others."""
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return tuple(part for part in parts if hasattr(part, "is_a") and part.id())


def text(value: Any) -> str | None:
    """Give an attribute that should be text as text."""
    return value if value is None or isinstance(value, str) else str(value)


def number(value: Any) -> float | None:
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
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if hasattr(value, "is_a"):
        if value.id() == 0:  # a typed value, such as IfcLabel('A')
            return plain(value.get_argument(0))
        return attribute(value, "Name") or value.is_a()
    return str(value)
