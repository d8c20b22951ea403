"""The tables of objects and relations, against what IfcOpenShell says of each object."""

import json
import math
import re
from collections import defaultdict
from itertools import pairwise

import ifcopenshell
import ifcopenshell.api.control
import ifcopenshell.api.group
import ifcopenshell.api.root
import ifcopenshell.api.sequence
import ifcopenshell.api.type
import ifcopenshell.guid
import ifcopenshell.ifcopenshell_wrapper as wrapper
import ifcopenshell.util.element
import ifcopenshell.util.placement
import ifcopenshell.util.unit
import pytest

from spatialq.database.readers.ifc_models import read_model
from spatialq.io.ifc.relations import RULES
from tests.conftest import real_file

from .ifc_models import Builder

SCHEMAS = ("IFC2X3", "IFC4", "IFC4X3_ADD2")
NOT_ATTRIBUTES = {
    "id", "type", "GlobalId", "OwnerHistory", "ObjectPlacement", "Representation",
    "RepresentationMaps",
}  # fmt: skip

MODELS = [
    f"data/ifc/{name}"
    for name in (
        "AC11-Institute-Var-2-IFC.ifc",
        "AC20-FZK-Haus.ifc",
        "Duplex_A_20110907.ifc",
        "Office_A_20110811.ifc",
        "SampleHouse4.ifczip",
        "Schependomlaan_BERNTS-Staalconstructie.ifczip",
        "bsi43_grid-placement.ifc",
        "bsi43_linear-placement-of-signal.ifc",
        "hvac_heating.ifczip",
        "revit2012_janesville_restaurant.ifczip",
    )
]
"""All three schemas, in metres, millimetres and feet."""


def opened(name):
    """Give the tables as rows, and the model in IfcOpenShell."""
    path = real_file(name)
    tables = read_model(path, geometry="none").tables
    return tables, ifcopenshell.open(str(path))


def by_step_id(tables):
    return {row["step_id"]: row for row in tables["objects"].to_pylist()}


