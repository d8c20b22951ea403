"""All SQL functions that DuckDB calls: those of the declarations, and the engine's own.

Only names and types are here; what answers is imported at the first call. All names begin with
"spatialq_": macros are kept in a database file, and in DuckDB without spatialq the error about a
missing function then says whose it is.
"""

from functools import cache

from spatialq.data.arrow import MESH
from spatialq.database.kernel_functions import kernel_functions
from spatialq.database.transport.columns import ELEMENT
from spatialq.database.transport.request import Transport
from spatialq.functions.catalogue import catalogue, helpers
from spatialq.functions.declaration import PointsInput
from spatialq.functions.sql_function import SqlFunction, struct_type
from spatialq.io import bcf
from spatialq.io.ids import columns as ids
from spatialq.io.ifc import columns as ifc

POINT_COLUMNS = {
    "point_id": "BIGINT",
    "x": "DOUBLE",
    "y": "DOUBLE",
    "z": "DOUBLE",
    "intensity": "USMALLINT",
    "return_number": "UTINYINT",
    "number_of_returns": "UTINYINT",
    "synthetic": "BOOLEAN",
    "key_point": "BOOLEAN",
    "withheld": "BOOLEAN",
    "overlap": "BOOLEAN",
    "scanner_channel": "UTINYINT",
    "scan_direction_flag": "BOOLEAN",
    "edge_of_flight_line": "BOOLEAN",
    "classification": "UTINYINT",
    "scan_angle_rank": "TINYINT",
    "scan_angle": "FLOAT",
    "user_data": "UTINYINT",
    "point_source_id": "USMALLINT",
    "gps_time": "DOUBLE",
    "red": "USMALLINT",
    "green": "USMALLINT",
    "blue": "USMALLINT",
    "nir": "USMALLINT",
    "wavepacket_index": "UTINYINT",
    "wavepacket_offset": "UBIGINT",
    "wavepacket_size": "UINTEGER",
    "return_point_wave_location": "FLOAT",
    "x_t": "FLOAT",
    "y_t": "FLOAT",
    "z_t": "FLOAT",
    "file_name": "VARCHAR",
}
"""The columns with places of their own in `spatialq_read_points_span`: the dimensions of LAS."""

OTHER_COLUMNS = {
    "floats": "DOUBLE",
    "integers": "BIGINT",
    "unsigned": "UBIGINT",
    "texts": "VARCHAR",
}
"""The places for other columns: by kind of value, a list of columns each."""


DEVICES = {
    "device": "VARCHAR",
    "name": "VARCHAR",
    "cores": "INTEGER",
    "memory_bytes": "BIGINT",
    "free_bytes": "BIGINT",
    "usable": "BOOLEAN",
    "problem": "VARCHAR",
    "number": "INTEGER",
}
LOG = {
    "at": "TIMESTAMP",
    "function": "VARCHAR",
    "row_count": "BIGINT",
    "device": "VARCHAR",
    "reason": "VARCHAR",
    "estimated_seconds": "DOUBLE",
    "seconds": "DOUBLE",
    "error": "VARCHAR",
    "transport": "VARCHAR",
    "transport_seconds": "DOUBLE",
}
PLAN = {
    "device": "VARCHAR",
    "chosen": "BOOLEAN",
    "estimated_seconds": "DOUBLE",
    "memory_bytes": "BIGINT",
    "reason": "VARCHAR",
    "number": "INTEGER",
}
OPERATION = {"operation": "VARCHAR", "accuracy": "DOUBLE", "note": "VARCHAR"}
PINS = {
    "table_name": "VARCHAR",
    "device": "VARCHAR",
    "row_count": "BIGINT",
    "columns": "VARCHAR[]",
    "bytes": "BIGINT",
    "uses": "BIGINT",
    "misses": "BIGINT",
    "pinned_at": "TIMESTAMP",
}
JOB = {
    "function": "VARCHAR",
    "points": "BIGINT",
    "rows": "BIGINT",
    "parts": "BIGINT",
    "resumed": "BIGINT",
    "seconds": "DOUBLE",
    "folder": "VARCHAR",
}
JOBS = {
    "folder": "VARCHAR",
    "function": "VARCHAR",
    "state": "VARCHAR",
    "stage": "VARCHAR",
    "done": "BIGINT",
    "tasks": "BIGINT",
    "started": "TIMESTAMP",
    "active": "TIMESTAMP",
    "elapsed": "DOUBLE",
    "rest": "DOUBLE",
    "parts": "BIGINT",
    "points": "BIGINT",
    "rows": "BIGINT",
    "inputs": "BIGINT",
    "source": "VARCHAR",
    "options": "VARCHAR",
}

