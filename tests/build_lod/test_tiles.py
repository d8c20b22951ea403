"""Clouds built tile by tile are as those built at once."""

from dataclasses import replace

import numpy as np
import pytest
from spatialq.udfs.build_lod import Options, cpu, external_partitioning, tiles
from spatialq.udfs.build_lod.split import split
from spatialq.udfs.build_lod.tree import BITS, Root
from spatialq.udfs.build_lod.validation import validate

from spatialq.data.columns import Lists, Text, concatenate
from spatialq.errors import StrayPointsWarning
from spatialq.execution.call import Execution
from spatialq.functions.catalogue import catalogue

from ..examples import combinations
from .cases import (
    CASES,
    STRATEGIES,
    cloud,
    joined,
    lattice,
    moved,
    neighbours,
    random,
    surface,
    teapot_in_a_stadium,
)

pytestmark = pytest.mark.slow  # as a whole

ATTRIBUTES = ("red", "green", "blue", "intensity", "classification")


def rows(table):
    """Rows of a table by the names of their nodes, in which nothing is left of the order."""
    n = len(table["level"])
    plain = {}
    for name, column in table.items():
        if isinstance(column, Text):
            plain[name] = [None if code < 0 else column.names[code] for code in column.codes]
        elif isinstance(column, Lists):
            parts = zip(column.offsets[:-1], column.offsets[1:], strict=True)
            plain[name] = [
                {field: values[a:b].tolist() for field, values in column.columns.items()}
                for a, b in parts
            ]
        else:
            plain[name] = column.tolist()
        assert len(plain[name]) == n
    found = {plain["node"][k]: {name: plain[name][k] for name in plain} for k in range(n)}
    assert len(found) == n
    return found


def nodes(table):
    """Names and parents in the order of the rows."""
    texts = table["node"], table["parent"]
    return [[(*each.names, None)[code] for code in each.codes] for each in texts]


def enter_all(columns):
    return validate(*(columns[name] for name in (*"xyz", "point_id", *ATTRIBUTES)))


def tiled(columns, options, budget):
    return tiles.run(enter_all(columns), options, cpu.build, budget)


def batches(columns, n):
    """Parts of n points, in the order of their ids."""
    ranked = np.argsort(columns["point_id"])
    for first in range(0, len(ranked), n):
        some = ranked[first : first + n]
        yield {name: None if each is None else each[some] for name, each in columns.items()}


def through_files(columns, options, budget, folder, n=1000):
    written, cube = external_partitioning.write_points(batches(columns, n), folder / "points")
    tiler = tiles.Tiler(cube, options, cpu.build, max(budget, options.max_points))
    return list(external_partitioning.rows(tiler, written))


def assert_same_rows(found, expected):
    found, expected = rows(found), rows(expected)
    assert found.keys() == expected.keys()
    for name, row in expected.items():
        assert found[name] == row, name


DEEP = (
    "random, places of points",
    "coincident points",
    "nearest places",
    "a heavy voxel",
    "leaves beside nodes",
)
"""Also built of tiles that are leaves."""


@pytest.mark.parametrize(
    ("case", "budget", "strategy"),
    [*combinations(CASES, [100], STRATEGIES), *combinations(DEEP, [1], STRATEGIES)],
)
def test_tiles_are_joined_to_the_tree_of_one_build(case, budget, strategy):
    columns, chosen = CASES[case]
    options = Options(strategy=strategy, **chosen)
    whole = catalogue()["build_lod"].kernel("cpu")(**columns, options=options)
    kinds = [each.dtype for each in whole["samples"].columns.values()]
    found = tiled(columns, options, budget)
    assert_same_rows(found, whole)
    assert [each.dtype for each in found["samples"].columns.values()] == kinds
    assert nodes(found) == nodes(whole)


LARGE = joined(surface(30_000), moved(teapot_in_a_stadium(), scale=5.0))


@pytest.mark.slow
@pytest.mark.parametrize("budget", [700, 5000, 40_000])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_files_and_memory_give_the_same(strategy, budget, tmp_path, monkeypatch):
    monkeypatch.setattr(external_partitioning, "BLOCK", 999)
    options = Options(strategy=strategy, max_points=500, grid_size=64, full_precision=True)
    whole = catalogue()["build_lod"].kernel("cpu")(**LARGE, options=options)
    assert_same_rows(tiled(LARGE, options, budget), whole)
    found = through_files(LARGE, options, budget, tmp_path)
    assert_same_rows(concatenate(found), whole)
    assert list(tmp_path.iterdir()) == []


