"""Queries as values, and the connections, tables and names that they live with."""

import math
import threading

import duckdb
import numpy as np
import pytest

import spatialq as sq
from spatialq.query import expressions

from ..element_tables import put, put_room
from ..ids.ids_files import attribute, entity, specification, write_ids

CLOUD = "SELECT i AS point_id, i % 50 AS x, i // 50 AS y, 1.0 AS z FROM range(2500) AS t(i)"


@pytest.fixture
def points(con):
    con.execute(f"CREATE TABLE cloud AS {CLOUD}")
    return sq.table(con, "cloud")


def test_numbers_of_numpy(points):
    assert points.limit(np.int64(3)).sql() == "FROM cloud\nLIMIT 3"
    with pytest.raises(sq.QueryError):
        points.limit(np.bool_(1))


def test_a_query_never_changes(points):
    before = points.sql(), points.columns
    high = points.where("x > 10")
    texts = high.sql()
    high.where("y > 3").select("x").order("x").limit(3)
    points.classify_ground().aggregate("count(*)")
    high.with_columns(z="0").distinct().alias("other").pin()
    assert (points.sql(), points.columns) == before
    assert high.sql() == texts


def test_kinds_are_known_by_their_columns(site):
    def kind(name):
        return type(sq.table(site, name))

    assert kind("points") is sq.Points
    assert kind("cells") is sq.Grid
    assert kind("elements") is sq.Elements
    assert kind("objects") is sq.Objects
    assert kind("relations") is sq.Query
    assert type(sq.table(site, "points").select("x", "y", "z")) is sq.Grid
    assert type(sq.table(site, "points").select("x")) is sq.Query
    assert type(sq.table(site, "elements").intersects_with()) is sq.Pairs
    assert type(sq.table(site, "points").build_lod()) is sq.Nodes
    upper = sq.from_sql(site, 'SELECT point_id AS "Point_ID", x AS X, y AS Y, z AS Z FROM points')
    assert type(upper) is sq.Points
    assert upper.classify_ground().count() == 6000


def test_groups_of_clashes_are_those_of_sql(site):
    site.execute("CREATE OR REPLACE TEMP TABLE found AS FROM intersects_with('elements')")
    site.execute("""
CREATE OR REPLACE TEMP TABLE named AS
SELECT p.*, a.ifc_class AS a_class, b.ifc_class AS b_class, a.storey AS a_storey,
    b.storey AS b_storey
FROM found AS p JOIN elements AS a ON a.global_id = p.a JOIN elements AS b ON b.global_id = p.b
""")
    clashes = sq.table(site, "elements").intersects_with()
    assert type(clashes.grouped_clashes()) is sq.Pairs
    assert "a_name" in clashes.clash_groups().with_names().columns
    by_storey = clashes.with_names().clash_groups(per="storey")
    for made, call in [
        (clashes.clash_groups(), "clash_groups('found')"),
        (clashes.clash_groups(per="relation"), "clash_groups('found', per := 'relation')"),
        (clashes.clash_groups(per="space", distance="50cm"),
         "clash_groups('found', per := 'space', distance := 0.5)"),
        (clashes.grouped_clashes(per="relation"), "grouped_clashes('found', per := 'relation')"),
        (by_storey, "clash_groups('named', per := 'storey')"),
        (clashes.with_names().clash_matrix(), "clash_matrix('named')"),
    ]:  # fmt: skip
        rows = made.fetchall()
        assert len(rows) > 1
        assert sorted(map(repr, rows)) == sorted(map(repr, site.sql(f"FROM {call}").fetchall()))
    first = clashes.grouped_clashes().where("group_id = 1").elements("a")
    assert 1 <= first.count() <= clashes.clash_groups().limit(1).fetchall()[0][2]


