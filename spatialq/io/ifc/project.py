"""What an IFC file says about the model as a whole: its name, units, true north, map conversion."""

import math
from typing import Any

from spatialq.io.ifc.columns import GEOREFERENCE
from spatialq.io.ifc.entities import attribute, entities, number, text
from spatialq.io.ifc.properties import PropertyReader
from spatialq.io.ifc.units import metres, unit_name


def project(model: Any, length: Any, place: dict[str, Any] | None) -> dict[str, Any]:
    """Describe the model itself: the one row of the table of models.

    Parameters
    ----------
    model : ifcopenshell.file
    length : entity or None
        The project's unit of length.
    place : dict or None
        See `georeference`.
    """
    return {
        "name": next((text(each.Name) for each in model.by_type("IfcProject")), None),
        "ifc_schema": model.schema_identifier,
        "length_unit": unit_name(length) if length is not None else None,
        "length_unit_metres": metres(length),
        "true_north": true_north(model),
        **(place or dict.fromkeys(GEOREFERENCE)),
    }


def true_north(model: Any) -> float | None:
    """Give the angle from +Y to true north in degrees, clockwise seen from above.

    It is that of the first context that has one, and None where the file does not say.
    """
    for context in model.by_type("IfcGeometricRepresentationContext", include_subtypes=False):
        for direction in entities(context.TrueNorth):
            ratios = list(map(number, attribute(direction, "DirectionRatios") or ()))
            x, y = ratios[:2] if len(ratios) >= 2 else (None, None)
            if x is not None and y is not None and (x or y):
                # + 0.0: an x of -0.0 is no other direction than 0.0
                return math.degrees(math.atan2(x + 0.0, y))
    return None


def georeference(model: Any, reader: PropertyReader) -> dict[str, Any] | None:
    """Read where the model's origin lies on the map; the meshes are not moved there.

    IFC4 and later say it in IfcMapConversion and IfcProjectedCRS, IFC2x3 by convention in the
    property sets ePSet_MapConversion and ePSet_ProjectedCRS of the project or site.
    """
    keys = {
        "eastings": "Eastings",
        "northings": "Northings",
        "orthogonal_height": "OrthogonalHeight",
        "x_axis_abscissa": "XAxisAbscissa",
        "x_axis_ordinate": "XAxisOrdinate",
        "scale": "Scale",
    }
    if model.schema != "IFC2X3":
        for conversion in model.by_type("IfcMapConversion"):
            found: dict[str, Any] = {
                key: number(attribute(conversion, name)) for key, name in keys.items()
            }
            found |= {"crs_name": None, "map_unit": None}
            for crs in entities(conversion.TargetCRS):
                found["crs_name"] = text(attribute(crs, "Name"))
                for unit in entities(attribute(crs, "MapUnit")):
                    found["map_unit"] = unit_name(unit)
            return found
        return None
    for owner in (*model.by_type("IfcProject"), *model.by_type("IfcSite")):
        sets = {name.lower(): values for name, values in reader.of(owner.id()).items()}
        conversion = sets.get("epset_mapconversion")
        if conversion is not None:
            crs = sets.get("epset_projectedcrs", {})
            found = {key: written_number(conversion.get(name)) for key, name in keys.items()}
            return found | {"crs_name": text(crs.get("Name")), "map_unit": text(crs.get("MapUnit"))}
    return None


def written_number(value: Any) -> float | None:
    """Give a number, which may be text in the property sets of IFC2x3 files."""
    try:
        return number(float(value))
    except (TypeError, ValueError):
        return None
