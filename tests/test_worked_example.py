"""The worked example of CONTRIBUTING.md: a folder is found, and all else is derived from it."""

import sys
from pathlib import Path

import numpy as np
import pytest
import spatialq.udfs

import spatialq
from spatialq import cluster
from spatialq.cluster.methods import methods
from spatialq.database.sql_functions import sql_functions
from spatialq.errors import FileWarning
from spatialq.functions.catalogue import catalogue, divisible, folders
from spatialq.functions.generator import macros_of, parameter_table
from spatialq.functions.help import describe
from spatialq.functions.macros import description, render
from spatialq.functions.stubs import stubs

from .test_load import write_las

ROOT = Path(__file__).parents[1]
Z = np.array([1.0, 5.0, 7.0, 7.5, -2.0])
POINTS = {"x": Z, "y": Z, "z": Z, "point_id": np.arange(5)}


@pytest.fixture
def example(monkeypatch):
    """The catalogue with one folder more."""
    monkeypatch.setattr(
        spatialq.udfs, "__path__", [*spatialq.udfs.__path__, str(ROOT / "examples/functions")]
    )
    forget()
    yield catalogue()["count_above"]
    for name in [each for each in sys.modules if each.startswith("spatialq.udfs.count_above")]:
        del sys.modules[name]
    forget()


def forget():
    for cached in (folders, catalogue, divisible, sql_functions, methods):
        cached.cache_clear()


def test_in_sql(example):
    with spatialq.connect() as con:
        for macro in macros_of("count_above"):
            con.execute(render(macro))
        con.execute("CREATE TABLE pts AS SELECT range AS point_id, 0 AS x, 0 AS y, range AS z "
                    "FROM range(100)")  # fmt: skip
        assert con.sql("FROM count_above('pts', height := 90)").fetchall() == [(9,)]
        groups = con.sql(
            "SELECT point_id % 2, unnest(count_above_list(point_id, x, y, "
            "z, height := 50), max_depth := 2) FROM pts GROUP BY 1 ORDER BY 1"
        ).fetchall()
        assert groups == [(0, 24), (1, 25)]
        with pytest.raises(Exception, match="count_above: height must be a finite number, got nan"):
            con.sql("FROM count_above('pts', height := 'nan'::DOUBLE)").fetchall()


def test_in_python_and_its_help(example):
    assert spatialq.run("count_above", Z, Z, Z, height=5)["n"].tolist() == [2]
    assert "height : float\n    Points count that are higher. (units of z)" in describe(
        "count_above"
    )
    assert 'function: Literal["count_above"]' in stubs()["spatialq/__init__.pyi"]
    macro, *_ = macros_of("count_above")
    table = parameter_table(macro)
    assert "| `height` | number | `0.0` | Points count that are higher. (units of z) |" in table


def test_on_the_gpu(example, device):
    found = example.kernel("gpu")(**POINTS, options=example.choose({"height": 5}))
    assert found["n"].tolist() == [2]


def test_as_a_job(example, tmp_path):
    for k in range(3):
        write_las(tmp_path / f"{k}.las", 1000, first=90.0 * k)
    given = {"tile_size": 40.0, "executor": "serial", "height": 5}
    made = cluster.run("count_above", tmp_path / "*.las", tmp_path / "out", **given)
    with spatialq.connect() as con:
        query = f"SELECT count(*) FROM read_las('{tmp_path}/*.las') WHERE z > 5"
        ((expected,),) = con.sql(query).fetchall()
        assert cluster.table(con, tmp_path / "out").fetchall() == [(expected,)]
    assert 0 < expected < 3000
    nowhere = given | {"bounds": (-9.0, -9.0, -8.0, -8.0)}
    with pytest.warns(FileWarning, match="no point is within the bounds"):
        cluster.run("count_above", tmp_path / "*.las", tmp_path / "none", **nowhere)
    with spatialq.connect() as con:
        assert cluster.table(con, tmp_path / "none").fetchall() == [(0,)]
    assert (made["points"], made["rows"], made["parts"]) == (3000, 1, 1)


def test_it_is_a_folder_like_the_others():
    files = {
        path.name for path in (ROOT / "examples/functions/count_above").iterdir() if path.is_file()
    }
    assert files == {"__init__.py", "cpu.py", "gpu.py", "kernels.cu", "stages.py"}


def test_ranges_are_written_with_spaces():
    """In comments, tables and help alike: units and limits, and NULL where it is allowed."""
    described = {each.name: description(each) for each in catalogue()["detect_planes"].parameters}
    assert described["phi_num"].endswith("(>= 4 and <= 180)")
    assert described["rho_num"].endswith("(>= 10 and <= 10000, or NULL)")
    assert described["orientation_tolerance"].endswith("(degrees; >= 0 and <= 45)")
