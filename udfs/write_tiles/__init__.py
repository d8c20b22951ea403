"""Declaration of `write_tiles`: 3D Tiles of files, file to file."""

from dataclasses import dataclass

from spatialq.functions.declaration import parameter, parameters_of
from spatialq.functions.file_macros import FileFunction

from ..write_lod import FileOptions


@dataclass(frozen=True)
class Options(FileOptions):
    """Parameters of `write_tiles`: how tiles are written, and those of the tree and its files."""

    FUNCTION = "write_tiles"

    compress: bool = parameter(True, "Whether with EXT_meshopt_compression.")
    implicit: bool = parameter(
        False, "Whether the tree of points is implied by subtrees instead of written tile by tile."
    )
    colour_bits: int = parameter(
        16, "Bits of the colours of points, which are linear: 8 lose dark tones.", must_be="8 or 16"
    )
    error_factor: float = parameter(
        16.0, "Geometric error of a tile of points, in widths of its voxels.", above=0
    )


WRITE_TILES = FileFunction(
    "write_tiles",
    "Write 3D Tiles of building models, point clouds or their levels of detail, file to file.",
    "IFC file, Parquet file of levels of detail or of elements, point cloud file",
    "tileset.json in a folder, which is made if it is missing.",
    # without the unit of the coordinates, which follows from the CRS of the files
    tuple(each for each in parameters_of(Options) if each.name != "unit"),
    {
        "points": "BIGINT",
        "nodes": "BIGINT",
        "elements": "BIGINT",
        "triangles": "BIGINT",
        "device": "VARCHAR",
        "outputs": "VARCHAR[]",
    },
    "FROM write_tiles('house.ifc', 'house/tileset.json')",
    # those that are not for point clouds alone
    ("compress", "implicit", "colour_bits", "error_factor", "crs", "override_crs"),
    has_one_output=True,
)

USES = ("write_lod",)

SQL_FUNCTIONS = (WRITE_TILES.function,)
