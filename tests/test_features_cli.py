"""From a grid to its features: the command and the Python call."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import duckdb
import geopandas
import numpy as np
import pytest
import rasterio
from PIL import Image
from spatialq.udfs.pops_features import Options
from spatialq.udfs.pops_features.methods import USER_METHODS

import spatialq
from spatialq.cli import main as cli
from spatialq.errors import CrsError, CrsWarning
from spatialq.execution import call
from spatialq.export.raster import Raster, write_terrain
from spatialq.planner import log
from spatialq.runtime import budget
from spatialq.workflows.feature_choice import choose_features, default_features, label_features

from .conftest import real_file

pytestmark = pytest.mark.slow  # as a whole

SMALL = {"scales": (4.0, 6.0), "example_scale": 20.0}
FLAGS = ("--scales", "4m,6m", "--example-scale", "20m")


def write_grid(path, *, crs="EPSG:25832", rows=45, columns=70):
    """Hills on cells of 2 x 2: 7 by 4 examples of 20 x 20, and a rest."""
    y, x = np.mgrid[0:rows, 0:columns].astype(float)
    rng = np.random.default_rng(4)
    z = 20 * np.sin(x / 9) * np.cos(y / 7) + rng.normal(0, 0.3, x.shape)
    z[3:9, 5:9] = np.nan
    west, north = (500000.0, 5600000.0) if crs != "EPSG:4326" else (10.0, 50.0)
    write_terrain(path, Raster(z, west, north, 2.0, crs))
    return path


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Call the command from the folder of the test, in this process."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["spatialq", "features", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        return subprocess.CompletedProcess(sys.argv, code, *capsys.readouterr())

    yield call
    USER_METHODS.clear()  # methods of the user's last as long as the process


def test_one_command_gives_tables_and_a_picture(tmp_path):
    """In a process of its own, as users call it."""
    source = write_grid(tmp_path / "a.tif")
    targets = [tmp_path / name for name in ("f.parquet", "f.csv", "f.json", "f.png")]
    command = [sys.executable, "-m", "spatialq", "features", source, *FLAGS, "--json"]
    command += [f"-o{each}" for each in targets]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (done,) = json.loads(result.stdout, parse_constant=pytest.fail)
    assert done["outputs"] == list(map(str, targets))
    assert (done["cells"], done["examples"], done["device"]) == (45 * 70, 28, "cpu")
    assert done["rows"] == 28 * 2 * 11
    assert len(done["features"]) == 2 * 11
    with spatialq.connect() as con:
        in_sql = f"pops_features('{source}', scales := [4, 6], example_scale := 20)"
        columns = "example_id, x, y, method, scale, feature, patches, round(kurtosis, 6)"
        expected = con.sql(f"SELECT {columns} FROM {in_sql}").fetchall()
        for target in targets[:3]:
            assert con.sql(f"SELECT {columns} FROM '{target}'").fetchall() == expected, target
        pca2 = [each for each in done["features"] if each["feature"] == "pca2"]
        assert [each["scale"] for each in pca2] == [4.0, 6.0]
        (lowest, middle, highest) = con.sql(
            f"SELECT min(mean), median(mean), max(mean) FROM {in_sql} "
            "WHERE feature = 'pca2' AND scale = 6"
        ).fetchall()[0]
        assert pca2[1] == {
            "method": "pca", "scale": 6.0, "feature": "pca2", "examples": 28, "lowest": lowest,
            "middle": middle, "highest": highest,
        }  # fmt: skip
    with Image.open(targets[3]) as picture:
        assert picture.width == 1600
        assert len(picture.convert("P", palette=Image.Palette.ADAPTIVE).getcolors()) > 50


@pytest.mark.parametrize("name", ["f.parquet", "f.gpkg", "f.fgb"])
def test_features_have_the_rectangles_of_their_examples(tmp_path, name):
    """10 by 10 cells of 2 x 2, from the south-western corner."""
    source = write_grid(tmp_path / "a.tif")
    spatialq.write_features(source, tmp_path / name, **SMALL)
    read = geopandas.read_parquet if name.endswith("parquet") else geopandas.read_file
    frame = read(tmp_path / name)
    assert frame.crs == "EPSG:25832"
    boxes = frame.bounds
    assert (boxes["maxx"] - boxes["minx"] == 20).all()
    assert (boxes["maxy"] - boxes["miny"] == 20).all()
    assert ((boxes["minx"] + boxes["maxx"]) / 2 == frame["x"]).all()
    assert ((boxes["miny"] + boxes["maxy"]) / 2 == frame["y"]).all()
    assert frame.drop_duplicates("example_id").union_all().area == 28 * 400
    assert frame.total_bounds.tolist() == [500000, 5600000 - 90, 500140, 5600000 - 10]


def test_features_of_grids_of_two_systems_are_no_layer(tmp_path):
    sources = [write_grid(tmp_path / f"{code}.tif", crs=f"EPSG:{code}") for code in (25832, 25833)]
    with pytest.raises(CrsError, match=r"25832\.tif' is in .* but '.*25833\.tif' is in"):
        spatialq.write_features(sources, tmp_path / "f.gpkg", **SMALL)
    assert not (tmp_path / "f.gpkg").exists()


def test_without_outputs_it_prints_the_features(command, tmp_path):
    source = write_grid(tmp_path / "a.tif")
    result = command(source, *FLAGS, "--methods", "pca")
    assert result.returncode == 0, result.stderr
    for word in ("pca1", "pca2", "4.0", "6.0", "examples", "lowest", "middle", "highest"):
        assert word in result.stdout
    assert "kurtosis" not in result.stdout
    assert list(tmp_path.iterdir()) == [source]


def test_with_outputs_it_says_what_it_did(command, tmp_path):
    write_grid(tmp_path / "a.tif")
    result = command("a.tif", "-o", "f.csv", *FLAGS)
    assert result.returncode == 0, result.stderr
    for word in ("cells", "examples", "device", "f.csv"):
        assert word in result.stdout


def test_the_picture_shows_the_features_that_are_named(tmp_path):
    source = write_grid(tmp_path / "a.tif")
    heights = []
    for show in (["q1"], ["q1", "median", "q3", "max"], []):
        spatialq.write_features(source, tmp_path / "f.png", show=show, **SMALL)
        with Image.open(tmp_path / "f.png") as picture:
            heights.append(picture.height)
    assert heights[0] < heights[1] == heights[2]


def test_a_raster_has_a_cell_an_example(tmp_path):
    source = write_grid(tmp_path / "a.tif")
    options = {**SMALL, "example_step": 16.0, "methods": ("pca", "stat", "stat_centred")}
    targets = [tmp_path / "all.tif", tmp_path / "f.parquet"]
    spatialq.write_features(source, targets, **options)
    with rasterio.open(targets[0]) as file:
        assert (file.crs.to_epsg(), file.nodata) == (25832, -9999)
        assert file.res == (16.0, 16.0)
        assert file.count == 2 * (2 + 9 + 8)
        bands = dict(zip(file.descriptions, file.read(masked=True), strict=True))
        assert list(bands)[:3] == ["pca1 4 mean", "pca1 6 mean", "pca2 4 mean"]
        with spatialq.connect() as con:
            rows = con.sql(
                "SELECT method, feature, scale, list(x), list(y), list(mean) "
                f"FROM '{targets[1]}' GROUP BY ALL"
            ).fetchall()
        assert len(rows) == len(bands)
        for method, feature, scale, x, y, means in rows:
            label = feature if f"{feature} 4 mean" in bands else f"{method}.{feature}"
            band = bands[f"{label} {scale:g} mean"]
            cells = [file.index(*centre) for centre in zip(x, y, strict=True)]
            assert len(set(cells)) == band.size
            assert [band[cell] for cell in cells] == means
            assert file.xy(*cells[0]) == (x[0], y[0])


def test_a_raster_of_what_is_asked_for_where_cells_are_no_squares(tmp_path):
    """The hole of the first example has no value; spacings along x and y differ."""
    z = np.random.default_rng(1).random((20, 30)).astype(np.float32)
    z[10:, :10] = np.nan  # in the south-west
    source, target = tmp_path / "a.tif", tmp_path / "f.tiff"
    with rasterio.open(
        source, "w", driver="GTiff", height=20, width=30, count=1,
        dtype=z.dtype, transform=rasterio.Affine(2, 0, 100, 0, -1, 50), crs="EPSG:25832",
    ) as file:  # fmt: skip
        file.write(z, 1)
    show = ["stat.mean", "pca2"]
    options = {"scales": (4.0,), "example_scale": 10.0, "show": show}
    spatialq.write_features(source, target, **options)
    with rasterio.open(target) as file:
        assert file.descriptions == ("mean 4 mean", "pca2 4 mean")
        assert tuple(file.bounds) == (100, 30, 160, 50)
        assert file.shape == (2, 6)
        assert np.argwhere(file.read(1) == -9999).tolist() == [[1, 0], [1, 1]]


def test_several_files_are_a_table(command, tmp_path):
    for name, crs in (("b", "EPSG:25832"), ("a", "EPSG:25833"), ("c", "EPSG:25832")):
        write_grid(tmp_path / f"{name}.tif", crs=crs)
    result = command("b.tif", "[ac].tif", "-o", "f.parquet", *FLAGS, "--json")
    assert result.returncode == 0, result.stderr
    (done,) = json.loads(result.stdout)
    assert (done["cells"], done["examples"]) == (3 * 45 * 70, 3 * 28)
    assert {each["examples"] for each in done["features"]} == {3 * 28}
    found = duckdb.sql(f"SELECT file_name FROM '{tmp_path / 'f.parquet'}'").fetchall()
    assert [name for (name,) in found] == ["b.tif"] * 616 + ["a.tif"] * 616 + ["c.tif"] * 616
    result = command("a.tif", "b.tif", "-o", "f.png", *FLAGS)
    assert (
        result.stderr == "error: features: 'f.png' is for one file, got 2; take a table for them\n"
    )


def test_what_is_shown_of_features_of_a_name():
    options = Options(methods=("pca", "stat", "stat_centred"))
    there = label_features(options)

    def chosen(*names):
        return list(choose_features("features", there, names))

    assert chosen("pca2") == ["pca2"]
    assert chosen("stat.kurtosis", "mean") == ["stat.kurtosis", "mean"]
    assert chosen("kurtosis") == ["stat.kurtosis", "stat_centred.kurtosis"]
    assert list(default_features(there, 4)) == ["pca1", "pca2", "variance", "std"]


def test_progress_is_in_cells(tmp_path, monkeypatch):
    """A band is a row of examples here, and said to be done before the last one is."""
    source = write_grid(tmp_path / "a.tif")
    monkeypatch.setattr("spatialq.data.grid.BAND_CELLS", 1)
    monkeypatch.setattr("spatialq.workflows.features.TICK", 1e-4)
    told = []
    spatialq.write_features(source, progress=lambda *what: told.append(what), **SMALL)
    files, done, cells = zip(*told, strict=True)
    assert (set(files), set(cells)) == ({source}, {45 * 70})
    assert list(done) == sorted(done)
    assert done[-1] == 45 * 70
    assert set(done[:-1]) & {70 * 10 * k for k in (1, 2, 3, 4)}


def test_degrees_are_warned_about(command, tmp_path):
    source = write_grid(tmp_path / "a.tif", crs="EPSG:4326", rows=20, columns=30)
    with pytest.warns(CrsWarning, match=r"WGS 84 \(EPSG:4326\), is not projected: .* in degrees"):
        done = spatialq.write_features(source, **SMALL)
    assert done["examples"] == 6
    in_degrees = [each.replace("m", "u") for each in FLAGS[1::2]]
    said = command(source, FLAGS[0], in_degrees[0], FLAGS[2], in_degrees[1]).stderr
    assert said.count("warning: pops_features: the CRS of '") == 1


def test_a_grid_with_a_hole_of_an_example(tmp_path):
    source = tmp_path / "a.npy"
    z = np.random.default_rng(1).random((20, 30))
    z[:10, :10] = np.nan
    np.save(source, z)
    targets = [tmp_path / "f.csv", tmp_path / "f.png"]
    done = spatialq.write_features(source, targets, scales=(3.0,), example_scale=10.0)
    assert done["examples"] == 6
    assert {each["examples"] for each in done["features"]} == {5}


@pytest.mark.parametrize(
    ("outputs", "options", "sentence"),
    [
        (["f.txt"], {}, "features: output '.*f.txt' must end in one of .parquet, .csv, .json, .x"),
        (["f.csv", "f.csv"], {}, "features: outputs must be different files, got '.*f.csv' twice"),
        (["no/f.csv"], {}, "output: '.*no/f.csv': there is no folder"),
        (["f.csv"], {"scales": (1.0,)}, "pops_features: scales must be from 4, two cells along x"),
        (["f.csv"], {"methods": ("pcb",)}, "pops_features: no method 'pcb'; there is pca, stat,"),
        (
            ["f.csv"],
            {"device": "tpu"},
            "pops_features: device must be 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'",
        ),
        (["f.csv"], {"radius": 1.0}, "pops_features: no option 'radius'; there is"),
        (["f.csv"], {"band": 2}, "features: band must be 1 to 1 for"),
        (["f.png"], {"show": ["pca3"]}, "features: show must be of pca1, pca2, mean, .*got 'pca3'"),
        (["f.png"], {"show": ["q1", "q3", "min", "max", "pca1"]}, "show must be at most 4 feat"),
        (["f.tif"], {"show": ["stat.pca1"]}, "features: show must be of pca1, .* got 'stat.pca1'"),
    ],
)
def test_what_is_wrong_leaves_no_file(tmp_path, outputs, options, sentence):
    path = write_grid(tmp_path / "a.tif")
    with pytest.raises((ValueError, duckdb.Error), match=sentence):
        spatialq.write_features(path, [tmp_path / name for name in outputs], **SMALL | options)
    assert [each.name for each in tmp_path.iterdir()] == ["a.tif"]


def test_a_grid_that_would_be_its_own_output(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(write_grid(tmp_path / "a.tif").read_bytes())
    before = path.read_bytes()
    with pytest.raises(spatialq.FileError, match="output must be another file than the input"):
        spatialq.write_features(path, path)
    assert path.read_bytes() == before


METHOD = """
import spatialq

