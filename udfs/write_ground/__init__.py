"""Declaration of `write_ground`: the ground of a point cloud file, file to file."""

from dataclasses import dataclass

from spatialq.functions.declaration import parameter, parameters_of
from spatialq.functions.sql_function import SqlFunction, parameters_type, struct_type

from .. import ground_surface
from ..classify_ground import GroundOptions


@dataclass(frozen=True)
class Options(GroundOptions):
    """Parameters of `write_ground`: those of `classify_ground`, and of the terrain."""

    FUNCTION = "write_ground"

    resolution: float = parameter(
        1.0, "Side of a cell of the terrain.", unit="units of the CRS", above=0
    )
    method: ground_surface.Method = parameter(
        "tin", "How the terrain is interpolated: see ground_surface."
    )
    ground_only: bool = parameter(False, "Whether only ground points go to .laz and .las.")
    crs: str | None = parameter(
        None, "CRS of a file that does not say or says wrong, such as 'EPSG:25832'."
    )


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
        "write_ground_udf",
        ("VARCHAR", "VARCHAR[]", parameters_type(parameters_of(Options))),
        f"{struct_type(RESULT)}[]",
        "spatialq.workflows.ground_sql:write_ground_rows",
    ),
)
