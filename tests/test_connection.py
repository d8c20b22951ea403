"""`connect` and `install`: on any connection, again and again, in threads, read-only."""

import subprocess
import sys
import threading

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq.database import connection, macros
from spatialq.database.sql_functions import sql_functions
from spatialq.demo.house import write_house

CALL = "SELECT count(*) FROM spatialq_devices()"


def test_install_is_idempotent_and_reaches_cursors():
    con = duckdb.connect()
    for _ in range(3):
        spatialq.install(con)
    with con.cursor() as cursor:
        assert cursor.sql(CALL).fetchall() == [(3,)]
        spatialq.install(cursor)
    con.close()


def test_a_function_outlives_the_connection_that_brought_it():
    con = duckdb.connect()
    cursor = con.cursor()
    spatialq.install(cursor)
    cursor.close()
    del cursor
    assert con.sql(CALL).fetchall() == [(3,)]
    con.close()


def test_a_transaction_that_is_rolled_back():
    con = duckdb.connect()
    con.execute("BEGIN; CREATE TABLE t (a INTEGER)")
    spatialq.install(con)
    assert con.sql(CALL).fetchall() == [(3,)]
    con.execute("ROLLBACK")
    spatialq.install(con)
    assert con.sql(CALL).fetchall() == [(3,)]
    con.close()


def test_another_database_after_use():
    with spatialq.connect() as con:
        con.execute("ATTACH ':memory:' AS other; USE other")
        spatialq.install(con)
        assert con.sql(CALL).fetchall() == [(3,)]


@pytest.mark.slow
def test_several_databases_in_one_process(tmp_path):
    connections = [spatialq.connect(str(tmp_path / f"{i}.duckdb")) for i in range(3)]
    assert [con.sql(CALL).fetchall() for con in connections] == [[(3,)]] * 3
    for con in connections:
        con.close()


def test_many_threads_install_at_once():
    con = duckdb.connect()
    errors = []

    def work():
        try:
            with con.cursor() as cursor:
                spatialq.install(cursor)
                cursor.sql(CALL).fetchall()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    con.close()
    assert errors == []


def test_a_read_only_database(tmp_path):
    path = str(tmp_path / "db.duckdb")
    duckdb.connect(path).close()
    with spatialq.connect(path, read_only=True) as con:
        assert con.sql(CALL).fetchall() == [(3,)]
        with con.cursor() as cursor:
            spatialq.install(cursor)
            assert cursor.sql(CALL).fetchall() == [(3,)]


def test_a_database_that_spatialq_has_written_opens_without_it(tmp_path):
    path = str(tmp_path / "db.duckdb")
    spatialq.connect(path).close()
    with duckdb.connect(path) as con:
        assert con.sql("SELECT 42").fetchall() == [(42,)]


def test_installing_again_writes_nothing(tmp_path):
    path = tmp_path / "db.duckdb"
    spatialq.connect(str(path)).close()
    before = path.read_bytes()
    spatialq.connect(str(path)).close()
    assert path.read_bytes() == before


def test_an_older_version_is_replaced(tmp_path):
    with spatialq.connect(str(tmp_path / "db.duckdb")) as con:
        con.execute("CREATE OR REPLACE MACRO spatialq_devices() AS TABLE SELECT 'old' AS device")
        spatialq.install(con)
        assert con.sql(CALL).fetchall() == [(3,)]


def test_the_documentation_is_in_the_catalogue():
    with spatialq.connect() as con:
        query = "SELECT comment FROM duckdb_functions() WHERE function_name = 'owm_ground'"
        ((comment,),) = con.sql(query).fetchall()
    assert "Overlap Window Method" in comment
    assert "\nexample: FROM owm_ground(" in comment


def test_an_old_duckdb_is_refused(monkeypatch):
    monkeypatch.setattr(duckdb, "__version__", "1.5.5")
    with pytest.raises(RuntimeError, match=r"DuckDB must be 2\.0 or newer, got 1\.5\.5"):
        connection.install(duckdb.connect())


def test_nothing_is_printed_when_python_ends():
    code = (
        "import duckdb, spatialq; con = spatialq.connect(); other = duckdb.connect(); "
        "spatialq.install(other); print(con.sql('FROM spatialq_log()').fetchall())"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("[]\n", "")


def test_an_attached_database_whose_name_has_quotes(tmp_path):
    with spatialq.connect() as con:
        con.execute(f'ATTACH \'{tmp_path / "x.db"}\' AS "a""b"')
        con.execute('USE "a""b"')
        spatialq.install(con)
        np.save(tmp_path / "z.npy", np.ones((2, 3)))
        spatialq.load(con, tmp_path / "z.npy")
        assert con.sql("SELECT count(*) FROM grid").fetchall() == [(6,)]
        assert con.sql("SELECT count(*) FROM spatialq_devices()").fetchall() == [(3,)]


VIEWS = (
    "FROM classify_ground('points')",
    "SELECT classify_ground_list(point_id, x, y, z) FROM points",
    "FROM read_ifc('{house}')",
    "FROM intersects_with('elements')",
    "SELECT mesh_above(a.mesh, b.mesh) FROM elements AS a, elements AS b",
    "FROM spatialq_log()",
)


@pytest.mark.slow
@pytest.mark.parametrize("query", VIEWS)
def test_a_view_in_duckdb_without_spatialq_says_what_it_needs(tmp_path, query):
    path, house = tmp_path / "site.duckdb", tmp_path / "house.ifc"
    write_house(house)
    with spatialq.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE points AS "
            "SELECT i AS point_id, i AS x, i AS y, i AS z FROM range(9) AS t(i)"
        )
        con.execute(f"CREATE TABLE elements AS FROM read_ifc('{house}') LIMIT 2")
        con.execute(f"CREATE VIEW asked AS {query.format(house=house)}")
    missing = r"Function with name spatialq_\w+ does not exist"
    with duckdb.connect(str(path)) as con, pytest.raises(duckdb.CatalogException, match=missing):
        con.sql("FROM asked").fetchall()


@pytest.mark.parametrize("transport", ["native", "lists"])
def test_functions_that_macros_call_have_names_that_say_whose_they_are(transport):
    assert [f.name for f in sql_functions(transport) if not f.name.startswith("spatialq_")] == []


def test_the_same_version_with_another_body_has_another_comment(monkeypatch, tmp_path):
    monkeypatch.setattr(macros, "files", lambda _: tmp_path)
    comments = set()
    for body in "12":
        (tmp_path / "one.sql").write_text(f"-- One.\nCREATE OR REPLACE MACRO one() AS {body};\n")
        (macro,) = macros.macros.__wrapped__("lists")
        comments.add(macro.comment)
    assert len(comments) == 2
