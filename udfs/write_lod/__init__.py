"""Declaration of `write_lod`: levels of detail of point clouds, file to file."""

from dataclasses import dataclass

from spatialq.functions.declaration import parameter, parameters_of
from spatialq.functions.file_macros import SCALE, TO_CRS, FileFunction

from ..build_lod import Options as TreeOptions


@dataclass(frozen=True)
class FileOptions(TreeOptions):
    """Parameters of `build_lod`, and of the files that it reads, here and in `write_tiles`."""

    resolution: float | None = parameter(
        None,
        "Spacing of points at which the nodes of an octree (COPC, EPT) are dense enough: finer "
        "ones are not read. NULL reads all.",
        unit="units of x and y",
        above=0,
    )
    crs: str | None = parameter(None, "CRS of files that name none, such as 'EPSG:25832'.")
    override_crs: bool = parameter(
        False, "Whether crs also takes the place of one that a file names."
    )
    to_crs: str | None = parameter(None, TO_CRS)
    scale: tuple[float, ...] | None = parameter(None, SCALE)


@dataclass(frozen=True)
class Options(FileOptions):
    """Parameters of `write_lod`: of the tree, of its files, and whether to resume."""

    FUNCTION = "write_lod"

    compact: bool = parameter(
        False, "Whether samples in .parquet are packed into bytes, which lod_samples decodes."
    )
    resume: bool = parameter(
        False, "Whether to go on with what an earlier run left that was killed."
    )


# without the unit of the coordinates, which follows from the CRS
PARAMETERS = tuple(each for each in parameters_of(Options) if each.name != "unit")

WRITE_LOD = FileFunction(
    "write_lod",
    "Build levels of detail of point clouds and write them, file to file.",
    "Point cloud file",
    "List of files, by their endings: .copc.laz the points as COPC, metadata.json as Potree, "
    "tileset.json as 3D Tiles, .parquet the nodes of build_lod, .png pictures.",
    PARAMETERS,
    {
        "points": "BIGINT",
        "nodes": "BIGINT",
        "levels": "BIGINT",
        "leaves": "BIGINT",
        "inner_nodes": "BIGINT",
        "voxels": "BIGINT",
        "device": "VARCHAR",
        "outputs": "VARCHAR[]",
    },
    "FROM write_lod('tile.laz', ['tile.copc.laz'])",
    # those that were there first
    tuple(each.name for each in PARAMETERS if each.name not in ("to_crs", "scale")),
)

USES = ("build_lod",)

SQL_FUNCTIONS = (WRITE_LOD.function,)
