"""The model house as IFC4: a small building with services."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spatialq.demo.house_plan import (
    CLEAR,
    LENGTH,
    OUTER,
    SPACES,
    STOREY,
    WALLS,
    WIDTH,
    Gap,
    HouseTruth,
    Wall,
    house_truth,
    opening_name,
)
from spatialq.demo.house_schedule import add_schedule, add_zone
from spatialq.demo.house_services import add_services
from spatialq.demo.houses import MODEL_HOUSE
from spatialq.demo.ifc_writer import IfcWriter, Point


@dataclass
class _Storeys:
    """The spatial structure, with what each storey will contain."""

    ground: Any
    upper: Any
    attic: Any
    foundation: Any
    content: dict[str, list[Any]] = field(default_factory=dict)

    def put(self, storey: Any, product: Any) -> None:
        self.content.setdefault(storey.Name, []).append(product)


def write_house(path: str | Path) -> HouseTruth:
    """Write the model house as IFC4 in millimetres; always the same bytes.

    Parameters
    ----------
    path
        File to write, ``.ifc``.

    Returns
    -------
    HouseTruth
    """
    out = IfcWriter()
    storeys, building = _structure(out)
    for wall in WALLS:
        storey = storeys.ground if wall.foot == 0.0 else storeys.upper
        for product in _wall(out, wall):
            storeys.put(storey, product)
    _slabs_and_footings(out, storeys)
    _roof(out, storeys)
    _stair(out, storeys)
    rooms = _spaces(out, storeys)
    for storey, product in add_services(out, building):
        storeys.put(getattr(storeys, storey), product)
    for storey in (storeys.foundation, storeys.ground, storeys.upper, storeys.attic):
        out.relate(
            "IfcRelContainedInSpatialStructure",
            RelatedElements=storeys.content[storey.Name],
            RelatingStructure=storey,
        )
    add_zone(out, rooms)
    add_schedule(out, storeys.content)
    out.finish(Path(path), "house.ifc")
    return house_truth()


def _structure(out: IfcWriter) -> tuple[_Storeys, Any]:
    metre = out.make("IfcSIUnit", None, "LENGTHUNIT", None, "METRE")
    units = [
        out.make("IfcSIUnit", None, "LENGTHUNIT", "MILLI", "METRE"),
        out.make("IfcSIUnit", None, "AREAUNIT", None, "SQUARE_METRE"),
        out.make("IfcSIUnit", None, "VOLUMEUNIT", None, "CUBIC_METRE"),
        out.make("IfcSIUnit", None, "PLANEANGLEUNIT", None, "RADIAN"),
    ]
    project = out.root("IfcProject", "spatialq demo")
    project.RepresentationContexts = [out.context]
    project.UnitsInContext = out.make("IfcUnitAssignment", units)
    truth = HouseTruth(())
    crs = out.make(
        "IfcProjectedCRS", "EPSG:25832", "ETRS89 / UTM zone 32N", "ETRS89", "DHHN2016", "UTM", "32N"
    )
    crs.MapUnit = metre
    turn = math.radians(truth.angle)
    place = (truth.eastings, truth.northings, truth.height)
    scale = 0.001  # the model counts millimetres, the map metres
    out.make("IfcMapConversion", out.context, crs, *place, math.cos(turn), math.sin(turn), scale)

    site = out.place("IfcSite", "plot", CompositionType="ELEMENT")
    building = out.place("IfcBuilding", "model house", CompositionType="ELEMENT")
    levels = {
        "foundation": -1000.0,
        "ground floor": 0.0,
        "upper floor": STOREY,
        "attic": 2 * STOREY,
    }
    foundation, ground, upper, attic = (
        out.place(
            "IfcBuildingStorey", name, height=level, CompositionType="ELEMENT", Elevation=level
        )
        for name, level in levels.items()
    )
    out.relate("IfcRelAggregates", RelatingObject=project, RelatedObjects=[site])
    out.relate("IfcRelAggregates", RelatingObject=site, RelatedObjects=[building])
    storeys = [foundation, ground, upper, attic]
    out.relate("IfcRelAggregates", RelatingObject=building, RelatedObjects=storeys)
    return _Storeys(ground, upper, attic, foundation), building


def _wall(out: IfcWriter, wall: Wall) -> list[Any]:
    low, high = (*wall.low, wall.foot), (*wall.high, wall.foot + CLEAR)
    product = out.product("IfcWall", wall.name, [out.box(low, high)], PredefinedType="SOLIDWALL")
    kind = "outer wall 300" if wall.external else "inner wall 150"
    out.use_type(product, "IfcWallType", kind, "SOLIDWALL")
    out.use_material(product, "clay block" if wall.external else "sand-lime brick")
    bearing = wall.external or wall.name == "wall hall"
    common: dict[str, bool | str] = {
        "Reference": kind,
        "IsExternal": wall.external,
        "LoadBearing": bearing,
    }
    if bearing:
        common["FireRating"] = "REI 90" if wall.foot == 0.0 else "REI 60"
    out.properties(product, "Pset_WallCommon", common)
    thickness = wall.thickness
    length = max(high[0] - low[0], high[1] - low[1])
    holes = sum((gap.end - gap.start) * (gap.head - gap.sill) for gap in wall.gaps)
    out.quantities(
        product,
        "Qto_WallBaseQuantities",
        {
            "Length": length,
            "Width": thickness,
            "Height": CLEAR,
            "GrossSideArea": length * CLEAR / 1e6,
            "NetSideArea": (length * CLEAR - holes) / 1e6,
            "GrossVolume": length * CLEAR * thickness / 1e9,
            "NetVolume": (length * CLEAR - holes) * thickness / 1e9,
        },
    )
    fillings = []
    for gap in wall.gaps:
        opening = _void(out, product, opening_name(gap), *_gap_box(wall, gap, 0.0))
        if not gap.filling:
            continue
        filling = _filling(out, wall, gap)
        out.relate(
            "IfcRelFillsElement", RelatingOpeningElement=opening, RelatedBuildingElement=filling
        )
        fillings.append(filling)
    return [product, *fillings]


def _gap_box(wall: Wall, gap: Gap, inset: float) -> tuple[Point, Point]:
    """Corners of a gap, `inset` from both faces of its wall."""
    if wall.along_x:
        return (gap.start, wall.low[1] + inset, gap.sill), (gap.end, wall.high[1] - inset, gap.head)
    return (wall.low[0] + inset, gap.start, gap.sill), (wall.high[0] - inset, gap.end, gap.head)


def _void(out: IfcWriter, host: Any, name: str, low: Point, high: Point) -> Any:
    opening = out.product("IfcOpeningElement", name, [out.box(low, high)], PredefinedType="OPENING")
    out.relate("IfcRelVoidsElement", RelatingBuildingElement=host, RelatedOpeningElement=opening)
    return opening


def _filling(out: IfcWriter, wall: Wall, gap: Gap) -> Any:
    low, high = _gap_box(wall, gap, (wall.thickness - 80.0) / 2)
    size = {"OverallHeight": gap.head - gap.sill, "OverallWidth": gap.end - gap.start}
    if gap.filling == "IfcDoor":
        product = out.product("IfcDoor", gap.name, [out.box(low, high)], **size)
        out.use_material(product, "oak")
        out.properties(product, "Pset_DoorCommon", {"IsExternal": wall.external})
        return product
    sash = 70.0
    profile = out.make("IfcRectangleHollowProfileDef", "AREA")
    profile.XDim, profile.YDim = size["OverallWidth"], size["OverallHeight"]
    profile.WallThickness = sash
    middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
    if wall.along_x:
        frame = out.frame((middle[0], high[1], middle[2]), (0, -1, 0), (1, 0, 0))
        pane = (low[0] + sash, middle[1] - 12, low[2] + sash)
        pane_end = (high[0] - sash, middle[1] + 12, high[2] - sash)
    else:
        frame = out.frame((low[0], middle[1], middle[2]), (1, 0, 0), (0, 1, 0))
        pane = (middle[0] - 12, low[1] + sash, low[2] + sash)
        pane_end = (middle[0] + 12, high[1] - sash, high[2] - sash)
    solids = [out.extrude(profile, frame, 80.0), out.box(pane, pane_end)]
    product = out.product("IfcWindow", gap.name, solids, **size)
    out.use_type(
        product, "IfcWindowType", "window 120 x 130", "WINDOW", PartitioningType="SINGLE_PANEL"
    )
    out.use_material(product, "glass and larch")
    out.properties(product, "Pset_WindowCommon", {"IsExternal": True, "GlazingAreaFraction": 0.8})
    return product


def _slabs_and_footings(out: IfcWriter, storeys: _Storeys) -> None:
    slabs = [
        ("ground slab", storeys.ground, -200.0, "BASESLAB"),
        ("upper slab", storeys.upper, CLEAR, "FLOOR"),
        ("attic slab", storeys.attic, STOREY + CLEAR, "FLOOR"),
    ]
    for name, storey, foot, kind in slabs:
        solid = out.box((0.0, 0.0, foot), (LENGTH, WIDTH, foot + 200.0))
        slab = out.product("IfcSlab", name, [solid], PredefinedType=kind)
        out.use_material(slab, "concrete")
        out.properties(slab, "Pset_SlabCommon", {"IsExternal": False, "LoadBearing": True})
        storeys.put(storey, slab)
        if name == "upper slab":
            _void(out, slab, "stair opening", (5250.0, 6550.0, CLEAR), (9010.0, 7700.0, STOREY))
    out_, in_ = 100.0, 400.0
    strips = {
        "south": ((-out_, -out_), (LENGTH + out_, in_)),
        "north": ((-out_, WIDTH - in_), (LENGTH + out_, WIDTH + out_)),
        "west": ((-out_, in_), (in_, WIDTH - in_)),
        "east": ((LENGTH - in_, in_), (LENGTH + out_, WIDTH - in_)),
    }
    for side, (low, high) in strips.items():
        solid = out.box((*low, -1000.0), (*high, -200.0))
        footing = out.product(
            "IfcFooting", f"footing {side}", [solid], PredefinedType="STRIP_FOOTING"
        )
        out.use_material(footing, "concrete")
        storeys.put(storeys.foundation, footing)


def _roof(out: IfcWriter, storeys: _Storeys) -> None:
    house = MODEL_HOUSE
    eaves, lap = 1000 * house.eaves, 1000 * house.gable_overhang
    reach, plumb = 1000 * house.eaves_overhang, 1000 * house.plumb_thickness
    ridge, foot = eaves + WIDTH / 2 * house.slope, eaves - reach * house.slope
    halves = []
    for name, edge in (("roof south", -reach), ("roof north", WIDTH + reach)):
        section = [(edge, foot), (WIDTH / 2, ridge), (WIDTH / 2, ridge + plumb)]
        section.append((edge, foot + plumb))
        if edge > 0:
            section.reverse()  # the outline stays counter-clockwise
        solid = out.prism_x((-lap, LENGTH + lap), section)
        half = out.product("IfcSlab", name, [solid], PredefinedType="ROOF")
        out.use_material(half, "rafters and tiles")
        out.properties(half, "Pset_SlabCommon", {"IsExternal": True, "PitchAngle": house.pitch})
        halves.append(half)
    roof = out.place("IfcRoof", "roof", PredefinedType="GABLE_ROOF")
    out.relate("IfcRelAggregates", RelatingObject=roof, RelatedObjects=halves)
    storeys.put(storeys.attic, roof)
    for name, x in (("gable west", 0.0), ("gable east", LENGTH - OUTER)):
        triangle = [(0.0, eaves), (WIDTH, eaves), (WIDTH / 2, ridge)]
        solid = out.prism_x((x, x + OUTER), triangle)
        gable = out.product("IfcWall", name, [solid], PredefinedType="SOLIDWALL")
        out.use_type(gable, "IfcWallType", "outer wall 300", "SOLIDWALL")
        out.use_material(gable, "clay block")
        out.properties(gable, "Pset_WallCommon", {"IsExternal": True, "LoadBearing": True})
        storeys.put(storeys.attic, gable)


def _stair(out: IfcWriter, storeys: _Storeys) -> None:
    start, going, rise, steps, waist = 5500.0, 270.0, 200.0, 13, 250.0
    outline = [(start, 0.0)]
    for step in range(steps):
        outline.append((start + step * going, (step + 1) * rise))
        outline.append((start + (step + 1) * going, (step + 1) * rise))
    end, top = outline[-1]
    outline += [(end, top - waist), (end - (top - waist) * going / rise, 0.0)]
    solid = out.prism_y((6600.0, 7600.0), outline)
    flight = out.product(
        "IfcStairFlight",
        "stair flight",
        [solid],
        NumberOfRisers=steps + 1,
        NumberOfTreads=steps,
        RiserHeight=rise,
        TreadLength=going,
        PredefinedType="STRAIGHT",
    )
    out.use_material(flight, "concrete")
    stair = out.place("IfcStair", "stair", PredefinedType="STRAIGHT_RUN_STAIR")
    out.relate("IfcRelAggregates", RelatingObject=stair, RelatedObjects=[flight])
    storeys.put(storeys.ground, stair)


def _spaces(out: IfcWriter, storeys: _Storeys) -> list[Any]:
    every_room = []
    for number, storey in enumerate((storeys.ground, storeys.upper)):
        rooms = []
        for name, level, low, high in SPACES:
            if level != number:
                continue
            foot = level * STOREY
            solid = out.box((*low, foot), (*high, foot + CLEAR))
            room = out.product(
                "IfcSpace", name, [solid], CompositionType="ELEMENT", PredefinedType="INTERNAL"
            )
            area = (high[0] - low[0]) * (high[1] - low[1]) / 1e6
            out.quantities(
                room,
                "Qto_SpaceBaseQuantities",
                {"Height": CLEAR, "NetFloorArea": area, "NetVolume": area * CLEAR / 1e3},
            )
            rooms.append(room)
        out.relate("IfcRelAggregates", RelatingObject=storey, RelatedObjects=rooms)
        every_room += rooms
    return every_room
