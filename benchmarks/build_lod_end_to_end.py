"""From a file to the table of nodes: `build_lod` against decoding the same file, in one run.

python benchmarks/build_lod_end_to_end.py [CLOUD] [--strategy NAME ...] [--repeat N]
    [--processor]

CLOUD is a LAS or LAZ file; without it a LAZ file of 3 M points is made up. *Arrow* is the table of
nodes as an Arrow table, made in Python as `spatialq lod` makes it, or fetched from `FROM
build_lod('CLOUD')`: against laspy's reading of the whole file. *Table* is that query into a table
of a new database file, against `FROM read_las('CLOUD')` into one. A ratio of 1 would be a tree that
costs nothing. With --processor all times are those of the processors, all threads together, which
other processes disturb less.
"""

import argparse
import resource
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import get_args

import laspy
import numpy as np
import pyarrow as pa
from read_las import write_cloud
from spatialq.udfs.build_lod import Options, Strategy

import spatialq
from spatialq.database.transport.arrow import structs
from spatialq.database.transport.cloud_columns import read_clouds
from spatialq.execution.call import call
from spatialq.functions.catalogue import find
from spatialq.io.las.source import open_las
from spatialq.runtime.threads import n_threads

POINTS = 3_000_000


def table_of(source, folder):
    """Create a table of all that a source gives, in a new database."""
    database = folder / "table.duckdb"
    database.unlink(missing_ok=True)
    with spatialq.connect(str(database)) as con:
        con.execute(f"CREATE TABLE made AS FROM {source}")


def arrow_in_python(file, strategy):
    function = find("benchmark", "build_lod")
    columns = read_clouds(function, [open_las(file)])
    nodes, _ = call(function, columns, Options(strategy=strategy), "cpu")
    return pa.Table.from_struct_array(structs(function, nodes))


def arrow_in_sql(source):
    with spatialq.connect() as con:
        return con.sql(f"FROM {source}").to_arrow_table()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cloud", nargs="?", help="a LAS or LAZ file")
    parser.add_argument("--strategy", nargs="+", choices=get_args(Strategy), default=["average"])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--processor", action="store_true", help="times of the processors")
    arguments = parser.parse_args()
    clock = time.process_time if arguments.processor else time.perf_counter
    best = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = arguments.cloud
        if file is None:
            file = folder / "cloud.laz"
            write_cloud(file, POINTS, point_format=7)
        calls = {
            "laspy": partial(laspy.read, file),
            "table of read_las": partial(table_of, f"read_las('{file}')", folder),
        }
        for strategy in arguments.strategy:
            source = f"build_lod('{file}', strategy := '{strategy}', device := 'cpu')"
            calls[f"Arrow, {strategy}"] = partial(arrow_in_python, Path(file), strategy)
            calls[f"Arrow by SQL, {strategy}"] = partial(arrow_in_sql, source)
            calls[f"table, {strategy}"] = partial(table_of, source, folder)
        for turn in range(arguments.repeat + 1):  # the first compiles
            for name, call in calls.items():
                start = clock()
                call()
                if turn:
                    best[name] = min(clock() - start, best.get(name, np.inf))
        with laspy.open(file) as reader:
            n = reader.header.point_count
    print(f"{n} points, {n_threads()} threads")
    for name, seconds in best.items():
        rival = best["table of read_las" if "table" in name else "laspy"]
        print(
            f"{name:24} {seconds:6.3f} s {n / seconds / 1e6:6.2f} M points/s, "
            f"{rival / seconds:5.2f} of decoding"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"peak memory {peak / 2**30:.1f} GiB")


if __name__ == "__main__":
    main()
