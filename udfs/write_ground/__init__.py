"""Declaration of `write_ground`: the ground of point clouds, file to file."""

from dataclasses import dataclass

from spatialq.functions.declaration import parameter, parameters_of
from spatialq.functions.file_macros import SCALE, TO_CRS, FileFunction

from ..classify_ground import GroundOptions
from ..ground_surface import TerrainOptions


@dataclass(frozen=True)
class Options(TerrainOptions, GroundOptions):
    """Parameters of `write_ground`: those of `classify_ground`, and of the terrain."""

    FUNCTION = "write_ground"

    ground_only: bool = parameter(False, "Whether only ground points go to .laz and .las.")
    point_resolution: float | None = parameter(
        None,
        "Spacing of points at which the nodes of an octree (COPC, EPT) are dense enough: finer "
        "ones are not read. NULL reads all.",
        unit="units of x and y",
        above=0,
    )
    crs: str | None = parameter(None, "CRS of a file that names none, such as 'EPSG:25832'.")
    override_crs: bool = parameter(
        False, "Whether crs also takes the place of one that the file names."
    )
    to_crs: str | None = parameter(None, TO_CRS)
    scale: tuple[float, ...] | None = parameter(None, SCALE)


WRITE_GROUND = FileFunction(
    "write_ground",
    "Classify the ground of point clouds and write what was found, file to file.",
    "Point cloud file in a projected CRS",
    "List of files, by their endings: .laz and .las the points with their classes, .tif the "
    "terrain, .png its hillshade, .parquet, .csv, .json and .xlsx a table.",
    # without the unit of the coordinates, which follows from the CRS
    tuple(each for each in parameters_of(Options) if each.name != "unit"),
    {
        "points": "BIGINT",
        "ground_points": "BIGINT",
        "noise_points": "BIGINT",
        "device": "VARCHAR",
        "outputs": "VARCHAR[]",
    },
    "FROM write_ground('tile.laz', ['ground.laz', 'terrain.tif'])",
    # those that were there before `device`: who gives arguments by position counts on it
    ("resolution", "method", "ground_only", "crs", "object_width", "max_distance"),
)

USES = ("classify_ground", "ground_surface")

SQL_FUNCTIONS = (WRITE_GROUND.function,)
