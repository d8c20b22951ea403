"""The nodes of a level-of-detail tree as a Parquet file, written some nodes at a time."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.columns import concatenate
from spatialq.functions.declaration import BOUNDS, COORDINATES, Parameters
from spatialq.io.crs import with_one_unit
from spatialq.io.source import Layout
from spatialq.runtime.arrays import DType
from spatialq.runtime.threads import workers

if TYPE_CHECKING:
    import pyarrow as pa


Write = Callable[[Mapping[str, Any]], None]
"""Writes some nodes."""
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


def own_options(options: Parameters, bounds: Sequence[float] | None) -> dict[str, Any]:
    """Give the parameters of `build_lod` that have a value, but those that say what files are."""
    chosen = {name: each for name, each in options.values().items() if each is not None}
    own = {name: each for name, each in chosen.items() if name not in (BOUNDS, *COORDINATES)}
    return own | ({} if bounds is None else {BOUNDS: bounds})


def metadata_of(own: Mapping[str, Any], crs: str | None) -> dict[str, str | None]:
    """Give the metadata of a file of nodes: CRS (PROJJSON), and `own_options` as JSON."""
    return {"crs": None if crs is None else with_one_unit(crs), "build_lod": json.dumps(own)}


@dataclass(frozen=True)
class Compact:
    """How positions and colours of samples are packed into few bytes.

    Parameters
    ----------
    layouts : sequence of Layout
        Of the files that the points are from.
    attributes : sequence of str
        Columns of samples that a file has besides, each as lists.
    """

    layouts: Sequence[Layout]
    attributes: Sequence[str]

    def table(self, nodes: Mapping[str, Any]) -> "pa.Table":
        """Convert nodes to an Arrow table with `packed` and lists in the place of `samples`."""
        import pyarrow as pa

        samples = nodes["samples"]
        kept = {name: samples.columns[name].copy() for name in self.attributes}
        table = arrow_table(nodes).drop_columns(["samples"])
        with workers() as pool:
            packed = pool.map(partial(self._packed, nodes, kept), range(table.num_rows))
        table = table.append_column("packed", pa.array(packed, pa.large_binary()))
        offsets = pa.array(samples.offsets, pa.int64())
        for name, values in kept.items():
            lists = pa.LargeListArray.from_arrays(offsets, pa.array(values))
            table = table.append_column(name, lists)
        return table

    def _packed(self, nodes: Mapping[str, Any], kept: Mapping[str, Any], k: int) -> bytes:
        """Pack the samples of a node, and put its attributes into the same order."""
        from spatialq.export.lod_packed import along_curve, pack

        span = slice(*nodes["samples"].offsets[k : k + 2])
        samples = {name: each[span] for name, each in nodes["samples"].columns.items()}
        low = [float(nodes[f"{axis}min"][k]) for axis in "xyz"]
        if nodes["is_leaf"][k]:
            order = along_curve(samples, low, nodes["size"][k])
            samples = {name: each[order] for name, each in samples.items()}
            for name, values in kept.items():
                values[span] = samples[name]
        return pack(samples, low, nodes["size"][k], nodes["spacing"][k], self.layouts)


def grouped(tables: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Put tables of few rows together, so that each fills a row group."""
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
def node_writer(target: Path, *how: Any, **named: Any) -> Iterator[Write]:
    """Write a file that appears whole or not at all, some nodes at a time; see `partial_writer`."""
    from spatialq.export.atomic import whole

    with whole(target) as partial, partial_writer(partial, *how, **named) as write:
        yield write


@contextmanager
def partial_writer(
    partial: Path,
    known: Mapping[str, str | None],
    summary: TreeSummary,
    more: Mapping[str, DType] = {},
    compact: Compact | None = None,
) -> Iterator[Write]:
    """Write a file, some nodes at a time.

    Parameters
    ----------
    partial : Path
    known : mapping of str to str, or None
        Metadata of the file.
    summary : TreeSummary
        Of all nodes; read when the block ends.
    more : mapping of str to dtype, optional
        Columns of samples beyond those of the declaration.
    compact : Compact, optional
        How samples are packed; by default they are lists of structs.

    Yields
    ------
    callable
        To be called with nodes.
    """
    import pyarrow.parquet as pq

    from spatialq.udfs.build_lod.attributes import with_attributes
    from spatialq.udfs.build_lod.table import no_rows

    nothing = {name: np.empty(0, dtype) for name, dtype in more.items()}
    to_table = arrow_table if compact is None else compact.table
    schema = to_table(with_attributes(no_rows(), None, nothing)).schema
    schema = schema.with_metadata({name: text for name, text in known.items() if text})
    with (
        pq.ParquetWriter(
            partial,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=False,  # few samples are alike
            write_statistics=schema.names[: len(schema.names) - schema.names[::-1].index("count")],
        ) as writer
    ):

        def write(nodes: Mapping[str, Any]) -> None:
            """Write row groups of few samples."""
            table = to_table(nodes).cast(schema)
            ends = np.cumsum(nodes["count"])
            first = 0
            while first < table.num_rows:
                before = ends[first - 1] if first else 0
                stop = max(first + 1, int(np.searchsorted(ends, before + GROUP_SAMPLES, "right")))
                writer.write_table(table.slice(first, stop - first))
                first = stop

        yield write
        writer.add_key_value_metadata({"colour_range": str(summary.colour_range)})
