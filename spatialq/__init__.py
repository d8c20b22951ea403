"""Point clouds, terrain grids and building models as tables in DuckDB.

`connect` opens a database with all functions, `install` puts them on a connection you have.
Nothing heavy is imported before it is needed.
"""

from typing import TYPE_CHECKING, Any

from spatialq.errors import CrsError, DeviceError, FileError, FileWarning, SpatialqError

if TYPE_CHECKING:
    from spatialq.call import run, run_elements, run_grid
    from spatialq.connection import connect, install
    from spatialq.features import write_features
    from spatialq.ground import write_ground
    from spatialq.io.grid import read_grid
    from spatialq.io.ifc import read_ifc
    from spatialq.io.las import read_las
    from spatialq.loading import load
    from spatialq.lod import write_lod
    from spatialq.planes import write_planes
    from spatialq.udfs.intersects_with.meshes import Meshes
    from spatialq.udfs.pops_features.own import pops_method

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
    "Meshes": "spatialq.udfs.intersects_with.meshes",
    "connect": "spatialq.connection",
    "install": "spatialq.connection",
    "load": "spatialq.loading",
    "pops_method": "spatialq.udfs.pops_features.own",
    "read_grid": "spatialq.io.grid",
    "read_ifc": "spatialq.io.ifc",
    "read_las": "spatialq.io.las",
    "run": "spatialq.call",
    "run_elements": "spatialq.call",
    "run_grid": "spatialq.call",
    "write_features": "spatialq.features",
    "write_ground": "spatialq.ground",
    "write_lod": "spatialq.lod",
    "write_planes": "spatialq.planes",
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
