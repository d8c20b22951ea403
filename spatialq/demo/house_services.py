"""Columns, beams, pipes and ducts of the model house: where its clashes are made."""

from typing import Any

from spatialq.demo.ifc_writer import IfcWriter, Point

BEAMS = {
    "beam west": ((300.0, 1900.0, 2300.0), (5000.0, 2100.0, 2600.0)),
    "beam east": ((5150.0, 2400.0, 2300.0), (9700.0, 2600.0, 2600.0)),
}
COLUMNS = {
    "column": ((2400.0, 1900.0, 0.0), (2600.0, 2100.0, 2300.0)),
    "column upper": ((2400.0, 3900.0, 2800.0), (2600.0, 4100.0, 5400.0)),
    # the same column once more, as careless copying leaves it
    "column upper again": ((2400.0, 3900.0, 2800.0), (2600.0, 4100.0, 5400.0)),
}
# axis and outer radius
PIPES: dict[str, tuple[list[Point], float]] = {
    "heating pipe through beam": ([(7000, 1000, 2450), (7000, 4000, 2450)], 50.0),
    # 30 mm between its skin and the wall's face at y = 300
    "heating pipe along wall": ([(1000, 355, 300), (4500, 355, 300)], 25.0),
    # stands on the ground slab and ends at the ceiling
    "riser": ([(4500, 7000, 0), (4500, 7000, 2600)], 55.0),
    "conduit": ([(5075, 6000, 500), (5075, 6000, 2000)], 16.0),
}
DUCTS = {
    "supply duct through wall": ((3000.0, 3000.0, 2000.0), (7000.0, 3300.0, 2200.0)),
    # through an opening that leaves 20 mm on each side
    "exhaust duct": ((1000.0, 3500.0, 2000.0), (1300.0, 5000.0, 2200.0)),
}
PIPE_WALL = 4.0


def add_services(out: IfcWriter, building: Any) -> list[tuple[str, Any]]:
    """Create all parts and the two systems.

    Returns
    -------
    list of (storey, product)
        The storey is ``ground`` or ``upper``.
    """
    parts: list[tuple[str, Any]] = []
    for name, (low, high) in BEAMS.items():
        beam = out.product("IfcBeam", name, [out.box(low, high)], PredefinedType="BEAM")
        out.use_type(beam, "IfcBeamType", "beam 200 x 300", "BEAM")
        out.use_material(beam, "concrete")
        out.properties(beam, "Pset_BeamCommon", {"LoadBearing": True, "Span": high[0] - low[0]})
        parts.append(("ground", beam))
    for name, (low, high) in COLUMNS.items():
        column = out.product("IfcColumn", name, [out.box(low, high)], PredefinedType="COLUMN")
        out.use_type(column, "IfcColumnType", "column 200 x 200", "COLUMN")
        out.use_material(column, "concrete")
        out.properties(column, "Pset_ColumnCommon", {"LoadBearing": True})
        parts.append(("ground" if low[2] == 0.0 else "upper", column))
    pipes = []
    for name, (axis, radius) in PIPES.items():
        tube = out.tube(axis, radius, radius - PIPE_WALL)
        pipe = out.product("IfcPipeSegment", name, [tube], PredefinedType="RIGIDSEGMENT")
        if name != "conduit":  # which nobody has decided yet
            out.use_material(pipe, "copper")
        out.properties(
            pipe, "Pset_PipeSegmentTypeCommon", {"OuterDiameter": 2 * radius, "Status": "NEW"}
        )
        pipes.append(pipe)
    ducts = []
    for name, (low, high) in DUCTS.items():
        box = out.box(low, high)
        duct = out.product("IfcDuctSegment", name, [box], PredefinedType="RIGIDSEGMENT")
        out.use_material(duct, "galvanised steel")
        out.properties(duct, "Pset_DuctSegmentTypeCommon", {"Shape": "RECTANGULAR"})
        ducts.append(duct)
    _system(out, building, "heating", "HEATING", pipes)
    _system(out, building, "ventilation", "VENTILATION", ducts)
    return [*parts, *(("ground", product) for product in pipes + ducts)]


def _system(out: IfcWriter, building: Any, name: str, kind: str, members: list[Any]) -> None:
    system = out.root("IfcDistributionSystem", name, PredefinedType=kind)
    out.relate("IfcRelAssignsToGroup", RelatedObjects=members, RelatingGroup=system)
    out.relate("IfcRelServicesBuildings", RelatingSystem=system, RelatedBuildings=[building])
