"""Point clouds, terrain grids and building models as tables in DuckDB.

`connect` opens a database with all functions, `install` puts them on a connection you have.
Nothing heavy is imported before it is needed.
"""

from typing import Any

from spatialq.functions.implementations import registered as _registered

__all__ = [
    "CrsError",
    "DeviceError",
    "Elements",
    "FileError",
    "FileWarning",
    "Grid",
    "Meshes",
    "Nodes",
    "Objects",
    "Pairs",
    "Points",
    "Query",
    "QueryError",
    "Script",
    "ScriptError",
    "SpatialqError",
    "__version__",
    "calibrate",
    "check_ids",
    "compile_script",
    "connect",
    "describe",
    "export_database",
    "export_ifc",
    "from_sql",
    "ids_specifications",
    "import_database",
    "install",
    "load",
    "model_changes",
    "pin",
    "pin_budget",
    "pops_method",
    "read_grid",
    "read_ifc",
    "read_ifc_objects",
    "read_las",
    "read_points",
    "read_vector",
    "run",
    "run_elements",
    "run_grid",
    "run_script",
    "table",
    "unload",
    "unpin",
    "view",
    "write",
    "write_clip",
    "write_features",
    "write_ground",
    "write_lod",
    "write_noise",
    "write_planes",
    "write_report",
    "write_terrain_products",
    "write_thinned",
    "write_tiles",
]

LAZY = {
    "CrsError": "spatialq.errors",
    "DeviceError": "spatialq.errors",
    "Elements": "spatialq.query.functions",
    "FileError": "spatialq.errors",
    "FileWarning": "spatialq.errors",
    "Grid": "spatialq.query.functions",
    "Meshes": "spatialq.data.meshes",
    "Nodes": "spatialq.query.functions",
    "Objects": "spatialq.query.functions",
    "Pairs": "spatialq.query.functions",
    "Points": "spatialq.query.functions",
    "Query": "spatialq.query.relational",
    "QueryError": "spatialq.errors",
    "Script": "spatialq.ql4bim.run",
    "ScriptError": "spatialq.errors",
    "SpatialqError": "spatialq.errors",
    "calibrate": "spatialq.workflows.calibration",
    "check_ids": "spatialq.query.checks",
    "compile_script": "spatialq.ql4bim.program",
    "connect": "spatialq.database.connection",
    "describe": "spatialq.functions.help",
    "export_database": "spatialq.database.exchange",
    "export_ifc": "spatialq.database.partial_models",
    "from_sql": "spatialq.query.query",
    "ids_specifications": "spatialq.query.checks",
    "import_database": "spatialq.database.exchange",
    "install": "spatialq.database.connection",
    "load": "spatialq.database.loading",
    "model_changes": "spatialq.query.changes",
    "pin": "spatialq.database.pinning",
    "pin_budget": "spatialq.database.pins",
    "pops_method": "spatialq.udfs.pops_features.user_methods",
    "read_grid": "spatialq.query.query",
    "read_ifc": "spatialq.query.query",
    "read_ifc_objects": "spatialq.query.query",
    "read_las": "spatialq.query.query",
    "read_points": "spatialq.query.query",
    "read_vector": "spatialq.query.query",
    "run": "spatialq.execution.run",
    "run_elements": "spatialq.execution.run",
    "run_grid": "spatialq.execution.run",
    "run_script": "spatialq.ql4bim.run",
    "table": "spatialq.query.query",
    "unload": "spatialq.database.loading",
    "unpin": "spatialq.database.pinning",
    "view": "spatialq.serve.notebook",
    "write": "spatialq.query.writing",
    "write_clip": "spatialq.workflows.clip",
    "write_features": "spatialq.workflows.features",
    "write_ground": "spatialq.workflows.ground",
    "write_lod": "spatialq.workflows.lod",
    "write_noise": "spatialq.workflows.point_choice",
    "write_planes": "spatialq.workflows.planes",
    "write_report": "spatialq.workflows.report",
    "write_terrain_products": "spatialq.workflows.terrain",
    "write_thinned": "spatialq.workflows.point_choice",
    "write_tiles": "spatialq.workflows.tiles",
}
"""Where each public name is; `__init__.pyi`, which is generated, tells type checkers the same."""

_registered.update(
    {
        "jobs_sql": "spatialq.cluster.sql_calls:table_sql",
        "jobs_table": "spatialq.cluster.sql_calls:jobs_table",
        "misplaced": "spatialq.udfs.registration.misplaced:sentence",
        "ql4bim_sql": "spatialq.ql4bim.sql_macro:ql4bim_sql",
        "quality_sql": "spatialq.workflows.model_quality:quality_sql",
        "query_to_bcf": "spatialq.workflows.clash_bcf:write",
        "query_to_clash_model": "spatialq.workflows.clash_model:write",
        "query_to_lod": "spatialq.workflows.lod_query:write",
        "query_to_page": "spatialq.workflows.clash_page:write",
        "query_to_tiles": "spatialq.workflows.lod_query:write_tiles",
        "query_to_view": "spatialq.serve.notebook:shown",
        "run_job": "spatialq.cluster.sql_calls:run_job",
        "unpack_lod_samples": "spatialq.workflows.lod_samples:unpacked",
        "lod_view": "spatialq.workflows.lod_view:view",
        "write_bcf": "spatialq.workflows.clash_bcf:write_bcf",
        "write_ground": "spatialq.workflows.ground:write_ground",
        "write_lod": "spatialq.workflows.lod:write_lod",
        "write_tiles": "spatialq.workflows.tiles:write_tiles",
        "write_files": "spatialq.workflows.sql_calls:written",
    }
)
"""What layers below call of those above."""


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
