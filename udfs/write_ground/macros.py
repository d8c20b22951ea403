"""The macro of `write_ground`."""

from spatialq.functions.macros import (
    DEVICE,
    MEMORY,
    Argument,
    Macro,
    arguments_of,
    checked,
    indent,
    struct,
)

from . import PARAMETERS, RESULT

FIRST = ("resolution", "method", "ground_only", "crs", "object_width", "max_distance")
"""Those that were there before `device`: who gives arguments by position counts on it."""

MACROS = (
    Macro(
        "write_ground",
        "Classify the ground of a point cloud file and write what was found, file to file.",
        (
            Argument("path", "Point cloud in a projected CRS, or a pattern or folder of them."),
            Argument(
                "outputs",
                "List of files, by their endings: .laz and .las the points with their classes, "
                ".tif the terrain, .png its hillshade, .parquet, .csv and .json a table.",
            ),
            *arguments_of(PARAMETERS, *FIRST),
            DEVICE,
            *arguments_of(each for each in PARAMETERS if each.name not in FIRST),
            MEMORY,
        ),
        f"""SELECT unnest(
    spatialq_write_ground_udf(
        {checked("text", "write_ground", "path", "a file")},
        {checked("texts", "write_ground", "outputs", "a list of files")},
        to_json({indent(struct(PARAMETERS), 2)})::VARCHAR
    ),
    recursive := true
)""",
        ("FROM write_ground('tile.laz', ['ground.laz', 'terrain.tif'])",),
        " ".join(RESULT),
    ),
)
