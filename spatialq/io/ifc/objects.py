"""The objects of an IFC model, with or without geometry: attributes, type, place."""

import json
import math
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from spatialq.io.ifc.attributes import AttributeReader
from spatialq.io.ifc.columns import Columns, by_column
from spatialq.io.ifc.entities import text
from spatialq.io.ifc.layouts import Layouts
from spatialq.io.ifc.relations import Relations

USER_DEFINED = ("ObjectType", "ElementType", "ProcessType", "ResourceType")
"""What says the type of a USERDEFINED object or type; each class has one of them at most."""


def read_objects(
    model: Any,
    layouts: Layouts,
    relations: Relations,
    *,
    materials: dict[int, str],
    metres: float,
) -> Columns:
    """Read every IfcObjectDefinition of an open model.

    Parameters
    ----------
    model : ifcopenshell.file
    layouts : Layouts
        Of its schema.
    relations : Relations
    materials : dict from int to str
        The names of the materials of each object and type, by step id.
    metres : float
        The unit of length.

    Returns
    -------
    dict of lists
        The columns of the table of objects, without `spatialq.io.ifc.columns.ADDED`.
    """
    objects = model.by_type("IfcObjectDefinition")
    storeys = below(objects, ("IfcBuildingStorey",), layouts, relations)
    buildings = below(objects, ("IfcBuilding", "IfcFacility"), layouts, relations)
    reader = AttributeReader(layouts)
    predefined = PredefinedTypes(model, reader)
    rows = []
    for entity in objects:
        step_id, ifc_class = entity.id(), entity.is_a()
        layout = layouts[ifc_class]
        attributes = reader.read(entity)
        kind = relations.types.get(step_id)
        type_id, _, type_name = relations.label(kind)
        storey_id, _, storey = relations.label(storeys.get(step_id))
        shape = layout.at.get("Representation")
        is_storey = ifc_class == "IfcBuildingStorey"
        rows.append(
            {
                "global_id": text(entity.get_argument(0)),
                "ifc_class": ifc_class,
                "name": text(attributes.get("Name")),
                "description": text(attributes.get("Description")),
                "object_type": text(attributes.get("ObjectType")),
                "predefined_type": predefined.of(attributes, kind),
                "tag": text(attributes.get("Tag")),
                "long_name": text(attributes.get("LongName")),
                "type_id": type_id,
                "type_name": type_name,
                "container_id": relations.label(relations.containers.get(step_id))[0],
                "parent_id": relations.label(relations.parents.get(step_id))[0],
                "storey_id": storey_id,
                "storey": storey,
                "building": relations.label(buildings.get(step_id))[2],
                "material": materials.get(step_id) or materials.get(kind or 0),
                "elevation": elevation(entity, attributes, metres) if is_storey else None,
                "attributes": json.dumps(attributes, ensure_ascii=False),
                "has_geometry": shape is not None and entity.get_argument(shape) is not None,
                "ifc_schema": model.schema_identifier,
                "step_id": step_id,
            }
        )
    return by_column("objects", rows)


class PredefinedTypes:
    """Finds the predefined type of objects, which may stand at their types.

    Parameters
    ----------
    model : ifcopenshell.file
    reader : AttributeReader
    """

    def __init__(self, model: Any, reader: AttributeReader) -> None:
        self.model = model
        self.reader = reader
        self._of_types: dict[int, str | None] = {}

    def of(self, attributes: dict[str, Any], kind: int | None) -> str | None:
        """Give that of the type, unless it says nothing, else the object's own."""
        if kind is not None:
            if kind not in self._of_types:
                self._of_types[kind] = own_type(self.reader.read(self.model.by_id(kind)))
            found = self._of_types[kind]
            if found and found != "NOTDEFINED":
                return found
        return own_type(attributes)


def own_type(attributes: dict[str, Any]) -> str | None:
    """Give the predefined type of an object or type itself, as text if USERDEFINED or missing."""
    found = text(attributes.get("PredefinedType"))
    if found and found != "USERDEFINED":
        return found
    return next((text(attributes[name]) for name in USER_DEFINED if name in attributes), None)


def below(
    objects: Iterable[Any], ifc_classes: tuple[str, ...], layouts: Layouts, relations: Relations
) -> dict[int, int]:
    """Find the nearest object of some classes above each object.

    Returns
    -------
    dict from int to int
        Step ids; what has none above it is missing. The way goes from an element to what contains
        it, else to its whole.
    """
    parts = defaultdict(list)
    for part, whole in (relations.parents | relations.containers).items():
        parts[whole].append(part)
    wanted = set(ifc_classes)
    tops = {each.id() for each in objects if not wanted.isdisjoint(layouts[each.is_a()].lineage)}
    found: dict[int, int] = {}
    pending = deque((top, top) for top in tops)
    while pending:
        whole, top = pending.popleft()
        for part in parts[whole]:
            if part not in found:  # broken files hold circles
                found[part] = top
                if part not in tops:
                    pending.append((part, top))
    return found


def elevation(storey: Any, attributes: dict[str, Any], metres: float) -> float | None:
    """Give the height of a storey in metres: that of its placement, else its Elevation."""
    try:
        height = placed_height(storey.ObjectPlacement)
    except Exception:  # whatever a broken placement holds
        height = None
    if height is None:
        height = attributes.get("Elevation")
    if not isinstance(height, (int, float)) or not math.isfinite(height):
        return None
    return height * metres


def placed_height(placement: Any) -> float | None:
    """Give the z of a placement's origin in the model's coordinates, in the unit of the file.

    Raises
    ------
    Exception
        Of any class, if the placement is broken or not made of IfcLocalPlacement.
    """
    from ifcopenshell.util.placement import a2p

    if placement is None:
        return None
    matrix = np.eye(4)
    seen = set()
    while placement is not None:
        if placement.id() in seen:
            message = "the placement is relative to itself"
            raise ValueError(message)
        seen.add(placement.id())
        axes = placement.RelativePlacement
        z = axes.Axis.DirectionRatios if axes.Axis is not None else (0, 0, 1)
        x = axes.RefDirection.DirectionRatios if axes.RefDirection is not None else (1, 0, 0)
        matrix = a2p(axes.Location.Coordinates, z, x) @ matrix
        placement = placement.PlacementRelTo
    return float(matrix[2, 3])
