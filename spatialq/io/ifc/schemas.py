"""The classes of the IFC schemas: what is a subtype of what, and what classes declare.

From `schemas.json`, and `schemas_property_sets.json` for the standard property sets, without
IfcOpenShell, which takes a third of a second to import.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path

RENAMED = {
    "IfcBuildingElement": "IfcBuiltElement",
    "IfcBuildingElementType": "IfcBuiltElementType",
}
"""Classes that IFC4X3 has under another name."""

OTHER_NAMES = RENAMED | {new: old for old, new in RENAMED.items()}


@dataclass(frozen=True)
class Declared:
    """What a schema says of one class itself; the rest it has from its supertype.

    Parameters
    ----------
    supertype : str or None
    attributes : dict from str to str
        Of IfcRoot and its subtypes; empty for other classes. What each holds: 'text', 'truth',
        'number', 'length', 'angle', 'object' for one or several with a GlobalId, or '' for all
        else, such as lists and what may be of several types.
    inverse : dict from str to (str, str)
        Inverse attributes: the class of the relationship, and its attribute that names the object.
    """

    supertype: str | None
    attributes: dict[str, str]
    inverse: dict[str, tuple[str, str]]


class Schema(dict[str, Declared]):
    """All classes of a schema by name."""

    def lineage(self, ifc_class: str) -> Iterator[str]:
        """Give a class and its supertypes, from the class up; nothing if the schema lacks it."""
        above: str | None = ifc_class if ifc_class in self else None
        while above is not None:
            yield above
            above = self[above].supertype

    @cached_property
    def subtypes(self) -> dict[str, set[str]]:
        """Each class with itself and its subtypes."""
        found: dict[str, set[str]] = {name: set() for name in self}
        for name in self:
            for above in self.lineage(name):
                found[above].add(name)
        return found


@cache
def schemas() -> dict[str, Schema]:
    """Read what is known of IFC2X3, IFC4 and IFC4X3_ADD2."""
    text = Path(__file__).with_name("schemas.json").read_text(encoding="utf-8")
    return {
        name: Schema(
            {
                ifc_class: Declared(
                    facts.get("of"),
                    facts.get("attributes", {}),
                    {key: (kind, end) for key, (kind, end) in facts.get("inverse", {}).items()},
                )
                for ifc_class, facts in classes.items()
            }
        )
        for name, classes in json.loads(text).items()
    }


@cache
def property_sets() -> dict[str, list[str]]:
    """Read the names of buildingSMART's property and quantity sets, and of their properties.

    The sets of all schemas together: a rule for models of one schema is no error in another one.
    """
    path = Path(__file__).with_name("schemas_property_sets.json")
    found: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def lineage() -> list[tuple[str, ...]]:
    """List every class with itself and all of its supertypes: the rows of `columns.LINEAGE`."""
    return [
        (ifc_class, supertype, name)
        for name, schema in schemas().items()
        for ifc_class in schema
        for supertype in schema.lineage(ifc_class)
    ]


def inverse_attributes() -> list[tuple[str, ...]]:
    """List the inverse attributes of all classes: the rows of `columns.INVERSE_ATTRIBUTES`."""
    return [
        (name, ifc_class, attribute, *forward)
        for name, schema in schemas().items()
        for ifc_class, declared in schema.items()
        for attribute, forward in declared.inverse.items()
    ]


@cache
def subtypes(supertype: str, ifc_schema: str | None = None) -> frozenset[str]:
    """Give the classes that are a supertype or one of its subtypes.

    Parameters
    ----------
    supertype : str
        Its name in any of the schemas, in any case.
    ifc_schema : str, optional
        Classes of this schema are subtypes if it says so, and classes that it lacks, if another
        schema does. A supertype that it lacks is understood by its other name (IfcBuiltElement is
        IfcBuildingElement), else as the other schemas have it. Without a schema all that any
        schema calls a subtype.

    Raises
    ------
    ValueError
        If no schema has such a class, or there is no such schema; with the near names.
    """
    top = known_class("is_a", "supertype", supertype)
    names = {top, OTHER_NAMES.get(top, top)}
    anywhere = frozenset[str]().union(
        *(schema.subtypes[name] for schema in schemas().values() for name in names & schema.keys())
    )
    if ifc_schema is None:
        return anywhere
    schema = schemas()[known_schema("is_a", ifc_schema)]
    own = {top} if top in schema else names & schema.keys()
    if not own:
        return anywhere
    return anywhere.difference(schema) | schema.subtypes[own.pop()]


@cache
def subtypes_differ(supertype: str) -> bool:
    """Tell whether the schemas have different subtypes of a class."""
    return len({subtypes(supertype, name) for name in (None, *schemas())}) > 1


@cache
def class_names() -> dict[str, str]:
    """Give the names of all classes of all schemas by their names in lower case."""
    return {name.lower(): name for schema in schemas().values() for name in schema}


@cache
def object_attributes() -> dict[str, frozenset[str]]:
    """Give the attributes that objects and types of any schema have, and what they hold there."""
    found: dict[str, set[str]] = {}
    for name, schema in schemas().items():
        objects = subtypes("IfcObjectDefinition", name) & schema.keys()
        for ifc_class in {above for each in objects for above in schema.lineage(each)}:
            for attribute, kind in schema[ifc_class].attributes.items():
                found.setdefault(attribute, set()).add(kind)
    return {attribute: frozenset(kinds) for attribute, kinds in found.items()}


@cache
def attributes_of(supertype: str) -> frozenset[str]:
    """Give the names of the attributes that a class and its subtypes have in any schema."""
    return frozenset(
        attribute
        for name, schema in schemas().items()
        for ifc_class in subtypes(supertype, name) & schema.keys()
        for above in schema.lineage(ifc_class)
        for attribute in schema[above].attributes
    )


@cache
def inverse_of_objects() -> dict[str, list[str]]:
    """Give the inverse attributes of objects and types, each with its classes of relationships."""
    found: dict[str, set[str]] = {}
    for schema in schemas().values():
        objects = subtypes("IfcObjectDefinition") & schema.keys()
        for ifc_class in {above for name in objects for above in schema.lineage(name)}:
            for attribute, (relation, _) in schema[ifc_class].inverse.items():
                found.setdefault(attribute, set()).add(relation)
    return {attribute: sorted(relations) for attribute, relations in found.items()}


def known_class(caller: str, argument: str, name: str) -> str:
    """Give the name of a class as IFC writes it.

    Raises
    ------
    ValueError
        If no schema has it; the sentence names the near ones.
    """
    known = class_names()
    if name.lower() not in known:
        near = [known[each] for each in near_names(name.lower(), known)]
        hint = f"near names are {', '.join(near)}" if near else "such as 'IfcWall'"
        message = (
            f"{caller}: {argument} must be a class of {', '.join(schemas())}, got {name!r}; {hint}"
        )
        raise ValueError(message)
    return known[name.lower()]


def known_schema(caller: str, name: str) -> str:
    """Give the name of a schema as files have it; 'IFC4X3' is enough for IFC4X3_ADD2.

    Raises
    ------
    ValueError
        If there is none.
    """
    found = [known for known in schemas() if name.upper() in (known, known.removesuffix("_ADD2"))]
    if not found:
        message = f"{caller}: ifc_schema must be one of {', '.join(schemas())}, got {name!r}"
        raise ValueError(message)
    return found[0]


def near_names(name: str, known: Collection[str]) -> list[str]:
    """Give those of the known names that someone who wrote `name` may have meant."""
    return get_close_matches(name, known, n=3)
