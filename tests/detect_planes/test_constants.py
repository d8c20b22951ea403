"""What the CUDA source defines once more is the same as in Python."""

import re

import pytest
from spatialq.udfs.detect_planes import accumulator, assign, cells, gpu, nodes, votes

TEXT = gpu.SOURCE.read_text()
DEFINED = dict(re.findall(r"^#define (\w+) (.*?)(?: *//.*)?$", TEXT, re.MULTILINE))
SHARED = [
    (name, getattr(module, name))
    for module in (accumulator, assign, cells, nodes, votes)
    for name in DEFINED
    if hasattr(module, name)
]


@pytest.mark.parametrize(("name", "value"), SHARED)
def test_numbers(name, value):
    text = DEFINED[name].replace("BITS", DEFINED["BITS"])
    assert eval(text, {}) == value


def test_none_is_left_out():
    of_the_device = {"ALL", "INFINITE", "NOT_A_NUMBER", "PI", "WARPS", "TILE", "BATCH", "QUEUE"}
    of_the_device |= {"ROWS", "MOMENT_FIRSTS", "MOMENT_SECONDS"}
    assert {name for name, _ in SHARED} == set(DEFINED) - of_the_device
