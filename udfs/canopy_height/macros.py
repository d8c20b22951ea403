"""The macros of `surface_model` and `canopy_height`."""

from spatialq.functions.grid_macros import cells_of_both, grid_argument
from spatialq.functions.macros import (
    NUMBER,
    Argument,
    Macro,
    checked,
    rows_of,
)

MACROS = (
    Macro(
        "surface_model",
        "The surface model of a cloud: the highest point of each cell of a grid.",
        (
            Argument("points", "Name of a table or view with x, y and z.", rows="Points"),
            Argument("resolution", "Side of a cell, in the unit of x and y; > 0.", "1.0", "number"),
        ),
        f"""SELECT
    (floor(p.x / s.side) + 0.5) * s.side AS x,
    (floor(p.y / s.side) + 0.5) * s.side AS y,
    max(CASE WHEN isfinite(p.x) AND isfinite(p.y) AND isfinite(p.z) THEN p.z ELSE error(
        'surface_model: x, y and z must be finite numbers, got NULL, NaN or infinity'
    ) END) AS z,
    count(*) AS points
FROM {rows_of("surface_model", "points", *"xyz")} AS p,
(
    SELECT CASE WHEN side > 0 AND isfinite(side) THEN side ELSE error(
        'surface_model: resolution must be a number > 0, got ' || spatialq_shown(side)
    ) END AS side
    FROM (SELECT {checked("number", "surface_model", "resolution", NUMBER)} AS side)
) AS s
GROUP BY ALL""",
        ("FROM surface_model('points', resolution := 0.5)",),
        "x y: the centre of a cell, whose edges are multiples of the resolution; z: the highest "
        "point; points: how many there are; a cell without a point has no row",
        kind="Grid",
    ),
    Macro(
        "canopy_height",
        "Heights of a surface model above a terrain of the same cells, with pits filled.",
        (
            grid_argument("surface", "The surface model"),
            grid_argument("terrain", "The terrain, with the same cells"),
            Argument(
                "pit_depth",
                "A cell that is lower than the median of its neighbours by more than this is a "
                "pit, which gets the median; in the unit of z; NULL fills none.",
                "1.0",
                "number",
            ),
        ),
        f"""WITH {cells_of_both("canopy_height", "terrain", "surface")}, heights AS (
    SELECT place_x, place_y, if(other < one, 0, other - one) AS z, refused
    FROM both_grids
    WHERE one IS NOT NULL
), depth AS (
    SELECT CASE WHEN deep IS NULL OR deep >= 0 THEN deep ELSE error(
        'canopy_height: pit_depth must be a number from 0 or NULL, got ' || spatialq_shown(deep)
    ) END AS deep
    FROM (SELECT {checked("number", "canopy_height", "pit_depth", NUMBER)} AS deep)
), around AS (
    SELECT h.place_x + across.range AS place_x, h.place_y + up.range AS place_y, median(h.z) AS z
    FROM heights AS h, range(-1, 2) AS across, range(-1, 2) AS up, depth
    WHERE (across.range != 0 OR up.range != 0) AND h.z IS NOT NULL AND deep IS NOT NULL
    GROUP BY ALL
    HAVING count(*) >= 5
)
SELECT
    l.x + h.place_x * l.dx AS x,
    l.y + h.place_y * l.dy AS y,
    if(is_pit, r.z, h.z) AS z,
    is_pit
FROM heights AS h LEFT JOIN around AS r USING (place_x, place_y), lattice AS l, depth,
LATERAL (SELECT coalesce(r.z - coalesce(h.z, -1e300) > deep, false) AS is_pit)
WHERE h.refused IS NULL""",
        ("FROM canopy_height('surface', 'terrain', pit_depth := 2)",),
        "x y: the centre of a cell of the terrain; z: height above it, 0 or more, NULL where the "
        "surface has none and no pit was filled; is_pit: whether z is that of the neighbours",
        kind="Grid",
    ),
)
