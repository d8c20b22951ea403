"""What the query builder costs over its SQL, and what pins give a chain; ratios in one run.

    python benchmarks/query_builder.py [--points 2000000] [--repeat 5] [--out FILE.json]

Chains are made and run against their SQL, as text, run by DuckDB; and made alone. A chain of two
functions on one cloud runs as it is, and on the cloud pinned on the host and, where there is one,
on the GPU; each chain also in a database without the extension, where rows go as lists.
"""

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import measure
import numpy as np
import pyarrow as pa

import spatialq as sq
from spatialq.demo.house import write_house
from spatialq.planner import devices


def cloud(n):
    """Make a slope with blocks on it."""
    random = np.random.default_rng(1)
    side = (n / 10) ** 0.5
    x, y = random.uniform(0, side, (2, n))
    z = 0.05 * x + 6.0 * ((x // 20 + y // 20) % 3 == 0) + random.normal(0, 0.02, n)
    return pa.table({"point_id": np.arange(n), "x": x, "y": y, "z": z})


def database(con, points, folder):
    """Put the cloud and a house into a database, in memory."""
    con.register("incoming", points)
    con.execute("CREATE TABLE points AS FROM incoming")
    con.unregister("incoming")
    path = folder / "house.ifc"
    write_house(path)
    sq.load(con, path)
    return con


def table(con, name) -> Any:
    """Begin a query: what can be asked of it follows from the columns, which mypy does not know."""
    return sq.table(con, name)


CHAINS = {
    "where": lambda con: table(con, "points").where("z > 3").select("x", "z"),
    "classify_ground": lambda con: table(con, "points").classify_ground().where("height > 2"),
    "intersects_with": lambda con: (
        table(con, "elements").is_a("IfcWall").intersects_with("elements").with_names()
    ),
}


def against_sql(con, repeat):
    """Time chains against their SQL; give the ratios of the best times."""
    found = {}
    for name, chain in CHAINS.items():
        text = chain(con).sql()
        works = {
            "sql": lambda text=text: con.sql(text).to_arrow_table(),
            "builder": lambda chain=chain: chain(con).to_arrow(),
            "made": lambda chain=chain: chain(con),
        }
        timed = measure.in_turns(works, repeat)
        found[name] = {key: round(1e3 * each.best, 2) for key, each in timed.items()}
        found[name]["ratio"] = round(timed["builder"].best / timed["sql"].best, 3)
        print(name, found[name])
    return found


def with_pins(con, repeat, transport):
    """Time a chain of two functions on one cloud, unpinned and pinned."""
    points = table(con, "points").where("z < 1e9")

    def chain(cloud):
        return cloud.classify_ground().plane_points()

    text = chain(points).sql()
    works = {"as SQL": lambda: con.sql(text).aggregate("count(*)").fetchall()}
    works["as the builder decides"] = lambda: chain(points).count()
    works["pinned on the cpu"] = lambda: chain(points.pin("cpu")).count()
    if any(each.device == "gpu" and not each.problem for each in devices.devices()):
        works["pinned on the gpu"] = lambda: chain(points.pin("gpu")).count()
    timed = measure.in_turns(works, repeat)
    base = timed["as SQL"].best
    found = {name: round(1e3 * each.best, 1) for name, each in timed.items()}
    for name, each in timed.items():
        print(f"{transport}: {name:24} {1e3 * each.best:10.1f} ms {base / each.best:6.2f}")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    points = cloud(options.points)
    result = {"points": options.points}
    with TemporaryDirectory() as folder:
        with database(sq.connect(), points, Path(folder)) as con:
            con.execute("SET enable_progress_bar = false")
            result["against_sql_ms"] = against_sql(con, options.repeat)
            result["native_ms"] = with_pins(con, options.repeat, "native")
        con = duckdb.connect()
        sq.install(con)
        with database(con, points, Path(folder)):
            con.execute("SET enable_progress_bar = false")
            result["lists_ms"] = with_pins(con, options.repeat, "lists")
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
