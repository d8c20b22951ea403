"""From a file to its ground: the command, the SQL statement, the Python calls."""

import json
import subprocess
import sys
from collections import deque

import laspy
import numpy as np
import pytest
import rasterio
from PIL import Image

import spatialq
from spatialq.functions.catalogue import Function
from spatialq.functions.sql_text import literal
from spatialq.planner import log

from .classify_ground.cases import hill, scene

FEET = 0.3048
NOISE, GROUND = 7, 2


def write_scene(path, *, crs="EPSG:25832", unit=1.0, z_unit=None, classes=None, noise=True):
    """A hill with a house; one low point that is classified as noise, if wanted."""
    points = scene(2, terrain=hill, side=40.0, n=2500, x0=500000.0, y0=5000000.0)
    x, y, z = (np.array([p[k] for p in points]) for k in (1, 2, 3))
    if noise:
        z[3] -= 200
    header = laspy.LasHeader(point_format=7, version="1.4")
    header.scales, header.offsets = [1e-4] * 3, [500000 / unit, 5000000 / unit, 0]
    if crs:
        import pyproj

        header.add_crs(pyproj.CRS(crs))
    cloud = laspy.LasData(header)
    cloud.x, cloud.y, cloud.z = x / unit, y / unit, z / (z_unit or unit)
    cloud.intensity = np.arange(x.size)
    cloud.withheld = np.arange(x.size) % 5 == 0
    cloud.classification = np.full(x.size, 5) if classes is None else classes
    if noise:
        cloud.classification[3] = NOISE
    cloud.write(path)
    return path


