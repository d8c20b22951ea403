"""Pinned tables against the same tables unpinned; ratios in one run.

    python benchmarks/pins.py [--points 5000000] [--elements 160000] [--device gpu]

Points: owm_ground in SQL, and its parts: the check that the table has the content that was pinned,
and the kernel on the pinned arrays. Elements: intersects_with of one box against a model of boxes.
"""

import argparse
import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
from measure import in_turns

import spatialq
from spatialq.database import pins
from spatialq.functions.catalogue import catalogue
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


def report(rows, timed, base):
    """Print the best times, and how many times as fast as the first each is."""
    for name, each in timed.items():
        print(f"{rows:>12} {name:28} {1e3 * each.best:10.1f} ms {base / each.best:8.1f}")


def fixed(con, folder, table):
    """Copy a table into a database that is attached for reading only, and give its full name."""
    path = Path(folder) / f"{table}.duckdb"
    con.execute(
        f"ATTACH '{path}' AS of_{table}; CREATE TABLE of_{table}.{table} AS FROM {table}; "
        f"DETACH of_{table}; ATTACH '{path}' AS of_{table} (READ_ONLY)"
    )
    return f"of_{table}.main.{table}"


def points(con, folder, n, device, repeat):
    con.execute(
        "CREATE TABLE points AS SELECT range AS point_id, random() * 1000 AS x, "
        f"random() * 1000 AS y, random() * 30 AS z FROM range({n})"
    )
    con.execute("CREATE VIEW unpinned AS FROM points")
    print(f"{spatialq.pin(con, 'points', device=device)['bytes']} bytes pinned: {device}")
    columns = pins.POINTS
    check = f"SELECT count(*), {pins.fingerprint(columns)} FROM points"
    function = catalogue()["owm_ground"]
    (pin,) = (each for each in pins._pins.values() if each.name == "points")

    def kernel():
        with cuda.device().use() if device == "gpu" else nullcontext():
            return function.kernel(device)(**pin.arrays(function), options=function.choose({}))

    name = fixed(con, folder, "points")
    spatialq.pin(con, name, device=device)
    query = "SELECT count(*), sum(hits) FROM owm_ground('{}', device := '{}')"
    works = {
        name: lambda name=name: con.execute(query.format(name, device)).fetchall()
        for name in ("unpinned", "points", name)
    }
    works |= {"check": lambda: con.execute(check).fetchall(), "kernel": kernel}
    assert works["unpinned"]() == works["points"]()
    timed = in_turns(works, repeat)
    report(n, timed, timed["unpinned"].best)
    held = con.execute("SELECT sum(misses), min(uses) FROM spatialq_pins()").fetchall()
    assert held == [(0, repeat + 1)]
    spatialq.unpin(con, "points")
    spatialq.unpin(con, name)


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


def elements(con, folder, n, repeat):
    rng = np.random.default_rng(1)
    extent = 10 * np.cbrt(n)
    model = boxes(rng.uniform(0, extent, (n, 3)), rng.uniform(0.1, 4, (n, 3)))  # noqa: F841
    box = boxes(np.full((1, 3), extent / 2), np.full((1, 3), 12.0))
    con.execute("CREATE TABLE model AS FROM model; CREATE TABLE box AS FROM box")
    con.execute("CREATE VIEW unpinned_model AS FROM memory.model")
    print(f"{spatialq.pin(con, 'model')['bytes']} bytes pinned")
    name = fixed(con, folder, "model")
    spatialq.pin(con, name)
    check = f"SELECT {pins.fingerprint(pins.ELEMENT_COLUMNS)} FROM spatial_elements('model')"
    meshes = next(each for each in pins._pins.values() if each.name == "model").kept.meshes
    function = catalogue()["intersects_with"]
    low, faces = box["mesh"][0].as_py().values()
    single = spatialq.Meshes.of([(low, faces)])
    works = {
        name: lambda name=name: con.execute(
            f"FROM intersects_with('{name}', 'box', device := 'cpu') ORDER BY ALL"
        ).fetchall()
        for name in ("unpinned_model", "model", name)
    }
    works |= {
        "check": lambda: con.execute(check).fetchall(),
        "kernel": lambda: function.kernel("cpu")(meshes, single, options=function.choose({})),
    }
    found = works["unpinned_model"]()
    assert found
    assert found == works["model"]()
    timed = in_turns(works, repeat)
    report(n, timed, timed["unpinned_model"].best)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=5_000_000)
    parser.add_argument("--elements", type=int, default=160_000)
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    print(f"{n_threads()} threads\n{'rows':>12} {'':28} {'best':>13} {'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder, spatialq.connect() as con:
        con.execute("SET enable_progress_bar = false")
        points(con, folder, chosen.points, chosen.device, chosen.repeat)
        elements(con, folder, chosen.elements, chosen.repeat)


if __name__ == "__main__":
    main()
