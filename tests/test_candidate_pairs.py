"""Boxes of elements, which of them are near, and the matrices of relations."""
# ruff: noqa: E501 (a line for each error)

import numpy as np
import pytest
import shapely

import spatialq
from tests.conftest import real_file


@pytest.fixture(scope="module")
def con(world):
    with spatialq.connect() as con:
        spatialq.load(con, world.ifc)
        yield con


def boxes_of(con, table="elements"):
    """GlobalIds and boxes of what operators consider, from the numbers of the meshes."""
    ids, low, high = [], [], []
    rows = con.sql(f"SELECT global_id, mesh.vertices, mesh.faces FROM spatial_elements('{table}')")
    for global_id, vertices, faces in rows.fetchall():
        corners = np.reshape(vertices, (-1, 3))[faces]
        ids.append(global_id)
        low.append(corners.min(axis=0))
        high.append(corners.max(axis=0))
    return ids, np.array(low), np.array(high)


def test_boxes_are_those_of_the_meshes(con):
    ids, low, high = boxes_of(con)
    found = con.sql("SELECT global_id, box FROM element_boxes('elements')").fetchall()
    expected = {each: [*a, *b] for each, a, b in zip(ids, low, high, strict=True)}
    assert dict(found) == expected


MADE_OF = {
    "where": "FROM elements_where('IfcWall')",
    "in_box": "FROM elements_in_box('elements', -50, -50, -50, 50, 50, 50)",
}


@pytest.mark.parametrize("name", MADE_OF)
@pytest.mark.parametrize(
    "call",
    [
        "element_footprints('{}')", "element_boxes('{}')", "candidate_pairs('{}', '{}')",
        "elements_in_box('{}', -50, -50, -50, 50, 50, 50)", "intersects_with('{}', 'elements')",
        "above('{}', '{}')", "distance('{}', '{}', 1)",
    ],
)  # fmt: skip
def test_views_that_macros_make_are_taken_by_others(con, name, call):
    """DuckDB refuses a macro within itself: what several of them share is none."""
    con.execute(f"CREATE OR REPLACE TEMP VIEW made AS {MADE_OF[name]}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE kept AS {MADE_OF[name]}")
    if call.startswith(name.replace("in_box", "elements_in_box")):
        pytest.skip("it is the macro that the view is made by")
    query = f"SELECT count(*) FROM {call}"
    ((count,),) = con.sql(query.format("made", "made")).fetchall()
    assert [(count,)] == con.sql(query.format("kept", "kept")).fetchall()
    assert count


@pytest.mark.parametrize("distance", [0.0, 0.001, 0.5])
@pytest.mark.parametrize("method", ["auto", "rtree", "none"])
def test_pairs_are_those_of_brute_force(con, distance, method):
    ids, low, high = boxes_of(con)
    gap = np.maximum(low[:, None] - high[None], low[None] - high[:, None]).max(axis=2)
    near = gap <= (np.inf if method == "none" else distance)
    within = {(ids[i], ids[j]) for i, j in zip(*np.nonzero(near), strict=True) if i < j}
    options = f"distance := {distance}, method := '{method}'"
    assert set(con.sql(f"FROM candidate_pairs('elements', {options})").fetchall()) == within
    both = {(ids[i], ids[j]) for i, j in zip(*np.nonzero(near), strict=True) if i != j}
    sql = f"FROM candidate_pairs('elements', 'elements', {options})"
    assert set(con.sql(sql).fetchall()) == both
    assert 0 < len(within) < len(both)


def test_of_two_tables(con):
    con.execute("CREATE VIEW walls AS FROM elements WHERE ifc_class = 'IfcWall'")
    con.execute("CREATE VIEW doors AS FROM elements WHERE ifc_class = 'IfcDoor'")
    con.execute("CREATE VIEW nothing AS FROM elements WHERE false")
    whole = con.sql("FROM candidate_pairs('elements', 'elements')").fetchall()
    walls, doors = (set(boxes_of(con, name)[0]) for name in ("walls", "doors"))
    expected = sorted(each for each in whole if each[0] in walls and each[1] in doors)
    assert sorted(con.sql("FROM candidate_pairs('walls', 'doors')").fetchall()) == expected != []
    for a, b in (("'nothing'", "NULL"), ("'nothing'", "'walls'"), ("'walls'", "'nothing'")):
        assert con.sql(f"FROM candidate_pairs({a}, {b})").fetchall() == []


