"""The macros of `registration`: its rows with the movement as a list, and points moved by one."""

from spatialq.functions.macros import Argument, Macro, checked, of_points_and_other, rows_of

from . import DECLARATION, MATRIX

LISTED = f"""SELECT
    r.candidate,
    r.status,
    CASE WHEN r.m11 IS NOT NULL THEN [{", ".join(f"r.{name}" for name in MATRIX)}] END AS matrix,
    r.* EXCLUDE (candidate, status, {", ".join(MATRIX)})
FROM {{rows}} AS r
ORDER BY r.candidate"""
"""Of the rows that the kernel gives, those of the function."""
MATRIX_TEXT = "16 finite numbers, row by row, the last row 0 0 0 1, as registration gives them"

MACROS = (
    of_points_and_other(
        DECLARATION,
        "candidate: 1 for the best; status: 'found', 'ambiguous' or 'not found'; matrix: 16 "
        "numbers, row by row, that bring coordinates of the scan to metres of the model; "
        "explained: share of the scan's surface that lies on the model; worse: how much less than "
        "that of the best candidate; rmse: metres, of this surface; sigma_x sigma_y sigma_z "
        "sigma_turn: standard deviations in metres and degrees; unit: metres in a unit of the "
        "scan; up: its vertical, 'z', 'y' or 'other'; sentence",
        LISTED,
    ),
    Macro(
        "to_model",
        "Points moved by the matrix of a placement, such as registration gives.",
        (
            Argument("points", "Name of a table or view with x, y and z.", rows="Points"),
            Argument("matrix", f"{MATRIX_TEXT}; not NULL.", kind="list of numbers"),
        ),
        f"""SELECT
    p.* REPLACE (
        m.to[1] * p.x + m.to[2] * p.y + m.to[3] * p.z + m.to[4] AS x,
        m.to[5] * p.x + m.to[6] * p.y + m.to[7] * p.z + m.to[8] AS y,
        m.to[9] * p.x + m.to[10] * p.y + m.to[11] * p.z + m.to[12] AS z
    )
FROM {rows_of("to_model", "points", *"xyz")} AS p,
(
    SELECT CASE
        WHEN len(of_model) = 16 AND list_bool_and([isfinite(each) FOR each IN of_model])
        AND of_model[13:] = [0, 0, 0, 1] THEN of_model
    ELSE error(
        'to_model: matrix must be {MATRIX_TEXT}, got ' || spatialq_shown(of_model)
    ) END AS "to"
    FROM (SELECT {checked("numbers", "to_model", "matrix", MATRIX_TEXT)} AS of_model)
) AS m""",
        ("FROM to_model('points', [1, 0, 0, 10, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1])",),
        "the columns of the points, with x, y and z in metres of the model",
    ),
)
