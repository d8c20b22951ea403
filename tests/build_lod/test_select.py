"""`lod_select`: which nodes a view needs, against the same in NumPy, node by node."""

import re

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import spatialq
from spatialq.database.connection import macros

GRID = 16
FULL = 1920, 1080


def tree(points, max_points=40, x0=(0.0, 0.0, 0.0), size=100.0):
    """Nodes over points, as build_lod has them; a node's samples are its name and its octants."""
    nodes = []

    def add(name, parent, low, edge, members):
        is_leaf = len(members) <= max_points
        child = ((members >= low + edge / 2) @ [4, 2, 1]).astype(int)
        voxels = np.unique((members - low) // (edge / GRID), axis=0)
        nodes.append(
            {
                "node": name,
                "level": len(name) - 1,
                "parent": parent,
                **dict(zip(("xmin", "ymin", "zmin"), low.tolist(), strict=True)),
                "size": edge,
                "spacing": 0.0 if is_leaf else edge / GRID,
                "is_leaf": is_leaf,
                "points": len(members),
                "count": len(members) if is_leaf else len(voxels),
                "samples": [{"x": x, "y": y, "z": z} for x, y, z in members.tolist()[:3]],
            }
        )
        for c in () if is_leaf else np.unique(child).tolist():
            corner = low + edge / 2 * np.array([c >> 2, c >> 1 & 1, c & 1])
            add(f"{name}{c}", name, corner, edge / 2, members[child == c])

    add("r", None, np.array(x0, float), size, np.asarray(points, float))
    return sorted(nodes, key=lambda node: (node["level"], node["node"]))


def terrain(n=6000):
    rng = np.random.default_rng(7)
    x, y = rng.uniform(0, 100, (2, n))
    return np.column_stack([x, y, 20 + 15 * np.sin(x / 15) * np.cos(y / 20)])


TERRAIN = tree(terrain())
CAMERAS = {
    "from above": {"eye": [50.0, -60.0, 80.0], "target": [50.0, 50.0, 20.0]},
    "inside the cloud": {"eye": [40.0, 45.0, 22.0], "target": [90.0, 60.0, 20.0], "fov": 75.0},
    "everything behind": {"eye": [50.0, -60.0, 80.0], "target": [50.0, -90.0, 90.0]},
    "far away": {"eye": [5e4, 4e4, 3e4], "target": [50.0, 50.0, 20.0]},
    "a narrow view": {"eye": [-50.0, -50.0, 40.0], "target": [70.0, 60.0, 20.0], "fov": 4.0},
    "a tall picture": {
        "eye": [50.0, -60.0, 80.0], "target": [30.0, 50.0, 20.0], "width": 40.0, "height": 900.0,
        "up": [0.3, 0.1, 1.0],
    },
    "near and far": {
        "eye": [50.0, -60.0, 80.0], "target": [50.0, 50.0, 20.0], "near": 130.0, "far": 150.0,
    },
    "a parallel view": {
        "eye": [80.0, -60.0, 80.0], "target": [50.0, 50.0, 20.0], "view_height": 30.0,
    },
    "a map": {
        "eye": [50.0, 50.0, 80.0], "target": [50.0, 50.0, 0.0], "up": [0.0, 1.0, 0.0],
        "view_height": 250.0, "width": 300.0, "height": 300.0,
    },
    "looking up": {"eye": [50.0, 50.0, -40.0], "target": [50.0, 50.0, 0.0], "up": [1.0, 0.0, 0.0]},
}  # fmt: skip


def corners(node):
    low = np.array([node["xmin"], node["ymin"], node["zmin"]])
    return low + node["size"] * np.array([[i >> 2, i >> 1 & 1, i & 1] for i in range(8)])


def view(camera):
    """What the picture needs: scale at a distance, and clip coordinates of places."""
    full = {"up": [0.0, 0.0, 1.0], "fov": 60.0, "width": FULL[0], "height": FULL[1], "near": 0.0}
    full |= camera
    eye, away = np.array(full["eye"]), np.subtract(full["target"], full["eye"])
    back = -away / np.sqrt(away @ away)
    right = np.cross(full["up"], back)
    right /= np.sqrt(right @ right)
    rotation = np.array([right, np.cross(back, right), -back])
    aspect = full["width"] / full["height"]

    def inside(places):
        """Whether each place is inside of each of the six planes."""
        u, v, w = rotation @ (places - eye).T
        half = full["view_height"] / 2 if "view_height" in full else w * np.tan(
            np.radians(full["fov"]) / 2
        )  # fmt: skip
        return np.array(
            [u <= half * aspect, u >= -half * aspect, v <= half, v >= -half, w >= full["near"],
             w <= full.get("far", np.inf)]
        )  # fmt: skip

    def pixels(length, node):
        """Of a square that faces the viewer, as far to the front of the cube as it is in view."""
        if "view_height" in full:
            return length / full["view_height"] * full["height"]
        depth = max(((corners(node) - eye) @ rotation[2]).min(), full["near"], 0.0)
        if depth == 0:
            return np.inf
        return length / depth / (2 * np.tan(np.radians(full["fov"]) / 2)) * full["height"]

    return inside, pixels


def is_seen(node, inside):
    low = np.array([node["xmin"], node["ymin"], node["zmin"]])
    corners = low + node["size"] * np.array([[i >> 2, i >> 1 & 1, i & 1] for i in range(8)])
    return inside(corners).any(axis=1).all()


def selected(nodes, camera, limit=1.0, taken=None):
    """Walk down from the root: pixels and octants by node, by the definition.

    Only names that are taken, if any are given, are drawn in their parent's place.
    """
    inside, pixels = view(camera)
    found = {}

    def draw(node):
        if node["is_leaf"]:
            found[node["node"]] = (None, 255)
            return
        octants, most = 0, 0.0
        for child in (each for each in nodes if each["parent"] == node["node"]):
            if not is_seen(child, inside):
                continue
            size = pixels(node["spacing"], child)
            if size > limit and (taken is None or child["node"] in taken):
                draw(child)
            else:
                octants |= 1 << int(child["node"][-1])
                most = max(most, size)
        if octants:
            found[node["node"]] = (most, octants)

    for root in nodes[:1]:
        if is_seen(root, inside):
            draw(root)
    return found


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        yield con


COLUMNS = list(TERRAIN[0])


def ask(con, nodes, camera, **options):
    schema = pa.Table.from_pylist(TERRAIN).schema
    con.register("lod", pa.Table.from_pylist(nodes, schema))
    named = "".join(f", {name} := {value}" for name, value in options.items())
    rows = con.execute(
        f"SELECT node, pixels, octants FROM lod_select('lod', {camera}{named})"
    ).fetchall()
    assert len({name for name, *_ in rows}) == len(rows)
    return {name: (size, octants) for name, size, octants in rows}


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0.5, 4.0, 40.0])
@pytest.mark.parametrize("name", CAMERAS)
def test_it_is_the_definition(con, name, limit):
    found = ask(con, TERRAIN, CAMERAS[name], pixels=limit)
    expected = selected(TERRAIN, CAMERAS[name], limit)
    assert found.keys() == expected.keys()
    for node, (size, octants) in expected.items():
        assert found[node][1] == octants, node
        assert found[node][0] == (None if size is None else pytest.approx(size, rel=1e-12)), node


