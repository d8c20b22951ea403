"""Cells of boxes: every pair of boxes that meet is in one of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spatialq.cluster.methods.box_cells import box_cells


def pairs_of_cells(low, high, most):
    """List the pairs of each cell whose common lower corner is in it."""
    found = []
    for cell in box_cells(low, high, most):
        for k, i in enumerate(cell.rows):
            for j in cell.rows[k + 1 :]:
                corner = np.maximum(low[i], low[j])
                if ((corner >= cell.low) & (corner < cell.high)).all() and (
                    np.minimum(high[i], high[j]) >= corner
                ).all():
                    found.append((i, j))
    return sorted(found)


def pairs(low, high):
    """Compare each box with each."""
    n = len(low)
    return [
        (i, j)
        for i in range(n)
        for j in range(i + 1, n)
        if (np.maximum(low[i], low[j]) <= np.minimum(high[i], high[j])).all()
    ]


@given(
    arrays(np.int8, (24, 3), elements=st.integers(0, 9)),
    arrays(np.int8, (24, 3), elements=st.integers(0, 4)),
    st.integers(1, 8),
)
def test_each_pair_is_in_one_cell(low, size, most):
    low = low.astype(float)
    high = low + size
    assert pairs_of_cells(low, high, most) == pairs(low, high)


def test_many_boxes_are_divided():
    rng = np.random.default_rng(5)
    low = rng.uniform(0, 100, (3000, 3))
    cells = list(box_cells(low, low + 1, 100))
    assert max(cell.rows.size for cell in cells) <= 100
    assert sum(cell.rows.size for cell in cells) < 1.5 * len(low)
    assert np.unique(np.concatenate([cell.rows for cell in cells])).size == len(low)
    volume = sum(np.prod(np.clip(cell.high, 0, 101) - np.clip(cell.low, 0, 101)) for cell in cells)
    assert volume == pytest.approx(101.0**3)


@pytest.mark.parametrize("n", [0, 1, 50])
def test_boxes_that_cannot_be_divided_are_in_one_cell(n):
    low = np.zeros((n, 3))
    (cell,) = box_cells(low, low + 1, 10)
    assert cell.rows.tolist() == list(range(n))
    assert np.isinf([*cell.low, *cell.high]).all()