def test_macros_of_elements_are_methods_with_the_rows_of_sql(site, files):
    elements = sq.table(site, "elements")
    site.execute(
        "CREATE OR REPLACE TEMP VIEW near_walls AS FROM elements WHERE is_a(ifc_class, 'IfcWall')"
    )
    walls = sq.table(site, "near_walls")
    for made, call in [
        (elements.candidate_pairs(distance="100mm"),
         "candidate_pairs('elements', distance := 0.1)"),
        (elements.candidate_pairs(walls, method="none"),
         "candidate_pairs('elements', 'near_walls', method := 'none')"),
        (elements.candidate_pairs("near_walls"), "candidate_pairs('elements', 'near_walls')"),
        (elements.element_boxes(), "element_boxes('elements')"),
        (elements.elements_in_box([0, 0, 0, 4, math.inf, 2.5]),
         "elements_in_box('elements', 0, 0, 0, 4, 'inf'::DOUBLE, 2.5)"),
        (elements.related_elements(), "related_elements('relations')"),
    ]:  # fmt: skip
        rows = made.fetchall()
        assert len(rows) > 1
        assert sorted(map(repr, rows)) == sorted(map(repr, site.sql(f"FROM {call}").fetchall()))
    some = elements.elements_in_box((0, 0, 0, 4, math.inf, 2.5))
    assert type(some) is sq.Elements
    assert 0 < some.count() < elements.count()
    pairs = elements.candidate_pairs(walls)
    assert {row[0] for row in pairs.elements("b").select("global_id").fetchall()} <= {
        row[0] for row in walls.select("global_id").fetchall()
    }
    house = sq.read_ifc(site, files / "house.ifc")
    expected = elements.related_elements().fetchall()
    assert sorted(house.is_a("IfcWall").related_elements().fetchall()) == sorted(expected)
    with pytest.raises(sq.QueryError, match="related_elements: the objects of these rows"):
        sq.from_sql(site, "FROM elements").related_elements()
    for bounds in ((0, 0, 1, 1), (0, 0, 0, 1, 1, math.nan), None):
        with pytest.raises(sq.QueryError, match="elements_in_box: bounds must be six numbers"):
            elements.elements_in_box(bounds)
    with pytest.raises(sq.QueryError, match="candidate_pairs: distance must be"):
        elements.candidate_pairs(distance="far")


def test_objects_of_another_model_are_refused(con):
    for name, file in (("own", "a.ifc"), ("other", "b.ifc")):
        con.execute(
            f"CREATE TABLE {name} AS SELECT 'IfcWall' AS ifc_class, 1::BIGINT AS step_id, "
            f"'{file}' AS file_name, 'IFC4' AS model_schema"
        )
    con.execute("CREATE VIEW nothing AS FROM own WHERE false")
    message = "elements_where: objects must be those of the models .* 'a.ifc', got those of 'b.ifc'"
    for selector in ("IfcWall", "IfcChimney"):
        with pytest.raises(duckdb.Error, match=message):
            con.sql(f"FROM elements_where('{selector}', 'own', 'other')").fetchall()
    assert len(con.sql("FROM elements_where('IfcWall', 'own', 'own')").fetchall()) == 1
    assert con.sql("FROM elements_where('IfcWall', 'nothing', 'other')").fetchall() == []


def test_elements_are_checked_by_ids_and_for_quality_as_in_sql(site, files, tmp_path):
    rule = specification(entity("IFCWALL"), attribute("Description"))
    rules = write_ids(tmp_path / "walls.ids", rule)
    elements = sq.table(site, "elements")
    expected = sq.check_ids(site, files / "house.ifc", rules).select("specification", "status")
    found = elements.check_ids(rules).select("specification", "status")
    assert found.fetchall() == expected.fetchall() != []
    assert sorted(map(repr, elements.model_quality().fetchall())) == sorted(
        map(repr, site.sql("FROM model_quality('elements')").fetchall())
    )
    with pytest.raises(sq.QueryError, match="model_quality: these rows must be a table"):
        elements.is_a("IfcWall").model_quality()


