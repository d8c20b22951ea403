"""Rows of a table as the one scan of an E57 file, by libE57Format.

The standard is ASTM E2807. It has names for coordinates, intensity and colour; the other columns
are fields of an extension, as it provides for them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from spatialq.errors import FileError
from spatialq.export.atomic import WRITER, whole
from spatialq.export.point_columns import AXES, Column, point_columns
from spatialq.io.crs import to_wkt
from spatialq.io.source import ROW_GROUP
from spatialq.runtime.arrays import Array
from spatialq.runtime.temporary import not_written

if TYPE_CHECKING:
    import pyarrow as pa

STANDARD = {
    **{axis: f"cartesian{axis.upper()}" for axis in AXES},
    **{colour: f"color{colour.capitalize()}" for colour in ("red", "green", "blue")},
    "intensity": "intensity",
}
LIMITS = {
    "cartesianBounds": {axis: STANDARD[axis] for axis in AXES},
    "intensityLimits": {"intensity": "intensity"},
    "colorLimits": {STANDARD[each]: STANDARD[each] for each in ("red", "green", "blue")},
}
"""Structures of a scan: their members, without Minimum and Maximum, and the fields of these."""
EXTENSION = ("las", "urn:spatialq:las")
"""Prefix and name of the namespace of other columns; readers of E57 leave out the prefix."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
BUFFERS = {"i4": "q", "u4": "q", "i8": "q", "u8": "q"}
"""Types whose values libE57Format gets as C's long long: it takes NumPy's int64 for 32-bit numbers
where that is C's long."""


@dataclass
class _Field:
    """A field of the points: where its values come from, and where libE57Format finds them."""

    name: str
    column: Column
    is_axis: bool
    space: Array
    low: float = np.inf
    high: float = -np.inf

    def fill(self, array: "pa.Array[Any]") -> None:
        """Take the values of some rows."""
        values = self.column.coordinates(array) if self.is_axis else self.column.values(array)
        self.space[: values.size] = self.column.as_type(values, self.space.dtype)
        if self.name in STANDARD.values():
            finite = values[np.isfinite(values)]
            if finite.size:
                self.low = min(self.low, finite.min().item())
                self.high = max(self.high, finite.max().item())


def write_e57(
    path: Path,
    columns: Mapping[str, str],
    batches: "Iterable[pa.RecordBatch]",
    *,
    crs: str | None = None,
) -> int:
    """Write rows as one scan without a pose.

    Coordinates are float64. `intensity`, `red`, `green` and `blue` are the fields of the standard,
    other columns fields with the prefix `las:`, of their types.

    Parameters
    ----------
    path : Path
    columns : mapping
        SQL types by name, `x`, `y` and `z` among them.
    batches : iterable of RecordBatch
        The rows, with these columns.
    crs : str, optional
        PROJJSON. It is written as WKT2.

    Returns
    -------
    int
        Points written.

    Raises
    ------
    FileError
        If a column or a value cannot be held, or the file cannot be written.
    """
    from pye57 import libe57

    fields = _fields(path, columns)
    with whole(path) as partial:
        image = None
        try:
            image = libe57.ImageFile(str(partial), "w")
            rows = _write(image, fields, batches, crs)
            image.close()
        except libe57.E57Exception as error:
            said = str(error).strip().partition("\n")[0]
            reason = not_written(partial.parent, f"cannot be written: {said}")
            raise FileError.of(WRITER, path, reason) from error
        finally:
            if image is not None and image.isOpen():
                image.cancel()  # which cuts the file
    return rows


