"""A coordinated IFC file: elements of several models as meshes, each with a colour of its own.

What models are written in, their schemas, units, contexts and ways to describe a shape, may differ;
here all is IFC4, metres and triangles.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.export.atomic import whole
from spatialq.export.bcf import NAMES
from spatialq.export.coordinated import Element

SCHEMA = "IFC4"
PROXY = "IfcBuildingElementProxy"
"""What an element is whose class the schema does not have, or not for elements of a storey."""
CASES = ("StandardCase", "ElementedCase")
"""Endings of classes whose elements must have layers or parts, which are not here."""
DATE = "2000-01-01T00:00:00"
"""In the header: the time of writing would make other bytes each time."""
DIGITS = 3
"""Of the place of an element, metres; its mesh is exact."""
LONGEST = 255
"""Characters of an IfcLabel."""


def write_coordinated_ifc(path: Path, elements: Iterable[Element], title: str) -> None:
    """Write elements as an `.ifc` or `.ifczip` file; the same elements give the same bytes.

    Parameters
    ----------
    path : Path
    elements : iterable of Element
    title : str
        Name of the project and of its site, such as 'Clashes'.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    from spatialq.export.ifc_part import step_text

    model = _Model(title)
    for each in elements:
        model.add(each)
    model.finish()
    with whole(path) as partial, step_text(str(partial)) as text:
        text.write(model.file.to_string())


def guid_of(*key: str) -> str:
    """Make a GlobalId of texts."""
    import ifcopenshell.guid

    return str(ifcopenshell.guid.compress(uuid.uuid5(NAMES, "\n".join(("ifc", *key))).hex))


@cache
def class_of(ifc_class: str) -> str:
    """Give the class if elements of a storey can have it, else that of a proxy."""
    from ifcopenshell import ifcopenshell_wrapper as wrapper

    for ending in CASES:
        ifc_class = ifc_class.removesuffix(ending)
    try:
        found = wrapper.schema_by_name(SCHEMA).declaration_by_name(ifc_class).as_entity()
    except RuntimeError:  # no such class
        return PROXY
    above, each = set(), found
    while each is not None:
        above.add(each.name())
        each = each.supertype()
    is_placed = "IfcElement" in above and "IfcFeatureElement" not in above
    return PROXY if found is None or found.is_abstract() or not is_placed else ifc_class


