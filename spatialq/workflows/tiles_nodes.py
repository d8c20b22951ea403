"""3D Tiles from a Parquet file of levels of detail."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.columns import Lists, Text
from spatialq.errors import FileError
from spatialq.export.tiles.options import TileOptions
from spatialq.runtime.arrays import Array
from spatialq.workflows.given_crs import GivenCrs
from spatialq.workflows.lod_nodes import COLOURS, CloudStatistics, open_writers
from spatialq.workflows.outputs import Outputs
from spatialq.workflows.tiles_elements import COMMAND

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from spatialq.io.source import Progress

NODES = ("node", "xmin", "ymin", "zmin", "size", "spacing", "is_leaf", "count", "samples")
"""Columns of levels of detail that are read."""
NUMBERS = (*(name for name in NODES if name not in ("node", "samples")), "level")
MOST_COLOUR = 65535


def write_tiles_of_nodes(
    source: Path,
    target: Path,
    given: GivenCrs,
    tiles: TileOptions,
    progress: "Progress | None",
    began: float,
) -> dict[str, Any]:
    """Write the nodes of a Parquet file, a row group at a time, which is read twice."""
    import pyarrow.parquet as pq

    from spatialq.workflows.lod_table import TreeSummary

    with pq.ParquetFile(source) as file:
        missing = [name for name in NODES if name not in file.schema_arrow.names]
        if missing:
            reason = f"has no column {missing[0]}: it is no table of levels of detail"
            raise FileError.of(COMMAND, source, reason)
        known = (file.schema_arrow.metadata or {}).get(b"crs")
        seen = CloudStatistics(
            COMMAND, given.for_source(source, known.decode() if known else None), None
        )
        for nodes in _nodes(file, source):
            seen.add_leaves(nodes)
        summary = TreeSummary()
        with ExitStack() as stack:
            (write,) = open_writers([target], seen.cloud(), stack, tiles)
            for nodes in _nodes(file, source):
                write(nodes)
                summary.add(nodes)
                if progress is not None:
                    progress(source, summary.points, seen.points)
    return {
        **asdict(summary),
        "device": None,
        "seconds": time.perf_counter() - began,
        "outputs": Outputs.of(COMMAND, target).names,
    }


def _nodes(file: "pq.ParquetFile", source: Path) -> Iterator[Mapping[str, Any]]:
    """Give the nodes of a file, as kernels give them."""
    for k in range(file.num_row_groups):
        group = file.read_row_group(k).combine_chunks()
        if not group.num_rows:
            continue
        plain = {name: group[name].to_numpy() for name in group.column_names if name in NUMBERS}
        lists = group["samples"].combine_chunks()
        samples = {
            field.name: _numbers(source, field.name, lists.values.field(index))
            for index, field in enumerate(lists.type.value_type)
        }
        _require_samples(source, samples)
        names = group["node"].to_pylist()
        yield {
            **plain,
            "node": Text(np.arange(len(names)), names),
            "samples": Lists(lists.offsets.to_numpy(), samples),
        }


def _require_samples(source: Path, samples: Mapping[str, Array]) -> None:
    """Reject samples without coordinates, or whose colours are none."""
    for name in (*"xyz", *COLOURS):
        if name not in samples:
            reason = f"samples have no {name}: they need x, y, z, red, green and blue"
            raise FileError.of(COMMAND, source, reason)
        values = samples[name]
        if np.ma.getmaskarray(values).any():
            raise FileError.of(COMMAND, source, f"column '{name}' of samples has NULL")
        if name in COLOURS and (
            values.dtype.kind not in "iu"
            or (values.size and not 0 <= values.min() <= values.max() <= MOST_COLOUR)
        ):
            reason = f"column '{name}' of samples must be whole numbers from 0 to {MOST_COLOUR}"
            raise FileError.of(COMMAND, source, reason)


def _numbers(source: Path, name: str, column: "pa.Array") -> Array:
    """Give a column of samples, masked where it has NULL."""
    import pyarrow.types as types

    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        reason = f"column '{name}' of samples is {kind}, but attributes of points are numbers"
        raise FileError.of(COMMAND, source, reason)
    if not column.null_count:
        return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    return np.ma.array(values, mask=column.is_null().to_numpy(zero_copy_only=False))
