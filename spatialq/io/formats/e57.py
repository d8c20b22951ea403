"""E57: scans of terrestrial scanners, by libE57Format."""

import itertools
import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.errors import CrsError
from spatialq.io import crs
from spatialq.io.cloud_source import (
    AXES,
    CloudSource,
    Part,
    cloud_schema,
    column_names,
    column_type,
    moved,
)
from spatialq.io.formats import Reader
from spatialq.io.source import ROW_GROUP
from spatialq.runtime.arrays import DType, Floats
from spatialq.runtime.extras import missing

CARTESIAN = ("cartesianX", "cartesianY", "cartesianZ")
SPHERICAL = ("sphericalRange", "sphericalAzimuth", "sphericalElevation")
INVALID = {CARTESIAN: "cartesianInvalidState", SPHERICAL: "sphericalInvalidState"}
"""Fields that say of a point: 0, it is good; 1, only its direction is; 2, nothing is."""
POSITIONS = {*CARTESIAN, *SPHERICAL, *INVALID.values()}
INTEGERS = ("B", "b", "H", "h", "q")
"""The types of buffers that libE57Format fills; int64 must be `q`, as it takes `l` for int32."""

HEADER = struct.Struct("<16x4Q")
"""Of a file: its size, where its XML begins, the size of that without checksums, that of a page."""
CHECKSUM = 4
"""Bytes at the end of each page."""
LARGEST_PAGE = 1 << 20
ENCODING = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']*)")
PASSED_OVER = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>", re.DOTALL)
"""Parts of XML that are no markup."""
NAMES_FILE = re.compile(rb"<!DOCTYPE|<!ENTITY|\b(?:noNamespaceS|s)chemaLocation\b")


@dataclass(frozen=True)
class Scan:
    """One scan: what is stored, and where it stands."""

    rows: int
    types: dict[str, DType]
    """Of the fields."""
    position: tuple[str, str, str]
    """The fields of the coordinates: `CARTESIAN` or `SPHERICAL`."""
    rotation: Floats
    translation: Floats