READERS = "spatialq.database.readers"
ELEMENT_SETS = "spatialq.database.element_sets"
SELECTORS = "spatialq.database.selectors.query"
CHANGES = "spatialq.database.model_changes"
PLANNER_TABLES = "spatialq.database.planner_tables"
PINS_MODULE = "spatialq.database.pins"
PINNING = "spatialq.database.pinning"
TRANSFORMING = "spatialq.database.transforming"
TRANSPORT = "spatialq.database.transport"


VECTOR_COLUMNS = {"integers": "BIGINT", "floats": "DOUBLE", "texts": "VARCHAR"}
"""Of what kind the attributes of features are in `spatialq_read_vector_layer`."""


def _list_of(columns: dict[str, str]) -> str:
    return f"{struct_type(columns)}[]"


def _columns_as_lists() -> str:
    """Give the type of a span of points: a list for each column, and lists of other columns."""
    lists = {name: f"{kind}[]" for name, kind in POINT_COLUMNS.items()}
    return struct_type({**lists, **{name: f"{kind}[][]" for name, kind in OTHER_COLUMNS.items()}})


def _writes(name: str, parameters: tuple[str, ...], implementation: str) -> SqlFunction:
    """Give a function that writes text of constants, mostly a query, while DuckDB plans."""
    return SqlFunction(name, parameters, "VARCHAR", implementation, volatile=False, by_rows=True)