def as_json(value):
    """Say what the JSON of an attribute should be, by `get_info`."""
    if isinstance(value, tuple):
        return [as_json(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, ifcopenshell.entity_instance):
        return value
    if value.id() == 0:
        return as_json(value.wrappedValue)
    if value.is_a("IfcRoot"):
        return value.GlobalId
    info = value.get_info(recursive=False).items()
    return {name: as_json(part) for name, part in info if name != "id" and part is not None}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_attribute_of_every_object_is_there(name):
    tables, model = opened(name)
    rows = by_step_id(tables)
    objects = model.by_type("IfcObjectDefinition")
    assert sorted(rows) == sorted(each.id() for each in objects)
    for each in objects:
        row = rows[each.id()]
        info = each.get_info(recursive=False)
        expected = {
            key: as_json(value)
            for key, value in info.items()
            if key not in NOT_ATTRIBUTES and value is not None
        }
        assert json.loads(row["attributes"]) == expected
        assert row["global_id"] == each.GlobalId
        assert row["ifc_class"] == each.is_a()
        for column, attribute in (
            ("name", "Name"), ("description", "Description"), ("object_type", "ObjectType"),
            ("tag", "Tag"), ("long_name", "LongName"),
        ):  # fmt: skip
            assert row[column] == info.get(attribute), (each, column)
        assert row["has_geometry"] == (getattr(each, "Representation", None) is not None)
        assert row["ifc_schema"] == model.schema_identifier


def above(entity):
    """Find the container, else the whole, of an entity."""
    element = ifcopenshell.util.element
    if entity.is_a("IfcTypeObject"):
        return None
    return element.get_container(entity, should_get_direct=True) or element.get_parent(entity)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_types_containers_wholes_and_storeys_are_those_of_ifcopenshell(name):
    element = ifcopenshell.util.element
    tables, model = opened(name)
    rows = by_step_id(tables)
    metres = ifcopenshell.util.unit.calculate_unit_scale(model)
    for each in model.by_type("IfcObjectDefinition"):
        row = rows[each.id()]
        assert row["predefined_type"] == element.get_predefined_type(each), each
        if each.is_a("IfcBuildingStorey"):
            height = ifcopenshell.util.placement.get_storey_elevation(each) * metres
            assert row["elevation"] == pytest.approx(height, abs=1e-12)
        else:
            assert row["elevation"] is None
        if each.is_a("IfcTypeObject"):
            continue
        kind = element.get_type(each)
        assert row["type_id"] == (kind and kind.GlobalId)
        assert row["type_name"] == (kind and kind.Name)
        container = element.get_container(each, should_get_direct=True)
        assert row["container_id"] == (container and container.GlobalId)
        storey = building = None
        way = above(each)
        while way is not None:
            if storey is None and way.is_a("IfcBuildingStorey"):
                storey = way
            if building is None and (way.is_a("IfcBuilding") or way.is_a("IfcFacility")):
                building = way
            way = above(way)
        assert row["storey_id"] == (storey and storey.GlobalId), each
        assert row["storey"] == (storey and storey.Name)
        assert row["building"] == (building and building.Name)
        whole = element.get_parent(each)
        if container is None:  # else get_parent gives the container
            assert row["parent_id"] == (whole and whole.GlobalId), each


def lineage(entity):
    while entity is not None:
        yield entity.name()
        entity = entity.supertype()


def relationships(schema, *, abstract=False):
    """List the classes of a schema that inherit from IfcRelationship."""
    return [
        each
        for each in wrapper.schema_by_name(schema).entities()
        if "IfcRelationship" in lineage(each) and (abstract or not each.is_abstract())
    ]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_relationship_class_has_a_rule_with_attributes_of_the_schema(schema):
    for each in relationships(schema):
        attributes = {attribute.name() for attribute in each.all_attributes()} | {None}
        rules = [rule for rule in RULES if rule[0] == each.name()]
        assert any({child, parent} <= attributes for _, child, parent, _ in rules), each.name()


def test_every_rule_is_of_a_class_and_attributes_that_exist():
    known = {
        (each.name(), attribute.name())
        for schema in SCHEMAS
        for each in relationships(schema)
        for attribute in each.all_attributes()
    }
    for ifc_class, child, parent, _ in RULES:
        assert (ifc_class, child) in known
        assert parent is None or (ifc_class, parent) in known


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "data/ifc/AC20-FZK-Haus.ifc",
        "data/ifc/Duplex_A_20110907.ifc",
        "data/ifc/Office_A_20110811.ifc",
        "data/ifc/SampleHouse4.ifczip",
        "data/ifc/bsi43_linear-placement-of-signal.ifc",
        "data/ifc/hvac_heating.ifczip",
    ],
)
def test_relations_answer_every_inverse_attribute(name):
    tables, model = opened(name)
    schema = model.schema_identifier
    subclasses = defaultdict(set)
    for each in relationships(schema, abstract=True):
        for top in lineage(each):
            subclasses[top].add(each.name())
    found = defaultdict(set)
    for row in tables["relations"].to_pylist():
        for side in ("child", "parent"):
            key = row[side], row["relation_class"], row[f"{side}_attribute"]
            found[key].add(row["relation_id"])
    compared = 0
    for each in model.by_type("IfcObjectDefinition"):
        declaration = wrapper.schema_by_name(schema).declaration_by_name(each.is_a())
        for inverse in declaration.as_entity().all_inverse_attributes():
            relation_class = inverse.entity_reference().name()
            if "IfcRelationship" not in lineage(inverse.entity_reference()):
                continue
            attribute = inverse.attribute_reference().name()
            relations = set()
            for subclass in subclasses[relation_class]:
                relations |= found[each.GlobalId, subclass, attribute]
            expected = {relation.GlobalId for relation in getattr(each, inverse.name())}
            assert relations == expected, (each, inverse.name())
            compared += len(expected)
    assert compared > 0


def tables_of(builder, path):
    return read_model(builder.write(path), geometry="none").tables


def objects_by_name(tables):
    return {row["name"]: row for row in tables["objects"].to_pylist()}


def related(tables, kind):
    rows = tables["relations"].to_pylist()
    return {(row["child_name"], row["parent_name"]) for row in rows if row["kind"] == kind}


