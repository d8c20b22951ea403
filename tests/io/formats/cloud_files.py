"""Point clouds in other formats, written by the tests, and damage to them."""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.io.formats import find_reader

PLY_NAMES = {"i1": "char", "u1": "uchar", "i2": "short", "u2": "ushort", "i4": "int", "u4": "uint",
             "f4": "float", "f8": "double"}  # fmt: skip
ORDERS = {"<": "binary_little_endian", ">": "binary_big_endian", "": "ascii"}

Columns = Mapping[str, np.ndarray]


def read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a file by the reader of its ending."""
    source = find_reader(path).open(path)
    names = source.schema.names if columns is None else columns
    schema = pa.schema([source.schema.field(name) for name in names])
    return pa.Table.from_batches(source.batches(names), schema=schema)


def cloud(n: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Columns as a scanner has them, far from the origin."""
    random = np.random.default_rng(seed)
    return {
        "x": 652_000 + random.normal(0, 20, n).round(4),
        "y": 5_606_000 + random.normal(0, 20, n).round(4),
        "z": 400 + random.normal(0, 5, n).round(4),
        "red": random.integers(0, 256, n).astype("u1"),
        "green": random.integers(0, 256, n).astype("u1"),
        "blue": random.integers(0, 256, n).astype("u1"),
        "curvature": random.random(n).astype("f4"),
        "ring": random.integers(-9, 9, n).astype("i2"),
    }


def packed(columns: Columns, order: str = "<") -> np.ndarray:
    """Columns as records without gaps."""
    types = [(name, values.dtype.newbyteorder(order)) for name, values in columns.items()]
    records = np.empty(len(next(iter(columns.values()))), types)
    for name, values in columns.items():
        records[name] = values
    return records


def lines(columns: Columns, separator: str = " ") -> str:
    """Columns as text, each number as short as it can be read back."""
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


def ply(columns: Columns, order: str, *, before: str = "", after: str = "") -> bytes:
    """A PLY file; `before` and `after` are elements of the header."""
    n = len(next(iter(columns.values())))
    properties = "".join(
        f"property {PLY_NAMES[values.dtype.str[1:]]} {name}\n" for name, values in columns.items()
    )
    header = (
        f"ply\nformat {ORDERS[order]} 1.0\ncomment made by a test\n{before}element vertex {n}\n"
        f"{properties}{after}end_header\n"
    )
    body = packed(columns, order).tobytes() if order else lines(columns).encode()
    return header.encode() + body


def pcd(columns: Columns, data: str, **others: str) -> bytes:
    """A PCD file; `others` replace lines of its header."""
    n = len(next(iter(columns.values())))
    types = {name: values.dtype for name, values in columns.items()}
    header = {
        "VERSION": "0.7",
        "FIELDS": " ".join(types),
        "SIZE": " ".join(str(kind.itemsize) for kind in types.values()),
        "TYPE": " ".join(kind.kind.upper() for kind in types.values()),
        "COUNT": " ".join("1" for _ in types),
        "WIDTH": n,
        "HEIGHT": 1,
        "VIEWPOINT": "0 0 0 1 0 0 0",
        "POINTS": n,
        **others,
        "DATA": data,
    }
    text = "# .PCD v0.7\n" + "".join(f"{key} {value}\n" for key, value in header.items())
    if data == "ascii":
        return (text + lines(columns)).encode()
    if data == "binary":
        return text.encode() + packed(columns).tobytes()
    plain = b"".join(values.tobytes() for values in columns.values())
    compressed = lzf(plain)
    return text.encode() + struct.pack("<2I", len(compressed), len(plain)) + compressed


def lzf(plain: bytes) -> bytes:
    """Compress as LZF has it: the longest copy of what came before, or else literal bytes."""
    out, literal, seen, i = bytearray(), bytearray(), {}, 0

    def flush() -> None:
        for k in range(0, len(literal), 32):
            out.append(len(literal[k : k + 32]) - 1)
            out.extend(literal[k : k + 32])
        literal.clear()

    while i < len(plain):
        begin, seen[plain[i : i + 3]] = seen.get(plain[i : i + 3]), i
        if begin is None or i - begin > 8192 or i + 3 > len(plain):
            literal.append(plain[i])
            i += 1
            continue
        n = 3
        while n < 264 and i + n < len(plain) and plain[begin + n] == plain[i + n]:
            n += 1
        flush()
        distance = i - begin - 1
        out.append(min(n - 2, 7) << 5 | distance >> 8)
        if n - 2 >= 7:
            out.append(n - 2 - 7)
        out.append(distance & 255)
        i += n
    flush()
    return bytes(out)


