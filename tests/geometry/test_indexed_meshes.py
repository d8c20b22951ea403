"""Meshes whose index is kept give what other meshes give, and make it once."""

import numpy as np
import pytest
from spatialq.udfs.distance import cpu as distance
from spatialq.udfs.intersects_with import cpu as intersects_with

from spatialq.data.meshes import Meshes
from spatialq.functions.catalogue import catalogue
from spatialq.geometry import prepared_meshes, rtree
from spatialq.geometry.indexed_meshes import IndexedMeshes

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
    ("intersects_with", {"broad_phase": "grid"}),
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

    monkeypatch.setattr(rtree, "_along_curve", count("tree", rtree._along_curve))
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
