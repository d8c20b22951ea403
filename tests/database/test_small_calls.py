"""What one call does once, which no time shows: counted."""

from collections import Counter

import numpy as np
import pytest

import spatialq
from spatialq.execution import call
from spatialq.functions.catalogue import Function
from spatialq.functions.sql_function import SqlFunction

QUERY = "FROM owm_ground('points', unit := 1, device := 'cpu')"


@pytest.fixture
def con():
    with spatialq.connect() as con:
        con.execute("SELECT setseed(0.5)")
        con.execute(
            "CREATE TABLE points AS SELECT i AS point_id, i // 10 AS tile, random() AS x, "
            "random() AS y, random() AS z FROM range(200) t(i)"
        )
        yield con


@pytest.fixture
def counted(monkeypatch):
    """Count validations, plans, and calls of SQL functions by name."""
    found = Counter()

    def count(owner, attribute, name):
        inner = getattr(owner, attribute)

        def counting(*arguments, **named):
            found[name(*arguments)] += 1
            return inner(*arguments, **named)

        monkeypatch.setattr(owner, attribute, counting)

    count(Function, "choose", lambda *_: "validated")
    count(call, "plan_call", lambda *_: "planned")
    count(SqlFunction, "__call__", lambda function, *_: function.name)
    return found


def test_a_call_in_sql_is_bound_and_planned_once(con, counted):
    """Options are validated where the query is bound, and again as they reach the kernel."""
    con.execute(QUERY).fetchall()
    assert counted == {
        "spatialq_tables_udf": 1,
        "spatialq_owm_ground_sql": 1,
        "spatialq_frame": 1,
        "validated": 2,
        "planned": 1,
    }


def test_a_call_in_python_is_validated_and_planned_once(counted):
    x, y, z = np.random.default_rng(1).random((3, 100))
    spatialq.run("owm_ground", x, y, z, device="cpu", window_size=1.0)
    assert counted == {"validated": 1, "planned": 1}


def test_groups_are_validated_and_planned_once(con, counted):
    con.execute("SET threads = 1")  # several may begin at once, each with its own groups
    list_ = "owm_ground_list(point_id, x, y, z, cell_size := 12.345)"  # that no other test asks for
    con.execute(f"SELECT {list_} FROM points GROUP BY tile").fetchall()
    assert (counted["validated"], counted["planned"]) == (1, 1)
