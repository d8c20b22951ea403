"""Folders of LAZ tiles larger than memory, through kernels under a budget; JSON, one line a run.

    python benchmarks/large_clouds.py make FOLDER --points N [--tile-points N]
    python benchmarks/large_clouds.py run FOLDER --memory 2GB [--temp FOLDER] [function ...]
    python benchmarks/large_clouds.py run FOLDER --device gpu --memory '' [function ...]
    python benchmarks/large_clouds.py run FOLDER --memory 2GB --tile-size 200m job:classify_noise

`make` writes a survey of 8 points per square metre as tiles: the terrain of the demo, mirrored
again and again, with houses and trees. `run` runs commands, which write what they find under the
folder of temporary files, and functions in SQL, each in a process of its own, on all tiles:
`seconds` of everything, `kernel_seconds` as the log has them, `points_per_second`, `user_seconds`
and `system_seconds` of all cores, and `peak_bytes`, the peak of the process's resident memory. With
an empty `--memory` there is no budget. `clip` writes the points in a square of every second block.
`job:` before a function makes it a job of square tiles with one worker, of which `peak_bytes` are.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import laspy
import numpy as np

from spatialq.demo import terrain

DENSITY = 8.0
SCALE = 0.001
BLOCK = 50.0  # side of the squares of which each has a house and some trees
TREES = 6
COMMANDS = ["ground", "planes", "lod", "noise", "thin", "clip"]
JOB = "job:"
FUNCTIONS = ["owm_ground", "classify_ground", "detect_planes"]


def mirrored(values):
    """Positions in the tile of the demo, which is mirrored beyond its borders."""
    return terrain.SIZE - np.abs(values % (2 * terrain.SIZE) - terrain.SIZE)


def heights(x, y, seed):
    """Terrain, with houses of which each has a gable roof, and crowns of trees."""
    rng = np.random.default_rng(seed)
    u, v = x - terrain.ORIGIN[0], y - terrain.ORIGIN[1]
    at = [terrain.ORIGIN[k] + mirrored(each) for k, each in enumerate((u, v))]
    z = terrain.ground(*at) + 0.02 * rng.standard_normal(x.size)
    column, row = np.floor(u / BLOCK), np.floor(v / BLOCK)
    across, along = u - column * BLOCK, v - row * BLOCK  # in the block
    # sizes from the number of the block, so that they do not depend on the tile
    chance = np.modf(np.abs(np.sin(column * 12.9898 + row * 78.233)) * 43758.5453)[0]
    half = 4 + 3 * chance
    in_house = (np.abs(across - 25) < half) & (np.abs(along - 25) < 1.5 * half)
    roof = 4 + 2 * chance + 0.7 * (half - np.abs(across - 25))
    middle = terrain.ground(
        *(
            terrain.ORIGIN[k] + mirrored((each + 0.5) * BLOCK)
            for k, each in enumerate((column, row))
        )
    )
    for k in range(TREES):
        turn = 2 * np.pi * (chance + k / TREES)
        far = np.hypot(across - 25 - 18 * np.cos(turn), along - 25 - 18 * np.sin(turn))
        seen = (far < 2.5) & (rng.random(x.size) < 0.7)
        z += np.where(seen, 2 + 6 * rng.random(x.size), 0)
    return np.where(in_house, middle + roof + 0.02 * rng.standard_normal(x.size), z)


def write_tile(path, west, south, width, depth, n, seed):
    """Write a tile of n points, in the order of flight lines along x."""
    rng = np.random.default_rng([seed, 1])
    x, y = west + width * rng.random(n), south + depth * np.sort(rng.random(n))
    header = laspy.LasHeader(version="1.4", point_format=6)
    # whole offsets, so that one file can have the points of all tiles
    header.scales, header.offsets = np.full(3, SCALE), np.floor([west, south, 0.0])
    with laspy.open(path, "w", header=header) as file:
        for first in range(0, n, 1 << 20):
            part = slice(first, first + (1 << 20))
            some = x[part], y[part], heights(x[part], y[part], [seed, first])
            record = laspy.ScaleAwarePointRecord.zeros(some[0].size, header=header)
            record.x, record.y, record.z = some
            record["return_number"] = record["number_of_returns"] = np.ones(len(record), np.uint8)
            file.write_points(record)


def make(folder, n, tile_points):
    """Write the tiles of a survey as wide as it is deep."""
    folder.mkdir(parents=True, exist_ok=True)
    count = max(1, round(n / tile_points))
    rows = max(1, int(np.sqrt(count)))
    columns = -(-count // rows)
    side = np.sqrt(n / DENSITY)
    width, depth, k = side / columns, side / rows, 0
    with ProcessPoolExecutor() as pool:
        tiles = []
        for row in range(rows):
            for column in range(columns):
                size = n * (k + 1) // (rows * columns) - n * k // (rows * columns)
                corner = terrain.ORIGIN[0] + column * width, terrain.ORIGIN[1] + row * depth
                path = folder / f"tile_{row:03}_{column:03}.laz"
                tiles.append(pool.submit(write_tile, path, *corner, width, depth, size, k))
                k += 1
        for tile in tiles:
            tile.result()


def run_function(name, folder, memory, device):
    """Count the rows of a function in SQL, and print the line."""
    import spatialq

    con = spatialq.connect()
    started = time.perf_counter()
    budget = f", memory := '{memory}'" if memory else ""
    query = f"SELECT count(*) FROM {name}('{folder}/*.laz', device := '{device}'{budget})"
    ((rows,),) = con.sql(query).fetchall()
    seconds = time.perf_counter() - started
    ((points, reason, kernel),) = con.sql(
        "SELECT row_count, reason, seconds FROM spatialq_log() LIMIT 1"
    ).fetchall()
    peak = Path("/proc/self/status").read_text(encoding="ascii").partition("VmHWM:")[2]
    report(
        function=name, points=points, rows=rows, device=device, memory=memory, seconds=seconds,
        kernel_seconds=kernel, reason=reason,
        points_per_second=points / seconds, peak_bytes=int(peak.split()[0]) << 10,
        **processor_seconds(resource.RUSAGE_SELF),
    )  # fmt: skip


def write_polygons(folder, path):
    """Write squares that together have an eighth of the survey, as GeoJSON."""
    low, high = [], []
    for tile in folder.glob("*.laz"):
        with laspy.open(tile) as file:
            low.append(file.header.mins[:2])
            high.append(file.header.maxs[:2])
    (west, south), (east, north) = np.min(low, axis=0), np.max(high, axis=0)
    squares = []
    for k, x in enumerate(np.arange(west, east, BLOCK)):
        for y in np.arange(south + BLOCK * (k % 2), north, 2 * BLOCK):
            ring = [[float(x + u * BLOCK / 2), float(y + v * BLOCK / 2)]
                    for u, v in ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))]  # fmt: skip
            shape = {"type": "Polygon", "coordinates": [ring]}
            squares.append({"type": "Feature", "properties": {}, "geometry": shape})
    path.write_text(json.dumps({"type": "FeatureCollection", "features": squares}), "ascii")


def run_job(name, folder, memory, device, temp, tile_size):
    """Run a function as a job with one worker, and print the line."""
    from spatialq import cluster

    started = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=temp) as out:
        made = cluster.run(
            name, f"{folder}/*.laz", f"{out}/job", workers=1, device=device, memory=memory or None,
            tile_size=tile_size,
        )  # fmt: skip
    seconds = time.perf_counter() - started
    report(
        job=name, points=made["points"], rows=made["rows"], device=device, memory=memory,
        tile_size=tile_size, parts=made["parts"], seconds=seconds,
        points_per_second=made["points"] / seconds,
        peak_bytes=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10,
        **processor_seconds(resource.RUSAGE_CHILDREN),
    )  # fmt: skip


def run_command(name, folder, memory, device, temp):
    """Run a command in a process of its own, and print the line."""
    with tempfile.TemporaryDirectory(dir=temp) as out:
        output = f"{out}/lod.parquet" if name == "lod" else f"{out}/{name}/"
        options = ["-o", output, "--json"]
        if name == "clip":
            write_polygons(folder, Path(out, "squares.json"))
            options += ["--within", f"{out}/squares.json"]
        else:
            options += ["--device", device]
        options += ["--memory", memory] if memory else []
        started = time.perf_counter()
        command = [sys.executable, "-m", "spatialq", name, f"{folder}/*.laz", *options]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        seconds = time.perf_counter() - started
    row = json.loads(told)
    points = (row[0] if isinstance(row, list) else row)["points"]
    report(
        command=name, points=points, device=device, memory=memory, seconds=seconds,
        points_per_second=points / seconds,
        peak_bytes=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10,
        **processor_seconds(resource.RUSAGE_CHILDREN),
    )  # fmt: skip


def processor_seconds(who):
    used = resource.getrusage(who)
    return {"user_seconds": used.ru_utime, "system_seconds": used.ru_stime}


def report(**line):
    line = {k: round(v, 3) if isinstance(v, float) else v for k, v in line.items()}
    print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition(";")[0])
    parser.add_argument("task", choices=["make", "run", "one"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("functions", nargs="*", default=COMMANDS + FUNCTIONS)
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--tile-points", type=int, default=4_000_000)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--temp", type=Path)
    parser.add_argument("--tile-size", help="of jobs; by default each file is a task")
    given = parser.parse_intermixed_args()
    if given.task == "make":
        make(given.folder, given.points, given.tile_points)
        return
    for name in given.functions:
        if given.task == "run":
            options = ["--memory", given.memory, "--device", given.device]
            options += ["--temp", given.temp] if given.temp else []
            options += ["--tile-size", given.tile_size] if given.tile_size else []
            own = [sys.executable, __file__, "one", given.folder, name, *options]
            subprocess.run([str(each) for each in own], check=False)
        elif name.startswith(JOB):
            name = name.removeprefix(JOB)
            run_job(name, given.folder, given.memory, given.device, given.temp, given.tile_size)
        elif name in COMMANDS:
            run_command(name, given.folder, given.memory, given.device, given.temp)
        else:
            run_function(name, given.folder, given.memory, given.device)


if __name__ == "__main__":
    main()
