"""A session: SQL, scripts, variables, commands, errors."""

import io
import os
import signal
import subprocess
import sys

import ifcopenshell
import pytest

from spatialq.cli.shell.session import Session, run_lines, statements

from ..command_line import spatialq_process


@pytest.fixture
def session(con, world, monkeypatch):
    monkeypatch.chdir(world.ifc.parent)
    return Session(con, limit=20)


def test_statements_are_joined_from_lines():
    lines = ["SELECT 1\n", "AS a; SELECT 2;\n", "\n", "w = Op(\n", "x)\n", "-- no\n", "SELECT 3\n"]
    assert list(statements(lines, tuple)) == [
        "SELECT 1\nAS a; SELECT 2;\n",
        "w = Op(\nx)\n",
        "-- no\n",
        "SELECT 3\n",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        "w = TypeFilter(m is\n",
        "w = TypeFilter(m is IfcWall\n",
        'w = AttributeFilter(m, m.Name = "wall)\n',
        "func F(x) (\ny = TypeFilter(x is IfcWall)\n",
        "w = 3\n",
        "W1 = 3\n",
        "SELEC 1\n",
        "TypeFilter(m is IfcWall)\n",
        "help me\n",
        "w\n",
    ],
)
@pytest.mark.parametrize("following", ["SELECT 1;\n", "FROM t;\n", ".tables\n"])
def test_an_error_costs_its_statement_alone(wrong, following):
    lines = (wrong + following).splitlines(keepends=True)
    assert list(statements(lines, tuple)) == [wrong, following]


def test_a_script_that_does_not_close_ends_before_the_next_one():
    lines = ["w = TypeFilter(m is IfcWall\n", "d = TypeFilter(m is IfcDoor)\n"]
    assert list(statements(lines, tuple)) == lines


def test_lines_within_a_statement_may_look_like_statements():
    lines = [
        "func F(x) (\n",
        "// from\n",
        "y = TypeFilter(x is IfcWall)\n",
        "\n",
        "level = AttributeFilter(y,\n",
        'not y.Name = "a"\n',
        'and y.Name = "b")\n',
        ")\n",
    ]
    assert list(statements(lines, tuple)) == ["".join(lines)]
    lines = ["t[a|b] = CloserThan(x, y,\n", "max_distance = 2mm)\n"]
    assert list(statements(lines, tuple)) == ["".join(lines)]
    lines = ["UPDATE t SET\n", "a = 1\n", "WHERE b = 2;\n"]
    assert list(statements(lines, tuple)) == ["".join(lines)]


def test_a_name_alone_shows_its_rows(session, con, world, capsys):
    con.execute("CREATE TABLE plots AS SELECT 17 AS plot")
    session.run(f'm = ImportModel("{world.ifc.name}")')
    first = capsys.readouterr().out
    ((count,),) = con.sql("SELECT count(*) FROM m").fetchall()
    assert first.startswith(f"m: {count} objects, the first 5")
    assert first.count("\u2502 Ifc") == 5
    session.run("m")
    captured = capsys.readouterr()
    assert captured.out.count("\u2502 Ifc") == 20
    assert captured.err.startswith("only the first 20 of ")
    session.run("plots")
    assert "17" in capsys.readouterr().out
    session.run("plotz")
    assert 'Did you mean "plots"' in capsys.readouterr().err
    assert session.run("help")
    assert ".tables" in capsys.readouterr().out
    assert not session.run("exit")
    assert not session.run("quit;")


def test_functions_are_kept_and_show_nothing(session, world, capsys):
    session.run(f'm = ImportModel("{world.ifc.name}")')
    capsys.readouterr()
    session.run("w = Walls(m)")
    error = capsys.readouterr().err
    assert error.startswith("a function must be defined here before it is called\nerror: shell:")
    session.run("func Walls(x) (y = TypeFilter(x is IfcWall))")
    assert capsys.readouterr() == ("", "")
    session.run("w = Walls(m)")
    assert capsys.readouterr().out.startswith("w: ")


