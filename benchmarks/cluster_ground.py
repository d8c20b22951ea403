"""The ground of a survey as a job: processor time of each stage, and that of one call.

Run: python benchmarks/cluster_ground.py FOLDER [--side 3000] [--tile 500] [--density 1.0]

FOLDER gets the tiles of a made-up survey, and the job. All tasks are done in this process, one
after the other, with one thread unless SPATIALQ_THREADS says otherwise, so that processor time is
that of the stages; then one call on all files is, whose rows are compared.
"""

import argparse
import json
import os
import resource
import shutil
import time
from collections import defaultdict
from pathlib import Path
from unittest.mock import patch

os.environ.setdefault("SPATIALQ_THREADS", "1")

import laspy
import numpy as np

import spatialq
from spatialq import cluster
from spatialq.cluster import driver
from spatialq.cluster.worker import answer, read_answer


def make(folder, side, tile, density):
    """Write tiles of a hilly survey with square houses."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    n = round(tile * tile * density)
    for row in range(round(side / tile)):
        for column in range(round(side / tile)):
            x, y = rng.uniform(0, tile, n) + column * tile, rng.uniform(0, tile, n) + row * tile
            z = 20 * np.sin(x / 90) * np.cos(y / 70) + rng.normal(0, 0.03, n)
            z += np.where((x % 40 < 12) & (y % 50 < 15), 6.0, 0.0)
            header = laspy.LasHeader(version="1.4", point_format=6)
            header.scales = np.full(3, 0.01)
            record = laspy.ScaleAwarePointRecord.zeros(n, header=header)
            record.x, record.y, record.z = x, y, z
            with laspy.open(folder / f"{row:03}_{column:03}.laz", "w", header=header) as file:
                file.write_points(record)


class Timed:
    """An executor that does all tasks here, and counts the processor time of each stage."""

    def __init__(self):
        self.seconds, self.tasks, self.peaks = defaultdict(float), defaultdict(int), {}

    def map(self, tasks):
        for task in tasks:
            started = time.process_time()
            found = read_answer(answer(task.text()))
            self.seconds[task.stage] += time.process_time() - started
            self.tasks[task.stage] += 1
            self.peaks[task.stage] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
            yield found

    def close(self):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--side", type=float, default=3000.0)
    parser.add_argument("--tile", type=float, default=500.0)
    parser.add_argument("--density", type=float, default=1.0)
    given = parser.parse_args()
    tiles, out, able = given.folder / "tiles", given.folder / "out", Timed()
    if not tiles.exists():
        make(tiles, given.side, given.tile, given.density)
    shutil.rmtree(out, ignore_errors=True)
    with patch.object(driver, "executor_of", return_value=able):
        made = cluster.run("classify_ground", tiles, out, unit=1.0)
    for stage, seconds in able.seconds.items():
        print(json.dumps({
            "stage": stage, "tasks": able.tasks[stage], "cpu_seconds": round(seconds, 2),
            "peak_bytes_so_far": able.peaks[stage],
        }))  # fmt: skip
    with spatialq.connect() as con:
        cluster.table(con, out, "found")
        started = time.process_time()
        con.execute(f"CREATE TABLE whole AS FROM classify_ground('{tiles}/', unit := 1.0)")
        seconds = time.process_time() - started
        ((apart,),) = con.sql(
            "SELECT count(*) FROM found FULL JOIN whole USING (point_id) WHERE found.height IS "
            "DISTINCT FROM whole.height OR found.is_ground IS DISTINCT FROM whole.is_ground"
        ).fetchall()
    print(json.dumps({
        "points": made["points"], "cpu_seconds_of_one_call": round(seconds, 2),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
        "rows_that_differ": apart,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
