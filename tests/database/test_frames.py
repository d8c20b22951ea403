"""Where the coordinates of what a query names come from."""

import threading
import warnings

import duckdb
import laspy
import numpy as np
import pyproj
import pytest

import spatialq
from spatialq.database import frames, sources, statements, syntax
from spatialq.errors import CrsError, CrsWarning

# A `unit` that contradicts what is known is an error: so these tests see that it is known.
FEET, METRES = "EPSG:2230", "EPSG:25832"
CALL = "SELECT count(*) FROM classify_ground('{name}')"


@pytest.fixture
def con(tmp_path):
    """Tables in feet, in metres, and without a CRS; another database and schema."""
    con = spatialq.connect()
    con.execute(f"ATTACH '{tmp_path / 'other.duckdb'}' AS other")
    con.execute("CREATE SCHEMA part")
    places = {"feet": FEET, "metres": METRES, "part.feet": FEET, "other.main.far": FEET}
    points = "SELECT range::BIGINT AS point_id, range % 9.0 AS x, range // 9.0 AS y, 0.0 AS z"
    for name, crs in places.items():
        con.execute(f"CREATE TABLE {name} AS {points} FROM range(81)")
        con.execute(f"""COMMENT ON TABLE {name} IS '{{"crs": "{crs}"}}'""")
    con.execute("CREATE TABLE mine AS FROM feet")
    con.execute("COMMENT ON TABLE mine IS 'not JSON'")
    return con


