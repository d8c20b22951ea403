"""What the macros of two grids share: their cells side by side."""

from spatialq.functions.macros import TABLE, Argument, checked

NEAR = 0.01
"""Tolerance in cells of a centre's place, as of all tables of cells."""


def grid_argument(name: str, what: str) -> Argument:
    """Make an argument that names a table of cells."""
    return Argument(name, f"{what}: name of a table or view of cells x, y, z.", rows="Grid")


def cells_of_both(function: str, one: str, other: str) -> str:
    """Write common table expressions for the cells of two grids, which must be the same cells.

    `lattice` has one row: x, y of a cell, dx, dy. `both` has a row for each place that a row of
    either grid has: place_x, place_y, and z of either as `one` and `other`, NULL where there is
    none.

    Parameters
    ----------
    function : str
        Whose error it is if the places differ.
    one, other : str
        The arguments of the macro that name the tables.
    """

    def step(axis: str) -> str:
        # gaps of less than a thousandth of the largest are the rounding of coordinates
        return f"""(
        SELECT (max(v) - min(v))
            / round((max(v) - min(v)) / median(gap) FILTER (gap > widest / 1000))
        FROM (
            SELECT v, gap, max(gap) OVER () AS widest
            FROM (
                SELECT v, v - lag(v) OVER (ORDER BY v) AS gap
                FROM (SELECT DISTINCT {axis} AS v FROM cells_of_one)
            )
        )
    )"""

    def placed(cells: str) -> str:
        return f"""SELECT
        round((c.x - l.x) / l.dx)::BIGINT AS place_x,
        round((c.y - l.y) / l.dy)::BIGINT AS place_y,
        c.z,
        greatest(
            abs((c.x - l.x) / l.dx - round((c.x - l.x) / l.dx)),
            abs((c.y - l.y) / l.dy - round((c.y - l.y) / l.dy))
        ) AS off
    FROM {cells} AS c, lattice AS l"""

    columns = "x::DOUBLE AS x, y::DOUBLE AS y, if(isfinite(z::DOUBLE), z::DOUBLE, NULL) AS z"
    return f"""cells_of_one AS (
    SELECT {columns}
    FROM query_table({checked("name", function, one, TABLE)})
), cells_of_other AS (
    SELECT {columns}
    FROM query_table({checked("name", function, other, TABLE)})
), lattice AS MATERIALIZED (
    SELECT min(x) AS x, min(y) AS y,
    {step("x")} AS dx,
    {step("y")} AS dy
    FROM cells_of_one
), placed_other AS (
    {placed("cells_of_other")}
), both_grids AS (
    SELECT place_x, place_y, o.z AS one, p.z AS other, CASE
        WHEN p.off > {NEAR} THEN error(
            '{function}: {other} must have the cells of {one}, got some off its places by '
            || round(p.off, 2) || ' of a cell: resample one of them'
        )
    END AS refused
    FROM ({placed("cells_of_one")}) AS o FULL JOIN placed_other AS p USING (place_x, place_y)
)"""