class E57Source(CloudSource):
    """An E57 file, a `spatialq.io.source.Source`: its scans, one after the other."""

    def _open(self) -> None:
        self._require_plain_xml()
        with self._image() as root:
            nodes = root["data3D"] if root.isDefined("data3D") else []
            self._scans = [self._read_scan(i, nodes[i]) for i in range(len(nodes))]
            text = (
                root["coordinateMetadata"].value() if root.isDefined("coordinateMetadata") else ""
            )
        if not self._scans:
            self.reject("has no scans")
        self.rows = sum(scan.rows for scan in self._scans)
        self.crs = self._read_crs(text.strip())
        stored: dict[str, DType] = {}
        for name, kind in itertools.chain(*(scan.types.items() for scan in self._scans)):
            stored[name] = np.result_type(stored.get(name, kind), kind)
        fields = [name for name in stored if name not in POSITIONS]
        names = column_names(self, [*AXES, "scan", *fields])[4:]
        self._fields = dict(zip(names, fields, strict=True))
        types = {name: column_type(name, stored[field]) for name, field in self._fields.items()}
        self.schema = cloud_schema(
            self, {**dict.fromkeys(AXES, np.float64), **types, "scan": np.int32}
        )

    def _require_plain_xml(self) -> None:
        """Reject XML that names a file: libE57Format's parser would open it, or ask a server."""
        with self.path.open("rb") as file:
            head = file.read(HEADER.size)
            if len(head) < HEADER.size:
                return  # libE57Format says what is wrong
            _, begin, size, page = HEADER.unpack(head)
            if not CHECKSUM < page <= LARGEST_PAGE:
                self.reject(f"its pages have {page} bytes, 1024 are usual")
            first = begin // page
            file.seek(min(first * page, self.size))
            # text of that size with the checksums of its pages
            pages = -(-(begin % page + size) // (page - CHECKSUM))
            raw = file.read(min(pages * page, self.size))
        data = b"".join(raw[i : i + page - CHECKSUM] for i in range(0, len(raw), page))
        text = data[begin % page :][:size]
        encoding = ENCODING.match(text)
        if b"\0" in text or (encoding and encoding[1].lower() != b"utf-8"):
            self.reject("its XML is not in UTF-8, which E57 requires")
        if found := NAMES_FILE.search(PASSED_OVER.sub(b"", text)):
            self.reject(f"its XML has {found[0].decode()!r}, which could name any other file")

    @contextmanager
    def _image(self) -> Iterator[Any]:
        """Open the file and give the root of its tree; what libE57Format says is an error of it."""
        if reason := missing("e57"):
            self.reject(reason)
        from pye57 import libe57

        try:
            image = libe57.ImageFile(os.fspath(self.path), "r")
            try:
                yield image.root()
            finally:
                image.close()
        except (libe57.E57Exception, RuntimeError, UnicodeDecodeError) as error:
            reason = str(error).strip().partition("\n")[0]
            self.reject(f"cut off or damaged: {reason}", error)

    def _read_crs(self, text: str) -> str | None:
        try:
            return crs.from_text(text) if text else None
        except CrsError as error:
            self.warnings.append(f"its coordinate reference system is not used: {error}")
            return None

    def _read_scan(self, number: int, node: Any) -> Scan:
        from pye57 import libe57

        points = node["points"]
        prototype = libe57.StructureNode(points.prototype())
        types = {}
        for i in range(prototype.childCount()):
            name = prototype.get(i).elementName()
            kind = _type(prototype[name])
            if kind is not None:
                types[name] = kind
            else:
                self.warnings.append(f"the field '{name}' of scan {number} is no number: not read")
        position = next((each for each in (CARTESIAN, SPHERICAL) if set(each) <= set(types)), None)
        if position is None:
            self.reject(f"the points of scan {number} have no coordinates: {', '.join(types)}")
        return Scan(points.childCount(), types, position, *_pose(node))

    def _parts(self, columns: Sequence[str]) -> Iterator[Part]:
        with self._image() as root:
            for number, scan in enumerate(self._scans):
                if scan.rows:  # libE57Format refuses to read some that are empty
                    node = root["data3D"][number]["points"]
                    yield from self._read_points(root, node, number, columns)

    def _read_points(
        self, root: Any, node: Any, number: int, columns: Sequence[str]
    ) -> Iterator[Part]:
        from pye57 import libe57

        scan = self._scans[number]
        wanted = {
            name: self._fields[name]
            for name in columns
            if name in self._fields and self._fields[name] in scan.types
        }
        state = INVALID[scan.position] if INVALID[scan.position] in scan.types else None
        space = {field: np.empty(ROW_GROUP, np.float64) for field in scan.position}
        for field in (*wanted.values(), *([state] if state else [])):
            kind = scan.types[field]
            space[field] = np.empty(ROW_GROUP, "q" if kind == np.int64 else kind)
        buffers = libe57.VectorSourceDestBuffer()
        for field, values in space.items():
            how = {"doConversion": True, "doScaling": True}
            buffers.append(
                libe57.SourceDestBuffer(root.destImageFile(), field, values, ROW_GROUP, **how)
            )
        reader = node.reader(buffers)
        done = 0
        try:
            while n := reader.read():
                done += n
                read = self._placed(scan, [space[field][:n] for field in scan.position])
                for name, field in wanted.items():
                    read[name] = space[field][:n].copy()
                for name in columns:
                    if name == "scan":
                        read[name] = np.full(n, number, np.int32)
                    elif name not in read:
                        read[name] = pa.nulls(n, self.schema.field(name).type)
                yield Part(read, keep=space[state][:n] == 0 if state else None)
        finally:
            reader.close()
        if done != scan.rows:
            self.reject(f"damaged: scan {number} promises {scan.rows} points, but {done} are there")

    def _placed(self, scan: Scan, position: list[Floats]) -> dict[str, Any]:
        """Give x, y and z in the system of the file."""
        if scan.position == SPHERICAL:
            distance, azimuth, elevation = position
            level = distance * np.cos(elevation)
            position = [
                level * np.cos(azimuth),
                level * np.sin(azimuth),
                distance * np.sin(elevation),
            ]
        return moved(dict(zip(AXES, position, strict=True)), scan.rotation, scan.translation)


def _type(node: Any) -> DType | None:
    """Give the type that holds all values that a field may have; None for text and structures."""
    from pye57 import libe57

    if isinstance(node, libe57.FloatNode):
        return np.dtype(np.float32 if node.precision() == libe57.E57_SINGLE else np.float64)
    if isinstance(node, libe57.ScaledIntegerNode):
        return np.dtype(np.float64)
    if not isinstance(node, libe57.IntegerNode):
        return None
    low, high = node.minimum(), node.maximum()
    for name in INTEGERS:
        limits = np.iinfo(name)
        if limits.min <= low and high <= limits.max:
            break
    return np.dtype(name)


def _pose(node: Any) -> tuple[Floats, Floats]:
    """Give the rotation, as a matrix, and the translation of a scan; either may be missing."""
    pose = node["pose"] if node.isDefined("pose") else node
    rotation, translation = np.eye(3), np.zeros(3)
    if pose.isDefined("translation"):
        translation = np.array([pose["translation"][axis].value() for axis in AXES])
    if pose.isDefined("rotation"):
        rotation = matrix_of(*(pose["rotation"][part].value() for part in "wxyz"))
    return rotation, translation


def matrix_of(w: float, x: float, y: float, z: float) -> Floats:
    """Give the rotation of a quaternion, which need not be of length 1."""
    v = np.array([x, y, z])
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turn: Floats = 2 * (w * cross + cross @ cross) / (w * w + v @ v)
    return np.eye(3) + turn


READER = Reader(
    name="E57",
    suffixes=(".e57",),
    kind="points",
    open=E57Source,
    skips="columns",
    keeps="all numeric fields; scans, put in place by their poses; the CRS",
    loses="images, points without a position, metadata of scans",
    extra="e57",
)
