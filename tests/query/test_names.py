"""Names of tables: parts that are plain or in quotes, the same ones everywhere."""

import pytest

import spatialq as sq

from ..element_tables import put_room

HOSTILE = [
    "main.t; DROP TABLE t",
    '"t"; DROP TABLE t',
    "t; DROP TABLE t; --",
    "main.t WHERE 1=0",
    '"t" WHERE 1=0',
    '"t" UNION ALL FROM "t"',
    "(SELECT 1)",
    '"t',
    't"t',
    ".t",
    "t.",
    '""',
    'a.b."t"."t" x',
]


@pytest.fixture
def t(con):
    con.execute("CREATE TABLE t AS SELECT i AS id, 10 - i AS a FROM range(5) AS r(i)")
    return sq.table(con, "t")


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_name_is_no_sql(con, t, name):
    calls = {
        "table": lambda: sq.table(con, name),
        "join": lambda: t.join(name, "id"),
        "union": lambda: t.union(name),
    }
    before = t.fetchall()
    for verb, call in calls.items():
        with pytest.raises(sq.QueryError, match=f"^{verb}: "):
            call()
    assert t.fetchall() == before


@pytest.mark.parametrize("name", HOSTILE)
def test_a_table_may_be_called_so_or_not_at_all(con, t, name):
    before = t.fetchall()
    try:
        t.create(name)
        assert sq.table(con, name).fetchall() == before
    except sq.QueryError as error:
        assert str(error).startswith("create: ")  # noqa: PT017
    assert t.fetchall() == before


SAME = ["t", "T", "main.t", '"t"', '"T"', 'MAIN."t"', '"memory"."main".t']


@pytest.mark.parametrize("name", SAME)
def test_one_table_has_many_names(con, t, name):
    assert sq.table(con, name).fetchall() == t.fetchall()
    assert t.union(name).count() == 10
    for other in (name, sq.table(con, name)):
        joined = t.join(other, "id")
        assert joined.columns == ["id", "a", "a_right"]
        assert sorted(joined.fetchall()) == [(i, 10 - i, 10 - i) for i in range(5)]
    assert t.where("id > 2").join(name, "id").order("id").fetchall() == [(3, 7, 7), (4, 6, 6)]
    assert sq.table(con, name).join(t.where("id > 2"), "ID", how="semi").count() == 2


def test_tables_of_one_name_in_two_schemas(con, t):
    con.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT id, a + 100 AS a FROM t")
    for left, right in (("t", "s.t"), ("s.t", "t")):
        rows = sq.table(con, left).join(right, "id").where("id = 1").fetchall()
        assert rows == [(1, 9, 109) if left == "t" else (1, 109, 9)]
    few = sq.table(con, "s.t").where("id = 1").join("t", "id")
    assert few.fetchall() == [(1, 109, 9)]


def test_create_has_the_same_rule(con, t):
    con.execute('CREATE SCHEMA "my site"')
    for name in ('"my table"', "my other", '"my site"."x.y"', 'main."Q"'):
        t.create(name)
        assert sq.table(con, name).count() == 5
    names = {row[0] for row in con.sql("SELECT table_name FROM duckdb_tables()").fetchall()}
    assert names == {"t", "my table", "my other", "x.y", "Q"}


def test_the_tables_beside_one_in_quotes(con, files):
    con.execute('CREATE SCHEMA "my site"')
    selector = "IfcWall, Pset_WallCommon.IsExternal=TRUE, material=/.*block/"
    expected = sq.read_ifc(con, "house.ifc").elements_where(selector).count()
    assert expected > 0
    for name in ('"my site"."House 4"', '"House"', "main.building"):
        house = sq.read_ifc(con, files / "house.ifc", name=name)
        assert house.elements_where(selector).count() == expected
        part = house.where("true")
        assert part.elements_where(selector).count() == expected
        assert part.intersects_with(exclude="default").count() > 0
        assert house.intersects_with(exclude="default").count() > 0
        ((by_sql,),) = con.sql(
            "SELECT count(*) FROM elements_where(?, ?)", params=[selector, name]
        ).fetchall()
        assert by_sql == expected
    objects = sq.table(con, '"my site"."House 4_objects"')
    assert objects.objects_where(selector).count() == expected


def test_files_with_capitals(con, files, tmp_path):
    selector = "IfcWall, Pset_WallCommon.IsExternal=TRUE, material=/.*block/"
    expected = sq.read_ifc(con, "house.ifc").elements_where(selector).fetchall()
    for name in ("SampleHouse4.ifc", 'My "old" house.ifc'):
        path = tmp_path / name
        path.write_bytes((files / "house.ifc").read_bytes())
        house = sq.read_ifc(con, path)
        assert house.elements_where(selector).count() == len(expected)
        assert sq.read_ifc_objects(con, path).objects_where(selector).count() == len(expected)
        with pytest.raises(sq.QueryError, match="named 'Nothing'"):
            house.elements_where("IfcWall, Pset_WallCommon.Nothing=1").count()


def test_a_pinned_cloud_is_found_by_any_of_its_names(con):
    con.execute("CREATE TABLE \"Cl 1\" AS FROM read_las('tile.laz')")
    for name in ("Cl 1", '"Cl 1"', 'main."cl 1"'):
        pinned = sq.table(con, name).pin().classify_ground()
        assert pinned.count() == 6000


def test_relations_beside_a_table_in_quotes(con):
    put_room(con)
    con.execute('ALTER TABLE elements RENAME TO "The Room"')
    con.execute('ALTER TABLE relations RENAME TO "The Room_relations"')
    room = sq.table(con, '"The Room"').intersects_with(exclude="default")
    assert ("pipe", "wall") not in room.select("a", "b").fetchall()
