"""Which files have points of a tile: those of its border, too."""

import numpy as np
import pytest

from spatialq.cluster.layout import Layout
from spatialq.cluster.survey import Survey


def survey_of(*boxes):
    """A survey of files of which only the extents are known."""
    n = len(boxes)
    ones, stamps = np.ones(n, np.int64), np.zeros((n, 2), np.int64)
    extents = np.array(boxes, np.float64)
    low, high = (np.column_stack([extents[:, k : k + 2], np.zeros(n)]) for k in (0, 2))
    paths = [f"{k}.laz" for k in range(n)]
    inner, run = np.zeros((n, 2, 3)), np.zeros(n, np.int64)
    return Survey(paths, stamps, ones, ones, np.arange(n), low, high, inner, run, [b""] * n)


@pytest.mark.parametrize("west", np.arange(-30, 0) / 10)
def test_points_on_the_eastern_side_of_a_file_are_in_a_tile(west):
    """Also where the width of the file is not a number of float64."""
    layout = Layout(survey_of((west, 0.0, 100.0, 50.0)), 100.0)
    assert {core.box[0] for core in layout.cores()} == {-100.0, 0.0, 100.0}


def test_files_of_any_box():
    rng = np.random.default_rng(1)
    corners = np.round(rng.uniform(-100, 100, (200, 2)), 1)
    boxes = np.hstack([corners, corners + np.round(rng.uniform(0, 30, (200, 2)), 1)])
    layout = Layout(survey_of(*boxes), None)
    for xmax, ymax in boxes[:, 2:]:
        box = xmax, ymax, xmax + 10, ymax + 10
        touching = (
            (boxes[:, 2] >= box[0]) & (boxes[:, 0] <= box[2])
            & (boxes[:, 3] >= box[1]) & (boxes[:, 1] <= box[3])
        )  # fmt: skip
        assert layout.files(box).tolist() == np.flatnonzero(touching).tolist()
