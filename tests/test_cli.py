"""The command line: what it prints, says and leaves behind."""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq.cli import databases

from .command_line import rows, spatialq_command, spatialq_process
from .test_load import write_las


def test_info(tmp_path):
    path = write_las(tmp_path / "a.laz", 50)
    (described,) = rows("info", path)
    assert described["rows"] == 50
    assert described["crs"] == "ETRS89 / UTM zone 32N (EPSG:25832)"
    assert "gps_time" in described["columns"]
    table = spatialq_process("info", path)  # as a user's shell calls it
    assert (table.returncode, table.stderr) == (0, "")
    assert "ETRS89" in table.stdout


def test_info_of_a_model(world):
    (described,) = rows("info", world.ifc)
    assert described["schema"] == "IFC4"
    assert described["georeference"]["crs_name"] == "EPSG:25832"


@pytest.mark.slow
def test_load_and_sql(tmp_path):
    database = tmp_path / "db.duckdb"
    paths = [write_las(tmp_path / f"{i}.laz", 100, first=100.0 * i) for i in range(2)]
    loaded = rows("load", *paths, "--database", database, "--table", "t")
    assert [row["rows"] for row in loaded] == [100, 100]
    query = "SELECT count(*) AS n, max(x) AS x FROM t"
    assert rows("sql", query, "--database", database) == [{"n": 200, "x": 199.0}]
    shown = spatialq_command("sql", "FROM t", "--database", database, "--limit", 5)
    assert "only the first 5 of 200 rows are shown (--limit)" in shown.stderr
    target = tmp_path / "out.parquet"
    assert rows("sql", "FROM t;", "-d", database, "-o", target) == [
        {"output": str(target), "rows": 200}
    ]
    with spatialq.connect() as con:
        assert con.sql(f"SELECT count(*) FROM '{target}'").fetchall() == [(200,)]


@pytest.mark.parametrize("end", ["", ";", " -- comment", "; -- comment", ";;\n/* ; */"])
def test_what_may_follow_a_query(tmp_path, end):
    target = tmp_path / "q.csv"
    query = f"SELECT 'é;' AS a{end}"
    assert rows("sql", query, "-o", target) == [{"output": str(target), "rows": 1}]
    assert target.read_text(encoding="utf-8") == "a\né;\n"
    assert rows("sql", query) == [{"a": "é;"}]


def test_sql_straight_over_a_file(tmp_path):
    path = write_las(tmp_path / "a.laz", 500)
    query = f"SELECT count(*) AS n FROM read_las('{path}') WHERE x < 50"
    assert rows("sql", query) == [{"n": 250}]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["info", "none.laz"], 1, "error: info: 'none.laz': there is no such file"),
        (["load", "none.laz", "-d", "x.duckdb"], 1, "error: load: 'none.laz': there is no such"),
        (["sql", "SELEC 1"], 1, 'error: Parser Error: syntax error at or near "SELEC"'),
        (["sql", "FROM read_las('none.laz')"], 1, "error: read_las: 'none.laz': "),
        (["sql", "SELECT 1", "-o", "x.txt"], 1, "error: output: 'x.txt' must end in one of"),
        (["ground", "none.laz", "-o", "x.laz"], 1, "error: ground: 'none.laz': there is no such"),
        (["ground", "none.laz", "-o", "x.xyz"], 1, "error: ground: output 'x.xyz' must end in"),
        (["ground", "none.laz", "-o", "no/x.laz"], 1, "error: output: 'no/x.laz': there is no"),
        (["sql", "SELECT 1", "-o", "no/x.csv"], 1, "error: output: 'no/x.csv': there is no folder"),
        (["sql", " ; -- nothing"], 1, "error: sql: the query is empty"),
        (["sql", "SELECT 1", "--limit", "-1"], 2, "error: Invalid value for '--limit'"),
        (["ground", "*.laz", "-o", "x.laz"], 1, "error: ground: '*.laz': no file matches"),
        (["ground", "house.ifc", "-o", "x.laz"], 1, "error: ground: 'house.ifc': is no point"),
        (["info", b"\xff.las"], 1, r"error: info: '\udcff.las': its name is not UTF-8; rename it"),
        (["ground", "none.laz"], 2, "error: Missing option '--output' / '-o'"),
        (["fly"], 2, "error: No such command 'fly'"),
        (["demo", "one.laz"], 1, "error: demo: give a point cloud and a building model, or"),
    ],
)  # fmt: skip
def test_errors_are_one_line(tmp_path, arguments, code, message):
    (tmp_path / "house.ifc").touch()
    result = spatialq_command(*arguments, cwd=tmp_path)
    assert result.returncode == code
    assert result.stderr.startswith(message)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), ""),
        (("version",), "error: No such command 'version'; see --help\n"),
        (("sql",), "error: Missing argument 'query'; see --help\n"),
    ],
)
def test_commands_that_are_not_there(arguments, message):
    result = spatialq_command(*arguments)
    assert (result.returncode, result.stderr) == (2, message)


