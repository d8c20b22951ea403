"""The result that all kernels of `owm_ground` return, on NumPy and CuPy arrays."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spatialq.runtime import buffers


def result_of(
    cloud: tuple[Any, ...], seeds: Any, hits: Any, filled: Any, filled_hits: Any
) -> dict[str, Any]:
    """Make the columns of the result: seeds, then filled points, each by ascending point_id.

    `cloud` is x, y, z and point_id. If point_id is None, the positions are the ids; `seeds` and
    `filled` must then ascend.
    """
    *coordinates, point_id = cloud
    take = buffers.take if isinstance(seeds, np.ndarray) else operator.getitem
    ids = [points if point_id is None else take(point_id, points) for points in (seeds, filled)]
    if point_id is not None:
        orders = [np.argsort(each) for each in ids]
        ids = [each[order] for each, order in zip(ids, orders, strict=True)]
        seeds, hits = seeds[orders[0]], hits[orders[0]]
        filled, filled_hits = filled[orders[1]], filled_hits[orders[1]]
    points = np.concatenate([seeds, filled])
    all_hits = np.concatenate([hits, filled_hits]).astype(np.int32)
    return columns_of(coordinates, np.concatenate(ids), points, all_hits, seeds.size, take)


def columns_of(
    coordinates: Sequence[Any], ids: Any, points: Any, hits: Any, n_seeds: int,
    take: Callable[[Any, Any], Any],
) -> dict[str, Any]:  # fmt: skip
    """Make the columns of the result of the positions of its points, which are in their order."""
    is_filled = np.zeros_like(points, np.bool_)
    is_filled[n_seeds:] = True
    return {
        "point_id": ids,
        **{name: take(values, points) for name, values in zip("xyz", coordinates, strict=True)},
        "hits": hits,
        "filled": is_filled,
    }
