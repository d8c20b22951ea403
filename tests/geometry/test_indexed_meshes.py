"""Meshes whose index is kept give what other meshes give, and make it once."""

from itertools import pairwise

import numpy as np
import pytest
from spatialq.udfs.distance import cpu as distance
from spatialq.udfs.intersects_with import cpu as intersects_with

from spatialq.data.meshes import Meshes
from spatialq.functions.catalogue import catalogue
from spatialq.geometry import indexed_meshes, prepared_meshes, rtree
from spatialq.geometry.indexed_meshes import IndexedMeshes
from spatialq.runtime import budget

from ..element_tables import box
from ..kernels import assert_same

KERNELS = {"intersects_with": intersects_with.run, "distance": distance.run}


def boxes(n, seed):
    """Boxes that often meet, one of them without triangles."""
    rng = np.random.default_rng(seed)
    low = np.round(rng.uniform(0, 6, (n, 3)), 1)
    meshes = [box(at, at + np.round(rng.uniform(0.2, 2, 3), 1)) for at in low]
    meshes[n // 2] = (np.empty((0, 3)), np.empty((0, 3), np.int32))
    return Meshes.of(meshes)


MODEL, OTHERS = boxes(60, 1), boxes(9, 2)
CALLS = [
    ("intersects_with", {}),
    ("intersects_with", {"relations": True, "tolerance": 0.05}),
    ("intersects_with", {"method": "pairmesh"}),
    ("intersects_with", {"broad_phase": "none"}),
    ("distance", {"max_distance": 0.5}),
    ("distance", {"k": 3}),
    ("distance", {}),
]


@pytest.mark.parametrize(("name", "options"), CALLS)
def test_results_are_the_same(name, options):
    run, chosen = KERNELS[name], catalogue()[name].choose(options)
    kept, others = IndexedMeshes.over(MODEL), IndexedMeshes.over(OTHERS)
    for a, b in ((MODEL, OTHERS), (OTHERS, MODEL), (MODEL, None)):
        expected = run(a, b, options=chosen)
        assert len(expected["a"])
        for one in (a, kept if a is MODEL else others):
            for other in (b, b and (kept if b is MODEL else others)):
                assert_same(run(one, other, options=chosen), expected)


def test_an_index_is_made_once(monkeypatch):
    chosen = catalogue()["intersects_with"].choose({})
    made = []

    def count(kind, function):
        def counted(*arguments):
            made.append((kind, len(arguments[0])))
            return function(*arguments)

        return counted

    monkeypatch.setattr(rtree, "along_curve", count("tree", rtree.along_curve))
    prepare = prepared_meshes.starts_of
    monkeypatch.setattr(prepared_meshes, "starts_of", count("solids", prepare))
    kept = IndexedMeshes.over(MODEL)
    kept.index()
    assert made == [("tree", 60), ("solids", 61)]
    made.clear()
    one = OTHERS.take(np.array([3]))
    for _ in range(3):
        intersects_with.run(kept, one, options=chosen)
        intersects_with.run(one, kept, options=chosen)
        intersects_with.run(kept, options=chosen)
    assert [kind for kind, _ in made] == ["solids"] * 6  # of the single box
    assert max(n for _, n in made) == 2


def test_some_meshes_are_taken():
    rows = np.array([7, 0, 30, 59])
    some = MODEL.take(rows)
    for k, row in enumerate(rows):
        for starts, values in (("vertex_starts", "vertices"), ("face_starts", "faces")):
            first, stop = getattr(MODEL, starts)[row : row + 2]
            begin, end = getattr(some, starts)[k : k + 2]
            expected = getattr(MODEL, values)[first:stop]
            np.testing.assert_array_equal(getattr(some, values)[begin:end], expected)


@pytest.mark.parametrize(("name", "options"), CALLS)
@pytest.mark.parametrize("most", [1, 3_000, 9_000])
def test_pairs_in_batches_give_the_same(name, options, most, monkeypatch):
    """A memory budget that only some elements fit into changes nothing."""
    run, chosen = KERNELS[name], catalogue()[name].choose(options)
    several = []
    for a, b in ((MODEL, OTHERS), (MODEL, None), (IndexedMeshes.over(MODEL), OTHERS)):
        expected = run(a, b, options=chosen)
        with monkeypatch.context() as small:
            small.setattr(budget, "current", lambda: most * indexed_meshes.BUDGET_PARTS)
            batches = counted_batches(small)
            assert_same(run(a, b, options=chosen), expected)
            several.append(len(batches))
    assert min(several) > 1


def counted_batches(monkeypatch):
    """List the batches in which pairs are prepared from now on."""
    found, prepare = [], indexed_meshes._prepare_some
    monkeypatch.setattr(
        indexed_meshes, "_prepare_some", lambda *given: found.append(given) or prepare(*given)
    )
    return found


def test_a_part_is_as_large_as_the_budget_allows():
    """Cuts lie between elements of a, and only one element's pairs may be too large."""
    rng = np.random.default_rng(3)
    rows_a = np.sort(rng.integers(0, 40, 300))
    rows_b = rng.integers(0, 25, 300)
    sizes_a, sizes_b = rng.integers(1, 9, 40), rng.integers(1, 9, 25)
    for most in (1, 30, 60, 10_000):
        ends = np.empty(301, np.int64)
        n = indexed_meshes.cut_pairs(rows_a, rows_b, sizes_a, sizes_b, most, ends)
        begins = [0, *ends[:n]]
        assert begins[-1] == 300
        for first, stop in pairwise(begins):
            assert first < stop
            assert stop == 300 or rows_a[stop] != rows_a[stop - 1]
            here_a, here_b = np.unique(rows_a[first:stop]), np.unique(rows_b[first:stop])
            size = sizes_a[here_a].sum() + sizes_b[here_b].sum()
            assert size <= most or here_a.size == 1
