"""Where the entities of IFC classes have their attributes, as IfcOpenShell knows it.

For processes that have IfcOpenShell open; `spatialq.io.ifc.schemas` answers without it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

ELSEWHERE = {"GlobalId", "OwnerHistory", "ObjectPlacement", "Representation", "RepresentationMaps"}
"""Attributes that are columns of their own, or geometry."""


@dataclass(frozen=True)
class Layout:
    """Where the entities of a class have their attributes.

    Parameters
    ----------
    at : dict from str to int
        The position of each attribute, in the order of the schema.
    optional : frozenset of str
        The attributes that need not be set.
    lineage : tuple of str
        The class and all its supertypes, upwards.
    """

    at: dict[str, int]
    optional: frozenset[str]
    lineage: tuple[str, ...]

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
        attributes = entity.all_attributes()
        at = {attribute.name(): i for i, attribute in enumerate(attributes)}
        optional = frozenset(each.name() for each in attributes if each.optional())
        lineage = []
        while entity is not None:
            lineage.append(entity.name())
            entity = entity.supertype()
        layout = self[ifc_class] = Layout(at, optional, tuple(lineage))
        return layout
