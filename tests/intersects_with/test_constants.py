"""What the CUDA source defines once more is the same as in Python."""

import re
from pathlib import Path

import pytest
from spatialq.udfs.intersects_with import RELATIONS, gpu, narrow, pair, point_in_solid

TEXT = Path(gpu.SOURCE).read_text()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WARPS", gpu.WARPS),
        ("GRAZES", narrow.GRAZES),
        ("TRIES", point_in_solid.TRIES),
        ("SURFACES", point_in_solid.SURFACES),
        ("NOISE", pair.NOISE),
        ("PARALLEL", pair.PARALLEL),
    ],
)
def test_numbers(name, value):
    (found,) = re.findall(rf"const \w+ {name} = ([^;]+);", TEXT)
    assert float(found) == value


@pytest.mark.parametrize(
    ("names", "values"),
    [
        ([name.upper() for name in RELATIONS], range(len(RELATIONS))),
        (["APART", "CROSS", "GRAZE", "FLUSH", "NEAR"],
         [pair.APART, pair.CROSS, pair.GRAZE, pair.FLUSH, pair.NEAR]),
        (["EVIDENCE", "DISTANCE", "CLOSEST"], [gpu.EVIDENCE, gpu.DISTANCE, gpu.CLOSEST]),
    ],
)  # fmt: skip
def test_codes(names, values):
    assert f"enum {{ {', '.join(names)} }};" in TEXT
    assert list(values) == list(range(len(names)))


def test_the_codes_of_the_relations():
    assert [getattr(narrow, name.upper()) for name in RELATIONS] == list(range(len(RELATIONS)))
