"""Files into tables: whole or not at all, once, and in one CRS."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import duckdb
import laspy
import numpy as np
import pytest

import spatialq
from spatialq.database import sources
from spatialq.errors import CrsError, FileError
from spatialq.io.crs import from_text
from spatialq.io.ifc.columns import TABLES
from spatialq.workflows.info import describe

from .io.ifc_models import Builder


def write_las(path, n=1000, *, point_format=3, crs="EPSG:25832", first=0.0):
    import pyproj

    header = laspy.LasHeader(version="1.4", point_format=point_format)
    header.scales, header.offsets = [0.01] * 3, [0.0] * 3
    if crs:
        header.add_crs(pyproj.CRS(crs))
    las = laspy.LasData(header)
    las.x, las.y = first + np.arange(n) % 100, np.arange(n) // 100
    las.z = np.arange(n) % 7
    las.classification = np.arange(n) % 3
    las.write(path)
    return path


def test_points_run_on_from_file_to_file(con, tmp_path):
    paths = [write_las(tmp_path / f"{i}.laz", 1000, first=100.0 * i) for i in range(3)]
    records = spatialq.load(con, paths, "tiles")
    assert [record.rows for record in records] == [1000] * 3
    query = "SELECT count(*), count(DISTINCT point_id), min(point_id), max(point_id) FROM tiles"
    assert con.sql(query).fetchall() == [(3000, 3000, 0, 2999)]
    query = "SELECT path, row_count, kind, crs_name, xmin, xmax FROM spatialq_sources ORDER BY path"
    assert con.sql(query).fetchall() == [
        (str(path), 1000, "points", "ETRS89 / UTM zone 32N (EPSG:25832)", 100.0 * i, 100.0 * i + 99)
        for i, path in enumerate(paths)
    ]


def test_patterns_and_default_names(con, tmp_path):
    for i in range(2):
        write_las(tmp_path / f"{i}.las", 10, first=100.0 * i)
    np.save(tmp_path / "z.npy", np.ones((2, 3)))
    spatialq.load(con, [tmp_path / "*.las", str(tmp_path / "z.npy")])
    assert con.sql("SELECT count(*) FROM points").fetchall() == [(20,)]
    assert con.sql("SELECT count(*) FROM grid").fetchall() == [(6,)]


def test_new_columns_are_added(con, tmp_path):
    spatialq.load(con, write_las(tmp_path / "a.las", 10, point_format=0), "t")
    spatialq.load(con, write_las(tmp_path / "b.las", 10, point_format=3), "t")
    assert con.sql("SELECT count(*), count(red) FROM t").fetchall() == [(20, 10)]


def test_a_file_is_loaded_once(con, tmp_path):
    path = write_las(tmp_path / "a.las", 10)
    spatialq.load(con, path, "t")
    with pytest.raises(FileError, match=r"is in table 't' already; replace the table .--replace"):
        spatialq.load(con, path, "t")
    assert con.sql("SELECT count(*) FROM t").fetchall() == [(10,)]


def test_a_model_is_loaded_once_whichever_of_its_tables_is_left(con, tmp_path):
    builder = Builder()
    builder.boxes(1)
    path = builder.write(tmp_path / "house.ifc")
    spatialq.load(con, path)
    with pytest.raises(FileError, match=r"is in tables 'elements', .*'objects'.* already; update"):
        spatialq.load(con, path)
    con.execute("CREATE OR REPLACE TABLE elements AS FROM elements LIMIT 0")
    with pytest.raises(FileError, match="'objects'"):
        spatialq.load(con, path)
    con.execute("DROP TABLE elements")
    spatialq.load(con, path)
    for table in ("elements", "objects"):
        query = f"SELECT count(*) FROM {table} WHERE ifc_class = 'IfcWall'"
        assert con.sql(query).fetchall() == [(1,)]


def test_what_is_left_of_a_dropped_model_goes_when_another_is_loaded(con, tmp_path, world):
    builder = Builder()
    builder.boxes(1)
    spatialq.load(con, world.ifc)
    con.execute("DROP TABLE elements")
    spatialq.load(con, builder.write(tmp_path / "box.ifc"))
    files = " UNION ".join(f"SELECT file_name FROM {t}" for t in ("objects", "relations", "models"))
    assert [path for (path,) in con.sql(files).fetchall()] == [str(tmp_path / "box.ifc")]


def test_the_tables_of_a_renamed_model_are_not_mixed_with_another(con, tmp_path, world):
    builder = Builder()
    builder.boxes(1)
    path = builder.write(tmp_path / "box.ifc")
    spatialq.load(con, world.ifc)
    con.execute("ALTER TABLE elements RENAME TO house")
    message = "table 'objects' belongs to the model in table 'house'; rename it to 'house_objects'"
    with pytest.raises(ValueError, match=message):
        spatialq.load(con, path)
    for table in set(TABLES) - {"elements", "load_errors"}:
        con.execute(f"ALTER TABLE {table} RENAME TO house_{table}")
    spatialq.load(con, path)
    query = "SELECT table_name, parse_filename(path) FROM spatialq_sources ORDER BY table_name"
    assert con.sql(query).fetchall() == [("elements", "box.ifc"), ("house", world.ifc.name)]


def comment_of(con, table):
    query = "SELECT comment FROM duckdb_tables() WHERE table_name = $1"
    ((comment,),) = con.execute(query, [table]).fetchall()
    return json.loads(comment)


@pytest.mark.parametrize("code", ["EPSG:25832", "EPSG:25832+7837", "EPSG:2230", None])
def test_the_comment_of_a_table_has_its_crs(con, tmp_path, code):
    spatialq.load(con, write_las(tmp_path / "a.las", 10, crs=None), "t", crs=code)
    assert comment_of(con, "t")["crs"] == code
    assert comment_of(con, "t")["kind"] == "points"


def test_a_crs_without_a_code_is_whole_in_the_comment(con, tmp_path):
    local = "+proj=tmerc +lat_0=47.1 +lon_0=9.3 +x_0=1000 +units=m +type=crs"
    spatialq.load(con, write_las(tmp_path / "a.las", 10, crs=None), "t", crs=local)
    ((crs,),) = con.sql("SELECT crs FROM spatialq_sources").fetchall()
    assert comment_of(con, "t")["crs"] == json.loads(crs)
    spatialq.load(con, write_las(tmp_path / "b.las", 10, crs=None), "t", crs=local)


def test_what_the_user_wrote_in_the_comment_stays(con, tmp_path):
    con.execute("CREATE TABLE t (x DOUBLE); COMMENT ON TABLE t IS 'the ''old'' survey'")
    spatialq.load(con, write_las(tmp_path / "a.las", 10), "t", columns=("x",))
    assert comment_of(con, "t")["comment"] == "the 'old' survey"
    con.execute("""CREATE TABLE feet (x DOUBLE); COMMENT ON TABLE feet IS '{"crs": "EPSG:2230"}'""")
    with pytest.raises(CrsError, match=r"'table feet' is in .*EPSG:2230.* but .*a.las' is in ETRS"):
        spatialq.load(con, tmp_path / "a.las", "feet", columns=("x",))


def test_a_dropped_table_leaves_no_crs(con, tmp_path):
    here, there = write_las(tmp_path / "a.las"), write_las(tmp_path / "b.las", crs="EPSG:25833")
    spatialq.load(con, here, "t")
    con.execute("CREATE OR REPLACE TABLE t AS FROM t")
    assert con.sql("FROM spatialq_sources").fetchall() == []
    assert sources.require_one_crs(con, "FROM t") is None
    spatialq.load(con, there, "t")
    assert comment_of(con, "t")["crs"] == "EPSG:25833"
    con.execute("DROP TABLE t")
    spatialq.load(con, here, "t")
    assert con.sql("SELECT path FROM spatialq_files").fetchall() == [(str(here),)]


def test_a_renamed_table_keeps_its_files(con, tmp_path):
    path = write_las(tmp_path / "a.las")
    spatialq.load(con, path)
    con.execute("ALTER TABLE points RENAME TO survey; DROP VIEW spatialq_sources")
    spatialq.load(con, path)
    query = "SELECT table_name, path, row_count FROM spatialq_sources ORDER BY ALL"
    assert con.sql(query).fetchall() == [
        ("points", str(path), 1000),
        ("survey", str(path), 1000),
    ]
    with pytest.raises(FileError, match="is in table 'survey' already"):
        spatialq.load(con, path, "survey")


OLD = """
CREATE TABLE t AS SELECT i::DOUBLE AS x FROM range(3) r(i);
CREATE TABLE elements (global_id VARCHAR, file_name VARCHAR);
CREATE TABLE objects (global_id VARCHAR, file_name VARCHAR);
CREATE TABLE spatialq_sources (
    table_name VARCHAR NOT NULL, path VARCHAR NOT NULL, kind VARCHAR NOT NULL,
    row_count BIGINT NOT NULL, crs VARCHAR, crs_name VARCHAR,
    xmin DOUBLE, ymin DOUBLE, xmax DOUBLE, ymax DOUBLE,
    georeference VARCHAR, warnings VARCHAR[], loaded_at TIMESTAMP DEFAULT current_localtimestamp()
);
"""


def test_a_database_of_the_version_before_is_brought_up_to_date(tmp_path):
    database = str(tmp_path / "old.duckdb")
    with duckdb.connect(database) as con:
        con.execute(OLD)
        rows = [("t", "las"), ("elements", "ifc"), ("dropped", "las")]
        for table, kind in rows:
            crs = from_text("EPSG:25832") if kind == "las" else None
            values = [table, f"/data/{table}", kind, crs]
            con.execute(
                "INSERT INTO spatialq_sources BY NAME SELECT $1 AS table_name, $2 AS path, "
                "$3 AS kind, 3 AS row_count, $4 AS crs",
                values,
            )
    with spatialq.connect(database, read_only=True) as con:
        assert [each.path for each in sources.of_table(con, "t")] == ["/data/t"]
    for _ in range(2):
        with spatialq.connect(database) as con:
            query = "SELECT table_name, path, kind FROM spatialq_sources ORDER BY ALL"
            expected = [("elements", "/data/elements", "ifc"), ("t", "/data/t", "points")]
            assert con.sql(query).fetchall() == expected
            assert comment_of(con, "t")["crs"] == "EPSG:25832"
            model = comment_of(con, "elements")["spatialq"]
            assert comment_of(con, "objects")["spatialq_model"] == model


def test_a_model_without_meshes(con, tmp_path):
    builder = Builder()
    builder.boxes(2)
    path = builder.write(tmp_path / "house.ifc")
    spatialq.load(con, path, geometry="none")
    assert con.sql("SELECT count(*) FROM elements").fetchall() == [(0,)]
    assert con.sql("SELECT count(*) FROM objects WHERE has_geometry").fetchall() == [(2,)]
    with pytest.raises(FileError, match="already; update it"):
        spatialq.load(con, path)
    with pytest.raises(ValueError, match="read_ifc: geometry must be 'auto' or 'exact'"):
        spatialq.read_ifc(con, path, geometry="none")


def test_another_crs_is_refused_and_nothing_is_left(con, tmp_path):
    spatialq.load(con, write_las(tmp_path / "a.las", 10), "t")
    other = write_las(tmp_path / "b.las", 10, crs="EPSG:25833")
    unknown = write_las(tmp_path / "c.las", 10, crs=None)
    for path in (other, unknown):
        with pytest.raises(CrsError, match="is in ETRS89 / UTM zone 32N"):
            spatialq.load(con, path, "t")
    spatialq.load(con, unknown, "t", crs="EPSG:25832")
    assert con.sql("SELECT count(*) FROM t").fetchall() == [(20,)]
    assert con.sql("SELECT count(*) FROM spatialq_sources").fetchall() == [(2,)]


def test_a_query_over_two_crs_is_refused(con, tmp_path):
    spatialq.load(con, write_las(tmp_path / "a.las", 10), "here")
    spatialq.load(con, write_las(tmp_path / "b.las", 10, crs="EPSG:25833"), "there")
    spatialq.load(con, write_las(tmp_path / "c.las", 10, crs=None), "somewhere")
    con.execute("CREATE VIEW a_view AS FROM here WHERE z > 1")
    con.execute("CREATE SCHEMA other; CREATE TABLE other.there AS FROM here")
    for query in (
        "FROM here JOIN there USING (x)",
        "SELECT * FROM \"here\" UNION ALL FROM owm_ground('There')",
        "CREATE TABLE new AS FROM here, there",
        "INSERT INTO there FROM here",
        "FROM a_view JOIN there USING (point_id)",
        "WITH a AS (FROM a_view) FROM a WHERE x IN (SELECT x FROM there)",
        "SELECT 'ü' AS \"ö\"; SELECT * FROM a_view, there",
        "CREATE TABLE new AS FROM here; FROM new JOIN there USING (x)",
        'FROM "HERE" NATURAL JOIN There',
    ):
        with pytest.raises(CrsError, match=r"'table here' is in .* but 'table there' is in"):
            sources.require_one_crs(con, query)
    for query in (
        "FROM here",
        "FROM here JOIN somewhere USING (x)",
        "FROM here -- there",
        "SELECT x AS there, 'there' AS name FROM here AS there",
        "WITH there AS (FROM here) FROM there",
        "SELECT * FROM here, other.there",
        "SET threads = 1",
        "FROM here, missing",
    ):
        sources.require_one_crs(con, query)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.las", "there is no such file"),
        ("notes.doc", "is of no known format: its name must end in one of .asc"),
    ],
)
def test_what_is_no_file_of_ours(con, tmp_path, name, message):
    (tmp_path / "notes.doc").write_text("hello")
    with pytest.raises(FileError, match=message):
        spatialq.load(con, tmp_path / name)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
@pytest.mark.parametrize("name", ["a.las", "a.laz", "a.tif", "a.npy", "a.ifc", "a.ifczip"])
def test_a_pipe_or_folder_is_refused_at_once(con, tmp_path, name):
    pipe, folder = tmp_path / "pipe" / name, tmp_path / "folder" / name
    folder.mkdir(parents=True)
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    kind = {"las": "las", "laz": "las", "ifc": "ifc", "ifczip": "ifc"}.get(name[2:], "grid")
    read = {"las": spatialq.read_las, "ifc": spatialq.read_ifc, "grid": spatialq.read_grid}[kind]
    for path, reason in (
        (pipe, "is no regular file"),
        (folder, "is a folder, no file|in this folder"),
    ):
        with pytest.raises(FileError, match=reason):
            spatialq.load(con, path)
        with pytest.raises(FileError, match=reason):
            read(con, path)
        with pytest.raises(duckdb.Error, match=reason):
            con.sql(f"FROM read_{kind}('{path}')").fetchall()
        with pytest.raises(FileError, match=f"info: .* ({reason})"):
            describe(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "table must be a plain name; for another schema, USE it before; got ''"),
        ("s.t", "table must be a plain name; for another schema, USE it before; got 's.t'"),
        ("load_errors", "must be another name, as spatialq keeps other things there; got 'load_"),
        ("Relations", "must be another name"),
        ("properties", "must be another name"),
        ("spatialq_sources", "must be another name"),
        ("spatialq_files", "must be another name"),
        ("spatialq_incoming", "must be another name"),
        ("a\nb", r"table must be a name without line breaks and .* characters; got 'a\\nb'"),
        ("a\0b", "table must be a name without line breaks"),
    ],
)
def test_names_that_no_table_can_have(con, tmp_path, name, message):
    path = write_las(tmp_path / "a.las", 10)
    with pytest.raises(ValueError, match=message):
        spatialq.load(con, path, name)
    assert con.sql("FROM duckdb_tables()").fetchall() == []


def test_a_table_holds_one_kind(con, tmp_path, world):
    cloud = write_las(tmp_path / "a.las", 10)
    np.save(tmp_path / "z.npy", np.ones((2, 3)))
    spatialq.load(con, cloud, "t")
    with pytest.raises(
        FileError, match="is of kind grid, table 't' of kind points; choose another"
    ):
        spatialq.load(con, tmp_path / "z.npy", "t")
    with pytest.raises(FileError, match="is of kind ifc, table 't' of kind points; choose another"):
        spatialq.load(con, world.ifc, "t")
    spatialq.load(con, cloud, "house_relations")
    with pytest.raises(ValueError, match="table 'house_relations' holds something else: it has no"):
        spatialq.load(con, world.ifc, "house")
    con.execute("CREATE TABLE mine (x DOUBLE, note VARCHAR)")
    with pytest.raises(ValueError, match="table 'mine' holds something else: it has no column 'p"):
        spatialq.load(con, cloud, "mine")
    spatialq.load(con, cloud, "mine", columns=("x",))
    assert con.sql("SELECT count(x), count(note) FROM mine").fetchall() == [(10, 0)]
    tables = con.sql("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
    assert tables == [("house_relations",), ("mine",), ("spatialq_files",), ("t",)]


@pytest.mark.parametrize("kind", ["INTEGER", "FLOAT", "DECIMAL(9, 3)", "VARCHAR"])
def test_a_column_that_would_round_is_refused(con, tmp_path, kind):
    path = write_las(tmp_path / "a.las", 10)
    con.execute(f"CREATE TABLE t (x {kind}, y DOUBLE)")
    message = r"column 'x' of table 't' is .*, which does not hold all values of DOUBLE"
    with pytest.raises(ValueError, match=message):
        spatialq.load(con, path, "t", columns=("x", "y"))
    assert con.sql("FROM t").fetchall() == []


def test_a_wider_column_is_welcome(con, tmp_path):
    path = write_las(tmp_path / "a.las", 10)
    con.execute("CREATE TABLE t (x DOUBLE, intensity BIGINT)")
    spatialq.load(con, path, "t", columns=("x", "intensity"))
    assert con.sql("SELECT count(intensity) FROM t").fetchall() == [(10,)]


def test_an_open_transaction_is_left_alone(con, tmp_path, world):
    path = write_las(tmp_path / "a.las", 10)
    con.execute("BEGIN; CREATE TABLE mine AS SELECT 42 AS x")
    with pytest.raises(ValueError, match="load: the connection has a transaction open; COMMIT"):
        spatialq.load(con, path, "t")
    spatialq.read_ifc(con, world.ifc, name="house")
    assert con.sql("FROM mine").fetchall() == [(42,)]
    con.execute("ROLLBACK")
    assert con.sql("FROM duckdb_tables()").fetchall() == []


def test_each_schema_has_its_own_sources(con, tmp_path):
    path = write_las(tmp_path / "a.las", 10)
    spatialq.load(con, path, "t")
    con.execute("CREATE SCHEMA other; USE other")
    spatialq.load(con, path, "t")
    with pytest.raises(FileError, match="is in table 't' already"):
        spatialq.load(con, path, "t")
    query = "SELECT count(*) FROM main.spatialq_sources, other.spatialq_sources"
    assert con.sql(query).fetchall() == [(1,)]


def test_many_threads_load_into_one_table(con, tmp_path):
    paths = [write_las(tmp_path / f"{i}.las", 1000, first=100.0 * i) for i in range(8)]

    def load(path):
        with con.cursor() as cursor:
            spatialq.load(cursor, path, "t")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(load, paths))
    query = "SELECT count(*), count(DISTINCT point_id) FROM t"
    assert con.sql(query).fetchall() == [(8000, 8000)]
    assert con.sql("SELECT count(*) FROM spatialq_sources").fetchall() == [(8,)]


def test_a_damaged_file_leaves_nothing(con, tmp_path):
    good, bad = (write_las(tmp_path / f"{name}.laz", 200_000) for name in ("good", "bad"))
    data = bytearray(bad.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = bytes(2000)
    bad.write_bytes(data)
    spatialq.load(con, good, "t")
    with pytest.raises((FileError, duckdb.Error), match="read_las"):
        spatialq.load(con, bad, "t")
    assert con.sql("SELECT count(*) FROM t").fetchall() == [(200_000,)]
    assert con.sql("SELECT count(*) FROM spatialq_sources").fetchall() == [(1,)]


def test_progress_is_told(con, tmp_path):
    seen = []
    path = write_las(tmp_path / "a.las", 300_000)
    spatialq.load(con, path, "t", progress=lambda *each: seen.append(each))
    assert seen[-1] == (path, 300_000, 300_000)
    assert len(seen) > 1


def test_a_building_model_fills_its_tables(con, world):
    spatialq.load(con, world.ifc)
    spatialq.load(con, world.ifc, "house")
    for query in (
        "SELECT count(*) > 50 FROM elements",
        "SELECT count(*) > 50 FROM house",
        "SELECT count(*) > 50 FROM relations",
        "SELECT count(*) > 50 FROM house_properties",
        "SELECT count(*) = 0 FROM load_errors",
        "SELECT count(*) = 2 FROM spatialq_sources WHERE georeference LIKE '%EPSG:25832%'",
    ):
        assert con.sql(query).fetchall() == [(True,)], query


@pytest.mark.parametrize("name", [None, "elements", "Elements", "house"])
@pytest.mark.parametrize("load", [spatialq.load, spatialq.read_ifc])
def test_the_tables_of_a_model_find_each_other(con, world, name, load):
    if load is spatialq.load:
        load(con, world.ifc, name)
    else:
        load(con, world.ifc, name=name or "elements")
    table = name or "elements"
    prefix = "" if table.lower() == "elements" else f"{table}_"
    assert con.sql(f"SELECT count(*) > 50 FROM {prefix}objects").fetchall() == [(True,)]
    for query in (
        f"SELECT count(*) > 10 FROM elements_where('IfcWall, type!=x', '{table}')",
        f"SELECT count(*) > 5 FROM objects_where('IfcWall, parent=/.*/', '{prefix}objects')",
        f"SELECT count(*) > 0 FROM intersects_with('{table}', exclude := 'default')",
    ):
        assert con.sql(query).fetchall() == [(True,)], query


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_kill_in_the_middle_leaves_a_database_without_the_half_file(tmp_path):
    database = tmp_path / "db.duckdb"
    good, large = write_las(tmp_path / "a.laz", 1000), tmp_path / "b.laz"
    write_las(large, 3_000_000)
    with spatialq.connect(str(database)) as con:
        spatialq.load(con, good, "t")
    code = """