class _Model:
    """The file while it is put together."""

    def __init__(self, title: str) -> None:
        import ifcopenshell

        self.file: Any = ifcopenshell.file(schema=SCHEMA)
        header = self.file.header.file_name
        header.name, header.time_stamp = f"{title.lower()}.ifc", DATE
        origin = self._point((0.0, 0.0, 0.0))
        self.axes: Any = self.file.create_entity("IfcAxis2Placement3D", origin)
        whole_model = self.file.create_entity(
            "IfcGeometricRepresentationContext", None, "Model", 3, 1e-5, self.axes
        )
        self.body = self.file.create_entity(
            "IfcGeometricRepresentationSubContext", "Body", "Model",
            ParentContext=whole_model, TargetView="MODEL_VIEW",
        )  # fmt: skip
        units = [
            self.file.create_entity("IfcSIUnit", UnitType=kind, Name=name)
            for kind, name in (
                ("LENGTHUNIT", "METRE"), ("AREAUNIT", "SQUARE_METRE"),
                ("VOLUMEUNIT", "CUBIC_METRE"), ("PLANEANGLEUNIT", "RADIAN"),
            )
        ]  # fmt: skip
        self.project = self._root(
            "IfcProject", ("project",), Name=title, RepresentationContexts=[whole_model],
            UnitsInContext=self.file.create_entity("IfcUnitAssignment", units),
        )  # fmt: skip
        self.site = self._root(
            "IfcSite", ("site",), Name=title, ObjectPlacement=self._placement(self.axes)
        )
        self.buildings: dict[str, Any] = {}
        self.storeys: dict[tuple[str, str], Any] = {}
        self.contents: dict[Any, list[Any]] = {}
        self.styles: dict[tuple[int, int, int], Any] = {}

    def add(self, element: Element) -> None:
        """Add an element in its storey."""
        at = np.round(element.vertices.min(axis=0), DIGITS)
        points = self.file.create_entity(
            "IfcCartesianPointList3D", (element.vertices - at).tolist()
        )
        shape = self.file.create_entity(
            "IfcTriangulatedFaceSet", Coordinates=points, Closed=element.is_closed,
            CoordIndex=(element.faces + 1).tolist(),
        )  # fmt: skip
        style = self._style(element.colour, element.colour_name)
        self.file.create_entity("IfcStyledItem", shape, [style])
        form = self.file.create_entity(
            "IfcShapeRepresentation", self.body, "Body", "Tessellation", [shape]
        )
        placed = self.file.create_entity("IfcAxis2Placement3D", self._point(at.tolist()))
        ifc_class = class_of(element.ifc_class)
        product = self._root(
            ifc_class, None, GlobalId=element.global_id, Name=element.name,
            Description=element.description, ObjectPlacement=self._placement(placed),
            ObjectType=element.ifc_class if ifc_class == PROXY != element.ifc_class else None,
            Representation=self.file.create_entity(
                "IfcProductDefinitionShape", Representations=[form]
            ),
        )  # fmt: skip
        self.contents.setdefault(self._container(element), []).append(product)
        for name, values in element.properties.items():
            self._property_set(product, name, values)

    def finish(self) -> None:
        """Add the relationships."""
        self._aggregate(self.project, [self.site])
        self._aggregate(self.site, list(self.buildings.values()))
        for name, building in self.buildings.items():
            own = [storey for (model, _), storey in self.storeys.items() if model == name]
            self._aggregate(building, own)
        for place, products in self.contents.items():
            self._root(
                "IfcRelContainedInSpatialStructure", ("contents", place.GlobalId),
                RelatedElements=products, RelatingStructure=place,
            )  # fmt: skip

    def _root(self, ifc_class: str, key: tuple[str, ...] | None, **attributes: Any) -> Any:
        """Make an entity with a GlobalId, which is made of a key unless it is given."""
        ids = {} if key is None else {"GlobalId": guid_of(*key)}
        given = {name: value for name, value in attributes.items() if value is not None}
        return self.file.create_entity(ifc_class, **ids, **given)

    def _point(self, at: Sequence[float]) -> Any:
        return self.file.create_entity("IfcCartesianPoint", tuple(at))

    def _placement(self, axes: Any) -> Any:
        return self.file.create_entity("IfcLocalPlacement", RelativePlacement=axes)

    def _container(self, element: Element) -> Any:
        """Give the storey of an element, or the building of its model if it has none."""
        model = element.model
        if model not in self.buildings:
            self.buildings[model] = self._root(
                "IfcBuilding", ("building", model), Name=model,
                ObjectPlacement=self._placement(self.axes),
            )  # fmt: skip
        if not element.storey:
            return self.buildings[model]
        key = (model, element.storey)
        if key not in self.storeys:
            self.storeys[key] = self._root(
                "IfcBuildingStorey", ("storey", *key), Name=element.storey,
                ObjectPlacement=self._placement(self.axes),
            )  # fmt: skip
        return self.storeys[key]

    def _style(self, colour: tuple[int, int, int], name: str) -> Any:
        if colour not in self.styles:
            channels = (None, *(each / 255 for each in colour))
            shading = self.file.create_entity(
                "IfcSurfaceStyleRendering",
                SurfaceColour=self.file.create_entity("IfcColourRgb", *channels),
                Transparency=0.0, ReflectanceMethod="FLAT",
            )  # fmt: skip
            self.styles[colour] = self.file.create_entity(
                "IfcSurfaceStyle", name, "BOTH", [shading]
            )
        return self.styles[colour]

    def _property_set(self, product: Any, name: str, values: Mapping[str, Any]) -> None:
        properties = [
            self.file.create_entity("IfcPropertySingleValue", Name=key, NominalValue=wrapped)
            for key, value in values.items()
            if (wrapped := self._value(value)) is not None
        ]
        if not properties:
            return
        key = (product.GlobalId, name)
        made = self._root("IfcPropertySet", ("set", *key), Name=name, HasProperties=properties)
        self._root(
            "IfcRelDefinesByProperties", ("defines", *key), RelatedObjects=[product],
            RelatingPropertyDefinition=made,
        )  # fmt: skip

    def _value(self, value: object) -> Any:
        match value:
            case None | "":
                return None
            case bool():
                return self.file.create_entity("IfcBoolean", value)
            case int() | float():
                return self.file.create_entity("IfcReal", float(value))
        text = str(value)
        return self.file.create_entity("IfcLabel" if len(text) <= LONGEST else "IfcText", text)

    def _aggregate(self, whole_: Any, parts: list[Any]) -> None:
        if parts:
            self._root("IfcRelAggregates", ("parts", whole_.GlobalId), RelatingObject=whole_,
                       RelatedObjects=parts)  # fmt: skip
