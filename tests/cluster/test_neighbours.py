"""`classify_noise` and `point_features` as jobs: the rows of one call on all files, to the bit."""

import shutil

import laspy
import numpy as np
import pytest

import spatialq
from spatialq import cluster
from spatialq.cluster import points
from spatialq.execution.call import call_as_given
from spatialq.functions import neighbour_stages, stray_stages
from spatialq.functions.stray_stages import choose_strays
from tests.cluster import surveys
from tests.conftest import made_once
from tests.examples import combinations
from tests.strays.oracle import strays_of as strays_by_definition

BOUNDS = (1012.0, 5007.5, 1071.25, 5048.0)
CASES = {
    "statistical": ("classify_noise", {}),
    "statistical, many neighbours": ("classify_noise", {"mean_k": 90, "multiplier": 0.5}),
    "statistical, bounds": ("classify_noise", {"multiplier": 1.0, "bounds": BOUNDS}),
    "isolated": ("classify_noise", {"method": "isolated", "voxel_size": 3.0}),
    "isolated, large voxels": (
        "classify_noise", {"method": "isolated", "voxel_size": 11.0, "max_points": 150},
    ),
    "nearest": ("point_features", {}),
    "nearest, many": ("point_features", {"k": 70, "mode": "raw"}),
    "nearest, bounds": ("point_features", {"k": 4, "bounds": BOUNDS}),
    "more than points": ("point_features", {"k": 9, "bounds": (1000.0, 5000.0, 1000.5, 5009.0)}),
    "a radius": ("point_features", {"radius": 2.0, "mode": "normalized"}),
    "a wide radius": ("point_features", {"radius": 19.0}),
}  # fmt: skip


def make(folder):
    """Write six tiles, one of them almost empty, and points above and below the others."""
    surveys.make(folder, columns=3, rows=2)
    x = np.array([1033.0, 1034.5, 1061.2, 1079.9])
    z = np.array([18.0, 12.5, -9.0, 3.1])
    surveys.write_tile(folder / "tile_1_1.laz", x, x + 4000, z)
    far = np.array([1007.0, 1030.0, 1031.0, 1089.0])
    surveys.write_tile(folder / "zenith.laz", far, far[::-1] + 3970, np.array([19.0, -11, 16, 14]))
    return folder


@pytest.fixture(scope="module")
def tiles(tmp_path_factory):
    return made_once(tmp_path_factory, "tiles_with_noise", make)


def of_call(function, source, options):
    given = "".join(
        f", {key} := {list(value) if isinstance(value, tuple) else repr(value)}"
        for key, value in options.items()
    )
    return surveys.rows_of_call(f"{function}('{source}'{given})")


@pytest.mark.parametrize(("name", "tile_size"), combinations(CASES, [None, 17.0, 41.0]))
def test_rows_are_those_of_one_call(at_once, tiles, tmp_path, name, tile_size):
    function, more = CASES[name]
    options = surveys.QUIET | more
    made = cluster.run(function, f"{tiles}/*.laz", tmp_path / "out", tile_size=tile_size, **options)
    expected = of_call(function, f"{tiles}/*.laz", options)
    assert surveys.of_job(tmp_path / "out") == expected
    assert made["rows"] == made["points"] == len(expected) > 0


