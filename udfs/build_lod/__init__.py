"""Declaration of `build_lod`: levels of detail of a cloud, a hybrid voxel-point octree."""

from dataclasses import dataclass
from typing import Literal

from spatialq.functions.declaration import (
    Declaration,
    Output,
    PointParameters,
    PointsInput,
    parameter,
)

from .cost import work

Strategy = Literal["first", "random", "average", "weighted"]

MAX_GRID = 128
"""A grid of 64 cells a side for each child: its mask of 32 KiB is what fast memory holds."""
CHANNELS = ("red", "green", "blue", "intensity")
"""What a sample's colour is made of, as LAS names them; each is 16 bits wide."""
SAMPLE = {
    "x": "DOUBLE",
    "y": "DOUBLE",
    "z": "DOUBLE",
    **dict.fromkeys(CHANNELS, "USMALLINT"),
    "classification": "UTINYINT",
    "point_id": "BIGINT",
}
"""A sample of a node: column -> SQL type."""

NAMES = "names of columns, each once, none of them 'options', or NULL"
"""What attributes must be; 'options' is the name of what a kernel gets beside columns."""


@dataclass(frozen=True)
class Options(PointParameters):
    """Parameters of `build_lod`."""

    FUNCTION = "build_lod"

    strategy: Strategy = parameter(
        "weighted",
        "How a voxel gets its colour (Schütz et al. 2023, section 4.2): that of the first point in "
        "it, of a random one, the mean of all, or the mean of the neighbourhood within a cell's "
        "width, where nearer samples weigh more.",
    )
    max_points: int = parameter(
        50_000,
        "A cell with more points is split, unless all of them coincide.",
        unit="points",
        at_least=1,
        below=2**63,
    )
    grid_size: int = parameter(
        MAX_GRID,
        "Voxels along each side of an inner node.",
        must_be=f"a power of two from 2 to {MAX_GRID}",
    )
    full_precision: bool = parameter(
        False,
        "Whether a voxel lies where one of its points lies, instead of in the middle of its cell.",
    )
    seed: int = parameter(0, "Seed of 'random'.", at_least=0, below=2**32)

    attributes: tuple[str, ...] | None = parameter(
        None,
        "More columns of the points that samples have, such as gps_time or return_number: a point "
        "its own values, a voxel those of the point that its point_id names. NULL adds none.",
        must_be=NAMES,
    )

    @property
    def more_columns(self) -> tuple[str, ...]:
        """The attributes that no sample has by itself."""
        return tuple(name for name in self.attributes or () if name.lower() not in SAMPLE)

    def check(self) -> None:
        """Reject grids whose cells do not halve, and attributes that are no names."""
        super().check()
        names = [name.lower() for name in self.attributes or ()]
        if len(set(names)) < len(names) or not all(names) or "options" in names:
            self.reject("attributes", NAMES)
        if self.grid_size not in (1 << k for k in range(1, MAX_GRID.bit_length())):
            self.reject("grid_size", f"a power of two from 2 to {MAX_GRID}")


DECLARATION = Declaration(
    inputs=PointsInput(
        attributes={**dict.fromkeys(CHANNELS, "USMALLINT"), "classification": "UTINYINT"}
    ),
    parameters=Options,
    allows_degrees=True,
    outputs=(
        Output(
            name="build_lod",
            summary="Levels of detail of a point cloud, a hybrid voxel-point octree: one row per "
            "node, level by level. Leaves hold the points, inner nodes the voxels of what is "
            "below them.",
            columns={
                "node": "VARCHAR",
                "level": "INTEGER",
                "parent": "VARCHAR",
                "xmin": "DOUBLE",
                "ymin": "DOUBLE",
                "zmin": "DOUBLE",
                "size": "DOUBLE",
                "spacing": "DOUBLE",
                "is_leaf": "BOOLEAN",
                "points": "BIGINT",
                "count": "BIGINT",
                "samples": f"STRUCT({', '.join(f'{name} {k}' for name, k in SAMPLE.items())})[]",
            },
            work=work,
            examples=(
                "SELECT node, count FROM build_lod(points) WHERE NOT is_leaf",
                "COPY (FROM build_lod('forest.laz', strategy := 'average')) TO 'nodes.parquet'",
            ),
        ),
    ),
)
