"""The macros of distances: compositions of the one kernel."""

from spatialq.functions.declaration import CoordinateParameters, parameters_of
from spatialq.functions.element_macros import FIRST, MESHES, RELATED, TWO_SETS, WITHOUT_RELATED
from spatialq.functions.macros import (
    DEVICE,
    POINTS,
    Argument,
    Macro,
    Sql,
    arguments_of,
    indent,
    struct,
)

from . import DECLARATION, Options

PARAMETERS = parameters_of(Options)
SETS = (
    FIRST,
    Argument(
        "b", "Another one; NULL stands for all pairs within a.", rows="Elements", is_optional=True
    ),
)
LIMIT = Argument("d", "The distance. (metres)", kind="number")
NEAREST = """CASE WHEN k >= 1 THEN k + 1
        ELSE error('nearest: k must be >= 1, got ' || coalesce(k::VARCHAR, 'NULL')) END"""


def of_sets(name: str, **fixed: object) -> str:
    """Write the query that runs the kernel on two tables."""
    options = indent(struct(PARAMETERS, ("max_distance",), **fixed), 2)
    return f"""SELECT p.*
FROM query(
    spatialq_distance_sql(
        '{name}', a::VARCHAR, b::VARCHAR,
        to_json({options})
    )
) AS p"""


def metres(name: str, least: str) -> str:
    """Write an argument of `point_elements` as a length, or its error sentence."""
    return f"""CASE WHEN isfinite({name}::DOUBLE) AND {name} {least} 0 THEN {name}::DOUBLE
        ELSE error('point_elements: {name} must be {least} 0 metres, got '
            || coalesce({name}::VARCHAR, 'NULL')) END"""


def of_points() -> str:
    """Write the query that runs the kernel on points and elements.

    A point is a mesh of one triangle without area. Its file keeps it apart from an element whose
    GlobalId is a number.
    """
    options = struct(PARAMETERS, (), max_distance=Sql(metres("max_distance", ">=")))
    return f"""WITH spatialq_points AS NOT MATERIALIZED (
    SELECT
        p.point_id::VARCHAR AS global_id,
        'points' AS file_name,
        CASE WHEN isfinite(p.x::DOUBLE) AND isfinite(p.y::DOUBLE) AND isfinite(p.z::DOUBLE) THEN {{
            vertices: [p.x * s.metres[1], p.y * s.metres[1], p.z * s.metres[2]]::DOUBLE[],
            faces: [0, 0, 0]::INTEGER[]
        }} ELSE error(
            'point_elements: x, y and z must be finite numbers, got '
            || concat_ws(
                ', ', {{x: p.x, y: p.y, z: p.z}}::VARCHAR, 'point_id ' || p.point_id::VARCHAR
            )
        ) END AS mesh
    FROM query_table(points) AS p, (
        SELECT spatialq_metres('point_elements', frame, unit::DOUBLE, crs::VARCHAR) AS metres
        FROM spatialq_frame_of(points)
    ) AS s
)
SELECT n.a::BIGINT AS point_id, n.b AS global_id, n.distance
FROM query(
    spatialq_distance_sql(
        'point_elements', 'spatialq_points', elements::VARCHAR,
        to_json({indent(options, 2)})
    )
) AS n"""


COLUMNS = "a b distance ax ay az bx by bz flags: GlobalIds; metres; the nearest points of the two"
OF_MESHES = indent(struct(PARAMETERS, (), device="cpu"))

