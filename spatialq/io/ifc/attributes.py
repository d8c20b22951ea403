"""The attributes of IFC entities as JSON values, by the names of the schema."""

import math
from typing import Any

from spatialq.io.ifc.entities import text
from spatialq.io.ifc.layouts import Layouts

MAX_VALUES = 4096
MAX_DEPTH = 16
"""What the entities that one object holds may amount to. Circles of broken files end here, too."""


class TooLargeError(Exception):
    """An entity holds more than an object's JSON has room for."""


class AttributeReader:
    """Turns attributes into JSON values.

    Typed values are unwrapped, entities with a GlobalId are given by it, and others are objects
    with their class as ``type`` and the attributes that are set: of one that holds too much, only
    ``type``. NaN and infinity are None.

    Parameters
    ----------
    layouts : Layouts
    """

    def __init__(self, layouts: Layouts) -> None:
        self.layouts = layouts
        self._room = 0

    def read(self, entity: Any) -> dict[str, Any]:
        """Give the attributes of an object that are set."""
        self._room = MAX_VALUES
        argument = entity.get_argument
        found = {}
        for name, at in self.layouts[entity.is_a()].listed:
            value = argument(at)
            if value is not None:
                found[name] = value if type(value) is str else self._plain(value)
        return found

    def _plain(self, value: Any) -> Any:
        """Give the value of an object's attribute."""
        if isinstance(value, tuple):
            return [self._plain(part) for part in value]
        try:
            return self._value(value, 0)
        except TooLargeError:
            return {"type": value.is_a()}

    def _value(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, (str, bool, int)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, tuple):
            self._take(len(value), depth)
            return [self._value(part, depth + 1) for part in value]
        if not hasattr(value, "is_a"):
            return str(value)
        if value.id() == 0:  # a typed value, such as IfcLabel('Wall')
            return self._value(value.get_argument(0), depth + 1)
        layout = self.layouts[value.is_a()]
        if layout.is_root:
            return text(value.get_argument(0))
        self._take(len(layout.at), depth)
        found = {"type": value.is_a()}
        for name, at in layout.at.items():
            part = value.get_argument(at)
            if part is not None:
                found[name] = self._value(part, depth + 1)
        return found

    def _take(self, values: int, depth: int) -> None:
        self._room -= values
        if self._room < 0 or depth > MAX_DEPTH:
            raise TooLargeError
