"""The scan of the house while it is built: what is wrong there is found, and nothing else."""

import numpy as np
import pytest

import spatialq
from spatialq.demo.house_site import HIDDEN, MISSING, MOVED, MOVEMENT, PALLET, STATIONS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def con(world):
    with spatialq.connect() as con:
        con.execute(f"CREATE TABLE elements AS FROM read_ifc('{world.ifc}')")
        con.execute(f"CREATE TABLE site AS FROM read_las('{world.site}')")
        yield con


def test_what_is_wrong_is_found_and_nothing_else(con):
    scanner = np.ravel(STATIONS).tolist()
    rows = con.sql(
        "SELECT name, status, dx, dy, dz FROM coverage('site', 'elements', unit := 1, "
        f"tolerance := 0.015, scanner := {scanner}) JOIN elements USING (global_id)"
    ).fetchall()
    found = {name: (status, moved) for name, status, *moved in rows}
    assert {name for name, (status, _) in found.items() if status == "not found"} == {MISSING}
    assert {name for name, (status, _) in found.items() if status == "displaced"} == {MOVED}
    np.testing.assert_allclose(found[MOVED][1], MOVEMENT, atol=0.002)
    assert found[HIDDEN][0] == "occluded"


def test_what_is_in_no_model_is_found_and_nothing_else(con):
    ((count, *box),) = con.sql(
        "SELECT point_count, xmin, ymin, zmin, xmax, ymax, zmax "
        "FROM unmodelled('site', 'elements', unit := 1)"
    ).fetchall()
    low, high = np.array(box).reshape(2, 3)
    assert count > 500
    # beams at its edges give points between it and what is behind
    assert (low > np.array(PALLET[0]) - 0.1).all()
    assert (high < np.array(PALLET[1]) + 0.1).all()
    assert high[2] == pytest.approx(PALLET[1][2], abs=0.02)