def frame(con, query):
    """Give what a call in a query learns of its coordinates: the unit, or the sentence about it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            con.execute(query).fetchall()
        except duckdb.Error as error:
            return str(error)
    return " ".join(str(each.message) for each in caught if each.category is CrsWarning)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("{call}", "feet"),
        ("{call}", "FEET"),
        ("{call}", '"feet"'),
        ("{call}", "part.feet"),
        ("{call}", "memory.main.feet"),
        ("{call}", "other.main.far"),
        ("{call}", "other.far"),
        ("WITH q AS (FROM feet) {call}", "q"),
        ("WITH feet AS (FROM feet WHERE x > 1) {call}", "feet"),
        ("WITH a AS (FROM feet), b AS (FROM a), a2 AS (FROM b) {call}", "a2"),
        ("WITH q AS (SELECT f.* FROM feet AS f JOIN mine USING (point_id)) {call}", "q"),
        ("WITH q AS (SELECT point_id, f.x, y, z FROM feet f JOIN (SELECT 1) ON true) {call}", "q"),
        ("WITH q AS (SELECT point_id, x - 5 AS x, round(y, 2) AS y, 0 AS z FROM feet) {call}", "q"),
        ("WITH q AS (SELECT * REPLACE (z::FLOAT AS z) FROM feet) {call}", "q"),
        ("WITH q AS (SELECT * EXCLUDE (z), z + 1 AS z FROM feet) {call}", "q"),
        (("WITH q AS (SELECT min(point_id) AS point_id, x, y, min(z) AS z FROM feet GROUP BY ALL) "
         "{call}"), "q"),
        (("WITH q AS (FROM feet UNION ALL SELECT * REPLACE (-1 - point_id AS point_id) "
         "FROM part.feet) {call}"), "q"),
        ("WITH q AS (SELECT * REPLACE (x * cos(point_id) + y AS x) FROM feet) {call}", "q"),
        ("WITH q AS (SELECT * REPLACE (n.x AS x) FROM feet, (SELECT 1 / 3 AS x) AS n) {call}", "q"),
        ("WITH q AS (FROM (FROM (SELECT * FROM feet) ORDER BY z) LIMIT 9) {call}", "q"),
        ("WITH q AS (FROM query_table('feet')) {call}", "q"),
        ("WITH q AS (FROM owm_ground('feet')) {call}", "q"),
        ("WITH RECURSIVE q AS (FROM feet UNION ALL FROM q WHERE false) {call}", "q"),
        ("CREATE OR REPLACE TABLE made AS WITH q AS (FROM feet) {call}", "q"),
        ("CREATE OR REPLACE TABLE made AS (WITH q AS (FROM feet) {call})", "q"),
        ("FROM (WITH q AS (FROM feet) {call})", "q"),
        ("SELECT (WITH q AS (FROM feet) {call})", "q"),
        ("EXPLAIN ANALYZE WITH q AS (FROM feet) {call}", "q"),
    ],
)  # fmt: skip
def test_what_can_be_told(con, query, name):
    told = frame(con, query.format(call=CALL.format(name=name)))
    assert told == ""
    call = CALL.format(name=name).replace("')", "', unit := 1)")
    told = frame(con, query.format(call=call))
    assert "unit is 1, but that of" in told
    assert "0.304801 m" in told


@pytest.mark.parametrize(
    ("query", "name", "sentence"),
    [
        ("{call}", "mine", "the CRS of 'mine' is not known"),
        ("WITH q AS (SELECT point_id, x * 2 AS x, y * 2 AS y, z * 2 AS z FROM feet) {call}", "q",
         "the CRS of 'q' is not known"),
        ("WITH q AS (SELECT * REPLACE (z * 2 AS z) FROM feet) {call}", "q",
         "the unit of z of 'q' cannot be told, as z is computed: give unit"),
        ("WITH q AS (FROM feet UNION ALL FROM metres) {call}", "q",
         "'table feet' is in NAD83 / California zone 6 (ftUS) (EPSG:2230) but 'table"),
        ("WITH q AS (SELECT f.* EXCLUDE (z), m.z FROM feet f, metres m) {call}",
         "q", "but 'table metres' is in ETRS89 / UTM zone 32N"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_said(con, query, name, sentence):
    told = frame(con, query.format(call=CALL.format(name=name)))
    assert told.partition("classify_ground: ")[2].startswith(sentence) or sentence in told


@pytest.mark.parametrize(
    ("query", "is_told"),
    [
        (("SELECT point_id, x, y, z FROM mixed UNION ALL SELECT -1 - point_id, x AS a, y, z "
         "FROM mixed"), True),
        (("SELECT point_id, x, y, z FROM mixed UNION ALL SELECT -1 - point_id, z, y, x "
         "FROM mixed"), False),
        ("SELECT point_id, z AS x, y, x AS z FROM mixed", False),
        (("SELECT * FROM mixed UNION ALL BY NAME SELECT -1 - point_id AS point_id, z, y, x "
         "FROM mixed"), True),
    ],
)  # fmt: skip
def test_axes_of_two_units_are_not_taken_for_each_other(con, query, is_told):
    con.execute("CREATE TABLE mixed AS FROM feet")
    con.execute("""COMMENT ON TABLE mixed IS '{"crs": "EPSG:2230+5773"}'""")
    told = frame(con, f"WITH q AS ({query}) {CALL.format(name='q')}")
    assert ("heights of 'q' are in units of 1 m" in told) == is_told
    assert ("cannot be told" in told) != is_told


@pytest.mark.slow
def test_a_query_that_is_nested_deeply(con):
    deep = f"WITH q AS (SELECT point_id, x{' + 0' * 900} AS x, y, z FROM feet) "
    assert "nested too deeply" in frame(con, deep + CALL.format(name="q"))


def test_views_and_renamed_tables(con):
    con.execute("CREATE VIEW v AS SELECT * FROM feet WHERE z = 0")
    con.execute("CREATE VIEW both_of_them AS (FROM v) UNION ALL (FROM metres)")
    assert "unit is 1, but" in frame(con, "FROM classify_ground('v', unit := 1)")
    assert "'table feet' is in" in frame(con, "FROM classify_ground('both_of_them')")
    con.execute("DROP VIEW both_of_them; DROP VIEW v; ALTER TABLE feet RENAME TO renamed")
    assert "unit is 1, but" in frame(con, "FROM classify_ground('renamed', unit := 1)")
    con.execute("CREATE TABLE feet AS FROM mine")
    assert "is not known" in frame(con, "FROM classify_ground('feet')")


def test_a_user_states_the_crs_of_a_view(con):
    con.execute("CREATE VIEW v AS SELECT point_id, x * 0.3048 AS x, y, z FROM feet")
    assert "cannot be told" in frame(con, "FROM classify_ground('v')")
    con.execute("""COMMENT ON VIEW v IS '{"crs": "EPSG:25832"}'""")
    assert frame(con, "FROM classify_ground('v')") == ""


def test_a_transaction_sees_its_own_tables(con):
    con.execute("BEGIN; CREATE TEMP TABLE new AS FROM mine")
    con.execute("""COMMENT ON TABLE new IS '{"crs": "EPSG:2230"}'""")
    assert "unit is 1, but" in frame(con, "FROM classify_ground('new', unit := 1)")
    con.execute("ROLLBACK")


def test_connections_ask_at_once(con):
    told = []
    ask = CALL.format(name="q").replace("')", "', unit := 1)")

    def work():
        with con.cursor() as cursor:
            told.extend(frame(cursor, f"WITH q AS (FROM feet) {ask}") for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    with warnings.catch_warnings():
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(told) == 20
    assert all("unit is 1, but" in each for each in told)


def test_a_query_has_one_crs(con):
    assert [subject for subject, _ in frames.systems(con, "FROM feet")] == ["table feet"]
    con.execute("CREATE VIEW v AS FROM metres")
    with pytest.raises(spatialq.CrsError, match=r"'table feet' is in .* but 'table metres'"):
        spatialq.database.sources.require_one_crs(con, "FROM feet, v")
    found = spatialq.database.sources.require_one_crs(con, "FROM other.main.far, mine")
    assert '"code":2230' in found
    found = spatialq.database.sources.require_one_crs(
        con, "FROM detect_planes('mine', crs := 'EPSG:25832')"
    )
    assert '"code":25832' in found


@pytest.mark.parametrize("text", ["", "SELEC", "COPY (", "CREATE TABLE a (b INT)", "')", "WITH"])
def test_what_is_no_query_has_no_sources(text):
    assert syntax.parse(text) == []


@pytest.mark.parametrize("crs", ['"EPSG:999999"', "true", '{"type": "Other"}'])
def test_a_comment_whose_crs_proj_cannot_read_is_a_sentence_about_its_table(con, crs):
    con.execute(f"""COMMENT ON TABLE mine IS '{{"crs": {crs}}}'""")
    sentence = "table mine: PROJ cannot read the coordinate reference system"
    assert f"classify_ground: {sentence}" in frame(con, CALL.format(name="mine"))
    with pytest.raises(CrsError, match=sentence):
        sources.require_one_crs(con, "FROM mine")


def test_comment_that_is_nested_too_deeply(con):
    """It is a comment of somebody else, as any other text."""
    nested = '{"crs": ' + "[" * 100_000
    con.execute(f"COMMENT ON TABLE feet IS '{nested}'")
    assert "is not known" in frame(con, CALL.format(name="feet"))


@pytest.fixture
def cloud(tmp_path):
    """A file in feet."""
    header = laspy.LasHeader(point_format=6, version="1.4")
    header.add_crs(pyproj.CRS(FEET))
    las = laspy.LasData(header)
    las.x, las.y, las.z = np.arange(81) % 9, np.arange(81) // 9, np.zeros(81)
    las.write(tmp_path / "feet.las")
    return tmp_path / "feet.las"


def test_a_table_that_duckdb_makes_of_a_file_in_feet_is_not_taken_for_metres(cloud):
    con = spatialq.connect()
    con.execute("CREATE TABLE before AS SELECT range AS point_id, 0.0 AS x, 0.0 AS y, 0.0 AS z "
                "FROM range(9)")  # fmt: skip
    assert "is not known" in frame(con, CALL.format(name="before"))
    con.execute(f"CREATE TABLE made AS FROM read_las('{cloud}')")
    said = frame(con, CALL.format(name="made"))
    assert "'made' does not state its CRS, which may be that of" in said
    assert "feet.las" in said
    for argument in ("unit := 0.3048", f"crs := '{FEET}'"):
        assert frame(con, CALL.format(name=f"made', {argument})").removesuffix("')")) == ""
    con.execute(f"""COMMENT ON TABLE made IS '{{"crs": "{FEET}"}}'""")
    assert frame(con, CALL.format(name="made")) == ""


@pytest.mark.parametrize(
    ("query", "is_known"),
    [
        ("FROM read_las('{file}')", True),
        ("SELECT point_id, round(x, 2) AS x, y, z FROM read_las('{file}') WHERE x > 1", True),
        ("WITH q AS (FROM feet) FROM q ORDER BY z", True),
        ("SELECT * REPLACE (x * 0.3048 AS x) FROM feet", False),
        ("SELECT count(*) AS n FROM feet", False),
        ("SELECT 1 AS x", False),
    ],
)
def test_a_table_made_by_a_command_or_a_query_states_its_crs(con, cloud, query, is_known):
    text = query.format(file=cloud)
    for verb in ("CREATE TABLE", "create or replace temp table"):
        statements.run(
            con, "test", f'{verb} "a b" AS {text};', lambda each: con.execute(each).fetchall()
        )
        ((comment,), *_) = con.execute(
            "SELECT comment FROM duckdb_tables() WHERE table_name = 'a b' ORDER BY temporary DESC"
        ).fetchall()
        assert comment == ('{"crs": "EPSG:2230"}' if is_known else None)
    con.execute('DROP TABLE "a b"; DROP TABLE "a b"')
    spatialq.from_sql(con, text).create("a b")
    said = con.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 'a b'")
    assert said.fetchall() == [('{"crs": "EPSG:2230"}' if is_known else None,)]


def test_a_table_that_was_there_keeps_its_comment(con, cloud):
    query = f"CREATE TABLE IF NOT EXISTS mine AS FROM read_las('{cloud}')"
    statements.run(con, "test", query, lambda each: con.execute(each).fetchall())
    said = con.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 'mine'").fetchall()
    assert said == [("not JSON",)]
