"""Functions of points and elements as jobs: the rows of one call on all files and models."""

import functools
import json

import laspy
import numpy as np
import pytest

import spatialq
from spatialq import cluster
from spatialq.demo.house import write_house
from spatialq.errors import FileError, FileWarning, JobError, PlacementWarning
from tests.cluster import surveys
from tests.cluster.processes import wait_for_stage
from tests.cluster.test_jobs import needs_ray
from tests.command_line import spatialq_command
from tests.conftest import made_once, real_file
from tests.io.ifc_models import Builder

LOW, HIGH = np.array([-2.0, -2.0, -1.5]), np.array([12.0, 10.0, 11.0])


def make(folder):
    """Write a house, a model of what stands in it, and a scan of both in six files."""
    write_house(folder / "house.ifc")
    builder = Builder()
    builder.add("IfcFurniture", "block", [builder.box((3.0, 3.0, 0.2), (1.0, 0.8, 0.9))])
    builder.add("IfcSpace", "room", [builder.box((1.0, 1.0, 0.0), (8.0, 6.0, 2.5))])
    builder.write(folder / "things.ifc")
    with spatialq.connect() as con:
        rows = con.sql(f"""
            SELECT mesh.vertices, mesh.faces FROM read_ifc('{folder}/*.ifc')
            WHERE len(mesh.faces) > 0 AND ifc_class <> 'IfcSpace'
        """).fetchall()
    corners = [np.reshape(v, (-1, 3))[np.reshape(f, (-1, 3))] for v, f in rows]
    points = scan(np.concatenate(corners), np.random.default_rng(5))
    cells = np.floor((points[:, :2] - LOW[:2]) / [5.0, 6.5]).astype(int)
    for column in range(3):
        for row in range(2):
            here = (cells == (column, row)).all(axis=1)
            surveys.write_tile(folder / f"scan_{row}_{column}.laz", *points[here].T)


