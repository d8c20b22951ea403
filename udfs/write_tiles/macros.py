"""The macro of `write_tiles`."""

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

from . import OF_TILES, PARAMETERS, RESULT

MACROS = (
    Macro(
        "write_tiles",
        "Write 3D Tiles of building models, point clouds or their levels of detail, file to file.",
        (
            Argument(
                "path",
                "IFC file, point cloud, Parquet file of levels of detail or of elements; or a "
                "pattern or a folder of point clouds.",
            ),
            Argument("output", "tileset.json in a folder, which is made if it is missing."),
            *arguments_of(PARAMETERS, *OF_TILES),
            *arguments_of(each for each in PARAMETERS if each.name not in OF_TILES),
            DEVICE,
            MEMORY,
        ),
        f"""SELECT unnest(
    spatialq_write_tiles_udf(
        {checked("text", "write_tiles", "path", "a file")},
        {checked("text", "write_tiles", "output", "a file")},
        to_json({indent(struct(PARAMETERS), 2)})::VARCHAR
    ),
    recursive := true
)""",
        ("FROM write_tiles('house.ifc', 'house/tileset.json')",),
        " ".join(RESULT),
    ),
)
