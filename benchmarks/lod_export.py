"""COPC, Potree and 3D Tiles of a cloud: speed beside that of decoding LAZ, bytes per point; JSON.

    python benchmarks/lod_export.py CLOUD.laz ... --commit HASH [--out FOLDER]

`ratio` is that of decoding the cloud to a step, in seconds of the processors, all threads together:
`whole` is `write_lod` from file to file, `without decoding` all of it but one decoding, `written`
the writer alone, given the tree. Figures are medians of three rounds. The limit of COPC is to
decode and to encode, nothing else.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any

import laspy

import spatialq
from spatialq.export import copc, potree
from spatialq.export.tiles import points as tiles
from spatialq.io.las.source import LasSource
from spatialq.workflows import lod_points
from spatialq.workflows.lod_tree import TreeBuild

OUTPUTS = {"COPC": "a.copc.laz", "Potree": "p/metadata.json", "3D Tiles": "t/tileset.json"}
STEPS: dict[str, list[tuple[Any, str]]] = {
    "read": [(lod_points, "_copied")],
    "tree": [(lod_points, "_octree"), (TreeBuild, "_whole")],
    "written": [(copc, "write_copc"), (potree, "write_potree"), (tiles, "write_nodes")],
}
"""Functions of the steps; `read` is a part of `tree` for 3D Tiles."""


class Clock:
    """Seconds of the processors and on the clock, since it was made."""

    def __init__(self) -> None:
        self._began = time.process_time(), time.perf_counter()

    def spent(self) -> tuple[float, float]:
        """Give both."""
        return time.process_time() - self._began[0], time.perf_counter() - self._began[1]


def decoded(clouds: Sequence[LasSource]) -> int:
    """Decode all fields of all points."""
    return sum(records.size for cloud in clouds for records in cloud.records())


def encoded(clouds: Sequence[Path], folder: Path) -> tuple[float, float]:
    """Time how long the same points take to encode, chunk by chunk as they were."""
    processors = clock = 0.0
    for path in clouds:
        cloud = laspy.read(path)
        own = Clock()
        cloud.write(folder / "again.laz")
        for_one = own.spent()
        processors, clock = processors + for_one[0], clock + for_one[1]
    return processors, clock


@contextmanager
def timing() -> Any:
    """Time the steps of calls within the block: a dict by step."""
    found: dict[str, float] = {}
    undo = []

    def timed(step: str, work: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(work)
        def call(*given: Any, **named: Any) -> Any:
            clock = Clock()
            try:
                return work(*given, **named)
            finally:
                found[step] = found.get(step, 0.0) + clock.spent()[0]

        return call

    def timed_block(step: str, work: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        @wraps(work)
        def block(*given: Any, **named: Any) -> Any:
            with work(*given, **named) as write:
                yield timed(step, write)

        return block

    for step, places in STEPS.items():
        for owner, name in places:
            work = getattr(owner, name)
            undo.append((owner, name, work))
            setattr(owner, name, (timed_block if name == "write_nodes" else timed)(step, work))
    try:
        yield found
    finally:
        for owner, name, work in undo:
            setattr(owner, name, work)


def bytes_of(folder: Path) -> int:
    """Count the bytes of all files below."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def export(paths: Sequence[Path], output: str) -> dict[str, Any]:
    """Write an output once, and measure."""
    with tempfile.TemporaryDirectory() as name, timing() as steps:
        clock = Clock()
        row = spatialq.write_lod(list(map(str, paths)), Path(name) / output, device="cpu")
        processors, seconds = clock.spent()
        size = bytes_of(Path(name)) / row["points"]
    return {"processors": processors, "clock": seconds, "bytes a point": size, "steps": steps}


def main() -> None:
    """Measure, and print or write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("clouds", nargs="+", type=Path)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        small = Path(name) / "small.laz"
        part = laspy.read(given.clouds[0])
        part.points = part.points[:200_000]
        part.write(small)
        for output in OUTPUTS.values():  # compiles
            export([small], output)
        clouds = [LasSource(path) for path in given.clouds]
        clock = Clock()
        points = decoded(clouds)
        decoding = clock.spent()
        encoding = encoded(given.clouds, Path(name))
    report: dict[str, Any] = {
        "benchmark": "lod_export",
        "commit": given.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "device": f"CPU, {os.cpu_count()} cores",
        "points": points,
        "point_format": clouds[0].header.point_format,
        "LAZ bytes a point": sum(path.stat().st_size for path in given.clouds) / points,
        "ns a point": {
            "decoding": decoding[0] / points * 1e9,
            "encoding": encoding[0] / points * 1e9,
        },
        "clock seconds of decoding": decoding[1],
        "limit of COPC": decoding[0] / (decoding[0] + encoding[0]),
    }
    rounds = [
        {title: export(given.clouds, output) for title, output in OUTPUTS.items()} for _ in range(3)
    ]
    for title in OUTPUTS:
        found = sorted((each[title] for each in rounds), key=lambda each: each["processors"])[1]
        whole, steps = found["processors"], found["steps"]
        report[title] = {
            "ratio": {
                "whole": decoding[0] / whole,
                "without decoding": decoding[0] / (whole - decoding[0]),
                "written": decoding[0] / steps["written"],
                "whole on the clock": decoding[1] / found["clock"],
            },
            "ns a point": {
                "whole": whole / points * 1e9,
                **{step: seconds / points * 1e9 for step, seconds in steps.items()},
            },
            "bytes a point": found["bytes a point"],
        }
    report["peak resident GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    text = json.dumps(report, indent=1) + "\n"
    print(text)
    if given.out is not None:
        (given.out / "lod_export.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
