"""The status of an element from areas that are seen, in view and seen through."""

import numpy as np
import pytest
from spatialq.udfs.coverage import Options
from spatialq.udfs.coverage.verdict import STATUSES, _status

AREA, VIEW, THROUGH = 0.332, 0.106, 0.055
"""Square metres of a small element: its surface, what is in view, and what is seen through."""


@pytest.mark.parametrize(
    ("seen", "expected"), [(0.0, "not found"), (0.005, "not found"), (0.024, "not enough data")]
)
def test_points_on_a_tenth_of_what_is_in_view_are_no_empty_place(seen, expected):
    sums = np.array([[seen, seen, VIEW, THROUGH, 0, 0, 0, 0, 0, 0, 0, 0.0]])
    options = Options(scanner=(0.0, 0.0, 0.0))
    assert seen < options.min_area, "too little to be called uncertain"
    (code,) = _status(sums, np.array([AREA]), np.array([False]), np.array([True]), options)
    assert STATUSES[code] == expected


@pytest.mark.parametrize(("before", "expected"), [(0.05, "not found"), (0.06, "not enough data")])
def test_points_close_in_front_of_more_than_is_seen_through_may_be_the_element(before, expected):
    sums = np.array([[0, 0, VIEW, THROUGH, before, 0, 0, 0, 0, 0, 0, 0.0]])
    options = Options(scanner=(0.0, 0.0, 0.0))
    (code,) = _status(sums, np.array([AREA]), np.array([False]), np.array([True]), options)
    assert STATUSES[code] == expected


def test_what_another_element_may_have_the_points_of_is_no_empty_place():
    """A floor of 30 square metres, all of it scanned and in the plane of another's face."""
    sums = np.array([[30.0, 30.0, 33.3, 0.69, 0, 0, 0, 0, 0, 2.6, 29.55, 29.55]])
    options = Options(scanner=(0.0, 0.0, 0.0))
    (code,) = _status(sums, np.array([66.6]), np.array([False]), np.array([True]), options)
    assert STATUSES[code] == "uncertain"
