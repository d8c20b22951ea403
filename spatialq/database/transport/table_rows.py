"""The rows of a table that a macro is given: a column of a wrong type is refused in a sentence.

DuckDB's own error about a column that is not there is one about the text of the macro.
"""

from spatialq.data.arrow import MESH
from spatialq.database.transport.refusal import NUMBER
from spatialq.functions.sql_text import identifier, literal

NO_MESH = f"{{vertices: [], faces: []}}::{MESH}"
NUMBERS = "x y z xmin ymin zmin zmax elevation size spacing"
TEXTS = (
    "a b child file_name global_id ifc_class kind node parent parent_class predefined_type "
    "storey type_id type_name container_id parent_id storey_id name description object_type tag "
    "long_name material attributes properties"
)
TYPES = {
    "mesh": MESH,
    "level": "INTEGER",
    **dict.fromkeys(("count", "step_id"), "BIGINT"),
    "is_leaf": "BOOLEAN",
    **dict.fromkeys(NUMBERS.split(), "DOUBLE"),
    **dict.fromkeys(TEXTS.split(), "VARCHAR"),
}
"""The SQL types of columns that tables must have, which are the same in all of them."""


def rows_sql(place: str, table: str, columns: list[str]) -> str:
    """Write the query for the rows of a table that must have columns.

    Parameters
    ----------
    place : str
        The function and its argument, such as 'contours: grid'.
    table : str
        Its name.
    columns : list of str
        The columns that it must have.
    """
    names = [identifier(each) for each in columns]
    checked = ", ".join(
        f"{typed(place, each, f'{table!r} ')} AS {name}"
        for each, name in zip(columns, names, strict=True)
    )
    absent = ", ".join(f"NULL AS {name}" for name in names)
    rows = f"FROM query_table({literal(table)}) UNION ALL BY NAME SELECT {absent} WHERE false"
    return f"SELECT * REPLACE ({checked}) FROM ({rows})"


def typed(whose: str, column: str, of: str = "") -> str:
    """Write a column of a table as a value of its type, or the error about one of another type.

    Parameters
    ----------
    whose : str
        What the sentence begins with, up to "must".
    column : str
        One that the table lacks has the type "NULL".
    of : str
        The table, with a space, where the sentence does not begin with it.
    """
    name, kind = identifier(column), TYPES[column]
    is_right, what = f"typeof({name}) <> '\"NULL\"'", ""
    if kind == MESH:
        is_right, what = f"typeof({name}) LIKE 'STRUCT(%)'", " of meshes"
    elif kind in ("DOUBLE", "INTEGER", "BIGINT"):
        is_right, what = f"regexp_full_match(typeof({name}), '{NUMBER}')", " of numbers"
    sentence = literal(f"{whose} must have a column {column}{what}, got {of}")
    # a value, too: DuckDB would call what has constants alone, also where all is right
    value = "NULL" if kind == MESH else f"{name}::VARCHAR"
    refused = f"spatialq_refuse_column({sentence}, typeof({name}), {value})"
    # not NULL: DuckDB leaves out rows by a condition that cannot hold, and would not ask
    rest = f"WHEN {refused} > 0 THEN {NO_MESH}" if kind == MESH else f"ELSE {refused}::{kind}"
    return f"CASE WHEN {is_right} THEN {name}::{kind} {rest} END"
