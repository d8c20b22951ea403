"""The macros of distances: compositions of the one kernel."""

from spatialq.functions.declaration import CoordinateParameters, parameters_of
from spatialq.functions.element_macros import (
    FIRST,
    MESHES,
    RELATED,
    TWO_SETS,
    all_pairs,
    of_meshes,
    of_sets,
    without_related,
)
from spatialq.functions.macros import (
    CALL,
    NUMBER,
    POINTS,
    TABLE,
    Argument,
    Macro,
    Sql,
    arguments_of,
    checked,
    indent,
    rows_of,
    struct,
)

from . import COMPOSITION, DECLARATION, Options

PARAMETERS = parameters_of(Options)
SETS = (
    FIRST,
    Argument(
        "b", "Another one; NULL stands for all pairs within a.", rows="Elements", is_optional=True
    ),
)
LIMIT = Argument("d", "The distance. (metres)", kind="number")


def _of_sets(name: str, **fixed: object) -> str:
    """Write the query that runs the kernel on two tables."""
    pairs = of_sets("distance", name, struct(PARAMETERS, ("max_distance",), **fixed))
    return f"SELECT p.*\nFROM {pairs}"


def _within(name: str) -> str:
    """Write the pairs that are at most d apart."""
    options = struct(PARAMETERS, (), max_distance=Sql(checked("length", name, "d", ">= 0 metres")))
    return of_sets("distance", name, options)


def _of_meshes(name: str) -> str:
    """Write the distance of two meshes."""
    return f"{of_meshes('distance', name, struct(PARAMETERS, (), device='cpu'))}.distance"


def _compared(name: str, sign: str) -> str:
    """Write whether the distance of two meshes is less or more than d."""
    return f"{_of_meshes(name)} {sign} {checked('number', name, 'd', NUMBER)}"


def of_points() -> str:
    """Write the query that runs the kernel on points and elements.

    A point is a mesh of one triangle without area. Its file keeps it apart from an element whose
    GlobalId is a number.
    """
    limit = checked("length", "point_elements", "max_distance", ">= 0 metres")
    options = struct(PARAMETERS, (), max_distance=Sql(limit))
    point_id = checked("whole", "point_elements", "point_id", "a whole number", -(2**63), 2**63 - 1)
    return f"""WITH spatialq_points AS NOT MATERIALIZED (
    SELECT
        p.point_id::VARCHAR AS global_id,
        'points' AS file_name,
        CASE WHEN isfinite(p.x) AND isfinite(p.y) AND isfinite(p.z) THEN {{
            vertices: [p.x * s.metres[1], p.y * s.metres[1], p.z * s.metres[2]]::DOUBLE[],
            faces: [0, 0, 0]::INTEGER[]
        }} ELSE error(
            'point_elements: x, y and z must be finite numbers, got '
            || concat_ws(
                ', ', {{x: p.x, y: p.y, z: p.z}}::VARCHAR, 'point_id ' || p.point_id::VARCHAR
            )
        ) END AS mesh
    FROM (
        SELECT
            CASE WHEN typeof(point_id) = '"NULL"' THEN spatialq_refuse(
                'point_elements: points must have a column point_id of numbers; CREATE VIEW '
                || 'numbered AS SELECT row_number() OVER () - 1 AS point_id, * FROM ',
                points || ' makes a view that has one'
            ) ELSE {point_id} END AS point_id,
            x,
            y,
            z
        FROM (
            FROM {rows_of("point_elements", "points", *"xyz")}
            UNION ALL BY NAME SELECT NULL AS point_id WHERE false
        )
    ) AS p, (
        SELECT spatialq_metres(
            'point_elements',
            frame,
            {checked("number", "point_elements", "unit", NUMBER)},
            {checked("text", "point_elements", "crs", "text such as EPSG:25832")}
        ) AS metres
        FROM spatialq_frame_of(points, crs IS NOT NULL)
    ) AS s
)
SELECT n.a::BIGINT AS point_id, n.b AS global_id, n.distance
FROM query(
    spatialq_distance_sql(
        'point_elements', 'spatialq_points',
        {checked("name", "point_elements", "elements", TABLE)},
        to_json({indent(options, 2)})
    )
) AS n"""


COLUMNS = "a b distance ax ay az bx by bz flags: GlobalIds; metres; the nearest points of the two"
K = checked("whole", "nearest", "k", ">= 1", 1, 2**31 - 1)
NEAREST = f"""coalesce(
    {K},
    spatialq_refuse('nearest: k must be >= 1, got ', 'NULL')
)"""

MACROS = (
    Macro(
        "distance",
        DECLARATION.outputs[0].summary,
        (*SETS, *arguments_of(PARAMETERS, "max_distance"), *RELATED, *CALL),
        f"{_of_sets('distance')}\n{without_related('distance')}",
        ("FROM distance('ducts', 'beams', max_distance := 0.5) ORDER BY distance",),
        COLUMNS,
    ),
    Macro(
        "closer_than",
        "The pairs that are at most d apart.",
        (*SETS, LIMIT, *RELATED, *CALL),
        f"SELECT p.*\nFROM {_within('closer_than')}\n{without_related('closer_than')}",
        ("FROM closer_than('ducts', 'beams', 0.05)",),
        "the columns of distance",
    ),
    Macro(
        "farther_than",
        "The pairs that are more than d apart: of all pairs of a and b, those that are not "
        "closer_than.",
        (*TWO_SETS, LIMIT, *CALL),
        f"""SELECT x.global_id AS a, y.global_id AS b
FROM {all_pairs("farther_than")}
ANTI JOIN {_within("farther_than")}
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
            *CALL,
        ),
        # one more, since an element that is in both sets is not its own neighbour
        _of_sets("nearest", max_distance=None, k=Sql(f"{NEAREST} + 1"))
        + "\nQUALIFY row_number() OVER (PARTITION BY p.a ORDER BY p.distance, p.b)"
        f" <= {NEAREST}",
        ("FROM nearest('desks', 'exits')",),
        "the columns of distance",
    ),
    Macro(
        "point_elements",
        COMPOSITION.outputs[0].summary,
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
            *CALL,
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
        _of_meshes("mesh_distance"),
        ("SELECT mesh_distance(d.mesh, b.mesh) FROM ducts AS d, beams AS b",),
        is_table=False,
    ),
    Macro(
        "mesh_closer_than",
        "Whether two meshes are at most d apart.",
        (*MESHES, LIMIT),
        _compared("mesh_closer_than", "<="),
        ("FROM ducts AS d JOIN beams AS b ON mesh_closer_than(d.mesh, b.mesh, 0.05)",),
        is_table=False,
    ),
    Macro(
        "mesh_farther_than",
        "Whether two meshes are more than d apart.",
        (*MESHES, LIMIT),
        _compared("mesh_farther_than", ">"),
        ("SELECT mesh_farther_than(d.mesh, e.mesh, 30.0) FROM desks AS d, exits AS e",),
        is_table=False,
    ),
    Macro(
        "ST_3DDistance",
        "The distance of two meshes, as PostGIS names it.",
        MESHES,
        _of_meshes("ST_3DDistance"),
        ("SELECT ST_3DDistance(d.mesh, b.mesh) FROM ducts AS d, beams AS b",),
        is_table=False,
    ),
    Macro(
        "ST_3DDWithin",
        "Whether two meshes are at most d apart, as PostGIS names it.",
        (*MESHES, LIMIT),
        _compared("ST_3DDWithin", "<="),
        ("SELECT ST_3DDWithin(d.mesh, b.mesh, 0.05) FROM ducts AS d, beams AS b",),
        is_table=False,
    ),
)
