"""What kind of shape a product has: decides which library makes its mesh.

`ifclite-geom` is right about flat faces, extrusions of common profiles, and what is cut off from
them; `tests/io/test_ifc_geometry.py` compares it with IfcOpenShell on real models. It is not about
the rest: it sweeps along curves wrongly, leaves out the fillets of some profiles, draws every
circle with 36 segments, and thins out outlines of more than 32 points. Holes may be coarse so, as
IfcOpenShell takes a second to cut one of many segments.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

NONE = "none"
"""Curves and points only: there is no mesh."""

SOLID = "solid"
"""`ifclite-geom` makes it; the mesh must be closed."""

SURFACE = "surface"
"""`ifclite-geom` makes it; it may be open, and each of its parts is to be turned outside out."""

COARSE = "coarse"
"""`ifclite-geom` makes a hole of it that is up to 5 mm too small, and IfcOpenShell the rest."""

OTHER = "other"
"""IfcOpenShell makes it."""

CURVES_AND_POINTS = (
    "IfcCurve", "IfcPoint", "IfcSegment", "IfcEdge", "IfcVertex", "IfcPath", "IfcEdgeLoop",
    "IfcVertexLoop", "IfcPlacement", "IfcDirection", "IfcVector", "IfcBoundingBox",
    "IfcAnnotationFillArea", "IfcTextLiteral", "IfcLightSource", "IfcPlanarExtent",
    "IfcStyledItem", "IfcDefinedSymbol", "IfcCartesianPointList",
)  # fmt: skip
"""Classes of items that rightly give no triangle, over all schemas; subclasses count too."""

SURFACES = frozenset({"IfcFaceBasedSurfaceModel", "IfcShellBasedSurfaceModel"})
SOLIDS = frozenset(
    {
        "IfcFacetedBrep", "IfcFacetedBrepWithVoids", "IfcTriangulatedFaceSet",
        "IfcPolygonalFaceSet", "IfcHalfSpaceSolid", "IfcBoxedHalfSpace",
    }
)  # fmt: skip
"""Flat faces, whatever their attributes are."""

PROFILES = frozenset(
    {
        "IfcRectangleProfileDef", "IfcRectangleHollowProfileDef", "IfcRoundedRectangleProfileDef",
        "IfcIShapeProfileDef", "IfcTShapeProfileDef",
    }
)  # fmt: skip
ROUND_PROFILES = frozenset({"IfcCircleProfileDef", "IfcCircleHollowProfileDef"})

MAX_POINTS = 32
"""Outlines with more points are thinned out by `ifclite-geom`, by up to 5 mm."""

MAX_RADIUS = 0.25
COARSE_RADIUS = 1.3
"""Metres up to which a circle of 36 segments is within 1 mm and 5 mm of the true one."""

NEAR = 256.0
"""Metres: coordinates that are moved so far lose nothing in `ifclite-geom`."""

MAX_DEPTH = 100
"""Placements that one may be relative to."""


class Representations:
    """The kinds of shapes of one model.

    Parameters
    ----------
    metres : float
        The file's unit of length.
    """

    def __init__(self, metres: float) -> None:
        self._metres = metres
        self._kinds: dict[int, str] = {}
        self._placements: dict[int, bool] = {}

    def kind(self, product: Any) -> str:
        """Tell what shape a product has, with the openings that are cut from it.

        Returns
        -------
        str
            `NONE`, `SOLID`, `SURFACE` or `OTHER`, also for what cannot be understood.
        """
        try:
            kinds = [kind for kind in self._of_representations(product) if kind != NONE]
            if not kinds:
                return NONE
            if len(kinds) > 1:  # which of them is the body, IfcOpenShell knows
                return OTHER
            if not self._has_local_placement(product.ObjectPlacement):
                return OTHER
            cuts = [
                kind
                for voids in getattr(product, "HasOpenings", None) or ()
                for kind in self._of_representations(voids.RelatedOpeningElement)
            ]
        except Exception:  # damaged entities: missing attributes, wrong classes
            return OTHER
        return OTHER if OTHER in cuts or kinds[0] == COARSE else kinds[0]

    def source(self, product: Any) -> int:
        """Give the step id of the mapped representation that a product is a copy of, or 0.

        It is one only if nothing else belongs to the shape and no openings are cut from it.
        """
        try:
            if getattr(product, "HasOpenings", None):
                return 0
            items = [
                item
                for representation in product.Representation.Representations
                if self._of_items(representation.Items or ()) != NONE
                for item in representation.Items
            ]
            if len(items) != 1 or not items[0].is_a("IfcMappedItem"):
                return 0
            return int(items[0].MappingSource.MappedRepresentation.id())
        except Exception:  # damaged entities
            return 0

    def _of_representations(self, product: Any) -> Iterator[str]:
        shape = product.Representation
        for representation in (shape.Representations or ()) if shape else ():
            yield self._of_items(representation.Items or ())

    def place(self, product: Any) -> list[float]:
        """Give the place in metres that a product's coordinates are relative to.

        Anything within `NEAR` of the origin counts as the origin.
        """
        try:
            chain, steps = product.ObjectPlacement, 0.0
            for _ in range(MAX_DEPTH):
                if chain is None or not chain.is_a("IfcLocalPlacement"):
                    break
                steps += math.hypot(*chain.RelativePlacement.Location.Coordinates)
                chain = chain.PlacementRelTo
            if steps * self._metres <= NEAR:
                return [0.0, 0.0, 0.0]
            from ifcopenshell.util.placement import get_local_placement

            matrix = get_local_placement(product.ObjectPlacement)
            return [float(matrix[axis, 3]) * self._metres for axis in range(3)]
        except Exception:  # damaged entities: nothing is near this place
            return [math.inf] * 3

    def _has_local_placement(self, placement: Any) -> bool:
        """Whether no IfcLinearPlacement leads to a place: `ifclite-geom` is metres off there."""
        chain = []
        while placement is not None and placement.id() not in self._placements:
            chain.append(placement)
            self._placements[placement.id()] = False  # what a placement relative to itself is
            if placement.is_a("IfcLinearPlacement"):
                return False
            placement = getattr(placement, "PlacementRelTo", None)
        is_local = placement is None or self._placements[placement.id()]
        self._placements.update((each.id(), is_local) for each in chain)
        return is_local

    def _of_items(self, items: Iterable[Any]) -> str:
        return together({self._of_item(item) for item in items} - {NONE})

    def _of_item(self, item: Any) -> str:
        key = item.id()
        if key not in self._kinds:
            self._kinds[key] = NONE  # what an item that contains itself adds
            self._kinds[key] = self._find(item)
        return self._kinds[key]

    def _find(self, item: Any) -> str:
        name = item.is_a()
        if name == "IfcMappedItem":
            moves = item.MappingTarget.LocalOrigin, item.MappingSource.MappingOrigin.Location
            if any(math.hypot(*to.Coordinates) * self._metres > NEAR for to in moves):
                return OTHER
            return self._of_items(item.MappingSource.MappedRepresentation.Items or ())
        if name == "IfcExtrudedAreaSolid":
            return self._of_profile(item.SweptArea)
        if name in SOLIDS:
            return SOLID
        if name in SURFACES:
            return SURFACE
        if name in ("IfcBooleanClippingResult", "IfcBooleanResult"):
            operands = {self._of_item(item.FirstOperand), self._of_item(item.SecondOperand)}
            return SOLID if operands == {SOLID} else OTHER
        if name == "IfcPolygonalBoundedHalfSpace":
            return self._of_curve(item.PolygonalBoundary)
        if item.is_a("IfcGeometricSet"):
            return self._of_items(item.Elements or ())
        return NONE if any(map(item.is_a, CURVES_AND_POINTS)) else OTHER

    def _of_profile(self, profile: Any) -> str:
        name = profile.is_a()
        if name in PROFILES:
            return SOLID
        if name in ROUND_PROFILES:
            return self._of_radius(profile.Radius)
        if name == "IfcArbitraryClosedProfileDef":
            return self._of_curve(profile.OuterCurve)
        if name == "IfcArbitraryProfileDefWithVoids":
            return together(set(map(self._of_curve, (profile.OuterCurve, *profile.InnerCurves))))
        return OTHER

    def _of_curve(self, curve: Any) -> str:
        """Tell whether the outline of an extrusion is kept: lines and small arcs."""
        name = curve.is_a()
        if name == "IfcLine":
            return SOLID
        if name == "IfcPolyline":
            return SOLID if len(curve.Points) <= MAX_POINTS else COARSE
        if name == "IfcCompositeCurve":
            kind = together({self._of_curve(segment.ParentCurve) for segment in curve.Segments})
            return COARSE if kind == SOLID and len(curve.Segments) > MAX_POINTS else kind
        if name == "IfcTrimmedCurve":
            return self._of_curve(curve.BasisCurve)
        if name == "IfcCircle":
            return self._of_radius(curve.Radius)
        if name == "IfcIndexedPolyCurve":
            if any(segment.is_a("IfcArcIndex") for segment in curve.Segments or ()):
                return OTHER
            return SOLID if len(curve.Points.CoordList) <= MAX_POINTS else COARSE
        return OTHER

    def _of_radius(self, radius: float) -> str:
        metres = radius * self._metres
        return SOLID if metres <= MAX_RADIUS else COARSE if metres <= COARSE_RADIUS else OTHER


def together(kinds: set[str]) -> str:
    """Give the kind of a shape whose parts are of several kinds."""
    if not kinds:
        return NONE
    if kinds <= {SOLID, COARSE}:
        return COARSE if COARSE in kinds else SOLID
    return kinds.pop() if len(kinds) == 1 else OTHER
