"""`intersects_with` and its relatives through DuckDB."""

import duckdb
import numpy as np
import pytest
from spatialq.udfs.intersects_with import Options, cpu

import spatialq
from spatialq.database.connection import macros

from ..element_tables import FACES, box, put, put_room


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        put_room(con)
        con.execute("CREATE VIEW walls AS FROM elements WHERE ifc_class = 'IfcWall'")
        con.execute("CREATE VIEW pipes AS FROM elements WHERE ifc_class = 'IfcPipeSegment'")
        con.execute("CREATE VIEW spaces AS FROM elements WHERE ifc_class = 'IfcSpace'")
        yield con


def pairs(con, call):
    return sorted(con.sql(f"SELECT a, b, relation FROM {call}").fetchall())


CLASHES = [("wall", "pipe", "contains"), ("wall", "wall2", "overlap")]
TOUCHES = [("wall", "slab", "touch"), ("wall2", "slab", "touch")]


@pytest.mark.parametrize("name", ["'elements'", "elements", "'main.elements'"])
def test_columns_types_and_pairs(con, name):
    relation = con.sql(f"FROM intersects_with({name})")
    assert relation.columns == [
        "a", "b", "relation", "penetration", "thickness", "volume", "dx", "dy", "dz",
        "x", "y", "z", "flags",
    ]  # fmt: skip
    assert list(map(str, relation.types)) == [
        *["VARCHAR"] * 3, *["DOUBLE"] * 9, "VARCHAR[]",
    ]  # fmt: skip
    assert sorted(row[:3] for row in relation.fetchall()) == CLASHES


def test_volumes_are_measured_if_they_are_asked_for(con):
    columns = "volume, dx, dy, dz"
    for macro in ("intersects_with", "spatial_relations"):
        unasked = con.sql(f"SELECT DISTINCT {columns} FROM {macro}('elements')").fetchall()
        assert unasked == [(None,) * 4]
        call = f"{macro}('elements', volume := true)"
        assert pairs(con, call) == pairs(con, f"{macro}('elements')")
        query = f"SELECT {columns} FROM {call} WHERE a = 'wall' AND b = 'wall2'"
        ((volume, dx, dy, dz),) = con.sql(query).fetchall()
        assert volume == pytest.approx(dx * dy * dz)
        assert dx >= dy >= dz
    touch = con.sql(f"SELECT {columns} FROM {call} WHERE relation = 'touch'").fetchall()
    assert set(touch) == {(0, 0, 0, 0)}
    assert "volume" not in con.sql("FROM touches('elements', 'elements')").columns


def test_the_warning_of_a_tolerance_names_the_line_of_the_user():
    with pytest.warns(UserWarning, match="is in metres") as told:
        Options(tolerance=5.0).check()
    assert {each.filename for each in told} == {__file__}


def test_a_tolerance_in_another_unit_is_warned_of(con):
    with pytest.warns(UserWarning, match=r"intersects_with: tolerance := 5 is in metres") as told:
        assert pairs(con, "intersects_with('elements', tolerance := 5)") == []
    assert len({str(each.message) for each in told}) == 1
    con.sql("FROM intersects_with('elements', tolerance := 0.5)").fetchall()  # says nothing


IN_ROW_GROUPS = """
CREATE TABLE big.elements AS
SELECT i AS global_id, {{
    'vertices': [x, y, 0, x + 2, y, 0, x, y + 2, 0, x, y, 2]::DOUBLE[],
    'faces': [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]::INTEGER[]
}} AS mesh
FROM (
    SELECT i, 3 * (i % {half}) + i // {half} AS x, if(i % {half} % 256 = 0, 0, 9 * i) AS y
    FROM range(2 * {half}) AS r (i)
)
"""


@pytest.mark.parametrize("is_pinned", [False, True])
@pytest.mark.parametrize("transport", ["native", "lists"])
def test_the_first_of_a_pair_comes_first_in_the_table(tmp_path, transport, is_pinned):
    """Also if several threads read the table: elements far from each other in it meet."""
    half = 8192
    with spatialq.connect() if transport == "native" else duckdb.connect() as con:
        if transport == "lists":
            spatialq.install(con)
        con.execute(f"SET threads = 4; ATTACH '{tmp_path}/big.duckdb' AS big (ROW_GROUP_SIZE 2048)")
        con.execute(IN_ROW_GROUPS.format(half=half))
        for _ in range(3):
            if is_pinned:
                con.sql("FROM spatialq_pin('big.elements')").fetchall()
            found = con.sql("SELECT a, b FROM intersects_with('big.elements')").fetchall()
            assert sorted(found) == sorted((str(i), str(i + half)) for i in range(0, half, 256))
            if is_pinned:
                con.sql("FROM spatialq_unpin('big.elements')").fetchall()


