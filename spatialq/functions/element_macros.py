"""What the macros of functions of elements share: their arguments, and how they name tables."""

from spatialq.functions.macros import MESH, TABLE, Argument, checked, indent

FIRST = Argument(
    "a",
    "Name of a table or view with global_id and mesh, as read_ifc and load give them. Spaces, "
    "openings and the like are not considered, unless there is nothing else: see spatial_elements.",
    rows="Elements",
)
SETS = (
    FIRST,
    Argument("b", "Another one; NULL stands for all pairs within a.", "NULL", rows="Elements"),
)
TWO_SETS = (
    Argument("a", "Name of a table or view of elements, with global_id and mesh.", rows="Elements"),
    Argument("b", "Another one, or the same; every pair is given in both orders.", rows="Elements"),
)
RELATED = (
    Argument(
        "exclude",
        "Rules of related_elements whose pairs are left out, such as 'openings, systems'; "
        "'default' stands for openings, coverings, assemblies, connections.",
        "'none'",
    ),
    Argument(
        "relations",
        "Name of the table of relations; by default relations for elements, else <a>_relations.",
        "NULL",
        rows="Query",
    ),
)
MESHES = (
    Argument("one", "STRUCT(vertices DOUBLE[], faces INTEGER[]) in metres.", kind="mesh"),
    Argument("other", "Another one.", kind="mesh"),
)


def of_sets(function: str, caller: str, options: str) -> str:
    """Write the pairs that a function finds in the tables `a` and `b`, with its options in JSON."""
    return f"""query(
    spatialq_{function}_sql(
        '{caller}',
        {checked("text", caller, "a", TABLE)},
        {checked("text", caller, "b", TABLE)},
        to_json({indent(options, 2)})
    )
) AS p"""


def without_related(caller: str) -> str:
    """Write what leaves out the pairs of rules, behind `of_sets`."""
    return f"""ANTI JOIN query(
    spatialq_related_sql(
        '{caller}',
        {checked("text", caller, "exclude", "text")},
        {checked("text", caller, "a", TABLE)},
        {checked("text", caller, "relations", TABLE)}
    )
) AS r
ON r.a = p.a AND r.b = p.b"""


def of_meshes(function: str, caller: str, options: str) -> str:
    """Write what a function says of the meshes `one` and `other`, a struct."""
    return f"""spatialq_{function}_of_meshes(
    '{caller}',
    {checked("mesh", caller, "one", MESH)},
    {checked("mesh", caller, "other", MESH)},
    to_json({indent(options)})::VARCHAR
)"""


def all_pairs(caller: str) -> str:
    """Write the pairs of different elements of the tables `a` and `b`, as `x` and `y`."""
    return f"""spatialq_elements('{caller}: a', a) AS x
JOIN spatialq_elements('{caller}: b', b) AS y ON x.identity <> y.identity"""
