"""Joins meshes to the models whose objects go into spatial operators.

Objects have no meshes, and making these takes time, so models get them only where they are needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spatialq.ql4bim.variables import Model, Variable
from spatialq.query.steps import Quoted, Step, Table, in_order, naming, needs, sql


class Bodies(Quoted):
    """The name of a set as a text, for a function that needs the meshes of its objects."""


@dataclass(frozen=True, eq=False)
class Objects(Step):
    """The objects of a model, to which meshes can be joined."""

    model: Model | None = None

    def with_meshes(self) -> Step:
        """Give the step with the column `mesh`."""
        assert self.model is not None
        meshes = sql("(SELECT file_name, step_id, mesh FROM ", self.model.table("elements"), ")")
        source = sql(self.source, " LEFT JOIN ", meshes, " USING (file_name, step_id)")
        return Step(self.name, source)


def with_meshes(variable: Variable) -> Step | Table:
    """Give the step of a variable, with meshes where a step that it needs asks for some."""
    last = variable.step
    if isinstance(last, Table):
        return last
    order = in_order(last)
    wanted: set[Step | Table] = set()
    for step in reversed(order):
        if isinstance(step, Step):
            wanted.update(needs(step) if step in wanted else _bodies(step))
    changed: dict[Any, Any] = {}
    models = set()
    for step in order:
        if isinstance(step, Objects) and step in wanted:
            changed[step] = step.with_meshes()
            models.add(step.model)
        elif isinstance(step, Step) and any(each in changed for each in needs(step)):
            changed[step] = naming(step, changed)
    found: Step | Table = changed.get(last, last)
    if variable.kind == "set" and models.intersection(variable.models) and isinstance(found, Step):
        return found.changed(columns=sql("* EXCLUDE (mesh)"))
    return found


def _bodies(step: Step) -> Iterator[Step | Table]:
    for _, text in step.clauses():
        for piece in text.pieces:
            if isinstance(piece, Bodies):
                yield piece.step