def test_depth_and_point(con):
    query = "SELECT thickness, x, y, z, flags FROM intersects_with('walls')"
    thickness, x, y, z, flags = con.sql(query).fetchall()[0]
    assert thickness == pytest.approx(0.05, abs=1e-6)
    assert 3.95 <= x <= 4
    assert 0 <= y <= 0.3
    assert 0 <= z <= 3
    assert flags == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("intersects_with('walls', 'pipes')", [("wall", "pipe", "contains")]),
        ("intersects_with('pipes', 'walls')", [("pipe", "wall", "inside")]),
        ("intersects_with('pipes', 'pipes')", []),
        ("intersects_with('elements', tolerance := 0.06)", CLASHES[:1]),
        ("intersects_with('elements', broad_phase := 'rtree')", CLASHES),
        ("intersects_with('elements', exclude := 'default')", CLASHES[1:]),
        (
            "intersects_with('elements', exclude := 'default', relations := 'no_relations')",
            CLASHES,
        ),
        ("intersects_with('elements', device := 'cpu')", CLASHES),
        ("spatial_relations('elements')", sorted(CLASHES + TOUCHES)),
        ("touches('walls', 'elements')", TOUCHES),
        ("overlaps_with('walls', 'walls')",
         [("wall", "wall2", "overlap"), ("wall2", "wall", "overlap")]),
        ("contains_element('elements', 'elements')", CLASHES[:1]),
        ("inside('elements', 'elements')", [("pipe", "wall", "inside")]),
        ("covers('elements', 'elements')", []),
        ("covered_by('elements', 'elements')", []),
        ("equals('elements', 'elements')", []),
        # nothing but spaces: then they are considered
        ("touches('spaces', 'walls')", [("space", "wall", "touch"), ("space", "wall2", "touch")]),
    ],
)  # fmt: skip
def test_macros(con, call, expected):
    con.execute("CREATE OR REPLACE TABLE no_relations AS FROM relations LIMIT 0")
    assert pairs(con, call) == expected


@pytest.fixture(scope="module")
def with_copy(con):
    """The room and a pipe more, and the same elements of another file: nothing is in both."""
    put(
        con,
        "parts",
        global_id=["wall", "wall2", "slab", "pipe", "inner", "twin"],
        mesh=[
            box((0, 0, 0), (4, 0.3, 3)), box((3.95, 0, 0), (8, 0.3, 3)),
            box((-1, -1, -0.2), (9, 5, 0)), box((1, 0.1, 1), (3, 0.2, 1.1)),
            box((1.2, 0.1, 1), (1.4, 0.2, 1.1)), box((1, 0.1, 1), (3, 0.2, 1.1)),
        ],
    )  # fmt: skip
    con.execute("CREATE OR REPLACE TABLE copies AS SELECT *, 'other.ifc' AS file_name FROM parts")
    con.execute("CREATE OR REPLACE VIEW some_parts AS FROM parts WHERE global_id <> 'slab'")
    con.execute("CREATE OR REPLACE VIEW moved AS FROM parts ORDER BY global_id")
    return con


@pytest.mark.parametrize(
    "options", ["", ", volume := true", ", method := 'pairmesh'", ", tolerance := 0.08"]
)
@pytest.mark.parametrize("a", ["parts", "some_parts", "moved"])
@pytest.mark.parametrize("b", ["parts", "some_parts"])
def test_an_element_of_both_tables_meets_all_but_itself(with_copy, a, b, options):
    columns = "* EXCLUDE (flags)"
    own = f"SELECT {columns} FROM spatial_relations('{a}', '{b}'{options})"
    rows = f"(FROM copies WHERE global_id IN (SELECT global_id FROM {b}) ORDER BY global_id)"
    with_copy.execute(f"CREATE OR REPLACE TEMP VIEW copied AS FROM {rows}")
    other = f"SELECT {columns} FROM spatial_relations('{a}', 'copied'{options}) WHERE a <> b"
    found, expected = (sorted(map(repr, with_copy.sql(q).fetchall())) for q in (own, other))
    assert found == expected
    assert len(found) > 4


