"""From a file to its planes: the command and the Python call."""

import json

import laspy
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from spatialq.udfs.detect_planes import ORIENTATIONS

import spatialq
from spatialq.planner import log

from .command_line import spatialq_command, spatialq_process
from .conftest import real_file
from .plane_points.cases import ROOF, ROOM, surfaces

pytestmark = pytest.mark.slow  # as a whole

NOISE = 7
POINTS = surfaces(5, *ROOM, *ROOF, clutter=200)


def write_scene(path, *, crs="EPSG:25832", turned=False, **fields):
    """A room under a roof; every tenth point is classified as noise."""
    x, y, z = (np.array([p[k] for p in POINTS]) for k in (1, 2, 3))
    header = laspy.LasHeader(point_format=6, version="1.4")
    header.scales, header.offsets = [1e-4] * 3, [500000, 5000000, 0]
    if crs:
        import pyproj

        header.add_crs(pyproj.CRS(crs))
    cloud = laspy.LasData(header)
    x, y = x + 500000, y + 5000000
    cloud.x, cloud.y, cloud.z = (x, z + 5000000, -(y - 5000000)) if turned else (x, y, z)
    cloud.intensity = np.arange(x.size) % 65536
    cloud.classification = np.where(np.arange(x.size) % 10 == 0, NOISE, 0)
    cloud.write(path)
    return path


def test_one_command_gives_points_table_and_picture(tmp_path):
    source = write_scene(tmp_path / "a.las")
    targets = [tmp_path / name for name in ("p.laz", "p.parquet", "p.png", "p.csv", "p.json")]
    outputs = (f"-o{each}" for each in targets)
    result = spatialq_process("planes", source, *outputs, "--json", "--split")
    assert result.returncode == 0, result.stderr
    (done,) = json.loads(result.stdout, parse_constant=pytest.fail)
    assert done["outputs"] == list(map(str, targets))
    assert done["points"] == len(POINTS)
    assert done["noise_points"] == len(POINTS) // 10
    assert done["device"] == "cpu"
    assert [plane["plane_id"] for plane in done["planes"]] == list(
        range(1, len(done["planes"]) + 1)
    )
    assert len(done["planes"]) >= 8
    with spatialq.connect() as con:
        points = f"(FROM read_las('{source}') WHERE classification <> {NOISE})"
        con.execute(f"CREATE TABLE points AS {points}")
        expected = con.sql("FROM plane_points('points', split := true)").fetchnumpy()
        for target in (targets[1], *targets[3:]):
            query = f"SELECT plane_id, point_count, round(d, 6), orientation FROM '{target}'"
            in_sql = query.replace(f"'{target}'", "detect_planes('points', split := true)")
            assert con.sql(query).fetchall() == con.sql(in_sql).fetchall()
        wkt = con.sql(f"SELECT boundary FROM '{targets[3]}'").fetchall()
        assert all(text.startswith("POLYGON Z ((") for (text,) in wkt)
    after = laspy.read(targets[0])
    np.testing.assert_array_equal(after.intensity, laspy.read(source).intensity)
    ids = expected["point_id"]
    of_point = np.zeros(len(POINTS), np.int32)
    of_point[ids] = expected["plane_id"].filled(0)
    np.testing.assert_array_equal(after.plane_id, of_point)
    assert np.count_nonzero(of_point) == done["plane_points"]
    distance = np.full(len(POINTS), np.nan, np.float32)
    distance[ids] = expected["distance"].filled(np.nan)
    np.testing.assert_array_equal(after.plane_distance, distance)
    with Image.open(targets[2]) as picture:
        assert picture.width == 1200
        colours = len(picture.convert("P", palette=Image.Palette.ADAPTIVE).getcolors())
        assert colours > 20
    geo = json.loads(pq.read_metadata(targets[1]).metadata[b"geo"])
    assert geo["primary_column"] == "boundary"
    assert geo["columns"]["boundary"]["crs"]["id"] == {"authority": "EPSG", "code": 25832}


def test_points_and_table_come_from_one_search(tmp_path):
    source = write_scene(tmp_path / "a.las")
    log._entries.clear()  # which keeps a thousand calls, so that none more would be counted
    spatialq.write_planes(source, [tmp_path / "p.las", tmp_path / "p.csv"])
    assert len(log.entries()) == 1


def test_without_outputs_it_prints_the_planes(tmp_path):
    source = write_scene(tmp_path / "a.las")
    result = spatialq_command("planes", source, "--limit", 3)
    assert result.returncode == 0, result.stderr
    for word in ("plane_id", "orientation", "area", "point_count", "normal", "oblique"):
        assert word in result.stdout
    assert "only the first 3 planes are shown (--limit); -o writes all" in result.stderr
    assert list(tmp_path.iterdir()) == [source]