ENGINE = (
    _writes(
        "spatialq_read_points_sql",
        ("VARCHAR", "VARCHAR", "DOUBLE[]", "VARCHAR[]", "VARCHAR", "DOUBLE"),
        f"{READERS}.points:read_points_sql",
    ),
    SqlFunction(
        "spatialq_read_points_span",
        ("VARCHAR", "BIGINT"),
        _columns_as_lists(),
        f"{READERS}.points:read_points_span",
    ),
    _writes(
        "spatialq_read_grid_sql",
        ("VARCHAR", "DOUBLE", "BIGINT", "DOUBLE[]", "VARCHAR", "VARCHAR", "DOUBLE"),
        f"{READERS}.grid:read_grid_sql",
    ),
    SqlFunction(
        "spatialq_read_grid_span",
        ("VARCHAR", "BIGINT"),
        struct_type(dict.fromkeys("xyz", "DOUBLE[]")),
        f"{READERS}.grid:read_grid_span",
    ),
    _writes(
        "spatialq_read_vector_sql",
        ("VARCHAR", "VARCHAR", "VARCHAR"),
        f"{READERS}.vector:read_vector_sql",
    ),
    SqlFunction(
        "spatialq_read_vector_layer",
        ("VARCHAR",),
        struct_type(
            {"fid": "BIGINT[]", "geometry": "BLOB[]"}
            | {name: f"{kind}[][]" for name, kind in VECTOR_COLUMNS.items()}
        ),
        f"{READERS}.vector:read_vector_layer",
    ),
    *(
        SqlFunction(
            f"spatialq_{name}_files",
            ("VARCHAR",),
            "VARCHAR[]",
            f"{READERS}.files:read_files",
            (f"read_{name}",),
            volatile=False,
        )
        for name in ("bcf", "ifc")
    ),
    *(
        SqlFunction(
            f"spatialq_bcf_{name}",
            ("VARCHAR",),
            _list_of(columns),
            f"{READERS}.bcf:read_bcf_table",
            (name,),
        )
        for name, columns in bcf.TABLES.items()
    ),
    *(
        SqlFunction(
            f"spatialq_ifc_{name}",
            ("VARCHAR", "DOUBLE", "VARCHAR"),
            _list_of(columns),
            f"{READERS}.ifc:read_ifc_table",
            (name,),
        )
        for name, columns in ifc.TABLES.items()
    ),
    SqlFunction(
        "spatialq_model_changes",
        ("VARCHAR", "VARCHAR", "BOOLEAN", "DOUBLE"),
        _list_of(ifc.CHANGES),
        f"{CHANGES}:model_changes",
    ),
    SqlFunction(
        "spatialq_revision_changes",
        (_list_of(ifc.STATE), _list_of(ifc.STATE), "BOOLEAN", "DOUBLE"),
        _list_of(ifc.CHANGES),
        f"{CHANGES}:revision_changes",
    ),
    SqlFunction(
        "spatialq_check_ids",
        ("VARCHAR[]", "VARCHAR"),
        _list_of(ids.CHECKS),
        f"{READERS}.ids:check_ids",
    ),
    SqlFunction(
        "spatialq_ids_models",
        ("VARCHAR",),
        "VARCHAR[]",
        f"{READERS}.files:read_files",
        ("check_ids",),
        volatile=False,
    ),
    SqlFunction(
        "spatialq_ids_specifications",
        ("VARCHAR",),
        _list_of(ids.SPECIFICATIONS),
        f"{READERS}.ids:ids_specifications",
    ),
    SqlFunction(
        "spatialq_ifc_subtypes",
        ("VARCHAR", "VARCHAR"),
        "VARCHAR[]",
        f"{READERS}.ifc_classes:subtypes",
        volatile=False,
        by_rows=True,
    ),
    *(
        SqlFunction(
            f"spatialq_ifc_{name}_udf",
            ("INTEGER",),
            _list_of(columns),
            f"{READERS}.ifc_classes:{name}_table",
            by_rows=True,
        )
        for name, columns in (
            ("lineage", ifc.LINEAGE),
            ("inverse_attributes", ifc.INVERSE_ATTRIBUTES),
        )
    ),
    _writes(
        "spatialq_selector_sql", ("VARCHAR", "VARCHAR", "VARCHAR"), f"{SELECTORS}:selector_sql"
    ),
    SqlFunction(
        "spatialq_selector_unknown",
        ("VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR[]", "VARCHAR[]"),
        "BOOLEAN",
        f"{SELECTORS}:unknown_property",
        volatile=False,
        by_rows=True,
    ),
    _writes("spatialq_objects_beside", ("VARCHAR", "VARCHAR"), f"{SELECTORS}:objects_beside"),
    _writes(
        "spatialq_related_sql",
        ("VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR"),
        f"{ELEMENT_SETS}:related_sql",
    ),
    _writes("spatialq_ql4bim_sql", ("VARCHAR", "VARCHAR", "VARCHAR"), "ql4bim_sql"),
    _writes("spatialq_quality_sql", ("VARCHAR",), "quality_sql"),
    _writes(
        "spatialq_revisions_sql",
        ("VARCHAR", "VARCHAR"),
        "spatialq.database.revisions:revisions_sql",
    ),
    SqlFunction(
        "spatialq_mesh_boxes",
        (MESH,),
        "DOUBLE[]",
        "spatialq.database.near_boxes:mesh_boxes",
        volatile=False,
    ),
    SqlFunction(
        "spatialq_candidate_pairs",
        ("DOUBLE[][]", "DOUBLE[][]", "DOUBLE", "VARCHAR"),
        "STRUCT(i BIGINT, j BIGINT)[]",
        "spatialq.database.near_boxes:candidate_pairs",
        volatile=False,
    ),
    SqlFunction(
        "spatialq_clusters",
        ("DOUBLE[]", "DOUBLE[]", "DOUBLE[]", "DOUBLE"),
        "BIGINT[]",
        "spatialq.geometry.chains:clusters_of_lists",
        volatile=False,
        by_rows=True,
    ),
    SqlFunction(
        "spatialq_refuse",
        ("VARCHAR", "VARCHAR"),
        "BIGINT",
        f"{TRANSPORT}.refusal:refuse",
        volatile=False,
    ),
    _writes("spatialq_shown_udf", ("VARCHAR", "VARCHAR"), f"{TRANSPORT}.refusal:shown"),
    SqlFunction(
        "spatialq_refuse_column",
        ("VARCHAR", "VARCHAR", "VARCHAR"),
        "BIGINT",
        f"{TRANSPORT}.refusal:refuse_column",
        volatile=False,
    ),
    SqlFunction(
        "spatialq_checked",
        ("VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR[]"),
        "BOOLEAN",
        f"{TRANSPORT}.refusal:checked",
        volatile=False,
    ),
    _writes(
        "spatialq_rows_sql", ("VARCHAR", "VARCHAR", "VARCHAR[]"), f"{TRANSPORT}.table_rows:rows_sql"
    ),
    _writes(
        "spatialq_tables_udf",
        ("VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR[]"),
        f"{TRANSPORT}.refusal:tables",
    ),
    _writes("spatialq_table_name", ("VARCHAR", "VARCHAR"), f"{TRANSPORT}.refusal:table_name"),
    SqlFunction(
        "spatialq_transform_udf",
        ("DOUBLE", "DOUBLE", "DOUBLE", "VARCHAR", "VARCHAR"),
        struct_type(dict.fromkeys("xyz", "DOUBLE")),
        f"{TRANSFORMING}:transform",
        volatile=False,
    ),
    SqlFunction(
        "spatialq_operation_udf",
        ("VARCHAR", "VARCHAR"),
        struct_type(OPERATION),
        f"{TRANSFORMING}:operation",
        volatile=False,
        by_rows=True,
    ),
    SqlFunction(
        "spatialq_log_udf", ("INTEGER",), _list_of(LOG), f"{PLANNER_TABLES}:log_table", by_rows=True
    ),
    _writes("spatialq_frame_sql", ("VARCHAR", "BOOLEAN"), "spatialq.database.frames:frame_sql"),
    _writes(
        "spatialq_frame",
        ("VARCHAR", "VARCHAR", "VARCHAR[]", "VARCHAR[][]", "VARCHAR[][]"),
        "spatialq.database.frames:frame_json",
    ),
    SqlFunction(
        "spatialq_metres",
        ("VARCHAR", "VARCHAR", "DOUBLE", "VARCHAR"),
        "DOUBLE[]",
        "spatialq.database.frames:metres",
        volatile=False,
        by_rows=True,
    ),
    SqlFunction(
        "spatialq_cluster_run_udf", ("VARCHAR",) * 4, _list_of(JOB), "run_job", by_rows=True
    ),
    SqlFunction(
        "spatialq_cluster_jobs_udf", ("VARCHAR",), _list_of(JOBS), "jobs_table", by_rows=True
    ),
    _writes("spatialq_cluster_table_sql", ("VARCHAR",), "jobs_sql"),
    SqlFunction(
        "spatialq_plan_udf",
        ("VARCHAR", "BIGINT", "VARCHAR"),
        _list_of(PLAN),
        f"{PLANNER_TABLES}:plan_table",
        by_rows=True,
    ),
)