def test_the_help_names_the_command():
    assert "Usage: spatialq [OPTIONS]" in spatialq_command("--help").stdout


@pytest.mark.parametrize(
    "command", [("sql", "SELECT 1"), ("load", "a.laz"), ("run", "-"), ("shell",)]
)
def test_a_database_without_a_name_is_refused(command, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO('m = ImportModel("a.ifc")'))
    result = spatialq_command(*command, "--database", "")
    message = f"error: {command[0]}: database must be a file, got ''\n"
    assert (result.returncode, result.stderr) == (1, message)


OTHER = """
import sys, duckdb
con = duckdb.connect(sys.argv[1])
con.execute("CREATE TABLE theirs AS SELECT 42 AS a")
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held(database):
    """Have another process make a database and keep it open for as long as the block."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate(timeout=60)


@pytest.mark.parametrize("why", [None, "No space left on device"])
def test_a_database_that_another_process_makes_meanwhile_stays(tmp_path, monkeypatch, why):
    database = tmp_path / "a.duckdb"
    monkeypatch.setattr(databases, "why_full", lambda _: why)
    connect = databases._connect
    with contextlib.ExitStack() as stack:

        def late(*given, **options):
            stack.enter_context(held(database))
            return connect(*given, **options)

        monkeypatch.setattr(databases, "_connect", late)
        result = spatialq_command("load", write_las(tmp_path / "a.las", 10), "-d", database)
        assert result.returncode == 1
        assert "Could not set lock on file" in result.stderr
        assert database.exists()
    with duckdb.connect(str(database)) as con:
        assert con.sql("FROM theirs").fetchall() == [(42,)]


def test_a_database_that_another_process_makes_after_a_failure_stays(tmp_path, monkeypatch):
    """The failure is not of its lock, and at the time there is nothing in the file itself."""
    database = tmp_path / "a.duckdb"
    with contextlib.ExitStack() as stack:

        def failing(*_, **__):
            stack.enter_context(held(database))
            raise duckdb.IOException

        monkeypatch.setattr(databases, "_connect", failing)
        monkeypatch.setattr(databases, "why_full", lambda _: "No space left on device")
        result = spatialq_command("load", write_las(tmp_path / "a.las", 10), "-d", database)
        assert "a.duckdb': cannot be written: No space left on device" in result.stderr
        assert database.exists()
    with duckdb.connect(str(database)) as con:
        assert con.sql("FROM theirs").fetchall() == [(42,)]


def test_a_new_database_in_which_there_is_nothing_is_removed(tmp_path):
    result = spatialq_command("load", tmp_path / "b.laz", "-d", tmp_path / "a.duckdb")
    assert result.returncode == 1
    assert not list(tmp_path.iterdir())


