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

import numpy as np

NONE = "none"
"""Curves and points only: there is no mesh."""

SOLID = "solid"
"""`ifclite-geom` makes it; the mesh must be closed."""

CUT = "cut"
"""A solid that something is cut from, added to or cut with: `ifclite-geom` may add what lies inside
instead."""

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
        "IfcPolygonalFaceSet", "IfcHalfSpaceSolid",
    }
)  # fmt: skip
"""Flat faces."""

OTHER_FACES = ("IfcFaceSurface", "IfcEdgeLoop", "IfcVertexLoop")
"""Of faces that need not be flat polygons; subclasses count too."""

PROFILES = frozenset(
    {
        "IfcRectangleProfileDef", "IfcRectangleHollowProfileDef", "IfcRoundedRectangleProfileDef",
        "IfcIShapeProfileDef", "IfcTShapeProfileDef",
    }
)  # fmt: skip
SLOPES = ("FlangeSlope", "WebSlope", "FlangeEdgeRadius", "WebEdgeRadius", "CentreOfGravityInY")
"""Attributes of I- and T-shapes that `ifclite-geom` ignores."""

ROUND_PROFILES = frozenset({"IfcCircleProfileDef", "IfcCircleHollowProfileDef"})

MAX_POINTS = 32
"""Outlines with more points are thinned out by `ifclite-geom`, by up to 5 mm."""

MAX_RADIUS = 0.25
COARSE_RADIUS = 1.3
"""Metres up to which a circle of 36 segments is within 1 mm and 5 mm of the true one."""

MAX_ARCS = 4
"""Arcs of one outline: `ifclite-geom` thins out those of many."""

NEAR = 256.0
"""Metres: coordinates that are moved so far lose nothing in `ifclite-geom`."""

MAX_COORDINATE = 1024.0
"""Metres from the origin up to which `ifclite-geom`, which has float32 inside, is within 0.1 mm."""

