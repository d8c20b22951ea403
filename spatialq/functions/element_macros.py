"""What the macros of functions of elements share: their arguments, and how they name tables."""

from spatialq.functions.macros import Argument

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
        "exclude_related", "Whether to leave out the pairs of related_elements.", "false", "boolean"
    ),
    Argument(
        "relations",
        "Name of the table of relations; by default relations for elements, else <a>_relations.",
        "NULL",
        rows="Query",
    ),
)
WITHOUT_RELATED = """ANTI JOIN query(spatialq_related_sql(exclude_related, a, relations)) AS r
ON r.a = p.a AND r.b = p.b"""
MESHES = (
    Argument("one", "STRUCT(vertices DOUBLE[], faces INTEGER[]) in metres.", kind="mesh"),
    Argument("other", "Another one.", kind="mesh"),
)
