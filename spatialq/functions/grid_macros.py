"""What the macros of two grids share: their cells side by side."""

from spatialq.functions.macros import Argument, rows_of

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
        FROM ({gaps("cells_of_one", axis)})
    )"""

    def gaps(cells: str, axis: str) -> str:
        return f"""
            SELECT v, gap, max(gap) OVER () AS widest
            FROM (
                SELECT v, v - lag(v) OVER (ORDER BY v) AS gap
                FROM (SELECT DISTINCT {axis} AS v FROM {cells})
            )
        """

    def least(axis: str) -> str:
        return f"""(
        SELECT min(gap) FILTER (gap > widest / 1000)
        FROM ({gaps("cells_of_other", axis)})
    )"""

    def finite(cells: str, name: str) -> str:
        return f"""WHEN (
            SELECT NOT bool_and(coalesce(isfinite(x) AND isfinite(y), false)) FROM {cells}
        ) THEN error(
            '{function}: x and y of {name} must be finite numbers, got NULL, NaN or infinity'
        )"""

    def placed(cells: str, name: str) -> str:
        # several rows of one place would count several times, as where tiles overlap
        return f"""SELECT place_x, place_y, any_value(z) AS z, max(off) AS off, CASE
        WHEN count(*) > 1 AND max(off) <= {NEAR} THEN error(
            '{function}: {name} must have each cell once, got the cell at ' || any_value(x) || ', '
            || any_value(y) || ' ' || count(*) || ' times'
        )
    END AS repeated
    FROM (
        SELECT
            round((c.x - l.x) / l.dx)::BIGINT AS place_x,
            round((c.y - l.y) / l.dy)::BIGINT AS place_y,
            c.x,
            c.y,
            c.z,
            greatest(
                abs((c.x - l.x) / l.dx - round((c.x - l.x) / l.dx)),
                abs((c.y - l.y) / l.dy - round((c.y - l.y) / l.dy))
            ) AS off
        FROM {cells} AS c, lattice AS l
    )
    GROUP BY place_x, place_y"""

    columns = "x, y, if(isfinite(z), z, NULL) AS z"
    return f"""cells_of_one AS (
    SELECT {columns}
    FROM {rows_of(function, one, *"xyz")}
), cells_of_other AS (
    SELECT {columns}
    FROM {rows_of(function, other, *"xyz")}
), steps AS MATERIALIZED (
    SELECT x, y, other_dx, other_dy, is_full,
    -- a grid of one column or row has the steps of the other one
    coalesce({step("x")}, other_dx) AS dx,
    coalesce({step("y")}, other_dy) AS dy
    FROM (
        SELECT coalesce(min(x), (SELECT min(x) FROM cells_of_other)) AS x,
        coalesce(min(y), (SELECT min(y) FROM cells_of_other)) AS y
        FROM cells_of_one
    ), (
        SELECT {least("x")} AS other_dx,
        {least("y")} AS other_dy,
        2 * count(*) > count(DISTINCT x) * count(DISTINCT y) AS is_full
        FROM cells_of_other
    )
), lattice AS MATERIALIZED (
    SELECT x, y, dy, CASE
        {finite("cells_of_one", one)}
        {finite("cells_of_other", other)}
        WHEN x IS NOT NULL AND (dx IS NULL OR dy IS NULL) THEN error(
            '{function}: {one} or {other} must have several rows and columns of cells, got one'
        )
        -- centres of cells that are three times as wide are centres of the others as well
        WHEN is_full AND other_dx > 1.5 * dx AND other_dy > 1.5 * dy THEN error(
            '{function}: {other} must have the cells of {one}, of ' || dx || ' by ' || dy
            || ', got some of ' || other_dx || ' by ' || other_dy || ': resample one of them'
        )
        ELSE dx
    END AS dx
    FROM steps
), placed_other AS (
    {placed("cells_of_other", other)}
), both_grids AS (
    SELECT place_x, place_y, o.z AS one, p.z AS other, CASE
        WHEN p.off > {NEAR} THEN error(
            '{function}: {other} must have the cells of {one}, got some off its places by '
            || round(p.off, 2) || ' of a cell: resample one of them'
        )
        ELSE coalesce(o.repeated, p.repeated)
    END AS refused
    FROM ({placed("cells_of_one", one)}) AS o FULL JOIN placed_other AS p USING (place_x, place_y)
)"""
