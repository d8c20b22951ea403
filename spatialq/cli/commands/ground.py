"""`spatialq ground`: the ground of a point cloud."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spatialq.cli.jobs import Tasks, refuse_part_format, run_job, with_lengths
from spatialq.cli.options import Json, Memory, ParametersOf, Reading, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show_written

if TYPE_CHECKING:
    from spatialq.functions.declaration import Parameter

FUNCTION, SURFACE = "classify_ground", "ground_surface"
OF_TERRAIN = ("resolution", "method", "neighbours", "extrapolate")


@with_parameters(FUNCTION, exclude=("bounds", "memory"))
@with_parameters(SURFACE, only=OF_TERRAIN)
def ground(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Point clouds in a projected CRS, "
            "patterns or folders of them, which together are one cloud."
        ),
    ],
    *,
    output: Annotated[
        list[str],
        typer.Option(
            "--output",
            "-o",
            help="File to write; may be given several times: .laz or .las for the points with "
            "their classes, .tif for the terrain, .png for its hillshade, .parquet, .csv, "
            ".json or .xlsx for a table; a folder such as out/ gets a file for each input. Of a "
            "job the folder that gets parts/.",
        ),
    ],
    tasks: Tasks,
    part_format: Annotated[
        Literal["laz", "parquet", "tif"] | None,
        typer.Option(
            help="What a job writes: laz, the points with their classes, parquet, the rows of the "
            "table, or tif, the terrain; by default laz."
        ),
    ] = None,
    options: dict[str, Any],
    reading: Reading,
    point_resolution: Annotated[
        str | None,
        typer.Option(
            help="Spacing of points at which the nodes of an octree (COPC, EPT) are dense enough, "
            "such as 50cm: finer nodes are neither read nor written."
        ),
    ] = None,
    memory: Memory = None,
    ground_only: Annotated[
        bool, typer.Option("--ground-only", help="Write only ground points to .laz and .las.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Classify the ground of a point cloud: a new cloud, a terrain model, a hillshade, a table."""
    from spatialq.workflows.ground import write_ground

    read = reading.of("ground")
    if tasks.are_wanted:
        refused: dict[str, Any] = {
            **reading.refused_by_jobs,
            "--point-resolution": point_resolution,
        }
        if part_format != "tif":
            _refuse(_of_terrain(options))
        run_job(
            FUNCTION,
            files,
            output,
            tasks,
            part_format=part_format or "laz",
            device=read["device"],
            memory=memory,
            as_json=as_json,
            command="ground",
            refused=refused,
            bounds=read["bounds"],
            by_class=True,
            ground_only=ground_only,
            **with_lengths("ground", FUNCTION, files, options, _parameters_of_terrain()),
        )
        return
    refuse_part_format(part_format)
    with progress() as update:
        row = write_ground(
            files,
            output,
            ground_only=ground_only,
            **read,
            point_resolution=point_resolution,
            memory=memory,
            progress=update,
            **options,
        )
    show_written(row, as_json=as_json)


def _of_terrain(options: dict[str, Any]) -> Mapping[str, bool]:
    """Take the options of the terrain out of all; give by flag whether each is another one."""
    known = ParametersOf(SURFACE, OF_TERRAIN, (), of_file=True).options("ground")
    return {
        f"--{each.parameter.name}": options.pop(each.parameter.name) != each.signature.default
        for each in known
    }


def _refuse(of_terrain: Mapping[str, bool]) -> None:
    for flag, is_given in of_terrain.items():
        if is_given:
            message = (
                f"ground: {flag} of a job needs --part-format tif, the terrain: give that, too, "
                f"or leave {flag} out"
            )
            raise ValueError(message)


def _parameters_of_terrain() -> "tuple[Parameter, ...]":
    from spatialq.functions.declaration import parameters_of
    from spatialq.udfs.ground_surface import TerrainOptions

    return parameters_of(TerrainOptions)
