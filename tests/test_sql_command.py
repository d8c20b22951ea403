"""`spatialq sql`: several statements, the database that they run on, what is shown."""

import subprocess
import sys
from importlib.metadata import version

import duckdb
import pytest

from .command_line import rows, spatialq_command, spatialq_process
from .test_load import write_las


@pytest.mark.parametrize(
    ("query", "last"),
    [
        ("SELECT 1 AS a; SELECT 2 AS b", [{"b": 2}]),
        ("CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2); FROM t", [{"a": 1}, {"a": 2}]),
        ("BEGIN; CREATE TABLE t (a INT); EXPLAIN FROM t; COMMIT; FROM t", []),
        ("BEGIN; CREATE TABLE t (a INT); ROLLBACK; SELECT count(*) AS n FROM duckdb_tables()",
         [{"n": 0}]),
        ("SELECT ';' AS a; -- ; \n /* ; ; */ SELECT 'é;' AS b -- ;", [{"b": "é;"}]),
        (";; SELECT 1 AS a;; ;", [{"a": 1}]),
        ("SET VARIABLE a = 3; SELECT getvariable('a') AS a", [{"a": 3}]),
        ("ATTACH ':memory:' AS q; CREATE TABLE q.t AS SELECT 1 AS a; FROM q.t", [{"a": 1}]),
        ("CREATE TABLE t AS SELECT 1 AS a; UPDATE t SET a = 5 RETURNING a", [{"a": 5}]),
        ("CREATE TABLE t AS SELECT 1 AS i, 2 AS v; PIVOT t ON i USING sum(v)", [{"1": 2}]),
        ("CREATE SEQUENCE s; SELECT nextval('s') FROM range(5000); SELECT nextval('s') AS n",
         [{"n": 5001}]),
        ("SELECT 1; SET threads = 1", []),
        ("SELECT 1; CREATE TABLE t (a INT)", []),
    ],
)  # fmt: skip
def test_the_last_of_several_statements_is_shown(query, last):
    assert rows("sql", query) == last


@pytest.mark.parametrize("query", ["SET threads = 1", "CREATE TABLE t (a INT)", "BEGIN"])
def test_a_statement_without_rows_prints_nothing(query):
    result = spatialq_command("sql", query)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("CREATE TABLE t AS SELECT 1", "Count"),
        ("EXPLAIN SELECT 1", "Projection"),
        ("PRAGMA database_list", "memory"),
        ("SELECT 1 WHERE false", "(no rows)"),
    ],
)
def test_other_statements_than_queries_are_shown(query, text):
    result = spatialq_command("sql", query)
    assert (result.returncode, result.stderr) == (0, "")
    assert text in result.stdout


def test_a_text_that_looks_like_an_emoji_stays_as_it_is():
    assert ":cat:" in spatialq_command("sql", "SELECT ':cat:' AS a").stdout