def test_tasks_have_their_times_and_what_they_are_about(tmp_path):
    builder = Builder("IFC4")
    model, sequence = builder.model, ifcopenshell.api.sequence
    plan = sequence.add_work_schedule(model, name="Plan", predefined_type="PLANNED")
    build = sequence.add_task(model, work_schedule=plan, name="Build")
    brick = sequence.add_task(model, parent_task=build, name="Lay bricks")
    brick.PredefinedType, brick.ObjectType = "USERDEFINED", "MASONRY"
    paint = sequence.add_task(model, parent_task=build, name="Paint")
    sequence.assign_sequence(model, relating_process=brick, related_process=paint)
    time = sequence.add_task_time(model, task=brick)
    sequence.edit_task_time(
        model,
        task_time=time,
        attributes={"ScheduleStart": "2026-03-02T08:00:00", "ScheduleDuration": "P5D"},
    )
    wall, room = (
        ifcopenshell.api.root.create_entity(model, ifc_class=ifc_class, name=ifc_class)
        for ifc_class in ("IfcWall", "IfcSpace")
    )
    sequence.assign_product(model, relating_product=wall, related_object=brick)
    sequence.assign_process(model, relating_process=brick, related_object=room)
    tables = tables_of(builder, tmp_path / "tasks.ifc")
    task = objects_by_name(tables)["Lay bricks"]
    assert task["predefined_type"] == "MASONRY"
    assert task["parent_id"] == build.GlobalId
    times = json.loads(task["attributes"])["TaskTime"]
    assert times["type"] == "IfcTaskTime"
    assert times["ScheduleStart"] == time.ScheduleStart
    assert times["ScheduleStart"].startswith("2026-03-02T")
    assert times["ScheduleDuration"] == "P5D"
    assert "ActualStart" not in times
    assert related(tables, "sequence") == {("Paint", "Lay bricks")}
    assert related(tables, "assigned_to_product") == {("Lay bricks", "IfcWall")}
    assert related(tables, "assigned_to_process") == {("IfcSpace", "Lay bricks")}
    assert related(tables, "assigned_to_control") == {("Build", "Plan")}


def test_tasks_of_ifc2x3_lead_to_their_times(tmp_path):
    builder = Builder("IFC2X3")
    model = builder.model
    task, plan, times = (
        ifcopenshell.api.root.create_entity(model, ifc_class=ifc_class, name=name)
        for ifc_class, name in (
            ("IfcTask", "Build"), ("IfcWorkSchedule", "Plan"), ("IfcScheduleTimeControl", "When"),
        )
    )  # fmt: skip
    day = model.create_entity("IfcCalendarDate", 2, 3, 2026)
    times.ScheduleStart, times.ScheduleDuration = day, 432000.0
    model.create_entity(
        "IfcRelAssignsTasks",
        GlobalId=ifcopenshell.guid.new(),
        RelatedObjects=[task],
        RelatingControl=plan,
        TimeForTask=times,
    )
    tables = tables_of(builder, tmp_path / "tasks.ifc")
    assert related(tables, "assigned_to_control") == {("Build", "Plan")}
    assert related(tables, "timed_by") == {("Build", "When")}
    assert json.loads(objects_by_name(tables)["When"]["attributes"]) == {
        "Name": "When",
        "ScheduleStart": {
            "type": "IfcCalendarDate", "DayComponent": 2, "MonthComponent": 3, "YearComponent": 2026
        },
        "ScheduleDuration": 432000.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("of_type", "own", "expected"),
    [
        (("SOLIDWALL", None), ("PARTITIONING", None), "SOLIDWALL"),
        (("NOTDEFINED", None), ("PARTITIONING", None), "PARTITIONING"),
        (("USERDEFINED", "GREEN"), (None, None), "GREEN"),
        (("NOTDEFINED", None), ("USERDEFINED", "BLUE"), "BLUE"),
        (("NOTDEFINED", None), ("USERDEFINED", None), None),
        (None, ("USERDEFINED", "BLUE"), "BLUE"),
        (None, ("NOTDEFINED", "ignored"), "NOTDEFINED"),
    ],
)
def test_the_predefined_type_is_that_of_the_type_or_its_own(tmp_path, of_type, own, expected):
    builder = Builder()
    create = ifcopenshell.api.root.create_entity
    wall = create(builder.model, ifc_class="IfcWall", name="Wall")
    if of_type is not None:
        kind = create(builder.model, ifc_class="IfcWallType", name="Kind")
        ifcopenshell.api.type.assign_type(builder.model, related_objects=[wall], relating_type=kind)
        kind.PredefinedType, kind.ElementType = of_type
    wall.PredefinedType, wall.ObjectType = own
    assert ifcopenshell.util.element.get_predefined_type(wall) == expected
    rows = objects_by_name(tables_of(builder, tmp_path / "types.ifc"))
    assert rows["Wall"]["predefined_type"] == expected


