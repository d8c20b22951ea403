"""How fast points of a table are written as LAS and LAZ, against laspy with the same rows.

Each run is a process of its own that opens the database, so that its peak memory is its own. What
laspy does not do is not in its time: it gets the columns of the table as arrays of 983,040 rows,
and only its own part, from arrays to the file, is counted. It looks at no value before it
converts it. Run it as ``python benchmarks/write_points.py --points 10000000``.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from read_las import peak_memory, write_cloud

import spatialq
from spatialq.database.table_files import write_table

CHUNK = 983_040
EXTRA = {"height": "float32", "plane": "int32"}
QUERY = "SELECT *, (z - 100)::FLOAT AS height, (z * 10)::INTEGER AS plane FROM points"
HEADER = (0.01, (500_000.0, 5_000_000.0, 0.0))


def with_spatialq(database: Path, target: Path, query: str) -> float:
    """Write the rows and give the seconds, the query included; modules are imported before."""
    with spatialq.connect(str(database), read_only=True) as con:
        write_table(con, f"{query} LIMIT 10", target)
        begin = time.perf_counter()
        write_table(con, query, target)
        return time.perf_counter() - begin


def with_laspy(database: Path, target: Path, query: str, *, whole: bool = False) -> float:
    """Write the rows and give the seconds that laspy takes of it, or those of the whole loop."""
    import laspy

    header = laspy.LasHeader(point_format=7, version="1.4")
    header.scales, header.offsets = [HEADER[0]] * 3, HEADER[1]
    header.add_extra_dims([laspy.ExtraBytesParams(*each) for each in EXTRA.items()])
    seconds = 0.0
    with spatialq.connect(str(database), read_only=True) as con:
        begin = time.perf_counter()
        reader = con.sql(query).to_arrow_reader(CHUNK)
        with laspy.open(target, "w", header=header) as writer:
            for batch in reader:
                arrays = {
                    name: column.to_numpy(zero_copy_only=False)
                    for name, column in zip(batch.schema.names, batch.columns, strict=True)
                    if name != "point_id"
                }
                arrays["scan_angle"] = (arrays["scan_angle"] / 0.006).astype(np.int16)
                start = time.perf_counter()
                points = laspy.ScaleAwarePointRecord.zeros(batch.num_rows, header=header)
                for name, values in arrays.items():
                    points[name] = values
                writer.write_points(points)
                seconds += time.perf_counter() - start
            start = time.perf_counter()
        end = time.perf_counter()
        return end - begin if whole else seconds + end - start


WRITERS = {
    "laspy": with_laspy,
    "laspy whole": partial(with_laspy, whole=True),
    "spatialq": with_spatialq,
}


def run(writer: str, database: Path, target: Path, query: str) -> tuple[float, float]:
    """Write in a fresh process: seconds, peak memory in MB."""
    command = [sys.executable, __file__, "--child", writer, str(database), str(target), query]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, megabytes = json.loads(result.stdout)
    return seconds, megabytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--endings", nargs="+", default=["las", "laz"])
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        writer, database, target, query = options.child
        seconds = WRITERS[writer](Path(database), Path(target), query)
        print(json.dumps([seconds, peak_memory()]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_cloud(folder / "cloud.las", options.points, 7)
        database = folder / "points.duckdb"
        with spatialq.connect(str(database)) as con:
            spatialq.load(con, folder / "cloud.las", table="points")
        (folder / "cloud.las").unlink()
        queries = {
            "laspy, query and conversion too": ("laspy whole", QUERY),
            "spatialq, scale of the file": ("spatialq", QUERY),
            "spatialq, scale found": (
                "spatialq",
                QUERY.replace("*", "* REPLACE (x + 0.003 AS x)", 1),
            ),
        }
        for ending in options.endings:
            target = folder / f"out.{ending}"
            found: dict[str, list[tuple[float, float, float]]] = {}
            for _ in range(options.rounds):
                rival = run("laspy", database, target, QUERY)
                for label, (writer, query) in {"laspy": ("laspy", QUERY), **queries}.items():
                    seconds, memory = (
                        rival if writer == "laspy" else run(writer, database, target, query)
                    )
                    found.setdefault(label, []).append((seconds, rival[0] / seconds, memory))
            print(f".{ending}, {options.points} points: rate / laspy's; million points/s; peak MB")
            for label, rounds in found.items():
                seconds, ratio, memory = map(statistics.median, zip(*rounds, strict=True))
                rate = options.points / seconds / 1e6
                print(f"  {label:32s} {ratio:6.2f} {rate:6.2f} {memory:8.0f}")


if __name__ == "__main__":
    main()