MACROS = (
    Macro(
        "distance",
        DECLARATION.outputs[0].summary,
        (*SETS, *arguments_of(PARAMETERS, "max_distance"), *RELATED, DEVICE),
        f"{of_sets('distance')}\n{WITHOUT_RELATED}",
        ("FROM distance('ducts', 'beams', max_distance := 0.5) ORDER BY distance",),
        COLUMNS,
    ),
    Macro(
        "closer_than",
        "The pairs that are at most d apart.",
        (*SETS, LIMIT, *RELATED, DEVICE),
        """SELECT p.*
FROM distance(
    a, b,
    max_distance := CASE WHEN isfinite(d::DOUBLE) AND d >= 0 THEN d
        ELSE error('closer_than: d must be >= 0 metres, got ' || coalesce(d::VARCHAR, 'NULL')) END,
    exclude_related := exclude_related, relations := relations, device := device
) AS p""",
        ("FROM closer_than('ducts', 'beams', 0.05)",),
        "the columns of distance",
    ),
    Macro(
        "farther_than",
        "The pairs that are more than d apart: of all pairs of a and b, those that are not "
        "closer_than.",
        (*TWO_SETS, LIMIT, DEVICE),
        """SELECT x.global_id AS a, y.global_id AS b
FROM spatial_elements(a) AS x JOIN spatial_elements(b) AS y ON x.identity <> y.identity
ANTI JOIN closer_than(a, b, d, device := device) AS p
ON p.a IS NOT DISTINCT FROM x.global_id AND p.b IS NOT DISTINCT FROM y.global_id""",
        ("SELECT count(*) FROM farther_than('exits', 'desks', 30.0)",),
        "a b",
    ),
    Macro(
        "nearest",
        "The k nearest elements of b for every element of a.",
        (
            FIRST,
            Argument(
                "b",
                "Another one; a itself, or NULL, stands for the nearest others.",
                rows="Elements",
                is_optional=True,
            ),
            Argument("k", "How many. (>= 1)", "1", "whole number"),
            DEVICE,
        ),
        # one more, since an element that is in both sets is not its own neighbour
        of_sets("nearest", max_distance=None, k=Sql(NEAREST))
        + "\nQUALIFY row_number() OVER (PARTITION BY p.a ORDER BY p.distance, p.b)"
        " <= coalesce(k, 0)",
        ("FROM nearest('desks', 'exits')",),
        "the columns of distance",
    ),
    Macro(
        "point_elements",
        "Which elements the points of a cloud are near, and how far from each: one row per point "
        "and element, 0 metres on the surface and inside of a closed body.",
        (
            POINTS,
            Argument(
                "elements",
                "Name of a table or view with global_id and mesh; spatial_elements says which "
                "elements are considered.",
                rows="Elements",
            ),
            Argument(
                "max_distance", "Only elements that are as near. (metres; >= 0)", kind="number"
            ),
            *arguments_of(parameters_of(CoordinateParameters)),
            DEVICE,
        ),
        of_points(),
        ("SELECT DISTINCT point_id FROM point_elements('points', 'elements', 0.05)",),
        "point_id global_id distance: metres",
    ),
    Macro(
        "mesh_distance",
        "The distance of two meshes in metres: 0 when they meet, or one is inside the other; NULL "
        "where one of them is NULL. For many pairs of one table use the table macro distance.",
        MESHES,
        f"spatialq_distance_of_meshes(\n    one, other,\n    {OF_MESHES}\n).distance",
        ("SELECT mesh_distance(d.mesh, b.mesh) FROM ducts AS d, beams AS b",),
        is_table=False,
    ),
    Macro(
        "mesh_closer_than",
        "Whether two meshes are at most d apart.",
        (*MESHES, LIMIT),
        "mesh_distance(one, other) <= d",
        ("FROM ducts AS d JOIN beams AS b ON mesh_closer_than(d.mesh, b.mesh, 0.05)",),
        is_table=False,
    ),
    Macro(
        "mesh_farther_than",
        "Whether two meshes are more than d apart.",
        (*MESHES, LIMIT),
        "mesh_distance(one, other) > d",
        ("SELECT mesh_farther_than(d.mesh, e.mesh, 30.0) FROM desks AS d, exits AS e",),
        is_table=False,
    ),
    Macro(
        "ST_3DDistance",
        "The distance of two meshes, as PostGIS names it.",
        MESHES,
        "mesh_distance(one, other)",
        ("SELECT ST_3DDistance(d.mesh, b.mesh) FROM ducts AS d, beams AS b",),
        is_table=False,
    ),
    Macro(
        "ST_3DDWithin",
        "Whether two meshes are at most d apart, as PostGIS names it.",
        (*MESHES, LIMIT),
        "mesh_distance(one, other) <= d",
        ("SELECT ST_3DDWithin(d.mesh, b.mesh, 0.05) FROM ducts AS d, beams AS b",),
        is_table=False,
    ),
)