@pytest.mark.parametrize("b", ["parts", "some_parts"])
def test_no_element_is_related_to_itself(with_copy, monkeypatch, b):
    related = []

    def spy(meshes, rows_a, rows_b, *arguments, **named):
        related.extend(zip(rows_a.tolist(), rows_b.tolist(), strict=True))
        return relate_pairs(meshes, rows_a, rows_b, *arguments, **named)

    relate_pairs = cpu.relate_pairs
    monkeypatch.setattr(cpu, "relate_pairs", spy)
    found = pairs(with_copy, f"touches('parts', '{b}', device := 'cpu')")
    # boxes that meet, two of them the slab: once, or those without it in both orders
    assert len(related) == {"parts": 9, "some_parts": 2 * (9 - 2) + 2}[b]
    assert ("wall", "slab", "touch") in found or b == "some_parts"


def test_names_may_be_of_common_table_expressions(con):
    query = (
        "WITH thick AS (FROM elements WHERE global_id <> 'pipe') "
        "SELECT a, b, relation FROM intersects_with('thick')"
    )
    assert con.sql(query).fetchall() == CLASHES[1:]


def test_disjoint_is_the_rest_of_the_cross_set(con):
    count = "SELECT count(*) FROM"
    relations, rest, taking_part = (
        con.sql(f"{count} {call}").fetchall()[0][0]
        for call in (
            "spatial_relations('elements', 'elements')",
            "disjoint('elements', 'elements')",
            "spatial_elements('elements')",
        )
    )
    assert taking_part == 5
    assert relations + rest == taking_part * (taking_part - 1)
    assert ("pipe", "slab") in con.sql("FROM disjoint('elements', 'elements')").fetchall()


def test_a_table_needs_only_ids_and_meshes(con):
    con.execute("CREATE OR REPLACE TABLE bare AS SELECT mesh, global_id FROM elements")
    assert ("wall", "opening", "overlap") in pairs(con, "intersects_with('bare')")


def test_elements_without_a_mesh_take_no_part(con):
    empty = (np.empty((0, 3)), np.empty((0, 3), int))
    cube = box((0, 0, 0), (1, 1, 1))
    put(con, "odd", global_id=["x", None, "y", "z"], mesh=[None, cube, empty, cube])
    assert pairs(con, "intersects_with('odd')") == [(None, "z", "equals")]


def test_empty_tables_give_empty_results(con):
    con.execute("CREATE OR REPLACE TABLE nothing AS FROM elements LIMIT 0")
    for call in ("'nothing'", "'nothing', 'elements'", "'elements', 'nothing'") * 2:
        assert con.sql(f"FROM intersects_with({call})").fetchall() == [], call


def test_open_meshes_and_ids_that_are_not_unique_are_flagged(con):
    open_box = (box((0, 0, 0), (1, 1, 1))[0], FACES[2:])
    put(
        con,
        "odd",
        global_id=["twice", "twice", "open"],
        step_id=[1, 2, 3],
        mesh=[box((0, 0, 0), (1, 1, 1)), box((0.5, 0, 0), (2, 1, 1)), open_box],
    )
    rows = con.sql("SELECT a, b, flags FROM spatial_relations('odd')").fetchall()
    assert rows[0] == ("twice", "twice", ["a_duplicate_id", "b_duplicate_id"])
    assert rows[1] == ("twice", "open", ["b_open", "a_duplicate_id"])
    assert len(rows) == 3
    both = con.sql("SELECT count(*) FROM spatial_relations('odd', 'odd')").fetchall()
    assert both == [(6,)], "rows are distinguished by step_id"


