"""From a file to the table of nodes: `build_lod` against decoding the same file, in one run.

python benchmarks/build_lod_end_to_end.py CLOUD [--strategy NAME ...] [--repeat N]

CLOUD is a LAS or LAZ file. *Arrow*: `FROM build_lod('CLOUD')` fetched as Arrow, against laspy's
reading of the whole file. *Table*: the same into a table of a new database file, against
`FROM read_las('CLOUD')` into one. A ratio of 1 would be a tree that costs nothing.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import get_args

import laspy
import numpy as np
from spatialq.udfs.build_lod import Strategy

import spatialq
from spatialq.parallel import n_threads


def table_of(source, folder):
    """Create a table of all that a source gives, in a new database."""
    database = folder / "table.duckdb"
    database.unlink(missing_ok=True)
    with spatialq.connect(str(database)) as con:
        con.execute(f"CREATE TABLE made AS FROM {source}")


def arrow_of(source):
    with spatialq.connect() as con:
        return con.sql(f"FROM {source}").to_arrow_table()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cloud", help="a LAS or LAZ file")
    parser.add_argument("--strategy", nargs="+", choices=get_args(Strategy), default=["average"])
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    file = arguments.cloud
    best = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        calls = {
            "laspy": lambda: laspy.read(file),
            "table of read_las": lambda: table_of(f"read_las('{file}')", folder),
        }
        for strategy in arguments.strategy:
            source = f"build_lod('{file}', strategy := '{strategy}', device := 'cpu')"
            calls[f"Arrow, {strategy}"] = lambda source=source: arrow_of(source)
            calls[f"table, {strategy}"] = lambda source=source: table_of(source, folder)
        for turn in range(arguments.repeat + 1):  # the first compiles
            for name, call in calls.items():
                start = time.perf_counter()
                call()
                if turn:
                    best[name] = min(time.perf_counter() - start, best.get(name, np.inf))
    with laspy.open(file) as reader:
        n = reader.header.point_count
    print(f"{n} points, {n_threads()} threads")
    for name, seconds in best.items():
        rival = best["table of read_las" if "table" in name else "laspy"]
        print(
            f"{name:18} {seconds:6.3f} s {n / seconds / 1e6:6.2f} M points/s, "
            f"{rival / seconds:5.2f} of decoding"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"peak memory {peak / 2**30:.1f} GiB")


if __name__ == "__main__":
    main()
