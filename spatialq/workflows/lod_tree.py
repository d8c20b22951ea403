"""The tree of point cloud files: at once where they fit into memory, else tile by tile."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.frame import Frame
from spatialq.errors import FileError
from spatialq.export.atomic import WRITER
from spatialq.io.source import PointSource, Progress
from spatialq.runtime import buffers
from spatialq.runtime.temporary import temporary_folder
from spatialq.workflows.cloud_points import Bounds
from spatialq.workflows.lod_nodes import CloudStatistics
from spatialq.workflows.lod_table import grouped
from spatialq.workflows.outputs import Outputs

if TYPE_CHECKING:
    from spatialq.execution.call import Execution
    from spatialq.functions.declaration import Device
    from spatialq.runtime.arrays import DType
    from spatialq.udfs.build_lod import Options
    from spatialq.workflows.lod_kept import KeptTiles

FUNCTION = "build_lod"


@dataclass(frozen=True)
class Reading:
    """What is read."""

    clouds: Sequence[PointSource]
    bounds: Bounds | None
    progress: Progress | None
    more: "Mapping[str, DType]" = field(default_factory=dict)
    """Columns beyond those that a tree is built of, and their types."""

    @property
    def points(self) -> int:
        """At most so many points."""
        return sum(cloud.rows for cloud in self.clouds)

    def whole(self) -> dict[str, Any]:
        """Read all points, as the kernel takes them."""
        from spatialq.database.transport.cloud_columns import read_clouds
        from spatialq.functions.catalogue import catalogue

        function = catalogue()[FUNCTION]
        return read_clouds(function, self.clouds, self.progress, self.bounds, self.more)

    def batches(self) -> Iterator[dict[str, Any]]:
        """Read some points at a time."""
        from spatialq.database.transport.cloud_columns import batches_of_clouds
        from spatialq.functions.catalogue import catalogue

        function = catalogue()[FUNCTION]
        return batches_of_clouds(function, self.clouds, self.progress, self.more, self.bounds)


class Attributes:
    """Columns of a cloud that is read some points at a time, until its nodes are there.

    Parameters
    ----------
    points : int
        Their ids are less than this.
    types : mapping of str to dtype
    """

    def __init__(self, points: int, types: "Mapping[str, DType]") -> None:
        self.columns = {
            name: np.ma.MaskedArray(buffers.empty(points, dtype), buffers.zeros(points, np.bool_))
            for name, dtype in types.items()
        }

    def add(self, points: Mapping[str, Any]) -> None:
        """Keep the values of points, which are masked where there is none."""
        ids = points["point_id"]
        for name, column in self.columns.items():
            given = points[name]
            lost = True if given is None else np.ma.getmaskarray(given)
            np.ma.getmaskarray(column)[ids] = lost
            np.ma.getdata(column)[ids] = 0 if given is None else np.ma.getdata(given)


@dataclass(frozen=True)
class TreeBuild:
    """How a tree is built.

    Parameters
    ----------
    reading : Reading
    options : Parameters
    frame : Frame
        What is known of the coordinates.
    device : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
    targets : Outputs
        Temporary files go beside the first.
    room : int
        Points that fit into memory.
    seen : CloudStatistics, optional
        Is told all points before the first node is given.
    """

    reading: Reading
    options: "Options"
    frame: Frame
    device: str
    targets: Outputs
    room: int
    seen: CloudStatistics | None = None
    kept: "KeptTiles | None" = None
    """What there is of a tree that is built tile by tile; None to keep nothing, as where there are
    attributes."""

    @property
    def level(self) -> float:
        """Units of x and y in one unit of z."""
        from spatialq.execution.units import units_for
        from spatialq.functions.catalogue import catalogue

        return units_for(catalogue()[FUNCTION], self.options, self.frame).level

    @contextmanager
    def tables(self) -> "Iterator[tuple[Iterator[Mapping[str, Any]], Callable[[], Device]]]":
        """Give the nodes, some at a time; and, when all were taken, the device."""
        if self.reading.points <= self.room:
            tree, used = self._whole()
            if self.seen is not None:
                self.seen.add_leaves(tree)
            yield iter([tree]), lambda: used
            return
        with self._tiles() as (tables, execution):
            yield tables, lambda: execution.device

    def _whole(self) -> "tuple[dict[str, Any], Device]":
        """Build the tree of clouds that fit into memory."""
        from spatialq.execution.call import call
        from spatialq.functions.catalogue import catalogue

        function, columns = catalogue()[FUNCTION], self.reading.whole()
        return call(
            function, columns, self.options, self.device, transport="files", frame=self.frame
        )

    @contextmanager
    def _tiles(self) -> "Iterator[tuple[Iterator[Mapping[str, Any]], Execution]]":
        """Build a tree tile by tile, through files beside the first output."""
        from spatialq.execution.call import planned
        from spatialq.export.atomic import PREFIX
        from spatialq.functions.catalogue import catalogue
        from spatialq.functions.declaration import Size
        from spatialq.udfs.build_lod.attributes import with_attributes
        from spatialq.udfs.build_lod.external_partitioning import rows_of

        function, options = catalogue()[FUNCTION], self.options
        size = Size(self.reading.points)
        columns = Attributes(self.reading.points, self.reading.more)
        with (
            self._said(),
            planned([function], size, options, self.device, transport="files") as execution,
        ):
            if self.kept is None:
                with temporary_folder(PREFIX, self.targets.beside) as folder:
                    batches = self._batches(columns)
                    rows = rows_of(batches, folder, options, execution, self.room)
                    found = (with_attributes(each, None, columns.columns) for each in grouped(rows))
                    yield found, execution
                return
            given = self._batches(columns), self.kept.folder, options, execution, self.room
            rows = rows_of(*given, saved=self.kept)
            yield rows if self.kept.keeps_tiles else grouped(rows), execution

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Say of which output an error of temporary files is, for example of a full disk."""
        try:
            yield
        except OSError as error:
            reason = f"a temporary file for it cannot be written: {error.strerror}"
            raise FileError.of(WRITER, self.targets.paths[0], reason) from error

    def _batches(self, columns: Attributes) -> Iterator[dict[str, Any]]:
        """Give points with heights in the unit of x and y."""
        level = self.level
        for batch in self.reading.batches():
            columns.add(batch)
            points = {**batch, "z": batch["z"] * level}
            if self.seen is not None:
                self.seen.add(points)
            yield points
