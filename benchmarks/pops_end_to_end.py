"""What SQL adds to `pops_features` of a GeoTIFF: against reading it plus the kernel, in one run.

python benchmarks/pops_end_to_end.py [--side CELLS] [--compress deflate] [--table] [--repeat N]

A generated terrain of float32 cells of 60 m with a nodata value, the paper's small scales, examples
of 2000 m. `read` is rasterio's read of the whole band, `kernel` the CPU's kernel on that array in
one call; SQL reads, computes and fetches all rows as Arrow. With --table also on a table of cells.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import rasterio
from measure import kernel, options_of

import spatialq
from spatialq.data.grid import Grid
from spatialq.runtime.threads import n_threads

CELL = 60.0


def write_terrain(path, side, compress):
    rng = np.random.default_rng(6)
    x = np.arange(side, dtype=np.float32)
    with rasterio.open(
        path, "w", driver="GTiff", height=side, width=side, count=1, dtype="float32", nodata=-9999,
        crs="EPSG:32633", transform=rasterio.Affine(CELL, 0, 500000, 0, -CELL, 4200000),
        tiled=True, compress=None if compress == "none" else compress, bigtiff="if_safer",
    ) as file:  # fmt: skip
        for top in range(0, side, 256):
            rows = np.arange(top, min(top + 256, side), dtype=np.float32)[:, None]
            z = 1000 + 300 * np.sin(x / 170) * np.cos(rows / 230)
            z += rng.normal(0, 3, z.shape).astype(np.float32)
            file.write(z, 1, window=((top, top + len(rows)), (0, side)))


def read(path):
    with rasterio.open(path) as file:
        return np.ascontiguousarray(file.read(1)[::-1])


def measure(con, path, table, best):
    """Run each once; keep the best time of each."""

    def time_of(name, work):
        start = time.perf_counter()
        result = work()
        best[name] = min(time.perf_counter() - start, best.get(name, np.inf))
        return result

    grid = Grid(time_of("read", lambda: read(path)), dx=CELL, dy=CELL)
    time_of("kernel", lambda: kernel("pops_features", "cpu")(grid, options_of("pops_features")))
    query = f"FROM pops_features('{path}', device := 'cpu')"
    time_of("SQL, file", lambda: con.sql(query).to_arrow_table())
    if table:
        query = "FROM pops_features(cells, device := 'cpu')"
        time_of("SQL, table", lambda: con.sql(query).to_arrow_table())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=10_000)
    parser.add_argument("--compress", choices=["none", "deflate", "zstd"], default="none")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    best = {}
    with tempfile.TemporaryDirectory() as folder, spatialq.connect() as con:
        small, path = Path(folder) / "small.tif", Path(folder) / "terrain.tif"
        write_terrain(small, 200, "none")
        write_terrain(path, arguments.side, arguments.compress)
        for source, repeat in ((small, 1), (path, arguments.repeat)):  # the small one compiles
            best.clear()
            if arguments.table:
                con.execute(f"CREATE OR REPLACE TABLE cells AS FROM read_grid('{source}')")
            for _ in range(repeat):
                measure(con, source, arguments.table, best)
    direct = best["read"] + best["kernel"]
    cells = arguments.side**2
    print(f"{cells / 1e6:.0f} M cells, {arguments.compress}, {n_threads()} threads")
    for name, seconds in best.items():
        print(f"{name:12} {seconds:7.2f} s  {seconds / direct:5.2f} x read plus kernel")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"peak memory {peak / 2**30:.1f} GiB")


if __name__ == "__main__":
    main()
