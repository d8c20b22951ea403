"""What a job of tiles costs beside its kernels; JSON, one line a run.

    python benchmarks/cluster.py overhead [--executor local|ray] [--tiles N]
    python benchmarks/cluster.py driver [--tiles N]
    python benchmarks/cluster.py job FOLDER [--executor local|ray] [--workers N]
    python benchmarks/cluster.py survey [--tiles N] [--function NAME]

`overhead` has warm workers look at tiny files: milliseconds of a worker for each task. `driver`
takes tiles that are only made up through the driver of a job, as if workers had done them, twice:
the second time the job is resumed. `job` runs `owm_ground` on a folder of tiles, such as
`large_clouds.py make` makes, and compares its rows with those of one call on all files. `survey`
makes tiles of 2 million points in a temporary folder and runs a function on all of them with 2
workers, and on a quarter of them with 1, local and with Ray, without a comparison. Processor time
and memory of workers are known of executor local alone.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from pathlib import Path
from typing import Any
from unittest.mock import patch

import laspy
import numpy as np

import spatialq
from spatialq import cluster
from spatialq.cluster.executors import executor_of
from spatialq.cluster.folder import JobFolder
from spatialq.cluster.job import Call, Job
from spatialq.cluster.methods import methods
from spatialq.cluster.survey import task_of
from spatialq.cluster.task import Done
from spatialq.functions.catalogue import catalogue

GIB = 1 << 30
SIDE = 1000.0
POINTS = 8_000_000
RUN = 250_000
BOXES = bytes(range(4)) * -(-POINTS // RUN)
WARM = 20
TILE_POINTS = 2_000_000


def report(**figures):
    print(json.dumps(figures), flush=True)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def overhead(executor, tiles):
    """Milliseconds a task, with two workers that have done some before."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.las"
        file = laspy.LasData(laspy.LasHeader(version="1.4", point_format=6))
        file.x = file.y = file.z = np.arange(20.0)
        file.write(path)
        able = executor_of(executor, 2, GIB)
        task = task_of("benchmark", str(path), (str(path), None), None)
        list(able.map([task] * WARM))
        started = time.perf_counter()
        list(able.map([task] * tiles))
        seconds = time.perf_counter() - started
        able.close()
    report(run="overhead", executor=executor, tiles=tiles, ms_per_tile=1000 * seconds * 2 / tiles)


