"""What the CUDA sources define once more is the same as in Python."""

import re
from pathlib import Path

import pytest

from spatialq.geometry import (
    clusters,
    eigen,
    elementary,
    neighbours,
    point_polygons,
    prepared_meshes_gpu,
    rtree,
    triangles,
    winding,
)

FOLDER = Path(triangles.__file__).parent


@pytest.mark.parametrize(
    ("source", "name", "value"),
    [
        ("boxes.cuh", "CLUSTER", clusters.CLUSTER),
        ("solids.cu", "WARPS", prepared_meshes_gpu.WARPS),
        ("triangles.cuh", "DISTANCE_ROUNDING", triangles.ROUNDING),
        ("triangles.cuh", "THIN", triangles.THIN),
        ("winding.cuh", "TURN", winding.TURN),
        ("eigen.cuh", "SWEEPS", eigen.SWEEPS),
        ("elementary.cuh", "HALF_ROOT", elementary.HALF_ROOT),
        ("elementary.cuh", "LN2_HIGH", elementary.LN2_HIGH),
        ("elementary.cuh", "NEWTON_STEPS", elementary.NEWTON_STEPS),
        ("neighbours.cuh", "ROOM", neighbours.ROOM),
        ("point_polygons.cuh", "NOTHING", point_polygons.NOTHING),
        ("point_polygons.cuh", "ROUNDING", point_polygons.ROUNDING),
        ("point_polygons.cuh", "SPLITTER", point_polygons.SPLITTER),
        ("rtree.cu", "FAN_BITS", rtree.FAN_OUT.bit_length() - 1),
    ],
)
def test_numbers(source, name, value):
    text = (FOLDER / source).read_text()
    (found,) = re.findall(rf"(?:const \w+ {name} =|#define {name}) ([\w.-]+)", text)
    assert float(found) == value
