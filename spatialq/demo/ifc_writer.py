"""A thin writer of IFC4: placements, swept solids, property sets and relations, in millimetres.

Everything is created in a fixed order and every GlobalId comes from a name, so the same calls give
the same bytes; the high-level functions of IfcOpenShell draw random GlobalIds.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

TIME = "2026-04-14T12:00:00"
_NAMESPACE = uuid.UUID("6f1c7f0e-6a3b-5d0e-9a55-5b0f3f5a2c11")

Point = Sequence[float]
Properties = Mapping[str, bool | float | str]


def global_id(name: str) -> str:
    """Give the GlobalId of a part: 22 characters that depend on its name only."""
    import ifcopenshell.guid

    return str(ifcopenshell.guid.compress(uuid.uuid5(_NAMESPACE, name).hex))


class IfcWriter:
    """Builds one IFC4 file; products are placed by world coordinates in millimetres."""

    def __init__(self) -> None:
        import ifcopenshell

        self.file = ifcopenshell.file(schema="IFC4")
        self._relations = 0
        self._materials: dict[str, Any] = {}
        self._types: dict[str, Any] = {}
        self._typed: dict[str, list[Any]] = {}
        self._of_material: dict[str, list[Any]] = {}
        origin = self.make("IfcCartesianPoint", (0.0, 0.0, 0.0))
        self._origin = self.make("IfcAxis2Placement3D", origin)
        self._placement = self.make("IfcLocalPlacement", None, self._origin)
        self.context = self.make(
            "IfcGeometricRepresentationContext", None, "Model", 3, 1e-5, self._origin
        )
        self.body = self.make("IfcGeometricRepresentationSubContext", "Body", "Model")
        self.body.ParentContext = self.context
        self.body.TargetView = "MODEL_VIEW"

    def make(self, entity: str, *values: Any) -> Any:
        """Create an entity with its attributes in order."""
        return self.file.create_entity(entity, *values)

    def root(self, entity: str, name: str, **attributes: Any) -> Any:
        """Create a named object with its GlobalId."""
        return self.file.create_entity(
            entity, GlobalId=global_id(name), Name=name, OwnerHistory=None, **attributes
        )

    def relate(self, entity: str, **attributes: Any) -> Any:
        """Create a relationship."""
        self._relations += 1
        name = global_id(f"{entity} {self._relations}")
        return self.file.create_entity(entity, GlobalId=name, **attributes)

    # --- geometry -------------------------------------------------------------------------------

    def frame(self, at: Point, axis: Point | None = None, across: Point | None = None) -> Any:
        """Give a coordinate system: origin, z direction, x direction."""
        point = self.make("IfcCartesianPoint", tuple(map(float, at)))
        if axis is None:
            return self.make("IfcAxis2Placement3D", point)
        z = self.make("IfcDirection", tuple(map(float, axis)))
        x = self.make("IfcDirection", tuple(map(float, across or (1.0, 0.0, 0.0))))
        return self.make("IfcAxis2Placement3D", point, z, x)

    def extrude(self, profile: Any, frame: Any, depth: float) -> Any:
        """Sweep a profile along the z of a frame."""
        up = self.make("IfcDirection", (0.0, 0.0, 1.0))
        return self.make("IfcExtrudedAreaSolid", profile, frame, up, float(depth))

    def polygon(self, points: Iterable[Point]) -> Any:
        """Give a closed profile from its corners (x, y)."""
        corners = [self.make("IfcCartesianPoint", tuple(map(float, p))) for p in points]
        curve = self.make("IfcPolyline", [*corners, corners[0]])
        return self.make("IfcArbitraryClosedProfileDef", "AREA", None, curve)

    def box(self, low: Point, high: Point) -> Any:
        """Give a solid with sides along the axes."""
        dx, dy, dz = (b - a for a, b in zip(low, high, strict=True))
        profile = self.polygon([(0, 0), (dx, 0), (dx, dy), (0, dy)])
        return self.extrude(profile, self.frame(low), dz)

    def prism_x(self, x: tuple[float, float], outline: Iterable[Point]) -> Any:
        """Sweep an outline of (y, z) corners along x."""
        frame = self.frame((x[0], 0, 0), (1, 0, 0), (0, 1, 0))
        return self.extrude(self.polygon(outline), frame, x[1] - x[0])

    def prism_y(self, y: tuple[float, float], outline: Iterable[Point]) -> Any:
        """Sweep an outline of (x, z) corners along y."""
        # local z looks to -y, so that local x, y are x, z: the sweep starts at the far end
        frame = self.frame((0, y[1], 0), (0, -1, 0), (1, 0, 0))
        return self.extrude(self.polygon(outline), frame, y[1] - y[0])

    def tube(self, points: Sequence[Point], radius: float, inner: float | None = None) -> Any:
        """Sweep a disc, or a ring, along a line of points."""
        corners = [self.make("IfcCartesianPoint", tuple(map(float, p))) for p in points]
        return self.make(
            "IfcSweptDiskSolid", self.make("IfcPolyline", corners), float(radius), inner
        )

    # --- products -------------------------------------------------------------------------------

    def product(self, entity: str, name: str, solids: Sequence[Any], **attributes: Any) -> Any:
        """Create a product in world coordinates with a body of one or more solids."""
        kind = "AdvancedSweptSolid" if solids[0].is_a("IfcSweptDiskSolid") else "SweptSolid"
        shape = self.make("IfcShapeRepresentation", self.body, "Body", kind, list(solids))
        definition = self.make("IfcProductDefinitionShape", None, None, [shape])
        return self.root(
            entity,
            name,
            ObjectPlacement=self._placement,
            Representation=definition,
            **attributes,
        )

    def place(self, entity: str, name: str, *, height: float = 0.0, **attributes: Any) -> Any:
        """Create a product without a body: a storey, a roof made of parts."""
        placement = self._placement
        if height:
            placement = self.make("IfcLocalPlacement", placement, self.frame((0.0, 0.0, height)))
        return self.root(entity, name, ObjectPlacement=placement, **attributes)

    def properties(self, product: Any, set_name: str, values: Properties) -> None:
        """Attach a property set; the value's Python type gives its IFC type."""
        singles = [
            self.make("IfcPropertySingleValue", key, None, self._value(value))
            for key, value in values.items()
        ]
        pset = self.file.create_entity(
            "IfcPropertySet",
            GlobalId=global_id(f"{product.Name} {set_name}"),
            Name=set_name,
            HasProperties=singles,
        )
        self._define(product, pset)

    def quantities(self, product: Any, set_name: str, values: Mapping[str, float]) -> None:
        """Attach base quantities; names that end in Area are square metres, in Volume cubic."""
        parts = []
        for key, value in values.items():
            kind = next((k for k in ("Area", "Volume") if key.endswith(k)), "Length")
            parts.append(self.make(f"IfcQuantity{kind}", key, None, None, float(value)))
        quantity = self.file.create_entity(
            "IfcElementQuantity",
            GlobalId=global_id(f"{product.Name} {set_name}"),
            Name=set_name,
            Quantities=parts,
        )
        self._define(product, quantity)

    def use_type(
        self, product: Any, entity: str, name: str, predefined: str, **attributes: Any
    ) -> None:
        """Give a product its type; the relation is written by `finish`."""
        if name not in self._types:
            self._types[name] = self.root(entity, name, PredefinedType=predefined, **attributes)
        self._typed.setdefault(name, []).append(product)

    def use_material(self, product: Any, name: str) -> None:
        """Give a product its material; the relation is written by `finish`."""
        if name not in self._materials:
            self._materials[name] = self.make("IfcMaterial", name)
        self._of_material.setdefault(name, []).append(product)

    def finish(self, path: Path, name: str) -> None:
        """Write the types' and materials' relations, the header and the file."""
        for key, products in self._typed.items():
            relating = self._types[key]
            self.relate("IfcRelDefinesByType", RelatedObjects=products, RelatingType=relating)
        for key, products in self._of_material.items():
            relating = self._materials[key]
            self.relate(
                "IfcRelAssociatesMaterial", RelatedObjects=products, RelatingMaterial=relating
            )
        header = self.file.header
        header.file_name.name = name
        header.file_name.time_stamp = TIME
        header.file_name.author = ("spatialq",)
        header.file_name.organization = ("spatialq",)
        header.file_name.preprocessor_version = "spatialq demo"
        header.file_name.originating_system = "spatialq demo"
        header.file_name.authorization = "none"
        self.file.write(str(path))

    def _define(self, product: Any, definition: Any) -> None:
        self.relate(
            "IfcRelDefinesByProperties",
            RelatedObjects=[product],
            RelatingPropertyDefinition=definition,
        )

    def _value(self, value: bool | float | str) -> Any:  # noqa: FBT001
        if isinstance(value, bool):
            return self.make("IfcBoolean", value)
        if isinstance(value, str):
            return self.make("IfcLabel", value)
        return self.make("IfcReal", float(value))
