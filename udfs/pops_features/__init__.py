"""Declaration of `pops_features` and `pops_patches`: multi-scale terrain features (POPS)."""

from typing import TYPE_CHECKING

from spatialq.functions.declaration import Declaration, GridInput, Output

from .cost import work, work_of_patches
from .methods import STATISTICS
from .options import Options

if TYPE_CHECKING:
    from spatialq.data.grid import Grid, Windows


def feature_windows(grid: "Grid", options: Options) -> "Windows":
    """Say what a band must hold, and how many rows of features it gives."""
    from . import bands  # NumPy, which connecting to a database should not wait for

    return bands.feature_windows(grid, options)


def patch_windows(grid: "Grid", options: Options) -> "Windows":
    """Say what a band must hold, and how many rows of patches it gives."""
    from . import bands

    return bands.patch_windows(grid, options)


def cpu_only(options: Options) -> str:
    """Say which method cannot run on the GPU, and why; empty if all can."""
    for name, method in options.user_methods.items():
        from .user_methods_gpu import problem  # only user-defined methods need numba-cuda

        if why := problem(method.function):
            return f"the method {name!r}{why}"
    return ""


DECLARATION = Declaration(
    inputs=GridInput(),
    parameters=Options,
    allows_degrees=True,
    outputs=(
        Output(
            name="pops_features",
            summary="Multi-scale terrain features of a grid (POPS): patches of several scales in "
            "square examples, and the statistics of each feature over the patches of an example: "
            "one row per example, method, scale and feature.",
            columns={
                "example_id": "BIGINT",
                "x": "DOUBLE",
                "y": "DOUBLE",
                "method": "VARCHAR",
                "scale": "DOUBLE",
                "feature": "VARCHAR",
                **dict.fromkeys(STATISTICS, "DOUBLE"),
                "patches": "BIGINT",
            },
            work=work,
            examples=(
                "FROM pops_features('dem.tif', scales := [300, 400, 500]) WHERE feature = 'pca1'",
                "PIVOT (FROM pops_features(cells)) ON feature || scale USING first(median)",
            ),
            windows=feature_windows,
        ),
        Output(
            name="pops_patches",
            summary="Features of the patches of a grid (POPS), before pops_features aggregates "
            "them: one row per patch, method and feature; px and py are the place of the patch "
            "in its example, from 0.",
            columns={
                "example_id": "BIGINT",
                "method": "VARCHAR",
                "scale": "DOUBLE",
                "px": "BIGINT",
                "py": "BIGINT",
                "feature": "VARCHAR",
                "value": "DOUBLE",
            },
            work=work_of_patches,
            examples=("FROM pops_patches('dem.tif', methods := ['pca']) WHERE feature = 'pca2'",),
            windows=patch_windows,
        ),
    ),
    cpu_only=cpu_only,
)
