"""`ground` and `planes` on folders of tiles: the rows of the one file that has all their points."""

import os
import re
import warnings

import laspy
import numpy as np
import pyarrow.parquet as pq
import pytest
import rasterio

import spatialq
from spatialq.demo.village import write_village
from spatialq.errors import CrsError, FileError, FileWarning
from spatialq.io.files import find_files

from .command_line import spatialq_command, spatialq_process

N_TILES = 20
PLANES = {"min_points": 100, "max_distance": 0.1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A village as `whole.laz`, and as twenty tiles of very different sizes, in this order."""
    folder = tmp_path_factory.mktemp("village")
    write_village(folder / "village.laz", n_points=120_000)
    cloud = laspy.read(folder / "village.laz")
    rng = np.random.default_rng(3)
    cloud.classification[rng.integers(0, len(cloud.points), 500)] = 7
    x, y = np.asarray(cloud.x), np.asarray(cloud.y)
    # borders wherever they fall, through buildings as well
    columns = np.searchsorted(np.quantile(x, np.sort(rng.uniform(0, 1, 3))), x)
    rows = np.searchsorted(np.quantile(y, np.sort(rng.uniform(0, 1, 4))), y)
    tile = columns * 5 + rows
    order = np.argsort(tile, kind="stable")
    (folder / "tiles").mkdir()
    for k in range(N_TILES):
        part(cloud, order[tile[order] == k]).write(folder / "tiles" / f"{k:02}.la{'sz'[k % 2]}")
    part(cloud, order).write(folder / "whole.laz")
    (folder / "village.laz").unlink()
    return folder


def part(cloud, rows):
    found = laspy.LasData(cloud.header)
    found.points = cloud.points[rows]
    found.update_header()
    return found


def assert_same_points(one, other):
    one, other = laspy.read(one), laspy.read(other)
    assert one.points.array.tobytes() == other.points.array.tobytes()
    for name in ("scales", "offsets", "mins", "maxs", "point_count"):
        assert np.all(getattr(one.header, name) == getattr(other.header, name)), name
    assert one.header.global_encoding.value == other.header.global_encoding.value
    assert one.header.parse_crs() == other.header.parse_crs()


def run(command, cwd, *arguments):
    result = spatialq_process(command, *arguments, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.slow
def test_ground_of_tiles_is_that_of_the_whole(folder, tmp_path):
    outputs = ("g.laz", "t.tif", "p.parquet")
    for name, source in (("one", "../whole.laz"), ("many", "*.la[sz]")):
        (tmp_path / name).mkdir()
        targets = [f"-o{tmp_path / name / each}" for each in outputs]
        if name == "many":
            targets.append(f"-o{tmp_path / 'out'}/")
        run("ground", folder / "tiles", source, *targets, "--resolution", "5m")
    one, many = tmp_path / "one", tmp_path / "many"
    assert_same_points(one / "g.laz", many / "g.laz")
    assert pq.read_table(one / "p.parquet").equals(pq.read_table(many / "p.parquet"))
    with rasterio.open(one / "t.tif") as a, rasterio.open(many / "t.tif") as b:
        assert a.bounds == b.bounds
        np.testing.assert_array_equal(a.read(1), b.read(1))
    tiles = sorted((folder / "tiles").iterdir())
    written = sorted((tmp_path / "out").iterdir())
    assert [each.name for each in written] == [each.name for each in tiles]
    together = [laspy.read(each).points.array for each in written]
    assert np.concatenate(together).tobytes() == laspy.read(one / "g.laz").points.array.tobytes()
    assert laspy.read(written[0]).header.are_points_compressed == (tiles[0].suffix == ".laz")


@pytest.mark.slow
def test_planes_of_tiles_are_those_of_the_whole(folder, tmp_path):
    targets = {each: [tmp_path / each / name for name in ("p.laz", "p.parquet")]
               for each in ("one", "many")}  # fmt: skip
    for each in targets:
        (tmp_path / each).mkdir()
    one = spatialq.write_planes(folder / "whole.laz", targets["one"], **PLANES)
    out = f"{tmp_path / 'out'}/"
    many = spatialq.write_planes(folder / "tiles", [*targets["many"], out], **PLANES)
    assert one["planes"] == many["planes"]
    assert len(one["planes"]) > 3
    assert many["outputs"][-1] == out
    assert_same_points(targets["one"][0], targets["many"][0])
    assert pq.read_table(targets["one"][1]).equals(pq.read_table(targets["many"][1]))
    together = [laspy.read(each).points.array for each in sorted((tmp_path / "out").iterdir())]
    expected = laspy.read(targets["one"][0]).points.array.tobytes()
    assert np.concatenate(together).tobytes() == expected


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ground", "planes"])
def test_bounds_are_a_cloud_that_was_cut_before(folder, tmp_path, command):
    write = getattr(spatialq, f"write_{command}")
    cloud = laspy.read(folder / "whole.laz")
    x, y = np.asarray(cloud.x), np.asarray(cloud.y)
    bounds = (*(np.quantile(each, 0.3) for each in (x, y)), x.max(), np.quantile(y, 0.8))
    bounds = tuple(map(float, bounds))
    inside = (x >= bounds[0]) & (y >= bounds[1]) & (x <= bounds[2]) & (y <= bounds[3])
    part(cloud, np.flatnonzero(inside)).write(tmp_path / "cut.laz")
    one = write(tmp_path / "cut.laz", tmp_path / "a.laz")
    many = write(f"{folder}/tiles/*", [tmp_path / "b.laz", f"{tmp_path}/out/"], bounds=bounds)
    assert 0 < many["points"] == np.count_nonzero(inside) < x.size
    for name in ("points", "noise_points"):
        assert many[name] == one[name]
    assert_same_points(tmp_path / "a.laz", tmp_path / "b.laz")
    assert (
        sum(len(laspy.read(each).points) for each in (tmp_path / "out").iterdir()) == one["points"]
    )


def cloud_file(path, *, offsets=(0.0, 0.0, 0.0), scales=(0.01,) * 3, extra=(), crs=None, **kind):
    header = laspy.LasHeader(**{"point_format": 6, "version": "1.4", **kind})
    header.offsets, header.scales = offsets, scales
    for name in extra:
        header.add_extra_dim(laspy.ExtraBytesParams(name, "int32"))
    if crs is not None:
        import pyproj

        header.add_crs(pyproj.CRS(crs))
    cloud = laspy.LasData(header)
    side = np.arange(30) / 10
    x, y = (each.ravel() for each in np.meshgrid(side, side))
    cloud.x, cloud.y, cloud.z = x + offsets[0] + 5, y + offsets[1], np.full(x.size, 2.5)
    cloud.write(path)
    return path


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def test_offsets_and_scales_may_differ(tmp_path):
    """X, Y and Z become whole numbers of one scale; the coordinates are the same."""
    one = cloud_file(tmp_path / "a.las", offsets=(500_000.0, 10.0, 0.0))
    two = cloud_file(tmp_path / "b.las", offsets=(500_003.5, 10.1, -7.0), scales=(0.01, 0.001, 0.1))
    quietly(spatialq.write_planes, [one, two], tmp_path / "c.laz")
    merged, parts = laspy.read(tmp_path / "c.laz"), [laspy.read(each) for each in (one, two)]
    assert tuple(merged.header.scales) == (0.01, 0.001, 0.01)
    for axis in "xyz":
        expected = np.concatenate([np.asarray(each[axis]) for each in parts])
        np.testing.assert_allclose(np.asarray(merged[axis]), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("one", "two", "sentence"),
    [
        ({}, {"point_format": 7}, "'.*a.las' and '.*b.las' have point formats 6 and 7; write each"),
        ({}, {"extra": ["k"]}, r"have different extra bytes, \(none\) and \(k\); write each into"),
        ({}, {"offsets": (0.005, 0, 0)}, "one file cannot have both exactly; write each into a"),
        (
            {},
            {"scales": (0.007,) * 3},
            "'.*a.las' has x in steps of 0.01 from 0.0, others in steps",
        ),
    ],
)
def test_what_cannot_be_one_file_can_be_a_folder(tmp_path, one, two, sentence):
    sources = [cloud_file(tmp_path / "a.las", **one), cloud_file(tmp_path / "b.las", **two)]
    with pytest.raises(FileError, match=sentence):
        quietly(spatialq.write_ground, sources, tmp_path / "c.laz")
    assert len(list(tmp_path.iterdir())) == 2
    done = quietly(spatialq.write_ground, sources, f"{tmp_path}/out/")
    assert [each.name for each in sorted((tmp_path / "out").iterdir())] == ["a.las", "b.las"]
    assert done["points"] == 1800


def test_ranges_of_extra_bytes_are_not_those_of_one_file(tmp_path):
    sources = [cloud_file(tmp_path / f"{name}.las", extra=["k"]) for name in "ab"]
    for source, low in zip(sources, (0, 100), strict=True):
        cloud = laspy.read(source)
        cloud.k = np.arange(len(cloud.points)) + low
        cloud.write(source)
        raw = bytearray(source.read_bytes())
        entry = raw.index(b"k\0\0\0") - 4
        raw[entry + 3] |= 0b110
        raw[entry + 64 : entry + 72] = int(low).to_bytes(8, "little")
        source.write_bytes(raw)
    quietly(spatialq.write_ground, sources, tmp_path / "c.las")
    raw = (tmp_path / "c.las").read_bytes()
    entry = raw.index(b"k\0\0\0") - 4
    assert raw[entry + 3] & 0b110 == 0
    assert laspy.read(tmp_path / "c.las").k.max() == 999


def test_two_inputs_of_one_name_do_not_share_a_file(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        cloud_file(tmp_path / name / "a.las")
    with pytest.raises(FileError, match=r"would both be 'a\.las' in it; rename one of them"):
        quietly(spatialq.write_ground, f"{tmp_path}/*/a.las", f"{tmp_path}/out/")
    assert not (tmp_path / "out").exists()


def test_a_folder_of_inputs_is_not_overwritten(tmp_path):
    cloud_file(tmp_path / "a.las")
    with pytest.raises(FileError, match="output must be another file than the input"):
        quietly(spatialq.write_ground, tmp_path, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["a.las"]


@pytest.mark.parametrize(
    ("given", "output"),
    [("tiles/", "tiles/all.las"), ("tiles", "tiles/all.copc.laz"), ("tiles/*.la?", "tiles/b.laz"),
     ("**/*.las", "tiles/new/b.las"), ("t[i]*/?.las", "tiles/../tiles/b.las"),
     ("tiles/*", "tiles/b.parquet"), ("*/a.las", "tiles/../new/")],
)  # fmt: skip
def test_what_the_next_run_would_read_is_not_written(tmp_path, monkeypatch, given, output):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiles" / "new").mkdir(parents=True)
    cloud_file(tmp_path / "tiles" / "a.las")
    write = spatialq.write_lod if output.endswith((".copc.laz", ".parquet")) else (
        spatialq.write_ground)  # fmt: skip
    sentence = f"output must not be one of '{re.escape(given)}', which the next run would read"
    with pytest.raises(FileError, match=sentence):
        quietly(write, given, output)
    assert [each.name for each in (tmp_path / "tiles").rglob("*.*")] == ["a.las"]


@pytest.mark.parametrize(
    ("given", "output"),
    [("tiles/", "tiles/t.csv"), ("tiles/*.las", "tiles/a.csv"), ("tiles/*.las", "tiles/out/b.las"),
     ("tiles/a.las", "tiles/b.las"), ("*.las", "tiles/b.las")],
)  # fmt: skip
def test_other_outputs_beside_the_inputs_are_written(tmp_path, monkeypatch, given, output):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiles" / "out").mkdir(parents=True)
    cloud_file(tmp_path / "tiles" / "a.las")
    cloud_file(tmp_path / "a.las")
    quietly(spatialq.write_ground, given, output)
    assert (tmp_path / output).exists()


def test_a_folder_that_is_there_means_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("w[x]", "wx"):
        (tmp_path / name).mkdir()
        cloud_file(tmp_path / name / f"{name[-1]}.las")
    (tmp_path / "w[x]" / "deep [1]").mkdir()
    cloud_file(tmp_path / "w[x]" / "deep [1]" / "d.las")
    for pattern, names in {
        "w[x]/*.las": {"].las"},
        "w[x]/**/*.las": {"].las", "d.las"},
        "w[x]/*/*.las": {"d.las"},
        "w[x]/deep [1]/?.las": {"d.las"},
        "w[a-z]/*.las": {"x.las"},
    }.items():
        assert {each.name for each in find_files("read_las", pattern)} == names, pattern
    with spatialq.connect() as con:
        ((count,),) = con.sql("SELECT count(*) FROM read_las('w[x]/*.las')").fetchall()
        assert count == len(laspy.read("w[x]/].las"))


def test_tiles_have_one_crs(tmp_path):
    sources = [cloud_file(tmp_path / f"{code}.las", crs=f"EPSG:{code}") for code in (25832, 25833)]
    with pytest.raises(CrsError, match=r"25832\.las' is in .* but '.*25833\.las' is in"):
        spatialq.write_planes(sources, tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no*.las"], "error: {command}: 'no*.las': no file matches this pattern"),
        (["empty"], "error: {command}: 'empty': there is no point cloud in this folder"),
        (["a.las", "a.las"], "error: {command}: 'a.las': is named twice"),
        (["a.las", "--bounds", "1,2,3"], "error: {command}: bounds must be four finite numbers"),
        (["a.las", "--bounds", "1,2,3,x"], "error: {command}: --bounds must be four numbers xmin"),
        (["a.las", "--bounds", "5,0,3,9"], "error: {command}: bounds must be four finite numbers"),
        (["a.las", "--memory", "2XB"], "error: {command}: memory must be a size above 0 such as"),
    ],
)
@pytest.mark.parametrize("command", ["ground", "planes"])
def test_errors_are_one_line(tmp_path, command, arguments, message):
    (tmp_path / "empty").mkdir()
    cloud_file(tmp_path / "a.las")
    result = spatialq_command(command, *arguments, "-o", "out.csv", cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.startswith(message.format(command=command)), result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["a.las", "empty"]  # noqa: PTH208


@pytest.mark.parametrize("command", ["ground", "planes"])
def test_a_folder_that_is_not_there_needs_a_slash(tmp_path, command):
    cloud_file(tmp_path / "a.las")
    write = getattr(spatialq, f"write_{command}")
    sentence = "output '.*out' must end in one of .las, .*, or in a slash to be a folder"
    with pytest.raises(ValueError, match=sentence):
        write(tmp_path / "a.las", tmp_path / "out")


@pytest.mark.parametrize("command", ["ground", "planes", "lod"])
def test_bounds_without_a_point_are_warned_of(tmp_path, command):
    x = np.asarray(laspy.read(cloud_file(tmp_path / "a.las")).x)
    write = getattr(spatialq, f"write_{command}")
    sentence = f"{command}: no point is within the bounds 500, 0, 600, 0.5; the points are within "
    with pytest.warns(FileWarning, match=f"{sentence}{x.min():.15g}, "):
        done = write(tmp_path / "a.las", tmp_path / "n.parquet", bounds=(500, 0, 600, 0.5))
    assert done["points"] == 0


def test_text_and_las_can_be_a_folder_of_las(tmp_path):
    cloud_file(tmp_path / "a.las")
    np.savetxt(tmp_path / "b.xyz", np.random.default_rng(1).uniform(0, 3, (500, 3)), fmt="%.3f")
    done = quietly(spatialq.write_planes, tmp_path, f"{tmp_path}/out/")
    assert done["points"] == 1400
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["a.las", "b.laz"]
    with pytest.raises(FileError, match="have different columns"):
        quietly(spatialq.write_planes, tmp_path, tmp_path / "out" / "c.las")


def test_lod_takes_folders_and_bounds(tmp_path):
    """With and without enough memory for all points at once."""
    tiles = tmp_path / "tiles"
    tiles.mkdir()
    sources = [cloud_file(tiles / f"{k}.las", offsets=(1.0 * k, 0.0, 0.0)) for k in range(3)]
    whole = quietly(spatialq.write_lod, sources, tmp_path / "whole.parquet")
    assert whole["points"] == 2700
    bounds = (6.0, 0.5, 8.0, 2.0)
    expected = sum(
        np.count_nonzero((x >= 6) & (x <= 8) & (y >= 0.5) & (y <= 2))
        for x, y in ((np.asarray(each.x), np.asarray(each.y)) for each in map(laspy.read, sources))
    )
    small = {"max_points": 100, "grid_size": 4}
    found = []
    for memory in (None, "0.2MB"):
        done = quietly(
            spatialq.write_lod, tiles, tmp_path / "n.parquet", bounds=bounds, memory=memory, **small
        )
        assert done["points"] == expected
        rows = pq.read_table(tmp_path / "n.parquet").to_pylist()
        found.append(sorted(rows, key=lambda row: row["node"]))
    assert found[0] == found[1]
