"""The clash matrix: how many clashes there are between files, classes or the like."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.functions.sql_text import literal
from spatialq.workflows.clash_models import COMMAND, short_names
from spatialq.workflows.tables import dicts

if TYPE_CHECKING:
    import duckdb

PICTURE = ".png"
FILE, CLASS = "file", "class"
SIDES = ("class", "name", "storey", "storey_unified", "file")
"""What a matrix may be of: columns of a and b each, such as `a_class`."""
UNIFIED = {"storey": "storey_unified"}
"""What is taken instead: models have names of their own for a floor."""


def require_matrix(per: str) -> None:
    """Make sure that there is such a clash matrix.

    Raises
    ------
    ValueError
        If there is none.
    """
    if per not in SIDES:
        message = f"{COMMAND}: --matrix must be one of {', '.join(SIDES)}, got {per!r}"
        raise ValueError(message)


def matrix_sql(per: str) -> str:
    """Write the query for the rows of the matrix of `clashes`."""
    return f"FROM clash_matrix('clashes', per := {literal(UNIFIED.get(per, per))})"


def default_per(con: "duckdb.DuckDBPyConnection") -> str:
    """Choose what the matrix is of: the files if there are several, else the classes."""
    ((files,),) = con.execute("SELECT count(*) FROM models").fetchall()
    return FILE if files > 1 else CLASS


def square(rows: list[dict[str, Any]], per: str) -> tuple[list[str], list[list[int]]]:
    """Arrange rows of `clash_matrix` as a square.

    Parameters
    ----------
    rows : list of dict
    per : str
        Files are named without their folders where that is enough.

    Returns
    -------
    names : list of str
        Of rows and columns, alike.
    counts : list of list of int
        Symmetric.
    """
    known = sorted({row[side] for row in rows for side in ("one", "other")})
    at = {name: k for k, name in enumerate(known)}
    counts = [[0] * len(known) for _ in known]
    for row in rows:
        i, j = at[row["one"]], at[row["other"]]
        counts[i][j] = counts[j][i] = row["clashes"]
    files = short_names(known)
    return [files[each] for each in known] if per == FILE else known, counts


def table(con: "duckdb.DuckDBPyConnection", per: str) -> list[dict[str, Any]]:
    """Give the matrix of `clashes` to be read: a row and a column for each file, class or the like.

    The lower half is left empty, since it says the same.
    """
    names, counts = square(dicts(con.execute(matrix_sql(per))), per)
    return [
        {per: name} | {other: counts[i][j] or None if j >= i else None
                       for j, other in enumerate(names)}
        for i, name in enumerate(names)
    ]  # fmt: skip


def write_picture(con: "duckdb.DuckDBPyConnection", per: str, path: Path) -> int:
    """Draw the matrix of `clashes`; give the number of its rows.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    from spatialq.export.matrix_picture import write_matrix_picture

    rows = dicts(con.execute(matrix_sql(per)))
    clashes = sum(row["clashes"] for row in rows)
    names, counts = square(rows, per)
    write_matrix_picture(path, names, counts, f"{clashes:,} clashes by {per}")
    return len(rows)
