"""IFC models made for the tests, through IfcOpenShell's own API."""

from pathlib import Path

import ifcopenshell
import ifcopenshell.api.aggregate
import ifcopenshell.api.context
import ifcopenshell.api.feature
import ifcopenshell.api.geometry
import ifcopenshell.api.material
import ifcopenshell.api.owner
import ifcopenshell.api.project
import ifcopenshell.api.pset
import ifcopenshell.api.root
import ifcopenshell.api.spatial
import ifcopenshell.api.system
import ifcopenshell.api.type
import ifcopenshell.api.unit
import ifcopenshell.guid
import numpy as np

UNITS = {"millimetre": 0.001, "metre": 1.0, "foot": 0.3048}


class Builder:
    """A small building: project, site, building, one storey. Sizes are given in metres."""

    def __init__(self, schema: str = "IFC4", unit: str = "metre") -> None:
        self.model = model = ifcopenshell.api.project.create_file(version=schema)
        self.scale = 1 / UNITS[unit]
        create = ifcopenshell.api.root.create_entity
        if schema == "IFC2X3":  # every object of this schema needs an owner
            person = ifcopenshell.api.owner.add_person(model)
            organisation = ifcopenshell.api.owner.add_organisation(model)
            ifcopenshell.api.owner.add_person_and_organisation(
                model, person=person, organisation=organisation
            )
            ifcopenshell.api.owner.add_application(model)
        self.project = create(model, ifc_class="IfcProject", name="Test")
        if unit == "foot":
            length = ifcopenshell.api.unit.add_conversion_based_unit(model, name="foot")
        else:
            prefix = "MILLI" if unit == "millimetre" else None
            length = ifcopenshell.api.unit.add_si_unit(model, unit_type="LENGTHUNIT", prefix=prefix)
        ifcopenshell.api.unit.assign_unit(model, units=[length])
        context = ifcopenshell.api.context.add_context(model, context_type="Model")
        self.body = ifcopenshell.api.context.add_context(
            model,
            context_type="Model",
            context_identifier="Body",
            target_view="MODEL_VIEW",
            parent=context,
        )
        self.site = create(model, ifc_class="IfcSite", name="Site")
        self.building = create(model, ifc_class="IfcBuilding", name="House")
        self.storey = create(model, ifc_class="IfcBuildingStorey", name="Ground floor")
        for parent, child in (
            (self.project, self.site),
            (self.site, self.building),
            (self.building, self.storey),
        ):
            ifcopenshell.api.aggregate.assign_object(
                model, products=[child], relating_object=parent
            )

    def point(self, *at: float):
        return self.model.create_entity(
            "IfcCartesianPoint", Coordinates=[float(value * self.scale) for value in at]
        )

    def box(self, low, size):
        """An extruded rectangle whose lowest corner is `low`."""
        model = self.model
        profile = model.create_entity(
            "IfcRectangleProfileDef",
            ProfileType="AREA",
            Position=model.create_entity(
                "IfcAxis2Placement2D", Location=self.point(size[0] / 2, size[1] / 2)
            ),
            XDim=float(size[0] * self.scale),
            YDim=float(size[1] * self.scale),
        )
        return model.create_entity(
            "IfcExtrudedAreaSolid",
            SweptArea=profile,
            Position=model.create_entity("IfcAxis2Placement3D", Location=self.point(*low)),
            ExtrudedDirection=model.create_entity("IfcDirection", DirectionRatios=(0.0, 0.0, 1.0)),
            Depth=float(size[2] * self.scale),
        )

    def shape(self, items, kind="SweptSolid", identifier="Body"):
        return self.model.create_entity(
            "IfcShapeRepresentation",
            ContextOfItems=self.body,
            RepresentationIdentifier=identifier,
            RepresentationType=kind,
            Items=items,
        )

    def add(self, ifc_class, name, items, *, kind="SweptSolid", at=(0.0, 0.0, 0.0)):
        """Add a product in the storey."""
        product = ifcopenshell.api.root.create_entity(self.model, ifc_class=ifc_class, name=name)
        matrix = np.eye(4)
        matrix[:3, 3] = at
        ifcopenshell.api.geometry.edit_object_placement(
            self.model, product=product, matrix=matrix, is_si=True
        )
        if items is not None:
            ifcopenshell.api.geometry.assign_representation(
                self.model, product=product, representation=self.shape(items, kind)
            )
        if product.is_a("IfcElement") and not product.is_a("IfcFeatureElement"):
            ifcopenshell.api.spatial.assign_container(
                self.model, products=[product], relating_structure=self.storey
            )
        return product

    def storey_at(self, name, elevation):
        """Add a storey, in which products are from now on."""
        self.storey = ifcopenshell.api.root.create_entity(
            self.model, ifc_class="IfcBuildingStorey", name=name
        )
        self.storey.Elevation = elevation * self.scale
        matrix = np.eye(4)
        matrix[2, 3] = elevation
        ifcopenshell.api.geometry.edit_object_placement(
            self.model, product=self.storey, matrix=matrix, is_si=True
        )
        ifcopenshell.api.aggregate.assign_object(
            self.model, products=[self.storey], relating_object=self.building
        )

    def wall_with_window(self):
        """A wall of 4 x 0.2 x 3 m with a hole of 1 x 1 m: 2.4 - 0.2 = 2.2 m3."""
        wall = self.add("IfcWall", "Wall", [self.box((0, 0, 0), (4, 0.2, 3))])
        opening = self.add("IfcOpeningElement", "Hole", [self.box((1, -0.1, 1), (1, 0.4, 1))])
        ifcopenshell.api.feature.add_feature(self.model, feature=opening, element=wall)
        window = self.add("IfcWindow", "Window", [self.box((1, 0.05, 1), (1, 0.1, 1))])
        ifcopenshell.api.feature.add_filling(self.model, opening=opening, element=window)
        return wall, opening, window

    def boxes(self, count):
        """`count` walls in a row, a metre apart, 0.5 m wide."""
        return [
            self.add("IfcWall", f"Wall {i}", [self.box((i, 0, 0), (0.5, 0.5, 0.5))])
            for i in range(count)
        ]

    def write(self, path: Path) -> Path:
        self.model.write(str(path))
        return path


def mapped_boxes(builder, count, scale=(1.0, 1.0, 1.0)):
    """Furniture that is one box, mapped several times a metre apart."""
    model = builder.model
    origin = model.create_entity("IfcAxis2Placement3D", Location=builder.point(0, 0, 0))
    source = model.create_entity(
        "IfcRepresentationMap",
        MappingOrigin=origin,
        MappedRepresentation=builder.shape([builder.box((0, 0, 0), (0.5, 0.25, 1))]),
    )
    target = model.create_entity(
        "IfcCartesianTransformationOperator3DnonUniform",
        LocalOrigin=builder.point(0, 0, 0),
        Scale=scale[0],
        Scale2=scale[1],
        Scale3=scale[2],
    )
    return [
        builder.add(
            "IfcFurniture",
            f"Box {i}",
            [model.create_entity("IfcMappedItem", MappingSource=source, MappingTarget=target)],
            kind="MappedRepresentation",
            at=(i, 0, 0),
        )
        for i in range(count)
    ]
