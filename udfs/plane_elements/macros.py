"""The macro of `plane_elements`: the kernel's matches, ranked for each plane."""

from spatialq.functions.declaration import parameters_of
from spatialq.functions.macros import DEVICE, POINTS, Argument, Macro, arguments_of, indent, struct

from .. import detect_planes
from . import DECLARATION, Options

PARAMETERS = parameters_of(Options)
# how plane and face match comes first
MATCH = tuple(each.name for each in PARAMETERS[len(parameters_of(detect_planes.Options)) :])
OUTPUT = DECLARATION.outputs[0]

MACROS = (
    Macro(
        "plane_elements",
        OUTPUT.summary,
        (
            POINTS,
            Argument(
                "elements",
                "Name of a table or view with global_id and mesh; spatial_elements says which "
                "elements are considered.",
            ),
            *arguments_of(PARAMETERS, *MATCH),
            *arguments_of(each for each in PARAMETERS if each.name not in MATCH),
            DEVICE,
        ),
        f"""SELECT
    m.plane_id,
    row_number() OVER (
        PARTITION BY m.plane_id
        ORDER BY m.nearest DESC, m.overlap DESC, abs(m.deviation), m.global_id
    ) AS "rank",
    m.* EXCLUDE (plane_id)
FROM (
    SELECT unnest(
        plane_elements_udf(
            p.ids, p.xs, p.ys, p.zs, e.members,
            {indent(struct(PARAMETERS), 3)}
        ),
        max_depth := 2
    )
    FROM (
        SELECT
            list(point_id::BIGINT) AS ids,
            list(x::DOUBLE) AS xs, list(y::DOUBLE) AS ys, list(z::DOUBLE) AS zs
        FROM query_table(points)
    ) AS p,
    (
        SELECT list({{global_id: global_id, identity: identity, mesh: mesh}}) AS members
        FROM spatial_elements(elements)
    ) AS e
) AS m
ORDER BY m.plane_id, "rank\"""",
        tuple(OUTPUT.examples),
        "plane_id rank global_id nearest overlap coverage angle deviation, then the columns of "
        "detect_planes; deviation is in metres, positive outside the element",
    ),
)
