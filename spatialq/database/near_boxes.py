"""The boxes of elements, and which of them are near each other: behind `candidate_pairs` in SQL."""

from typing import Any, get_args

import numpy as np
import pyarrow as pa

from spatialq.database.transport.elements import meshes_of
from spatialq.functions.sql_text import literal
from spatialq.geometry import boxes, broad_phase

FUNCTION = "candidate_pairs"


def mesh_boxes(meshes: Any) -> pa.Array:
    """Give the box of each mesh as a list, xmin ymin zmin xmax ymax zmax; NULLs without faces."""
    found = boxes.of(meshes_of("element_boxes", meshes.combine_chunks()))
    is_empty = np.repeat(found[:, 0] > found[:, 3], 6)
    values = pa.array(found.ravel(), pa.float64(), mask=is_empty)
    starts = np.arange(0, found.size + 1, 6, dtype=np.int32)
    return pa.ListArray.from_arrays(starts, values)


def candidate_pairs(a: Any, b: Any, distances: Any, methods: Any) -> pa.Array:
    """List the pairs of near boxes, by their places in the lists from 1.

    Raises
    ------
    ValueError
        If there is no such method.
    """
    found = []
    for row, (distance, method) in enumerate(
        zip(distances.to_pylist(), methods.to_pylist(), strict=True)
    ):
        if method not in get_args(broad_phase.Method):
            known = ", ".join(map(repr, get_args(broad_phase.Method)))
            message = f"{FUNCTION}: method must be one of {known}, got {literal(method)}"
            raise ValueError(message)
        i, j = broad_phase.pairs(_boxes(a[row]), _boxes(b[row]), distance, method)
        found.append(pa.StructArray.from_arrays([pa.array(i + 1), pa.array(j + 1)], ["i", "j"]))
    lengths = np.cumsum([0, *map(len, found)]).astype(np.int32)
    return pa.ListArray.from_arrays(lengths, pa.concat_arrays(found))


def _boxes(listed: Any) -> Any:
    if not listed.is_valid:
        return None
    return listed.values.flatten().to_numpy().reshape(-1, 6)
