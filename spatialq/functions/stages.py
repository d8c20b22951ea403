"""How a function divides a call over many files: stages, each of many tasks.

A function that can be run in parts has a `stages.py` in its folder: a *program*, which gets a
`PointWork` and says which stages there are, and the functions that their tasks call, at the top of
a module. Both know arrays only. Where a program runs, by whom its tasks are done, in which files
arrays wait between stages, and what is left after a crash, is the runner's.

What functions of tasks get besides points is written as text on its way: numbers, texts, None,
tuples, dataclasses of them, and what earlier stages have found.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from spatialq.functions.declaration import Parameters
    from spatialq.runtime.arrays import Array, Bools

Options = TypeVar("Options", covariant=True)
Columns = Mapping[str, "Array"]
Box = tuple[float, float, float, float]
"""xmin, ymin, xmax, ymax."""


@dataclass(frozen=True)
class TaskResult:
    """What a task has found, and what the tasks of later stages get of it."""

    arrays: Columns
    facts: Mapping[str, Any] = field(default_factory=dict)
    """A few values of JSON."""


Do = Callable[..., TaskResult | Columns]
"""What the task of a stage calls."""


@dataclass(frozen=True)
class OfCores:
    """A stage that has found something in each core.

    As an input, it is the `TaskResult` of the same core in a task of a core, and an iterator over
    those of all cores in any other.
    """

    stage: str


@dataclass(frozen=True)
class OfAll:
    """A stage of a single task; as an input, it is its `TaskResult`."""

    stage: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Cloud:
    """What is known of all points, as the kernel gets them."""

    size: int
    low: tuple[float, float, float]
    """The least x, y and z; NaN where there are no points."""
    high: tuple[float, float, float]
    may_have_strays: bool = False
    """Whether a few points may be stray; never for functions that do not keep stray points."""

    @property
    def box(self) -> Box:
        """Around all points."""
        return (*self.low[:2], *self.high[:2])


class Part(Protocol):
    """The points of a core, which a task gives results of, and those around it."""

    @property
    def box(self) -> Box:
        """Around the points of the core."""

    def points(self) -> "dict[str, Array]":
        """Read the points of the core and its halo.

        Returns
        -------
        dict of arrays
            x, y, and z as the kernel gets it; `point_id`; `classification`, where the function
            takes it or some classes are left out; 0 of a file that has none.
        """

    def batches(self) -> "Iterator[dict[str, Array]]":
        """Read these points one batch after the other, which takes less memory."""

    def is_own(self, rows: Columns) -> "Bools":
        """Say which rows, with `point_id`, x and y, are of the core itself."""

    def own(self, rows: Columns) -> "dict[str, Array]":
        """Give these rows."""

    def call(
        self, function: str, arguments: Mapping[str, Any], options: "Parameters"
    ) -> "dict[str, Array]":
        """Run the kernel of a function as it is planned, on the CPU or a GPU."""


class PointWork(Protocol[Options]):
    """The stages of a function of points, which a program goes through in their order.

    Points are divided into cores, of which each point is in one. Names of stages are unique.
    """

    @property
    def cloud(self) -> Cloud:
        """All points."""

    @property
    def options(self) -> Options:
        """Parameters as the kernel takes them."""

    @property
    def metres(self) -> float:
        """Metres in a unit of x and y."""

    def doubt(self, sentence: str) -> None:
        """Warn that the result may miss much, if the sentence is not empty: see `Declaration`."""

    def each(
        self,
        stage: str,
        do: Do,
        *inputs: Any,
        halo: float = 0.0,
    ) -> OfCores:
        """Have `do(part, *inputs)` called for each core, whose points have a halo of a width."""

    def once(self, stage: str, do: Do, *inputs: Any) -> OfAll:
        """Have `do(*inputs)` called once."""

    def rows(self, do: Callable[..., Columns], *inputs: Any, halo: float = 0.0) -> None:
        """Have `do(part, *inputs)` called for each core, which gives rows of the result.

        It is the last stage. A program that ends without one has a result without rows. The columns
        are those of the output, as a kernel gives them, and `point_id`, x and y.
        """

    def table(self, name: str, do: Callable[..., Columns], *inputs: Any) -> None:
        """Have `do(*inputs)` called, which gives all rows of the result: the last stage, too."""


class PointAndPolygonWork(PointWork[Options], Protocol[Options]):
    """The stages of a function of points and polygons; `polygon_id` of its rows has their rows."""

    @property
    def polygons(self) -> OfAll:
        """All polygons, see `Polygons.named`, and `boxes`, those of `PolygonIndex`."""


class PointAndElementWork(PointWork[Options], Protocol[Options]):
    """The stages of a function of points and elements.

    As from a kernel, the column `element` of its rows has rows of the elements, -1 for none.
    """

    @property
    def elements(self) -> OfAll:
        """All elements, see `Meshes.named`."""
