"""`owm_ground` against one pass over the points, and through SQL; ratios in one run.

python benchmarks/owm_ground.py [dense|sparse|small ...] [--strips] [--json FILE]
"""

import argparse
import json
import platform
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from clouds import KINDS, make_cloud
from measure import in_turns
from numba import njit
from spatialq.udfs.owm_ground import Options, cpu

import spatialq
from spatialq.runtime.threads import n_threads, spans


@njit(nogil=True)
def sums(x, y, z, start, stop):
    a, b, c = 0.0, 0.0, 0.0
    for i in range(start, stop):
        a += x[i]
        b += y[i]
        c += z[i]
    return a + b + c


@njit(nogil=True)
def extremes(x, y, z, start, stop):
    a, b, c, d, e, f = x[start], x[start], y[start], y[start], z[start], z[start]
    for i in range(start, stop):
        a, b = min(a, x[i]), max(b, x[i])
        c, d = min(c, y[i]), max(d, y[i])
        e, f = min(e, z[i]), max(f, z[i])
    return a, b, c, d, e, f


def figures(kind, n, repeat, *, strips):
    x, y, z = make_cloud(kind, strips=strips, n=n)
    point_id = np.arange(x.size)
    parts = spans(x.size, n_threads())
    with ThreadPoolExecutor(len(parts)) as pool:

        def one_pass(reduce):
            return lambda: list(pool.map(lambda part: reduce(x, y, z, *part), parts))

        tasks = {
            "sums": one_pass(sums),
            "extremes": one_pass(extremes),
            "kernel": lambda: cpu.run(x, y, z, point_id, Options()),
        }
        timed = in_turns(tasks, repeat)

    con = spatialq.connect()
    con.register("cloud", pa.table({"point_id": point_id, "x": x, "y": y, "z": z}))
    con.execute("SET enable_progress_bar = false; CREATE TABLE points AS FROM cloud")
    con.unregister("cloud")
    tasks = {
        "to Arrow": lambda: con.sql("SELECT x, y, z FROM points").to_arrow_table(),
        "SQL": lambda: con.sql("SELECT count(*) FROM owm_ground('points')").fetchall(),
    }
    timed |= in_turns(tasks, repeat, warm_up=False)
    con.close()
    sum_pass, extreme_pass, kernel, arrow, sql = (each.best for each in timed.values())
    return {
        "cloud": kind + (" strips" if strips else ""),
        "points": x.size,
        "pass_sums_s": sum_pass,
        "pass_extremes_s": extreme_pass,
        "pass_GB_per_s": 24 * x.size / min(sum_pass, extreme_pass) / 1e9,
        "kernel_s": kernel,
        "kernel_M_points_per_s": x.size / kernel / 1e6,
        "kernel_over_sums": kernel / sum_pass,
        "kernel_over_extremes": kernel / extreme_pass,
        "to_arrow_s": arrow,
        "sql_s": sql,
        "sql_over_arrow_and_kernel": sql / (arrow + kernel),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["dense", "sparse"], help=", ".join(KINDS))
    parser.add_argument("--points", type=int, help="instead of the survey's")
    parser.add_argument("--strips", action="store_true", help="points in flight order")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    results = [
        figures(kind, arguments.points, arguments.repeat, strips=arguments.strips)
        for kind in arguments.kinds
    ]
    for result in results:
        print()
        for name, value in result.items():
            print(f"{name:28} {value if isinstance(value, str | int) else format(value, '.3f')}")
    machine = f"{platform.processor() or platform.machine()}, {n_threads()} threads"
    today = datetime.now(UTC).date().isoformat()
    if arguments.json:
        about = {"machine": machine, "date": today, "duckdb": duckdb.__version__}
        arguments.json.write_text(json.dumps({**about, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
