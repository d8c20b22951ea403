"""The attributes of IFC entities as JSON values, by the names of the schema."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spatialq.io.ifc.entities import text

MAX_VALUES = 4096
MAX_DEPTH = 16
"""What the entities that one object holds may amount to. Circles of broken files end here, too."""

ELSEWHERE = {"GlobalId", "OwnerHistory", "ObjectPlacement", "Representation", "RepresentationMaps"}
"""Attributes that are columns of their own, or geometry."""


@dataclass(frozen=True)
class Layout:
    """Where the entities of a class have their attributes.

    Parameters
    ----------
    at : dict from str to int
        The position of each attribute, in the order of the schema.
    lineage : frozenset of str
        The class and all its supertypes.
    """

    at: dict[str, int]
    lineage: frozenset[str]

    @cached_property
    def is_root(self) -> bool:
        """Whether the entities have a GlobalId."""
        return "IfcRoot" in self.lineage

    @cached_property
    def name_at(self) -> int | None:
        """The position of the name, if there is one."""
        return self.at.get("Name", self.at.get("LayerSetName"))

    @cached_property
    def listed(self) -> tuple[tuple[str, int], ...]:
        """The attributes that the JSON of an object has, with their positions."""
        return tuple((name, at) for name, at in self.at.items() if name not in ELSEWHERE)


class Layouts(dict[str, Layout]):
    """The layout of each class of a schema, looked up once: much faster than names on entities.

    Parameters
    ----------
    schema : str
        IFC2X3, IFC4 or IFC4X3_ADD2.

    Raises
    ------
    KeyError
        For a class that the schema lacks.
    """

    def __init__(self, schema: str) -> None:
        import ifcopenshell.ifcopenshell_wrapper as wrapper

        super().__init__()
        self._declarations = {
            each.name(): each for each in wrapper.schema_by_name(schema).entities()
        }

    def __contains__(self, ifc_class: object) -> bool:
        """Whether the schema has a class."""
        return ifc_class in self._declarations

    def __missing__(self, ifc_class: str) -> Layout:
        """Look a class up."""
        entity: Any = self._declarations[ifc_class]
        at = {attribute.name(): i for i, attribute in enumerate(entity.all_attributes())}
        lineage = set()
        while entity is not None:
            lineage.add(entity.name())
            entity = entity.supertype()
        layout = self[ifc_class] = Layout(at, frozenset(lineage))
        return layout


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
