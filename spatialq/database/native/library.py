"""The shared library of the extension: loaded into databases by DuckDB, and here by ctypes.

Both open the same file, so that both see the same library: what a query collects is known to
Python by a number.
"""

import ctypes
import threading
from collections.abc import Iterator
from ctypes import POINTER, c_bool, c_char_p, c_int, c_int64, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

PATH = Path(__file__).with_name("spatialq.duckdb_extension")
"""Where the build puts the extension; its name tells DuckDB which function to call."""
FORMATS = {
    "BIGINT": b"l", "DOUBLE": b"g", "UBIGINT": b"L", "USMALLINT": b"S", "UTINYINT": b"C",
    "VARCHAR": b"u", "DOUBLE[]": b"[g", "INTEGER[]": b"[i",
}  # fmt: skip
"""Arrow's format strings for the types of collected columns; '[' before that of a list."""
RUN = ctypes.CFUNCTYPE(
    c_int,
    c_int,
    c_int64,
    c_bool,
    c_uint64,
    POINTER(c_int64),
    c_void_p,
    c_void_p,
    c_void_p,
    c_uint64,
)
"""As `Run` in extension.c."""
SIGNALS = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Clear")
"""Python's own functions with which the library looks for signals while it waits for rows."""
SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "begin": (c_int, (c_int64, c_bool)),
    "bytes": (c_uint64, (c_int64, c_int, c_int)),
    "closed_instance": (c_int64, ()),
    "copy": (None, (c_int64, c_int, c_int, c_uint64, c_uint64, c_void_p, c_void_p)),
    "copy_bytes": (None, (c_int64, c_int, c_int, c_void_p, c_void_p, c_void_p)),
    "count_calls": (c_int64, ()),
    "count_collected": (c_int64, ()),
    "counts": (c_bool, (c_int64, c_int)),
    "declare": (c_int, (c_char_p, POINTER(c_char_p), c_int, c_void_p)),
    "describe": (c_bool, (POINTER(c_int64), c_uint64, POINTER(c_uint64), POINTER(c_char_p))),
    "fail": (None, (c_int64, c_char_p)),
    "finish": (None, (c_int64,)),
    "forget": (None, (c_int64, c_int, c_int)),
    "forget_closed": (None, ()),
    "forked": (None, ()),
    "free": (None, (c_int64,)),
    "join": (c_bool, (POINTER(c_int64), c_uint64, POINTER(c_int64))),
    "keep": (c_uint64, (c_uint64,)),
    "nulls": (c_uint64, (c_int64, c_int, c_int)),
    "pieces": (c_uint64, (c_int64, c_int)),
    "push": (c_bool, (c_int64, c_void_p, c_void_p)),
    "read_by": (c_bool, (c_char_p, c_char_p)),
    "request": (c_char_p, (c_int64,)),
    "rows": (c_uint64, (c_int64, c_int)),
    "set_instance": (None, (c_int64,)),
    "set_run": (None, (RUN,)),
    "set_signals": (None, (c_uint64, *[c_void_p] * len(SIGNALS))),
    "stop": (None, ()),
    "wait_dropped": (c_int64, ()),
    "wait_read": (c_uint64, (c_int64, c_uint64)),
}
"""What the library exports as `spatialq_<name>`: type of the result, types of the arguments."""


class ArrowArray(ctypes.Structure):
    """An array of Arrow's C data interface."""

    _fields_ = (
        ("numbers", c_int64 * 5),
        ("pointers", c_void_p * 3),
        ("release", ctypes.CFUNCTYPE(None, c_void_p)),
        ("private_data", c_void_p),
    )


class ArrowSchema(ctypes.Structure):
    """A type of Arrow's C data interface."""

    _fields_ = (
        ("texts", c_void_p * 3),
        ("numbers", c_int64 * 2),
        ("pointers", c_void_p * 2),
        ("release", ctypes.CFUNCTYPE(None, c_void_p)),
        ("private_data", c_void_p),
    )


class Exported:
    """Something of Arrow, as the library reads it.

    Parameters
    ----------
    exported : pyarrow.Array or pyarrow.DataType
    """

    def __init__(self, exported: Any) -> None:
        self._array, self._schema = ArrowArray(), ArrowSchema()
        self.array, self.schema = ctypes.addressof(self._array), ctypes.addressof(self._schema)
        where = (self.schema,) if isinstance(exported, pa.DataType) else (self.array, self.schema)
        exported._export_to_c(*where)

    def release(self) -> None:
        """Give its memory back; again is harmless."""
        for struct in (self._array, self._schema):
            if struct.release:  # which sets itself to NULL
                struct.release(ctypes.addressof(struct))


@cache
def library() -> Any:
    """Open the library.

    Raises
    ------
    OSError
        If it was not built, was built from older sources, or cannot be opened on this machine.
    """
    opened = ctypes.CDLL(str(PATH))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(opened, f"spatialq_{name}", None)
        if function is None:
            message = f"{PATH} has no spatialq_{name}: pip install builds it from these sources"
            raise OSError(message)
        function.restype, function.argtypes = result, arguments
    return opened


def look_for_signals() -> None:
    """Let the library look for signals, where Python's main thread waits for rows."""
    functions = (ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p) for name in SIGNALS)
    library().spatialq_set_signals(threading.main_thread().ident, *functions)


def closed_instances() -> Iterator[int]:
    """Give the numbers of database instances that had the extension and are no more, each once."""
    if library.cache_info().currsize:  # else there was none
        yield from iter(library().spatialq_closed_instance, 0)
