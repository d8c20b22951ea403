"""Models that are moved and turned by editing the placements in their files."""

import math
import zipfile

import ifcopenshell
import ifcopenshell.util.placement
import ifcopenshell.util.unit
import numpy as np


def opened(path):
    """Open an .ifc or .ifczip."""
    if path.suffix != ".ifczip":
        return ifcopenshell.open(path)
    with zipfile.ZipFile(path) as archive:
        (name,) = (each for each in archive.namelist() if each.lower().endswith(".ifc"))
        return ifcopenshell.file.from_string(archive.read(name).decode("latin-1"))


def moved(source, target, shift, degrees=0.0):
    """Write a copy of a model that is turned about the z-axis and then moved, in metres."""
    model = opened(source)
    unit = ifcopenshell.util.unit.calculate_unit_scale(model)
    angle = math.radians(degrees)
    motion = np.eye(4)
    motion[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    motion[:3, 3] = np.array(shift) / unit
    for placement in model.by_type("IfcLocalPlacement"):
        if placement.PlacementRelTo is None:
            matrix = motion @ ifcopenshell.util.placement.get_local_placement(placement)
            place = model.create_entity("IfcCartesianPoint", matrix[:3, 3].tolist())
            z, x = (
                model.create_entity("IfcDirection", matrix[:3, column].tolist())
                for column in (2, 0)
            )
            placement.RelativePlacement = model.create_entity("IfcAxis2Placement3D", place, z, x)
    model.write(str(target))
    return target
