"""`cloud_distance` on the GPU, or its CUDA sources on the host: what it takes and refuses."""

import numpy as np
import pytest

import spatialq
from spatialq.planner import devices

from ..kernels import arguments_of, arrays_in, assert_same, on_device, on_host, run, run_both

METHODS = ["nearest", "m3c2"]


@pytest.mark.parametrize("case", METHODS)
@pytest.mark.parametrize("of_normals", [None, "host", "device"])
def test_points_on_the_device_with_normals_in_either_memory(device, case, of_normals):
    given, options = arguments_of("cloud_distance", case)
    normals = np.random.default_rng(2).normal(size=(3, len(given["x"])))
    normals = dict(zip(("nx", "ny", "nz"), normals, strict=True)) if of_normals else {}
    expected = run("cloud_distance", "cpu", given | normals, **options)
    there = {name: on_device(device, each) for name, each in given.items()}
    if of_normals == "device":
        normals = {name: on_device(device, each) for name, each in normals.items()}
    found = run("cloud_distance", "gpu", there | normals, **options)
    assert_same(on_host(device, found), arrays_in(expected))


@pytest.mark.parametrize("case", METHODS)
@pytest.mark.parametrize("missing", ["nx", "ny", "nz"])
@pytest.mark.usefixtures("device")
def test_two_coordinates_of_normals_are_none(case, missing):
    given, options = arguments_of("cloud_distance", case)
    normals = dict.fromkeys(("nx", "ny", "nz"), np.ones(len(given["x"]))) | {missing: None}
    assert_same(*run_both("cloud_distance", given | normals, **options))


@pytest.mark.parametrize("case", METHODS)
@pytest.mark.parametrize("which", ["points", "reference"])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.usefixtures("device")
def test_what_is_not_finite_is_refused_in_the_same_words(case, which, value):
    given, options = arguments_of("cloud_distance", case)
    rows = given["y"] if which == "points" else given["reference"].y
    rows[[7, 9]] = value
    sentences = []
    for kind in ("cpu", "gpu"):
        with pytest.raises(ValueError, match=r"must be finite, got 2 points") as error:
            run("cloud_distance", kind, given, **options)
        sentences.append(str(error.value))
    assert sentences[0] == sentences[1]
    assert sentences[0].startswith("cloud_distance: reference" if which == "reference" else
                                   "cloud_distance: x, y and z")  # fmt: skip


@pytest.mark.parametrize("case", METHODS)
def test_points_are_in_one_memory(device, case):
    given, options = arguments_of("cloud_distance", case)
    given["y"] = on_device(device, given["y"])
    with pytest.raises(ValueError, match=r"cloud_distance: .* must be in one memory"):
        run("cloud_distance", "gpu", given, **options)


@pytest.mark.parametrize("more", ["", ", method := 'm3c2', radius := 1, normal_radius := 2"])
@pytest.mark.parametrize("normals", ["", ", if(range % 5 = 0, NULL, 0) AS nx, 0.2 AS ny, 1 AS nz"])
@pytest.mark.usefixtures("device")
def test_the_same_rows_in_sql(monkeypatch, more, normals):
    if devices.gpu().problem:
        there = [devices.DeviceInfo("gpu", "host", 2, 2**33, "")]
        monkeypatch.setattr(devices, "gpus", lambda: there)
    rows = "range AS point_id, range % 20 / 2 AS x, range // 20 / 2 AS y, sin(range) / 9 AS z"
    with spatialq.connect() as con:
        con.execute(
            f"CREATE TABLE later AS SELECT {rows}{normals} FROM range(400);"
            f"CREATE TABLE before AS SELECT {rows} FROM range(7, 380)"
        )
        found, expected = (
            con.execute(
                "FROM cloud_distance('later', 'before', unit := 1, "
                f"device := '{device}'{more}) ORDER BY point_id"
            ).fetchall()
            for device in ("gpu", "cpu")
        )
        used = con.execute('SELECT device FROM spatialq_log() ORDER BY "at"').fetchall()[-2:]
    assert [device.partition(":")[0] for (device,) in used] == ["gpu", "cpu"]
    assert found == expected
    assert sum(row[1] is None for row in found) == (80 if more and normals else 0)
