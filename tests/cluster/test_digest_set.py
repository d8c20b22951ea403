"""The set of texts of a driver, against one of Python."""

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spatialq.cluster import digest_set
from spatialq.cluster.digest_set import DigestSet


@given(st.lists(st.text(max_size=3)), st.integers(1, 5))
def test_it_is_a_set(texts, new):
    before, digest_set.NEW = digest_set.NEW, new
    try:
        found, expected = DigestSet(), set()
        for text in texts:
            assert (text in found) == (text in expected)
            found.add(text)
            expected.add(text)
            assert len(found) == len(expected)
        assert all(text in found for text in texts)
    finally:
        digest_set.NEW = before


def test_digests_that_end_with_zeros(monkeypatch):
    digests = {name: bytes([1]) * k + bytes(16 - k) for k, name in enumerate("abcdefgh")}
    monkeypatch.setattr(digest_set, "_digest", digests.get)
    monkeypatch.setattr(digest_set, "NEW", 2)
    found = DigestSet()
    for name in "aceg":
        found.add(name)
    assert [name in found for name in "abcdefgh"] == [True, False] * 4


def test_names_of_many_tasks_take_few_bytes():
    tracemalloc.start()
    try:
        found = DigestSet()
        for k in np.random.default_rng(1).permutation(100_000).tolist():
            found.add(f"{k:07}.parquet")
        assert len(found) == 100_000
        assert tracemalloc.get_traced_memory()[0] < 40 * 100_000
    finally:
        tracemalloc.stop()
