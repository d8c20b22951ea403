"""`model_quality` and `spatialq check --quality`: a sound model, and one fault after the other."""
# ruff: noqa: E501 (a line for each fault)

import json
from html import escape

import ifcopenshell
import ifcopenshell.api.feature
import ifcopenshell.api.georeference
import ifcopenshell.api.root
import ifcopenshell.api.spatial
import pytest

import spatialq
from spatialq.errors import FileWarning
from spatialq.workflows.model_quality import RULES
from tests.command_line import spatialq_command
from tests.io.ifc_models import Builder
from tests.test_load import write_las


def sound():
    """Two storeys with walls, a window in one, and two rooms side by side; with its place."""
    builder = Builder()
    builder.storey_at("first", 0.0)
    builder.wall_with_window()
    builder.add("IfcSpace", "room", [builder.box((0, 1, 0), (4, 3, 3))])
    builder.add("IfcSpace", "next", [builder.box((4, 1, 0), (4, 3, 3))])
    for x in (10, 12):
        builder.add("IfcSlab", f"slab {x}", [builder.box((x, 0, -0.2), (2, 4, 0.2))])
    builder.storey_at("second", 3.0)
    for x in (0, 2, 4):
        builder.add("IfcWall", f"upper {x}", [builder.box((x, 0, 3), (1, 0.2, 3))])
    model = builder.model
    ifcopenshell.api.georeference.add_georeferencing(model)
    ifcopenshell.api.georeference.edit_georeferencing(
        model,
        projected_crs={"Name": "EPSG:25832"},
        coordinate_operation={"Eastings": 500000.0, "Northings": 5600000.0, "Scale": 1.0},
    )
    return builder


def of(builder, name):
    (found,) = (each for each in builder.model.by_type("IfcObject") if each.Name == name)
    return found


def same_global_id(builder):
    of(builder, "upper 2").GlobalId = of(builder, "upper 4").GlobalId


def duplicate(builder):
    builder.add("IfcWall", "again", [builder.box((2, 0, 3), (1, 0.2, 3))])


def no_storey(builder):
    wall = of(builder, "upper 4")
    ifcopenshell.api.spatial.unassign_container(builder.model, products=[wall])


def in_the_building(builder):
    ifcopenshell.api.spatial.assign_container(
        builder.model, products=[of(builder, "upper 4")], relating_structure=builder.building
    )


def no_geometry(builder):
    of(builder, "upper 4").Representation = None


def too_low(builder):
    builder.add("IfcWall", "low", [builder.box((6, 0, 0.1), (1, 0.2, 2))])


def too_high(builder):
    builder.storey = next(
        each for each in builder.model.by_type("IfcBuildingStorey") if each.Name == "first"
    )
    builder.add("IfcWall", "high", [builder.box((6, 0, 4), (1, 0.2, 1))])


def open_mesh(builder):
    model = builder.model
    corners = model.create_entity(
        "IfcCartesianPointList3D", CoordList=[(8.0, 0.0, 3.0), (9.0, 0.0, 3.0), (9.0, 0.0, 4.0)]
    )
    faces = model.create_entity(
        "IfcTriangulatedFaceSet", Coordinates=corners, CoordIndex=[(1, 2, 3)], Closed=False
    )
    builder.add("IfcPlate", "leaf", [faces], kind="Tessellation")


def overlapping_spaces(builder):
    builder.add("IfcSpace", "over", [builder.box((7, 1, 0), (2, 3, 3))])


def idle_opening(builder):
    builder.add("IfcOpeningElement", "idle", [builder.box((0, 0, 3), (0.2, 0.2, 0.2))])


def far_opening(builder):
    opening = builder.add("IfcOpeningElement", "far", [builder.box((6, 0, 3), (1, 1, 1))])
    ifcopenshell.api.feature.add_feature(
        builder.model, feature=opening, element=of(builder, "upper 0")
    )


def no_unit(builder):
    for each in builder.model.by_type("IfcUnitAssignment"):
        each.Units = [builder.model.create_entity("IfcSIUnit", None, "MASSUNIT", "KILO", "GRAM")]


def no_map(builder):
    ifcopenshell.api.georeference.remove_georeferencing(builder.model)


def wrong_scale(builder):
    builder.model.by_type("IfcMapConversion")[0].Scale = 0.001


def no_crs(builder):
    builder.model.by_type("IfcProjectedCRS")[0].Name = None


def at_the_origin(builder):
    conversion = builder.model.by_type("IfcMapConversion")[0]
    conversion.Eastings = conversion.Northings = 0.0


