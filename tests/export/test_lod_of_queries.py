"""Rows of queries as COPC, Potree and 3D Tiles, read back by other readers."""

import json

import laspy
import numpy as np
import pytest

import spatialq
from spatialq.errors import FileError, QueryError

from ..command_line import spatialq_command
from .test_tiles_points import write_scene

pytestmark = pytest.mark.slow  # as a whole: `make check` leaves it to `make test`

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


@pytest.mark.parametrize("name", ["a.copc.laz", "p/metadata.json"])
def test_what_is_wrong_is_said_of_the_output(tmp_path, name):
    target = tmp_path / name
    for query, message in (
        ("SELECT 1.0 AS x, 2.0 AS y, 3.0 AS z, NULL::INTEGER AS n", "column 'n' is NULL in some"),
        ("SELECT 1.0 AS x, 2.0 AS y", "there is no z among x, y"),
    ):
        with spatialq.connect() as con, pytest.raises(FileError) as error:
            spatialq.write(con.sql(query), target)
        assert str(error.value).startswith(f"output: '{target}': ")
        assert message in str(error.value)
    with spatialq.connect() as con, pytest.raises((FileError, QueryError), match="is no folder|no"):
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
