"""`spatialq run`: scripts from files and standard input, models, results, SQL."""

import json
import os
import signal
import subprocess
import sys
import time

import ifcopenshell
import pytest

import spatialq

from .command_line import rows, spatialq_command, spatialq_process

TOUCHING = """
m = ImportModel("house.ifc")
w = TypeFilter(m is IfcWall)
s = TypeFilter(m is IfcSlab)
t[slab|wall] = Touches(s, w)
"""


@pytest.fixture
def folder(tmp_path, world, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "house.ifc").symlink_to(world.ifc)
    (tmp_path / "touching.ql4bim").write_text(TOUCHING)
    return tmp_path


def expected(query):
    with spatialq.connect() as con:
        con.execute("CREATE VIEW objects AS FROM read_ifc_objects('house.ifc')")
        con.execute("CREATE VIEW elements AS FROM read_ifc('house.ifc')")
        con.execute("CREATE VIEW walls AS FROM elements WHERE is_a(ifc_class, 'IfcWall')")
        con.execute("CREATE VIEW slabs AS FROM elements WHERE is_a(ifc_class, 'IfcSlab')")
        relation = con.sql(query)
        return sorted(relation.fetchall())


def values(found):
    return sorted(tuple(row.values()) for row in found)


def test_the_last_variable_is_shown(folder):
    pairs = expected("SELECT a, b FROM touches('slabs', 'walls')")
    assert len(pairs) > 10
    assert values(rows("run", "touching.ql4bim")) == pairs
    shown = spatialq_command("run", "touching.ql4bim", "--limit", 2)
    assert f"only the first 2 of {len(pairs)} rows are shown (--limit)" in shown.stderr


def test_another_variable(folder):
    found = rows("run", "touching.ql4bim", "--variable", "w")
    assert sorted(row["global_id"] for row in found) == [
        name for (name,) in expected("SELECT global_id FROM walls")
    ]
    assert "mesh" not in found[0]
    table = spatialq_command("run", "touching.ql4bim", "--variable", "w")
    heading = [cell.strip() for cell in table.stdout.splitlines()[1].split("┃")[1:-1]]
    assert heading == ["global_id", "ifc_class", "name", "storey"]


def test_names_of_the_objects_of_pairs(folder):
    found = rows("run", "touching.ql4bim", "--names")
    assert values(found) == expected(
        "SELECT t.a, x.name, x.ifc_class, x.storey, t.b, y.name, y.ifc_class, y.storey "
        "FROM touches('slabs', 'walls') AS t JOIN objects AS x ON x.global_id = t.a "
        "JOIN objects AS y ON y.global_id = t.b"
    )
    assert list(found[0]) == ["slab", "slab_name", "slab_class", "slab_storey",
                              "wall", "wall_name", "wall_class", "wall_storey"]  # fmt: skip
    walls = ("run", "touching.ql4bim", "--variable", "w")
    assert rows(*walls, "--names") == rows(*walls)  # which has names anyway


def test_the_sql_is_printed_and_no_file_touched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.ql4bim").write_text(f'{TOUCHING}e = ExportModel(w, "walls.ifc")')
    result = spatialq_command("run", "a.ql4bim", "--sql", "-d", "none.duckdb", "-o", "t.csv")
    assert (result.returncode, result.stderr) == (0, "")
    assert "read_ifc_objects('house.ifc')" in result.stdout
    assert [each.name for each in tmp_path.iterdir()] == ["a.ql4bim"]


def test_the_sql_gives_the_same_rows(folder):
    query = spatialq_command("run", "touching.ql4bim", "--sql").stdout
    assert values(rows("sql", query)) == values(rows("run", "touching.ql4bim"))


def test_models_that_the_script_does_not_name(folder, world):
    other = "w = TypeFilter(model is IfcWall)"
    (folder / "a.ql4bim").write_text(other)
    assert len(rows("run", "a.ql4bim", "--model", "house.ifc")) == 15
    (folder / "b.ql4bim").write_text(
        "w = TypeFilter(one is IfcWall)\nd = TypeFilter(two is IfcDoor)"
    )
    models = ("--model", "one=house.ifc", "--model", f"two={world.ifc}")
    assert len(rows("run", "b.ql4bim", *models)) == 6
    (folder / "c.ql4bim").write_text(TOUCHING.replace("house.ifc", "somewhere.ifc"))
    assert rows("run", "c.ql4bim", "--model", "house.ifc") == rows("run", "touching.ql4bim")


