"""Declaration of `write_ground`: the ground of a point cloud file, file to file."""

from dataclasses import dataclass

from spatialq.functions.declaration import BOUNDS, parameter, parameters_of
from spatialq.functions.sql_function import SqlFunction, struct_type

from ..classify_ground import GroundOptions
from ..ground_surface import TerrainOptions


@dataclass(frozen=True)
class Options(TerrainOptions, GroundOptions):
    """Parameters of `write_ground`: those of `classify_ground`, and of the terrain."""

    FUNCTION = "write_ground"

    ground_only: bool = parameter(False, "Whether only ground points go to .laz and .las.")
    crs: str | None = parameter(None, "CRS of a file that names none, such as 'EPSG:25832'.")
    override_crs: bool = parameter(
        False, "Whether crs also takes the place of one that the file names."
    )


PARAMETERS = tuple(each for each in parameters_of(Options) if each.name not in (BOUNDS, "unit"))
"""Without the unit of the coordinates, which follows from the CRS of the file."""

USES = ("classify_ground", "ground_surface")

RESULT = {
    "points": "BIGINT",
    "ground_points": "BIGINT",
    "noise_points": "BIGINT",
    "device": "VARCHAR",
    "outputs": "VARCHAR[]",
}

SQL_FUNCTIONS = (
    # a list, since unnesting a bare struct would call the function once for each of its fields
    SqlFunction(
        "spatialq_write_ground_udf",
        ("VARCHAR", "VARCHAR[]", "VARCHAR"),
        f"{struct_type(RESULT)}[]",
        "spatialq.workflows.ground_sql:write_ground_rows",
    ),
)
