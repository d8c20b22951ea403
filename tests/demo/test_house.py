import itertools
import subprocess
import sys

import numpy as np
import pytest

from spatialq.demo import World, write_house
from spatialq.demo.house_plan import PAIRS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(world: World):
    import ifcopenshell

    return ifcopenshell.open(world.ifc)


@pytest.fixture(scope="module")
def shapes(model):
    """GlobalId: vertices in metres, triangles; and a tree of all of them."""
    import ifcopenshell.geom

    settings = ifcopenshell.geom.settings()
    for name, value in {
        "use-world-coords": True,
        "weld-vertices": True,
        "reorient-shells": True,
    }.items():
        settings.set(name, value)
    tree = ifcopenshell.geom.tree(backend="opencascade.trianglebvh")
    meshes = {}
    for shape in ifcopenshell.geom.iterator(settings, model, 1):
        tree.add_element(shape)
        vertices = np.array(shape.geometry.verts).reshape(-1, 3)
        meshes[shape.guid] = vertices, np.array(shape.geometry.faces).reshape(-1, 3)
    return meshes, tree


def _elements(model):
    """All elements with a shape but openings."""
    return [
        element
        for element in model.by_type("IfcElement")
        if element.Representation and not element.is_a("IfcFeatureElement")
    ]


def _boxes(meshes, pair):
    return [(meshes[part][0].min(axis=0), meshes[part][0].max(axis=0)) for part in (pair.a, pair.b)]


def _found(clashes):
    return {
        frozenset((clash.a.get_argument(0), clash.b.get_argument(0))): clash for clash in clashes
    }


def test_another_process_writes_the_same_bytes(tmp_path):
    here, there = tmp_path / "here.ifc", tmp_path / "there.ifc"
    write_house(here)
    code = "import sys; from spatialq.demo import write_house; write_house(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(there)], check=True)
    assert here.read_bytes() == there.read_bytes()


def test_the_file_is_valid(model):
    import ifcopenshell.validate

    logger = ifcopenshell.validate.json_logger()
    ifcopenshell.validate.validate(model, logger)
    assert logger.statements == []


def test_global_ids_are_unique(model):
    ids = [root.GlobalId for root in model.by_type("IfcRoot")]
    assert len(ids) == len(set(ids))


def test_every_product_with_a_shape_is_meshed(model, shapes):
    with_shape = {p.GlobalId for p in model.by_type("IfcProduct") if p.Representation}
    openings = {p.GlobalId for p in model.by_type("IfcOpeningElement")}
    assert with_shape - openings <= set(shapes[0])
    assert len(with_shape - openings) > 50


def test_every_mesh_is_closed(shapes):
    for name, (vertices, faces) in shapes[0].items():
        edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
        directed, counts = np.unique(edges, axis=0, return_counts=True)
        assert (counts == 1).all(), name
        reverse = np.unique(directed[:, ::-1], axis=0)
        np.testing.assert_array_equal(directed, reverse, err_msg=name)
        a, b, c = (vertices[faces[:, k]] for k in range(3))
        assert np.einsum("ij,ij->", a, np.cross(b, c)) / 6 > 0, name


def test_wall_volumes_are_the_stated_ones(model, shapes):
    import ifcopenshell.util.element

    for wall in model.by_type("IfcWall"):
        stated = ifcopenshell.util.element.get_psets(wall).get("Qto_WallBaseQuantities")
        if stated is None:
            continue
        vertices, faces = shapes[0][wall.GlobalId]
        a, b, c = (vertices[faces[:, k]] for k in range(3))
        volume = np.einsum("ij,ij->", a, np.cross(b, c)) / 6
        assert volume == pytest.approx(stated["NetVolume"], rel=1e-6), wall.Name


def test_named_parts_are_in_the_model(model, world):
    for pair in world.house.pairs:
        assert model.by_guid(pair.a)
        assert model.by_guid(pair.b)


def test_hard_pairs_are_all_of_them(model, shapes, world):
    elements = _elements(model)
    found = set(
        _found(shapes[1].clash_intersection_many(elements, elements, 0.002, check_all=True))
    )
    hosted = {frozenset(pair) for pair in world.house.of("hosted")}
    listed = {frozenset(p) for kind in ("hard", "contains") for p in world.house.of(kind)}
    assert found - hosted == listed


def test_near_pairs_are_all_of_them(model, shapes, world):
    elements = _elements(model)
    clashes = _found(shapes[1].clash_clearance_many(elements, elements, 0.0499, check_all=True))
    hard = {frozenset(pair) for pair in world.house.of("hard")}
    near = {key: clash.distance for key, clash in clashes.items() if clash.distance > 1e-4}
    listed = {
        frozenset((pair.a, pair.b)): pair.distance
        for pair in world.house.pairs
        if pair.kind == "near"
    }
    assert set(near) - hard == set(listed)
    for key, distance in listed.items():
        # the skin of a round pipe is a polygon inside the circle
        assert near[key] == pytest.approx(distance, abs=0.001)


