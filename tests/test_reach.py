"""Coordinates that are too far away: one answer of all functions, on the CPU and the GPU."""

import re
from dataclasses import fields

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq import cluster
from spatialq.data.meshes import Meshes
from spatialq.errors import StrayPointsWarning
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import (
    ElementsInput,
    GridInput,
    PointsAndOtherInput,
    PointsInput,
)
from tests.element_tables import box, put
from tests.kernels import on_device

from .kernels import WITH_ELEMENTS, beside, put_others
from .kernels import other_of as table_of

FUNCTIONS = sorted(catalogue())
OF_POINTS = [
    name
    for name in FUNCTIONS
    if isinstance(catalogue()[name].inputs, PointsInput | PointsAndOtherInput)
]
OF_ARRAYS_THERE = [
    name
    for name in FUNCTIONS
    if isinstance(catalogue()[name].inputs, PointsInput | ElementsInput)
    and catalogue()[name].has_kernel("gpu")
]
SENTENCE = (
    r"{}: {} must be from -8e\+12 to 8e\+12, where double precision tells apart a millimetre, "
    r"got -?1e\+15"
)
BOXES = [box((0, 0, 0), (5, 5, 5)), box((4, 4, 4), (9, 9, 9))]
OF_POPS = {"scales": [3.0], "steps": [3.0], "example_scale": 20.0}
OF_GRIDS = {"pops_features": OF_POPS, "pops_patches": OF_POPS, "contours": {"interval": 0.5}}
"""Options of functions of grids that fit the small one of these tests."""
# the boxes are not where the points are
pytestmark = pytest.mark.filterwarnings("ignore::spatialq.errors.PlacementWarning")


def refused(function, axis):
    return pytest.raises(ValueError, match=SENTENCE.format(function, axis))


def call(function, moved, device="cpu", put_there=np.asarray, **options):
    """Call any function on moved points or cells, or on two boxes of which one is moved."""
    inputs = catalogue()[function].inputs
    if isinstance(inputs, ElementsInput):
        vertices, faces = BOXES[1]
        boxes = Meshes.of([BOXES[0], (vertices + moved, faces)])
        there = Meshes(*(put_there(getattr(boxes, each.name)) for each in fields(boxes)))
        return spatialq.run_elements(function, there, device=device, **options)
    if isinstance(inputs, GridInput):
        x, y = (each.ravel() for each in np.meshgrid(np.arange(30.0), np.arange(30.0)))
        columns = x + moved[0], y + moved[1], np.sin(x)
        return spatialq.run(
            function, *columns, device=device, **OF_GRIDS.get(function, {}), **options
        )
    columns = (put_there(each + far) for each, far in zip(cloud(), moved, strict=True))
    return spatialq.run(function, *columns, device=device, **other_of(function), **options)


def other_of(function):
    """Give what a function takes beside points."""
    return {"elements": BOXES} if function in WITH_ELEMENTS else table_of(function, 0, 0, 9, 9)


def cloud(n=400):
    x, y = np.random.default_rng(3).uniform(0, 20, (2, n))
    return x, y, 0.05 * x


def along(axis, far):
    return np.where(np.array(list("xyz")) == axis, far, 0.0)


@pytest.mark.parametrize("axis", "xyz")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_functions_answer_alike(function, axis):
    if axis == "z" and isinstance(catalogue()[function].inputs, GridInput):
        assert call(function, along(axis, 1e15))  # z of cells is no coordinate, but their value
        return
    inputs = catalogue()[function].inputs
    if isinstance(inputs, PointsAndOtherInput) and axis not in inputs.columns:
        assert call(function, along(axis, 1e15))  # z does not matter
        return
    for far in (1e15, -1e15):
        with refused(function, axis):
            call(function, along(axis, far))


@pytest.mark.parametrize("axis", "xyz")
@pytest.mark.parametrize("function", OF_ARRAYS_THERE)
def test_and_so_they_do_on_a_gpu(device, function, axis):
    with refused(function, axis):
        call(function, along(axis, 1e15), "gpu", lambda values: on_device(device, values))


@pytest.mark.parametrize("far", [1e12, -7.9e12])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_nearer_is_not_refused(function, far):
    sentence = ""
    try:
        call(function, along("x", far))
    except ValueError as error:  # of functions with a limit of their own
        sentence = str(error)
    assert "a millimetre" not in sentence