def e57(path: Path, *scans: Mapping[str, Any], crs: str = "") -> Path:
    """An E57 file: of each scan its fields, as (node type arguments, values), and its pose."""
    from pye57 import libe57

    image = libe57.ImageFile(str(path), "w")
    image.extensionsAdd("", libe57.E57_V1_0_URI)
    image.extensionsAdd("nor", "http://www.libe57.org/E57_NOR_surface_normals.txt")
    root = image.root()
    root.set("formatName", libe57.StringNode(image, "ASTM E57 3D Imaging Data File"))
    root.set("guid", libe57.StringNode(image, "{1}"))
    root.set("versionMajor", libe57.IntegerNode(image, 1))
    root.set("versionMinor", libe57.IntegerNode(image, 0))
    if crs:
        root.set("coordinateMetadata", libe57.StringNode(image, crs))
    data = libe57.VectorNode(image, True)  # noqa: FBT003
    root.set("data3D", data)
    for scan in scans:
        node = libe57.StructureNode(image)
        node.set("guid", libe57.StringNode(image, "{2}"))
        if "pose" in scan:
            node.set("pose", _pose(image, scan["pose"]))
        prototype = libe57.StructureNode(image)
        buffers = libe57.VectorSourceDestBuffer()
        kept = []
        for name, (kind, *limits, values) in scan["fields"].items():
            prototype.set(name, getattr(libe57, f"{kind}Node")(image, *limits))
            values = np.ascontiguousarray(values, "d" if kind != "Integer" else "q")
            kept.append(values)
            how = {"doConversion": True, "doScaling": True}
            buffers.append(libe57.SourceDestBuffer(image, name, values, len(values), **how))
        points = libe57.CompressedVectorNode(image, prototype, libe57.VectorNode(image, True))  # noqa: FBT003
        node.set("points", points)
        data.append(node)
        writer = points.writer(buffers)
        writer.write(len(kept[0]))
        writer.close()
    image.close()
    return path


def _pose(image: Any, pose: tuple[Sequence[float], Sequence[float]]) -> Any:
    from pye57 import libe57

    node = libe57.StructureNode(image)
    for name, letters, values in zip(
        ("rotation", "translation"), ("wxyz", "xyz"), pose, strict=True
    ):
        part = libe57.StructureNode(image)
        for letter, value in zip(letters, values, strict=True):
            part.set(letter, libe57.FloatNode(image, float(value)))
        node.set(name, part)
    return node


def mutants(raw: bytes, n: int, seed: int) -> Iterator[bytes]:
    """Damage a file in n ways: other bytes, digits, cuts, holes, insertions, repetitions."""
    random = np.random.default_rng(seed)
    digits = [found.start() for found in re.finditer(rb"[0-9]", raw)] or [0]
    for i in range(n):
        damaged = bytearray(raw)
        at = int(random.integers(len(raw)))
        # most of the damage goes where a file says what is in it
        if random.random() < 0.5:
            at = int(random.integers(min(len(raw), 400)))
        size = int(random.integers(1, 40))
        match i % 6:
            case 0:
                damaged[at] = random.integers(256)
            case 1:
                place = digits[int(len(digits) * random.random() ** 3)]
                damaged[place] = ord(random.choice(list("0123456789-. e9")))
            case 2:
                del damaged[at:]
            case 3:
                del damaged[at : at + size]
            case 4:
                damaged[at:at] = random.bytes(size)
            case 5:
                damaged[at:at] = damaged[at : at + size]
        yield bytes(damaged)


def with_checksums(raw: bytes) -> bytes:
    """Give an E57 file whose pages have the checksums of what is in them."""
    pages = (raw[i : i + 1020] for i in range(0, len(raw), 1024))
    return b"".join(page + struct.pack(">I", crc32c(page)) for page in pages)


def crc32c(page: bytes) -> int:
    """The CRC of Castagnoli, byte by byte."""
    crc = 0xFFFFFFFF
    for byte in page:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def _crc_entry(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


CRC_TABLE = [_crc_entry(byte) for byte in range(256)]