@pytest.mark.parametrize("unit", ["millimetre", "metre", "foot"])
def test_elevations_are_in_metres_and_attributes_in_the_unit_of_the_file(tmp_path, unit):
    builder = Builder(unit=unit)
    builder.storey.Elevation = 3.5 * builder.scale
    rows = objects_by_name(tables_of(builder, tmp_path / "storeys.ifc"))
    storey = rows["Ground floor"]
    assert storey["elevation"] == pytest.approx(3.5)
    assert json.loads(storey["attributes"])["Elevation"] == 3.5 * builder.scale
    assert rows["House"]["elevation"] is None


def test_a_broken_placement_leaves_the_elevation_of_the_storey(tmp_path):
    builder = Builder()
    model = builder.model
    axes = model.create_entity("IfcAxis2Placement3D", Location=builder.point(0, 0, 7))
    placement = model.create_entity("IfcLocalPlacement", RelativePlacement=axes)
    builder.storey.ObjectPlacement = placement
    builder.storey.Elevation = 3.0

    def height():
        tables = tables_of(builder, tmp_path / "storey.ifc")
        return objects_by_name(tables)["Ground floor"]["elevation"]

    assert height() == 7.0
    placement.PlacementRelTo = placement
    assert height() == 3.0
    placement.PlacementRelTo = None
    axes.Location = None
    builder.storey.Elevation = None
    assert height() is None


def test_circles_and_long_chains_of_wholes_end(tmp_path):
    builder = Builder()
    model = builder.model
    names = [f"Part {i}" for i in range(5000)]
    chain = [builder.storey] + [
        model.create_entity("IfcElementAssembly", GlobalId=ifcopenshell.guid.new(), Name=name)
        for name in names
    ]
    round_trip = [
        model.create_entity("IfcElementAssembly", GlobalId=ifcopenshell.guid.new(), Name=name)
        for name in ("Egg", "Hen")
    ]
    for whole, part in [*pairwise(chain), round_trip, round_trip[::-1]]:
        model.create_entity(
            "IfcRelAggregates",
            GlobalId=ifcopenshell.guid.new(),
            RelatingObject=whole,
            RelatedObjects=[part],
        )
    rows = objects_by_name(tables_of(builder, tmp_path / "chain.ifc"))
    assert {rows[name]["storey"] for name in names} == {"Ground floor"}
    assert rows["Egg"]["storey"] is None
    assert rows["Egg"]["parent_id"] == rows["Hen"]["global_id"]
    assert rows["Hen"]["parent_id"] == rows["Egg"]["global_id"]


def test_entities_that_hold_too_much_are_given_by_their_class(tmp_path):
    builder = Builder()
    model = builder.model
    circle = model.create_entity("IfcOffsetCurve3D", Distance=1.0)
    circle.BasisCurve = circle
    points = [builder.point(i, 0) for i in range(3000)]
    long = model.create_entity("IfcPolyline", points)
    short = model.create_entity("IfcPolyline", points[:2])
    model.create_entity(
        "IfcGrid",
        GlobalId=ifcopenshell.guid.new(),
        Name="Grid",
        UAxes=[
            model.create_entity("IfcGridAxis", AxisTag=tag, AxisCurve=curve)
            for tag, curve in (("short", short), ("circle", circle), ("long", long))
        ],
    )
    rows = objects_by_name(tables_of(builder, tmp_path / "grid.ifc"))
    small, *large = json.loads(rows["Grid"]["attributes"])["UAxes"]
    corners = [{"type": "IfcCartesianPoint", "Coordinates": [x, 0.0]} for x in (0.0, 1.0)]
    assert small == {
        "type": "IfcGridAxis",
        "AxisTag": "short",
        "AxisCurve": {"type": "IfcPolyline", "Points": corners},
    }
    assert large == [{"type": "IfcGridAxis"}] * 2


