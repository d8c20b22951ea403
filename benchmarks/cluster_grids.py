"""What a job of one large grid costs, against one call on its file; JSON, one line a run.

    python benchmarks/cluster_grids.py [--side N] [--tile N] [--workers N] [--strips]

The grid has side x side cells of 60 m in blocks of 512 x 512 cells, or in strips of rows, and the
options are the defaults: examples of 33 x 33 cells. The call and the job, with square tiles of so
many cells, each write Parquet in a process of its own; processor time is that of the call, and of
all workers; peak memory that of the largest process. Their rows are compared. The last line is a
job of a small grid, a tile for each of its examples: what a task costs beside its cells.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import rasterio

import spatialq
from spatialq import cluster

CELL, EXAMPLE, BLOCK = 60.0, 33, 512
SMALL = 20
"""Examples along the small grid."""
CALL = """
import json, resource, sys
import spatialq
with spatialq.connect() as con:
    con.execute(f"COPY (FROM pops_features('{sys.argv[1]}')) TO '{sys.argv[2]}'")
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss << 10]))
"""


def report(**figures):
    print(json.dumps(figures), flush=True)


def write(path, side, *, strips):
    """Write hills and noise, block row by block row."""
    blocks = {} if strips else {"tiled": True, "blockxsize": BLOCK, "blockysize": BLOCK}
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 1, (BLOCK, side)).astype(np.float32)
    with rasterio.open(
        path, "w", driver="GTiff", height=side, width=side, count=1, dtype="float32",
        crs="EPSG:32633", transform=rasterio.Affine(CELL, 0, 4e5, 0, -CELL, 5e6), nodata=-9999.0,
        compress="deflate", zlevel=1, **blocks,
    ) as file:  # fmt: skip
        x = np.sin(np.arange(side) / 90)
        for first in range(0, side, BLOCK):
            y = np.arange(first, min(first + BLOCK, side))
            z = 500 * x * np.cos(y / 70)[:, None] + np.roll(noise, first // 7, 1)[: y.size]
            window = rasterio.windows.Window(0, first, side, y.size)
            file.write(z.astype(np.float32), 1, window=window)


def used_by_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime, used.ru_maxrss << 10


def run_call(path, target):
    """Report one call."""
    told = subprocess.run(
        [sys.executable, "-c", CALL, path, target], capture_output=True, text=True, check=True
    )
    cpu, peak = json.loads(told.stdout.splitlines()[-1])
    report(run="call", cpu_seconds=cpu, peak_bytes=peak)
    return cpu


def run_job(path, folder, cells, workers):
    """Report a job, which is the first of this process: its workers are children of it."""
    before, _ = used_by_children()
    made = cluster.run("pops_features", path, folder, tile_size=cells * CELL, workers=workers)
    cpu, peak = used_by_children()
    report(run="job", **made, cpu_seconds=cpu - before, peak_bytes=peak)
    return cpu - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--side", type=int, default=12_000)
    parser.add_argument("--tile", type=int, default=3_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--strips", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, target, out = (str(Path(folder) / name) for name in ("a.tif", "a.parquet", "out"))
        write(path, given.side, strips=given.strips)
        many = run_job(path, out, given.tile, given.workers)
        once = run_call(path, target)
        with spatialq.connect() as con:
            cluster.table(con, out, "found")
            one = f"FROM '{target}'"
            query = f"(FROM found EXCEPT ALL {one}) UNION ALL ({one} EXCEPT ALL FROM found)"
            ((differences,),) = con.sql(f"SELECT count(*) FROM ({query})").fetchall()
        report(run="ratio", job_against_call=many / once, differences=differences)
        small = str(Path(folder) / "small.tif")
        write(small, SMALL * EXAMPLE, strips=given.strips)
        cpu = run_job(small, f"{out}_small", 1, given.workers)
        report(run="overhead", cpu_ms_per_tile=1000 * cpu / SMALL**2)


if __name__ == "__main__":
    main()