def test_storeys_of_elements_are_those_of_sql(site, files):
    expected = site.sql("FROM unified_storeys('elements', 'objects')").fetchall()
    assert {row[4] for row in expected} >= {"ground floor", "upper floor"}
    table = sq.table(site, "elements")
    assert sorted(table.unified_storeys().fetchall()) == sorted(expected)
    house = sq.read_ifc(site, files / "house.ifc")
    ids = house.unified_storeys().select("global_id", "storey_unified").fetchall()
    assert sorted(ids) == sorted((row[2], row[4]) for row in expected)
    alone = sq.from_sql(site, "FROM elements")
    assert sorted(alone.unified_storeys(objects="objects").fetchall()) == sorted(expected)
    with pytest.raises(sq.QueryError, match="unified_storeys: the objects of these rows"):
        alone.unified_storeys()


FOLDS = {
    "where": lambda q: q.where("a >= 0", "a < 5 OR a = 7"),
    "select": lambda q: q.select("a", "a % 3 AS b"),
    "with_columns": lambda q: q.with_columns(a="a + 1", c="a"),
    "order": lambda q: q.order("a DESC"),
    "order_by_expression": lambda q: q.order("(a * 7) % 10", "a"),
    "limit": lambda q: q.limit(4),
    "distinct": lambda q: q.distinct(),
    "aggregate": lambda q: q.aggregate("max(a) AS a", group="a % 4"),
}
ONE_BY_ONE = {
    "where": "SELECT * FROM {} WHERE a >= 0 AND (a < 5 OR a = 7)",
    "select": "SELECT a, a % 3 AS b FROM {}",
    "with_columns": "SELECT * REPLACE (a + 1 AS a), a AS c FROM {}",
    "order": "SELECT * FROM {} ORDER BY a DESC",
    "order_by_expression": "SELECT * FROM {} ORDER BY (a * 7) % 10, a",
    "limit": "SELECT * FROM {} LIMIT 4",
    "distinct": "SELECT DISTINCT * FROM {}",
    "aggregate": "SELECT a % 4, max(a) AS a FROM {} GROUP BY ALL",
}


@pytest.mark.slow
@pytest.mark.parametrize("third", FOLDS)
@pytest.mark.parametrize("second", FOLDS)
def test_verbs_mean_the_same_folded_and_one_by_one(con, second, third):
    """Each verb after each two others: as views of views, which nothing folds."""
    con.execute("CREATE TABLE t AS SELECT i AS a FROM range(20) AS t(i) UNION ALL FROM range(5)")
    for first in FOLDS:
        query = sq.table(con, "t")
        con.execute("CREATE OR REPLACE TEMP TABLE step_0 AS FROM t ORDER BY rowid")
        for k, verb in enumerate((first, second, third)):
            query = FOLDS[verb](query)
            text = ONE_BY_ONE[verb].format(f"step_{k}")
            if "c" in con.table(f"step_{k}").columns:
                text = text.replace("(a + 1 AS a), a AS c", "(a + 1 AS a, a AS c)")
            con.execute(f"CREATE OR REPLACE TEMP TABLE step_{k + 1} AS {text}")
        expected = con.sql("FROM step_3")
        assert query.columns[: len(expected.columns)] == expected.columns
        chosen = (first, second, third)
        if "limit" in chosen and any(
            each in ("aggregate", "distinct") for each in chosen[: chosen.index("limit")]
        ):
            query.fetchall()  # which rows come first is not defined
        elif third.startswith("order"):
            assert [row[0] for row in query.fetchall()] == [row[0] for row in expected.fetchall()]
        else:
            assert sorted(map(repr, query.fetchall())) == sorted(map(repr, expected.fetchall()))


