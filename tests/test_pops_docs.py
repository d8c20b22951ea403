"""Every query and function that the pages of features show runs on a small grid."""

import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import rasterio
from spatialq.udfs.pops_features import Options

import spatialq
from spatialq.cli import main as cli
from spatialq.database.connection import macros
from spatialq.export.raster import Raster, write_terrain

ROOT = Path(__file__).parents[1]
PAGES = ("pops_features", "pops_patches")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """dem.tif: 2 x 1 examples of 2 km, cells of 60 m; tiles/ with it twice."""
    folder = tmp_path_factory.mktemp("docs")
    y, x = np.mgrid[0:35, 0:70]
    z = 900 + 80 * np.sin(x / 5) * np.cos(y / 6) + np.random.default_rng(2).normal(0, 2, x.shape)
    (folder / "tiles").mkdir()
    for name in ("dem.tif", "tiles/a.tif", "tiles/b.tif"):
        write_terrain(folder / name, Raster(z, 0.0, 2100.0, 60.0, "EPSG:32633"))
    return folder


@pytest.fixture
def con(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with spatialq.connect() as con:
        con.execute("CREATE TABLE cells AS FROM read_grid('dem.tif')")
        rng = np.random.default_rng(3)
        x, y = rng.uniform(0, 110, (2, 30_000))
        points = {"point_id": np.arange(x.size), "x": x, "y": y, "z": 5 * np.sin(x / 9)}
        con.register("points", pa.table(points))
        yield con


def code(page, language):
    text = (ROOT / f"docs/{page}.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_queries_of_a_page(con, page):
    for statement in con.extract_statements("".join(code(page, "sql"))):
        assert con.execute(statement.query).fetchall(), statement.query


def test_the_queries_of_the_readme(con):
    blocks = re.findall(r"```sql\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    queries = [text for text in blocks if "pops_" in text]
    assert queries
    for query in queries:
        assert con.execute(query).fetchall(), query


@pytest.mark.parametrize("page", ["pops_features", "cli"])
def test_the_commands_of_features(folder, monkeypatch, page):
    monkeypatch.chdir(folder)
    lines = [line for line in "".join(code(page, "sh")).splitlines() if "features dem.tif" in line]
    assert len(lines) == 2
    for line in lines:
        monkeypatch.setattr("sys.argv", shlex.split(line))
        cli.main()
    if page == "pops_features":
        with rasterio.open("pca2.tif") as raster:
            assert (raster.shape, raster.crs.to_epsg()) == ((1, 2), 32633)
            assert raster.descriptions == ("pca2 300 mean",)


def test_the_centres_of_patches(con):
    """Where z is x, its mean over a patch is the patch's centre."""
    _, x = np.mgrid[0:35, 0:70]
    write_terrain(Path("slope.tif"), Raster(30.0 + 60 * x, 0.0, 2100.0, 60.0, "EPSG:32633"))
    (query,) = (each for each in code("pops_patches", "sql") if "WITH sizes" in each)
    for old, new in (("dem", "slope"), ("'pca']", "'stat']"), ("'pca1'", "'mean'")):
        query = query.replace(old, new)
    rows = con.execute(query).fetchnumpy()
    assert rows["x"].size == 2 * 15 * 15
    np.testing.assert_array_equal(rows["x"], rows["value"])


def test_the_method_of_ones_own(con):
    slope, _ = code("pops_method", "python")
    definition, call = slope.split("\n\n\ncon = spatialq.connect()\n")
    names = {"con": con}
    exec(definition, names)
    found = eval(call, names).fetchall()
    assert len(found) == 2 * 3  # examples, scales
    assert all(mean > 0 for _, _, _, _, _, _, mean, *_ in found)


def test_every_argument_and_column_is_on_the_page(con):
    text = (ROOT / "docs/pops_features.md").read_text()
    for name in (*Options.__dataclass_fields__, "nodata", "band", "device"):
        assert f"`{name}`" in text, name
    for page in PAGES:
        text = (ROOT / f"docs/{page}.md").read_text()
        for name in con.sql(f"FROM {page}('dem.tif')").columns:
            assert re.search(rf"`[^`]*\b{name}\b[^`]*`", text), name


@pytest.mark.parametrize("name", PAGES)
def test_a_macro_has_the_arguments_of_the_options(name):
    (macro,) = (macro for macro in macros() if macro.name == name)
    named = re.findall(r"(\w+) := ", macro.statement.split(") AS ")[0])
    assert named == [*Options.__dataclass_fields__, "nodata", "band", "device"]


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_the_macros(con, name):
    examples = [
        example
        for macro in macros()
        if macro.name == name
        for example in re.findall("example: (.*)", macro.comment)
    ]
    assert examples
    for example in examples:
        assert con.execute(example).fetchall(), example