@pytest.mark.parametrize("function", OF_POINTS)
def test_few_points_and_many(function):
    """A cloud of less than 100 points has no stray ones, and half of a cloud is none either."""
    given = other_of(function)
    for n, some in ((50, slice(1)), (400, slice(200))):
        x, y, z = cloud(n)
        x[some] = 1e15
        with refused(function, "x"):
            spatialq.run(function, x, y, z, **given)


@pytest.mark.parametrize(
    "function", [each for each in OF_POINTS if not catalogue()[each].declaration.keeps_strays]
)
def test_stray_points_are_left_out_as_before(function):
    given = other_of(function)
    x, y, z = cloud()
    x[7] = 1e15
    with pytest.warns(StrayPointsWarning, match=rf"{function}: 1 of 400 points is far"):
        spatialq.run(function, x, y, z, **given)


@pytest.mark.parametrize("function", OF_POINTS)
def test_points_outside_of_the_bounds_do_not_count(function):
    given = other_of(function)
    x, y, z = cloud()
    x[200:] = 1e15
    spatialq.run(function, x, y, z, bounds=[0, 0, 20, 20], **given)


def test_vertices_of_no_face_do_not_count():
    vertices, faces = BOXES[1]
    more = np.vstack([vertices, [[1e15, 0, 0]]])
    for function in ("distance", "intersects_with"):
        found, expected = (
            spatialq.run_elements(function, [BOXES[0], (each, faces)]) for each in (more, vertices)
        )
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)


def test_the_limit_is_one_of_metres():
    x, y, z = cloud()
    spatialq.run("detect_planes", x + 1e15, y, z, unit=0.001)
    with pytest.raises(ValueError, match=r"x must be from -8e\+09 to 8e\+09, .* got 1e\+10"):
        spatialq.run("detect_planes", np.full_like(x, 1e10), y, z, unit=1000)


@pytest.fixture(scope="module", params=["native", "lists"])
def con(request):
    """Both transports: the extension, and lists."""
    opened = spatialq.connect() if request.param == "native" else duckdb.connect()
    with opened as con:
        spatialq.install(con)
        con.execute(
            "CREATE TABLE points AS SELECT i AS point_id, 1e15::DOUBLE + i AS x, i % 7 AS y, "
            "i % 3 AS z FROM range(30) r(i)"
        )
        con.execute("CREATE TABLE cells AS SELECT 1e15::DOUBLE + i AS x, j AS y, 1 AS z "
                    "FROM range(30) r(i), range(30) s(j)")  # fmt: skip
        (near, faces), (vertices, _) = BOXES
        put(con, "elements", global_id=["near", "far"],
            mesh=[(near, faces), (vertices + np.array([1e15, 0, 0]), faces)])  # fmt: skip
        put_others(con, 0, 0, 9, 9)
        yield con


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_in_sql(con, function):
    inputs = catalogue()[function].inputs
    named = {"direction": "above"}.get(function, function)
    if isinstance(inputs, ElementsInput):
        statement = f"FROM {named}('elements', 'elements')"
    elif isinstance(inputs, GridInput):
        given = "".join(f", {key} := {value}" for key, value in OF_GRIDS.get(function, {}).items())
        statement = f"FROM {named}('cells'{given})"
    else:
        statement = f"FROM {named}('points'{beside(function)})"
    with pytest.raises(duckdb.Error) as raised:
        con.sql(statement).fetchall()
    said = str(raised.value)
    assert re.search(SENTENCE.format(function, "x"), said)
    if isinstance(inputs, ElementsInput):
        assert said.rstrip().endswith("in the mesh of global_id far of a")


def test_of_files(con, tmp_path):
    lines = (f"{1e15 + i} {i % 7} {i % 3}" for i in range(30))
    (tmp_path / "far.xyz").write_text("\n".join(lines))
    file = tmp_path / "far.xyz"
    with pytest.raises(duckdb.Error, match=SENTENCE.format("build_lod", "x")):
        con.sql(f"FROM build_lod('{file}')").fetchall()
    with pytest.raises(ValueError, match=SENTENCE.format("build_lod", "x")):
        spatialq.write_lod(file, tmp_path / "lod.parquet")


@pytest.mark.slow
def test_of_jobs(tmp_path):
    lines = (f"{1e15 + i} {i % 7} {i % 3}" for i in range(30))
    (tmp_path / "far.xyz").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=SENTENCE.format("detect_planes", "x")):
        cluster.run("detect_planes", tmp_path / "far.xyz", tmp_path / "job", workers=1)
