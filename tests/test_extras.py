"""Without the packages of the extras all else works, and one sentence says what to install."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import spatialq
from spatialq.database.native import library, loading
from spatialq.database.writers import writers
from spatialq.io.formats import readers
from spatialq.io.ifc.disk_cache import OFF
from spatialq.runtime.extras import EXTRAS

from .samples import SAMPLES, sample

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = [package for _, *packages in EXTRAS.values() for package in packages]
OTHERS = ["cupy", "geopandas", "numba_cuda", "pandas", "polars", "scipy", "shapely", "sklearn"]
"""What is in the environment of the tests, but no dependency."""
SQL = {
    "ifc": [
        "FROM read_ifc('{IFC}')",
        "FROM '{IFC}'",
        "FROM read_ifc_objects('{IFC}')",
        "FROM objects_where('IfcWall', objects := 't_las')",
        "FROM ql4bim('m = ImportModel(\"{IFC}\")')",
        "FROM write_tiles('{IFC}', '{folder}/tileset.json')",
        "FROM write_bcf('pairs', '{folder}/sql.bcf', models := '{IFC}')",
        "FROM check_ids_files('{IFC}', '{folder}/rules.ids')",
    ],
    "raster": [
        "FROM read_grid('{Raster}')",
        "FROM pops_features('{Raster}', example_scale := 2, scales := [2.0])",
        "FROM write_ground('{LAS}', ['{folder}/terrain.tif'])",
    ],
    "vector": ["FROM read_vector('{folder}/plots.geojson')"],
    "e57": ["FROM read_points('{E57}')", "FROM detect_planes('{E57}')"],
    "s3": ["FROM read_las('s3://bucket/a.laz')", "FROM owm_ground('s3://bucket/a.laz')"],
    "volume": ["FROM intersects_with('t_las', volume := true)"],
    "ray": ["FROM cluster_run('owm_ground', '{LAS}', '{folder}/job', executor := 'ray')"],
    "": [
        "FROM owm_ground('t_las')",
        "FROM pops_features('grid', example_scale := 2, scales := [2.0])",
        "SELECT is_a('IfcWallStandardCase', 'IfcWall')",
        "FROM read_bcf('{BCF}')",
        "FROM ids_specifications('{folder}/rules.ids')",
        "FROM '{BCF}'",
        "FROM write_ground('{LAS}', ['{folder}/ground.laz'])",
        "FROM cluster_run('owm_ground', '{LAS}', '{folder}/serial', executor := 'serial')",
    ],
}
"""Queries by the extra that they need."""
CLI = {
    "ifc": [
        "info {IFC}",
        "clash {IFC}",
        "clash {IFC} -o {folder}/a.bcf",
        "check {IFC} {folder}/rules.ids",
        "render {IFC} -o {folder}/a.png",
        "tiles {IFC} -o {folder}/tileset.json",
        "sql \"FROM '{IFC}'\"",
        "load {IFC} --database {folder}/a.duckdb",
        "demo --folder {folder}/demo",
    ],
    "raster": [
        "info {Raster}",
        "features {Raster} --scales 2u --example-scale 4u",
        "ground {LAS} -o {folder}/terrain.tif",
        "sql \"FROM '{folder}/a.npy'\" -o {folder}/grid.tif",
        "ground {LAS} -o {folder}/parts/ --executor serial --part-format tif",
    ],
    "vector": ["sql 'SELECT 1 AS x, 2 AS y' -o {folder}/a.gpkg", "planes {LAS} -o {folder}/a.fgb"],
    "xlsx": ["sql 'SELECT 1 AS a' -o {folder}/a.xlsx", "planes {LAS} -o {folder}/a.xlsx"],
    "view": ["view {LAS}"],
    "mcp": ["mcp {LAS}"],
    "volume": ["clash {IFC} --volume"],
    "e57": [
        "info {E57}",
        "sql \"SELECT x, y, z FROM '{LAS}'\" -o {folder}/a.e57",
        "planes {E57}",
    ],
    "s3": [
        "info s3://bucket/a.laz",
        "ground s3://bucket/a.laz -o {folder}/ground.laz",
        "seeds {LAS} -o s3://bucket/seeds",
    ],
    "ray": ["seeds {LAS} -o {folder}/seeds --executor ray"],
    "": [
        "--help",
        "ground --help",
        "formats",
        "devices",
        "jobs {folder}",
        "info {LAS} {PLY} {BCF}",
        "render {LAS} -o {folder}/a.png",
        "sql \"SELECT count(*) FROM owm_ground('{LAS}')\"",
        "sql \"FROM '{LAS}' LIMIT 9\" -o {folder}/a.laz",
        "sql 'SELECT 1 AS a' -o {folder}/a.parquet",
        "seeds {LAS} -o {folder}/seeds --executor serial",
    ],
}
"""Commands by the extra that they need."""
RULES = """<ids xmlns="http://standards.buildingsmart.org/IDS"><info><title>Rules</title></info>
<specifications><specification name="Piles" ifcVersion="IFC4">
<applicability minOccurs="0" maxOccurs="unbounded">
<entity><name><simpleValue>IFCPILE</simpleValue></name></entity></applicability>
</specification></specifications></ids>"""
USE = """
import contextlib, io, json, shlex, sys, warnings
warnings.simplefilter("ignore")
hidden, sql, commands, samples, folder = json.loads(sys.argv[1])

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        absent = name.partition(".")[0] in hidden
        return None if absent else self.finder.find_spec(name, path, target)

    def find_distributions(self, context):
        find = getattr(self.finder, "find_distributions", lambda context: ())
        named = lambda each: each.name.replace("-", "_").lower()
        return (each for each in find(context) if named(each) not in hidden)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