def test_equal_global_ids_broken_text_and_wrong_values_keep_their_rows(tmp_path):
    builder = Builder()
    first, second, third = builder.boxes(3)
    second.GlobalId = first.GlobalId
    third.Description = "text"
    path = builder.write(tmp_path / "walls.ifc")
    text = path.read_bytes()
    text = text.replace(b"'Wall 0'", b"'W\xe4nd \\X2\\D800\\X0\\'")
    unit = re.search(rb"(#\d+)=IFCSIUNIT", text).group(1)
    text = text.replace(b"'Wall 1'", unit)
    path.write_bytes(text.replace(b"'text'", b"42"))
    tables = read_model(path, geometry="none").tables
    walls = [row for row in tables["objects"].to_pylist() if row["ifc_class"] == "IfcWall"]
    assert len(walls) == 3
    assert len({row["step_id"] for row in walls}) == 3
    assert len({row["global_id"] for row in walls}) == 2
    assert walls[1]["name"] is None
    assert walls[2]["description"] == "42"
    assert json.loads(walls[2]["attributes"])["Description"] == 42


def test_relationships_to_what_has_no_global_id_are_rows(tmp_path):
    builder = Builder("IFC4")
    model = builder.model
    space = builder.add("IfcSpace", "Room", None)
    wall = builder.add("IfcWall", "Wall", None)
    reference = model.create_entity("IfcClassificationReference", Identification="21", Name="Walls")
    common = {"GlobalId": "3fakeRelation000000001", "Name": "by code"}
    model.create_entity(
        "IfcRelAssociatesClassification",
        **common,
        RelatedObjects=[wall],
        RelatingClassification=reference,
    )
    model.create_entity("IfcRelSpaceBoundary", GlobalId="boundary", RelatingSpace=space)
    rows = {
        row["kind"]: row for row in tables_of(builder, tmp_path / "r.ifc")["relations"].to_pylist()
    }
    row = rows["associates_classification"]
    assert (row["child"], row["parent"]) == (wall.GlobalId, None)
    assert (row["parent_class"], row["parent_name"]) == ("IfcClassificationReference", "Walls")
    assert (row["relation_class"], row["relation_id"], row["relation_name"]) == (
        "IfcRelAssociatesClassification", "3fakeRelation000000001", "by code",
    )  # fmt: skip
    assert row["child_attribute"] == "RelatedObjects"
    assert row["parent_attribute"] == "RelatingClassification"
    # A boundary where no element is.
    row = rows["bounds_space"]
    assert (row["child"], row["child_class"], row["parent"]) == (None, None, space.GlobalId)
    assert row["relation_id"] == "boundary"


def test_groups_systems_and_property_sets_are_told_apart(tmp_path):
    builder = Builder("IFC4")
    model = builder.model
    create = ifcopenshell.api.root.create_entity
    pump = create(model, ifc_class="IfcPump", name="Pump")
    # In IFC4 a zone is a system.
    for ifc_class in ("IfcDistributionSystem", "IfcZone", "IfcGroup"):
        group = create(model, ifc_class=ifc_class, name=ifc_class)
        ifcopenshell.api.group.assign_group(model, products=[pump], group=group)
    sets = [
        model.create_entity("IfcPropertySet", GlobalId=ifcopenshell.guid.new(), Name=name)
        for name in ("One", "Two")
    ]
    model.create_entity(
        "IfcRelDefinesByProperties",
        GlobalId=ifcopenshell.guid.new(),
        RelatedObjects=[pump],
        RelatingPropertyDefinition=sets[0],
    )
    path = builder.write(tmp_path / "groups.ifc")
    one, two = (f"#{each.id()}" for each in sets)
    both = f",IFCPROPERTYSETDEFINITIONSET(({one},{two})));"
    path.write_text(path.read_text().replace(f",{one});", both))
    tables = read_model(path, geometry="none").tables
    systems = {("Pump", "IfcDistributionSystem"), ("Pump", "IfcZone")}
    assert related(tables, "assigned_to_system") == systems
    assert related(tables, "assigned_to_group") == {("Pump", "IfcGroup")}
    assert related(tables, "defined_by_properties") == {("Pump", "One"), ("Pump", "Two")}
    parents = {
        row["parent"]
        for row in tables["relations"].to_pylist()
        if row["kind"] == "defined_by_properties"
    }
    assert parents == {each.GlobalId for each in sets}