NAN = (np.array([[0, 0, 0], [1, 0, 0], [0, np.nan, 0]]), [0, 1, 2])
BEYOND = (np.eye(3), [0, 1, 3])
NEGATIVE = (np.eye(3), [0, 1, -1])


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        (NAN, "with vertices that are not finite"),
        ((np.full((3, 3), np.inf), [0, 1, 2]), "with vertices that are not finite"),
        (BEYOND, "whose faces name vertices that are not there"),
        (NEGATIVE, "whose faces name vertices that are not there"),
        ((np.zeros(8), [0, 1, 1]), "whose number of vertices values is no multiple of 3"),
        ((np.eye(3), [0, 1, 2, 0]), "whose number of faces values is no multiple of 3"),
    ],
)
def test_broken_meshes_are_one_sentence(con, mesh, message):
    put(con, "broken", global_id=["fine", "g1", "g2"], mesh=[box((0, 0, 0), (1, 1, 1)), mesh, mesh])
    expected = f"intersects_with: b has 2 meshes {message}, the first is global_id g1"
    with pytest.raises(duckdb.Error, match=expected):
        con.sql("FROM intersects_with('elements', 'broken')").fetchall()


def test_null_among_the_values_of_a_mesh(con):
    con.execute(
        "CREATE OR REPLACE TABLE broken AS SELECT 'g1' AS global_id, "
        "{vertices: [0.0, 0, 0, 1, 0, 0, 0, 1, NULL], faces: [0, 1, 2]} AS mesh"
    )
    with pytest.raises(duckdb.Error, match="a has 1 mesh with NULL among its vertices, the first"):
        con.sql("FROM intersects_with('broken')").fetchall()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("NULL", "intersects_with: a must be the name of a table of elements, got NULL"),
        ("'elements', tolerance := -0.001", "tolerance must be >= 0 metres, got -0.001"),
        ("'elements', tolerance := 'nan'::DOUBLE", "tolerance must be >= 0 metres, got nan"),
        ("'elements', tolerance := NULL", "intersects_with: tolerance must not be NULL"),
        ("'elements', method := 'fast'", "method must be 'exact' or 'pairmesh', got 'fast'"),
        ("'elements', broad_phase := 'x'", "broad_phase must be 'auto' or 'rtree' or 'none'"),
        (
            "'elements', device := 'tpu'",
            "device must be 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1', got 'tpu'",
        ),
        ("'nowhere'", "Table with name nowhere does not exist"),
        (
            "'elements', exclude := 'duplicates'",
            "exclude must be 'none', 'default', or one or more ",
        ),
        ("'walls', exclude := 'default'", "walls_relations does not exist"),
        (
            "'relations'",
            "intersects_with: a must have a column (global_id|mesh).*, got 'relations' without it",
        ),
    ],
)
def test_wrong_arguments_are_one_sentence(con, call, message):
    with pytest.raises(duckdb.Error, match=message):
        con.sql(f"FROM intersects_with({call})").fetchall()


def test_scalar_forms(con):
    query = (
        "SELECT x.global_id || ' ' || y.global_id, mesh_relation(x.mesh, y.mesh), "
        "intersects(x.mesh, y.mesh), ST_3DIntersects(x.mesh, y.mesh), mesh_touches(x.mesh, y.mesh) "
        "FROM elements AS x, elements AS y WHERE x.global_id = 'wall' ORDER BY 1"
    )
    assert con.sql(query).fetchall() == [
        ("wall column", "disjoint", False, False, False),
        ("wall opening", "overlap", True, True, False),
        ("wall pipe", "contains", True, True, False),
        ("wall slab", "touch", False, True, True),
        ("wall space", "touch", False, True, True),
        ("wall wall", "equals", True, True, False),
        ("wall wall2", "overlap", True, True, False),
    ]
    assert con.sql(
        "SELECT mesh_relation(NULL, mesh), intersects(mesh, NULL), mesh_relation(NULL, NULL), "
        "mesh_relation({vertices: [], faces: []}, mesh) FROM walls LIMIT 1"
    ).fetchall() == [(None, None, None, "disjoint")]


