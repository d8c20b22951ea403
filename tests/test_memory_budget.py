"""Every function of points gives the same to the bit, whether its arrays are in memory or files."""

import pytest

from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import PointsAndElementsInput, PointsInput
from spatialq.runtime import budget, buffers, file_memory

from .kernels import arguments_of, arrays_in, assert_same, cases_of, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not file_memory.IS_POSSIBLE, reason="arrays are in files on Linux only"),
]
WITH_POINTS = [
    (name, case)
    for name, each in catalogue().items()
    if isinstance(each.inputs, PointsInput | PointsAndElementsInput)
    for case in getattr(cases_of(name), "PARITY", cases_of(name).CASES)
]


@pytest.mark.parametrize(("function", "case"), WITH_POINTS)
def test_every_case_is_the_same_in_files(function, case, tmp_path, monkeypatch):
    arguments, options = arguments_of(function, case)
    expected = arrays_in(run(function, "cpu", arguments, **options))
    monkeypatch.setattr(buffers, "IN_FILES", 64)
    monkeypatch.setattr(buffers, "CHUNK", 7)
    monkeypatch.setattr(buffers, "TAKEN", 5)
    with budget.limited(1, tmp_path), file_memory.noting() as note:
        found = run(function, "cpu", arguments, **options)
    assert_same(found, expected)
    if len(next(iter(expected.values()))) > 64:
        assert note.bytes > 64
