"""The macro of `plane_elements`: the kernel's matches, ranked for each plane."""

from spatialq.functions.declaration import parameters_of
from spatialq.functions.macros import of_points_and_other

from .. import detect_planes
from . import DECLARATION, Options

OF_PLANES = {each.name for each in parameters_of(detect_planes.Options)}
# how plane and face match comes first
MATCH = [each.name for each in parameters_of(Options) if each.name not in OF_PLANES]

RANKED = """SELECT
    m.plane_id,
    row_number() OVER (
        PARTITION BY m.plane_id
        ORDER BY m.nearest DESC, m.overlap DESC, abs(m.deviation), m.global_id
    ) AS "rank",
    m.* EXCLUDE (plane_id)
FROM {rows} AS m
ORDER BY m.plane_id, "rank\""""
"""Of the rows that the kernel gives, those of the function."""

MACROS = (
    of_points_and_other(
        DECLARATION,
        "plane_id rank global_id nearest overlap coverage angle deviation, then the columns of "
        "detect_planes; deviation is in metres, positive outside the element",
        RANKED,
        MATCH,
    ),
)