def test_with_outputs_it_says_what_it_did(tmp_path):
    write_scene(tmp_path / "a.las")
    result = spatialq_command("planes", "a.las", "-o", "p.csv", "--min-points", 200, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for word in ("plane_points", "noise_points", "device", "p.csv"):
        assert word in result.stdout


def test_the_axis_that_points_up(tmp_path):
    """A scan whose y points up has the orientations of the one it was turned from."""
    upright = spatialq.write_planes(write_scene(tmp_path / "a.las"), max_distance=0.02)
    turned = write_scene(tmp_path / "b.las", turned=True)
    picture = tmp_path / "p.png"
    lying = spatialq.write_planes(turned, picture, up="y", max_distance=0.02)
    found = [sorted(plane["orientation"] for plane in done["planes"]) for done in (upright, lying)]
    assert found[0] == found[1]
    assert set(found[0]) == set(ORIENTATIONS)
    assert picture.exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["copc", "laz"])
def test_real_files(tmp_path, kind):
    name = {"copc": "rgb/lion_takanawa.copc.laz", "laz": "indoor/pcl_office1.laz"}[kind]
    source = real_file(f"data/{name}")
    done = spatialq.write_planes(source, tmp_path / "p.laz", min_points=2000)
    after = laspy.read(tmp_path / "p.laz")
    counts = np.bincount(after.plane_id, minlength=1 + len(done["planes"]))
    assert counts[1:].tolist() == [plane["point_count"] for plane in done["planes"]]
    before = laspy.read(source)
    np.testing.assert_array_equal(after.X, before.X)
    on = np.asarray(after.plane_id) > 0
    planes = {name: np.array([0.0, *(plane[name] for plane in done["planes"])])
              for name in ("nx", "ny", "nz", "d")}  # fmt: skip
    own = {name: values[after.plane_id[on]] for name, values in planes.items()}
    x, y, z = (np.asarray(before[axis])[on] for axis in "xyz")
    distance = own["nx"] * x + own["ny"] * y + own["nz"] * z - own["d"]
    assert np.asarray(after.plane_distance)[on] == pytest.approx(distance, abs=1e-5)