def test_a_database_of_an_extension_that_is_not_there(tmp_path):
    result = spatialq_command("sql", "SELECT 1", "--database", "ab:b.duckdb", cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.startswith("error: sql: 'ab:b.duckdb': DuckDB has no extension 'ab:' here")
    assert len(result.stderr.splitlines()) == 1


def test_rows_are_counted_as_far_as_a_person_waits():
    for rows_there, text in (
        (100, ""),
        (101, "101"),
        (10_000, "10000"),
        (10_001, "more than 10000"),
    ):
        result = spatialq_command("sql", f"FROM range({rows_there})")
        note = f"only the first 100 of {text} rows are shown (--limit)\n" if text else ""
        assert result.stderr == note
        assert result.stdout.count("│") == 200


def test_an_option_that_is_wrong_leaves_no_file(tmp_path):
    path = write_las(tmp_path / "a.las", 100)
    result = spatialq_command("ground", path, "-o", tmp_path / "g.laz", "--object-width", "2000m")
    expected = "error: classify_ground: object_width must be >= 0 and <= 1000 metres, got 2000.0\n"
    assert result.stderr == expected
    assert result.returncode == 1
    assert [each.name for each in tmp_path.iterdir()] == ["a.las"]


def test_the_input_is_not_overwritten(tmp_path):
    path = write_las(tmp_path / "a.las", 100)
    before = path.read_bytes()
    result = spatialq_command("ground", path, "-o", path)
    assert "output must be another file than the input" in result.stderr
    assert path.read_bytes() == before


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_leaves_no_half_written_table(tmp_path):
    database = tmp_path / "db.duckdb"
    path = write_las(tmp_path / "a.laz", 6_000_000)
    command = [sys.executable, "-m", "spatialq", "load", str(path), "-d", str(database), "-t", "t"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not database.exists() or database.stat().st_size < 1 << 20:
            assert process.poll() is None, "it has ended, or nothing is written before its end"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130, errors
    assert "interrupted" in errors
    with spatialq.connect(str(database)) as con:
        query = "SELECT count(*) FROM duckdb_tables() WHERE table_name = 't'"
        assert con.sql(query).fetchall() == [(0,)]


def test_demo_on_files_of_ones_own(tmp_path, world):
    result = spatialq_command("demo", world.las, world.ifc, "--folder", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    for text in ("Overlap Window Method", "IfcWall", "owm_ground", "picture: "):
        assert text in result.stdout
    for name in ("ground.png", "planes.png", "lod.png", "features.png"):
        picture = (tmp_path / "out" / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 100_000


def test_json_has_no_nan():
    query = (
        "SELECT 'nan'::DOUBLE AS a, ['inf'::DOUBLE, 1] AS b, {'c': '-inf'::FLOAT} AS d, "
        "MAP {DATE '2026-01-02': 'nan'::DOUBLE} AS e, 1.5 AS f"
    )
    (row,) = rows("sql", query)
    assert row == {
        "a": None,
        "b": [None, 1],
        "d": {"c": None},
        "e": {"2026-01-02": None},
        "f": "1.5",
    }


def test_geometries_are_text():
    query = (
        "SELECT unnest(['POINT Z (1 2 3)', NULL])::GEOMETRY AS g, 7 AS k, "
        "'POINT (4 5)'::GEOMETRY AS g"
    )
    assert rows("sql", query) == [
        {"g": "POINT Z (1 2 3)", "k": 7, "g_1": "POINT (4 5)"},
        {"g": None, "k": 7, "g_1": "POINT (4 5)"},
    ]


def test_columns_of_equal_name_are_all_there():
    assert rows("sql", "SELECT 1 AS a, 2 AS a, 3 AS b") == [{"a": 1, "a_1": 2, "b": 3}]


@pytest.mark.slow
def test_a_table_shows_the_start_of_nested_values_and_all_of_plain_ones():
    text = "a long text that goes on and on and on, for more than eighty characters, if you let it"
    query = (
        "SELECT range(3) AS some, [{'a': i} FOR i IN range(2_000_000)] AS many, NULL::INT[] AS no, "
        f"{{'a': '[b]', 'c': range(99)}} AS s, 12345678.123456789 AS v, '{text}' AS \"it's\"\"\""
    )
    result = spatialq_command("sql", query)
    assert result.returncode == 0, result.stderr
    heading, values = (
        [cell.strip() for cell in re.split("[┃│]", line)[1:-1]]
        for line in result.stdout.splitlines()
        if line[0] in "┃│"
    )
    assert heading == ["some", "many", "no", "s", "v", "it's\""]
    assert values == [
        "[0, 1, 2]",
        "[{'a': 0}, {'a': 1}, {'a': 2}, {'a': 3}… (2000000 in all)",
        "",
        "{'a': '[b]', 'c': [0, 1, 2, 3, 4, 5, 6,…",
        "12345678.123456789",
        text,
    ]
    (row,) = rows("sql", query.replace("2_000_000", "100"))
    assert len(row["many"]) == 100
    assert row["s"] == {"a": "[b]", "c": list(range(99))}


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends SIGTERM")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_what_stops_the_writing_leaves_no_file(tmp_path, number, code):
    source = write_las(tmp_path / "a.las", 3_000_000)
    target = tmp_path / "g.laz"
    command = [sys.executable, "-m", "spatialq", "ground", str(source), "-o", str(target)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob(".spatialq-*/*.part.laz")) and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(number)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == code, errors
    assert "interrupted: nothing was half written" in errors
    assert list(tmp_path.iterdir()) == [source]


ENDLESS = """
import spatialq

@spatialq.pops_method("endless", features=["a"])
def endless(z, dx, dy, out):
    print("at work")
    while z[0, 0] == z[0, 0]:
        out[0] += 1
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_what_does_not_end(tmp_path, number):
    (tmp_path / "endless.py").write_text(ENDLESS)
    np.save(tmp_path / "a.npy", np.ones((9, 9)))
    options = "--define endless.py --methods endless --scales 3u --example-scale 9u"
    command = [sys.executable, "-u", "-m", "spatialq", "features", "a.npy", *options.split()]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as process:
        try:
            assert process.stdout.readline() == "at work\n"
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):  # where the first is enough
                process.wait(1)
            process.send_signal(number)
            assert process.wait(60) in (-number, 128 + number)
        finally:
            process.kill()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_standard_output_that_is_full():
    command = [sys.executable, "-m", "spatialq", "formats"]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    said = "error: standard output cannot be written: No space left on device\n"
    assert done.stderr == said


@pytest.mark.skipif(sys.platform == "win32", reason="asks for a shell")
def test_standard_output_that_is_closed():
    command = f'"{sys.executable}" -m spatialq formats >&-'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