import numpy as np
import spatialq, spatialq.cluster
from spatialq.cli import main as cli
from spatialq.database.writers import writers

said = {}

def attempt(name, call):
    try:
        call()
        said[name] = ""
    except Exception as error:
        said[name] = str(error)

def command(name, words):
    sys.argv = ["spatialq", *words]
    told = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
        try:
            cli.main()
            failed = False
        except SystemExit as stop:
            failed = bool(stop.code)
    said[name] = told.getvalue().strip().rpartition("\\n")[2] if failed else ""

con = spatialq.connect()
for name, path in samples.items():
    if name != "BCF":  # is read where it is
        attempt(f"read {name}", lambda: spatialq.load(con, path, "t_" + name.lower()))
attempt("read S3", lambda: spatialq.load(con, "s3://bucket/a.laz", "t"))
np.save(f"{folder}/a.npy", np.add.outer(np.arange(5.0), np.arange(6.0)))
attempt("read NumPy", lambda: spatialq.load(con, f"{folder}/a.npy", "grid"))
rows = {
    "points": "FROM t_las LIMIT 10", "cells": "SELECT x, y, z FROM grid",
    "geometries": "SELECT x, y FROM grid", "rows": "SELECT 1 AS a",
}
for writer in writers():
    if writer.takes in rows and writer.suffixes[0].startswith("."):
        path = f"{folder}/out{writer.suffixes[0]}"
        attempt(f"write {writer.name}", lambda: spatialq.write(con.sql(rows[writer.takes]), path))
con.execute("CREATE TABLE pairs AS SELECT 'x' AS a, 'y' AS b")
attempt("export_ifc", lambda: spatialq.export_ifc(
    con, "SELECT 'x' AS global_id, '%s' AS file_name" % samples["IFC"], f"{folder}/part.ifc"))
attempt("builder", lambda: spatialq.read_ifc(con, samples["IFC"]).count())
from spatialq.serve.notebook import View
attempt("notebook", lambda: View.widget.fget(None))
attempt("ray", lambda: spatialq.cluster.run(
    "owm_ground", samples["LAS"], f"{folder}/job", executor="ray"))
for query in sql:
    attempt(query, lambda: con.execute(query).fetchall())
for text in commands:
    command(text, shlex.split(text))
