"""Jobs as they are called: in SQL and on the command line, with Ctrl-C; how far they are."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import laspy
import numpy as np
import pyproj
import pytest

import spatialq
from spatialq import cluster
from spatialq.cli.commands.jobs import in_table
from spatialq.cli.rendering import fitting
from spatialq.cluster import driver, job, worker
from spatialq.cluster.folder import JobFolder
from spatialq.cluster.serial_executor import SerialExecutor
from spatialq.cluster.sizes import side_of
from spatialq.cluster.task import Task
from spatialq.errors import CrsError
from tests.cluster import surveys
from tests.cluster.processes import children_of, wait_for_lines
from tests.conftest import made_once


@pytest.fixture(scope="session")
def tiles(tmp_path_factory):
    return made_once(tmp_path_factory, "survey", surveys.make)


@pytest.mark.slow
def test_jobs_in_sql(at_once, tiles, tmp_path):
    out = tmp_path / "out"
    options = "{'window_size': 8.0, 'unit': 1.0}"
    call = f"cluster_run('owm_ground', '{tiles}/*.laz', '{out}', workers := 2, options := {options}"
    with spatialq.connect() as con:
        made = con.sql(f"FROM {call})")
        names = ["function", "points", "rows", "parts", "resumed", "seconds", "folder"]
        assert made.columns == names
        ((function, points, rows, parts, resumed, _, folder),) = made.fetchall()
        assert (function, points, parts, resumed) == ("owm_ground", 14000, 20, 0)
        assert folder == str(out)
        found = surveys.rows_of(con, f"FROM cluster_table('{out}')")
        expected = surveys.in_one_piece(tiles, window_size=8.0)
        assert found == expected
        assert len(found) == rows
        ((again,),) = con.sql(f"SELECT resumed FROM {call}, resume := true)").fetchall()
        assert again == 20
        listed = con.sql(f"FROM cluster_jobs('{tmp_path}')")
        (by_call,) = cluster.jobs(tmp_path)
        for name in ("started", "active"):
            by_call[name] = datetime.fromisoformat(by_call[name]).replace(tzinfo=None)  # UTC
        assert listed.columns == list(by_call)
        assert listed.fetchall() == [tuple(by_call.values())]
        with pytest.raises(Exception, match="cluster_run: there is a job in"):
            con.sql(f"FROM {call})").fetchall()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("'f', 'a.laz', 'out'", "cluster_run: function must be one of .*owm_ground"),
        ("NULL, 'a.laz', 'out'", "cluster_run: function must not be NULL"),
        ("'owm_ground', NULL, 'out'", "cluster_run: path must not be NULL"),
        ("'owm_ground', 'a.laz', NULL", "cluster_run: folder must not be NULL"),
        ("'owm_ground', 'a.laz', 'out', resume := 5", "cluster_run: resume must be true or false"),
        ("'owm_ground', 'a.laz', 'out', resume := NULL", "cluster_run: resume must not be NULL"),
        ("'owm_ground', 'a.laz', 'out', options := 5", "cluster_run: options must be a struct"),
        (
            "'owm_ground', 'a.laz', 'out', options := {'executor': 'ray'}",
            "cluster_run: options must be parameters of owm_ground, which has no 'executor'",
        ),
        ("'owm_ground', 'a.laz', 'out', tile_size := [1]", "cluster_run: tile_size must be"),
    ],
)
def test_wrong_arguments_in_sql(tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    with spatialq.connect() as con, pytest.raises(Exception, match=sentence):
        con.sql(f"FROM cluster_run({arguments})").fetchall()
    assert not list(tmp_path.iterdir())


def test_no_job_in_sql(tmp_path):
    with spatialq.connect() as con:
        assert con.sql(f"FROM cluster_jobs('{tmp_path}')").fetchall() == []
        with pytest.raises(Exception, match=r"cluster_table: '.*': there is no job"):
            con.sql(f"FROM cluster_table('{tmp_path}')")
        with pytest.raises(Exception, match=r"cluster_jobs: '.*none': there is no such folder"):
            con.sql(f"FROM cluster_jobs('{tmp_path}/none')").fetchall()


class Slowly(SerialExecutor):
    """An executor whose clock goes on by ten seconds for each task."""

    def __init__(self, clock):
        self.clock = clock

    def map(self, tasks):
        for done in super().map(tasks):
            self.clock[0] += 10.0
            yield done


@pytest.mark.slow
def test_how_far_a_job_is(monkeypatch, tiles, tmp_path):
    """Seen as by another process: all tasks count, also those since the manifest was written."""
    clock, seen = [1e9], []
    for name in ("time", "monotonic"):
        monkeypatch.setattr(time, name, lambda: clock[0])
    monkeypatch.setattr(job, "INTERVAL", 45.0)
    monkeypatch.setattr(driver, "executor_of", lambda *_, **__: Slowly(clock))

    def look(stage, done, total):
        (found,) = cluster.jobs(tmp_path)
        assert (found["state"], found["stage"]) == ("running", str(stage))
        assert (found["done"], found["tasks"]) == (done, total)
        seen.append((found["stage"], done, found["elapsed"], found["rest"]))
        if stop and (found["stage"], done) == stop:
            raise KeyboardInterrupt

    stop = ("parts", 7)
    with pytest.raises(KeyboardInterrupt):
        cluster.run("owm_ground", str(tiles), tmp_path / "out", unit=1.0, progress=look)
    assert seen[:2] == [("survey", 0, 0.0, None), ("survey", 1, 10.0, 190.0)]
    assert seen[-1] == ("parts", 7, 270.0, 130.0)
    (left,) = cluster.jobs(tmp_path)
    assert (left["state"], left["done"], left["rest"]) == ("unfinished", 7, None)
    stop = None
    seen.clear()
    cluster.run("owm_ground", str(tiles), tmp_path / "out", unit=1.0, progress=look, resume=True)
    # what was resumed took no time, and does not count for the rate
    of_parts = [each for each in seen if each[0] == "parts"]
    assert of_parts[:2] == [("parts", 7, 0.0, None), ("parts", 8, 10.0, 120.0)]


def test_a_line_that_is_being_written_is_not_done(tmp_path):
    (tmp_path / "journal.jsonl").write_bytes(b"abc\nde\nf")
    folder = JobFolder(tmp_path)
    assert [folder.lines_behind(k) for k in (0, 4, 7)] == [2, 1, 0]
    assert JobFolder(tmp_path / "none").lines_behind(0) == 0


COMMANDS = {
    "seeds": ["seeds", "{tiles}", "-o", "{out}", "--workers", "2"],
    "sql": [
        "sql",
        "FROM cluster_run('owm_ground', '{tiles}', '{out}', workers := 2, resume := true)",
    ],
}


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends signals")
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_a_job_that_can_be_resumed(tiles, tmp_path, name):
    out = tmp_path / "out"
    words = [word.format(tiles=tiles, out=out) for word in COMMANDS[name]]
    process = subprocess.Popen(
        [sys.executable, "-m", "spatialq", *words],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for_lines(out, 12, process)
    workers = children_of(process.pid)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, said
    assert "interrupted" in said
    assert "Traceback" not in said
    if name == "seeds":
        assert f"what is done stays in '{out}': the same command with --resume goes on" in said
    assert len(workers) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    (described,) = cluster.jobs(tmp_path)
    assert described["state"] == "unfinished"
    manifest = json.loads((out / "job.json").read_text())
    assert manifest["state"] in ("survey", "parts")
    cluster.run("owm_ground", str(tiles), out, workers=2, resume=True)
    assert surveys.of_job(out) == surveys.in_one_piece(tiles)


@pytest.mark.slow
def test_a_worker_whose_driver_is_gone_ends_without_a_traceback():
    reading, writing = os.pipe()
    os.close(reading)
    task = Task("a", "no such work", {}).text()
    start = f"from {worker.__name__} import main; main()"
    command = [sys.executable, "-c", start, str(os.getpid())]
    ended = subprocess.run(
        command, input=f"{task}\n", stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.slow
def test_a_narrow_list_of_jobs_shows_how_far_they_are(tiles, tmp_path):
    cluster.run("owm_ground", str(tiles), tmp_path / "survey_north", **surveys.QUIET)
    (row,) = cluster.jobs(tmp_path)
    row = in_table(row)
    assert sorted(row) == sorted(cluster.jobs(tmp_path)[0])
    widths = [max(len(name), len(str(value))) for name, value in row.items()]
    kept, _ = fitting(widths, 80)
    shown = {list(row)[k] for k in kept if k is not None}
    assert {"folder", "state", "stage", "done", "tasks"} <= shown


FEET = pyproj.CRS.from_epsg(2230).to_json()  # of the US survey
DEGREES = pyproj.CRS.from_epsg(4326).to_json()


@pytest.mark.parametrize(
    ("given", "crs", "expected"),
    [
        (None, FEET, None),
        (500, FEET, 500.0),
        ("500", FEET, 500.0),
        ("500u", DEGREES, 500.0),
        ("500 m", None, 500.0),
        ("1200m", FEET, 3937.0),
        ("250ftUS", FEET, 250.0),
        ("1000ft", None, 304.8),
    ],
)
def test_sides_of_tiles(given, crs, expected):
    assert side_of(given, crs) == (expected if expected is None else pytest.approx(expected))


def test_sides_of_tiles_that_cannot_be():
    with pytest.raises(CrsError, match="tile_size cannot be 500m, since x and y are degrees"):
        side_of("500m", DEGREES)
    for wrong in (0, -1.0, float("nan"), [1], "0m"):
        with pytest.raises(ValueError, match="tile_size must be a number above 0, or a length"):
            side_of(wrong, None)


@pytest.mark.slow
def test_tiles_with_a_unit(at_once, tmp_path):
    rng = np.random.default_rng(4)
    x, y = (rng.uniform(0.0, 300.0, 4000) for _ in "xy")
    surveys.write_tile(tmp_path / "a.laz", x, y, x / 50)
    file = laspy.read(tmp_path / "a.laz")
    file.header.add_crs(pyproj.CRS.from_epsg(2230))
    file.write(tmp_path / "a.laz")
    made = [
        cluster.run("owm_ground", tmp_path / "a.laz", tmp_path / f"out{k}", tile_size=side)
        for k, side in enumerate(("30.48006096012192m", 100.0, "100ftUS"))
    ]
    assert len({each["parts"] for each in made}) == 1
    assert made[0]["parts"] >= 9
