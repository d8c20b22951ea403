"""Models that were read, on disk: another process need not make their meshes again.

A file in the user's cache folder holds the tables of one model, as Arrow IPC streams behind a line
of JSON. It is named after the digest of the model's content and of all that decides how it is read,
so it never becomes wrong, only unused.
"""

import contextlib
import hashlib
import io
import json
import os
import tempfile
from functools import cache
from importlib import metadata
from pathlib import Path

import pyarrow as pa

from spatialq.io.ifc.columns import GEOMETRIES, Geometry
from spatialq.io.ifc.model import IfcModel
from spatialq.io.ifc.tables import SCHEMAS
from spatialq.runtime import user_cache

OFF = "SPATIALQ_IFC_CACHE"
BYTES = "SPATIALQ_IFC_CACHE_BYTES"

MAX_BYTES = 2 << 30
"""Of all files together, unless `BYTES` is set; those that were not used for longest go."""

SUFFIX = ".model"
DIGEST = 32
"""Bytes of the digest with which a file begins."""

LIBRARIES = ("ifcopenshell", "ifclite-geom", "pyarrow")
PATH = "file_name"
"""The column that depends on where the model is: not kept."""


def digest_of(path: Path) -> str | None:
    """Give the digest of a model's content, and of what decides how it is read.

    None if there is no cache, or the file cannot be read.
    """
    if _folder() is None:
        return None
    try:
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "blake2b")
    except OSError:
        return None
    content.update(_reader())
    return content.hexdigest()[: 2 * DIGEST]


def get(digest: str, path: Path, geometry: Geometry) -> IfcModel | None:
    """Give the model of a file if it is in the cache.

    'none' is answered by a model with meshes, too.
    """
    folder = _folder()
    if folder is None:
        return None
    for kept in (geometry,) if geometry != "none" else reversed(GEOMETRIES):
        file = folder / f"{digest}-{kept}{SUFFIX}"
        with contextlib.suppress(OSError, ValueError, KeyError, pa.ArrowException):
            model = _unpacked(file.read_bytes(), path)
            os.utime(file)  # it was used
            return model if kept == geometry else model.without_meshes()
    return None


def put(digest: str, model: IfcModel) -> None:
    """Keep a model, unless it depends on how busy the machine was.

    The digest is of the file before it was read, and the file must not have changed since.
    """
    folder = _folder()
    if folder is None or not model.is_repeatable:
        return
    # A full or broken disk only costs the cache.
    with contextlib.suppress(OSError):
        packed = _packed(model)
        target = folder / f"{digest}-{model.geometry}{SUFFIX}"
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as partial:
            try:
                for part in packed:
                    partial.write(part)
                partial.close()
                Path(partial.name).replace(target)
            except BaseException:
                partial.close()
                Path(partial.name).unlink(missing_ok=True)
                raise
        _forget(folder)


def _folder() -> Path | None:
    if os.environ.get(OFF, "").lower() in ("off", "0", "no", "false"):
        return None
    parent = user_cache.folder()
    if parent is None:
        return None
    folder = parent / "ifc"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return folder


@cache
def _reader() -> bytes:
    """Give the versions of the libraries and the digest of this package's source."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    versions = [metadata.version(name) for name in LIBRARIES]
    parts = [source.read_bytes() for source in sources]
    return hashlib.blake2b("\n".join(versions).encode() + b"".join(parts)).digest()


def _packed(model: IfcModel) -> list[bytes]:
    """Give the parts of a file: digest, and a line of JSON and the tables, of which it is."""
    about = {name: getattr(model, name) for name in ABOUT}
    out = io.BytesIO()
    out.write(json.dumps({**about, "tables": list(model.tables)}).encode() + b"\n")
    for table in model.tables.values():
        kept = table.drop_columns([PATH])
        with pa.ipc.new_stream(out, kept.schema) as stream:
            stream.write_table(kept)
    content = out.getvalue()
    return [hashlib.blake2b(content, digest_size=DIGEST).digest(), content]


ABOUT = (
    "geometry", "schema", "length_unit", "length_unit_metres", "georeference", "curve_only",
    "warnings",
)  # fmt: skip
"""What else there is to know about a model."""


def _unpacked(packed: bytes, path: Path) -> IfcModel:
    """Give the model that a file holds.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    content = memoryview(packed)[DIGEST:]
    if hashlib.blake2b(content, digest_size=DIGEST).digest() != packed[:DIGEST]:
        message = "the file is damaged"
        raise ValueError(message)
    line = packed.index(b"\n", DIGEST) + 1
    about = json.loads(packed[DIGEST:line])
    file = pa.BufferReader(pa.py_buffer(packed).slice(line))
    tables = {name: _with_path(_next_table(file), name, path) for name in about.pop("tables")}
    warnings = tuple(about.pop("warnings"))
    return IfcModel(path=path, tables=tables, warnings=warnings, is_repeatable=True, **about)


def _next_table(file: pa.BufferReader) -> pa.Table:
    with pa.ipc.open_stream(file) as stream:
        return stream.read_all()


def _with_path(table: pa.Table, name: str, path: Path) -> pa.Table:
    schema = SCHEMAS[name]
    at = schema.get_field_index(PATH)
    paths = pa.repeat(pa.scalar(str(path), pa.string()), table.num_rows)
    return table.add_column(at, schema.field(at), paths).cast(schema)


def _forget(folder: Path) -> None:
    """Remove the files that were not used for longest, until the others are small enough."""
    files = []
    for file in folder.iterdir():
        with contextlib.suppress(OSError):  # another process removes files, too
            state = file.stat()
            files.append((state.st_mtime, state.st_size, file))
    total = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if total <= max_bytes():
            break
        with contextlib.suppress(OSError):
            file.unlink()
            total -= size


def max_bytes() -> int:
    """Give how much the cache may hold."""
    given = os.environ.get(BYTES, "")
    return int(given) if given.isdecimal() else MAX_BYTES