print(json.dumps(said))
"""


def placed(uses, places):
    """What to do, by the extra that it needs, with the files that it is done to."""
    return {text.format(**places): extra for extra, each in uses.items() for text in each}


@pytest.fixture(scope="module")
def uses(tmp_path_factory):
    """What was done in a process without the optional packages: the extra that it needs, or "",
    and what was said; nothing where it worked.
    """
    folder = tmp_path_factory.mktemp("extras")
    samples = {name: str(sample(name, folder)) for name in SAMPLES}
    (folder / "rules.ids").write_text(RULES)
    (folder / "plots.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    places = samples | {"folder": str(folder)}
    sql, commands = placed(SQL, places), placed(CLI, places)
    given = json.dumps([PACKAGES + OTHERS, list(sql), list(commands), samples, str(folder)])
    command = [sys.executable, "-c", USE, given]
    here = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    here.pop(OFF, None)
    done = subprocess.run(
        command, env=here, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])  # DuckDB may have shown its progress
    need = {
        "read S3": "s3",
        "export_ifc": "ifc",
        "builder": "ifc",
        "ray": "ray",
        "notebook": "notebook",
    }
    need |= {f"read {each.name}": each.extra for each in readers()}
    need |= {f"write {each.name}": each.extra for each in writers()}
    need |= sql | commands
    return {use: (need.get(use, ""), sentence) for use, sentence in said.items()}


def test_what_needs_an_extra_says_the_command(uses):
    """In one sentence, from Python, in SQL, and on the command line."""
    for use, (extra, sentence) in uses.items():
        if extra:
            needs, package, *_ = EXTRAS[extra]
            end = f": {needs} {package}: pip install 'spatialq[{extra}]'"
            # of an error in SQL the rest shows the place in the query
            assert sentence.partition("\n")[0].endswith(end), f"{use}: {sentence}"


def test_everything_else_works(uses):
    assert {use: said for use, (extra, said) in uses.items() if said and not extra} == {}
    assert set(EXTRAS) == {extra for extra, _ in uses.values() if extra}


def test_the_extras_are_those_of_the_project():
    declared = PROJECT["optional-dependencies"]
    for extra, (_, *packages) in EXTRAS.items():
        named = {re.match(r"[\w-]+", each)[0].replace("-", "_").lower() for each in declared[extra]}
        assert named == set(packages)
    in_all = {
        name for each in declared["all"] for name in re.search(r"\[(.*)\]", each)[1].split(",")
    }
    assert in_all == set(EXTRAS)


def test_nothing_optional_is_imported_before_it_is_used(tmp_path):
    code = f"""
import sys, spatialq, spatialq.cluster
con = spatialq.connect()
spatialq.load(con, {str(sample("LAS", tmp_path))!r}, "points")
con.execute("FROM owm_ground('points')").fetchall()
sys.exit(", ".join({ {*PACKAGES, "PIL", "prompt_toolkit", "cupy"} } & set(sys.modules)) or None)
"""
    here = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=here, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_no_compiled_function_uses_what_numba_takes_from_scipy():
    """Numba compiles `@`, `np.dot` and `np.linalg` with scipy, which is no dependency."""
    found = []
    for path in [*(ROOT / "udfs").rglob("*.py"), *(ROOT / "spatialq").rglob("*.py")]:
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and "njit" in "".join(
                map(ast.unparse, function.decorator_list)
            ):
                found += [
                    f"{path.relative_to(ROOT)}:{node.lineno}"
                    for node in ast.walk(function)
                    if (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
                    or (isinstance(node, ast.Attribute) and node.attr in ("dot", "vdot", "linalg"))
                ]
    assert not found


def test_another_duckdb_gets_lists_and_a_sentence(monkeypatch):
    """The functions of the C interface are called by position: one is known for a version only."""
    monkeypatch.setattr(loading.duckdb, "__version__", "2.1.0")
    assert loading.problem() == "it needs DuckDB 2.0, and this is 2.1.0"
    with spatialq.connect() as con:
        assert not loading.is_loaded(con)
        query = "SELECT problem FROM spatialq_devices() WHERE device = 'extension'"
        ((said,),) = con.sql(query).fetchall()
        assert said.startswith(f"{loading.problem()}; rows go as lists")
    (required,) = [each for each in PROJECT["dependencies"] if each.startswith("duckdb")]
    major, minor = map(int, loading.DUCKDB.split("."))
    assert required == f"duckdb>={major}.{minor},<{major}.{minor + 1}"


def test_an_extension_of_older_sources_gets_lists_and_a_sentence(monkeypatch):
    """As in a checkout that was updated, but not installed again."""
    monkeypatch.setattr(library, "SIGNATURES", {"newer": (None, ())})
    monkeypatch.setattr(loading, "library", library.library.__wrapped__)
    assert loading.problem().endswith(
        "has no spatialq_newer: pip install builds it from these sources"
    )
    with spatialq.connect() as con:
        assert not loading.is_loaded(con)
