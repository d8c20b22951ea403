"""What `lod_samples` asks Python: the samples that a node has as bytes."""

from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.arrow import arrow_type
from spatialq.export.lod_packed import unpack
from spatialq.functions.sql_function import struct_type
from spatialq.udfs.lod_samples import SAMPLE


def unpacked(packed: Any, x: Any, y: Any, z: Any, size: Any) -> Any:
    """Unpack the samples of each row; NULL where an argument is.

    Parameters
    ----------
    packed : Arrow array of bytes
    x, y, z, size : Arrow arrays of numbers
        Lowest corner and side of the cube of each node.

    Raises
    ------
    ValueError
        If bytes are no samples.
    """
    rows: list[dict[str, Any] | None] = []
    for blob, *low, side in zip(
        *(each.to_pylist() for each in (packed, x, y, z, size)), strict=True
    ):
        is_known = blob is not None and None not in (*low, side)
        rows.append(unpack(blob, low, side) if is_known else None)
    lengths = [0 if row is None else len(row["x"]) for row in rows]
    structs = pa.StructArray.from_arrays(
        [
            np.concatenate([np.empty(0, np.float64 if name in "xyz" else np.uint16)]
                           + [row[name] for row in rows if row is not None])
            for name in SAMPLE
        ],
        names=list(SAMPLE),
    )  # fmt: skip
    offsets = pa.array(np.cumsum([0, *lengths]), pa.int32())
    mask = pa.array([row is None for row in rows], pa.bool_())
    kind = arrow_type(f"{struct_type(SAMPLE)}[]")
    return pa.ListArray.from_arrays(offsets, structs, mask=mask).cast(kind)
