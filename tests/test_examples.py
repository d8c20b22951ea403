"""The examples run, on what they make and on what they are given."""

import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from PIL import Image

from .conftest import real_file

pytestmark = pytest.mark.slow  # as a whole

PLANETS = Path(__file__).parents[1] / "examples/planets.py"


def run(*arguments):
    command = [sys.executable, PLANETS, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def kappas(text):
    """By method and scales, best first; those of the table."""
    rows = re.findall(r"^(\w+), (\w+) scales +(-?[\d.]+) ± ", text, re.MULTILINE)
    return {(method, scales): float(kappa) for method, scales, kappa in rows}


@pytest.mark.slow
def test_planets_tells_made_terrain_apart(tmp_path):
    result = run("--folder", tmp_path, "--made", 3, "--cells", 138, "--repeats", 1)
    assert result.returncode == 0, result.stderr
    found = kappas(result.stdout)
    assert len(found) == 2 * 3
    assert found["pca", "small"] > 0.6
    assert all(-1 <= kappa <= 1 for kappa in found.values())
    features = tmp_path / "features.parquet"
    ((grids, examples, methods, scales),) = duckdb.sql(
        "SELECT count(DISTINCT grid), count(DISTINCT (grid, example_id)), count(DISTINCT method), "
        f"count(DISTINCT scale) FROM '{features}'"
    ).fetchall()
    assert (grids, examples, methods, scales) == (6, 6 * 4 * 4, 2, 9)
    with Image.open(tmp_path / "planets.png") as picture:
        assert picture.width == 1200


@pytest.mark.slow
def test_planets_takes_grids(tmp_path):
    """Of one grid a class, examples are left out instead of grids."""
    volcano, ranges = (
        real_file("data/dem/SainteHelens.dem"),
        real_file("data/dem/bigtujunga_srtm30m.tif"),
    )
    grids = ("--grid", f"volcano={volcano}", "--grid", f"ranges={ranges}")
    result = run(*grids, "--folder", tmp_path, "--repeats", 1)
    assert (result.returncode, result.stderr) == (0, "")
    assert "training and test share grids" in result.stdout
    assert len(kappas(result.stdout)) == 2 * 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--grid", "mars=no/*.tif"],
            "--grid must be CLASS=PATTERN with files that exist, got 'ma",
        ),
        (["--grid", f"code={PLANETS}"], "--grid must be given for two classes or more"),
        (
            ["--grid", f"code={PLANETS}", "--grid", f"more={PLANETS}"],
            f"planets: '{PLANETS}' cannot be taken: pops_features: '{PLANETS}': is no grid",
        ),
    ],
)
def test_planets_refuses_what_is_no_study(tmp_path, arguments, sentence):
    result = run(*arguments, "--folder", tmp_path)
    assert result.returncode != 0
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