def test_names_that_need_quotes(con):
    con.execute('CREATE SCHEMA "my site"')
    names = ['"a b"', '"select"', "\"Grün '1'\"", '"x""y"', '"my site"."c d"', "main.plain"]
    for name in names:
        con.execute(f'CREATE TABLE {name} AS SELECT *, 1 AS "where", 2 AS "Höhe m" FROM ({CLOUD})')
        found = sq.table(con, name).where('"where" = 1 AND "Höhe m" = 2').with_columns(count="z")
        assert found.classify_ground().select('"Höhe m"', '"where"', "height").count() == 2500
    assert sq.table(con, "a b").where('"where" = 1').classify_ground().count() == 2500
    assert sq.table(con, "plain").alias("order by").classify_ground().count() == 2500


def test_columns_that_are_called_like_methods(con):
    put(con, "elements", global_id=["a"], mesh=[None], where=[1], columns=[2], sql=["x"], type=[3])
    found = sq.table(con, "elements")
    assert found.columns == ["global_id", "where", "columns", "sql", "type", "mesh"]
    assert found.select('"where"', "columns", "sql", "type").fetchall() == [(1, 2, "x", 3)]


def test_a_step_hides_no_table(con, files):
    con.execute("CREATE TABLE tile AS SELECT 1 AS n")
    found = sq.read_las(con, "tile.laz").classify_ground().where("(SELECT n FROM tile) = 1")
    assert "WITH tile_2 AS" in found.sql()
    assert found.count() == 6000


def test_views_and_temporary_tables(con):
    con.execute(f"CREATE TEMP TABLE temporary AS {CLOUD}")
    con.execute(f"CREATE VIEW seen AS {CLOUD}")
    con.register("frame", con.sql(CLOUD).to_arrow_table())
    for name in ("temporary", "seen", "frame"):
        found = sq.table(con, name).classify_ground().where("height >= 0")
        assert found.count() == 2500
        assert "classify_ground: " in found.explain()


def test_a_missing_table_is_no_variable_of_python(con):
    for name in ("con", "statement", "duckdb", "step"):
        with pytest.raises(sq.QueryError, match=f"table: no table '{name}'"):
            sq.table(con, name)


def test_empty_inputs(con):
    con.execute(f"CREATE TABLE none AS FROM ({CLOUD}) LIMIT 0")
    empty = sq.table(con, "none")
    assert empty.classify_ground().plane_points().fetchall() == []
    assert empty.detect_planes().to_arrow().num_rows == 0
    assert "0 rows" in empty._repr_html_()
    put(con, "elements", global_id=[], mesh=[])
    assert sq.table(con, "elements").intersects_with().fetchall() == []


def test_values_that_are_not_finite(con):
    con.execute(f"CREATE TABLE odd AS FROM ({CLOUD}) UNION ALL SELECT 9999, 'nan'::DOUBLE, 0, 0")
    odd = sq.table(con, "odd")
    with pytest.raises(sq.QueryError, match=r"classify_ground: .*finite"):
        odd.classify_ground().fetchall()
    assert odd.where("isfinite(x)").classify_ground().count() == 2500
    assert odd.within((0, 0, 100, 100)).count() == 2500


def test_a_transaction_is_the_users(points):
    con = points._con
    con.execute("BEGIN")
    con.execute("DELETE FROM cloud WHERE x > 10")
    assert points.count() == 550
    with pytest.raises(sq.QueryError):
        points.where("nothing > 1")
    assert points.classify_ground().count() == 550
    con.execute("ROLLBACK")
    assert points.count() == 2500


def test_a_pending_result_of_the_user_stays(points):
    con = points._con
    con.execute("FROM cloud ORDER BY point_id")
    first = con.fetchone()
    points.where("x > 1").order("x").sql()
    with pytest.raises(sq.QueryError, match="connection has an unfinished result"):
        points.where("x > 1").fetchall()
    assert con.fetchone()[0] == first[0] + 1