def test_the_cameras_are_of_all_kinds():
    counts = {name: len(selected(TERRAIN, camera, 4.0)) for name, camera in CAMERAS.items()}
    assert counts["everything behind"] == 0
    assert counts["far away"] == 1
    assert counts["from above"] > 30
    levels = {len(name) for name in selected(TERRAIN, CAMERAS["inside the cloud"], 40.0)}
    assert len(levels) > 2


@pytest.mark.slow
def test_random_cameras(con):
    rng = np.random.default_rng(3)
    for _ in range(25):
        eye, target = rng.uniform(-80, 180, (2, 3)).tolist()
        camera = {"eye": eye, "target": target, "fov": rng.uniform(10, 120)}
        limit = 2.0 ** rng.uniform(-1, 6)
        found = ask(con, TERRAIN, camera, pixels=limit)
        expected = selected(TERRAIN, camera, limit)
        assert {node: octants for node, (_, octants) in found.items()} == {
            node: octants for node, (_, octants) in expected.items()
        }


@pytest.mark.slow
@pytest.mark.parametrize("max_samples", ["NULL", 900, 3000])
@pytest.mark.parametrize("name", CAMERAS)
def test_what_is_seen_is_drawn_exactly_once(con, name, max_samples):
    """Every point in the picture lies in one drawn leaf or in one octant of a drawn node."""
    found = ask(con, TERRAIN, CAMERAS[name], pixels=4.0, max_samples=max_samples)
    inside, _ = view(CAMERAS[name])
    nodes = {node["node"]: node for node in TERRAIN}
    points = terrain()
    times = np.zeros(len(points), int)
    for name, (_, octants) in found.items():
        node = nodes[name]
        low = np.array([node["xmin"], node["ymin"], node["zmin"]])
        mine = ((points >= low) & (points < low + node["size"])).all(axis=1)
        child = (points >= low + node["size"] / 2) @ [4, 2, 1]
        times += mine & (octants >> child & 1).astype(bool)
    assert times.max(initial=0) <= 1
    assert times[inside(points).all(axis=0)].all()


