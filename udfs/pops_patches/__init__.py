"""Features of the patches of a grid (POPS), before they are aggregated: signature, options."""

from dataclasses import dataclass

from spatialq.functions.declaration import Udf

from ..pops_features import Options as FeatureOptions
from ..pops_features.bands import patch_windows
from ..pops_features.methods import cpu_only
from .cost import work


@dataclass(frozen=True)
class Options(FeatureOptions):
    """Options of `pops_patches`: those of `pops_features`; nothing is aggregated."""

    FUNCTION = "pops_patches"


UDF = Udf(
    name="pops_patches",
    columns=("x", "y", "z"),
    options=Options,
    returns={
        "example_id": "BIGINT",
        "method": "VARCHAR",
        "scale": "DOUBLE",
        "px": "BIGINT",
        "py": "BIGINT",
        "feature": "VARCHAR",
        "value": "DOUBLE",
    },
    work=work,
    cpu_only=cpu_only,
    takes_grid=True,
    windows=patch_windows,
)