def test_scalar_forms_are_the_table_form_by_rows(con):
    """Also beyond the rows that DuckDB hands over at once, and with other tolerances."""
    con.execute(
        "CREATE OR REPLACE TABLE many AS SELECT x.global_id AS a, y.global_id AS b, x.mesh AS m, "
        "y.mesh AS n FROM elements AS x, elements AS y, range(100)"
    )
    for tolerance in (0.001, 0.06):
        rows = con.sql(
            f"SELECT DISTINCT a, b, mesh_relation(m, n, tolerance := {tolerance}) FROM many "
            "WHERE a <> b"
        ).fetchall()
        assert len(rows) == 42
        con.execute("CREATE OR REPLACE TABLE bare AS SELECT global_id, mesh FROM elements")
        call = f"spatial_relations('bare', 'bare', tolerance := {tolerance})"
        assert sorted(row for row in rows if row[2] != "disjoint") == pairs(con, call)


@pytest.mark.parametrize(
    ("macro", "first", "second"),
    [
        ("mesh_disjoint", "pipe", "slab"),
        ("mesh_overlaps", "wall", "wall2"),
        ("mesh_contains", "wall", "pipe"),
        ("mesh_inside", "pipe", "wall"),
        ("mesh_equals", "wall", "wall"),
    ],
)
def test_each_relation_as_a_scalar(con, macro, first, second):
    query = (
        f"SELECT {macro}(x.mesh, y.mesh), {macro}(x.mesh, z.mesh) "
        "FROM elements AS x, elements AS y, elements AS z "
        f"WHERE x.global_id = '{first}' AND y.global_id = '{second}' AND z.global_id = 'slab'"
    )
    assert con.sql(query).fetchall() == [(True, macro == "mesh_disjoint")]


def test_related_elements(con):
    con.execute(
        "CREATE OR REPLACE TABLE kin AS FROM (VALUES "
        "('flight', 'stair', 'aggregates', 'IfcStair'), "
        "('rail', 'stair', 'aggregates', 'IfcStair'), "
        "('post', 'rail', 'aggregates', 'IfcRailing'), "
        "('storey', 'house', 'aggregates', 'IfcBuilding'), "
        "('attic', 'house', 'aggregates', 'IfcBuilding'), "
        "('hole', 'wall', 'voids', 'IfcWall'), ('door', 'hole', 'fills', 'IfcOpeningElement'), "
        "('p1', 'p2', 'connects_ports', 'IfcDistributionPort'), "
        "('p1', 'duct', 'port_of', 'IfcDuctSegment'), ('p2', 'elbow', 'port_of', 'IfcDuctFitting'),"
        "('p3', 'elbow', 'nests', 'IfcDuctFitting'), ('p4', 'pump', 'nests', 'IfcPump'), "
        "('p3', 'p4', 'connects_ports', 'IfcDistributionPort'), "
        "('beam', 'column', 'connects', 'IfcColumn'), ('tiles', 'wall', 'covers', 'IfcWall'), "
        "('duct', 'air', 'assigned_to_system', 'IfcDistributionSystem'), "
        "('elbow', 'air', 'assigned_to_system', 'IfcDistributionSystem'), "
        "('pump', 'air', 'assigned_to_system', 'IfcDistributionSystem'), "
        "('duct', 'lot', 'assigned_to_group', 'IfcGroup'), "
        "('wall', 'lot', 'assigned_to_group', 'IfcGroup'), "
        "('stair', 'storey', 'contained_in', 'IfcBuildingStorey')"
        ") AS t(child, parent, kind, parent_class)"
    )
    found = con.sql("FROM related_elements('kin')").fetchall()
    assert {(b, a, rule) for a, b, rule in found} == set(found)
    assert len(found) == len(set(found))
    expected = {
        "assemblies": "flight stair, rail stair, flight rail, post rail, post stair, flight post, "
        "elbow p3, p4 pump",
        "openings": "hole wall, door hole, door wall",
        "connections": "duct elbow, elbow pump, beam column",
        "coverings": "tiles wall",
        "systems": "duct elbow, duct pump, elbow pump",
    }
    assert {(*sorted((a, b)), rule) for a, b, rule in found} == {
        (*pair.split(), rule) for rule, pairs in expected.items() for pair in pairs.split(", ")
    }
    for exclude, rules in (
        ("'systems, openings'", "('systems', 'openings')"),
        ("'default'", "('openings', 'coverings', 'assemblies', 'connections')"),
    ):
        query = f"SELECT a, b FROM query(spatialq_related_sql('f', {exclude}, 'x', 'kin'))"
        by_hand = f"SELECT DISTINCT a, b FROM related_elements('kin') WHERE rule IN {rules}"
        assert sorted(con.sql(query).fetchall()) == sorted(con.sql(by_hand).fetchall())


