"""What the CUDA source defines once more is the same as in Python."""

import re
from pathlib import Path

import pytest
from spatialq.udfs.intersects_with import (
    RELATIONS,
    cell_bounds,
    cells,
    contraction,
    gpu,
    inscribed_ball,
    narrow_phase,
    triangle_pair,
)

TEXT = Path(gpu.SOURCE).read_text()
SEARCH = Path(gpu.SEARCH).read_text()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WARPS", gpu.WARPS),
        ("CLOSE", narrow_phase.CLOSE),
        ("MAX_SHALLOW", narrow_phase.MAX_SHALLOW),
        ("MAX_STEPS", inscribed_ball.MAX_STEPS),
        ("MAX_SURFACES", inscribed_ball.MAX_SURFACES),
        ("NOISE", triangle_pair.NOISE),
        ("PARALLEL", triangle_pair.PARALLEL),
    ],
)
def test_numbers(name, value):
    (found,) = re.findall(rf"const \w+ {name} = ([^;]+);", TEXT)
    assert float(found) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WARPS", gpu.WARPS),
        ("STACK", cells.STACK),
        ("ROWS", cells.ROWS),
        ("PATCH", cell_bounds.PATCH),
        ("ACCURATE", cells.ACCURATE),
        ("ACCURATE_SHARE", cells.ACCURATE_SHARE),
        ("SLIGHT", cells.SLIGHT),
        ("PULLED", cell_bounds.PULLED),
        ("FLAT", cell_bounds.FLAT),
        ("FLAT_METRES", contraction.FLAT),
        ("SHORT", contraction.SHORT),
    ],
)
def test_numbers_of_the_search(name, value):
    (found,) = re.findall(rf"const \w+ {name} = ([^;]+);", SEARCH)
    assert float(found) == value


def test_a_cell_waits_in_three_points():
    assert "3 * STACK" in SEARCH
    assert gpu.CELL_BYTES == 3 * 3 * 8


@pytest.mark.parametrize(
    ("names", "values"),
    [
        ([name.upper() for name in RELATIONS], range(len(RELATIONS))),
        (["APART", "CROSS", "SHALLOW", "COPLANAR", "NEAR"],
         [triangle_pair.APART, triangle_pair.CROSS, triangle_pair.SHALLOW,
          triangle_pair.COPLANAR, triangle_pair.NEAR]),
        (["CLASSIFY", "DISTANCE", "CLOSEST"], [gpu.CLASSIFY, gpu.DISTANCE, gpu.CLOSEST]),
    ],
)  # fmt: skip
def test_codes(names, values):
    assert f"enum {{ {', '.join(names)} }};" in TEXT
    assert list(values) == list(range(len(names)))


def test_the_codes_of_the_relations():
    assert [getattr(narrow_phase, name.upper()) for name in RELATIONS] == list(
        range(len(RELATIONS))
    )
