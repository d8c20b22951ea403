"""The tree of point cloud files: at once where they fit into memory, else tile by tile."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.boxes import in_box
from spatialq.data.frame import Frame
from spatialq.io.source import Progress
from spatialq.runtime import buffers
from spatialq.runtime.temporary import temporary_folder
from spatialq.workflows.cloud_points import Bounds
from spatialq.workflows.lod_nodes import Seen
from spatialq.workflows.lod_table import grouped
from spatialq.workflows.outputs import Outputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spatialq.execution.call import Execution
    from spatialq.functions.declaration import Device
    from spatialq.io.source import PointSource

FUNCTION = "build_lod"


@dataclass(frozen=True)
class Reading:
    """What is read."""

    clouds: "Sequence[PointSource]"
    bounds: Bounds | None
    progress: Progress | None
    inside: "NDArray[np.bool_] | None" = None
    """Of each record, to be filled: whether it is within the bounds. Points then get the numbers
    0, 1, 2 ... of those inside."""
    more: "Mapping[str, np.dtype[Any]]" = field(default_factory=dict)
    """Columns beyond those that a tree is built of, and their types."""

    @property
    def points(self) -> int:
        """At most so many points."""
        return sum(cloud.rows for cloud in self.clouds)

    def whole(self) -> dict[str, Any]:
        """Read all points, as the kernel takes them."""
        from spatialq.database.transport.clouds import read_clouds
        from spatialq.functions.catalogue import catalogue

        function = catalogue()[FUNCTION]
        if self.inside is None:
            return read_clouds(function, self.clouds, self.progress, self.bounds, self.more)
        return self._within(read_clouds(function, self.clouds, self.progress), 0, 0)

    def batches(self) -> Iterator[dict[str, Any]]:
        """Read some points at a time."""
        from spatialq.database.transport.clouds import batches_of_clouds
        from spatialq.functions.catalogue import catalogue

        function, first, done = catalogue()[FUNCTION], 0, 0
        for batch in batches_of_clouds(function, self.clouds, self.progress, self.more):
            found = self._within(batch, first, done)
            yield found
            first, done = first + batch["x"].size, done + found["x"].size

    def _within(self, columns: dict[str, Any], first: int, done: int) -> dict[str, Any]:
        """Take the points within the bounds, of records from the number `first` on.

        So many were within them before: `done`.
        """
        found, n = columns, columns["x"].size
        is_inside: Any = True
        if self.bounds is not None:
            is_inside = in_box(columns["x"], columns["y"], self.bounds)
            rows = np.flatnonzero(is_inside)
            found = {name: None if each is None else each[rows] for name, each in columns.items()}
            if columns.get("point_id") is None:  # they are numbered as they come
                found["point_id"] = rows + first
        if self.inside is not None:
            self.inside[first : first + n] = is_inside
            found["point_id"] = np.arange(done, done + found["x"].size)
        return found


class Kept:
    """Columns of a cloud that is read some points at a time, until its nodes are there.

    Parameters
    ----------
    points : int
        Their ids are less than this.
    types : mapping of str to dtype
    """

    def __init__(self, points: int, types: "Mapping[str, np.dtype[Any]]") -> None:
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
    frame : Frame or None
        What is known of the coordinates; None to take all points as they are: stray ones, too, and
        z in its own unit.
    device : 'auto', 'cpu' or 'gpu'
    targets : Outputs
        Temporary files go beside the first.
    room : int
        Points that fit into memory.
    seen : Seen, optional
        Is told all points before the first node is given.
    """

    reading: Reading
    options: Any
    frame: Frame | None
    device: str
    targets: Outputs
    room: int
    seen: Seen | None = None

    @property
    def level(self) -> float:
        """Units of x and y in one unit of z."""
        from spatialq.execution.frames import units_for
        from spatialq.functions.catalogue import catalogue

        if self.frame is None:
            return 1.0
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
        from spatialq.execution.call import call, call_as_given
        from spatialq.functions.catalogue import catalogue

        function, columns = catalogue()[FUNCTION], self.reading.whole()
        if self.frame is None:
            return call_as_given(function, columns, self.options, self.device, road="files")
        return call(function, columns, self.options, self.device, road="files", frame=self.frame)

    @contextmanager
    def _tiles(self) -> "Iterator[tuple[Iterator[Mapping[str, Any]], Execution]]":
        """Build a tree tile by tile, through files beside the first output."""
        from spatialq.execution.call import planned
        from spatialq.functions.catalogue import catalogue
        from spatialq.functions.declaration import Size
        from spatialq.udfs.build_lod.attributes import with_attributes
        from spatialq.udfs.build_lod.external_partitioning import rows_of

        function, options = catalogue()[FUNCTION], self.options
        kept = Kept(self.reading.points, self.reading.more)
        size = Size(self.reading.points)
        with (
            planned([function], size, options, self.device, road="files") as execution,
            temporary_folder(".lod-", self.targets.beside) as folder,
        ):
            rows = rows_of(self._batches(kept), folder, options, execution, self.room)
            tables = (with_attributes(nodes, None, kept.columns) for nodes in grouped(rows))
            yield tables, execution

    def _batches(self, kept: Kept) -> Iterator[dict[str, Any]]:
        """Give points with heights in the unit of x and y."""
        level = self.level
        for batch in self.reading.batches():
            kept.add(batch)
            points = {**batch, "z": batch["z"] * level}
            if self.seen is not None:
                self.seen.add(points)
            yield points
