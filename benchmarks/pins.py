"""Pinned tables against the same tables unpinned; ratios in one run.

    python benchmarks/pins.py [--points 5000000] [--elements 160000] [--out FILE.json]

Points: owm_ground, counted, on columns pinned on the host and, where there is one, on the GPU; and
the parts: the check that the table has the state that was pinned, and the kernel on the pinned
arrays. Elements: intersects_with of one box against a model of boxes. Only one of the two is
measured if only its size is given.
"""

import argparse
import json
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import measure
import numpy as np
import pyarrow as pa

import spatialq
from spatialq.database import instances, pins
from spatialq.database.native import loading
from spatialq.database.transport.columns import points_of
from spatialq.functions.catalogue import catalogue
from spatialq.planner import devices, log
from spatialq.runtime import cuda
from spatialq.runtime.threads import n_threads

CORNERS = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
FACES = np.array(
    [
        (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
        (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
    ],
    np.int32,
)  # fmt: skip


def report(function, rows, works, repeat, where):
    """Time pieces of work, of which the first is the call without a pin; print and give figures."""
    timed = measure.in_turns(works, repeat)
    base = timed["unpinned"].best
    for name, each in timed.items():
        print(
            f"{rows:>12} {name:28} {where.get(name, ''):>6} {1e3 * each.best:10.1f} ms "
            f"{base / each.best:8.1f}"
        )
    return {
        "function": function,
        "rows": rows,
        "works": {
            name: {
                "device": where.get(name),
                "best_ms": round(1e3 * each.best, 2),
                "median_ms": round(1e3 * each.median, 2),
                "times_as_fast": round(base / each.best, 2),
            }
            for name, each in timed.items()
        },
    }


def points(con, n, repeat):
    con.execute(
        "CREATE TABLE points AS SELECT range AS point_id, random() * 1000 AS x, "
        f"random() * 1000 AS y, random() * 30 AS z FROM range({n})"
    )
    con.execute("CREATE VIEW unpinned AS FROM points")
    tables = {"unpinned": "unpinned"}
    function = catalogue()["owm_ground"]
    kernels = {}
    for device in ("cpu",) if devices.gpu().problem else ("cpu", "gpu"):
        place = pins.MEMORY[device]
        # names that mean the same table, since a name has one pin
        tables[f"pinned, {place}"] = "points" if device == "cpu" else '"points"'
    for title, table in [*tables.items()][1:]:
        device = "gpu" if title.endswith("GPU") else "cpu"
        row = spatialq.pin(con, table, device=device)
        print(f"{row['bytes']} bytes pinned: {title}")
        pin = next(each for each in instances.of(con).pins.values() if each.name == table)

        def kernel(pin=pin, device=device):
            with cuda.device().use() if device == "gpu" else nullcontext():
                columns = {name: pin.kept.get(name) for name in points_of(function)}
                return function.kernel(device)(**columns, options=function.choose({}))

        kernels[f"kernel, {pins.MEMORY[device]}"] = kernel
    works, where, counts = {}, {}, set()
    for title, table in tables.items():
        query = f"SELECT count(*) FROM owm_ground('{table}')"
        works[title] = lambda query=query: con.execute(query).fetchall()
        counts.update(works[title]())
        where[title] = log.entries()[-1].device
    assert len(counts) == 1
    check = f"SELECT {pins.state_of('points')}"
    works["check"] = lambda: con.execute(check).fetchall()
    found = report("owm_ground", n, works | kernels, repeat, where)
    held = con.execute("SELECT sum(misses), min(uses) FROM spatialq_pins()").fetchall()
    assert held == [(0, repeat + 2)]
    for table in [*tables.values()][1:]:
        spatialq.unpin(con, table)
    return found


def boxes(low, size):
    """Make a table of boxes."""
    n = len(low)
    vertices = (low[:, None, :] + CORNERS * size[:, None, :]).reshape(-1)
    meshes = pa.StructArray.from_arrays(
        [
            pa.ListArray.from_arrays(pa.array(np.arange(n + 1) * 24, pa.int32()), vertices),
            pa.ListArray.from_arrays(
                pa.array(np.arange(n + 1) * 36, pa.int32()), np.tile(FACES.ravel(), n)
            ),
        ],
        ["vertices", "faces"],
    )
    return pa.table({"global_id": [f"e{k}" for k in range(n)], "mesh": meshes})


def elements(con, n, repeat):
    rng = np.random.default_rng(1)
    extent = 10 * np.cbrt(n)
    model = boxes(rng.uniform(0, extent, (n, 3)), rng.uniform(0.1, 4, (n, 3)))  # noqa: F841
    box = boxes(np.full((1, 3), extent / 2), np.full((1, 3), 12.0))
    con.execute("CREATE TABLE model AS FROM model; CREATE TABLE box AS FROM box")
    con.execute("CREATE VIEW unpinned_model AS FROM memory.model")
    print(f"{spatialq.pin(con, 'model')['bytes']} bytes pinned")
    check = f"SELECT {pins.state_of('model')}"
    meshes = next(
        each for each in instances.of(con).pins.values() if each.name == "model"
    ).kept.meshes
    function = catalogue()["intersects_with"]
    low, faces = box["mesh"][0].as_py().values()
    single = spatialq.Meshes.of([(low, faces)])
    tables = {"unpinned": "unpinned_model", "pinned": "model"}
    works = {
        title: lambda table=table: con.execute(
            f"FROM intersects_with('{table}', 'box', device := 'cpu') ORDER BY ALL"
        ).fetchall()
        for title, table in tables.items()
    }
    works |= {
        "check": lambda: con.execute(check).fetchall(),
        "kernel": lambda: function.kernel("cpu")(meshes, single, options=function.choose({})),
    }
    found = works["unpinned"]()
    assert found
    assert found == works["pinned"]()
    return report("intersects_with", n, works, repeat, dict.fromkeys(tables, "cpu"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int)
    parser.add_argument("--elements", type=int)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    chosen = parser.parse_args()
    if chosen.points is None and chosen.elements is None:
        chosen.points, chosen.elements = 5_000_000, 160_000
    print(f"{n_threads()} threads\n{'rows':>12} {'':28} {'on':>6} {'best':>13} {'ratio':>8}")
    figures = []
    with spatialq.connect() as con:
        con.execute("SET enable_progress_bar = false")
        transport = "native" if loading.is_loaded(con) else "lists"
        if chosen.points is not None:
            figures.append(points(con, chosen.points, chosen.repeat))
        if chosen.elements is not None:
            figures.append(elements(con, chosen.elements, chosen.repeat))
    if chosen.out is not None:
        machine = {each.device: each.name for each in devices.devices() if not each.problem}
        head = {
            "date": datetime.now(UTC).date().isoformat(),
            "threads": n_threads(),
            "transport": transport,
        }
        chosen.out.write_text(
            json.dumps({**head, "machine": machine, "figures": figures}, indent=1)
        )


if __name__ == "__main__":
    main()