def test_touching_pairs_share_no_volume_but_have_no_gap(shapes, world):
    for pair, named in zip(world.house.pairs, PAIRS, strict=False):
        if pair.kind != "touch" or "roof" in named.a:
            continue
        (low_a, high_a), (low_b, high_b) = _boxes(shapes[0], pair)
        overlap = np.minimum(high_a, high_b) - np.maximum(low_a, low_b)
        assert abs(overlap.min()) < 1e-6, named


def test_roof_halves_meet_at_the_ridge(shapes, world):
    south, north = (
        shapes[0][world.house.global_id(f"roof {side}")][0] for side in ("south", "north")
    )
    assert south[:, 1].max() == pytest.approx(4.0)
    assert north[:, 1].min() == pytest.approx(4.0)


def test_contained_and_equal_pairs(shapes, world):
    for pair in world.house.pairs:
        if pair.kind == "contains":
            (low_a, high_a), (low_b, high_b) = _boxes(shapes[0], pair)
            assert (low_a + 0.01 < low_b).all()
            assert (high_b + 0.01 < high_a).all()
        if pair.kind == "equal":
            np.testing.assert_allclose(shapes[0][pair.a][0], shapes[0][pair.b][0])


def test_equal_boxes_are_listed(model, shapes, world):
    boxes = {
        element.GlobalId: np.concatenate(
            [shapes[0][element.GlobalId][0].min(axis=0), shapes[0][element.GlobalId][0].max(axis=0)]
        )
        for element in _elements(model)
    }
    equal = {
        frozenset((a, b))
        for a, b in itertools.combinations(boxes, 2)
        if np.allclose(boxes[a], boxes[b])
    }
    assert equal == {frozenset(pair) for pair in world.house.of("equal")}


def test_the_two_walls_overlap_by_50_mm(shapes, world):
    hall, kitchen = (shapes[0][world.house.global_id(f"wall {n}")][0] for n in ("hall", "kitchen"))
    assert hall[:, 0].max() - kitchen[:, 0].min() == pytest.approx(0.05)


def test_fillings_are_in_their_hosts(model, world):
    hosted = {frozenset(pair) for pair in world.house.of("hosted")}
    for void in model.by_type("IfcRelVoidsElement"):
        host, opening = void.RelatingBuildingElement, void.RelatedOpeningElement
        for fills in opening.HasFillings:
            assert frozenset((host.GlobalId, fills.RelatedBuildingElement.GlobalId)) in hosted
    voids = [p for p in hosted if any(model.by_guid(i).is_a("IfcOpeningElement") for i in p)]
    assert len(voids) > len(model.by_type("IfcOpeningElement"))


def test_external_walls_are_on_the_outside(model):
    import ifcopenshell.util.element

    for wall in model.by_type("IfcWall"):
        external = ifcopenshell.util.element.get_psets(wall)["Pset_WallCommon"]["IsExternal"]
        kind = ifcopenshell.util.element.get_type(wall).Name
        assert external == (kind == "outer wall 300"), wall.Name
        assert ifcopenshell.util.element.get_material(wall) is not None


def test_systems_have_their_segments(model):
    for name, entity in (("heating", "IfcPipeSegment"), ("ventilation", "IfcDuctSegment")):
        system = next(s for s in model.by_type("IfcDistributionSystem") if s.Name == name)
        members = {m for relation in system.IsGroupedBy for m in relation.RelatedObjects}
        assert members == set(model.by_type(entity))


def test_the_roof_stands_where_the_village_has_it(model, shapes, world):
    """The map conversion of the file brings the roof onto the roof points of the scan."""
    import laspy
    from ifcopenshell.util.geolocation import auto_xyz2enh

    las = laspy.read(world.las)
    points = np.column_stack([las.x, las.y, las.z])[np.asarray(las.classification) == 6]
    for side, plane in zip(("south", "north"), world.village.house.roof_planes(), strict=True):
        vertices = shapes[0][world.house.global_id(f"roof {side}")][0]
        onto = np.array([auto_xyz2enh(model, *(1000 * vertex)) for vertex in vertices])
        away = onto @ plane.normal - plane.offset
        assert (np.abs(away) < 1e-3).sum() == 4
        low, high = onto[:, :2].min(axis=0), onto[:, :2].max(axis=0)
        # a box within the turned roof
        middle, half = (low + high) / 2, (high - low) / 5
        inside = (np.abs(points[:, :2] - middle) < half).all(axis=1)
        distance = points[inside] @ plane.normal - plane.offset
        assert inside.sum() > 100
        assert abs(np.median(distance)) < 0.01
        assert np.percentile(np.abs(distance), 95) < 0.08


def test_the_truth_says_where_the_model_is(model, world):
    from ifcopenshell.util.geolocation import auto_xyz2enh

    house = world.house
    place = auto_xyz2enh(model, 0.0, 0.0, 0.0)
    np.testing.assert_allclose(place, (house.eastings, house.northings, house.height), atol=1e-6)