STEEP = 0.35
"""Cosine of the angle between a bounded half-space's plane and the end of its prism, from which
on `ifclite-geom` cuts the wrong piece off."""

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
            `NONE`, `SOLID`, `CUT`, `SURFACE` or `OTHER`, also for what cannot be understood.
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

    def openings(self, product: Any) -> list[int]:
        """Give the step ids of the openings with a shape that are cut from a product."""
        try:
            return [
                voids.RelatedOpeningElement.id()
                for voids in getattr(product, "HasOpenings", None) or ()
                if set(self._of_representations(voids.RelatedOpeningElement)) - {NONE}
            ]
        except Exception:  # damaged entities: `kind` is OTHER
            return []

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
        """Whether `ifclite-geom` understands what leads to a place.

        It is metres off along an IfcLinearPlacement.
        """
        chain = []
        while placement is not None and placement.id() not in self._placements:
            chain.append(placement)
            self._placements[placement.id()] = False  # what a placement relative to itself is
            if placement.is_a("IfcLinearPlacement") or is_half_turned(
                getattr(placement, "RelativePlacement", None)
            ):
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
            if any(self._reach(to) > NEAR for to in moves) or is_scaled(item.MappingTarget):
                return OTHER
            if is_half_turned(item.MappingSource.MappingOrigin):
                return OTHER
            return self._of_items(item.MappingSource.MappedRepresentation.Items or ())
        if name == "IfcExtrudedAreaSolid":
            if self._is_far(item) or is_half_turned(item.Position):
                return OTHER
            return self._of_profile(item.SweptArea)
        if name in SOLIDS or name in SURFACES:
            if getattr(item, "PnIndex", None) or not has_polygons(item):
                return OTHER
            return SOLID if name in SOLIDS else SURFACE
        if name in ("IfcBooleanClippingResult", "IfcBooleanResult"):
            operands = {self._of_item(item.FirstOperand), self._of_item(item.SecondOperand)}
            return CUT if operands <= {SOLID, CUT} else OTHER
        if name == "IfcPolygonalBoundedHalfSpace":
            cosine = np.dot(axis(item.BaseSurface.Position), axis(item.Position))
            if abs(cosine) < STEEP or is_half_turned(item.Position):
                return OTHER
            return self._of_curve(item.PolygonalBoundary)
        if item.is_a("IfcGeometricSet"):
            return self._of_items(item.Elements or ())
        return NONE if any(map(item.is_a, CURVES_AND_POINTS)) else OTHER

    def _of_profile(self, profile: Any) -> str:
        name = profile.is_a()
        if self._is_far(profile) or any(getattr(profile, slope, None) for slope in SLOPES):
            return OTHER
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
            if self._reach(curve.Points[0]) > MAX_COORDINATE:
                return OTHER
            return SOLID if len(curve.Points) <= MAX_POINTS else COARSE
        if name == "IfcCompositeCurve":
            curves = [segment.ParentCurve for segment in curve.Segments]
            kind = together({self._of_curve(each) for each in curves})
            polylines = [len(each.Points) for each in curves if each.is_a("IfcPolyline")]
            if len(curves) - len(polylines) > MAX_ARCS:
                return OTHER
            count = sum(polylines) + len(curves) - len(polylines)
            return COARSE if kind == SOLID and count > MAX_POINTS else kind
        if name == "IfcTrimmedCurve":
            return self._of_curve(curve.BasisCurve)
        if name == "IfcCircle":
            return self._of_radius(curve.Radius)
        if name == "IfcIndexedPolyCurve":
            if any(segment.is_a("IfcArcIndex") for segment in curve.Segments or ()):
                return OTHER
            points = curve.Points.CoordList
            if math.hypot(*points[0]) * self._metres > MAX_COORDINATE:
                return OTHER
            return SOLID if len(points) <= MAX_POINTS else COARSE
        return OTHER

    def _is_far(self, placed: Any) -> bool:
        """Whether the position of a solid or profile moves it so far that digits are lost."""
        position = getattr(placed, "Position", None)
        return position is not None and self._reach(position.Location) > MAX_COORDINATE

    def _reach(self, point: Any) -> float:
        """Metres from the origin to a point."""
        return math.hypot(*point.Coordinates) * self._metres

    def _of_radius(self, radius: float) -> str:
        metres = radius * self._metres
        return SOLID if metres <= MAX_RADIUS else COARSE if metres <= COARSE_RADIUS else OTHER


def is_scaled(operator: Any) -> bool:
    """Whether a mapped item is larger or smaller than what the limits above were applied to."""
    scales = (getattr(operator, name, None) for name in ("Scale", "Scale2", "Scale3"))
    return any(scale is not None and abs(scale - 1.0) > 1e-9 for scale in scales)


def axis(placement: Any) -> list[float]:
    """Give the direction of a placement's z-axis, of length 1."""
    if placement is None or placement.Axis is None:
        return [0.0, 0.0, 1.0]
    ratios = placement.Axis.DirectionRatios
    return [ratio / math.hypot(*ratios) for ratio in ratios]


def is_half_turned(placement: Any) -> bool:
    """Whether a placement gives a z-axis of its own but no x-axis: libraries disagree on it."""
    if placement is None or not placement.is_a("IfcAxis2Placement3D"):
        return False
    return placement.RefDirection is None and axis(placement)[2] < 1.0 - 1e-9


def has_polygons(item: Any) -> bool:
    """Whether all faces of an item are polygons.

    Few files have any others, so only there the faces are looked at.
    """
    if not any(map(item.file.by_type, OTHER_FACES)):
        return True
    return not any(any(map(each.is_a, OTHER_FACES)) for each in item.file.traverse(item))


def together(kinds: set[str]) -> str:
    """Give the kind of a shape whose parts are of several kinds."""
    if not kinds:
        return NONE
    for kind in (COARSE, CUT, SOLID):
        if kind in kinds and kinds <= {COARSE, CUT, SOLID}:
            return kind
    return kinds.pop() if len(kinds) == 1 else OTHER
