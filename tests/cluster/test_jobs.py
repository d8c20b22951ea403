"""Jobs of tiles: the rows of one call on all files, whatever happens in the middle."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import spatialq
from spatialq import cluster
from spatialq.cluster import survey
from spatialq.cluster.executor import environment
from spatialq.cluster.files import LocalFiles
from spatialq.cluster.folder import JobFolder
from spatialq.cluster.task import Done
from spatialq.errors import FileError, FileWarning, JobError
from tests.cluster import surveys
from tests.cluster.processes import (
    command_of,
    kill_all,
    processes_below,
    wait_for_lines,
)
from tests.command_line import rows as command_rows
from tests.command_line import spatialq_command
from tests.conftest import made_once, real_file

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture(scope="session")
def tiles(tmp_path_factory):
    return made_once(tmp_path_factory, "survey", surveys.make)


@pytest.fixture(scope="session")
def done(tiles, tmp_path_factory):
    """A job that is done."""
    made = made_once(
        tmp_path_factory, "job_done",
        lambda folder: run(tiles, folder / "out", executor="serial"),
    )  # fmt: skip
    return made / "out"


def run(tiles, folder, **options):
    return cluster.run("owm_ground", str(tiles), folder, **(surveys.QUIET | options))


CASES = {
    "as it is": {},
    "two thirds": {"overlap": 2 / 3},
    "odd window": {"window_size": 7.0},
    "wide cells": {"cell_size": 45.0},
    "no cells": {"cell_size": 0.0},
    "no overlap": {"overlap": 0.0},
    "few points": {"min_points": 3},
    "bounds": {"bounds": [1013.3, 5007.7, 1101.0, 5088.8]},
    "octree": {"ties": "octree"},
}


@pytest.mark.slow
@pytest.mark.parametrize("tile_size", [None, 23.7, 30.0])
@pytest.mark.parametrize("name", CASES)
def test_parts_have_the_rows_of_one_piece(at_once, tiles, tmp_path, name, tile_size):
    options = CASES[name]
    result = run(tiles, tmp_path / "out", tile_size=tile_size, **options)
    literal = {key: repr(value) for key, value in options.items()}
    expected = surveys.in_one_piece(tiles, **literal)
    assert surveys.of_job(tmp_path / "out") == expected
    assert result["rows"] == len(expected) > 20
    if tile_size is None and name != "bounds":
        assert result["parts"] == surveys.COLUMNS * surveys.ROWS


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["local", pytest.param("ray", marks=needs_ray)])
def test_executors_give_the_same(tiles, tmp_path, executor):
    seen = []
    result = run(
        tiles, tmp_path / "out", executor=executor, workers=2, progress=lambda *at: seen.append(at)
    )
    assert surveys.of_job(tmp_path / "out") == surveys.in_one_piece(tiles)
    assert result["parts"] == 20
    assert [(str(stage), total) for stage, done, total in seen if done == 20] == [
        ("survey", 20),
        ("parts", 20),
    ]


@pytest.mark.slow
def test_real_tiles(at_once, tmp_path):
    import laspy

    cloud = laspy.read(real_file("data/lidar/ahn3_cropped_1.laz"))
    x, y, z = (np.asarray(each) for each in (cloud.x, cloud.y, cloud.z))
    column = np.minimum(((x - x.min()) / np.ptp(x) * 5).astype(int), 4)
    row = np.minimum(((y - y.min()) / np.ptp(y) * 4).astype(int), 3)
    tiles = tmp_path / "tiles"
    tiles.mkdir()
    for k in range(20):
        own = (column == k % 5) & (row == k // 5)
        surveys.write_tile(tiles / f"tile_{k:02}.laz", x[own], y[own], z[own])
    run(tiles, tmp_path / "out")
    found = surveys.of_job(tmp_path / "out")
    assert found == surveys.in_one_piece(tiles)
    assert len(found) > 500


def require_whole(tiles, folder):
    """Resume a job, and compare it; no part is there twice, and none that nobody knows."""
    result = run(tiles, folder, workers=2, resume=True)
    assert surveys.of_job(folder) == surveys.in_one_piece(tiles)
    parts = sorted(path.name for path in (folder / "parts").iterdir())
    assert parts == [f"{k:07}.parquet" for k in range(20)]
    return result


@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_what_is_done(tiles, tmp_path):
    process = surveys.begin(tiles, tmp_path / "out")
    wait_for_lines(tmp_path / "out", 25, process)
    process.kill()
    process.communicate(timeout=60)
    (described,) = cluster.jobs(tmp_path)
    assert described["state"] == "unfinished"
    assert described["stage"] == "parts"
    assert 5 <= described["done"] < described["tasks"] == 20
    assert described["rest"] is None
    with spatialq.connect() as con, pytest.raises(JobError, match="is not done: resume it"):
        cluster.table(con, tmp_path / "out")
    result = require_whole(tiles, tmp_path / "out")
    assert result["resumed"] >= 5


@pytest.mark.slow
@needs_ray
@pytest.mark.parametrize("what", ["raylet", "gcs_server"])
def test_processes_of_ray_that_are_killed(tiles, tmp_path, what):
    """One of them; `test_faults` has its actors, and both of these at once."""
    process = surveys.begin(tiles, tmp_path / "out", executor="ray")
    wait_for_lines(tmp_path / "out", 23, process)
    found = processes_below(process.pid)
    killed = [pid for pid, command in found.items() if f"/{what} " in command]
    assert killed, found
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    try:
        process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=60)
        kill_all(found)
    require_whole(tiles, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1_000, 2_000, 9_000])
def test_a_full_disk(tiles, tmp_path, limit):
    """The journal ends early, no part can be written, and the journal ends with parts done."""
    process = surveys.begin(tiles, tmp_path / "out", limit=limit)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1
    error = said.splitlines()[-1]
    assert error.startswith("spatialq.errors.FileError: ")
    assert "cannot be written: " in error
    assert "File too large" in error
    require_whole(tiles, tmp_path / "out")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_journal_on_a_full_disk_is_one_sentence(tmp_path):
    (tmp_path / "journal.jsonl").symlink_to("/dev/full")
    sentence = r"journal\.jsonl': cannot be written: No space left on device"
    with pytest.raises(FileError, match=sentence), JobFolder(tmp_path).recording() as journal:
        journal.add(Done("survey", "a", {}))


def test_a_journal_that_cannot_be_opened(tmp_path):
    (tmp_path / "journal.jsonl").mkdir()
    sentence = "cannot be written: Is a directory"
    with pytest.raises(FileError, match=sentence), JobFolder(tmp_path).recording():
        pass


@pytest.mark.slow
def test_a_part_that_was_damaged_is_made_again(at_once, tiles, tmp_path):
    run(tiles, tmp_path / "out")
    parts = JobFolder(tmp_path / "out").parts
    data = bytearray((parts / "0000003.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (parts / "0000003.parquet").write_bytes(data)
    (parts / "0000007.parquet").unlink()
    assert require_whole(tiles, tmp_path / "out")["resumed"] == 18
    assert run(tiles, tmp_path / "out", resume=True)["resumed"] == 20


@pytest.mark.slow
def test_what_has_changed_is_noticed(at_once, tiles, tmp_path):
    copy = tmp_path / "tiles"
    shutil.copytree(tiles, copy)
    run(copy, tmp_path / "out")
    with pytest.raises(JobError, match=r"there is a job in '.*out' already \(owm_ground, done\)"):
        run(copy, tmp_path / "out")
    with pytest.raises(JobError, match=r"with another window_size, 10\.0, not 8\.0"):
        run(copy, tmp_path / "out", resume=True, window_size=8.0)
    with pytest.raises(JobError, match=r"begun with another tile_size, None, not 50\.0"):
        run(copy, tmp_path / "out", resume=True, tile_size=50.0)
    path = copy / "tile_1_1.laz"
    path.touch()
    with pytest.raises(JobError, match=r"tile_1_1.laz' has changed since the job"):
        run(copy, tmp_path / "out", resume=True)
    path.unlink()
    with pytest.raises(JobError, match="was begun with another source"):
        run(copy, tmp_path / "out", resume=True)


def test_two_runs_into_one_folder_are_refused(at_once, tiles, tmp_path):
    with (
        JobFolder(tmp_path / "out").held(),
        pytest.raises(JobError, match=r"another run is writing into '.*out'"),
    ):
        run(tiles, tmp_path / "out")


def test_a_job_whose_manifest_has_no_room_leaves_no_folder(at_once, tiles, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(LocalFiles, "keep", full)
    with pytest.raises(FileError, match=r"out/job\.json': cannot be written: No space left"):
        run(tiles, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("what", ["journal.jsonl", "parts/0000000.parquet"])
def test_what_is_left_without_a_manifest_is_of_no_job(at_once, tiles, tmp_path, what):
    left = tmp_path / "out" / what
    left.parent.mkdir(parents=True)
    left.write_bytes(b"\n")
    for resume in (False, True):
        with pytest.raises(JobError, match=r"or a journal in '.*out', but not the job\.json"):
            run(tiles, tmp_path / "out", resume=resume)
    assert left.exists()


@pytest.mark.slow
def test_a_run_that_ended_before_its_manifest_is_begun_anew(at_once, tiles, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "journal.jsonl").write_bytes(b"")
    require_whole(tiles, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("name", [".lock", "journal.jsonl"])
def test_files_of_a_job_that_cannot_be_read_are_told(done, tmp_path, name):
    out = tmp_path / "out"
    shutil.copytree(done, out)
    manifest = json.loads((out / "job.json").read_text())
    (out / "job.json").write_text(json.dumps(manifest | {"state": "parts"}))
    (out / name).unlink()
    (out / name).mkdir()
    with pytest.raises(FileError, match=rf"out/{name}': cannot be read: Is a directory"):
        cluster.jobs(out)
    shutil.copytree(done, tmp_path / "good")
    with pytest.warns(FileWarning, match=rf"out/{name}': cannot be read: Is a directory"):
        (listed,) = cluster.jobs(tmp_path)
    assert listed["folder"] == str(tmp_path / "good")


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"state": "done"}', "{", "\\xff"])
def test_a_damaged_manifest(at_once, tiles, done, tmp_path, text):
    out = tmp_path / "out"
    out.mkdir()
    (out / "job.json").write_bytes(text.encode().replace(b"\\xff", b"\xff"))
    with pytest.raises(FileError, match=r"job\.json': is no manifest of a job"):
        run(tiles, out, resume=True)
    with pytest.raises(FileError, match="is no manifest of a job"):
        cluster.jobs(out)
    shutil.copytree(done, tmp_path / "good")
    with pytest.warns(FileWarning, match=r"out/job\.json': is no manifest of a job"):
        (listed,) = cluster.jobs(tmp_path)
    assert listed["folder"] == str(tmp_path / "good")
    with spatialq.connect() as con, pytest.raises(FileError, match="is no manifest of a job"):
        cluster.table(con, out)


def test_bytes_in_a_journal_that_are_no_text(tmp_path):
    job = JobFolder(tmp_path)
    line = Done("survey", "a", {}).line().encode()
    (tmp_path / "journal.jsonl").write_bytes(b"\xff\n" + line + b"\n")
    assert [done.name for done in job.journal()] == ["a"]


def test_too_many_tiles_are_refused(at_once, tiles, tmp_path):
    for tile_size in (0.001, 1e-300):
        out = tmp_path / str(tile_size)
        with pytest.raises(ValueError, match=r"tile_size must give at most \d+ tiles, got .* of"):
            run(tiles, out, tile_size=tile_size)
        assert not out.exists()


@pytest.mark.slow
def test_a_job_that_is_resumed_and_refused_keeps_its_parts(at_once, tiles, tmp_path):
    made = run(tiles, tmp_path / "out")
    with pytest.raises(JobError, match="another overlap"):
        run(tiles, tmp_path / "out", resume=True, overlap=0.5)
    assert run(tiles, tmp_path / "out", resume=True)["resumed"] == made["parts"]


def test_no_files(tmp_path):
    with pytest.raises(ValueError, match="source must be at least one file, pattern or folder"):
        cluster.run("owm_ground", [], tmp_path / "out")


@pytest.mark.slow
def test_stray_points_are_refused(at_once, tiles, tmp_path):
    copy = tmp_path / "tiles"
    shutil.copytree(tiles, copy)
    surveys.write_tile(copy / "zz.laz", np.array([0.0]), np.array([0.0]), np.array([0.0]))
    with pytest.raises(JobError, match=r"zz\.laz' has points that may be far from all others"):
        run(copy, tmp_path / "out")
    assert cluster.jobs(tmp_path) == []
    bounds = [1000, 5000, 1200, 5200]
    run(copy, tmp_path / "out", bounds=bounds)
    assert surveys.of_job(tmp_path / "out") == surveys.in_one_piece(copy, bounds=bounds)


@pytest.mark.slow
def test_nothing_in_bounds(at_once, tiles, tmp_path):
    with pytest.warns(FileWarning, match="owm_ground: no point is within the bounds 0, 0, 1, 1"):
        result = run(tiles, tmp_path / "out", bounds=[0, 0, 1, 1])
    assert (result["rows"], result["parts"]) == (0, 0)
    with spatialq.connect() as con:
        found = cluster.table(con, tmp_path / "out")
        assert found.columns == ["point_id", "x", "y", "z", "hits", "filled"]
        assert found.fetchall() == []


@pytest.mark.slow
def test_an_error_of_a_task_is_that_of_its_file(tiles, tmp_path):
    copy = tmp_path / "tiles"
    shutil.copytree(tiles, copy)
    path = copy / "tile_0_2.laz"
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(FileError, match=r"tile_0_2.laz'"):
        run(copy, tmp_path / "out", workers=1)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"executor": "dask"}, "executor must be one of local, serial, ray, got 'dask'"),
        ({"executor": "serial", "workers": 2}, "workers must be 1 or left out .* 'serial', got 2"),
        (
            {"executor": "serial", "workers": 1, "device": "gpu:1"},
            "device must be 'auto', 'cpu' or 'gpu' with executor 'serial', .*, got 'gpu:1'",
        ),
        ({"workers": 0}, "workers must be a whole number from 1 to 100000, got 0"),
        ({"tile_size": -1.0}, "tile_size must be a number above 0, or a length .*, got -1.0"),
        ({"tile_size": True}, "tile_size must be a number above 0, or a length .*, got True"),
        ({"tile_size": 10**400}, "tile_size must be a number above 0, or a length .*, got 1000"),
        ({"tile_size": "5 miles"}, "tile_size must be a length >= 0 such as .*, got '5 miles'"),
        ({"overlap": 2.0}, "overlap must be"),
    ],
)
def test_wrong_arguments(tiles, tmp_path, wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        run(tiles, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_functions_that_tiles_would_change_are_refused(tiles, tmp_path):
    with pytest.raises(
        ValueError, match=r"function must be one of .*owm_ground.*, got 'plane_nodes'"
    ):
        cluster.run("plane_nodes", str(tiles), tmp_path / "out")


def test_a_worker_that_cannot_be_started_again_and_again(monkeypatch, tiles, tmp_path):
    monkeypatch.setattr("spatialq.cluster.local_executor.WORKER", "import os; os._exit(9)")
    with pytest.raises(JobError, match="ended 3 times, the last time with status 9"):
        run(tiles, tmp_path / "out", workers=1)


@pytest.mark.slow
def test_commands(at_once, tiles, tmp_path):
    out = tmp_path / "out"
    (made,) = command_rows("seeds", tiles, "-o", out)
    assert made["parts"] == 20
    (listed,) = command_rows("jobs", tmp_path)
    elapsed = listed.pop("elapsed")
    assert 0 <= elapsed < 600
    times = listed.pop("started"), listed.pop("active")
    before, after = map(datetime.fromisoformat, times)
    assert after - timedelta(seconds=elapsed + 2) <= before <= after <= datetime.now(UTC)
    assert json.loads(listed.pop("options")) == {}
    assert listed == {
        "folder": str(out), "function": "owm_ground", "state": "done", "stage": None, "done": 20,
        "tasks": 20, "rest": None, "parts": 20, "points": 14000, "rows": made["rows"],
        "inputs": 20, "source": str(tiles),
    }  # fmt: skip
    again = spatialq_command("seeds", tiles, "-o", out)
    assert again.returncode == 1
    assert "error: seeds: there is a job in" in again.stderr
    side = spatialq_command("seeds", tiles, "-o", out, "--tile-size", "0m")
    assert "error: seeds: tile_size must be a number above 0, or a length such as" in side.stderr
    (resumed,) = command_rows("seeds", tiles, "-o", out, "--resume")
    assert resumed["resumed"] == 20
    (listed,) = command_rows("jobs", tmp_path)
    assert (listed["elapsed"], listed["started"], listed["active"]) == (elapsed, *times)


def test_jobs_say_what_they_read_and_how(at_once, tiles, tmp_path):
    files = sorted(str(path) for path in tiles.glob("*.laz"))[:3]
    chosen = surveys.QUIET | {"tile_size": 50.0, "window_size": 8.0}
    cluster.run("owm_ground", files, tmp_path / "a", **chosen)
    (listed,) = cluster.jobs(tmp_path)
    assert listed["source"] == f"{files[0]} and 2 more"
    options = json.loads(listed["options"])
    assert {name: options[name] for name in ("tile_size", "window_size")} == {
        "tile_size": 50.0, "window_size": 8.0,
    }  # fmt: skip
    assert not {"fill", "part_format", "bounds"} & options.keys()
    with spatialq.connect() as con:
        query = "SELECT source, started, options FROM cluster_jobs($1)"
        found = con.execute(query, [str(tmp_path)]).fetchone()
    started = datetime.fromisoformat(listed["started"]).replace(tzinfo=None)
    assert found == (listed["source"], started, listed["options"])


def test_no_jobs(tmp_path):
    assert cluster.jobs(tmp_path) == []
    with pytest.raises(FileError, match="there is no such folder"):
        cluster.jobs(tmp_path / "none")
    with spatialq.connect() as con, pytest.raises(FileError, match="there is no job"):
        cluster.table(con, tmp_path)


def test_the_manifest_is_json_without_points(at_once, tiles, tmp_path):
    run(tiles, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "job.json").read_text())
    assert manifest["function"] == "owm_ground"
    assert manifest["state"] == "done"
    assert manifest["version"] == spatialq.__version__


DRIVER = """
import os, subprocess, sys, time
from spatialq.cluster.task import Task
command = [sys.executable, "-c", sys.argv[1], str(os.getpid())]
worker = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
worker.stdin.write(Task("x", "spatialq.cluster.survey:perform", {}).text() + "\\n")
worker.stdin.flush()
print(worker.pid, flush=True)
time.sleep(600)
"""
LONG_TASK = """
import time
from spatialq.cluster import survey, worker
def wait(*_):
    print("begun", flush=True)
    time.sleep(600)
