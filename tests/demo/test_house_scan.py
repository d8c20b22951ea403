import laspy
import pytest

from spatialq.demo.house_plan import CLEAR, STOREY, WALLS
from spatialq.demo.house_scan import DISPLACED, NOISE, write_scan
from spatialq.demo.house_schedule import HEATED, SERVICES, TASKS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def millimetres(world):
    return laspy.read(world.scan).xyz * 1000


def test_the_same_bytes_each_time(world, tmp_path):
    write_scan(tmp_path / "again.laz")
    assert (tmp_path / "again.laz").read_bytes() == world.scan.read_bytes()


def test_points_are_on_walls_as_built_and_on_floors(millimetres):
    x, y, z = millimetres.T
    near = 6 * NOISE
    on = (abs(z) < near) | (abs(z - STOREY) < near)
    for wall in WALLS:
        along, across = (x, y) if wall.along_x else (y, x)
        low, high = (wall.low, wall.high) if wall.along_x else (wall.low[::-1], wall.high[::-1])
        within = (along >= low[0]) & (along <= high[0])
        within &= (z >= wall.foot) & (z <= wall.foot + CLEAR)
        for face in (low[1], high[1]):
            is_face = within & (abs(across - face - DISPLACED.get(wall.name, 0.0)) < near)
            assert is_face.sum() > 500, wall.name
            on |= is_face
    assert on.all()
    assert on.size > 50_000


def test_no_points_in_windows(millimetres):
    x, y, z = millimetres.T
    (south,) = (wall for wall in WALLS if wall.name == "wall south 1")
    for gap in south.gaps:
        within = (x > gap.start) & (x < gap.end) & (z > gap.sill) & (z < gap.head)
        assert not (within & (abs(y - south.low[1]) < 50)).any()


def test_each_part_is_built_by_one_task(world):
    import ifcopenshell

    model = ifcopenshell.open(world.ifc)
    tasks = {}
    for relation in model.by_type("IfcRelAssignsToProduct"):
        assert relation.RelatingProduct not in tasks
        (tasks[relation.RelatingProduct],) = relation.RelatedObjects
    contained = [
        part
        for relation in model.by_type("IfcRelContainedInSpatialStructure")
        for part in relation.RelatedElements
    ]
    assert set(tasks) == set(contained)
    assert {task.Name for task in tasks.values()} == {task.name for task in (*TASKS, SERVICES)}
    for relation in model.by_type("IfcRelSequence"):
        before, after = (
            each.TaskTime for each in (relation.RelatingProcess, relation.RelatedProcess)
        )
        assert before.ScheduleFinish < after.ScheduleStart


def test_the_zone_has_the_heated_rooms(world):
    import ifcopenshell

    model = ifcopenshell.open(world.ifc)  # its entities live as long as it does
    (zone,) = model.by_type("IfcZone")
    (members,) = zone.IsGroupedBy
    assert sorted(room.Name for room in members.RelatedObjects) == sorted(HEATED)
    assert all(room.is_a("IfcSpace") for room in members.RelatedObjects)