def scan(triangles, rng, n=9000):
    """Draw points on triangles, each by its area, with noise; on a fence; and some anywhere."""
    sides = triangles[:, 1:] - triangles[:, :1]
    areas = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    drawn = rng.choice(len(areas), n, p=areas / areas.sum())
    u, v = np.sort(rng.random((2, n)), axis=0)
    on = (
        u[:, None] * triangles[drawn, 0]
        + (v - u)[:, None] * triangles[drawn, 1]
        + (1 - v)[:, None] * triangles[drawn, 2]
    )
    anywhere = LOW + rng.random((n // 9, 3)) * (HIGH - LOW)
    fence = np.array([11.5, 0.0, 0.0]) + rng.random((n // 15, 3)) * [0.0, 6.0, 2.0]
    near = np.concatenate([on, fence])
    return np.concatenate([near + rng.normal(0.0, 0.004, near.shape), anywhere])


@pytest.fixture(scope="session")
def house(tmp_path_factory):
    return made_once(tmp_path_factory, "scanned_house", make)


def in_sql(con, source, models, function, **options):
    """Make the table `expected` of one call in SQL."""
    con.execute(f"CREATE OR REPLACE TABLE elements AS FROM read_ifc('{models}')")
    points = f"'{source}'"
    if function == "point_elements":
        con.execute(f"CREATE OR REPLACE VIEW cloud AS FROM read_points({points})")
        points = "'cloud'"
    more = (
        f"{name} := {list(value) if isinstance(value, tuple) else value!r}"
        for name, value in options.items()
    )
    call = ", ".join([points, "'elements'", *more])
    con.execute(f"CREATE OR REPLACE TABLE expected AS FROM {function}({call})")
    return con.sql("FROM expected")


def require_same(con, folder):
    """Compare the rows of a job with `expected`, every bit of them; count them."""
    found, expected = cluster.table(con, folder, "found"), con.sql("FROM expected")
    assert (found.columns, found.types) == (expected.columns, expected.types)
    for one, other in (("expected", "found"), ("found", "expected")):
        rows = con.sql(f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})").fetchall()
        assert rows == [(0,)]
    ((rows,),) = con.sql("SELECT count(*) FROM found").fetchall()
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0.0, 0.05, 0.8])
@pytest.mark.parametrize("tile_size", [None, 4.0])
def test_points_are_near_the_elements_of_one_call(at_once, house, tmp_path, limit, tile_size):
    source, models = f"{house}/*.laz", f"{house}/*.ifc"
    made = cluster.run(
        "point_elements", source, tmp_path / "out", elements=models, max_distance=limit,
        tile_size=tile_size, **surveys.QUIET,
    )  # fmt: skip
    with spatialq.connect() as con:
        in_sql(con, source, models, "point_elements", max_distance=limit, unit=1.0)
        assert made["rows"] == require_same(con, tmp_path / "out")
    assert made["points"] == 10600
    assert made["parts"] == 6 if tile_size is None else made["parts"] > 6
    assert made["rows"] > (100 if limit == 0 else 9000)


@pytest.mark.slow
@pytest.mark.parametrize("tile_size", [None, 4.0])
def test_points_have_the_faces_of_one_call(at_once, house, tmp_path, tile_size):
    source, models = f"{house}/*.laz", f"{house}/*.ifc"
    made = cluster.run(
        "deviation", source, tmp_path / "out", elements=models, max_distance=0.3,
        tile_size=tile_size, **surveys.QUIET,
    )  # fmt: skip
    with spatialq.connect() as con:
        in_sql(con, source, models, "deviation", max_distance=0.3, unit=1.0)
        assert made["rows"] == require_same(con, tmp_path / "out") == 10600
        ((near,),) = con.sql("SELECT count(global_id) FROM found").fetchall()
    assert 9000 < near < 10600


OF_PLANES = {
    "default": {},
    "not split": {"split": False, "outline": "convex", "max_distance": 0.05},
    "with far faces": {"max_offset": 0.4, "max_angle": 20.0, "min_overlap": 0.01},
    "bounds": {"bounds": (1.5, -1.0, 9.25, 5.5)},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_PLANES)
@pytest.mark.parametrize("tile_size", [None, 3.0])
def test_planes_have_the_elements_of_one_call(at_once, house, tmp_path, name, tile_size):
    source, models, options = f"{house}/*.laz", f"{house}/*.ifc", surveys.QUIET | OF_PLANES[name]
    made = cluster.run(
        "plane_elements", source, tmp_path / "out", elements=models, tile_size=tile_size, **options
    )
    with spatialq.connect() as con:
        in_sql(con, source, models, "plane_elements", **options)
        assert made["rows"] == require_same(con, tmp_path / "out")
        found = con.sql("SELECT plane_id, rank FROM found").fetchall()
        assert found == con.sql("SELECT plane_id, rank FROM expected").fetchall()
        ((elements, others),) = con.sql(
            "SELECT count(global_id), count(*) FILTER (global_id IS NULL) FROM found"
        ).fetchall()
    assert elements > 10
    assert others == (name != "bounds")
    assert made["parts"] == 1


OF_REAL = {
    "point_elements": {"max_distance": 0.1},
    "plane_elements": {"max_offset": 0.3, "max_angle": 20.0},
}


@pytest.fixture(scope="session")
def real(tmp_path_factory):
    return made_once(tmp_path_factory, "real_kitchen", make_real)


def make_real(folder):
    """Write a real scan of a kitchen, moved into a real model of a house, in three files."""
    model = real_file("data/ifc/AC20-FZK-Haus.ifc")
    (folder / "house.ifc").symlink_to(model)
    with spatialq.connect() as con:
        (box,) = con.sql(f"""
            SELECT min(xmin), min(ymin), min(zmin), max(xmax), max(ymax), max(zmax)
            FROM read_ifc('{model}') WHERE ifc_class LIKE 'IfcWall%'
        """).fetchall()
    xyz = laspy.read(real_file("data/indoor/redkitchen_000.laz")).xyz[::5]
    ends = xyz.min(axis=0), xyz.max(axis=0)
    xyz += np.reshape(box, (2, 3)).mean(axis=0) - np.mean(ends, axis=0)
    for k, part in enumerate(np.array_split(xyz[np.argsort(xyz[:, 0])], 3)):
        surveys.write_tile(folder / f"scan_{k}.laz", *part.T)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "executor", "tile_size"),
    [
        ("point_elements", "local", 3.0),
        pytest.param("plane_elements", "ray", None, marks=needs_ray),
    ],
)
def test_a_real_scan_in_a_real_model(real, tmp_path, function, executor, tile_size):
    """On two processes, with less memory than a call takes by itself."""
    source, models, options = (
        f"{real}/*.laz",
        f"{real}/house.ifc",
        surveys.QUIET | OF_REAL[function],
    )
    made = cluster.run(
        function, source, tmp_path / "out", elements=models, executor=executor, workers=2,
        tile_size=tile_size, memory="300MB", **options,
    )  # fmt: skip
    with spatialq.connect() as con:
        in_sql(con, source, models, function, **options)
        assert made["rows"] == require_same(con, tmp_path / "out") > 5
        ((named,),) = con.sql("SELECT count(global_id) FROM found").fetchall()
    assert named > 0