def command(*arguments):
    result = subprocess.run(
        [sys.executable, "-m", "spatialq", *map(str, arguments), "--json"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)[0]


def test_one_command_gives_points_terrain_picture_and_table(tmp_path, world):
    targets = [tmp_path / name for name in ("g.laz", "t.tif", "r.png", "p.parquet")]
    done = command(
        "ground", world.las, *(f"-o{target}" for target in targets), "--resolution", "2m"
    )
    before, after = laspy.read(world.las), laspy.read(targets[0])
    assert done["points"] == len(before.points) == len(after.points)
    is_ground = after.classification == GROUND
    assert done["ground_points"] == np.count_nonzero(is_ground)
    for name in before.point_format.dimension_names:
        if name != "classification":
            np.testing.assert_array_equal(after[name], before[name], err_msg=name)
    assert str(after.header.version) == "1.4"
    assert after.header.parse_crs() == before.header.parse_crs()
    with spatialq.connect() as con:
        found = con.sql(f"FROM '{targets[3]}' ORDER BY point_id").fetchnumpy()
    considered = found["point_id"]  # noise does not
    assert considered.size == done["points"] - done["noise_points"]
    assert found["is_ground"].tolist() == is_ground[considered].tolist()
    with rasterio.open(targets[1]) as terrain:
        assert terrain.crs.to_epsg() == before.header.parse_crs().to_epsg()
        assert terrain.res == (2.0, 2.0)
        heights = terrain.read(1, masked=True)
    near = np.abs(np.asarray(before.z)[considered] - found["height"] - np.ma.median(heights))
    assert np.median(near) < 10  # z less height is about where the terrain is
    with Image.open(targets[2]) as picture:
        assert picture.width == 1600
        assert len(picture.getcolors(1 << 24)) > 1000  # shaded, not only grey
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(t.name for t in targets)


def test_classes_of_noise_and_objects(tmp_path):
    rng = np.random.default_rng(1)
    classes = rng.choice([1, 2, 5, 6, 9, 17], 2500)
    source = write_scene(tmp_path / "a.laz", classes=classes)
    done = spatialq.write_ground(source, tmp_path / "g.las")
    before, after = (np.asarray(laspy.read(p).classification) for p in (source, done["outputs"][0]))
    ground = after == GROUND
    assert done["noise_points"] == 1
    assert (before[3], after[3]) == (NOISE, NOISE)
    assert 0.4 < ground.mean() < 0.8
    assert not ground[np.isin(before, (9, 17))].any()  # water and bridge decks stay
    others = ~ground & (before != GROUND)
    assert (after[others] == before[others]).all()
    assert (after[~ground & (before == GROUND)] == 1).all()
    only = spatialq.write_ground(source, tmp_path / "only.laz", ground_only=True)
    kept = laspy.read(only["outputs"][0])
    np.testing.assert_array_equal(kept.intensity, laspy.read(source).intensity[ground])
    assert set(kept.classification) == {GROUND}


@pytest.mark.parametrize("ending", ["tif", "png"])
def test_a_terrain_of_no_points_is_refused(tmp_path, ending):
    source, target = write_scene(tmp_path / "a.laz"), tmp_path / f"t.{ending}"
    with pytest.raises(ValueError, match=r"^ground: a terrain needs points .* none in bounds"):
        spatialq.write_ground(source, target, bounds=[0, 0, 1, 1])
    assert not target.exists()


def test_units_come_from_the_crs(tmp_path):
    metres = write_scene(tmp_path / "m.las")
    # EPSG:2992 is in international feet; the compound one has heights in metres
    feet = write_scene(tmp_path / "f.las", crs="EPSG:2992", unit=FEET)
    mixed = write_scene(tmp_path / "x.las", crs="EPSG:2992+5703", unit=FEET, z_unit=1.0)
    tables = []
    for path in (metres, feet, mixed):
        target = path.with_suffix(".csv")
        spatialq.write_ground(path, target)
        with spatialq.connect() as con:
            tables.append(con.sql(f"FROM '{target}' ORDER BY point_id").fetchnumpy())
    for table, height_unit in zip(tables[1:], (FEET, 1.0), strict=True):
        heights = table["height"] * height_unit
        assert np.quantile(np.abs(heights - tables[0]["height"]), 0.99) < 0.02
        assert (table["is_ground"] == tables[0]["is_ground"]).mean() > 0.995


def test_the_terrain_covers_the_cloud_and_has_the_crs_that_was_given(tmp_path):
    path = write_scene(tmp_path / "a.las", crs=None)
    spatialq.write_ground(path, tmp_path / "t.tif", resolution=1.5, crs="EPSG:25833")
    cloud = laspy.read(path)
    with rasterio.open(tmp_path / "t.tif") as terrain:
        assert terrain.crs.to_epsg() == 25833
        assert terrain.bounds.left == np.floor(cloud.x.min() / 1.5) * 1.5
        assert terrain.bounds.right == np.ceil(cloud.x.max() / 1.5) * 1.5
        assert terrain.bounds.bottom == np.floor(cloud.y.min() / 1.5) * 1.5
        assert terrain.bounds.top == np.ceil(cloud.y.max() / 1.5) * 1.5
        assert (~terrain.read(1, masked=True).mask).mean() > 0.7


def test_the_terrain_has_the_options_of_ground_surface(tmp_path):
    path = write_scene(tmp_path / "a.las")
    heights = []
    for neighbours in (1, 10):
        target = tmp_path / f"{neighbours}.tif"
        options = {"method": "idw", "neighbours": neighbours, "extrapolate": True}
        spatialq.write_ground(path, target, **options)
        with rasterio.open(target) as terrain:
            heights.append(terrain.read(1, masked=True))
    assert not any(each.mask.any() for each in heights)
    assert (heights[0] != heights[1]).mean() > 0.5


def test_degrees_are_refused_before_anything_is_written(tmp_path):
    path = write_scene(tmp_path / "a.las", crs="EPSG:4326")
    sentence = r"the CRS of '.*a.las', WGS 84 .EPSG:4326., is not projected"
    with pytest.raises(spatialq.CrsError, match=sentence):
        spatialq.write_ground(path, tmp_path / "g.las")
    assert [each.name for each in tmp_path.iterdir()] == ["a.las"]


@pytest.mark.parametrize(
    ("outputs", "options", "sentence"),
    [
        ([], {}, "ground: outputs must name a file, got none"),
        (["g.txt"], {}, "ground: output '.*g.txt' must end in one of .las, .laz, .tif"),
        (["t.tif"], {"resolution": 0.0}, "ground_surface: resolution must be > 0"),
        (["t.tif"], {"method": "kriging"}, "ground_surface: method must be 'tin' or 'idw'"),
        (["g.las"], {"max_distance": -1.0}, "classify_ground: max_distance must be >= 0 metres"),
        (
            ["g.las"],
            {"device": "tpu"},
            "classify_ground: device must be 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'",
        ),
        (["g.copc.laz"], {}, "ground: output '.*' must be no COPC file: write a .laz"),
        (["g.las"], {"resolution": 0.0}, "ground_surface: resolution must be > 0"),
        (["g.las", "g.las"], {}, "ground: outputs must be different files, got '.*g.las' twice"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(tmp_path, outputs, options, sentence):
    path = write_scene(tmp_path / "a.las")
    with pytest.raises(ValueError, match=sentence):
        spatialq.write_ground(path, [tmp_path / name for name in outputs], **options)
    assert [each.name for each in tmp_path.iterdir()] == ["a.las"]


def test_one_statement_in_sql(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "_entries", deque())
    source = write_scene(tmp_path / "a.laz")
    targets = [str(tmp_path / name) for name in ("g.laz", "t.tif")]
    query = f"FROM write_ground('{source}', {targets}, resolution := 2.0)"
    with spatialq.connect() as con:
        con.sql(f"EXPLAIN {query}").fetchall()
        assert not (tmp_path / "g.laz").exists()
        (row,) = con.sql(query).fetchall()
        ran = [entry.function for entry in log.entries()]
        assert ran == ["classify_ground", "ground_surface"]  # once each
    assert row[3:] == ("cpu", targets)
    by_call = spatialq.write_ground(source, tmp_path / "h.laz")
    assert row[1] == by_call["ground_points"]
    assert (tmp_path / "g.laz").read_bytes() == (tmp_path / "h.laz").read_bytes()


def test_sql_takes_files_and_bounds_as_python_does(tmp_path):
    sources = [write_scene(tmp_path / f"{name}.laz", noise=False) for name in "ab"]
    xs = laspy.read(sources[0]).x
    box = [float(xs.min()), -1e9, float(np.median(xs)), 1e9]
    expected = spatialq.write_ground(sources, tmp_path / "python.laz", bounds=box)
    assert 0 < expected["points"] < 2 * len(xs)
    with spatialq.connect() as con:
        for k, given in enumerate((str(tmp_path / "[ab].laz"), [*map(str, sources)])):
            target = str(tmp_path / f"sql{k}.laz")
            query = f"FROM write_ground({literal(given)}, [{literal(target)}], bounds := {box})"
            row = con.sql(query).fetchall()[0]
            assert row[:2] == (expected["points"], expected["ground_points"])
            assert (tmp_path / target).read_bytes() == (tmp_path / "python.laz").read_bytes()
        wrong = f"FROM write_ground('{sources[0]}', ['x.laz'], bounds := [1, 2, 0, 3])"
        with pytest.raises(Exception, match="ground: bounds must be four finite numbers"):
            con.sql(wrong).fetchall()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [("NULL, ['a.laz']", "path"), ("'a.laz', NULL", "outputs"), ("'a.laz', [NULL]", "outputs"),
     ("'a.laz', ['b.laz'], resolution := NULL", "resolution"),
     ("['a.laz', NULL], ['b.laz']", "path"), ("NULL::VARCHAR[], ['b.laz']", "path")],
)  # fmt: skip
def test_null_is_refused_in_sql(arguments, name):
    with spatialq.connect() as con:
        query = f"FROM write_ground({arguments})"
        with pytest.raises(Exception, match=f"write_ground: {name} must not be NULL"):
            con.sql(query).fetchall()


def test_arrays_without_a_database(tmp_path):
    cloud = laspy.read(write_scene(tmp_path / "a.las", noise=False))
    x, y, z = (np.asarray(cloud[axis]) for axis in "xyz")
    result = spatialq.run("classify_ground", x, y, z, max_distance=0.3)
    with spatialq.connect() as con:
        con.execute(f"CREATE TABLE points AS FROM read_las('{tmp_path / 'a.las'}')")
        query = "FROM classify_ground('points', max_distance := 0.3) ORDER BY point_id"
        expected = con.sql(query).fetchnumpy()
    for name, values in expected.items():
        np.testing.assert_array_equal(result[name], values)
    assert log.entries()[-1].function == "classify_ground"
    with pytest.raises(ValueError, match="run: no spatial function 'clasify'; there is classify"):
        spatialq.run("clasify", x, y, z)
    for bad in (z[1:], z.reshape(-1, 2)):
        with pytest.raises(ValueError, match="owm_ground: the columns must be one-dimensional, of"):
            spatialq.run("owm_ground", x, y, bad)
    with pytest.raises(ValueError, match="owm_ground: no option 'windowsize'; there is bounds, "):
        spatialq.run("owm_ground", x, y, z, windowsize=5)


def test_what_does_not_fit_the_gpu_after_all_runs_on_the_cpu(monkeypatch):
    from spatialq.planner.plan import Plan

    kernel = Function.kernel

    def full(**_):
        message = "out of memory"
        raise MemoryError(message)

    monkeypatch.setattr(Function, "kernel", lambda u, d: full if d == "gpu" else kernel(u, d))
    monkeypatch.setattr(
        "spatialq.execution.call.plan_call", lambda *_: Plan("gpu", 1.0, "faster", [])
    )
    rng = np.random.default_rng(2)
    columns = [rng.uniform(0, 30, 500) for _ in range(3)]
    assert spatialq.run("owm_ground", *columns)["point_id"].size > 0
    assert log.entries()[-1].device == "cpu"
    assert log.entries()[-1].reason == "the GPU ran out of memory: out of memory"
    with pytest.raises(MemoryError):
        spatialq.run("owm_ground", *columns, device="gpu")
