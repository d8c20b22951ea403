"""Which of the combinations of values are not slow."""

from .examples import combinations, thinned


def test_all_are_there_and_check_takes_each_value():
    axes = "abcde", [1, 2], (None, 0.5, 2.5)
    found = combinations(*axes)
    assert len({each.values for each in found}) == len(found) == 5 * 2 * 3
    few = [each.values for each in found if not each.marks]
    assert len(few) == 5
    for k, axis in enumerate(axes):
        assert {each[k] for each in few} == set(axis)


def test_all_cases_are_there_and_check_takes_some():
    found = thinned({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5})
    assert [each.values for each in found] == [("a",), ("b",), ("c",), ("d",), ("e",)]
    assert [each.values for each in found if not each.marks] == [("a",), ("e",)]
