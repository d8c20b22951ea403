"""The octree of a COPC file: which box each chunk of points lies in, and how dense it is.

A COPC file is a LAZ file whose chunks are the nodes of an octree. Its chunk table says what can
be read; the hierarchy, checked against it, only adds where the points lie. So a damaged
hierarchy costs speed and a warning, never a point. Layout: COPC specification 1.0.
"""

import math
import struct
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from spatialq.io.las.header import MAX_RECORD_DATA, Header
from spatialq.io.las.laz import Chunk
from spatialq.io.source import Box

ENTRY = struct.Struct("<4iQii")
MAX_LEVEL = 31  # deeper, the cells of a node no longer fit its 32-bit key
PAGE = -1
"""The point count of an entry that stands for a further page."""

Key = tuple[int, int, int, int]
"""Level, x, y and z of a node."""


class _DamagedError(Exception):
    """The hierarchy contradicts itself or the file; the sentence says how."""


@dataclass(frozen=True)
class Cube:
    """The cell of the root of an octree.

    Parameters
    ----------
    x, y, z : float
        Its corner with the least coordinates.
    side : float
    spacing : float
        Of the points of the root.
    """

    x: float
    y: float
    z: float
    side: float
    spacing: float

    def coarser(self, level: int) -> float:
        """Give the spacing of points of the level above."""
        return math.ldexp(self.spacing, 1 - level) if level else math.inf

    def cell(self, level: int, keys: Sequence[int], margins: Sequence[float]) -> Box:
        """Give the box of a node, wider by a margin: points are rounded to the file's grid."""
        side = self.side / (1 << level)
        low = [
            origin + side * key - margin
            for origin, key, margin in zip((self.x, self.y, self.z), keys, margins, strict=True)
        ]
        high = [
            origin + side * (key + 1) + margin
            for origin, key, margin in zip((self.x, self.y, self.z), keys, margins, strict=True)
        ]
        return (low[0], low[1], low[2], high[0], high[1], high[2])


def octree_boxes(header: Header, chunks: list[Chunk]) -> list[Chunk]:
    """Add box and spacing of its node to each chunk of a COPC file; others come back unchanged.

    A hierarchy that is damaged becomes a warning of the header, and no chunk gets a box.
    """
    info = header.find("copc", 1)
    if info is None or not chunks:
        return chunks
    try:
        cube, offset, size = _info(info)
        with header.path.open("rb") as file:
            nodes = list(_walk(file, header, cube, (offset, size)))
        return _match(chunks, nodes)
    except _DamagedError as error:
        damage = f"its COPC octree is not used, so that no part can be skipped: {error}"
        header.octree_damage = damage
        header.warnings.append(damage)
        return chunks


def about_octree(header: Header, chunks: Sequence[Chunk]) -> dict[str, Any]:
    """Describe the octree of a COPC file, as `octree_boxes` found it; empty where there is none.

    Returns
    -------
    dict
        Levels, nodes with points, the spacing of the root's points in units of x and y, and the
        points of each level.
    """
    info = header.find("copc", 1)
    if info is None or not chunks or chunks[0].coarser is None:
        return {}
    spacing = _info(info)[0].spacing
    points: Counter[int] = Counter()
    for chunk in chunks:
        is_root = chunk.coarser is None or math.isinf(chunk.coarser)
        # the spacing halves from level to level
        level = 0 if is_root or not chunk.coarser else round(1 + math.log2(spacing / chunk.coarser))
        points[level] += chunk.rows
    return octree_said(len(chunks), spacing, points)


def octree_said(nodes: int, spacing: float, points: Mapping[int, int]) -> dict[str, Any]:
    """Say what an octree is, in the same words for all formats that have one."""
    return {
        "octree levels": max(points, default=-1) + 1,
        "octree nodes": nodes,
        "spacing of level 0": spacing,
        "points by level": {str(level): points[level] for level in sorted(points)},
    }


def orphan(keys: Collection[tuple[int, ...]]) -> str | None:
    """Name a node whose parent is not there, by level, x, y and z."""
    for level, *cell in keys:
        if level and (level - 1, *(k >> 1 for k in cell)) not in keys:
            return "-".join(map(str, (level, *cell)))
    return None


def _info(raw: bytes) -> tuple[Cube, int, int]:
    if len(raw) < 72:
        message = f"the info record has {len(raw)} bytes, 160 are usual"
        raise _DamagedError(message)
    x, y, z, halfsize, spacing, offset, size = struct.unpack_from("<5d2Q", raw)
    if not all(map(math.isfinite, (x, y, z, halfsize))) or halfsize <= 0:
        message = f"its cube is no cube (centre {x}, {y}, {z}, half size {halfsize})"
        raise _DamagedError(message)
    if not (math.isfinite(spacing) and spacing >= 0):
        message = f"the spacing of its points is {spacing}"
        raise _DamagedError(message)
    cube = Cube(x - halfsize, y - halfsize, z - halfsize, 2 * halfsize, spacing)
    return cube, offset, size


def _walk(
    file: BinaryIO, header: Header, cube: Cube, root: tuple[int, int]
) -> Iterator[tuple[int, tuple[int, int, Box, float]]]:
    """Give the nodes of all pages: file offset, and bytes, points, box, spacing above."""
    margins = tuple(abs(scale) for scale in header.scales)
    pages, seen = [root], {root[0]}
    keys: set[Key] = set()
    while pages:
        offset, size = pages.pop()
        if size % ENTRY.size or not 0 < size <= MAX_RECORD_DATA:
            message = f"a page of {size} bytes is no list of {ENTRY.size} byte entries"
            raise _DamagedError(message)
        if offset + size > header.file_size:
            message = f"a page at byte {offset} runs past the end of the file"
            raise _DamagedError(message)
        file.seek(offset)
        for level, x, y, z, begin, n_bytes, n_points in ENTRY.iter_unpack(file.read(size)):
            if n_points == PAGE:
                if begin in seen:
                    message = f"the page at byte {begin} is listed twice"
                    raise _DamagedError(message)
                seen.add(begin)
                pages.append((begin, n_bytes))
                continue
            if not 0 <= level <= MAX_LEVEL or not all(0 <= k < 1 << level for k in (x, y, z)):
                message = f"there can be no node {level}-{x}-{y}-{z}"
                raise _DamagedError(message)
            if (level, x, y, z) in keys:
                message = f"node {level}-{x}-{y}-{z} is listed twice"
                raise _DamagedError(message)
            keys.add((level, x, y, z))
            if n_points:
                box = cube.cell(level, (x, y, z), margins)
                yield begin, (n_bytes, n_points, box, cube.coarser(level))
    if name := orphan(keys):
        message = f"node {name} has no parent"
        raise _DamagedError(message)


def _match(
    chunks: list[Chunk], listed: list[tuple[int, tuple[int, int, Box, float]]]
) -> list[Chunk]:
    nodes = dict(listed)
    if len(nodes) < len(listed):
        message = "two of its nodes are the same chunk"
        raise _DamagedError(message)
    if len(nodes) != len(chunks):
        message = f"it has {len(nodes)} nodes with points, the file {len(chunks)} chunks"
        raise _DamagedError(message)
    matched = []
    for chunk in chunks:
        n_bytes, n_points, box, coarser = nodes.get(chunk.offset, (0, 0, None, None))
        if (n_bytes, n_points) != (chunk.size, chunk.rows):
            message = f"no node is the chunk of {chunk.rows} points at byte {chunk.offset}"
            raise _DamagedError(message)
        matched.append(replace(chunk, box=box, coarser=coarser))
    return matched
