"""Clouds in the format of Potree 2.0, as they lie in a folder: what they hold, and whether whole.

Points are not decoded. Format: PotreeConverter 2, docs/potree-file-format.md.
"""

import json
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from spatialq.errors import CrsError, FileError
from spatialq.io import crs
from spatialq.io.references import OutsideError, in_folder

ROW = struct.Struct("<BBIQQ")
"""Of a node: type, mask of children, points, first byte and bytes of its points; of a proxy the
place of the chunk in the hierarchy that begins with it."""
PROXY = 2
POINTS, HIERARCHY = "octree.bin", "hierarchy.bin"
NEEDED = ("version", "points", "hierarchy", "spacing", "boundingBox", "encoding", "attributes")


@dataclass
class PotreeCloud:
    """What there is in a cloud.

    Attributes
    ----------
    about : mapping
        Its metadata.json.
    nodes : int
        That have points.
    points : mapping of int to int
        Points of each level.
    bytes : int
        Of all files.
    faults : list of str
        What is wrong with it, in sentences.
    """

    about: Mapping[str, Any]
    nodes: int = 0
    points: Counter[int] = field(default_factory=Counter)
    bytes: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def crs(self) -> str | None:
        """Name of its coordinate reference system."""
        text = self.about.get("projection")
        try:
            return crs.name(crs.from_text(text)) if text else None
        except CrsError:
            return str(text)

    def range(self, axis: int) -> list[float]:
        """Give minimum and maximum along an axis: of the positions, or of the cube if not told."""
        found = self.about["boundingBox"]
        for each in self.about["attributes"]:
            if each.get("name") == "position" and {"min", "max"} <= each.keys():
                found = each
        return [float(found["min"][axis]), float(found["max"][axis])]


def read_potree(caller: str, path: Path) -> PotreeCloud:
    """Read metadata and hierarchy of a cloud.

    Parameters
    ----------
    caller : str
        Whose errors they are.
    path : Path
        Its metadata.json.

    Raises
    ------
    FileError
        If it is no cloud of Potree 2. What is wrong with its other files is told by `faults`.
    """
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        missing = [name for name in NEEDED if name not in about]
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise FileError.of(caller, path, f"cannot be read: {error}") from error
    if missing or not isinstance(about, dict):
        raise FileError.of(caller, path, f"is no metadata of Potree 2: it has no {missing[0]}")
    found = PotreeCloud(about)
    try:
        files = {name: in_folder(path.parent, name) for name in (POINTS, HIERARCHY)}
    except OutsideError as error:
        raise FileError.of(caller, path, str(error)) from error
    found.faults += [f"'{name}' is missing" for name, file in files.items() if not file.is_file()]
    if found.faults:
        return found
    found.bytes = sum(each.stat().st_size for each in (path, *files.values()))
    try:
        _walk(found, files[HIERARCHY].read_bytes(), files[POINTS].stat().st_size)
    except (struct.error, KeyError, TypeError, ValueError) as error:
        found.faults.append(f"'{HIERARCHY}' is damaged ({error})")
        return found
    if (total := sum(found.points.values())) != about["points"]:
        found.faults.append(f"promises {about['points']} points, its nodes have {total}")
    return found


def _walk(found: PotreeCloud, hierarchy: bytes, size: int) -> None:
    """Read the nodes of all chunks of the hierarchy, each in the order of its levels."""
    chunks = [(0, 0, int(found.about["hierarchy"]["firstChunkSize"]))]
    seen = {0}
    record = sum(int(each["size"]) for each in found.about["attributes"])
    is_plain = found.about["encoding"] == "DEFAULT"
    parts: list[tuple[int, int]] = []
    while chunks:
        level, begin, length = chunks.pop()
        rows = ROW.iter_unpack(hierarchy[begin : begin + length])
        levels = [level]
        for here, (kind, mask, points, first, n_bytes) in zip(levels, rows, strict=False):
            if kind == PROXY:
                if first in seen:
                    message = f"the chunk at byte {first} is named twice"
                    raise ValueError(message)
                seen.add(first)
                chunks.append((here, first, n_bytes))
                continue
            levels += [here + 1] * mask.bit_count()  # while it is walked, level by level
            found.nodes += points > 0
            found.points[here] += points
            if points:
                parts.append((first, first + n_bytes))
            if is_plain and n_bytes != points * record:
                message = f"a node of level {here} has {n_bytes} bytes for {points} points"
                raise ValueError(message)
            if first + n_bytes > size:
                message = f"a node of level {here} lies behind the end of '{POINTS}'"
                raise ValueError(message)
        if len(levels) * ROW.size != length:
            message = f"the chunk at byte {begin} has {length} bytes for {len(levels)} nodes"
            raise ValueError(message)
    for (begin, stop), (other, _) in pairwise(sorted(parts)):
        if other < stop:
            message = f"two nodes have the points at byte {max(begin, other)} of '{POINTS}'"
            raise ValueError(message)
