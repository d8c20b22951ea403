"""PLY: points with named properties, binary of either byte order or as text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from spatialq.io.cloud_source import (
    AXES,
    CloudSource,
    Part,
    cloud_schema,
    column_names,
    column_type,
    records,
    text_parts,
)
from spatialq.io.formats import Reader
from spatialq.io.text_lines import LineError, Lines, count_lines

HEADER = 1 << 16
"""Bytes that a header may have."""
TYPES = {
    **dict.fromkeys(("char", "int8"), "i1"),
    **dict.fromkeys(("uchar", "uint8"), "u1"),
    **dict.fromkeys(("short", "int16"), "i2"),
    **dict.fromkeys(("ushort", "uint16"), "u2"),
    **dict.fromkeys(("int", "int32"), "i4"),
    **dict.fromkeys(("uint", "uint32"), "u4"),
    **dict.fromkeys(("float", "float32"), "f4"),
    **dict.fromkeys(("double", "float64"), "f8"),
}
FORMATS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}


@dataclass
class Element:
    """What the header says of one kind of element."""

    name: str
    count: int
    properties: list[tuple[str, str]] = field(default_factory=list)
    """Name and NumPy type."""
    has_lists: bool = False

    def dtype(self, order: str) -> np.dtype[np.void]:
        """Give the type of a binary record; fields are f0, f1, since names may be there twice."""
        return np.dtype([(f"f{i}", order + kind) for i, (_, kind) in enumerate(self.properties)])


class PlySource(CloudSource):
    """A PLY file, a `spatialq.io.source.Source`: the elements called vertex."""

    def _open(self) -> None:
        self._order, elements, self._begin, self._header_lines = self._read_header()
        names = [element.name for element in elements]
        if "vertex" not in names:
            self.reject(f"has no vertices: its elements are {', '.join(names) or 'none'}")
        at = names.index("vertex")
        before, vertex, after = elements[:at], elements[at], elements[at + 1 :]
        for element in (*before, vertex):
            if element.has_lists and element.count:
                self.reject(
                    f"its elements '{element.name}' have lists, which cannot be read in or before "
                    "the vertices"
                )
        self._vertex, self.rows = vertex, vertex.count
        fields = [name for name, _ in vertex.properties]
        chosen = column_names(self, fields)
        self._places = {name: i for i, name in enumerate(chosen)}
        kinds = [kind for _, kind in vertex.properties]
        self.schema = cloud_schema(
            self, {name: column_type(name, kind) for name, kind in zip(chosen, kinds, strict=True)}
        )
        try:
            if self._order:
                self._check_bytes(before, after)
            else:
                self._check_lines(before, after)
        except LineError as error:
            self.reject(str(error), error)

    def _read_header(self) -> tuple[str, list[Element], int, int]:
        """Give the byte order ('' for text), the elements, and where the header ends."""
        with self.path.open("rb") as file:
            raw = file.read(HEADER)
        if raw[:3] != b"ply" or raw[3:4] not in (b"\n", b"\r", b" "):
            self.reject("not a PLY file: its first line is not 'ply'")
        order: str | None = None
        elements: list[Element] = []
        begin = 0
        for number, line in enumerate(raw.splitlines(keepends=True), 1):
            begin += len(line)
            words = line.decode("latin-1").split()
            if not line.endswith(b"\n"):
                self.reject(f"its header has no end: line {number} is cut off or no text")
            if words == ["end_header"]:
                if order is None:
                    self.reject("its header has no line 'format'")
                return order, elements, begin, number
            if not self._is_known(words, elements):
                said = line[:80].decode("latin-1").rstrip()
                self.reject(f"line {number} of its header is not understood: {said!r}")
            if words[:1] == ["format"]:
                order = FORMATS[words[1]]
        return self.reject("its header has no line 'end_header'")

    def _is_known(self, words: list[str], elements: list[Element]) -> bool:
        """Whether a line is as it should be; elements and their properties are kept."""
        match words:
            case [] | ["ply"] | ["comment" | "obj_info", *_]:
                return True
            case ["format", name, "1.0"]:
                return name in FORMATS
            case ["element", name, count] if count.isascii() and count.isdigit():
                elements.append(Element(name, int(count)))
                return len(count) < 16  # sums of them stay within 64 bits
            case ["property", "list", size, kind, _] if elements:
                elements[-1].has_lists = True
                return size in TYPES and kind in TYPES
            case ["property", kind, name] if elements and kind in TYPES:
                elements[-1].properties.append((name, TYPES[kind]))
                return True
        return False

    def _check_bytes(self, before: Sequence[Element], after: Sequence[Element]) -> None:
        """Compare the size of the file with what the header promises."""
        self._begin += sum(each.count * each.dtype(self._order).itemsize for each in before)
        need = self._begin + self.rows * self._vertex.dtype(self._order).itemsize
        size = self.size
        if need > size:
            there = max(size - self._begin, 0) // self._vertex.dtype(self._order).itemsize
            self.reject(
                f"cut off: its header promises {self.rows} vertices, the file holds {there}"
            )
        if any(each.has_lists and each.count for each in after):
            return
        need += sum(each.count * each.dtype(self._order).itemsize for each in after)
        if need < size:
            self.warnings.append(f"{size - need} bytes follow after what its header promises")

    def _check_lines(self, before: Sequence[Element], after: Sequence[Element]) -> None:
        """Compare the number of lines with what the header promises."""
        skipped = sum(each.count for each in before)
        if skipped:
            n, self._begin = count_lines(self.path, self._begin, skipped)
            self._header_lines += n
        rest, _ = count_lines(self.path, self._begin)
        if rest < self.rows:
            self.reject(f"cut off: its header promises {self.rows} vertices, the file holds {rest}")
        follow = rest - self.rows - sum(each.count for each in after)
        if follow > 0:
            self.warnings.append(f"{follow} lines follow after what its header promises")

    def _parts(self, columns: Sequence[str]) -> Iterator[Part]:
        if self._order:
            dtype = self._vertex.dtype(self._order)
            for part in records(self, self._begin, dtype, self.rows):
                yield Part({name: part[f"f{self._places[name]}"] for name in columns})
            return
        lines = Lines(self.path, self._begin, self._header_lines, len(self._vertex.properties))
        stored = {}
        for name in columns:
            place = self._places[name]
            # text may have more digits than the type that its header gives for x, y and z
            kind = "f8" if name in AXES else self._vertex.properties[place][1]
            stored[name] = place, pa.from_numpy_dtype(np.dtype(kind))
        yield from text_parts(self, lines, stored, self.rows)


READER = Reader(
    name="PLY",
    suffixes=(".ply",),
    kind="points",
    open=PlySource,
    skips="columns",
    keeps="all properties of vertices",
    loses="faces and other elements, comments",
)
