"""Stages of a toy: what tasks get of the points, of the call, and of each other."""

from dataclasses import dataclass

import numpy as np
import pytest
from spatialq.udfs.owm_ground import stages

from spatialq import cluster
from spatialq.cluster import task
from spatialq.functions.stages import TaskResult
from tests.cluster import surveys
from tests.conftest import made_once


@dataclass(frozen=True)
class Above:
    """Heights in some slices above a level."""

    level: float
    slices: tuple[int, ...]


def program(work):
    above = Above(work.cloud.low[2], (1, 2))
    counted = work.each("count", count, above)
    total = work.once("total", add, counted, work.cloud.size)
    assert total.facts == {"size": work.cloud.size}
    work.rows(mark, total, counted, above, halo=5.0)


def count(part, above):
    assert above.slices == (1, 2)
    n = sum(np.count_nonzero(rows["z"] > above.level) for rows in part.batches())
    return {"count": np.array([n])}


def add(counted, size):
    found = [each.arrays["count"] for each in counted]
    assert len(found) == 4
    return TaskResult({"total": np.sum(found, axis=0)}, {"size": size})


def mark(part, total, counted, above):
    """Give the points of the core; `hits` is how many points of all are above the level."""
    points = part.points()
    rows = part.own(points)
    n = rows["x"].size
    assert 0 < n < points["x"].size
    assert counted.arrays["count"] == np.count_nonzero(rows["z"] > above.level)
    return rows | {"hits": np.full(n, total.arrays["total"]), "filled": np.zeros(n, np.bool_)}


@pytest.fixture
def toy(monkeypatch):
    """The toy has the columns of `owm_ground`."""
    monkeypatch.setattr(stages, "owm_ground", program)


def test_what_tasks_get(at_once, toy, tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(task, "PACKAGES", (*task.PACKAGES, "tests."))
    tiles = made_once(
        tmp_path_factory, "four_tiles", lambda path: surveys.make(path, columns=2, rows=2)
    )
    made = cluster.run("owm_ground", f"{tiles}/*.laz", tmp_path / "out", **surveys.QUIET)
    assert (made["parts"], made["rows"]) == (4, 2800)
    rows = surveys.of_job(tmp_path / "out")
    assert [row[0] for row in rows] == list(range(2800))
    z = np.array([row[3] for row in rows])
    assert {row[4] for row in rows} == {np.count_nonzero(z > z.min())}


def test_tasks_call_nothing_else(at_once, toy, tmp_path, tmp_path_factory):
    tiles = made_once(
        tmp_path_factory, "four_tiles", lambda path: surveys.make(path, columns=2, rows=2)
    )
    with pytest.raises(ValueError, match=r"below spatialq\.udfs\. or .* got 'tests\..*:count'"):
        cluster.run("owm_ground", f"{tiles}/*.laz", tmp_path / "out", **surveys.QUIET)
