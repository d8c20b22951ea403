"""How a function divides a call into the nodes of a tree: see `spatialq.functions.stages`.

The last stage has rounds. A node of the first one is made of the points around it, one of any later
round of what nodes of earlier ones give to it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from spatialq.functions.declaration import Device, Parameters
from spatialq.functions.stages import (
    Box,
    Columns,
    OfAll,
    OfCores,
    Options,
    Part,
    PointWork,
    TaskResult,
)

if TYPE_CHECKING:
    from spatialq.runtime.arrays import Bools


class Execution(Protocol):
    """Where a call runs, which may change on the way."""

    device: Device
    gpus: tuple[int, ...]

    def fall_back(self, full: MemoryError) -> None:
        """Go on on the CPU, or raise the error if that may not be."""


@dataclass(frozen=True)
class NodeResult:
    """What a node has found."""

    rows: Mapping[str, Any]
    """Columns of the output, as a kernel gives them."""
    above: Columns | None
    """What nodes above get; None of one that has none above."""


@dataclass(frozen=True)
class OfNode:
    """What a node gives to those above; as an input, it is its `TaskResult`."""

    stage: str
    node: str


@dataclass(frozen=True)
class Node:
    """A part of the result, which a task makes."""

    name: str
    """Unique."""
    do: Callable[..., NodeResult]
    inputs: tuple[Any, ...]
    box: Box | None = None
    """Around points that `do` reads, for which it gets a `NodePart` before all inputs."""


class NodePart(Part, Protocol):
    """Points with attributes, such as colours, and the kernel that is called with them."""

    def batches(self) -> Iterator[Any]:
        """Read the points some at a time, with the attributes that the function declares.

        An attribute that a file lacks is None.
        """

    def points_where(self, choose: "Callable[[Columns], Bools]") -> dict[str, Any]:
        """Read the points that `choose` says of some points at a time, as a kernel takes them.

        They have the columns `more_columns` of the parameters, too, as arrays.
        """

    def changed(self) -> Exception:
        """Make the error that there are other points than an earlier stage has found."""

    def planned(
        self, function: str, rows: int, options: Parameters
    ) -> AbstractContextManager[Execution]:
        """Plan the kernel of a function, for what calls it itself."""


class NodeWork(PointWork[Options], Protocol[Options]):
    """The stages of a function whose result are the nodes of a tree."""

    @property
    def area(self) -> float:
        """Ground that the points cover, as far as is known."""

    @property
    def node_points(self) -> int:
        """Points of a node at most, that is made of points."""

    def each(
        self,
        stage: str,
        do: Callable[..., TaskResult | Columns],
        *inputs: Any,
        halo: float = 0.0,
        near: Sequence[Box] | None = None,
    ) -> OfCores:
        """Have `do` called for each core that may have points in some boxes, by default for all.

        It gets a `NodePart`.
        """

    def read(self, found: OfAll) -> TaskResult:
        """Give what the task of a stage has found, for the program itself."""

    def nodes(self, stage: str, rounds: Sequence[Iterable[Node]], total: int, **known: Any) -> None:
        """Have all nodes made, which are the parts of the result.

        Parameters
        ----------
        stage : str
            That of what nodes give to those above.
        rounds : sequence of iterables of Node
            Those of each are begun when all before are done.
        total : int
            How many nodes there are.
        **known
            Values of JSON, of the whole result, which the file of each part has.
        """