def test_relations_do_not_depend_on_how_pairs_are_found(con):
    said = "SELECT * FROM spatial_relations('elements', broad_phase := '{}') ORDER BY a, b"
    expected = con.sql(said.format("auto")).fetchall()
    assert con.sql(said.format("none")).fetchall() == expected != []
    pairs = set(con.sql("FROM candidate_pairs('elements', distance := 0.001)").fetchall())
    assert {row[:2] for row in expected} <= pairs


def test_elements_in_a_box(con):
    ids, low, high = boxes_of(con)
    rng = np.random.default_rng(1)
    sizes = set()
    for _ in range(30):
        one, other = np.sort(rng.uniform(low.min(axis=0) - 1, high.max(axis=0) + 1, (2, 3)), axis=0)
        meets = ((low <= other) & (high >= one)).all(axis=1)
        corners = ", ".join(map(str, [*one, *other]))
        sql = f"SELECT global_id FROM elements_in_box('elements', {corners})"
        sql += " WHERE NOT is_no_body(ifc_class)"
        found = sorted(each for (each,) in con.sql(sql).fetchall())
        assert found == sorted(each for each, is_in in zip(ids, meets, strict=True) if is_in)
        sizes.add(len(found))
    assert len(sizes) > 5
    everything = ", ".join(f"'{sign}inf'::DOUBLE" for sign in ("-", "") for _ in range(3))
    found = con.sql(f"SELECT * FROM elements_in_box('elements', {everything})")
    whole = con.sql("FROM elements WHERE len(mesh.faces) > 0")
    assert found.columns == whole.columns
    assert sorted(map(str, found.fetchall())) == sorted(map(str, whole.fetchall()))


SQUARES = {  # b beside the square 0 .. 4, as shapely relates the two
    "disjoint": (6, 0, 8, 2),
    "touch": (4, 0, 6, 2),
    "overlap": (2, 2, 6, 6),
    "contains": (1, 1, 2, 2),
    "inside": (-1, -1, 6, 6),
    "covers": (0, 1, 2, 2),
    "covered_by": (0, -1, 6, 6),
    "equals": (0, 0, 4, 4),
}


@pytest.mark.parametrize("relation", SQUARES)
def test_the_matrix_of_a_relation_is_that_of_polygons(con, relation):
    matrix = shapely.relate(shapely.box(0, 0, 4, 4), shapely.box(*SQUARES[relation]))
    expected = "".join("F" if each == "F" else "T" for each in matrix)
    found = con.execute("SELECT nine_intersections(?)", [relation]).fetchall()
    assert found == [(expected,)]


def test_each_relation_of_the_kernel_has_a_matrix_and_its_inverse_the_transposed_one(con):
    sql = "SELECT relation, nine_intersections(relation) FROM spatial_relations('elements')"
    assert all(len(matrix) == 9 for _, matrix in con.sql(sql).fetchall())
    for one, other in (("contains", "inside"), ("covers", "covered_by")):
        a, b = con.execute(
            "SELECT nine_intersections(?), nine_intersections(?)", [one, other]
        ).fetchall()[0]
        assert "".join(a[k] for k in (0, 3, 6, 1, 4, 7, 2, 5, 8)) == b
    assert con.sql("SELECT nine_intersections(NULL)").fetchall() == [(None,)]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("FROM candidate_pairs('elements', method := 'octree')", "candidate_pairs: method must be one of 'auto', 'rtree', 'none', got 'octree'"),
        ("FROM candidate_pairs('elements', distance := -1)", "candidate_pairs: distance must be >= 0 metres, got -1"),
        ("FROM candidate_pairs(3)", "candidate_pairs: a must be the name of a table, got 3"),
        ("FROM elements_in_box('elements', 'x', 0, 0, 1, 1, 1)", "elements_in_box: xmin must be a number, got 'x'"),
        ("SELECT nine_intersections('meets')", "nine_intersections: relation must be one of disjoint, "),
    ],
)  # fmt: skip
def test_what_is_refused(con, sql, said):
    with pytest.raises(Exception, match="must be") as caught:
        con.sql(sql).fetchall()
    assert said in str(caught.value)


@pytest.mark.slow
def test_on_a_real_model():
    with spatialq.connect() as con:
        spatialq.load(con, real_file("data/ifc/Duplex_A_20110907.ifc"))
        tree, found = (
            set(con.sql(sql).fetchall())
            for sql in (
                "FROM candidate_pairs('elements', distance := 0.001, method := 'rtree')",
                "SELECT a, b FROM spatial_relations('elements')",
            )
        )
        assert found <= tree
