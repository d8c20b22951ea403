"""The macro of `write_lod`."""

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

MACROS = (
    Macro(
        "write_lod",
        "Build levels of detail of point cloud files and write them, file to file.",
        (
            Argument("path", "Point cloud file, or a pattern such as 'tiles/*.laz'."),
            Argument(
                "outputs",
                "List of files, by their endings: .copc.laz the points as COPC, metadata.json as "
                "Potree, tileset.json as 3D Tiles, .parquet the nodes of build_lod, .png pictures.",
            ),
            *arguments_of(PARAMETERS),
            DEVICE,
            MEMORY,
        ),
        f"""SELECT unnest(
    spatialq_write_lod_udf(
        {checked("text", "write_lod", "path", "a file")},
        {checked("texts", "write_lod", "outputs", "a list of files")},
        to_json({indent(struct(PARAMETERS), 2)})::VARCHAR
    ),
    recursive := true
)""",
        ("FROM write_lod('tile.laz', ['tile.copc.laz'])",),
        " ".join(RESULT),
    ),
)
