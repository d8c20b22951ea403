"""What an IFC file says beside geometry: objects, relations, where in the world it is.

Runs in the worker process (`spatialq.io.ifc.worker`) and gives plain lists and dictionaries, a
list a column, which travel as JSON.
"""

from typing import Any

from spatialq.io.ifc.classifications import read_classifications
from spatialq.io.ifc.columns import by_column
from spatialq.io.ifc.layouts import Layouts
from spatialq.io.ifc.materials import material_names, read_materials
from spatialq.io.ifc.objects import read_objects
from spatialq.io.ifc.project import georeference, project
from spatialq.io.ifc.properties import PropertyReader
from spatialq.io.ifc.relations import read_relations


def describe(model: Any) -> dict[str, Any]:
    """Give the facts of an open model.

    Parameters
    ----------
    model : ifcopenshell.file

    Returns
    -------
    dict
        ``schema``, ``entities`` (how many were parsed), ``length_unit`` and
        ``length_unit_metres`` (None when the file does not say), ``georeference`` (a dict or
        None), ``products``: the rows of the table of objects that have a representation,
        ``properties``: see `PropertyReader.packed`, and ``tables``: the columns of the others by
        name, see `spatialq.io.ifc.columns`; ``objects`` without those that follow from
        ``properties``.
    """
    layouts = Layouts(model.schema_identifier)
    relations = read_relations(model, layouts)
    reader = PropertyReader(model, relations.types)
    place = georeference(model, reader)
    about = project(model, reader.units.get("LENGTHUNIT"), place)
    metres = about["length_unit_metres"] or 1.0
    objects = read_objects(
        model,
        layouts,
        relations,
        materials=material_names(model),
        metres=metres,
    )
    return {
        "schema": about["ifc_schema"],
        "entities": len(model.entity_names()),
        "length_unit": about["length_unit"],
        "length_unit_metres": about["length_unit_metres"],
        "georeference": place,
        "products": [row for row, drawn in enumerate(objects["has_geometry"]) if drawn],
        "properties": reader.packed(),
        "tables": {
            "objects": objects,
            "relations": relations.columns,
            "materials": read_materials(model, relations.types, metres),
            "classifications": read_classifications(model, relations.types),
            "models": by_column("models", [about]),
        },
    }