def test_no_macro_takes_the_name_of_a_function_of_duckdb():
    with duckdb.connect() as bare:
        names = bare.sql("SELECT DISTINCT lower(function_name) FROM duckdb_functions()").fetchall()
    taken = {name for (name,) in names}
    assert taken & {macro.name.lower() for macro in macros("native")} == set()
    assert "contains" in taken


def test_the_log_counts_triangles(con):
    con.sql("FROM intersects_with('walls', 'pipes')").fetchall()
    query = "SELECT function, row_count, device, error FROM spatialq_log()"
    assert con.sql(query).fetchall()[-1] == ("intersects_with", 3 * 12, "cpu", None)


def test_run_elements_takes_meshes_and_lists():
    walls = [box((0, 0, 0), (4, 0.3, 3)), box((3.95, 0, 0), (8, 0.3, 3))]
    found = spatialq.run_elements("intersects_with", walls)
    assert [found[name].tolist() for name in ("a", "b", "relation")] == [[0], [1], [2]]
    same = spatialq.run_elements(
        "intersects_with", spatialq.Meshes.of(walls[:1]), walls[1:], tolerance=0.06, relations=True
    )
    assert [same[name].tolist() for name in ("a", "b", "relation")] == [[0], [0], [1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["x"], "owm_ground"), "run_elements: owm_ground is a function of points: use"),
        (([(NAN[0], FACES[:0]), (NAN[0], [(0, 1, 2)])], "intersects_with"),
         "a has 2 meshes with vertices that are not finite, the first"),
        (([(np.zeros((3, 2)), FACES)], "intersects_with"),
         r"intersects_with: a: mesh 0: vertices must be numbers \[n, 3\], got float64\[3, 2\]"),
        (([(np.eye(3), np.eye(3))], "intersects_with"),
         r"intersects_with: a: mesh 0: faces must be integers \[m, 3\], got float64\[3, 3\]"),
        (([(np.eye(3), np.array([[0, 1, 2**32]]))], "intersects_with"),
         "a has 1 mesh whose faces name vertices that are not there, the first is at position 0"),
        ((spatialq.Meshes(np.eye(3), FACES[:0], np.array([0, 2]), np.array([0, 0])),
          "intersects_with"),
         "intersects_with: a: vertex_starts must grow from 0 to 3, the number of rows"),
        *(((given, "intersects_with"),
           f"intersects_with: a must be Meshes or a list of pairs, vertices and faces, got {got}")
          for given, got in (("walls", "str at position 0"), (7, "int at position 0"),
                             ([(np.eye(3), FACES), None], "NoneType at position 1"),
                             ([(np.eye(3),)], "tuple at position 0"))),
        (([], "cut_out"), "run_elements: no spatial function 'cut_out'"),
    ],
)  # fmt: skip
def test_run_elements_refuses(arguments, message):
    meshes, function = arguments
    with pytest.raises(ValueError, match=message):
        spatialq.run_elements(function, meshes)


def test_run_is_for_points():
    with pytest.raises(ValueError, match="run: intersects_with is a function of elements: use"):
        spatialq.run("intersects_with", [0.0], [0.0], [0.0])


def test_the_demos_queries_find_what_was_built_into_the_house(world):
    from spatialq.demo.run import queries

    asked = {title: query for title, query in queries() if "elements AS" in query}
    clashes, near = asked.values()
    with spatialq.connect() as con:
        spatialq.load(con, world.ifc)
        names = dict(con.sql("SELECT global_id, name FROM elements").fetchall())
        found = con.sql(clashes).fetchall()
        apart = con.sql(near).fetchall()
    house = world.house
    listed = house.of("hard") + house.of("contains") + house.of("equal")
    assert sorted(sorted((row[0], row[2])) for row in found) == sorted(
        sorted((names[a], names[b])) for a, b in listed
    )
    listed = [pair for pair in house.pairs if pair.kind == "near"]
    assert sorted(row[:2] for row in apart) == sorted((names[p.b], names[p.a]) for p in listed)
    for pair, row in zip(sorted(listed, key=lambda p: p.distance), apart, strict=True):
        assert row[2] == pytest.approx(pair.distance, abs=1e-3)