@pytest.mark.parametrize("width", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("name", ["statistical", "isolated", "nearest"])
def test_the_width_of_halos_decides_nothing(at_once, tiles, tmp_path, monkeypatch, name, width):
    monkeypatch.setattr(neighbour_stages, "WIDTH", width)
    counts, gather = [], neighbour_stages.gather_far

    def gather_and_count(*found):
        counts.append(gather(*found))
        return counts[-1]

    monkeypatch.setattr(neighbour_stages, "gather_far", gather_and_count)
    gather_and_count.__module__, gather_and_count.__qualname__ = gather.__module__, "gather_far"
    function, more = CASES[name]
    options = surveys.QUIET | more
    source, out = f"{tiles}/*.laz", tmp_path / "out"
    cluster.run(function, source, out, tile_size=17.0, **options)
    assert surveys.of_job(out) == of_call(function, source, options)
    (far,) = (each.facts["far"] for each in counts)
    assert (far == 0) == (width == 1000.0)


@pytest.mark.slow
@pytest.mark.parametrize("function", ["classify_noise", "point_features"])
def test_processes_and_resume(tiles, tmp_path, function):
    source, out = f"{tiles}/*.laz", tmp_path / "out"
    options = surveys.QUIET | {"workers": 2, "memory": "200MB"}
    cluster.run(function, source, out, **options)
    expected = of_call(function, source, surveys.QUIET)
    assert surveys.of_job(out) == expected
    parts = sorted((out / "parts").iterdir())
    for part in parts[:2]:
        part.unlink()
    made = cluster.run(function, source, out, resume=True, **options)
    assert made["resumed"] == len(parts) - 2
    assert surveys.of_job(out) == expected


@pytest.mark.parametrize("function", ["classify_noise", "point_features"])
def test_tasks_run_on_the_cpu(tiles, tmp_path, function):
    with pytest.raises(ValueError, match=rf"device must be one of auto, cpu for {function}, .*gpu"):
        cluster.run(function, str(tiles), tmp_path / "out", device="gpu", **surveys.QUIET)
    assert not (tmp_path / "out").exists()


def test_no_task_plans_onto_a_gpu(at_once, tiles, tmp_path, monkeypatch):
    """Workers have no share of one."""
    asked = set()

    def call(function, arguments, options, device, **more):
        asked.add(device)
        return call_as_given(function, arguments, options, device, **more)

    monkeypatch.setattr(points, "call_as_given", call)
    options = surveys.QUIET | {"radius": 2.0}
    cluster.run("point_features", f"{tiles}/*.laz", tmp_path / "out", **options)
    assert asked == {"cpu"}


def test_classes_are_kept(at_once, tiles, tmp_path):
    (tmp_path / "tiles").mkdir()
    for k, path in enumerate(sorted(tiles.iterdir())):
        cloud = laspy.read(path)
        cloud.classification = np.arange(len(cloud)) % 5 + k
        cloud.write(tmp_path / "tiles" / path.name)
    source, out = f"{tmp_path}/tiles/*.laz", tmp_path / "out"
    cluster.run("classify_noise", source, out, tile_size=17.0, **surveys.QUIET)
    expected = of_call("classify_noise", source, surveys.QUIET)
    assert surveys.of_job(out) == expected
    assert {row[1] for row in expected} > {0, 1, 7, 18}


STRAYS = {
    "above": np.array([[1040.0], [5020.0], [400.0]]),
    "on all sides": np.array(
        [[700.0, 700, 1040, 1041, 1500], [4700.0, 4700, 5020, 5021, 5020],
         [0.0, 1.0, 400.0, -300.0, 5.0]]
    ),
    "some within reach of others": np.array(
        [[1040.0, 1040, 1040, 1041], [5020.0, 5020, 5020, 5021], [55.0, 95.0, 140.0, 1e4]]
    ),
    "in a row that joins": np.array(
        [[1040.0] * 6, [5020.0] * 6, [40.0, 80.0, 120.0, 170.0, 230.0, 330.0]]
    ),
}  # fmt: skip


@pytest.mark.parametrize("tile_size", [None, 97.0])
@pytest.mark.parametrize("method", ["statistical", "isolated"])
@pytest.mark.parametrize("name", STRAYS)
def test_stray_points_are_noise(at_once, tiles, tmp_path, name, method, tile_size):
    """As in one call, which keeps them out of the sums."""
    folder = shutil.copytree(tiles, tmp_path / "tiles")
    surveys.write_tile(folder / "strays.laz", *STRAYS[name])
    source, options = f"{folder}/*.laz", surveys.QUIET | {"method": method, "multiplier": 1.0}
    cluster.run("classify_noise", source, tmp_path / "out", tile_size=tile_size, **options)
    expected = of_call("classify_noise", source, options)
    assert surveys.of_job(tmp_path / "out") == expected
    assert {row[1] for row in expected} > {0}


@pytest.mark.parametrize(
    ("spread", "far"),
    [((50, 50, 50), 20), ((50, 1, 1), 20), ((50, 0, 0), 20), ((0, 0, 0), 700)],
)
def test_stray_points_of_any_cloud(at_once, tmp_path, spread, far):
    """The stages find those of the definition, of which some join; also of points at one place."""
    rng = np.random.default_rng(4)
    xyz = np.round(rng.uniform(0, 1, (1200, 3)) * spread, 2)
    xyz[::151] += np.round(rng.standard_cauchy((8, 3)) * far, 2)
    paths = []
    for k, own in enumerate(np.array_split(rng.permutation(1200), 3)):
        paths.append(str(tmp_path / f"{k}.laz"))
        surveys.write_tile(tmp_path / f"{k}.laz", *xyz[own].T)
    found = []

    def choose(outside, core):
        found.append(choose_strays(outside, core))
        return found[-1]

    choose.__module__, choose.__qualname__ = choose_strays.__module__, choose_strays.__qualname__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stray_stages, "choose_strays", choose)
        cluster.run("classify_noise", paths, tmp_path / "out", **surveys.QUIET)
    read = np.concatenate([laspy.read(path).xyz for path in paths])
    (result,) = found
    expected = strays_by_definition(read)
    assert result.arrays["point_id"].tolist() == expected
    assert 0 < len(expected) < 8
    assert surveys.of_job(tmp_path / "out") == of_call(
        "classify_noise", f"{tmp_path}/*.laz", surveys.QUIET
    )


@pytest.mark.parametrize("function", ["classify_noise", "point_features"])
def test_of_no_point_there_is_no_row(at_once, tiles, tmp_path, function):
    nowhere = surveys.QUIET | {"bounds": (0.0, 0.0, 1.0, 1.0)}
    with pytest.warns(spatialq.errors.FileWarning, match="no point is within the bounds"):
        made = cluster.run(function, f"{tiles}/*.laz", tmp_path / "out", **nowhere)
    assert made["rows"] == 0


@pytest.mark.parametrize("function", ["classify_noise", "point_features"])
def test_one_point(at_once, tmp_path, function):
    path = tmp_path / "one.laz"
    surveys.write_tile(path, *np.array([[1.0], [2.0], [3.0]]))
    cluster.run(function, str(path), tmp_path / "out", **surveys.QUIET)
    assert surveys.of_job(tmp_path / "out") == of_call(function, path, surveys.QUIET)
