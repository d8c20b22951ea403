"""What SQL adds to a kernel: calls of functions in queries, beside their parts, in one run.

    python benchmarks/sql_transport.py [--points N] [--devices cpu gpu] [--repeat K] [--lists]
        [--functions NAME ...] [--out FILE]

For each function: `count` is `SELECT count(*), avg(column)` over the function, `table` is `CREATE
TABLE AS`, `unordered` the same with preserve_insertion_order off. Beside them stand the parts that
nobody can do without: `arrow`, `to_arrow_table()` of the points' columns; `kernel`, the call of the
kernel on arrays as the log has it, conversions included; and `copy`, `CREATE TABLE AS` from a table
of the same columns. `ratio` is count / (arrow + kernel). Best of some rounds, in turns. With
`--lists` a connection without the extension is timed, too, and memory is measured: the peak of a
process that makes one call, less that of the same process without it, in bytes a point.
"""

import argparse
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
from clouds import make_cloud

import spatialq
from spatialq.planner import devices, log
from spatialq.runtime.threads import n_threads

VALUES = {
    "owm_ground": "avg(z)",
    "classify_ground": "avg(height)",
    "detect_planes": "sum(point_count)",
    "plane_points": "avg(distance)",
}
MEMORY = """
import json, pathlib, resource, sys
import pyarrow.parquet as pq
import duckdb, spatialq
transport, query, path = sys.argv[1:]
con = spatialq.connect() if transport == "native" else duckdb.connect()
spatialq.install(con)
con.execute("CREATE TABLE points AS FROM read_parquet(?)", [path])
con.execute("SELECT sum(x + y + z + point_id) FROM points").fetchall()
pathlib.Path("/proc/self/clear_refs").write_text("5")
def peak():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return {line.split()[0]: int(line.split()[1]) * 1024 for line in lines if "kB" in line}
before = peak()["VmRSS:"]
con.execute(query).fetchall()
print(json.dumps(peak()["VmHWM:"] - before))
"""


def connect(transport):
    con = spatialq.connect() if transport == "native" else duckdb.connect()
    spatialq.install(con)
    con.execute("SET enable_progress_bar = false")
    return con


def timed(con, query, *, arrow=False):
    start = time.perf_counter()
    con.sql(query).to_arrow_table() if arrow else con.execute(query).fetchall()
    return time.perf_counter() - start


def measure(con, function, device, repeat):
    """Best seconds of each query on one connection, and of the kernel in it."""
    call = f"{function}('points', device := '{device}')"
    queries = {
        "arrow": ("SELECT point_id, x, y, z FROM points", True),
        "count": (f"SELECT count(*), {VALUES[function]} FROM {call}", False),
        "table": (f"CREATE OR REPLACE TABLE result AS FROM {call}", False),
        "copy": ("CREATE OR REPLACE TABLE copied AS FROM result", False),
    }
    best, kernels = dict.fromkeys(queries, float("inf")), []
    best["unordered"] = float("inf")
    timed(con, queries["count"][0])
    for _ in range(repeat):
        for name, (query, arrow) in queries.items():
            log._entries.clear()
            best[name] = min(best[name], timed(con, query, arrow=arrow))
            kernels += [each.seconds for each in log.entries()]
        con.execute("SET preserve_insertion_order = false")
        best["unordered"] = min(best["unordered"], timed(con, queries["table"][0]))
        con.execute("RESET preserve_insertion_order")
    best["kernel"] = min(kernels)
    best["ratio"] = best["count"] / (best["arrow"] + best["kernel"])
    return {name: round(value, 4) for name, value in best.items()}


def memory(path, transport, function, device):
    query = f"SELECT count(*), {VALUES[function]} FROM {function}('points', device := '{device}')"
    command = [sys.executable, "-c", MEMORY, transport, query, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=20_000_000)
    parser.add_argument("--devices", nargs="+")
    parser.add_argument("--functions", nargs="+", default=list(VALUES))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--lists", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    there = ["cpu"] if devices.gpu().problem else ["cpu", "gpu"]
    x, y, z = make_cloud("dense", n=options.points)
    rows = []
    for transport in ["native", "lists"] if options.lists else ["native"]:
        con = connect(transport)
        cloud = pa.table({"x": x, "y": y, "z": z})  # noqa: F841 - DuckDB finds it by its name
        con.execute(
            "CREATE TABLE points AS SELECT row_number() OVER () - 1 AS point_id, x, y, z FROM cloud"
        )
        for function in options.functions:
            for device in options.devices or there:
                found = measure(con, function, device, options.repeat)
                rows.append(
                    {"transport": transport, "function": function, "device": device, **found}
                )
                print(json.dumps(rows[-1]), flush=True)
        if options.lists:
            path = Path(f"points-{options.points}.parquet").resolve()
            con.execute(f"COPY points TO '{path}'")
            for function in options.functions:
                device = (options.devices or there)[0]
                peak = memory(path, transport, function, device)
                rows.append({"transport": transport, "function": function, "device": device,
                             "bytes_per_point": round(peak / len(x), 1)})  # fmt: skip
                print(json.dumps(rows[-1]), flush=True)
            path.unlink()
        con.close()
    if options.out is not None:
        about = {
            "date": datetime.now(UTC).date().isoformat(),
            "devices": [f"{each.name}" for each in devices.devices() if not each.problem],
            "threads": n_threads(),
            "points": len(x),
            "seconds": rows,
        }
        options.out.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
