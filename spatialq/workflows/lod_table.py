"""The nodes of a level-of-detail tree as a Parquet file, written some nodes at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_SAMPLES = 1 << 18
"""Samples of a row group of the file: a viewer that wants a node reads no more than these."""


@dataclass
class TreeSummary:
    """What there is in all of a tree."""

    points: int = 0
    nodes: int = 0
    levels: int = 0
    leaves: int = 0
    inner_nodes: int = 0
    voxels: int = 0
    brightest: int = 0
    """Greatest red, green or blue."""

    @property
    def colour_range(self) -> int:
        """Give the value of full red, green or blue: files have 8 bits or 16 in the same fields."""
        return 255 if self.brightest <= 255 else 65535

    def include(self, other: "TreeSummary") -> None:
        """Count what another one counted."""
        for name, value in vars(other).items():
            own = getattr(self, name)
            is_most = name in ("levels", "brightest")
            setattr(self, name, max(own, value) if is_most else own + value)

    def add(self, nodes: Mapping[str, Any]) -> None:
        """Count some of its nodes."""
        leaves = nodes["is_leaf"]
        self.points += int(nodes["count"][leaves].sum())
        self.nodes += leaves.size
        self.levels = max(self.levels, int(nodes["level"].max(initial=-1)) + 1)
        self.leaves += int(np.count_nonzero(leaves))
        self.inner_nodes += int(np.count_nonzero(~leaves))
        self.voxels += int(nodes["count"][~leaves].sum())
        samples = nodes["samples"].columns
        for name in {"red", "green", "blue"} & set(samples):
            self.brightest = max(self.brightest, int(samples[name].max(initial=0)))


def arrow_table(nodes: Mapping[str, Any]) -> "pa.Table":
    """Convert nodes to an Arrow table."""
    import pyarrow as pa

    from spatialq.database.transport.arrow import structs
    from spatialq.functions.catalogue import catalogue

    return pa.Table.from_struct_array(structs(catalogue()["build_lod"], nodes))


def grouped(tables: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Put tables of few rows together, so that each fills a row group."""
    from spatialq.udfs.build_lod.table import concatenate

    some, samples = [], 0
    for nodes in tables:
        some.append(nodes)
        samples += int(nodes["count"].sum())
        if samples >= GROUP_SAMPLES:
            yield concatenate(some)
            some, samples = [], 0
    if some:
        yield concatenate(some)


@contextmanager
def node_writer(
    target: Path, known: Mapping[str, str | None], summary: TreeSummary
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Write a file, some nodes at a time.

    Parameters
    ----------
    target : Path
    known : mapping of str to str, or None
        Metadata of the file.
    summary : TreeSummary
        Of all nodes; read when the block ends.

    Yields
    ------
    callable
        To be called with nodes.
    """
    import pyarrow.parquet as pq

    from spatialq.export.atomic import whole
    from spatialq.udfs.build_lod.table import no_rows

    schema = arrow_table(no_rows()).schema
    schema = schema.with_metadata({name: text for name, text in known.items() if text})
    with (
        whole(target) as partial,
        pq.ParquetWriter(
            partial,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=False,  # few samples are alike
            write_statistics=[name for name in schema.names if name != "samples"],
        ) as writer,
    ):

        def write(nodes: Mapping[str, Any]) -> None:
            """Write row groups of few samples."""
            table = arrow_table(nodes).cast(schema)
            ends = np.cumsum(nodes["count"])
            first = 0
            while first < table.num_rows:
                before = ends[first - 1] if first else 0
                stop = max(first + 1, int(np.searchsorted(ends, before + GROUP_SAMPLES, "right")))
                writer.write_table(table.slice(first, stop - first))
                first = stop

        yield write
        writer.add_key_value_metadata({"colour_range": str(summary.colour_range)})