def test_a_script_on_tables(folder):
    rows("load", "house.ifc", "-d", "site.duckdb")
    (folder / "a.ql4bim").write_text('m = ImportModel("elements")\nd = TypeFilter(m is IfcDoor)')
    assert len(rows("run", "a.ql4bim", "-d", "site.duckdb")) == 6


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_the_result_is_written(folder, ending):
    target = folder / f"t.{ending}"
    (row,) = rows("run", "touching.ql4bim", "-o", target)
    with spatialq.connect() as con:
        found = con.sql(f"SELECT slab, wall FROM '{target}'").fetchall()
    assert row == {"output": str(target), "rows": len(found)}
    assert sorted(found) == expected("SELECT a, b FROM touches('slabs', 'walls')")


@pytest.mark.slow
def test_a_set_is_written_as_a_model(folder):
    target = folder / "walls.ifc"
    (row,) = rows("run", "touching.ql4bim", "--variable", "w", "-o", target)
    assert row == {"output": str(target), "rows": 15}
    assert len(ifcopenshell.open(target).by_type("IfcWall")) == 15


@pytest.mark.slow
def test_a_script_that_writes_says_what(folder):
    (folder / "a.ql4bim").write_text(f'{TOUCHING}e = ExportModel(w, "walls.ifc")')
    assert rows("run", "a.ql4bim") == [{"output": "walls.ifc"}]
    assert (folder / "walls.ifc").exists()
    assert len(rows("run", "a.ql4bim", "--variable", "s")) == len(expected("FROM slabs"))


def test_a_script_from_standard_input(folder):
    result = spatialq_process("run", "-", "--json", input=TOUCHING, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert values(json.loads(result.stdout)) == values(rows("run", "touching.ql4bim"))
    wrong = spatialq_process("run", "-", input="w = TypeFilter(m is", cwd=folder)
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("error: <stdin>:1:")


@pytest.mark.parametrize(
    ("script", "options", "message"),
    [
        ("w = TypeFilter(m is IfcWal)", ["--model", "m=house.ifc"], "a.ql4bim:1:21: TypeFilter: "),
        ("w = TypeFilter(", [], "a.ql4bim:1:"),
        ("", [], "a.ql4bim:1:1: the script has no statement"),
        (TOUCHING, ["--variable", "x"], "a.ql4bim:1:1: the script has no variable 'x'; there is"),
        (TOUCHING, ["--model", "none.ifc"], "read_ifc: 'none.ifc': there is no such file"),
        (TOUCHING, ["--model", "a=b", "--model", "c"], "run: model must be one file, or"),
        (TOUCHING, ["--model", "a=b", "--model", "a=c"], "run: model must be one file, or"),
        (TOUCHING, ["-d", "none.duckdb"], "run: 'none.duckdb': there is no such database"),
        (TOUCHING, ["-o", "t.xyz"], "output: 't.xyz' must end in one of"),
        (TOUCHING, ["-o", "no/t.csv"], "output: 'no/t.csv': there is no folder"),
        (None, [], "run_script: 'a.ql4bim': "),
    ],
)  # fmt: skip
def test_errors(folder, script, options, message):
    if script is not None:
        (folder / "a.ql4bim").write_text(script)
    result = spatialq_command("run", "a.ql4bim", *options)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {message}")
    assert "Traceback" not in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_ends_a_query_at_once(tmp_path):
    endless = "SELECT count(*) FROM range(1_000_000_000_000) AS r(i) WHERE i % 7 = 8"
    for k in range(3):
        begun = tmp_path / f"begun{k}.csv"
        query = f"COPY (SELECT 1) TO '{begun}'; {endless}"
        command = [sys.executable, "-m", "spatialq", "sql", query]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            while not begun.exists() and process.poll() is None:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            errors = process.communicate(timeout=60)[1]
        assert (process.returncode, errors) == (130, "interrupted: nothing was half written\n")


def test_to_write_sql_imports_neither_tables_nor_compilers(tmp_path):
    script = tmp_path / "a.ql4bim"
    script.write_text('m = ImportModel("a.ifc")\nw = TypeFilter(m is IfcWall)')
    code = (
        "import sys\n"
        f"sys.argv = ['spatialq', 'run', {str(script)!r}, '--sql']\n"
        "from spatialq.cli.main import main\n"
        "main()\n"
        "print(sorted({'pandas', 'pyarrow.dataset', 'numba'} & set(sys.modules)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_a_model_in_place_of_a_script(tmp_path):
    (tmp_path / "house.ifc").write_text("ISO-10303-21;\nHEADER;\n")
    run = spatialq_command("run", "house.ifc", cwd=tmp_path)
    assert run.returncode == 1
    assert "'house.ifc': this is a building model, no script" in run.stderr