import sys, time, spatialq
def progress(path, done, total):
    print(done, flush=True)
    if done > total / 2:
        time.sleep(600)
con = spatialq.connect(sys.argv[1])
spatialq.load(con, sys.argv[2], "t", progress=progress)
"""
    arguments = [sys.executable, "-c", code, str(database), str(large)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline()  # a first batch is in, and not all will be
        time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    with spatialq.connect(str(database)) as con:
        assert con.sql("SELECT count(*) FROM t").fetchall() == [(1000,)]
        assert con.sql("SELECT count(*) FROM spatialq_sources").fetchall() == [(1,)]
        spatialq.load(con, large, "t")
        assert con.sql("SELECT count(*) FROM t").fetchall() == [(3_001_000,)]


def test_a_table_that_was_dropped_can_be_loaded_again(con, tmp_path):
    path = write_las(tmp_path / "a.las", 10)
    spatialq.load(con, path, "t")
    con.execute("DROP TABLE t")
    spatialq.load(con, path, "t")
    assert con.sql("SELECT count(*) FROM t").fetchall() == [(10,)]


def test_a_table_is_replaced_whole_or_not_at_all(con, tmp_path):
    one, two = (write_las(tmp_path / f"{i}.las", 10 * i, first=10.0 * i) for i in (1, 2))
    other = write_las(tmp_path / "other.las", 5, crs="EPSG:25833")
    spatialq.load(con, one, "t")
    with pytest.raises(CrsError, match=r"25832.* but .*25833"):
        spatialq.load(con, [two, other], "t", mode="replace")
    assert con.sql("SELECT path, row_count FROM spatialq_sources").fetchall() == [(str(one), 10)]
    assert con.sql("SELECT count(*) FROM t").fetchall() == [(10,)]
    spatialq.load(con, [one, two], "t", mode="replace")
    assert con.sql("SELECT count(*), max(point_id) FROM t").fetchall() == [(30, 29)]
    spatialq.load(con, other, "t", mode="replace")
    assert con.sql("SELECT count(*) FROM t").fetchall() == [(5,)]
    assert comment_of(con, "t")["crs"] == "EPSG:25833"
    assert con.sql("SELECT path FROM spatialq_files").fetchall() == [(str(other),)]
    con.execute("CREATE TABLE mine AS FROM t")
    with pytest.raises(ValueError, match="table 'mine' is not from load, so it is not replaced"):
        spatialq.load(con, other, "mine", mode="replace")
    with pytest.raises(ValueError, match="mode must be 'append', 'replace' or 'update', got 'add'"):
        spatialq.load(con, other, "t", mode="add")


def test_a_model_is_replaced_with_all_its_tables(con, tmp_path, world):
    builder = Builder()
    builder.boxes(2)
    path = builder.write(tmp_path / "boxes.ifc")
    spatialq.load(con, world.ifc)
    spatialq.load(con, world.ifc, "kept")
    con.execute("INSERT INTO load_errors SELECT file_name, 'x', 'x', 'geometry', 'x' FROM models")
    spatialq.load(con, path, mode="replace")
    for table in set(TABLES) - {"load_errors"}:
        assert con.sql(f"SELECT file_name FROM {table}").distinct().fetchall() in (
            [(str(path),)],
            [],
        ), table
    assert con.sql("SELECT count(*) FROM objects WHERE has_geometry").fetchall() == [(2,)]
    assert con.sql("SELECT count(*) > 50 FROM kept_objects").fetchall() == [(True,)]
    assert con.sql("SELECT count(*) FROM load_errors").fetchall() == [(1,)]
    spatialq.load(con, path, "kept", mode="replace")
    assert con.sql("SELECT count(*) FROM load_errors").fetchall() == [(0,)]