def test_what_the_data_have_not_is_an_error(session, world, tmp_path, capsys):
    session.run(f'm = ImportModel("{world.ifc.name}")\nw = TypeFilter(m is IfcWall)')
    session.run("x = AttributeFilter(w, w.MySet.Typo = 1)")
    assert "no object has a property MySet.Typo" in capsys.readouterr().err
    session.run('e = AttributeFilter(w, w.Name = "nothing")')
    assert capsys.readouterr().out == "e: 0 objects\n"
    session.run(f'done = ExportModel(e, "{tmp_path}/e.ifc")')
    assert "ExportModel: there are no objects to write" in capsys.readouterr().err
    session.run("d = TypeFilter(m is IfcDoor)\ns = Projector(Touches(w, d), [a])")
    session.run(f'done = ExportModel(s, "{tmp_path}/s.ifc")')
    assert capsys.readouterr().err == f"written: {tmp_path}/s.ifc\n"
    assert session.variables == ("m", "w", "e", "d", "s", "done")


def test_names_that_differ_in_case_alone(session, world, capsys):
    session.run(f'wA = ImportModel("{world.ifc.name}")')
    session.run(f'wa = ImportModel("{world.ifc.name}")')
    assert "shell: there is a variable 'wA' already" in capsys.readouterr().err


def test_each_statement_of_sql_is_shown(session, capsys):
    assert session.run("CREATE TABLE t AS SELECT 7 AS a; FROM t; SELECT 8 AS b;")
    out = capsys.readouterr().out
    assert out.index("7") < out.index("8")
    assert not session.failed


def test_variables_stay_and_are_views(session, con, world, capsys):
    session.run(f'm = ImportModel("{world.ifc.name}")')
    session.run("w = TypeFilter(m is IfcWall)")
    expected = con.sql(
        f"SELECT global_id FROM read_ifc_objects('{world.ifc.name}') "
        "WHERE is_a(ifc_class, 'IfcWall')"
    ).fetchall()
    assert sorted(con.sql("SELECT global_id FROM w").fetchall()) == sorted(expected)
    capsys.readouterr()
    session.run('high = AttributeFilter(w, w.Name = "wall hall")')
    out = capsys.readouterr().out
    assert "wall hall" in out
    assert "attributes" not in out  # the main columns only
    assert session.variables == ("m", "w", "high")
    assert session.names.variables == session.variables
    session.run(".sql high")
    shown = capsys.readouterr().out
    assert con.sql(f"SELECT name FROM ({shown})").fetchall() == [("wall hall",)]


def test_a_variable_that_is_assigned_again_does_not_change_those_made_of_it(session, con, world):
    session.run(f'm = ImportModel("{world.ifc.name}")')
    session.run("x = TypeFilter(m is IfcWall)\ny = TypeFilter(x is IfcWall);")
    walls = con.sql("FROM y").fetchall()
    session.run("x = TypeFilter(m is IfcDoor)")
    assert con.sql("FROM y").fetchall() == walls
    assert con.sql("SELECT DISTINCT ifc_class FROM x").fetchall() == [("IfcDoor",)]
    assert not session.failed


def test_what_failed_is_forgotten(session, world, capsys):
    session.run(f'm = ImportModel("{world.ifc.name}")')
    session.run("w = TypeFilter(m is IfcWal)")
    error = capsys.readouterr().err
    assert "shell:2:21: TypeFilter: no class 'IfcWal'" in error
    assert "^^^^^^" in error
    session.run('n = ImportModel("nowhere.ifc")')
    assert "nowhere.ifc" in capsys.readouterr().err
    assert session.variables == ("m",)
    session.run("d = TypeFilter(m is IfcDoor)")
    assert session.variables == ("m", "d")


def test_a_variable_does_not_hide_a_table(session, con, world, capsys):
    con.execute("CREATE TABLE walls AS SELECT 1 AS a")
    session.run(f'walls = ImportModel("{world.ifc.name}")')
    assert "'walls' is a table of the database" in capsys.readouterr().err
    assert con.sql("FROM walls").fetchall() == [(1,)]


