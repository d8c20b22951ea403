"""Columns of clashes by which they are grouped or counted: known before models are read."""

from pathlib import Path

from spatialq.workflows.clash_issues import ISSUES
from spatialq.workflows.clash_models import COMMAND
from spatialq.workflows.clash_project import SAID
from spatialq.workflows.clash_project_file import last_run

SIDES = ("class", "name", "storey", "storey_unified", "file")
"""Of a and b each, such as `a_class`."""
ALWAYS = (
    "a", "b", *(f"{side}_{what}" for side in "ab" for what in SIDES), "relation", "penetration",
    "thickness", "volume", "dx", "dy", "dz", "distance", "x", "y", "z", "flags",
)  # fmt: skip
UNIFIED = {"storey": "storey_unified"}
"""What is taken instead: models have names of their own for a floor."""
RULED = ("rule", "severity")
OF_PROJECT = ("clash", *SAID, "a_element", "b_element", "comments")
WAYS = ("element", "space")
"""Of groups, besides columns."""


def columns(
    *, project: Path | None = None, has_rules: bool = False, has_issues: bool = False
) -> set[str]:
    """Name the columns that clashes will have, with those that people made in a project.

    Raises
    ------
    FileError
        If the project is another database.
    """
    from spatialq.database.connection import connect_quietly

    found = {*ALWAYS}
    found |= {*RULED} if has_rules else set()
    if project is None:
        found |= ISSUES.keys() if has_issues else set()
    else:
        found |= {*OF_PROJECT}
        with connect_quietly() as con:
            if last_run(con, project) is not None:
                kept = con.execute("FROM project.clashes LIMIT 0").description or []
                found |= {name for name, *_ in kept}
    return found


def require_group(per: str, known: set[str]) -> None:
    """Make sure that clashes can be grouped.

    Raises
    ------
    ValueError
        If they cannot.
    """
    if per not in WAYS and not known & {per, f"a_{per}"}:
        message = (
            f"{COMMAND}: --group must be element, space or a column of the clashes such as storey, "
            f"got {per!r}"
        )
        raise ValueError(message)


def require_matrix(per: str) -> None:
    """Make sure that there is such a clash matrix.

    Raises
    ------
    ValueError
        If there is none.
    """
    if per not in SIDES:
        message = f"{COMMAND}: --matrix must be one of {', '.join(SIDES)}, got {per!r}"
        raise ValueError(message)