def attributes() -> dict[str, str]:
    """Give the attributes that any function of points looks at, with their SQL types."""
    found: dict[str, str] = {}
    for function in catalogue().values():
        if isinstance(function.inputs, PointsInput):
            found |= function.inputs.attributes
    return found


def _of_pins() -> tuple[SqlFunction, ...]:
    """Give the functions that keep tables in memory, and find them there."""
    place = ("VARCHAR",) * 3  # table, its state, device
    lists = (
        "BIGINT[]",
        *("DOUBLE[]" for _ in "xyz"),
        *(f"{kind}[]" for kind in attributes().values()),
    )
    row, rows = struct_type(PINS), _list_of(PINS)
    sought = ("VARCHAR", "VARCHAR[]", "BOOLEAN", "VARCHAR")
    return (
        _writes("spatialq_pin_sql", ("VARCHAR", "VARCHAR[]", "VARCHAR"), f"{PINNING}:pin_sql"),
        SqlFunction(
            "spatialq_pin_points", (*place, "VARCHAR[]", *lists), row, f"{PINNING}:pin_points"
        ),
        SqlFunction(
            "spatialq_pin_elements", (*place, f"{ELEMENT}[]"), row, f"{PINNING}:pin_elements"
        ),
        # What looks for a pin is not volatile: in a correlated subquery DuckDB would run all that
        # depends on it for each outer row. It gets the state, so that nothing is kept either.
        SqlFunction(
            "spatialq_pin_of",
            sought,
            "BIGINT",
            f"{PINS_MODULE}:pin_of",
            volatile=False,
            by_rows=True,
        ),
        SqlFunction(
            "spatialq_pins_udf", ("INTEGER",), rows, f"{PINS_MODULE}:pins_table", by_rows=True
        ),
        SqlFunction(
            "spatialq_unpin_udf", ("VARCHAR",), rows, f"{PINS_MODULE}:unpin_table", by_rows=True
        ),
    )


@cache
def sql_functions(transport: Transport) -> tuple[SqlFunction, ...]:
    """All functions of a database instance, which owns what DuckDB calls."""
    kernels = (made for each in catalogue().values() for made in kernel_functions(each, transport))
    devices = SqlFunction(
        "spatialq_devices_udf",
        ("INTEGER",),
        _list_of(DEVICES),
        f"{PLANNER_TABLES}:devices_table",
        (transport,),
        by_rows=True,
    )
    return (*kernels, *helpers(), devices, *ENGINE, *_of_pins())