@pytest.mark.parametrize("off_axis", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("limit", [4.0, 12.0])
def test_no_voxel_in_the_picture_covers_more_than_its_node_says(con, limit, off_axis):
    """A voxel is a square that faces the viewer, of a camera that looks down, straight or not."""
    eye, height, fov = np.array([50.0, 50.0, 90.0]), 1000.0, 100.0
    away = np.array([off_axis, 0.0, -1.0])
    camera = {"eye": eye.tolist(), "target": (eye + away).tolist(), "up": [0.0, 1.0, 0.0]}
    camera |= {"fov": fov, "width": height, "height": height}
    found = ask(con, TERRAIN, camera, pixels=limit)
    away /= np.hypot(off_axis, 1.0)
    inside, _ = view(camera)
    points = terrain()
    points = points[inside(points).all(axis=0)]
    nearly = 0
    for node in (each for each in TERRAIN if each["node"] in found and not each["is_leaf"]):
        size, octants = found[node["node"]]
        low = np.array([node["xmin"], node["ymin"], node["zmin"]])
        mine = ((points >= low) & (points < low + node["size"])).all(axis=1)
        child = (points >= low + node["size"] / 2) @ [4, 2, 1]
        drawn = points[mine & (octants >> child & 1).astype(bool)]
        covers = node["spacing"] * height / 2 / np.tan(np.radians(fov / 2)) / ((drawn - eye) @ away)
        assert covers.max(initial=0) <= size <= limit
        nearly += covers.max(initial=0) > 0.95 * size
    assert nearly > 3


def samples(found):
    return sum(node["count"] for node in TERRAIN if node["node"] in found)


def test_a_budget_takes_what_looks_largest_and_no_more(con):
    camera = CAMERAS["inside the cloud"]
    whole = ask(con, TERRAIN, camera, pixels=0.5)
    assert samples(whole) > 2500
    before = 0
    for budget in (1000, 1600, 2500):
        found = ask(con, TERRAIN, camera, pixels=0.5, max_samples=budget)
        assert before <= samples(found) <= budget
        before = samples(found)
        assert before > budget / 2
        # what is drawn coarsely looks smaller than what is not
        _, pixels = view(camera)
        nodes = {node["node"]: node for node in TERRAIN}
        drawn = {name[: k + 1] for name in found for k in range(1, len(name))}
        smallest = min(pixels(nodes[name[:-1]]["spacing"], nodes[name]) for name in drawn)
        assert max(size for size, _ in found.values() if size is not None) <= smallest * (
            1 + 1e-12
        )  # siblings at one distance
    assert ask(con, TERRAIN, camera, pixels=0.5, max_samples=10**6) == whole


def within(nodes, camera, limit, max_samples):
    """The selection of the most nodes, in their order, with few enough samples; tries all."""
    inside, pixels = view(camera)
    by_name = {node["node"]: node for node in nodes}
    seen = [node["node"] for node in nodes[1:] if is_seen(node, inside)]

    def covers(name):
        return pixels(by_name[name[:-1]]["spacing"], by_name[name])

    ordered = sorted(
        (name for name in seen if covers(name) > limit),
        key=lambda name: (-covers(name), len(name), name),
    )
    best = selected(nodes, camera, limit, taken=())
    for n in range(1, len(ordered) + 1):
        found = selected(nodes, camera, limit, taken=ordered[:n])
        if sum(by_name[name]["count"] for name in found) <= max_samples:
            best = found
    return best


@pytest.mark.slow
def test_random_cameras_with_a_budget(con):
    rng = np.random.default_rng(5)
    clump = rng.uniform(30, 34, (300, 3))
    nodes = tree(np.concatenate([rng.uniform(0, 100, (300, 3)), clump]), max_points=12)
    n_coarser = 0
    for _ in range(40):
        eye, target = rng.uniform(0, 100, (2, 3)).tolist()
        camera = {"eye": eye, "target": target, "fov": 10 ** rng.uniform(0, 2), "height": 300.0}
        camera["width"] = 10 ** rng.uniform(0, 3)
        limit, max_samples = 2.0 ** rng.uniform(-1, 6), int(2 ** rng.uniform(3, 11))
        found = ask(con, nodes, camera, pixels=limit, max_samples=max_samples)
        expected = within(nodes, camera, limit, max_samples)
        assert {node: octants for node, (_, octants) in found.items()} == {
            node: octants for node, (_, octants) in expected.items()
        }
        n_coarser += expected != selected(nodes, camera, limit)
    assert n_coarser > 5


def test_a_budget_below_the_root_gives_the_root(con):
    for name in ("from above", "inside the cloud"):
        assert list(ask(con, TERRAIN, CAMERAS[name], max_samples=1)) == ["r"]


def test_one_leaf(con):
    (leaf,) = tree([[50.0, 50.0, 50.0]] * 3)
    camera = {"eye": [0.0, 0.0, 200.0], "target": [50.0, 50.0, 0.0]}
    assert ask(con, [leaf], camera) == {"r": (None, 255)}
    assert ask(con, [leaf], camera | {"target": [0.0, 0.0, 300.0], "up": [0.0, 1.0, 0.0]}) == {}
    point = leaf | {"xmin": 50.0, "ymin": 50.0, "zmin": 50.0, "size": 0.0}
    assert ask(con, [point], camera) == {"r": (None, 255)}


def test_an_empty_table(con):
    assert ask(con, [], CAMERAS["from above"]) == {}
    assert ask(con, [], CAMERAS["from above"], max_samples=5) == {}


def test_far_from_the_origin(con):
    shift = np.array([5e5, 5.4e6, 300.0])
    nodes = tree(terrain() + shift, x0=shift)
    for camera in CAMERAS.values():
        there = camera | {key: (shift + camera[key]).tolist() for key in ("eye", "target")}
        moved, still = ask(con, nodes, there, pixels=4.0), ask(con, TERRAIN, camera, pixels=4.0)
        assert {name: octants for name, (_, octants) in moved.items()} == {
            name: octants for name, (_, octants) in still.items()
        }


def test_all_columns_come_along_and_files_are_tables(con, tmp_path):
    path = tmp_path / "nodes.parquet"
    con.register("lod", pa.Table.from_pylist(TERRAIN))
    con.execute(f"COPY lod TO '{path}'")
    camera = CAMERAS["from above"]
    relation = con.sql(f"FROM lod_select('{path}', {camera})")
    assert relation.columns == [*COLUMNS, "pixels", "octants"]
    by_name = {node["node"]: node for node in TERRAIN}
    for row in relation.fetchall():
        named = dict(zip(relation.columns, row, strict=True))
        assert {name: named[name] for name in COLUMNS} == by_name[named["node"]]


def test_no_name_of_the_macro_is_in_the_way(con):
    (macro,) = (macro for macro in macros("native") if macro.name == "lod_select")
    names = re.findall(r"^(?:WITH )?(\w+) AS .*\(", macro.statement, re.MULTILINE)
    assert len(names) == 10
    camera = CAMERAS["from above"]
    expected = ask(con, TERRAIN, camera)
    for name in names:
        con.execute(f"CREATE TABLE {name} AS FROM lod")
        query = f"SELECT node, pixels, octants FROM lod_select('{name}', {camera})"
        found = {node: tuple(drawn) for node, *drawn in con.execute(query).fetchall()}
        assert found == expected, name
        con.execute(f"DROP TABLE {name}")
        query = f"WITH {name} AS (FROM lod) SELECT count(*) FROM lod_select('{name}', {camera})"
        assert con.execute(query).fetchall() == [(len(expected),)], name


def test_part_of_a_tree_ends_in_voxels(con):
    camera = CAMERAS["from above"]
    _, pixels = view(camera)
    top = [node for node in TERRAIN if node["level"] < 3]
    whole = {name: node for name, node in selected(TERRAIN, camera, 0.01).items() if len(name) < 4}
    found = ask(con, top, camera, pixels=0.01)
    ends = {node["node"]: node for node in top if node["level"] == 2 and not node["is_leaf"]}
    assert any(name in ends for name in found)
    for name, (size, octants) in found.items():
        assert octants == 255
        if name in ends:
            assert size == pytest.approx(pixels(ends[name]["spacing"], ends[name]))
        else:
            assert (size, octants) == whole[name]
    assert samples(ask(con, top, camera, pixels=0.01, max_samples=600)) <= 600


def test_several_trees_in_one_table_are_refused(con):
    sentence = "lod_select: node must be unique in lod, which is one tree, got 'r' more than once"
    with pytest.raises(duckdb.Error, match=re.escape(sentence)):
        ask(con, [*TERRAIN, TERRAIN[0]], CAMERAS["everything behind"])


def test_samples_are_read_only_where_they_are_asked_for(con, tmp_path):
    path = tmp_path / "nodes.parquet"
    con.register("lod", pa.Table.from_pylist(TERRAIN))
    con.execute(f"COPY lod TO '{path}'")
    query = f"SELECT node, octants FROM lod_select('{path}', {CAMERAS['from above']})"
    ((_, plan),) = con.execute(f"EXPLAIN {query}").fetchall()
    assert re.search(r"\bspacing\b", plan)
    assert not re.search(r"\bsamples\b", plan)


PLACE = "must be three numbers from -1e+30 to 1e+30"
STRUCT = "camera must be a struct such as {eye: [0, 0, 100], target: [50, 50, 0]}, got "


@pytest.mark.parametrize(
    ("camera", "sentence"),
    [
        ("NULL", f"{STRUCT}NULL"),
        ("[1, 2, 3]", f"{STRUCT}[1, 2, 3]"),
        ("{eye: [0, 0, 1]}", "camera must have 'target'"),
        ("{eye: [0, 0, 1], target: NULL}", "camera must have 'target'"),
        ("{eye: [0, 1, 0], zoom: 5}", "camera has no 'zoom'; there is eye, target, up, fov, view"),
        ("{eye: [0, 1], target: [0, 0, 1]}", f"eye {PLACE}, got [0.0, 1.0]"),
        (
            "{eye: ['nan'::DOUBLE, 0, 0], target: [0, 0, 1]}",
            f"eye {PLACE}, got [nan, 0.0, 0.0]",
        ),
        ("{eye: [1e308, 0, 0], target: [-1e308, 0, 1]}", f"eye {PLACE}, got [1e+308, 0.0, 0.0]"),
        ("{eye: [NULL, 0, 0], target: [0, 0, 1]}", "eye must be a list of numbers, got [NULL, 0,"),
        ("{eye: 5, target: [0, 0, 1]}", "eye must be a list of numbers, got 5"),
        ("{eye: [0, 0, 1], target: [0, 0, 1]}", "target must be another place than eye, got [0.0,"),
        (
            "{eye: [0, 0, 1], target: [0, 0, 0]}",
            "up must be across the view from eye to target (lo",
        ),
    ],
)
def test_a_camera_that_is_none(con, camera, sentence):
    with pytest.raises((duckdb.Error, ValueError), match=re.escape(sentence)) as caught:
        ask(con, TERRAIN, camera)
    assert "lod_select: camera" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ("up: [0, 0, 0]", "up must be a direction, got [0.0, 0.0, 0.0]"),
        ("fov: 0", "fov must be >= 1e-30 and < 180 degrees, or NULL, got 0.0"),
        ("fov: 5e-324", "fov must be >= 1e-30 and < 180 degrees, or NULL, got 5e-324"),
        ("fov: 180", "fov must be >= 1e-30 and < 180 degrees, or NULL, got 180.0"),
        ("fov: 'nan'::DOUBLE", "fov must be >= 1e-30 and < 180 degrees, or NULL, got nan"),
        ("fov: 'wide'", "fov must be a number, got 'wide'"),
        ("fov: 60, view_height: 5", "view_height must be left out where there is a fov, got 5.0"),
        ("view_height: -1", "view_height must be >= 1e-30 and <= 1e+30, or NULL, got -1.0"),
        ("width: 0", "width must be >= 1e-30 and <= 1e+30, got 0.0"),
        ("height: 'inf'::DOUBLE", "height must be >= 1e-30 and <= 1e+30, got inf"),
        ("near: -1", "near must be >= 0 and <= 1e+30, got -1.0"),
        ("near: 5, far: 5", "far must be > near (5), got 5.0"),
    ],
)
def test_a_field_of_the_camera_that_is_wrong(con, field, sentence):
    expected = re.escape(f"lod_select: camera: {sentence}")
    with pytest.raises((duckdb.Error, ValueError), match=expected):
        ask(con, TERRAIN, f"{{eye: [0, 0, 1], target: [0, 1, 0], {field}}}")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"pixels": 0}, "pixels must be a number > 0 and finite, got 0"),
        ({"pixels": "NULL"}, "pixels must be a number > 0 and finite, got NULL"),
        ({"pixels": "1e400"}, "pixels must be a number > 0 and finite, got inf"),
        ({"pixels": "'few'"}, "pixels must be a number > 0 and finite, got 'few'"),
        ({"max_samples": 0}, "max_samples must be a whole number >= 1 or NULL, got 0"),
        ({"max_samples": 2.5}, "max_samples must be a whole number >= 1 or NULL, got 2.5"),
        ({"max_samples": "1e30"}, "max_samples must be a whole number >= 1 or NULL, got 1e+30"),
    ],
)
@pytest.mark.parametrize("nodes", [TERRAIN, []], ids=["nodes", "no nodes"])
def test_an_option_that_is_wrong(con, nodes, options, sentence):
    with pytest.raises((duckdb.Error, ValueError), match=re.escape(f"lod_select: {sentence}")):
        ask(con, nodes, CAMERAS["from above"], **options)


@pytest.mark.parametrize("most", [1e30, -1e30])
def test_cameras_of_the_greatest_numbers(con, most):
    """Whatever they see, no number overflows: warnings are errors."""
    for lens in ({"fov": 1e-30}, {"fov": 179.99999999}, {"view_height": 1e-30}):
        for size in ({"width": 1e30, "height": 1e-30}, {"width": 1e-30, "height": 1e30}):
            camera = {"eye": [most, most, 0.0], "target": [-most, 0.0, most], "far": 1e308}
            assert set(ask(con, TERRAIN, camera | lens | size, max_samples=2**70)) <= {"r"}
