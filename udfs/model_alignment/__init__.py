"""Whether the models of a federation lie where they should to each other."""

from spatialq.functions.sql_function import SqlFunction, struct_type

COLUMNS = {
    "a_file": "VARCHAR",
    "b_file": "VARCHAR",
    "verdict": "VARCHAR",
    "dx": "DOUBLE",
    "dy": "DOUBLE",
    "dz": "DOUBLE",
    "turn": "DOUBLE",
    "agreeing": "BIGINT",
    "agreeing_unmoved": "BIGINT",
    "a_elements": "BIGINT",
    "b_elements": "BIGINT",
    "a_extent": "DOUBLE[]",
    "b_extent": "DOUBLE[]",
    "sentence": "VARCHAR",
}
ROWS = struct_type(COLUMNS)

SQL_FUNCTIONS = (
    SqlFunction(
        "spatialq_model_alignments",
        ("STRUCT(file_name VARCHAR, mesh STRUCT(vertices DOUBLE[], faces INTEGER[]))[]",),
        f"{ROWS}[]",
        "spatialq.udfs.model_alignment.alignment:alignments",
    ),
)
