"""The macros of directions: one table macro and one predicate for each."""

from typing import Any

from spatialq.functions.declaration import parameters_of
from spatialq.functions.element_macros import FIRST, MESHES, of_meshes, of_sets
from spatialq.functions.macros import (
    CALL,
    NUMBER,
    Argument,
    Macro,
    Sql,
    arguments_of,
    checked,
    struct,
)

from . import DIRECTIONS, Options

PARAMETERS = parameters_of(Options)
OWN = tuple(each.name for each in PARAMETERS if each.name != "direction")
CHOSEN = arguments_of(PARAMETERS, *OWN)
NAMES = {d: d if d in ("above", "below") else f"{d}_of" for d in DIRECTIONS}
WORDS = {d: name.replace("_", " ") for d, name in NAMES.items()}
SETS = (
    FIRST,
    Argument(
        "b",
        "Another one, or the same; NULL stands for all pairs within a, every pair in both orders.",
        rows="Elements",
        is_optional=True,
    ),
)


def _of_sets(direction: str) -> Macro:
    name = NAMES[direction]
    fixed: dict[str, Any] = {"direction": direction}
    if direction in ("above", "below"):  # true north does not matter, so it is not looked for
        angle = checked("number", name, "true_north", NUMBER)
        fixed["true_north"] = Sql(f"coalesce({angle}, 0)")
    pairs = of_sets("direction", name, struct(PARAMETERS, OWN, **fixed))
    return Macro(
        name,
        f"The pairs of which b lies {WORDS[direction]} a.",
        (*SETS, *CHOSEN, *CALL),
        f"FROM {pairs}",
        (f"FROM {name}('slabs', 'walls', model := 'halfspace', strict := true)",),
        "a b flags",
    )


def _of_meshes(direction: str) -> Macro:
    options = struct(PARAMETERS, OWN, direction=direction, device="cpu")
    name = f"mesh_{NAMES[direction]}"
    return Macro(
        name,
        f"Whether the second of two meshes lies {WORDS[direction]} the first; NULL where one of "
        "them is NULL.",
        (*MESHES, *CHOSEN),
        f"{of_meshes('direction', name, options)}.found",
        (f"SELECT {name}(s.mesh, w.mesh) FROM slabs AS s, walls AS w",),
        is_table=False,
    )


MACROS = (*map(_of_sets, DIRECTIONS), *map(_of_meshes, DIRECTIONS))
