"""How fast `read_las` is against plain laspy decoding of the same file, in one run.

Rates are given as ratios to laspy's parallel lazrs backend (its default), whose time is taken
anew in each round: a ratio above 1 is faster than laspy. Run it as
``python benchmarks/read_las.py --points 4000000 --format 7``.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np

import spatialq


def write_cloud(path: Path, n_points: int, point_format: int) -> None:
    """Write an airborne scan: zigzag lines over rolling ground under a canopy, seed 1."""
    import laspy

    random = np.random.default_rng(1)
    header = laspy.LasHeader(point_format=point_format, version="1.4")
    header.scales, header.offsets = [0.01] * 3, [500_000, 5_000_000, 0]
    with laspy.open(path, "w", header=header) as writer:
        for first in range(0, n_points, 500_000):
            n = min(500_000, n_points - first)
            i = np.arange(first, first + n)
            x = np.abs((i % 2000) - 1000) * 0.5 + random.normal(0, 0.05, n)
            y = i * 0.0005 + random.normal(0, 0.05, n)
            canopy = np.where(random.random(n) < 0.4, random.gamma(4, 3, n), 0)
            points = laspy.ScaleAwarePointRecord.zeros(n, header=header)
            points.x, points.y = 500_000 + x, 5_000_000 + y
            points.z = 100 + 20 * np.sin(x / 90) + 15 * np.cos(y / 70) + canopy
            points.intensity = (900 + 400 * (canopy > 0) + random.normal(0, 90, n)).clip(0)
            points.return_number = 1 + (canopy == 0) * (random.random(n) < 0.5)
            points.number_of_returns = np.full(n, 2)
            points.classification = np.where(canopy > 0, 5, 2)
            points.point_source_id = np.full(n, 7)
            names = set(points.point_format.dimension_names)
            if "gps_time" in names:
                points.gps_time = 3e8 + i * 2e-6
            if "red" in names:
                shade = (128 + 40 * np.sin(x / 9) + random.normal(0, 12, n)).clip(0, 255)
                points.red, points.green, points.blue = (
                    (shade * k).astype(np.uint16) for k in (220, 256, 180)
                )
            if "nir" in names:
                points.nir = random.integers(0, 65535, n)
            writer.write_points(points)


def decode_with_laspy(path: Path) -> int:
    import laspy

    n = 0
    with laspy.open(path, laz_backend=laspy.LazBackend.LazrsParallel) as reader:
        for points in reader.chunk_iterator(1_000_000):
            n += len(points)
    return n


def connection(database: Path | None = None) -> duckdb.DuckDBPyConnection:
    return spatialq.connect(str(database or ":memory:"))


def load(path: Path, folder: Path, source: str) -> None:
    """CREATE TABLE AS all columns into a new file database."""
    database = folder / "points.duckdb"
    database.unlink(missing_ok=True)
    with connection(database) as con:
        spatialq.read_las(con, path, name="cloud")
        con.execute(f"CREATE TABLE points AS FROM {source}")


def measured(path: Path, folder: Path) -> dict[str, Callable[[], object]]:
    """Give the runs to time by name; the first is laspy's."""
    con = connection()
    spatialq.read_las(con, path, name="cloud")
    macro = f"read_las('{path}')"

    def query(text: str) -> Callable[[], object]:
        return lambda: con.execute(text).fetchall()

    return {
        "laspy, all dimensions decoded": lambda: decode_with_laspy(path),
        "view, max of all columns": query("SELECT max(COLUMNS(*)) FROM cloud"),
        "view, max of x, y, z": query("SELECT max(x), max(y), max(z) FROM cloud"),
        "view, avg(z)": query("SELECT avg(z) FROM cloud"),
        "view, count(*)": query("SELECT count(*) FROM cloud"),
        "view, CREATE TABLE AS into a file": lambda: load(path, folder, "cloud"),
        "macro, max of all columns": query(f"SELECT max(COLUMNS(*)) FROM {macro}"),
        "macro, max of x, y, z": query(
            f"SELECT max(COLUMNS(*)) FROM read_las('{path}', columns := ['x', 'y', 'z'])"
        ),
        "macro, CREATE TABLE AS into a file": lambda: load(path, folder, macro),
    }


def peak_memory() -> float:
    """Give the peak memory of this process in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux ru_maxrss begins with that of the parent process
        lines = status.read_text().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def peak_of_load(path: Path, folder: Path, source: str) -> float:
    """Load the file in a fresh process and give its peak memory in MB."""
    command = [sys.executable, __file__, str(path), "--load-into", str(folder), "--source", source]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(result.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="a LAS or LAZ file; default: made up")
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--format", type=int, default=7, help="point format, 0 to 10")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--load-into", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--source", default="cloud", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load_into:
        load(options.file, options.load_into, options.source)
        print(peak_memory())
        return

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = options.file
        if path is None:
            path = folder / "cloud.laz"
            write_cloud(path, options.points, options.format)
        n = decode_with_laspy(path)
        runs = measured(path, folder)
        ratios: dict[str, list[float]] = {label: [] for label in runs}
        laspy_label = next(iter(runs))
        best = float("inf")
        for _ in range(options.rounds):
            seconds = {}
            for label, run in runs.items():
                begin = time.perf_counter()
                run()
                seconds[label] = time.perf_counter() - begin
            best = min(best, seconds[laspy_label])
            for label, value in seconds.items():
                ratios[label].append(seconds[laspy_label] / value)
        print(f"{path.name}: {n} points; laspy decodes {n / best / 1e6:.2f} million points/s")
        print("rate / laspy's rate, median (and range) of the rounds")
        for label, values in ratios.items():
            low, middle, high = min(values), statistics.median(values), max(values)
            print(f"  {label:36s} {middle:8.2f}  ({low:.2f} to {high:.2f})")
        print("peak memory of CREATE TABLE AS all columns, whole process, MB")
        print(f"  view  {peak_of_load(path, folder, 'cloud'):.0f}")
        macro = f"read_las('{path}')"
        print(f"  macro {peak_of_load(path, folder, macro):.0f}")


if __name__ == "__main__":
    main()