survey.perform = wait
worker.main()
"""


@pytest.mark.slow
def test_a_worker_ends_with_its_driver_in_the_middle_of_a_task():
    """It would write into the folder later, which may be that of another job by then."""
    command = [sys.executable, "-c", DRIVER, LONG_TASK]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as driver:
        worker = int(driver.stdout.readline())
        assert driver.stderr.readline() == "begun\n"
        driver.kill()
        end = time.monotonic() + 60
        while command_of(worker) and time.monotonic() < end:
            time.sleep(0.05)
        assert not command_of(worker)


@pytest.mark.slow
@needs_ray
def test_actors_without_room_in_the_cluster_get_no_tasks(tiles, tmp_path):
    process = surveys.begin(tiles, tmp_path / "out", executor="ray", workers=20)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert surveys.of_job(tmp_path / "out") == surveys.in_one_piece(tiles)


@pytest.mark.slow
@needs_ray
def test_a_cluster_that_cannot_be_reached_is_one_sentence(tiles, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    _, said = surveys.begin(tiles, tmp_path / "out", executor="ray").communicate(timeout=240)
    start = (
        "spatialq.errors.JobError: cluster.run: Ray cannot be reached at RAY_ADDRESS=auto: Could"
    )
    assert said.splitlines()[-1].startswith(start)
    assert not (tmp_path / "out").exists()


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("spatialq.cluster.locks.fcntl.flock", flock)
    sentence = r"\.lock': cannot be locked: No locks available: take a folder on another"
    with pytest.raises(FileError, match=sentence), JobFolder(tmp_path / "out").held():
        pass
    assert not JobFolder(tmp_path / "out").is_held()


def test_workers_share_memory_also_where_a_variable_says_how_much(monkeypatch):
    monkeypatch.setenv("SPATIALQ_MEMORY", "4GB")
    monkeypatch.delenv("SPATIALQ_THREADS", raising=False)
    assert environment(4, 8, 4000) == {"SPATIALQ_MEMORY": "1000B", "SPATIALQ_THREADS": "2"}
    monkeypatch.setenv("SPATIALQ_THREADS", "1")
    assert environment(4, 8, 4000) == {"SPATIALQ_MEMORY": "1000B"}


@pytest.mark.slow
def test_a_file_that_is_gone_is_named(tiles, tmp_path):
    copy = shutil.copytree(tiles, tmp_path / "tiles")
    gone = copy / "tile_1_1.laz"
    gone.unlink()
    data = {"caller": "owm_ground", "path": str(gone)}
    with pytest.raises(FileError, match=r"^owm_ground: '.*tile_1_1\.laz': cannot be read: No such"):
        survey.perform(data, tmp_path)