def test_points_have_the_colours_of_the_picture(tmp_path):
    source = write_scene(tmp_path / "a.las")
    targets = [tmp_path / "plain.laz", tmp_path / "p.png"]
    planes = spatialq.write_planes(source, targets)["planes"]
    outputs = ("-o", tmp_path / "p.laz", "--colour")
    assert spatialq_command("planes", source, *outputs).returncode == 0
    before, after = laspy.read(source), laspy.read(tmp_path / "p.laz")
    np.testing.assert_array_equal(after.xyz, before.xyz)
    np.testing.assert_array_equal(after.plane_id, laspy.read(targets[0]).plane_id)
    colours = np.column_stack([after.red, after.green, after.blue])
    of_planes = {k: np.unique(colours[after.plane_id == k], axis=0) for k in range(len(planes) + 1)}
    assert all(len(each) == 1 for each in of_planes.values())
    assert len({tuple(each[0]) for each in of_planes.values()}) == len(planes) + 1
    pixels = np.asarray(Image.open(targets[1]).convert("RGB")).reshape(-1, 3)
    drawn = set(map(tuple, np.unique(pixels, axis=0).tolist()))
    shown = {tuple((each[0] // 257).tolist()) for each in of_planes.values()}
    assert len(shown & drawn) > len(planes) / 2  # others are hidden, or only an outline


def test_a_cloud_without_planes(tmp_path):
    header = laspy.LasHeader(point_format=0)
    header.scales = [0.001] * 3
    cloud = laspy.LasData(header)
    cloud.x = cloud.y = cloud.z = np.arange(40.0)
    cloud.write(tmp_path / "line.las")
    targets = [tmp_path / name for name in ("p.las", "p.parquet", "p.png")]
    done = spatialq.write_planes(tmp_path / "line.las", targets)
    assert (done["planes"], done["plane_points"]) == ([], 0)
    assert np.count_nonzero(laspy.read(targets[0]).plane_id) == 0
    assert pq.read_table(targets[1]).num_rows == 0
    assert spatialq_command("planes", tmp_path / "line.las").stdout == "(no rows)\n"


def test_noise_alone_is_no_cloud(tmp_path):
    source = write_scene(tmp_path / "a.las")
    cloud = laspy.read(source)
    cloud.classification[:] = NOISE
    cloud.write(source)
    done = spatialq.write_planes(source, [tmp_path / "p.laz", tmp_path / "p.png"])
    assert done["noise_points"] == done["points"] == len(POINTS)
    assert done["planes"] == []


def test_a_field_of_another_type_is_refused_before_the_work(tmp_path, monkeypatch):
    source = write_scene(tmp_path / "a.las")
    cloud = laspy.read(source)
    cloud.add_extra_dim(laspy.ExtraBytesParams("plane_id", "uint16"))
    cloud.write(source)
    monkeypatch.setattr(
        "spatialq.workflows.planes.read_points", lambda *_: pytest.fail("it went on")
    )
    with pytest.raises(spatialq.FileError, match="has extra bytes 'plane_id' of another type"):
        spatialq.write_planes(source, tmp_path / "p.las")


def test_an_earlier_result_is_a_source_like_any_other(tmp_path):
    first, second = tmp_path / "p.laz", tmp_path / "q.laz"
    once = spatialq.write_planes(write_scene(tmp_path / "a.las"), first, max_distance=0.02)
    again = spatialq.write_planes(first, second, max_distance=0.02)
    assert [p["point_count"] for p in again["planes"]] == [p["point_count"] for p in once["planes"]]
    records = [laspy.read(path).points.array.tobytes() for path in (first, second)]  # NaN too
    assert records[0] == records[1]


def test_degrees_are_refused(tmp_path):
    path = write_scene(tmp_path / "a.las", crs="EPSG:4326")
    sentence = r"the CRS of '.*a.las', WGS 84 .EPSG:4326., is not projected"
    with pytest.raises(spatialq.CrsError, match=sentence):
        spatialq.write_planes(path, tmp_path / "p.las")
    assert [each.name for each in tmp_path.iterdir()] == ["a.las"]


def test_feet_of_two_kinds_are_one_unit(tmp_path):
    # x and y in international feet, z in US survey feet
    path = write_scene(tmp_path / "a.las", crs="EPSG:2992+6360")
    assert len(spatialq.write_planes(path, max_distance=0.02)["planes"]) >= 8


@pytest.mark.parametrize(
    ("outputs", "options", "sentence"),
    [
        (["p.txt"], {}, "planes: output '.*p.txt' must end in one of .las, .laz, .parquet"),
        (["p.tif"], {}, "planes: output '.*p.tif' must end in one of"),
        (["p.copc.laz"], {}, "planes: output '.*' must be no COPC file: write a .laz"),
        (["p.las", "p.las"], {}, "planes: outputs must be different files, got '.*p.las' twice"),
        (["no/p.las"], {}, "output: '.*no/p.las': there is no folder"),
        (["a.las"], {}, "output must be another file than the input"),
        (["p.las"], {"max_distance": -1.0}, "detect_planes: max_distance must be > 0 or NULL, got"),
        (
            ["p.csv"],
            {"device": "tpu"},
            "detect_planes: device must be 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'",
        ),
        (["p.las"], {"up": "w"}, "planes: up must be 'x', 'y' or 'z', got 'w'"),
        (["p.las"], {"crs": "EPSG:4326"}, "is not projected"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(tmp_path, outputs, options, sentence):
    path = write_scene(tmp_path / "a.las", crs=None)
    before = path.read_bytes()
    with pytest.raises((ValueError, spatialq.SpatialqError), match=sentence):
        spatialq.write_planes(path, [tmp_path / name for name in outputs], **options)
    assert [each.name for each in tmp_path.iterdir()] == ["a.las"]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none.laz"], 1, "error: planes: 'none.laz': there is no such file"),
        (["house.ifc"], 1, "error: planes: 'house.ifc': is no point cloud: its name must end in"),
        (["a.las", "--s-ms", "3"], 1, "error: detect_planes: s_ms must be >= 4 or NULL, got 3"),
        (
            ["a.las", "--kernel", "x"],
            1,
            "error: detect_planes: kernel must be 'tangent' or 'paper'",
        ),
        (["a.las", "--phi-num", "x"], 2, "error: Invalid value for '--phi-num'"),
        (["a.las", "--limit", "-1"], 2, "error: Invalid value for '--limit'"),
        ([], 2, "error: Missing argument 'files'"),
    ],
)
def test_errors_are_one_line(tmp_path, arguments, code, message):
    (tmp_path / "house.ifc").touch()
    write_scene(tmp_path / "a.las")
    result = spatialq_command("planes", *arguments, cwd=tmp_path)
    assert result.returncode == code
    assert result.stderr.startswith(message)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_outputs_appear_together_or_not_at_all(tmp_path, monkeypatch):
    source = write_scene(tmp_path / "a.las")
    (tmp_path / "p.csv").write_text("as it was")

    def stop(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spatialq.export.planes_picture.write_planes_picture", stop)
    with pytest.raises(OSError, match="No space left"):
        spatialq.write_planes(source, [tmp_path / name for name in ("p.las", "p.csv", "p.png")])
    assert (tmp_path / "p.csv").read_text() == "as it was"
    assert {each.name for each in tmp_path.iterdir()} == {"a.las", "p.csv"}


def test_a_sparse_tile_is_told_of_once():
    tile = real_file("data/lidar/test_semis_2023_0292_6833_LA93_IGN69.laz")
    result = spatialq_process("planes", tile)
    assert result.returncode == 0
    assert result.stderr.count("surfaces of 10 by 10 m have 30 points") == 1
