"""`lod_samples`: the samples of a node that `spatialq lod --compact` packed into bytes."""

from spatialq.functions.sql_function import SqlFunction, struct_type

SAMPLE = {**dict.fromkeys("xyz", "DOUBLE"), **dict.fromkeys(("red", "green", "blue"), "USMALLINT")}

SQL_FUNCTIONS = (
    SqlFunction(
        "spatialq_lod_samples_udf",
        ("BLOB", "DOUBLE", "DOUBLE", "DOUBLE", "DOUBLE"),
        f"{struct_type(SAMPLE)}[]",
        "unpack_lod_samples",
        volatile=False,
    ),
)
