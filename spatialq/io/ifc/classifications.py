"""Classification references of the objects and types of an IFC model."""

from typing import Any

from spatialq.io.ifc.columns import CLASSIFICATIONS, Columns, by_column
from spatialq.io.ifc.entities import attribute, entities, text

Reference = tuple[int, dict[str, Any]]
"""The step id of the system, 0 where there is none, and a row without what it belongs to."""

IDENTIFICATIONS = "ItemReference", "Identification"
"""What IFC2x3 and the later schemas call the key of a reference."""


def read_classifications(model: Any, types: dict[int, int]) -> Columns:
    """Give the classification references of objects and types, as columns.

    Parameters
    ----------
    model : ifcopenshell.file
    types : dict from int to int
        The type of each typed object, by step id. An object has the references of its type, but
        not those of a system in which it has one of its own.
    """
    rows = []
    references = associated(model)
    for owner in model.by_type("IfcObjectDefinition"):
        own = references.get(owner.id(), [])
        systems = {system for system, _ in own}
        of_type = references.get(types.get(owner.id(), 0), [])
        inherited = [reference for reference in of_type if reference[0] not in systems]
        for source, found in (("instance", own), ("type", inherited)):
            whose = {"global_id": text(owner.get_argument(0)), "source": source}
            rows += [reference | whose for _, reference in found]
    return by_column("classifications", rows)


def associated(model: Any) -> dict[int, list[Reference]]:
    """Find the references of each object and type, by step id, each once."""
    found: dict[int, dict[int, Reference]] = {}
    known: dict[int, Reference] = {}
    for relation in model.by_type("IfcRelAssociatesClassification"):
        for reference in entities(relation.get_argument(5)):
            key = reference.id()
            if key not in known:
                known[key] = described(reference)
            for related in entities(relation.get_argument(4)):
                found.setdefault(related.id(), {})[key] = known[key]
    return {step_id: list(each.values()) for step_id, each in found.items()}


def described(reference: Any) -> Reference:
    """Describe an IfcClassificationReference, a notation of IFC2x3, or a whole IfcClassification.

    The identification of a notation is the values of its facets, joined by full stops.
    """
    system = system_of(reference)
    row: dict[str, Any] = dict.fromkeys(CLASSIFICATIONS)
    if system is not None:
        row["system"] = text(attribute(system, "Name"))
    if reference.is_a("IfcClassificationNotation"):
        facets = entities(attribute(reference, "NotationFacets"))
        values = (text(attribute(facet, "NotationValue")) for facet in facets)
        row["identification"] = ".".join(filter(None, values))
    elif not reference.is_a("IfcClassification"):
        keys = (attribute(reference, each) for each in IDENTIFICATIONS)
        row["identification"] = next((text(key) for key in keys if key is not None), None)
        row["name"] = text(attribute(reference, "Name"))
        row["location"] = text(attribute(reference, "Location"))
    return 0 if system is None else system.id(), row


def system_of(reference: Any) -> Any:
    """Find the IfcClassification above a reference; None if there is none."""
    seen = set()
    while reference.id() not in seen:  # damaged files hold circles
        if reference.is_a("IfcClassification"):
            return reference
        seen.add(reference.id())
        for above in entities(attribute(reference, "ReferencedSource")):
            reference = above
    return None