def test_two_connections_and_threads(loaded):
    found = {}

    def work(number):
        with sq.connect(str(loaded), read_only=True) as con:
            rows = sq.table(con, "points").where(f"classification = {number}").classify_ground()
            found[number] = rows.count()

    threads = [threading.Thread(target=work, args=(number,)) for number in (2, 6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(found.values()) == 6000
    assert found[2] > found[6] > 0


def test_a_database_without_the_extension(files):
    con = duckdb.connect()
    sq.install(con)
    with con:
        found = sq.read_las(con, "tile.laz").classify_ground().plane_points()
        assert found.count() == 6000
        assert con.sql("FROM spatialq_pins()").fetchall() == []
        assert con.sql("FROM duckdb_tables()").fetchall() == []


def test_joins(con):
    con.execute("CREATE TABLE a AS FROM (VALUES (1, 'x'), (2, 'y')) AS t(k, name)")
    con.execute("CREATE TABLE b AS FROM (VALUES (2, 'Y', 5), (3, 'Z', 6)) AS t(k, name, v)")
    a = sq.table(con, "a")
    assert a.join("b", "k").fetchall() == [(2, "y", 5, "Y")]
    assert a.join("b", "k").columns == ["k", "name", "v", "name_right"]
    assert a.join("b", ["k"], how="left").order("k").fetchall()[0] == (1, "x", None, None)
    assert a.join("b", "k", how="full").count() == 3
    assert a.join("b", "k", how="right").order("k").select("k").fetchall() == [(2,), (3,)]
    assert a.join("b", "k", how="semi").fetchall() == [(2, "y")]
    assert a.join("b", "k", how="anti").fetchall() == [(1, "x")]
    found = a.join(sq.table(con, "b").where("v > 5"), "b.k > a.k OR false")
    assert found.columns == ["k", "name", "v", "k_right", "name_right"]
    assert found.count() == 2
    assert found.where("k_right = 3").select("name_right").distinct().fetchall() == [("Z",)]
    assert a.join(a, "k").count() == 2
    assert a.union("b").columns == ["k", "name", "v"]
    assert a.union("b").where("v IS NULL").count() == 2


def test_conditions_of_a_join_do_not_run_into_each_other(con):
    con.execute("CREATE TABLE a AS SELECT i AS k FROM range(4) AS t(i)")
    con.execute("CREATE TABLE b AS SELECT i AS m FROM range(4) AS t(i)")
    a = sq.table(con, "a")
    found = a.join("b", ["k = 0 OR m = 0 -- OR true", "k = m + 1 -- ", "m < 2 OR false"])
    by_hand = con.sql("FROM a, b WHERE (k = 0 OR m = 0) AND k = m + 1 AND m < 2").fetchall()
    assert sorted(found.fetchall()) == sorted(by_hand) == [(1, 0)]


def test_each_condition_is_parsed_once(points, monkeypatch):
    texts = []
    parse = expressions._parse
    monkeypatch.setattr(expressions, "_parse", lambda text: texts.append(text) or parse(text))
    query = points
    for number in range(20):
        query = query.where(f"x > {number} OR y = 1")
    assert len(texts) == 20
    assert query.count() == points.where("x > 19 OR y = 1").count()


def test_terms_of_order_mean_the_columns_that_are_there(con):
    con.execute("CREATE TABLE t AS SELECT i AS id, (i * 3) % 5 AS a, i % 2 AS b FROM range(5) t(i)")
    t = sq.table(con, "t")
    by_a = [(0,), (2,), (4,), (1,), (3,)]
    assert t.order("2").select("id").fetchall() == by_a
    assert t.order("2 DESC").limit(3).select("id").fetchall() == by_a[:1:-1]
    assert t.order("ALL DESC").select("a").fetchall() == [(2,), (4,), (1,), (3,), (0,)]
    assert t.order("COLUMNS('a') * -1").select("id").fetchall() == by_a[::-1]
    counted = t.aggregate("count(a)", group="b")
    assert counted.order('"count(a)" DESC').fetchall() == [(0, 3), (1, 2)]
    fields = t.select("{'id': -id} AS s", "id").select("s.id")
    assert fields.order("id").fetchall() == [(-4,), (-3,), (-2,), (-1,), (0,)]


def test_what_groups_are_made_of(con):
    con.execute("CREATE TABLE t AS SELECT i AS id, i % 2 AS b FROM range(5) t(i)")
    t = sq.table(con, "t")
    assert sorted(t.aggregate("max(id - b)", group="b").fetchall()) == [(0, 4), (1, 2)]
    assert t.aggregate("count(*)", group="*").count() == 5
    assert t.aggregate("count(*), max(id)").fetchall() == [(5, 4)]
    assert t.aggregate("sum(id)", group=["b, b * 3", "b * 2 AS d"]).count() == 2
    assert t.aggregate("1 AS one", "max(id)", group="b").count() == 2


def test_lengths_may_have_units(site):
    elements = sq.table(site, "elements")
    near = elements.closer_than("elements", "50mm")
    assert near.sql() == "FROM closer_than('elements', 'elements', 0.05)"
    in_metres = elements.closer_than("elements", 0.05)
    assert sorted(near.select("a", "b").fetchall()) == sorted(in_metres.select("a", "b").fetchall())
    assert "tolerance := 0.002" in elements.intersects_with(tolerance="2 mm").sql()
    assert (
        "object_width := 30.48"
        in sq.table(site, "points").classify_ground(object_width="100ft").sql()
    )


def test_functions_see_the_rows_that_a_join_or_a_condition_left(points):
    few = points.where("x < 10")
    ids = few.select("point_id")
    joined = points.classify_ground().join(ids, "point_id").plane_points()
    by_hand = points._con.sql(
        "WITH part AS (FROM cloud SEMI JOIN (FROM cloud WHERE x < 10) USING (point_id)) "
        "SELECT point_id, plane_id FROM plane_points('part')"
    )
    assert sorted(joined.select("point_id", "plane_id").fetchall()) == sorted(by_hand.fetchall())


def test_pairs_have_names_and_elements(con):
    put_room(con)
    con.execute("ALTER TABLE elements ADD COLUMN name VARCHAR")
    con.execute("ALTER TABLE elements ADD COLUMN storey VARCHAR")
    con.execute("UPDATE elements SET name = upper(global_id), storey = 'ground'")
    con.execute("INSERT INTO elements FROM elements WHERE global_id = 'slab'")  # a GlobalId twice
    room = sq.table(con, "elements")
    pairs = room.is_a("IfcWall").intersects_with("elements")
    named = pairs.with_names()
    assert named.columns[-6:] == ["a_name", "a_class", "a_storey", "b_name", "b_class", "b_storey"]
    assert named.count() == pairs.count()
    rows = named.select("a", "a_name", "b", "b_class").fetchall()
    assert all(name == key.upper() for key, name, _, _ in rows)
    assert {row[0] for row in pairs.elements("b").select("global_id").fetchall()} == {
        row[2] for row in rows
    }
    assert type(pairs.elements("a")) is sq.Elements
    inner = room.intersects_with(exclude="default")
    assert ("pipe", "wall") not in inner.select("a", "b").fetchall()
    assert room.where("true").intersects_with(exclude="default", relations="relations").count()


def test_objects(site):
    objects = sq.table(site, "objects")
    chosen = "IfcWall, Pset_WallCommon.IsExternal=TRUE"
    expected = sorted(site.sql(f"SELECT name FROM objects_where('{chosen}')").fetchall())
    assert len(expected) > 1
    assert sorted(objects.objects_where(chosen).select("name").fetchall()) == expected
    part = objects.where("name <> 'x'").objects_where(chosen)
    assert sorted(part.select("name").fetchall()) == expected
    files = sq.read_ifc_objects(site, "house.ifc").is_a("IfcWall").objects_where(chosen)
    assert sorted(files.select("name").fetchall()) == expected
    elements = sq.table(site, "elements").where("volume > 0")
    assert elements.elements_where(chosen, objects="objects").count() == len(expected)
    storeys = sq.read_ifc_objects(site, "house.ifc").storey("upper floor").is_a("IfcWall")
    assert storeys.objects_where('IfcWall, location="upper floor"').count() == storeys.count() > 0


def test_rows_of_two_models_lose_none(site):
    two = sq.read_ifc(site, "house.ifc").union(sq.table(site, "elements"))
    with pytest.raises(sq.QueryError, match="elements_where: the objects of these rows are not"):
        two.elements_where("IfcWall")
    elements = sq.table(site, "elements")
    both = elements.is_a("IfcWall").union(elements.is_a("IfcDoor"))
    expected = elements.elements_where("IfcWall + IfcDoor").count()
    assert both.elements_where("IfcWall + IfcDoor").count() == expected


def test_storeys_of_tables_are_known(site):
    elements = sq.table(site, "elements")
    assert elements.is_a("IfcRoof").storey("foundation").fetchall() == []
    assert elements.where("volume > 1").elements_where("IfcWall").storey("upper floor").count() > 0
    made = elements.select("global_id", "mesh", "ifc_class", "'here' AS storey")
    assert made.as_kind(sq.Elements).storey("here").count() == elements.count()


def test_storeys_of_files_are_known_when_the_query_runs(con, tmp_path):
    house = sq.read_ifc(con, "house.ifc")
    walls = house.storey("ground flor").is_a("IfcWall")
    assert "WHERE storey = 'ground flor'" in walls.sql()
    runs = (
        walls.count,
        lambda: walls.alias("w").intersects_with(house).fetchall(),
        lambda: (
            house.where("true")
            .limit(9)
            .select("*")
            .as_kind(sq.Elements)
            .intersects_with(walls)
            .to_arrow()
        ),
        lambda: sq.read_ifc_objects(con, "house.ifc").storey("ground flor").to_arrow(),
        lambda: house.storey("foundation").storey("ground flor").fetchall(),
        lambda: walls.create("walls"),
        lambda: walls.write(tmp_path / "walls.parquet"),
    )
    for run in runs:
        with pytest.raises(sq.QueryError, match="storey: no storey 'ground flor'; near names are"):
            run()
    assert house.storey("foundation").is_a("IfcRoof").fetchall() == []
    assert house.storey("foundation").count() > 0


def test_several_files(con, files, tmp_path):
    for name in ("a.laz", "b.laz"):
        (tmp_path / name).write_bytes((files / "tile.laz").read_bytes())
    for name in ("a.ifc", "b.ifc"):
        (tmp_path / name).write_bytes((files / "house.ifc").read_bytes())
    clouds = sq.read_las(con, tmp_path / "*.laz")
    assert clouds.aggregate("count(*)", group="file_name").count() == 2
    assert clouds.count() == 12000
    assert clouds.within((650010, 5600010, 650012, 5600012)).classify_ground().count() % 2 == 0
    houses = sq.read_ifc(con, str(tmp_path / "*.ifc")).is_a("IfcWall")
    one = sq.read_ifc(con, "house.ifc").is_a("IfcWall")
    external = "IfcWall, Pset_WallCommon.IsExternal=TRUE"
    assert houses.elements_where(external).count() == 2 * one.elements_where(external).count() > 0


def test_a_union_of_one_model_is_of_it(con, files, tmp_path):
    (tmp_path / "other.ifc").write_bytes((files / "house.ifc").read_bytes())
    walls, doors = (sq.read_ifc(con, "house.ifc").is_a(each) for each in ("IfcWall", "IfcDoor"))
    assert walls.union(doors).elements_where("IfcDoor").count() == doors.count() > 0
    sq.load(con, "house.ifc")
    table = sq.table(con, "elements")
    assert (
        table.is_a("IfcWall").union(sq.table(con, "elements")).elements_where("IfcDoor").count() > 0
    )
    for other in (sq.read_ifc(con, tmp_path / "other.ifc"), table):
        for both in (walls.union(other), other.union(walls)):
            with pytest.raises(sq.QueryError, match="objects of these rows are not known"):
                both.elements_where("IfcDoor")


def test_readers_take_names(con, tmp_path):
    points = sq.read_las(con, "tile.laz", name="scan", columns=["point_id", "x", "y", "z"])
    assert points.sql() == "FROM scan"
    assert con.sql("SELECT count(*) FROM scan").fetchall() == [(6000,)]
    assert sq.read_grid(con, "hill.tif", name="hill").count() == 900
    house = sq.read_ifc(con, "house.ifc", name="house")
    assert house.elements_where("IfcWall").sql() == "FROM elements_where('IfcWall', 'house')"
    assert con.sql("SELECT count(*) > 0 FROM house_relations").fetchall() == [(True,)]


BEFORE_THE_BOX = {
    "limit": lambda q: q.limit(1000),
    "order_limit": lambda q: q.order("x").limit(2000),
    "other_x": lambda q: q.with_columns(x="x + 15"),
    "window": lambda q: q.select("point_id", "x", "y", "z", "row_number() OVER (ORDER BY x) AS r"),
    "window_added": lambda q: q.with_columns(r="row_number() OVER (ORDER BY x)"),
    "swapped": lambda q: q.select("point_id", "y - 4950000 AS x", "x + 4950000 AS y", "z"),
    "conditions": lambda q: q.where("z > 100.5").where("x > 650012"),
    "distinct": lambda q: q.select("point_id", "round(x) AS x", "round(y) AS y", "z").distinct(),
}


@pytest.mark.parametrize("verb", BEFORE_THE_BOX)
def test_a_box_is_applied_where_it_stands(con, verb):
    box = (650010.0, 5600010.0, 650020.0, 5600020.0)
    before = BEFORE_THE_BOX[verb](sq.read_las(con, "tile.laz"))
    rows = before.to_arrow().to_pylist()
    expected = [r for r in rows if box[0] <= r["x"] <= box[2] and box[1] <= r["y"] <= box[3]]
    found = before.within(box).to_arrow().to_pylist()
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert expected
    assert ("bounds := " in before.within(box).sql()) == (verb == "conditions")


def test_bounds_are_those_of_the_reader(con):
    box = (650010.0, 5600010.0, 650020.0, 5600020.0)
    tile = sq.read_las(con, "tile.laz")
    first, second = tile.within(box), tile.where("z > 0").within(box)
    assert first.count() == second.count() == tile.order("x").limit(6000).within(box).count() > 0
    assert "bounds := " in second.sql()
    assert "WHERE z > 0" in second.sql()
    twice = first.within((650000, 5600000, 650015, 5600015))
    assert "x BETWEEN 650000 AND 650015" in twice.sql()
    assert 0 < twice.count() < first.count()
    grid = sq.read_grid(con, "hill.tif").within((0, 0, 10, 10))
    assert grid.sql() == "FROM read_grid('hill.tif', bounds := [0, 0, 10, 10])"
    assert grid.count() == 25


def test_classes_are_those_of_the_schema_of_each_row(con):
    con.execute(
        "CREATE TABLE bars AS SELECT unnest(['IFC2X3', 'IFC4']) AS ifc_schema, "
        "'IfcReinforcingBar' AS ifc_class, ifc_schema AS global_id, '{}' AS attributes"
    )
    bars = sq.table(con, "bars").as_kind(sq.Objects)
    found = bars.is_a("IfcBuildingElement").select("global_id").fetchall()
    assert found == [("IFC2X3",)]  # in IFC4 it is an IfcElementComponent
    assert bars.is_a("IfcElement").count() == 2
    by_name = bars.select("ifc_class", "global_id", "attributes").as_kind(sq.Objects)
    assert by_name.is_a("IfcBuildingElement").count() == 2
