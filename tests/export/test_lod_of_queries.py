"""Rows of queries as COPC, Potree and 3D Tiles, read back by other readers."""

import json
import warnings

import laspy
import numpy as np
import pytest

import spatialq
from spatialq.errors import FileError, FileWarning

from ..command_line import spatialq_command
from .test_tiles_points import write_scene
from .tiles_reading import check

pytestmark = pytest.mark.slow  # as a whole

QUERY = (
    "SELECT * EXCLUDE (red), z - 100 AS height, point_id::INTEGER * 2 AS number "
    "FROM read_points('{}') WHERE z > 105"
)
"""Some points, without a colour that is complete, with extra columns."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return write_scene(tmp_path_factory.mktemp("scene") / "a.laz")


def expected(scene):
    with spatialq.connect() as con:
        rows = con.sql(QUERY.format(scene)).fetchnumpy()
    assert 100 < len(rows["x"]) < 3900
    return rows


def in_order(*columns):
    rows = np.stack([np.asarray(each, float) for each in columns], axis=1)
    return rows[np.lexsort(rows.T[::-1])]


def test_copc_has_the_rows_and_the_columns(tmp_path, scene):
    target = tmp_path / "high.copc.laz"
    result = spatialq_command("sql", QUERY.format(scene), "-o", target, "--json")
    assert result.returncode == 0, result.stderr
    rows = expected(scene)
    assert json.loads(result.stdout) == [{"output": str(target), "rows": len(rows["x"])}]
    with laspy.CopcReader.open(target) as reader:
        cloud = reader.query()
        assert reader.header.parse_crs().to_epsg() == 25832
        assert tuple(reader.header.scales) == tuple(laspy.read(scene).header.scales)
    names = ("x", "y", "z", "height", "number", "classification", "intensity")
    found = in_order(*(cloud[name] for name in names))
    assert np.allclose(found, in_order(*(rows[name] for name in names)), rtol=0, atol=1e-9)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_potree_has_the_rows_and_the_columns(tmp_path, scene):
    target = tmp_path / "potree" / "metadata.json"
    with spatialq.connect() as con:
        count = spatialq.from_sql(con, QUERY.format(scene)).write(target)
    rows = expected(scene)
    assert count == len(rows["x"])
    said = json.loads(target.read_text())
    assert said["points"] == count
    ranges = {each["name"]: (each["min"], each["max"]) for each in said["attributes"]}
    for name in ("height", "number"):
        low, high = ranges[name]
        assert np.allclose([low[0], high[0]], [rows[name].min(), rows[name].max()])
    size = sum(each["size"] for each in said["attributes"])
    assert (target.parent / "octree.bin").stat().st_size == count * size


@pytest.mark.parametrize("implicit", [False, True])
def test_tiles_have_what_functions_find(tmp_path, implicit):
    """Heights above ground and planes, of which some are NULL; classes as before."""
    path = write_scene(tmp_path / "a.laz", crs=None)
    query = f"""SELECT p.x, p.y, p.z, p.red, p.green, p.blue, p.classification, g.height,
            f.plane_id, g.is_ground, p.point_id AS number
        FROM read_points('{path}') AS p
        JOIN classify_ground('{path}', unit := 1) AS g USING (point_id)
        JOIN plane_points('{path}', unit := 1, min_points := 20, max_distance := 0.5) AS f
        USING (point_id)"""
    target = tmp_path / "tiles" / "tileset.json"
    with spatialq.connect() as con:
        rows = con.sql(query).fetchnumpy()
        assert spatialq.write(con.sql(query), target, implicit=implicit) == 4000
    assert "implicitTiling" in json.loads(target.read_text())["root"] or not implicit
    found = check(target)
    assert found.faults == []
    order = np.argsort(found.values("_NUMBER"))
    assert np.array_equal(found.values("_NUMBER")[order], np.arange(4000))
    rows = {name: values[np.argsort(rows["number"])] for name, values in rows.items()}
    for name in ("height", "plane_id", "classification", "is_ground"):
        there, got = rows[name], found.values(f"_{name.upper()}")[order]
        expected = np.ma.filled(np.ma.array(there, np.float32), np.finfo(np.float32).min)
        assert np.array_equal(got, expected), name
    assert 0 < np.ma.count_masked(rows["plane_id"]) < 4000
    moved = np.array(found.transform).reshape(4, 4)[3, :3]
    positions = np.concatenate([leaf.positions for leaf in found.leaves])[order] + moved
    assert np.allclose(positions, np.stack([rows[axis] for axis in "xyz"], axis=1), atol=1e-3)


def test_more_attributes_than_a_viewer_draws_are_warned_of(tmp_path):
    """CesiumJS, which gives each a vertex attribute of WebGL, showed nothing of 17."""
    names = [f"a{k}" for k in range(13)]
    colours = "9::USMALLINT AS red, 9::USMALLINT AS green, 9::USMALLINT AS blue"
    columns = ", ".join([colours, *(f"1.0 AS {name}" for name in names)])
    point = f"SELECT 1.0 AS x, 2.0 AS y, 3.0 AS z, {columns}"
    target = tmp_path / "t" / "tileset.json"
    with spatialq.connect() as con:
        with pytest.warns(FileWarning, match=r"tileset\.json' has 15 attributes besides"):
            spatialq.write(con.sql(point), target)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            spatialq.write(con.sql(f"SELECT * EXCLUDE (a0) FROM ({point})"), target)
    assert not any("attributes" in str(each.message) for each in told)


def test_what_tiles_cannot_hold_is_said(tmp_path):
    target = tmp_path / "t" / "tileset.json"
    point = "SELECT 1.0 AS x, 2.0 AS y, 3.0 AS z"
    for more, message in (
        ("20000000 AS n", "column 'n' has the value 20000000, but attributes of points have whole"),
        ("[1.0, 2.0]::DOUBLE[2] AS n", "column 'n' is DOUBLE[2], but attributes of points are"),
        ("NULL::TINYINT AS n", "column 'n' is NULL in some rows"),
        ("'tree' AS n", "column 'n'"),
    ):
        with spatialq.connect() as con, pytest.raises(FileError) as error:
            spatialq.write(con.sql(f"{point}, {more}"), target)
        assert str(error.value).startswith(f"output: '{target}': {message}")
    with spatialq.connect() as con, pytest.raises(ValueError, match="output: colour_bits must"):
        spatialq.write(con.sql(point), target, colour_bits=7)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.copc.laz", "p/metadata.json", "p/tileset.json"])
def test_what_is_wrong_is_said_of_the_output(tmp_path, name):
    target = tmp_path / name
    for query, message in (
        ("SELECT 1.0 AS x, 2.0 AS y, 3.0 AS z, NULL::TINYINT AS n", "column 'n' is NULL in some"),
        ("SELECT 1.0 AS x, 2.0 AS y", "there is no z among x, y"),
    ):
        with spatialq.connect() as con, pytest.raises(FileError) as error:
            spatialq.write(con.sql(query), target)
        assert str(error.value).startswith(f"output: '{target}': ")
        assert message in str(error.value)
    with spatialq.connect() as con, pytest.raises(FileError, match="there is no folder"):
        spatialq.write(con.sql("SELECT 1.0 AS x, 2.0 AS y, 3.0 AS z"), tmp_path / "q" / "p" / name)
    assert list(tmp_path.iterdir()) == []


def test_a_query_may_name_its_output(tmp_path, scene):
    """The result takes its place when it is complete."""
    target = tmp_path / "a.copc.laz"
    spatialq.write_lod(scene, target)
    with spatialq.connect() as con:
        for fewer in (2000, 1000):
            count = spatialq.write(con.sql(f"FROM read_points('{target}') LIMIT {fewer}"), target)
            assert count == fewer
    with laspy.CopcReader.open(target) as reader:
        assert len(reader.query()) == 1000
