"""Point clouds, terrain grids and building models as tables in DuckDB.

`connect` opens a database with all functions, `install` puts them on a connection you have.
Nothing heavy is imported before it is needed.
"""

from typing import TYPE_CHECKING, Any

from spatialq.errors import CrsError, DeviceError, FileError, FileWarning, SpatialqError

if TYPE_CHECKING:
    from spatialq.data.meshes import Meshes
    from spatialq.database.connection import connect, install
    from spatialq.database.loading import load
    from spatialq.database.readers.ifc_models import read_ifc
    from spatialq.execution.call import run, run_elements, run_grid
    from spatialq.io.grid.source import read_grid
    from spatialq.io.las.source import read_las
    from spatialq.udfs.pops_features.user_methods import pops_method
    from spatialq.workflows.features import write_features
    from spatialq.workflows.ground import write_ground
    from spatialq.workflows.lod import write_lod
    from spatialq.workflows.planes import write_planes

__all__ = [
    "CrsError",
    "DeviceError",
    "FileError",
    "FileWarning",
    "Meshes",
    "SpatialqError",
    "__version__",
    "connect",
    "install",
    "load",
    "pops_method",
    "read_grid",
    "read_ifc",
    "read_las",
    "run",
    "run_elements",
    "run_grid",
    "write_features",
    "write_ground",
    "write_lod",
    "write_planes",
]

_LAZY = {
    "Meshes": "spatialq.data.meshes",
    "connect": "spatialq.database.connection",
    "install": "spatialq.database.connection",
    "load": "spatialq.database.loading",
    "pops_method": "spatialq.udfs.pops_features.user_methods",
    "read_grid": "spatialq.io.grid.source",
    "read_ifc": "spatialq.database.readers.ifc_models",
    "read_las": "spatialq.io.las.source",
    "run": "spatialq.execution.call",
    "run_elements": "spatialq.execution.call",
    "run_grid": "spatialq.execution.call",
    "write_features": "spatialq.workflows.features",
    "write_ground": "spatialq.workflows.ground",
    "write_lod": "spatialq.workflows.lod",
    "write_planes": "spatialq.workflows.planes",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("spatialq")
    message = f"module 'spatialq' has no attribute '{name}'"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted(__all__)
