"""Point clouds, terrain grids and building models as tables in DuckDB.

`connect` opens a database with all functions, `install` puts them on a connection you have.
Nothing heavy is imported before it is needed.
"""

from typing import Any

__all__ = [
    "CrsError",
    "DeviceError",
    "FileError",
    "FileWarning",
    "Meshes",
    "SpatialqError",
    "__version__",
    "calibrate",
    "connect",
    "describe",
    "export_ifc",
    "install",
    "load",
    "pin",
    "pin_budget",
    "pops_method",
    "read_grid",
    "read_ifc",
    "read_las",
    "run",
    "run_elements",
    "run_grid",
    "unpin",
    "write_features",
    "write_ground",
    "write_lod",
    "write_planes",
]

LAZY = {
    "CrsError": "spatialq.errors",
    "DeviceError": "spatialq.errors",
    "FileError": "spatialq.errors",
    "FileWarning": "spatialq.errors",
    "Meshes": "spatialq.data.meshes",
    "SpatialqError": "spatialq.errors",
    "calibrate": "spatialq.workflows.calibration",
    "connect": "spatialq.database.connection",
    "describe": "spatialq.functions.help",
    "export_ifc": "spatialq.database.partial_models",
    "install": "spatialq.database.connection",
    "load": "spatialq.database.loading",
    "pin": "spatialq.database.pinning",
    "pin_budget": "spatialq.database.pins",
    "pops_method": "spatialq.udfs.pops_features.user_methods",
    "read_grid": "spatialq.io.grid.source",
    "read_ifc": "spatialq.database.readers.ifc_models",
    "read_las": "spatialq.io.las.source",
    "run": "spatialq.execution.run",
    "run_elements": "spatialq.execution.run",
    "run_grid": "spatialq.execution.run",
    "unpin": "spatialq.database.pinning",
    "write_features": "spatialq.workflows.features",
    "write_ground": "spatialq.workflows.ground",
    "write_lod": "spatialq.workflows.lod",
    "write_planes": "spatialq.workflows.planes",
}
"""Where each public name is; `__init__.pyi`, which is generated, tells type checkers the same."""


def __getattr__(name: str) -> Any:
    if name in LAZY:
        import importlib

        return getattr(importlib.import_module(LAZY[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("spatialq")
    message = f"module 'spatialq' has no attribute '{name}'"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted(__all__)