FAULTS = {
    same_global_id: (1, {"upper 2", "upper 4"}, "it shares its GlobalId with 1 other object, such as IfcWall #"),
    duplicate: (2, {"again"}, "it is the same body in the same place as IfcWall upper 2 #"),
    no_storey: (3, {"upper 4"}, "it is in no place, such as a storey, and part of nothing that is in one"),
    in_the_building: (3, {"upper 4"}, "it is in the IfcBuilding House, and in none of its storeys"),
    no_geometry: (4, {"upper 4"}, "it has no representation and no parts that have one"),
    too_low: (5, {"low"}, "it lies 0.90 m below its storey second"),
    too_high: (5, {"high"}, "it lies 1.00 m above the storey that follows its storey first"),
    open_mesh: (6, {"leaf"}, "is open, so that it has no volume"),
    overlapping_spaces: (7, {"over"}, "it reaches 1.00 m into the space next #"),
    idle_opening: (8, {"idle"}, "it voids no element"),
    far_opening: (8, {"far"}, "it lies 5.00 m beside the IfcWall upper 0 that it voids"),
    no_unit: (9, {None}, "it states no unit of length"),
    no_map: (10, {None}, "it has no map conversion"),
    wrong_scale: (10, {None}, "the scale 0.001 of its map conversion is not that of metre to metres"),
    no_crs: (10, {None}, "its map conversion names no coordinate reference system"),
    at_the_origin: (10, {None}, "its map conversion is to the origin"),
}  # fmt: skip


@pytest.fixture(scope="module")
def con(tmp_path_factory):
    """All models in one database, which rules must tell apart: all faults, and the sound one."""
    folder = tmp_path_factory.mktemp("quality")
    paths = [sound().write(folder / "sound.ifc")]
    for fault in FAULTS:
        builder = sound()
        fault(builder)
        paths.append(builder.write(folder / f"{fault.__name__}.ifc"))
    with spatialq.connect() as con:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            with pytest.warns(FileWarning):  # of the one without a unit
                spatialq.load(con, [path.name for path in paths])
        con.execute("CREATE TABLE found AS FROM model_quality()")
        yield con


def test_a_sound_model_breaks_no_rule(con):
    assert con.sql("FROM found WHERE file_name = 'sound.ifc'").fetchall() == []
    assert con.sql("SELECT count(DISTINCT rule) FROM found").fetchall() == [(len(RULES),)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_each_fault_is_found_and_nothing_else(con, fault):
    number, names, reason = FAULTS[fault]
    rows = con.execute(
        "SELECT rule_number, rule, requirement, name, reason FROM found WHERE file_name = ?",
        [f"{fault.__name__}.ifc"],
    ).fetchall()
    rule = RULES[number - 1]
    assert {row[:3] for row in rows} == {(number, rule.name, rule.requirement)}
    assert [row[3] for row in sorted(rows, key=str)] == sorted(names, key=str)
    assert all(reason in row[4] for row in rows)


def test_other_tables(con):
    con.execute("CREATE SCHEMA s")
    for part in ("elements", "objects", "relations", "models"):
        con.execute(f"CREATE TABLE s.t{'' if part == 'elements' else f'_{part}'} AS FROM {part}")
    said = con.sql("FROM model_quality('s.t') ORDER BY ALL").fetchall()
    assert said == con.sql("FROM found ORDER BY ALL").fetchall()


def test_on_the_command_line(tmp_path):
    good, bad = sound(), sound()
    duplicate(bad)
    good.write(tmp_path / "good.ifc")
    bad.write(tmp_path / "bad.ifc")
    passed = spatialq_command("check", tmp_path / "good.ifc", "--quality")
    assert passed.returncode == 0
    result = spatialq_command(
        "check", tmp_path / "bad.ifc", "--quality", "-o", tmp_path / "a.json", "--json"
    )
    assert result.returncode == 1
    said = json.loads(result.stdout)
    assert [each["specification"] for each in said["specifications"]] == [r.name for r in RULES]
    failed = [each for each in said["specifications"] if each["status"] == "failed"]
    assert [(each["specification"], each["failed"]) for each in failed] == [(RULES[1].name, 1)]
    (row,) = json.loads((tmp_path / "a.json").read_text())["checks"]
    assert (row["facet"], row["name"], row["status"]) == ("quality", "again", "failed")
    page = tmp_path / "a.html"
    spatialq_command("check", tmp_path / "bad.ifc", "--quality", "-o", page)
    assert all(escape(rule.requirement) in page.read_text() for rule in RULES)
    missing = spatialq_command("check", tmp_path / "bad.ifc", "none.ids", "--quality")
    assert missing.returncode == 2
    write_las(tmp_path / "a.las", 10)
    cloud = spatialq_command("check", tmp_path / "a.las", "--quality")
    assert cloud.returncode == 2
    assert "a.las': is no building model" in cloud.stderr
