"""Lengths and coordinate reference systems of the commands: converted, the same everywhere."""

import json
import warnings

import duckdb
import laspy
import numpy as np
import pyarrow.parquet as pq
import pyproj
import pytest
import rasterio

import spatialq
from spatialq.errors import CrsError, CrsWarning
from spatialq.workflows.lengths import with_numbers

from .command_line import spatialq_command

SURVEY_FOOT = 1200 / 3937
SYSTEMS = {
    "metres": ("EPSG:25832", 1.0, 1.0),
    "feet": ("EPSG:2222", 0.3048, 0.3048),
    "survey feet": ("EPSG:2230", SURVEY_FOOT, SURVEY_FOOT),
    "mixed": ("EPSG:2230+5703", SURVEY_FOOT, 1.0),
    "none": (None, 1.0, 1.0),
}
"""CRS, metres in a unit of x and y, and of z."""


def write_floor(path, crs="EPSG:25832", across=1.0, up=1.0, point_format=7):
    """A floor of 40 by 30 metres that is 3 cm thick, with a wall; coordinates in any units."""
    rng = np.random.default_rng(5)
    x, y = rng.uniform(0, (40, 30), (6000, 2)).T
    z = np.where(np.arange(6000) < 5000, rng.uniform(0, 0.03, 6000), rng.uniform(0, 10, 6000))
    x = np.where(np.arange(6000) < 5000, x, 0.0)
    header = laspy.LasHeader(point_format=point_format, version="1.4")
    header.scales, header.offsets = [1e-5] * 3, [1000.0, 2000.0, 0.0]
    if crs:
        header.add_crs(pyproj.CRS(crs))
    cloud = laspy.LasData(header)
    cloud.x, cloud.y, cloud.z = 1000 + x / across, 2000 + y / across, z / up
    cloud.return_number[:] = cloud.number_of_returns[:] = 1
    cloud.write(path)
    return path


@pytest.fixture(scope="module")
def floors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("floors")
    return {name: write_floor(folder / f"{name}.las", *system) for name, system in SYSTEMS.items()}


def stated_crs(path):
    """The CRS of a LAS file, by laspy."""
    with laspy.open(path) as file:
        return file.header.parse_crs()


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    ("text", "in_metres"),
    [("2mm", 0.002), ("0.5m", 0.5), ("20ft", 6.096), ("20ftUS", 20 * SURVEY_FOOT), ("3in", 0.0762)],
)
def test_lengths_are_converted_to_the_unit_of_the_file(system, text, in_metres):
    from spatialq.functions.catalogue import catalogue

    crs, across, _ = SYSTEMS[system]
    crs = None if crs is None else pyproj.CRS(crs).to_json()
    given = {"max_distance": text}
    for function, expected in (
        ("classify_ground", in_metres),
        ("detect_planes", in_metres / across),
    ):
        parameters = catalogue()[function].parameters
        with warnings.catch_warnings():
            warnings.simplefilter("error" if crs else "ignore", CrsWarning)
            found = with_numbers("f", given, parameters, "f.las", crs)
        assert found["max_distance"] == pytest.approx(expected, rel=1e-9)


def test_units_of_the_file_are_converted_to_metres():
    from spatialq.functions.catalogue import catalogue

    parameters = catalogue()["classify_ground"].parameters
    crs = pyproj.CRS("EPSG:2222").to_json()
    found = with_numbers("f", {"window_size": "10u", "cell_size": 7}, parameters, "f.las", crs)
    assert found == {"window_size": pytest.approx(3.048), "cell_size": 7}


