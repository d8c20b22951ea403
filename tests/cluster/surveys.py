"""Surveys of small tiles, and jobs on them."""

import functools
import json
import subprocess
import sys
from pathlib import Path

import laspy
import numpy as np

import spatialq
from spatialq import cluster

SIDE = 30.0
COLUMNS, ROWS = 5, 4
QUIET = {"unit": 1.0}


def write_tile(path, x, y, z):
    """Write points as they are, in centimetres."""
    header = laspy.LasHeader(version="1.4", point_format=6)
    header.scales = np.full(3, 0.01)
    record = laspy.ScaleAwarePointRecord.zeros(x.size, header=header)
    record.x, record.y, record.z = x, y, z
    record["return_number"] = record["number_of_returns"] = np.ones(x.size, np.uint8)
    with laspy.open(path, "w", header=header) as file:
        file.write_points(record)


def make(folder, columns=COLUMNS, rows=ROWS, n=700, seed=1):
    """Write tiles of a rough slope with a house across borders; many heights tie."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for row in range(rows):
        for column in range(columns):
            # whole decimetres, so that points lie on borders of tiles and windows
            x, y = (rng.integers(0, round(10 * SIDE) + 1, n) / 10 for _ in range(2))
            x, y = x + column * SIDE + 1000, y + row * SIDE + 5000
            z = np.round((x - 1000) / 20 + rng.integers(0, 8, n) / 10, 1)
            z += np.where((abs(x - 1060) < 14) & (abs(y - 5060) < 17), 6.0, 0.0)
            write_tile(folder / f"tile_{row}_{column}.laz", x, y, z)
    return folder


def cut(cloud, folder):
    """Write a cloud as five by four tiles, each with its header."""
    folder.mkdir()
    x, y = (np.asarray(each) for each in (cloud.x, cloud.y))
    column = np.minimum(((x - x.min()) / np.ptp(x) * COLUMNS).astype(int), COLUMNS - 1)
    row = np.minimum(((y - y.min()) / np.ptp(y) * ROWS).astype(int), ROWS - 1)
    for k in range(COLUMNS * ROWS):
        part = laspy.LasData(cloud.header)
        part.points = cloud.points[(column == k % COLUMNS) & (row == k // COLUMNS)].copy()
        part.write(folder / f"tile_{k:02}.laz")
    return folder


def rows_of(con, query):
    """Give all rows, sorted."""
    return con.sql(f"FROM ({query}) ORDER BY point_id").fetchall()


def of_job(folder):
    """Give the rows of a job's parts, sorted."""
    with spatialq.connect() as con:
        cluster.table(con, folder, "found")
        return rows_of(con, "FROM found")


def in_one_piece(tiles, **options):
    """Give the rows of one call on all files, sorted."""
    given = "".join(f", {name} := {value}" for name, value in (QUIET | options).items())
    return rows_of_call(f"owm_ground('{tiles}/*.laz'{given})")


@functools.lru_cache(maxsize=32)
def rows_of_call(call):
    """Give the rows of a call on files that stay as they are, sorted, as several tests do."""
    with spatialq.connect() as con:
        return rows_of(con, f"FROM {call}")


SCRIPT = """
import json, resource, sys
from spatialq import cluster
arguments = json.loads(sys.argv[1])
limit = arguments.pop("limit", None)
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
function, source, folder = (arguments.pop(name) for name in ("function", "source", "folder"))
cluster.run(function, source, folder, **arguments)
"""


def begin(tiles, folder, **more):
    """Begin a job in a process of its own."""
    arguments = {
        "function": "owm_ground", "source": str(tiles), "folder": str(folder), "workers": 2,
    }  # fmt: skip
    command = [sys.executable, "-c", SCRIPT, json.dumps(arguments | QUIET | more)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def journal_lines(folder):
    path = Path(folder) / "journal.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0