@pytest.mark.slow
def test_points_without_planes(at_once, house, tmp_path):
    source, models = f"{house}/*.laz", f"{house}/*.ifc"
    made = cluster.run(
        "plane_elements", source, tmp_path / "out", elements=models, min_points=100_000,
        **surveys.QUIET,
    )  # fmt: skip
    assert (made["rows"], made["parts"]) == (0, 1)
    with spatialq.connect() as con:
        in_sql(con, source, models, "plane_elements", min_points=100_000, unit=1.0)
        assert require_same(con, tmp_path / "out") == 0


@pytest.mark.slow
def test_models_elsewhere_are_one_sentence(at_once, house, tmp_path):
    builder = Builder()
    builder.add("IfcWall", "far", [builder.box((5000.0, 1.0, 0.0), (8.0, 6.0, 2.5))])
    builder.write(tmp_path / "far.ifc")
    with pytest.raises(
        PlacementWarning, match=r"^plane_elements: the scan has no point near the elements"
    ):
        cluster.run(
            "plane_elements", f"{house}/*.laz", tmp_path / "out", elements=tmp_path / "far.ifc",
            **surveys.QUIET,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "elements must be the path of a building model or several, got None"),
        ({"elements": 7}, "elements must be a path or a list of paths, got 7"),
        ({"elements": []}, "elements must be at least one file, pattern or folder, got none"),
        ({"elements": "{house}/none.ifc"}, r"'.*none\.ifc': there is no such file"),
        ({"elements": "{house}/none*.ifc"}, r"'.*none\*\.ifc': no file matches"),
        ({"elements": "{house}/house.ifc", "geometry": "none"}, "geometry must be 'auto' or"),
        ({"elements": "{house}/house.ifc", "max_distance": None}, "max_distance must be >= 0 m"),
        ({"elements": "{house}/house.ifc", "max_distance": -1.0}, "max_distance must be >= 0 m"),
    ],
)
def test_wrong_arguments_leave_nothing(at_once, house, tmp_path, options, sentence):
    given = {"max_distance": 1.0} | surveys.QUIET | options
    if isinstance(given.get("elements"), str):
        given["elements"] = given["elements"].format(house=house)
    with pytest.raises(ValueError, match=sentence):
        cluster.run("point_elements", f"{house}/*.laz", tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_no_model(at_once, house, tmp_path):
    (tmp_path / "no.ifc").write_text("no model")
    with pytest.raises(FileError, match=r"^point_elements: '.*no\.ifc': .*"):
        cluster.run(
            "point_elements", f"{house}/*.laz", tmp_path / "out", elements=tmp_path / "no.ifc",
            max_distance=0.1, **surveys.QUIET,
        )  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*no.ifc.*")
def test_a_model_without_elements_has_no_points_near_it(at_once, house, tmp_path):
    Builder().write(tmp_path / "no.ifc")
    with pytest.warns(FileWarning, match="^point_elements: no element of the models has a mesh$"):
        made = cluster.run(
            "point_elements", f"{house}/*.laz", tmp_path / "out", elements=tmp_path / "no.ifc",
            max_distance=0.1, **surveys.QUIET,
        )  # fmt: skip
    assert (made["rows"], made["parts"]) == (0, 6)


@pytest.mark.slow
def test_of_spaces_alone_all_are_considered(at_once, house, tmp_path):
    builder = Builder()
    builder.add("IfcSpace", "room", [builder.box((1.0, 1.0, 0.0), (8.0, 6.0, 2.5))])
    builder.write(tmp_path / "rooms.ifc")
    source, models = f"{house}/*.laz", f"{tmp_path}/rooms.ifc"
    cluster.run(
        "point_elements", source, tmp_path / "out", elements=models, max_distance=0.1,
        **surveys.QUIET,
    )  # fmt: skip
    with spatialq.connect() as con:
        in_sql(con, source, models, "point_elements", max_distance=0.1, unit=1.0)
        assert require_same(con, tmp_path / "out") > 100


@pytest.mark.slow
def test_a_job_is_resumed_only_with_the_same_models(at_once, house, tmp_path):
    models = [tmp_path / "a.ifc", tmp_path / "b.ifc"]
    for each in models:
        each.write_bytes((house / "things.ifc").read_bytes())
    run = functools.partial(
        cluster.run, "point_elements", f"{house}/*.laz", tmp_path / "out", max_distance=0.1,
        resume=True, **surveys.QUIET,
    )  # fmt: skip
    assert run(elements=models[0])["resumed"] == 0
    assert run(elements=[str(models[0])])["resumed"] == 6
    with pytest.raises(JobError, match=r"was begun with another elements, \['.*a\.ifc'\], not \["):
        run(elements=models)
    models[0].write_bytes(models[0].read_bytes() + b"\n")
    with pytest.raises(JobError, match=r"a\.ifc' has changed since the job .* was begun"):
        run(elements=models[0])


@pytest.mark.slow
def test_a_job_in_sql(at_once, house, tmp_path):
    with spatialq.connect() as con:
        con.sql(
            f"FROM cluster_run('point_elements', '{house}/*.laz', '{tmp_path}/out', options := "
            f"{{'elements': ['{house}/house.ifc'], 'max_distance': 0.05, 'unit': 1.0}})"
        ).fetchall()
        source, models = f"{house}/*.laz", f"{house}/house.ifc"
        in_sql(con, source, models, "point_elements", max_distance=0.05, unit=1.0)
        assert require_same(con, tmp_path / "out") > 8000


@pytest.mark.slow
def test_on_the_command_line(house, tmp_path):
    """Of a folder of tiles, in which there are models, too."""
    function = "plane_elements"
    options = {"elements": str(house / "house.ifc"), "unit": 1.0} | OF_REAL[function]
    call = (
        f"FROM cluster_run('{function}', '{house}', '{tmp_path}/out', workers := 2, "
        f"memory := '300MB', options := {options}"
    )
    for more in ("", ", resume := true"):
        ran = spatialq_command("sql", f"{call}{more})")
        assert ran.returncode == 0, ran.stderr
    listed = spatialq_command("jobs", tmp_path, "--json")
    assert [(row["function"], row["state"]) for row in json.loads(listed.stdout)] == [
        (function, "done")
    ]
    with spatialq.connect() as con:
        given = surveys.QUIET | OF_REAL[function]
        in_sql(con, f"{house}/*.laz", f"{house}/house.ifc", function, **given)
        assert require_same(con, tmp_path / "out") > 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::spatialq.errors.PlacementWarning")  # the points are in metres
@pytest.mark.parametrize("function", OF_REAL)
def test_coordinates_in_another_unit(at_once, house, tmp_path, function):
    source, models, options = f"{house}/*.laz", f"{house}/*.ifc", {"unit": 0.3048}
    options |= OF_REAL[function]
    cluster.run(function, source, tmp_path / "out", elements=models, **options)
    with spatialq.connect() as con:
        in_sql(con, source, models, function, **options)
        assert require_same(con, tmp_path / "out") > 0


@pytest.mark.slow
def test_a_driver_that_is_killed(house, tmp_path):
    function, stage = "plane_elements", "owners"
    out, given = tmp_path / "out", {"elements": f"{house}/*.ifc"} | OF_REAL[function]
    source = f"{house}/*.laz"
    with surveys.begin(source, out, function=function, tile_size=3.0, **given) as process:
        wait_for_stage(out, stage, process)
        process.kill()
    run = functools.partial(
        cluster.run, function, source, out, tile_size=3.0, resume=True, workers=2,
        **surveys.QUIET, **given,
    )  # fmt: skip
    run()
    with spatialq.connect() as con:
        in_sql(con, source, f"{house}/*.ifc", function, **surveys.QUIET, **OF_REAL[function])
        assert require_same(con, out) > 10
    made = run()
    assert made["resumed"] == made["parts"]
