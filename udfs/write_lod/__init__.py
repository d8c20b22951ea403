"""Declaration of `write_lod`: levels of detail of point cloud files, file to file."""

from dataclasses import dataclass

from spatialq.functions.declaration import parameter, parameters_of
from spatialq.functions.sql_function import SqlFunction, struct_type

from ..build_lod import Options as TreeOptions


@dataclass(frozen=True)
class Options(TreeOptions):
    """Parameters of `write_lod`: those of `build_lod`, the CRS, and whether to resume."""

    FUNCTION = "write_lod"

    crs: str | None = parameter(None, "CRS of files that name none, such as 'EPSG:25832'.")
    override_crs: bool = parameter(
        False, "Whether crs also takes the place of one that a file names."
    )
    resume: bool = parameter(
        False, "Whether to go on with what an earlier run left that was killed."
    )


PARAMETERS = tuple(each for each in parameters_of(Options) if each.name != "unit")
"""Without the unit of the coordinates, which follows from the CRS of the files."""

USES = ("build_lod",)

RESULT = {
    "points": "BIGINT",
    "nodes": "BIGINT",
    "levels": "BIGINT",
    "leaves": "BIGINT",
    "inner_nodes": "BIGINT",
    "voxels": "BIGINT",
    "device": "VARCHAR",
    "outputs": "VARCHAR[]",
}

SQL_FUNCTIONS = (
    # a list, since unnesting a bare struct would call the function once for each of its fields
    SqlFunction(
        "spatialq_write_lod_udf",
        ("VARCHAR", "VARCHAR[]", "VARCHAR"),
        f"{struct_type(RESULT)}[]",
        "spatialq.workflows.lod_sql:write_lod_rows",
    ),
)
