"""Level of detail of a point cloud, a hybrid voxel-point octree: signature, options, limits."""

from dataclasses import dataclass
from typing import Literal, get_args

from spatialq.functions.declaration import Choices, Udf

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


@dataclass(frozen=True)
class Options(Choices):
    """Options of `build_lod`.

    Parameters
    ----------
    strategy : 'first', 'random', 'average' or 'weighted'
        How a voxel gets its colour (Schütz et al. 2023, section 4.2): that of the first point in
        it, of a random one, the mean of all, or the mean of the neighbourhood within a cell's
        width, nearer samples weighing more.
    max_points : int, >= 1 and < 2**63
        A cell with more points is split; points that coincide cannot be.
    grid_size : int, a power of two from 2 to 128
        Cells along each side of an inner node.
    full_precision : bool
        Whether a sample of an inner node lies where its point lies, not in the middle of its
        voxel.
    seed : int, >= 0 and < 2**32
        Of 'random'.
    """

    FUNCTION = "build_lod"

    strategy: Strategy = "weighted"
    max_points: int = 50_000
    grid_size: int = MAX_GRID
    full_precision: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.strategy not in get_args(Strategy):
            self.refuse("strategy", " or ".join(map(repr, get_args(Strategy))))
        if not 1 <= self.max_points < 2**63:
            self.refuse("max_points", ">= 1 and < 2**63")
        if self.grid_size not in (1 << k for k in range(1, MAX_GRID.bit_length())):
            self.refuse("grid_size", f"a power of two from 2 to {MAX_GRID}")
        if not 0 <= self.seed < 2**32:
            self.refuse("seed", ">= 0 and < 2**32")


UDF = Udf(
    name="build_lod",
    columns=("x", "y", "z"),
    options=Options,
    returns={
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
        "samples": f"STRUCT({', '.join(f'{name} {kind}' for name, kind in SAMPLE.items())})[]",
    },
    work=work,
    carries={**dict.fromkeys(CHANNELS, "USMALLINT"), "classification": "UTINYINT"},
)