@pytest.mark.parametrize(("query", "status"), [("SELECT 42 AS a", 0), ("SELECT x", 1)])
def test_a_process_ends_after_what_is_registered_and_without_pydantic(query, status):
    """The module that it runs registers what says so; to end sooner skips the modules alone."""
    program = f"""
import sys
from spatialq import __main__
from spatialq.cli import main as cli

def run(inner=cli.main):
    import atexit
    atexit.register(lambda: print("pydantic" in sys.modules))
    inner()

cli.main = run
sys.argv = ["spatialq", "sql", {query!r}]
__main__.main()
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == status
    assert ended.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("query", ["", " ; -- nothing", "/* ; */", ";;"])
def test_a_query_of_nothing_is_an_error(query):
    result = spatialq_command("sql", query)
    assert (result.returncode, result.stderr) == (1, "error: sql: the query is empty\n")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 1; SELECT 2; SELECT nothing; SELECT 4", "statement 3 of 4: Binder Error: "),
        ("SELECT 1; FROM read_las('none.laz')", "statement 2 of 2: read_las: 'none.laz': there is"),
        ("FROM read_las('none.laz'); SELECT 1", "statement 1 of 2: read_las: 'none.laz': there is"),
        ("FROM read_las('none.laz')", "read_las: 'none.laz': there is"),
        ("SELECT 1; SELEC 2", 'Parser Error: syntax error at or near "SELEC"'),
    ],
)
def test_an_error_names_its_statement(query, message):
    result = spatialq_command("sql", query)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {message}")


def test_nothing_runs_if_a_statement_cannot_be_parsed(tmp_path):
    database = tmp_path / "a.duckdb"
    query = "CREATE TABLE t (a INT); SELEC 1"
    assert spatialq_command("sql", query, "-d", database, "--create").returncode == 1
    assert not database.exists()


def test_the_last_statement_is_written(tmp_path):
    target = tmp_path / "a.csv"
    query = "CREATE TABLE t AS FROM range(3) AS r(a); SELECT 9 AS b; FROM t WHERE a > 0;"
    assert rows("sql", query, "-o", target) == [{"output": str(target), "rows": 2}]
    assert target.read_text() == "a\n1\n2\n"


def test_what_is_no_query_is_not_written(tmp_path):
    target = tmp_path / "a.csv"
    result = spatialq_command("sql", "SELECT 1; SET threads = 1", "-o", target)
    message = f"output: the last statement must be a query for '{target}', got SET"
    assert (result.returncode, result.stderr) == (1, f"error: statement 2 of 2: {message}\n")


def test_a_wrong_output_is_refused_before_anything_runs(tmp_path):
    database = tmp_path / "a.duckdb"
    query = "CREATE TABLE t AS SELECT 1; FROM t"
    result = spatialq_command("sql", query, "-d", database, "--create", "-o", tmp_path / "a.xyz")
    assert "must end in one of" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_each_statement_has_a_coordinate_system_of_its_own(tmp_path):
    database = tmp_path / "a.duckdb"
    for zone in (32, 33):
        path = write_las(tmp_path / f"{zone}.laz", 10, crs=f"EPSG:258{zone}")
        rows("load", path, "-d", database, "-t", f"zone{zone}")
    one = "SELECT count(*) AS n FROM zone32"
    assert rows("sql", f"{one}; FROM zone33 SELECT count(*) AS m", "-d", database) == [{"m": 10}]
    both = f"{one}; SELECT count(*) FROM zone32, zone33"
    result = spatialq_command("sql", both, "-d", database)
    assert result.returncode == 1
    assert result.stderr.startswith("error: statement 2 of 2: query: ")


def test_a_database_that_is_not_there_is_refused(tmp_path):
    with duckdb.connect(str(tmp_path / "demo.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a")
    result = spatialq_command("sql", "FROM t", "-d", "demo.dukdb", cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr == (
        "error: sql: 'demo.dukdb': there is no such database; near names are demo.duckdb; "
        "--create makes a new one\n"
    )
    result = spatialq_command("sql", "FROM t", "-d", "x", cwd=tmp_path)
    assert result.stderr == (
        "error: sql: 'x': there is no such database; --create makes a new one\n"
    )
    result = spatialq_command("sql", "FROM t", "-d", "no/demo.duckdb", cwd=tmp_path)
    assert result.stderr == "error: sql: 'no/demo.duckdb': there is no folder 'no'\n"
    assert [each.name for each in tmp_path.iterdir()] == ["demo.duckdb"]


@pytest.mark.slow
def test_a_database_is_made_if_that_is_asked_for(tmp_path):
    database = tmp_path / "new.duckdb"
    rows("sql", "CREATE TABLE t AS SELECT 1 AS a", "-d", database, "--create")
    assert rows("sql", "FROM t", "-d", database, "--create") == [{"a": 1}]
    assert rows("sql", "FROM t", "-d", database) == [{"a": 1}]
    assert rows("sql", "SELECT 1 AS a", "-d", ":memory:") == [{"a": 1}]


def test_the_version():
    result = spatialq_process("--version")
    assert (result.returncode, result.stdout) == (0, f"spatialq {version('spatialq')}\n")
    assert spatialq_command("--version").stdout == result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("load", "missing.laz"), "load: 'missing.laz': there is no such file"),
        (("load", "bad.laz"), "'bad.laz': not a LAS file"),
        (("load", "a.las", "--table", "a\nb"), "table must be a name without line breaks"),
        (("load", "a.las", "--crs", "nonsense"), "'nonsense'"),
        (("sql", "SELECT nothing", "--create"), "nothing"),
        (("sql", "BEGIN; CREATE TABLE t (a INT); SELECT nothing", "--create"), "nothing"),
        (("run", "elements.ql4bim", "--create"), "'elements' is no model"),
    ],
)
def test_a_command_that_fails_leaves_no_new_database(tmp_path, command, said):
    write_las(tmp_path / "a.las", 10)
    (tmp_path / "bad.laz").write_text("no cloud")
    (tmp_path / "elements.ql4bim").write_text('m = ImportModel("elements")')
    before = sorted(tmp_path.iterdir())
    run = spatialq_command(*command, "--database", "new.duckdb", cwd=tmp_path)
    assert run.returncode == 1
    assert said in run.stderr
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("command", "left"),
    [
        (("load", "a.las", "bad.laz"), [("points",)]),
        (("sql", "CREATE TABLE t (a INT); SELECT nothing", "--create"), [("t",)]),
    ],
)
def test_what_a_command_has_done_before_it_failed_is_kept(tmp_path, command, left):
    write_las(tmp_path / "a.las", 10)
    (tmp_path / "bad.laz").write_text("no cloud")
    path = tmp_path / "new.duckdb"
    assert spatialq_command(*command, "--database", "new.duckdb", cwd=tmp_path).returncode == 1
    with duckdb.connect(str(path)) as con:
        query = "SELECT table_name FROM duckdb_tables() WHERE table_name NOT LIKE 'spatialq%'"
        assert con.execute(query).fetchall() == left


@pytest.mark.slow
def test_a_command_that_fails_keeps_a_database_that_was_there(tmp_path):
    path = tmp_path / "there.duckdb"
    duckdb.connect(str(path)).close()
    assert spatialq_command("sql", "SELECT nothing", "--database", path).returncode == 1
    assert path.exists()
    assert (
        spatialq_command("sql", "SELECT 1", "-d", tmp_path / "new.duckdb", "--create").returncode
        == 0
    )
    assert (tmp_path / "new.duckdb").exists()


def test_a_warning_is_said_once(tmp_path):
    path = write_las(tmp_path / "a.las", point_format=6)
    path.write_bytes(path.read_bytes().replace(b"PROJC", b"PROJX"))
    query = f"CREATE VIEW v AS FROM read_las('{path}'); FROM owm_ground('v', window_size := 1000)"
    said = spatialq_command("sql", query).stderr
    lines = [line for line in said.splitlines() if line.startswith("warning:")]
    assert len(lines) == len(set(lines)) == 2  # of the file, and of the unit