def test_points_far_from_the_others_need_no_more_disk(tmp_path):
    """However deep the tiles lie, the points are in the files twice at most."""
    strays = cloud(*np.full((3, 1), 1e4)), cloud(*np.full((3, 1), 1e9))
    columns = joined(surface(3000), *strays)
    sizes = []

    def build(*given):
        sizes.append(sum(path.stat().st_size for path in tmp_path.iterdir()))
        return cpu.build(*given)

    options = Options(max_points=100, grid_size=8)
    written, cube = external_partitioning.write_points(batches(columns, 1000), tmp_path / "points")
    tiler = tiles.Tiler(cube, options, build, 500)
    found = concatenate(list(external_partitioning.rows(tiler, written)))
    assert_same_rows(found, catalogue()["build_lod"].kernel("cpu")(**columns, options=options))
    assert max(sizes) == 3002 * external_partitioning.RECORD.itemsize


def test_points_of_one_place_need_not_fit_where_they_are_in_memory():
    columns = cloud(*np.repeat([[1.0], [2.0], [3.0]], 500, axis=1))
    columns = joined(columns, random(2000))
    options, sizes = Options(max_points=20, grid_size=8), []

    def build(points, *others):
        sizes.append(len(points.x))
        return cpu.build(points, *others)

    found = tiles.run(enter_all(columns), options, build, 100)
    assert_same_rows(found, catalogue()["build_lod"].kernel("cpu")(**columns, options=options))
    assert max(sizes) <= 100


def test_places_of_the_last_level_are_leaves_without_a_kernel():
    columns, roots = neighbours(60), []

    def build(points, cube, options, root):
        roots.append(root.level)
        return cpu.build(points, cube, options, root)

    options = Options(max_points=10, grid_size=8)
    found = tiles.run(enter_all(columns), options, build, 100)
    assert_same_rows(found, catalogue()["build_lod"].kernel("cpu")(**columns, options=options))
    assert found["level"].max() == BITS not in roots


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_more_points_than_32_bits_count(strategy):
    """Each point stands for 2**33: so do masses, sums and weights."""
    times = 2**33
    options = Options(strategy=strategy, max_points=60, grid_size=8)
    given = enter_all(lattice(16, 1.0))
    tiler = tiles.Tiler(given.cube, options, cpu.build, 64)
    ordered = cpu.sort(given.points, given.cube, Root())
    leaves, order = split(ordered, tiler.budget), ordered.order
    assert leaves.points.tolist() == 64 * [64]  # no leaves, whose points cannot be so many

    def many(k, times):
        inside = order[leaves.first[k] : leaves.first[k] + leaves.points[k]]
        points = tiles.take(given.points, inside)
        tree = cpu.build(points, given.cube, options, leaves.root(k))
        tree = replace(
            tree,
            points=tree.points * times,
            mass=tree.mass.astype(np.uint64) * np.uint64(times),
            sums=tree.sums * np.uint64(times),
        )
        yield from ()
        return tiles.Part(tree, points, given.classification[inside]).first_node()

    above = []
    for each in (1, times):
        few = replace(leaves, first=leaves.first * each, points=leaves.points * each)
        rows_above = tiler.of_tiles(few, Root(), lambda k, each=each: many(k, each))
        above.append(concatenate(list(rows_above)[::-1]))
    assert above[0]["points"].tolist() == [4096] + 8 * [512]
    np.testing.assert_array_equal(above[1].pop("points"), above[0].pop("points") * times)
    assert_same_rows(above[1], above[0])


def test_stray_points_are_left_out_of_files_as_of_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr(external_partitioning, "BLOCK", 999)
    inside = joined(surface(3000), cloud(*np.zeros((3, 0))))
    columns = joined(cloud(*np.full((3, 1), -1e9)), inside, cloud(*np.full((3, 2), 1e6)))
    options = Options(max_points=100, grid_size=8)
    execution = Execution("cpu", "", is_free=False)
    given = batches(columns, 1000), tmp_path, options, execution, 500
    with pytest.warns(StrayPointsWarning) as told:
        found = concatenate(list(external_partitioning.rows_of(*given)))
    expected = catalogue()["build_lod"].kernel("cpu")(
        **inside | {"point_id": np.arange(1, 3001)}, options=options
    )
    assert_same_rows(found, expected)
    (message,) = (str(each.message) for each in told)
    assert message == (
        "build_lod: 3 of 3003 points are far from all others, at (-1000000000, -1000000000, "
        "-1000000000), (1000000, 1000000, 1000000) and (1000000, 1000000, 1000000): they were left "
        "out"
    )
    assert list(tmp_path.iterdir()) == []
