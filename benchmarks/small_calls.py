"""What small calls cost beyond their kernels: in Python, in SQL, in groups, in a new process.

    python benchmarks/small_calls.py [function ...] [--points N] [--groups N] [--repeat N]
        [--processes N] [--out FOLDER] [--commit HASH]

In one process and in turns, of a cloud of `--points`: `kernel` is `run` of `cpu.py` on arrays,
`run` is `spatialq.run`, `execute` and `sql` are `con.execute(query).fetchall()` and
`con.sql(query).fetchall()` of a table. `ms` are medians, `processor_ms` medians of the time of all
threads of the process, which other processes disturb less; `beyond` is that of a way less that of
the kernel in the same turn, the median. `groups` are the seconds of `GROUP BY` over as many groups
of ten points, `group_kernels` those of their kernels alone, one after the other. `process` is a
new process of `spatialq sql "SELECT 1"`, the median of several. The last three are seconds of
processors, too.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime

import measure
import numpy as np
import pyarrow as pa

import spatialq
from spatialq.functions.catalogue import catalogue

FUNCTIONS = ["owm_ground", "classify_ground", "detect_planes", "plane_points"]
IN_A_GROUP = 10


def cloud(n):
    """Hills, with about fifteen points in a square metre."""
    rng = np.random.default_rng(1)
    x, y = np.sqrt(n / 15) * rng.random((2, n))
    return x, y, np.sin(x / 3) + 0.05 * rng.standard_normal(n)


def connect(n, groups):
    """Make a connection with the table `points`, and the table `tiles` of groups."""
    con = spatialq.connect()
    con.execute("SET enable_progress_bar = false")
    for name, size in (("points", n), ("tiles", IN_A_GROUP * groups)):
        x, y, z = cloud(size)
        ids = np.arange(size)
        given = pa.table(  # noqa: F841 - DuckDB finds it by its name
            {"point_id": ids, "tile": ids // IN_A_GROUP, "x": x, "y": y, "z": z}
        )
        con.execute(f"CREATE TABLE {name} AS FROM given")
    return con


def calls(con, function, points, repeat):
    """Milliseconds of each way to call a function, and what each takes beyond the kernel."""
    ids, options = np.arange(len(points[0])), measure.options_of(function)
    kernel = measure.kernel(function, "cpu")
    x, y, z = points
    query = f"FROM {function}('points', unit := 1, device := 'cpu')"
    timed = measure.in_turns(
        {
            "kernel": lambda: kernel(x=x, y=y, z=z, point_id=ids, options=options),
            "run": lambda: spatialq.run(function, x, y, z, device="cpu"),
            "execute": lambda: con.execute(query).fetchall(),
            "sql": lambda: con.sql(query).fetchall(),
        },
        repeat,
    )
    alone = np.array(timed["kernel"].processor)
    return {
        "ms": {name: 1e3 * each.median for name, each in timed.items()},
        "processor_ms": {
            name: 1e3 * statistics.median(each.processor) for name, each in timed.items()
        },
        "beyond": {
            name: 1e3 * float(np.median(np.array(each.processor) - alone))
            for name, each in timed.items()
            if name != "kernel"
        },
    }


def groups(con, function, n):
    """Seconds of a query with groups, and of the kernels of the groups alone."""
    x, y, z = cloud(IN_A_GROUP * n)
    options, kernel = measure.options_of(function), measure.kernel(function, "cpu")
    query = (
        f"SELECT tile, unnest({function}_list(point_id, x, y, z, device := 'cpu'), max_depth := 2) "
        "FROM tiles GROUP BY tile"
    )

    def kernels():
        for first in range(0, len(x), IN_A_GROUP):
            part = slice(first, first + IN_A_GROUP)
            ids = np.arange(first, first + IN_A_GROUP)
            kernel(x=x[part], y=y[part], z=z[part], point_id=ids, options=options)

    works = {"groups": lambda: con.execute(query).fetchall(), "group_kernels": kernels}
    timed = measure.in_turns(works, 1, warm_up=False)
    return {name: each.best_processor for name, each in timed.items()}


def process(repeat):
    """Seconds of a new process that answers one query, with byte code as an installation has it."""
    command = [sys.executable, "-m", "spatialq", "sql", "SELECT 1"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = folder
        for _ in range(1 + repeat):  # the first one writes it
            before = os.times()
            subprocess.run(command, check=True, capture_output=True, env=environment)
            after = os.times()
            found.append(sum(after[2:4]) - sum(before[2:4]))  # of children, user and system
    return statistics.median(found[1:])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("functions", nargs="*", default=FUNCTIONS, help=", ".join(FUNCTIONS))
    measure.add_arguments(parser)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=101)
    parser.add_argument("--processes", type=int, default=9)
    arguments = parser.parse_args()
    unknown = set(arguments.functions) - set(catalogue())
    if unknown:
        parser.error(f"no function {sorted(unknown)[0]!r}")
    con = connect(arguments.points, arguments.groups)
    points = cloud(arguments.points)
    report = {
        "machine": platform.processor() or platform.machine(),
        "commit": arguments.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "points": arguments.points,
        "groups": arguments.groups,
        "process": process(arguments.processes),
        "functions": {
            function: measure.show({
                **calls(con, function, points, arguments.repeat),
                **groups(con, function, arguments.groups),
            })
            for function in arguments.functions
        },
    }  # fmt: skip
    measure.show({"process": report["process"]})
    measure.write(arguments.out, "small_calls", report)


if __name__ == "__main__":
    main()
