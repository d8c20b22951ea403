"""The macro of `volume_between`."""

from spatialq.functions.grid_macros import cells_of_both, grid_argument
from spatialq.functions.macros import Argument, Macro, checked

NAME = "volume_between"

MACROS = (
    Macro(
        NAME,
        "How much was cut and filled from one terrain grid to another of the same cells.",
        (
            grid_argument("before", "The earlier terrain"),
            grid_argument("after", "The later terrain, with the same cells"),
            Argument(
                "level_of_detection",
                "Changes of height up to this count as none; in the unit of z.",
                "0.0",
                "number",
            ),
        ),
        f"""WITH {cells_of_both(NAME, "before", "after")}, changes AS (
    SELECT other - one AS change, l.dx * l.dy AS cell, refused, c.least
    FROM both_grids, lattice AS l,
    (SELECT {checked("length", NAME, "level_of_detection", "a number >= 0")} AS least) AS c
)
SELECT
    count(change) AS cells,
    count(*) - count(change) AS missing,
    count(*) FILTER (abs(change) <= least) AS unchanged,
    count(change) * any_value(cell) AS area,
    coalesce(fsum(-change) FILTER (change < -least), 0) * any_value(cell) AS cut,
    coalesce(fsum(change) FILTER (change > least), 0) * any_value(cell) AS fill,
    coalesce(fsum(change) FILTER (abs(change) > least), 0) * any_value(cell) AS net,
    count(*) FILTER (change < -least) * any_value(cell) AS cut_area,
    count(*) FILTER (change > least) * any_value(cell) AS fill_area
FROM changes
HAVING count(refused) = 0""",
        (
            "FROM volume_between('before', 'after')",
            "FROM volume_between('before', 'after', level_of_detection := 0.18)",
        ),
        "one row: cells that both have; missing: cells that only one has; unchanged: those whose "
        "change is up to level_of_detection; area of all cells; cut and fill: volumes above that, "
        "both positive, in units of x by y by z; net: fill less cut; cut_area fill_area",
    ),
)