def test_models_are_written_once(session, world, tmp_path, capsys):
    target = tmp_path / "doors.ifc"
    session.run(f'm = ImportModel("{world.ifc.name}")\nd = TypeFilter(m is IfcDoor)')
    session.run(f'done = ExportModel(d, "{target}")')
    assert f"written: {target}" in capsys.readouterr().err
    assert len(ifcopenshell.open(target).by_type("IfcDoor")) == 6
    target.unlink()
    session.run("w = TypeFilter(m is IfcWall)")
    assert not target.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("w = 3", "error: shell:1:5: '3' stands here, where a name must follow"),
        ("SELEC 1;", 'error: Parser Error: syntax error at or near "SELEC"'),
        ("SELECT 1; SELECT nothing;", "error: statement 2 of 2: Binder Error: "),
        ("FROM read_las('none.laz');", "error: read_las: 'none.laz': there is no such file"),
        (".tabels", "error: shell: no command '.tabels'; there is .tables"),
        (".sql", "error: shell: no command '.sql'; there is .sql"),
        (".sql w", "error: shell: no variable 'w'; there is none"),
        ("w = TypeFilter(m is IfcWall)", "error: shell:1:"),
        ("w = (", "error: shell:1:"),
    ],
)
def test_errors_end_nothing(session, capsys, text, message):
    assert session.run(text)
    assert capsys.readouterr().err.startswith(message)
    assert session.failed
    assert session.run("SELECT 41 + 1 AS a;")
    assert "42" in capsys.readouterr().out


def test_what_is_wrong_in_spatialq_ends_nothing(session, capsys, monkeypatch):
    monkeypatch.setattr(session, "_run_sql", lambda _: 1 / 0)
    assert session.run("SELECT 1;")
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "\n", "-- nothing", "// nothing", "/* nothing */ ;"])
def test_nothing_is_no_error(session, capsys, text):
    assert session.run(text)
    assert capsys.readouterr() == ("", "")


def test_commands(session, con, capsys):
    con.execute("CREATE TABLE t (a INT)")
    assert session.run(".tables")
    assert "t " in capsys.readouterr().out
    assert session.run(".help")
    assert ".tables" in capsys.readouterr().out
    assert not session.run(".quit")


def test_a_transaction_spans_what_is_typed(session, con, world):
    for text in ("BEGIN;", "CREATE TABLE t AS SELECT 1 AS a;", f'm = IM("{world.ifc.name}")'):
        assert session.run(text)
    session.run("COMMIT;")
    assert not session.failed
    assert con.sql("FROM t").fetchall() == [(1,)]
    assert con.sql("SELECT count(*) > 10 FROM m").fetchall() == [(True,)]


def test_lines_from_a_pipe(session, capsys):
    run_lines(session, io.StringIO("SELECT 1\nAS a;\n.quit\nSELECT nothing;\n"))
    assert not session.failed
    assert "a" in capsys.readouterr().out


@pytest.mark.slow
def test_the_command_without_a_terminal(tmp_path, world):
    script = (
        f'm = ImportModel("{world.ifc}")\nd = TypeFilter(m is IfcDoor)\nSELECT count(*) FROM d;\n'
    )
    result = spatialq_process("shell", input=script, cwd=tmp_path)
    assert (result.returncode, result.stderr.count("error")) == (0, 0)
    assert "6" in result.stdout.splitlines()[-2]
    failed = spatialq_process("shell", input="SELEC 1;\nSELECT 42;\n", cwd=tmp_path)
    assert failed.returncode == 1
    assert "42" in failed.stdout
    missing = spatialq_process("shell", "-d", "no.duckdb", input="SELECT 1;\n", cwd=tmp_path)
    assert missing.stderr.startswith("error: shell: 'no.duckdb': there is no such database")


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
@pytest.mark.slow
def test_ctrl_c_ends_a_pipe(tmp_path):
    command = [sys.executable, "-m", "spatialq", "shell"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path
    ) as process:
        endless = "SELECT count(*) FROM range(1_000_000_000_000) AS r(i) WHERE i % 7 = 8;"
        process.stdin.write(f"CREATE TABLE t AS SELECT 1;\n{endless}\nSELECT 43;\n")
        process.stdin.close()
        assert "Count" in process.stdout.readline() + process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == "interrupted: nothing was half written\n"
        assert "43" not in process.stdout.read()