SAYS = "must say its unit, got"
REFUSED = {
    "planes {feet} --max-distance 2": f"planes: max_distance {SAYS} '2': 2m is 2 metres, 2u is 2 "
    "units of x and y of '{feet}', which are 0.3048 m",
    "planes {none} --max-distance 2": f"planes: max_distance {SAYS} '2': 2m is 2 metres, 2u is 2 "
    "units of x and y of '{none}', whose CRS is not known",
    "planes {feet} --max-distance 2km": "planes: max_distance must be a length >= 0 such as 2mm "
    "(mm, cm, m, in, ft, ftUS, us-ft, u), got '2km'",
    "ground {metres} -o t.tif --resolution 2": f"ground: resolution {SAYS} '2': 2m is 2 metres, "
    "2u is 2 units of x and y of '{metres}', which are 1 m",
    "ground {metres} -o t.tif --window-size 10": f"ground: window_size {SAYS} '10': 10m is 10 "
    "metres, 10u is 10 units of x and y of '{metres}', which are 1 m",
    "clash a.ifc --tolerance 2": f"clash: tolerance {SAYS} '2': 2mm is 2 millimetres, 2m is 2 "
    "metres",
    "clash a.ifc --closer-than 50": f"clash: closer_than {SAYS} '50': 50mm is 50 millimetres, 50m "
    "is 50 metres",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_a_number_alone_is_refused_with_its_readings(floors, tmp_path, arguments):
    filled = [each.format(**floors) for each in arguments.split()]
    result = spatialq_command(*filled, cwd=tmp_path)
    assert result.stderr.splitlines()[-1] == f"error: {REFUSED[arguments].format(**floors)}"
    assert (result.returncode, result.stdout) == (1, "")
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
@pytest.mark.parametrize("system", ["metres", "feet", "survey feet", "mixed"])
def test_planes_do_not_depend_on_the_units_of_the_file(floors, tmp_path, system):
    _, across, _ = SYSTEMS[system]
    target = tmp_path / "p.parquet"
    result = spatialq_command(
        "planes", floors[system], "--max-distance", "5cm", "-o", target, "--json"
    )
    assert result.returncode == 0, result.stderr
    assert ("heights of" in result.stderr) == (system == "mixed")
    (row,) = json.loads(result.stdout)
    assert [plane["orientation"] for plane in row["planes"]] == ["horizontal", "vertical"]
    floor = row["planes"][0]
    assert floor["area"] * across**2 == pytest.approx(40 * 30, rel=0.02)
    assert floor["rmse"] * across == pytest.approx(0.03 / 12**0.5, rel=0.1)
    geo = json.loads(pq.read_metadata(target).metadata[b"geo"])
    axes = pyproj.CRS.from_json_dict(geo["columns"]["boundary"]["crs"]).axis_info
    assert [axis.unit_conversion_factor for axis in axes] == pytest.approx([across] * len(axes))


@pytest.mark.slow
@pytest.mark.parametrize("system", ["metres", "mixed"])
@pytest.mark.parametrize("memory", [None, 0.001])
def test_levels_of_detail_are_cubes_in_space(floors, tmp_path, system, memory):
    _, across, _ = SYSTEMS[system]
    target = tmp_path / "n.parquet"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spatialq.write_lod(floors[system], target, max_points=500, memory=memory)
    said = [str(each.message) for each in caught if each.category is CrsWarning]
    assert ["heights of" in each for each in said] == [True] * (system == "mixed")
    with duckdb.connect() as con:
        ((top,),) = con.sql(
            f"SELECT max(s.z) FROM (SELECT unnest(samples) AS s FROM '{target}' WHERE is_leaf)"
        ).fetchall()
    assert top * across == pytest.approx(10, abs=0.1)
    crs = pyproj.CRS.from_json(pq.read_metadata(target).metadata[b"crs"].decode())
    factors = [axis.unit_conversion_factor for axis in crs.axis_info]
    assert factors == pytest.approx([across] * len(factors))


COMMANDS = {
    "ground": ["-o", "o.laz", "-o", "o.tif"],
    "planes": ["-o", "o.laz", "-o", "o.parquet"],
    "lod": ["-o", "o.parquet"],
    "load": ["-d", "o.duckdb"],
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_another_crs_than_that_of_the_file_is_an_error_unless_it_overrides(
    floors, tmp_path, command
):
    call = [command, floors["metres"], *COMMANDS[command], "--crs", "EPSG:25833"]
    result = spatialq_command(*call, cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].endswith(
        f": '{floors['metres']}' is in ETRS89 / UTM zone 32N (EPSG:25832), but crs is ETRS89 / UTM "
        "zone 33N (EPSG:25833): leave crs out, or give override_crs as well if the file is wrong"
    )
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".duckdb"]
    same = spatialq_command(*call[:-1], "EPSG:25832", cwd=tmp_path)
    assert same.returncode == 0, same.stderr
    for path in tmp_path.iterdir():
        path.unlink()
    result = spatialq_command(*call, "--override-crs", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert {crs_of(path) for path in tmp_path.iterdir()} == {25833}


def crs_of(path):
    """The EPSG code of the CRS that an output has, read without spatialq."""
    if path.suffix == ".laz":
        return stated_crs(path).to_epsg()
    if path.suffix == ".tif":
        with rasterio.open(path) as file:
            return file.crs.to_epsg()
    if path.suffix == ".duckdb":
        with duckdb.connect(str(path)) as con:
            ((comment,),) = con.sql(
                "SELECT comment FROM duckdb_tables() WHERE table_name = 'points'"
            ).fetchall()
        return pyproj.CRS(json.loads(comment)["crs"]).to_epsg()
    metadata = pq.read_metadata(path).metadata
    if b"crs" in metadata:
        return pyproj.CRS.from_json(metadata[b"crs"].decode()).to_epsg()
    geo = json.loads(metadata[b"geo"])
    return pyproj.CRS.from_json_dict(geo["columns"]["boundary"]["crs"]).to_epsg()


@pytest.mark.parametrize("point_format", [1, 7])
@pytest.mark.parametrize("given", ["EPSG:25832", "EPSG:25832+7837", "EPSG:2230"])
def test_points_have_the_crs_that_was_given_as_wkt1(tmp_path, point_format, given):
    source = write_floor(tmp_path / "a.las", None, point_format=point_format)
    target = tmp_path / "b.laz"
    spatialq.write_planes(source, target, crs=given)
    assert stated_crs(target).equals(pyproj.CRS(given))
    with laspy.open(target) as file:
        header = file.header
    assert header.global_encoding.wkt
    (record,) = [vlr for vlr in header.vlrs if vlr.user_id == "LASF_Projection"]
    assert record.string.startswith(("PROJCS[", "COMPD_CS["))  # WKT1, not WKT2
    points, before = laspy.read(target), laspy.read(source)
    assert np.array_equal(points.X, before.X)


def test_override_crs_needs_a_crs(floors):
    result = spatialq_command("lod", floors["metres"], "--override-crs")
    assert result.stderr.startswith("error: lod: override_crs needs crs")


def test_metres_that_are_assumed_are_announced(floors, tmp_path):
    result = spatialq_command("ground", floors["none"], "-o", tmp_path / "t.csv")
    sentence = f"warning: ground: the CRS of '{floors['none']}' is not known, so its coordinates"
    assert result.stderr.startswith(sentence)
    assert result.stderr.count("warning:") == 1
    spoken = spatialq_command("planes", floors["none"], "--max-distance", "5cm").stderr
    assert spoken.startswith(f"warning: planes: the CRS of '{floors['none']}' is not known")
    assert spatialq_command("planes", floors["none"], "--max-distance", "0.05u").stderr == ""


def test_metres_of_a_grid_in_degrees_are_refused(tmp_path):
    path = tmp_path / "a.tif"
    z = np.random.default_rng(1).normal(size=(40, 40)).astype(np.float32)
    profile = {"driver": "GTiff", "width": 40, "height": 40, "count": 1, "dtype": z.dtype}
    place = rasterio.Affine(0.001, 0, 10, 0, -0.001, 50)
    with rasterio.open(path, "w", crs="EPSG:4326", transform=place, **profile) as file:
        file.write(z, 1)
    with pytest.raises(CrsError, match=r"scales cannot be 300m, since x and y of .* are degrees"):
        spatialq.write_features(path, scales=("300m",), example_scale="2km")
    with pytest.warns(CrsWarning, match="degrees"):
        row = spatialq.write_features(path, scales=("0.006u",), example_scale="0.03u")
    assert row["examples"] > 0
