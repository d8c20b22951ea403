"""What `direction` refuses, and in which words."""

import numpy as np
import pytest
from spatialq.udfs.direction import Options, cpu

from spatialq.data.meshes import Meshes

from .cases import NOTHING, SLAB


@pytest.mark.parametrize("model", ["projection", "halfspace"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["a", "b"])
def test_corners_must_be_finite(model, value, where):
    vertices = SLAB[0].copy()
    vertices[7, 2] = value
    bad, good = Meshes.of([SLAB, NOTHING, (vertices, SLAB[1])]), Meshes.of([SLAB])
    touching = int((SLAB[1] == 7).any(axis=1).sum())
    with pytest.raises(
        ValueError,
        match=f"direction: vertices must be finite, got {touching} triangles with NaN or infinity, "
        f"the first in row 2 of {where}",
    ):
        cpu.run(*((bad, good) if where == "a" else (good, bad)), options=Options(model=model))
