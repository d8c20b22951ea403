"""Who builds what when, and which rooms are heated: objects of the model house without a shape."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from spatialq.demo.ifc_writer import TIME, IfcWriter


class Task(NamedTuple):
    """A task: the storey whose parts it builds, and its first and last day."""

    name: str
    storey: str
    start: str
    finish: str


TASKS = (
    Task("build foundation", "foundation", "2026-05-04", "2026-05-22"),
    Task("build ground floor", "ground floor", "2026-05-25", "2026-06-19"),
    Task("build upper floor", "upper floor", "2026-06-22", "2026-07-17"),
    Task("build roof", "attic", "2026-07-20", "2026-08-07"),
)
SERVICES = Task("install services", "ground floor", "2026-07-20", "2026-08-28")
HEATED = ("living room", "study", "kitchen", "bedroom", "bath")


def add_schedule(out: IfcWriter, content: Mapping[str, Sequence[Any]]) -> None:
    """Create a task for each storey and one for the services, one after the other.

    Parameters
    ----------
    content
        Products of each storey by its name.
    """
    schedule = out.root("IfcWorkSchedule", "construction", CreationDate=TIME, StartTime=TIME)
    tasks = []
    for each in (*TASKS, SERVICES):
        task = out.root("IfcTask", each.name, IsMilestone=False, PredefinedType="CONSTRUCTION")
        task.TaskTime = out.make("IfcTaskTime")
        task.TaskTime.ScheduleStart = f"{each.start}T08:00:00"
        task.TaskTime.ScheduleFinish = f"{each.finish}T17:00:00"
        for product in content[each.storey]:
            if product.is_a("IfcFlowSegment") == (each is SERVICES):
                out.relate("IfcRelAssignsToProduct", RelatedObjects=[task], RelatingProduct=product)
        tasks.append(task)
    out.relate("IfcRelAssignsToControl", RelatedObjects=tasks, RelatingControl=schedule)
    shell = tasks[:-1]  # services begin with the roof, when the upper floor is built
    for before, after in [*pairwise(shell), (shell[-2], tasks[-1])]:
        out.relate(
            "IfcRelSequence",
            RelatingProcess=before,
            RelatedProcess=after,
            SequenceType="FINISH_START",
        )


def add_zone(out: IfcWriter, rooms: Sequence[Any]) -> None:
    """Group the rooms that are heated."""
    zone = out.root("IfcZone", "heated rooms")
    members = [room for room in rooms if room.Name in HEATED]
    out.relate("IfcRelAssignsToGroup", RelatedObjects=members, RelatingGroup=zone)