def _fields(path: Path, columns: Mapping[str, str]) -> list[_Field]:
    """Name the fields of the columns.

    Raises
    ------
    FileError
        If a column cannot be a field.
    """
    xyz, others = point_columns(path, columns)
    fields = [
        _Field(STANDARD[axis], column, is_axis=True, space=np.empty(ROW_GROUP))
        for axis, column in zip(AXES, xyz, strict=True)
    ]
    for column in others:
        if column.count > 1:
            reason = f"has {column.count} values a row, but a field has one"
            column.refuse(reason, f"{column.quoted}[1]")
        if not NAME.fullmatch(column.name):
            another = re.sub(r"[^A-Za-z0-9_.-]+", "_", column.name)
            reason = f"has a name that E57 cannot have: write {column.quoted} AS {another}"
            column.refuse(reason)
        kind = column.dtype.str[1:]
        name = STANDARD.get(column.name.lower(), f"{EXTENSION[0]}:{column.name}")
        space = np.empty(ROW_GROUP, BUFFERS.get(kind, kind))
        fields.append(_Field(name, column, is_axis=False, space=space))
    return fields


def _write(
    image: Any, fields: list[_Field], batches: "Iterable[pa.RecordBatch]", crs: str | None
) -> int:
    from pye57 import libe57

    image.extensionsAdd(*EXTENSION)
    root = image.root()
    _set(root, formatName="ASTM E57 3D Imaging Data File", guid=f"{{{uuid4()}}}")
    _set(
        root, versionMajor=1, versionMinor=0, coordinateMetadata="" if crs is None else to_wkt(crs)
    )
    scans = libe57.VectorNode(image, True)  # noqa: FBT003
    root.set("data3D", scans)
    root.set("images2D", libe57.VectorNode(image, True))  # noqa: FBT003
    scan, prototype = libe57.StructureNode(image), libe57.StructureNode(image)
    _set(scan, guid=f"{{{uuid4()}}}", name="points")
    buffers = libe57.VectorSourceDestBuffer()
    for field in fields:
        prototype.set(field.name, _node(image, field))
        how = {"doConversion": True, "doScaling": True}
        buffers.append(libe57.SourceDestBuffer(image, field.name, field.space, ROW_GROUP, **how))
    points = libe57.CompressedVectorNode(image, prototype, libe57.VectorNode(image, True))  # noqa: FBT003
    scan.set("points", points)
    scans.append(scan)
    rows = 0
    writer = points.writer(buffers)
    try:
        for batch in batches:
            for begin in range(0, batch.num_rows, ROW_GROUP):
                part = batch.slice(begin, ROW_GROUP)
                for field in fields:
                    field.fill(part.column(field.column.name))
                writer.write(part.num_rows)
                rows += part.num_rows
    finally:
        writer.close()
    _set_limits(scan, {field.name: field for field in fields})
    return rows


def _node(image: Any, field: _Field) -> Any:
    """Describe the type of a field."""
    from pye57 import libe57

    kind = np.dtype(field.column.dtype)
    if kind.kind == "f" or field.is_axis:
        single = not field.is_axis and kind.itemsize == 4
        precision = libe57.E57_SINGLE if single else libe57.E57_DOUBLE
        return libe57.FloatNode(image, 0.0, precision)
    limits = np.iinfo(kind)
    highest = min(int(limits.max), int(np.iinfo(np.int64).max))
    return libe57.IntegerNode(image, 0, int(limits.min), highest)


def _set_limits(scan: Any, fields: Mapping[str, _Field]) -> None:
    """Set the extent of the points, and between what their intensities and colours lie."""
    from pye57 import libe57

    for group, names in LIMITS.items():
        chosen = [fields[name] for name in names.values() if name in fields]
        if len(chosen) == len(names) and all(field.low <= field.high for field in chosen):
            node = libe57.StructureNode(scan.destImageFile())
            for name, field in zip(names, chosen, strict=True):
                _set(node, **{f"{name}Minimum": field.low, f"{name}Maximum": field.high})
            scan.set(group, node)


def _set(node: Any, **members: str | float) -> None:
    """Set members of a structure."""
    from pye57 import libe57

    kinds = {str: libe57.StringNode, int: libe57.IntegerNode, float: libe57.FloatNode}
    for name, value in members.items():
        node.set(name, kinds[type(value)](node.destImageFile(), value))
