"""`plane_elements` with what it cannot take."""

import math

import duckdb
import numpy as np
import pytest

import spatialq

from ..element_tables import box, put
from .cases import ROOM


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        con.execute("CREATE TABLE points (point_id BIGINT, x DOUBLE, y DOUBLE, z DOUBLE)")
        con.execute("INSERT INTO points VALUES (1, 0, 0, 0), (7, 1, NULL, 0)")
        put(con, "elements", global_id=["wall"], mesh=[box((0, 0, 0), (4, 0.3, 3))])
        broken = box((0, 0, 0), (4, 0.3, math.nan))
        put(con, "broken", global_id=["wall"], mesh=[broken])
        con.execute("CREATE VIEW one AS FROM points WHERE y = 0")
        yield con


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "'points', 'elements'",
            "plane_elements: y must not be NULL, got 1 of them, the first with point_id 7",
        ),
        ("'one', 'elements', max_offset := -1", "plane_elements: max_offset must be > 0 metres"),
        ("'one', 'elements', unit := 0", "plane_elements: unit must be > 0 metres"),
        (
            "'one', 'elements', device := 'tpu'",
            "plane_elements: device must be 'auto', 'cpu', 'gpu' or one GPU",
        ),
        (
            "'one', 'broken'",
            "elements has 1 mesh with vertices that are not finite, the first is global_id wall",
        ),
        ("'one', 'nowhere'", "nowhere"),
        ("'one', 'points'", "(global_id|mesh)"),
    ],
)
def test_wrong_arguments_are_one_sentence(con, call, message):
    with pytest.raises(duckdb.Error, match=message):
        con.sql(f"FROM plane_elements({call})").fetchall()


def test_elements_are_asked_for_and_only_where_they_belong():
    x = y = z = np.zeros(3)
    with pytest.raises(ValueError, match=r"^run: plane_elements .* points and elements: give elem"):
        spatialq.run("plane_elements", x, y, z)
    with pytest.raises(ValueError, match=r"^run: owm_ground .* of points, it takes no elements$"):
        spatialq.run("owm_ground", x, y, z, elements=ROOM)
    with pytest.raises(ValueError, match=r"^run_elements: plane_elements is a function of points"):
        spatialq.run_elements("plane_elements", ROOM)
    with pytest.raises(ValueError, match=r"^plane_elements: elements: mesh 0: faces must be integ"):
        spatialq.run("plane_elements", x, y, z, elements=[(np.zeros((3, 3)), np.zeros((1, 3)))])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_refused(value):
    x, y, z = np.random.default_rng(1).random((3, 100))
    x[[17, 40]] = value
    with pytest.raises(ValueError, match=r"^plane_elements: .*finite, got 2 points.*point_id 17"):
        spatialq.run("plane_elements", x, y, z, elements=ROOM)


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_points_without_a_plane_give_nothing(n):
    x = y = z = np.zeros(n)
    found = spatialq.run("plane_elements", x, y, z, elements=ROOM)
    assert {len(values) for values in found.values()} == {0}