@spatialq.pops_method("m", features=["height", "last"])
def m(z, dx, dy, out):
    out[0] = z[0, 0]
    out[1] = z[-1, -1]
"""


def test_a_method_of_ones_own(command, tmp_path):
    (tmp_path / "m.py").write_text(METHOD)
    write_grid(tmp_path / "a.tif")
    result = command("a.tif", "--define", "m.py", "--methods", "stat,m", *FLAGS, "--json")
    assert result.returncode == 0, result.stderr
    (row,) = json.loads(result.stdout)
    names = [(each["method"], each["feature"]) for each in row["features"]]
    assert names[-2:] == [("m", "height"), ("m", "last")]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none.tif"], 1, "error: features: 'none.tif': there is no such file"),
        (["house.ifc"], 1, "error: features: 'house.ifc': is no grid"),
        (
            ["a.tif"],
            1,
            "error: pops_features: example_scale must be from 4, two cells along x, ",
        ),
        (["a.tif", "--scales", "4;6"], 1, "error: features: scales must be a length >= 0 such as"),
        (["a.tif", "--steps", "4m", *FLAGS], 1, "error: pops_features: steps must be as many as"),
        (["a.tif", "--quantiles", "x", *FLAGS], 1, "error: pops_features: quantiles must be 'med"),
        (["a.tif", "--define", "none.py"], 2, "error: Invalid value for '--define'"),
        (
            ["a.tif", "--define", "m.py"],
            1,
            "error: features: 'm.py', line 4: pops_method: m must take (z, dx, dy, out), got",
        ),
        (["a.tif", "--band", "x"], 2, "error: Invalid value for '--band'"),
        ([], 2, "error: Missing argument 'grids'"),
    ],
)
def test_errors_are_one_line(command, tmp_path, arguments, code, message):
    (tmp_path / "house.ifc").touch()
    (tmp_path / "m.py").write_text(METHOD.replace("dx, dy, ", ""))
    write_grid(tmp_path / "a.tif")
    result = command(*arguments)
    assert result.returncode == code
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import math\nmath.sqrt(-1)", "line 2: math domain error"),
        ("\n\nx = (1,\n", "line 3: SyntaxError: '(' was never closed"),
        ("def f():\n    return nothing\n\nf()", "line 2: NameError: name 'nothing' is not defined"),
        ("import no_such_module", "line 1: ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_a_file_of_methods_that_does_not_run(tmp_path, text, sentence):
    from spatialq.workflows.features import run_definitions

    path = tmp_path / "m.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(f"features: '{path}', {sentence}")) as error:
        run_definitions(path)
    assert "\n" not in str(error.value)


def test_options_may_be_numpys(tmp_path):
    source = write_grid(tmp_path / "a.tif", rows=20, columns=30)
    given = {"scales": np.array([4.0, 6.0]), "example_scale": np.float32(20), "nodata": np.int16(7)}
    found = spatialq.write_features(source, **given, min_points=np.int64(3), band=np.uint8(1))
    expected = spatialq.write_features(source, **SMALL, nodata=7.0)
    assert found == expected


@pytest.mark.parametrize("memory", ["300MB", 0.5])
def test_the_kernel_has_the_memory_of_the_command(tmp_path, monkeypatch, memory):
    budgets = []

    def noted(*arguments, _run=call._run):
        budgets.append(budget.current())
        return _run(*arguments)

    monkeypatch.setattr(call, "_run", noted)
    source = write_grid(tmp_path / "g.tif")
    spatialq.write_features(source, **SMALL, memory=memory)
    assert set(budgets) == {budget.parse_size(memory)}


def test_the_device_is_that_of_its_own_calls(tmp_path):
    source = write_grid(tmp_path / "a.tif", rows=20, columns=30)
    one = log.Entry(datetime.now(UTC) + timedelta(hours=1), "owm_ground", 1, "gpu", "", 0, 0, None)
    log.add(one)
    assert spatialq.write_features(source, **SMALL)["device"] == "cpu"
    log._entries.remove(one)


@pytest.mark.slow
def test_a_real_grid(tmp_path):
    """St. Helens: the crater and the cone are rougher than the valleys."""
    source = real_file("data/dem/SainteHelens.dem")
    done = spatialq.write_features(source, [tmp_path / "f.parquet", tmp_path / "f.png"])
    assert done["examples"] == (327 * 30 // 2000) * (468 * 30 // 2000)
    with spatialq.connect() as con:
        found = con.sql(
            f"SELECT corr(p.mean, s.mean) FROM '{tmp_path / 'f.parquet'}' AS p "
            f"JOIN '{tmp_path / 'f.parquet'}' AS s USING (example_id, scale) "
            "WHERE p.feature = 'pca2' AND s.feature = 'variance' AND scale = 300"
        ).fetchall()
    assert found[0][0] < -0.5  # the steeper, the more of the variance is of the first component