class MadeUp:
    """An executor that has done every task: files of a square survey, and parts without bytes."""

    def __init__(self, columns):
        self._columns = columns

    def map(self, tasks):
        for task in tasks:
            if task.stage == "survey":
                k = int(Path(task.name).stem)
                low = [SIDE * (k % self._columns), SIDE * (k // self._columns), 0.0]
                high = [low[0] + SIDE - 0.01, low[1] + SIDE - 0.01, 100.0]
                inner = [[each + far for each in low] for far in (30.0, SIDE - 30.0)]
                facts = {
                    "stamp": [1, 1, "0" * 32], "rows": POINTS, "points": POINTS, "low": low,
                    "high": high, "inner_low": inner[0], "inner_high": inner[1],
                    "run": RUN, "boxes": b64encode(BOXES).decode(),
                }  # fmt: skip
                yield Done(task.stage, task.name, facts)
            else:
                yield Done(task.stage, task.name, {"rows": 30_000, "device": "cpu"}, 0, "0" * 32)

    def close(self):
        pass


def simulate(tiles, folder):
    """Report a job of made-up tiles, and the same one resumed: processor time of the driver."""
    able = MadeUp(round(np.sqrt(tiles)))
    paths = [f"/survey/of/a/country/{k:09}.laz" for k in range(tiles)]
    method, options = methods()["owm_ground"], catalogue()["owm_ground"].choose({})
    call = Call(
        "owm_ground", paths, None, options, 1.0, 1.0, (1.0, 1.0, 1.0), {}, None, "parquet", "cpu"
    )
    folder = JobFolder(Path(folder))
    for is_resumed in (False, True):
        started = time.process_time()
        with folder.held(), folder.recording():
            before = {"state": "parts"} if is_resumed else None
            job = Job(call, folder, able, {}, _nothing, before)
            method.run(job)
            found = job.found
        seconds = time.process_time() - started
        assert found["parts"] == tiles
        assert found["resumed"] == (tiles if is_resumed else 0)
        report(
            run="driver", tiles=tiles, is_resumed=is_resumed, cpu_seconds=seconds,
            us_per_tile=1e6 * seconds / tiles, peak_bytes=peak(),
            journal_bytes=(folder.path / "journal.jsonl").stat().st_size,
        )  # fmt: skip


def _nothing(*_):
    """Show no progress."""


def run_job(tiles, executor, workers):
    """Run a job and compare it."""
    with tempfile.TemporaryDirectory() as folder:
        made = cluster.run(
            "owm_ground", f"{tiles}/", folder, executor=executor, workers=workers, unit=1.0
        )
        workers_used = resource.getrusage(resource.RUSAGE_CHILDREN)
        with spatialq.connect() as con:
            cluster.table(con, folder, "found")
            one = f"FROM owm_ground('{tiles}/', unit := 1.0)"
            query = f"(FROM found EXCEPT ALL {one}) UNION ALL ({one} EXCEPT ALL FROM found)"
            started = time.perf_counter()
            differences = len(con.sql(query).fetchall())
            seconds = (time.perf_counter() - started) / 2
    rate = made["points"] / made["seconds"]
    report(
        run="job", executor=executor, workers=workers, **made, points_per_second=rate,
        peak_bytes_of_a_worker=workers_used.ru_maxrss << 10,
        cpu_seconds_of_workers=workers_used.ru_utime + workers_used.ru_stime,
        seconds_in_one_piece=seconds, differences=differences,
    )  # fmt: skip


def run_survey(function, tiles):
    """Make a survey and run jobs on it, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        made, few = Path(folder) / "tiles", Path(folder) / "few"
        maker = Path(__file__).with_name("large_clouds.py")
        size = ["--points", str(tiles * TILE_POINTS), "--tile-points", str(TILE_POINTS)]
        started = time.perf_counter()
        subprocess.run([sys.executable, maker, "make", made, *size], check=True)
        report(run="make", seconds=time.perf_counter() - started)
        few.mkdir()
        for path in sorted(made.iterdir())[: max(1, tiles // 4)]:
            (few / path.name).symlink_to(path)
        for executor in ("local", "ray"):
            for workers, source in ((2, made), (1, few)):
                out = Path(folder) / f"{executor}_{workers}"
                names = [function, source, out, executor, str(workers)]
                subprocess.run([sys.executable, __file__, "one", *names], check=True)


def run_one(function, source, out, executor, workers):
    """Run a job and report it."""
    more: dict[str, Any] = {"unit": 1.0}
    if function == "classify_ground":
        more["by_class"] = False
    made = cluster.run(function, f"{source}/", out, executor=executor, workers=int(workers), **more)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    local = {
        "peak_bytes_of_a_worker": used.ru_maxrss << 10,
        "cpu_seconds_of_workers": used.ru_utime + used.ru_stime,
    }
    report(
        run="survey", executor=executor, workers=int(workers), **made,
        points_per_second=made["points"] / made["seconds"], peak_bytes_of_the_driver=peak(),
        **(local if executor == "local" else {}),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["overhead", "driver", "job", "survey", "one"])
    parser.add_argument("folder", nargs="*")
    parser.add_argument("--function", default="owm_ground")
    parser.add_argument("--executor", default="local")
    parser.add_argument("--tiles", type=int)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    if given.what == "overhead":
        overhead(given.executor, given.tiles or 500)
    elif given.what == "driver":
        with (  # there are no files
            tempfile.TemporaryDirectory() as folder,
            patch.object(Job, "is_unchanged", return_value=True),
            patch.object(JobFolder, "is_there", return_value=True),
        ):
            simulate(given.tiles or 1_000_000, folder)
    elif given.what == "survey":
        run_survey(given.function, given.tiles or 50)
    elif given.what == "one":
        run_one(*given.folder)
    else:
        (folder,) = given.folder
        run_job(folder, given.executor, given.workers)


if __name__ == "__main__":
    main()
