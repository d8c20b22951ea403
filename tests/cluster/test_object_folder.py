"""Jobs whose files and folder are in object storage, against a real server."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import spatialq
from spatialq import cluster
from spatialq.cluster import driver, files, locks, stage_files, survey, worker
from spatialq.cluster.folder import STAGES, folder_of
from spatialq.cluster.serial_executor import SerialExecutor
from spatialq.cluster.task import Done, Task
from spatialq.demo.house import write_house
from spatialq.errors import FileError, JobError
from spatialq.io import storage
from spatialq.io.storage import as_path
from tests import storage_server
from tests.cluster import models, surveys, test_pops_features
from tests.command_line import rows as command_rows
from tests.conftest import made_once

pytest.importorskip("obstore")
server = pytest.fixture(scope="module")(storage_server.running)
FOLDER = "s3://bucket/jobs/out"
EXECUTORS = ["local", "serial", *(["ray"] if find_spec("ray") else [])]
pytestmark = pytest.mark.slow
WORK = "spatialq.cluster.survey:perform"


@pytest.fixture(scope="module")
def tiles(tmp_path_factory):
    return made_once(tmp_path_factory, "survey", surveys.make)


@pytest.fixture
def bucket(server, monkeypatch, tiles):
    """Give the server, whose bucket has the tiles and no job; another lock is soon stale."""
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(locks, "BEAT", 0.5)
    monkeypatch.setattr(locks, "STALE", 3)
    storage.store.cache_clear()
    storage._known.clear()
    server.make_bucket("bucket")
    as_path("s3://bucket/jobs").remove_all()
    for path in tiles.glob("*.laz"):
        server.put(f"bucket/tiles/{path.name}", path.read_bytes())
    server.requests.clear()
    server.fail = None
    yield server
    server.fail = None
    storage.store.cache_clear()


def run(folder=FOLDER, source="s3://bucket/tiles/*.laz", **options):
    return cluster.run("owm_ground", source, folder, **({"workers": 2} | surveys.QUIET | options))


def everything(server):
    """Give all bytes of the job that are in the bucket."""
    found = as_path("s3://bucket/jobs").objects()
    return {each.key: server.get(f"bucket/{each.key}") for each in found}


@pytest.mark.parametrize("tile_size", [None, 30.0])
def test_rows_are_those_of_files_here(bucket, tiles, tile_size):
    result = run(tile_size=tile_size)
    expected = surveys.in_one_piece(tiles)
    assert surveys.of_job(FOLDER) == expected
    assert result["rows"] == len(expected) > 20
    with spatialq.connect() as con:
        assert cluster.table(con, FOLDER).aggregate("count(*)").fetchall() == [(len(expected),)]
        pytest.importorskip("fsspec")
        found = con.sql(f"FROM cluster_table('{FOLDER}')")
        table = cluster.table(con, FOLDER)
        assert (found.columns, found.types) == (table.columns, table.types)
        assert len(found) == len(expected)
        assert found.except_(table).fetchall() == table.except_(found).fetchall() == []
    (job,) = cluster.jobs("s3://bucket/jobs")
    assert (job["folder"], job["state"], job["done"]) == (FOLDER, "done", result["parts"])
    assert [each["state"] for each in cluster.jobs(FOLDER)] == ["done"]
    names = set(everything(bucket))
    assert not any("/.lock" in name or STAGES in name for name in names)

    with pytest.raises(JobError, match="there is a job in 's3://bucket/jobs/out' already"):
        run(tile_size=tile_size)
    bucket.requests.clear()
    again = run(tile_size=tile_size, resume=True)
    assert again["resumed"] == result["parts"]
    # parts are compared by what the server says of them: none is read
    assert bucket.count("GET", "/parts/") == bucket.count("PUT", "/parts/") == 0


def test_a_part_that_was_lost_or_changed_is_made_again(bucket, tiles):
    result = run()
    parts = [key for key in everything(bucket) if "/parts/" in key]
    as_path(f"s3://bucket/{parts[0]}").unlink()
    bucket.put(f"bucket/{parts[1]}", bucket.get(f"bucket/{parts[1]}")[:-1] + b"!")
    again = run(resume=True)
    assert again["resumed"] == result["parts"] - 2
    assert surveys.of_job(FOLDER) == surveys.in_one_piece(tiles)


def test_a_driver_that_is_killed_leaves_what_is_done(bucket, tiles):
    def parts():
        return [found.key for found in as_path(f"{FOLDER}/parts").objects()]

    process = surveys.begin("s3://bucket/tiles/*.laz", FOLDER)
    end = time.monotonic() + 120
    while len(parts()) < 3 and time.monotonic() < end and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.communicate()
    assert parts()
    assert "jobs/out/.lock" in everything(bucket)
    result = run(resume=True)
    assert surveys.of_job(FOLDER) == surveys.in_one_piece(tiles)
    assert result["parts"] == len(parts())


def test_a_changed_input_is_noticed(bucket, tiles):
    run()
    name = min(tiles.glob("*.laz")).name
    bucket.put(f"bucket/tiles/{name}", (tiles / name).read_bytes() + b"\0")
    storage._known.clear()
    with pytest.raises(JobError, match=rf"'s3://bucket/tiles/{name}' has changed since the job"):
        run(resume=True)


def test_the_command_line(bucket, tiles):
    source = "s3://bucket/tiles/*.laz"
    command_rows("seeds", source, "-o", FOLDER, "--workers", "1")
    (job,) = command_rows("jobs", FOLDER)
    assert job["state"] == "done"


def test_nothing_secret_is_written_anywhere(bucket, tmp_path):
    left = [500] * 3
    bucket.fail = lambda method, path: left.pop() if left and "/parts/" in path else None
    process = surveys.begin("s3://bucket/tiles/*.laz", FOLDER)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 0, told
    bucket.fail = lambda method, path: 403 if "/jobs/" in path else None
    _, refused = surveys.begin("s3://bucket/tiles/*.laz", "s3://bucket/jobs/2").communicate()
    assert "the server refuses access" in refused
    bucket.fail = None
    written = b"".join(everything(bucket).values()) + (told + refused).encode()
    for secret in (storage_server.SECRET, storage_server.TOKEN, storage_server.ACCESS):
        assert secret.encode() not in written
    task = Task("x", WORK, {"sources": [["s3://bucket/tiles/a.laz", 0]]}, root=FOLDER).text()
    assert storage_server.SECRET not in task


def test_a_second_run_is_refused_while_the_first_one_lives(bucket):
    folder, other = folder_of("cluster.run", FOLDER), folder_of("cluster.run", FOLDER)
    with folder.held():
        assert other.is_held()
        begun = time.monotonic()
        with pytest.raises(JobError, match=f"another run is writing into '{FOLDER}'"), other.held():
            pass
        assert time.monotonic() - begun < 3 * locks.STALE
    storage._known.clear()
    assert not other.is_held()
    with other.held():
        pass


def test_a_lock_that_nobody_writes_is_taken_over(bucket):
    owner = {"host": "another machine", "process": 1, "time": 0, "token": "x"}
    bucket.put("bucket/jobs/out/.lock", json.dumps(owner).encode())
    begun = time.monotonic()
    with folder_of("cluster.run", FOLDER).held():
        assert time.monotonic() - begun >= locks.STALE


def test_the_lock_of_a_process_of_this_machine_that_ended_is_taken_at_once(bucket):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    owner = json.loads(locks._owner()) | {"process": process.pid}
    bucket.put("bucket/jobs/out/.lock", json.dumps(owner).encode())
    begun = time.monotonic()
    with folder_of("cluster.run", FOLDER).held():
        assert time.monotonic() - begun < locks.STALE / 2


def test_a_run_whose_lock_was_taken_ends(bucket):
    folder = folder_of("cluster.run", FOLDER)
    with folder.held(), folder.recording() as journal:
        journal.add(Done("parts", "a", {}))
        bucket.put("bucket/jobs/out/.lock", b"of another run")
        time.sleep(4 * locks.BEAT)
        with pytest.raises(JobError, match="the lock of 's3://bucket/jobs/out' could not be kept"):
            journal.add(Done("parts", "b", {}))
    assert bucket.get("bucket/jobs/out/.lock") == b"of another run"


def test_a_run_that_was_stopped_for_long_changes_nothing_of_the_one_that_took_over(bucket, tiles):
    """As by SIGSTOP, or a laptop that slept: nothing of it runs until after the other's end."""
    process = surveys.begin("s3://bucket/tiles/*.laz", FOLDER)
    end = time.monotonic() + 120
    while "jobs/out/job.json" not in everything(bucket) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGSTOP)
    result = run(resume=True)
    there = everything(bucket)
    assert "jobs/out/.lock" not in there
    process.send_signal(signal.SIGCONT)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 1
    assert "the lock of 's3://bucket/jobs/out' could not be kept" in said
    now = everything(bucket)
    assert now["jobs/out/job.json"] == there["jobs/out/job.json"]
    assert surveys.of_job(FOLDER) == surveys.in_one_piece(tiles)
    assert sum("/parts/" in key for key in now) == result["parts"]


def test_a_lost_lock_is_noticed_before_the_manifest_is_written(bucket, monkeypatch):
    monkeypatch.setattr(locks, "BEAT", 60.0)
    folder = folder_of("cluster.run", FOLDER)
    with folder.held():
        bucket.put("bucket/jobs/out/.lock", b"of another run")
        bucket.put("bucket/jobs/out/stages/search/found", b"of another run")
        for write in (folder.remove_stages, lambda: folder.write_manifest({"state": "done"})):
            with pytest.raises(JobError, match="could not be kept: resume the job, unless"):
                write()
    assert "jobs/out/job.json" not in everything(bucket)
    assert "jobs/out/stages/search/found" in everything(bucket)


def test_a_refused_run_leaves_what_another_one_has_taken_over(bucket):
    first, second = (folder_of("cluster.run", FOLDER) for _ in range(2))
    with first.held():
        bucket.put("bucket/jobs/out/.lock", b"of another run")
        second.write_manifest({"function": "owm_ground"})
        first.forget()
        assert second.path.joinpath("job.json").read_bytes()
    assert bucket.get("bucket/jobs/out/.lock") == b"of another run"


def test_a_folder_with_stages_of_the_user_is_refused(bucket):
    bucket.put("bucket/jobs/out/stages/gauges.csv", b"mine")
    for tile_size in (None, 1e-9):
        with pytest.raises(JobError, match=r"but not the job\.json that says of which job"):
            run(tile_size=tile_size)
    assert bucket.get("bucket/jobs/out/stages/gauges.csv") == b"mine"


def test_many_tasks_are_few_objects(bucket, monkeypatch):
    monkeypatch.setattr(files, "RECORDS", 100)
    folder = folder_of("cluster.run", FOLDER)
    done = [Done("parts", f"{k}", {"rows": k}) for k in range(1050)]
    with folder.held(), folder.recording() as journal:
        for each in done:
            journal.add(each)
    assert 11 <= bucket.count("PUT", "/journal/") <= 16
    assert list(folder.journal()) == done
    with pytest.raises(JobError, match=r"but not the job.json that says of which job"):
        folder.require_new()


def test_files_of_earlier_stages_are_fetched_and_kept(bucket, monkeypatch):
    folder = folder_of("cluster.run", FOLDER)
    names = ["a.npy", "b.npy"]
    for name in names:
        with folder.unfinished_file(".npy") as partial:
            partial.write_text(name)
            size, etag = folder.keep(partial, "grids", name)
    assert folder.is_there(Done("grids", name, {}, size, etag))
    assert not folder.is_there(Done("grids", name, {}, size, "another"))
    seen = []

    def merge(data, partial):
        seen.extend(Path(each) for each in data["files"])
        texts = [path.read_text() for path in seen]
        assert sorted(each.name for each in Path(data["all"]).iterdir()) == names
        partial.write_text("+".join(texts))
        return {"rows": 1}

    monkeypatch.setattr(survey, "perform", merge)
    stage = str(folder.place("grids"))
    data = {"files": [f"{stage}/{name}" for name in names], "all": stage}
    task = Task("m.txt", WORK, data, "parts", FOLDER, stages=folder.remote_stages)
    found = worker.perform(task)
    assert bucket.get("bucket/jobs/out/parts/m.txt") == b"a.npy+b.npy"
    assert (found.size, found.digest != "") == (11, True)
    seen.clear()
    assert worker.perform(task).digest == found.digest
    assert [bucket.count("GET", f"/stages/grids/{name}") for name in names] == [1, 1]
    with folder.unfinished_file(".npy") as partial:  # by a run that was resumed
        partial.write_text("c.npy")
        folder.keep(partial, "grids", "a.npy")
    storage._known.clear()
    monkeypatch.setattr(stage_files, "KEPT", 0)
    seen.clear()
    worker.perform(task)
    assert bucket.get("bucket/jobs/out/parts/m.txt") == b"c.npy+b.npy"
    assert [bucket.count("GET", f"/stages/grids/{name}") for name in names] == [2, 1]
    assert not any(path.exists() for path in seen)
    folder.remove_stages()
    assert set(everything(bucket)) == {"jobs/out/parts/m.txt"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_temporary_disk_is_one_sentence(bucket, monkeypatch):
    def fetch(path, target):
        Path("/dev/full").write_bytes(path.read_bytes())

    folder = folder_of("cluster.run", FOLDER)
    with folder.unfinished_file(".npy") as partial:
        partial.write_text("a.npy")
        folder.keep(partial, "grids", "a.npy")
    monkeypatch.setattr(storage.ObjectPath, "fetch", fetch)
    data = {"file": str(folder.place("grids") / "a.npy")}
    task = Task("m.txt", WORK, data, "parts", FOLDER, stages=folder.remote_stages)
    sentence = r"stages/grids/a\.npy': its 5 bytes have no room in '.*', a temporary folder: set"
    with pytest.raises(FileError, match=sentence):
        worker.perform(task)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_worker_fetches_files_of_earlier_stages_once(bucket, monkeypatch, executor):
    with tempfile.TemporaryDirectory() as folder:  # of a name that is short enough for Ray
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        result = cluster.run(
            "classify_ground", "s3://bucket/tiles/*.laz", FOLDER, executor=executor,
            workers=1 if executor == "serial" else 2, **surveys.QUIET,
        )  # fmt: skip
        assert not list(Path(folder).rglob("spatialq_*"))
    assert result["parts"] == 20
    assert 1 <= bucket.count("GET", "/stages/terrain/terrain") <= 2


def test_a_folder_that_cannot_be_written_is_one_sentence(bucket, monkeypatch):
    monkeypatch.setattr(storage, "TRIES", 1)
    with pytest.raises(FileError, match=r"^cluster.run: 's3://nobody/out': .*there is no bucket"):
        run("s3://nobody/out")
    bucket.fail = lambda method, path: 503 if "/jobs/" in path else None
    with pytest.raises(FileError, match=r"cannot be written: the server answers with status 503"):
        run()


def test_a_folder_with_credentials_is_refused(bucket):
    url = f"s3://{storage_server.ACCESS}:{storage_server.SECRET}@bucket/out"
    for call in (run, cluster.jobs, lambda folder: cluster.table(None, folder)):
        with pytest.raises(ValueError, match="folder: a URL must be without credentials") as told:
            call(url)
        assert storage_server.SECRET not in str(told.value)
        assert storage_server.ACCESS not in str(told.value)
    assert "AWS_SECRET_ACCESS_KEY" in os.environ


def put_file(bucket, path):
    bucket.put(f"bucket/other/{path.name}", path.read_bytes())
    return f"s3://bucket/other/{path.name}"


def grid_of(folder):
    z = np.random.default_rng(1).normal(size=(30, 40)).astype(np.float32)
    return test_pops_features.write(folder / "terrain.tif", z)


def house_of(folder):
    write_house(folder / "house.ifc")
    return folder / "house.ifc"


GRID = {"scales": (5.0, 7.0), "example_scale": 20.0}
OF_FUNCTIONS = {
    "classify_ground in laz": (None, {"part_format": "laz"}),
    "classify_ground in tif": (None, {"part_format": "tif"}),
    "ground_surface": (None, {}),
    "plane_points in laz": (None, {"part_format": "laz"}),
    "build_lod": (None, {"chunk_points": 50_000}),
    "pops_features": (grid_of, GRID),
    "intersects_with": (house_of, {}),
}


@pytest.mark.parametrize("case", OF_FUNCTIONS)
def test_functions_have_the_parts_of_files_here(bucket, tiles, tmp_path, monkeypatch, case):
    """Inputs and the folder are in object storage; folders of users may have names of ours."""
    make, options = OF_FUNCTIONS[case]
    function = case.partition(" ")[0]
    monkeypatch.setattr(driver, "executor_of", lambda *_, **__: SerialExecutor())
    here, there = [f"{tiles}/*.laz"], ["s3://bucket/stages/*.laz"]
    if make is None:
        for path in tiles.glob("*.laz"):
            bucket.put(f"bucket/stages/{path.name}", path.read_bytes())
    else:
        path = make(tmp_path)
        here, there = [path], [put_file(bucket, path)]
    expected = cluster.run(function, here, tmp_path / "out", **options)
    found = cluster.run(function, there, FOLDER, **options)
    assert [found[name] for name in ("points", "rows", "parts")] == [
        expected[name] for name in ("points", "rows", "parts")
    ]
    assert found["rows"] > 0
    parts = {path.name: path.read_bytes() for path in (tmp_path / "out" / "parts").iterdir()}
    objects = {each.key: bucket.get(f"bucket/{each.key}") for each in as_path(FOLDER).objects()}
    assert {name.removeprefix("jobs/out/parts/") for name in objects if "/parts/" in name} == {
        *parts
    }
    if function != "intersects_with":  # whose rows have the name of the file
        assert {name: objects[f"jobs/out/parts/{name}"] for name in parts} == parts
    assert cluster.run(function, there, FOLDER, resume=True, **options)["resumed"] == len(parts)


def test_a_run_that_has_lost_its_lock_writes_no_journal(bucket, monkeypatch):
    monkeypatch.setattr(locks, "BEAT", 60.0)
    folder = folder_of("cluster.run", FOLDER)
    with folder.held(), folder.recording() as journal:
        journal.add(Done("parts", "a", {}))
        bucket.put("bucket/jobs/out/.lock", b"of another run")
        with pytest.raises(JobError, match="could not be kept"):
            folder.write_manifest({})
    assert not any("/journal/" in name for name in everything(bucket))


def test_a_lock_that_is_given_up_meanwhile_is_taken(bucket):
    owner = {"host": "another machine", "process": 1, "time": 0, "token": "x"}
    bucket.put("bucket/jobs/out/.lock", json.dumps(owner).encode())
    lock = as_path(f"{FOLDER}/.lock")
    timer = threading.Timer(1.5, lock.unlink)
    timer.start()
    with folder_of("cluster.run", FOLDER).held():
        assert lock.read_bytes() != json.dumps(owner).encode()
    timer.join()


def test_a_process_of_another_container_may_live(bucket):
    """Its number means nothing here, though the name of the machine is the same."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    owner = json.loads(locks._owner()) | {"process": process.pid}
    owner["host"][-1] = "pid:[1]"
    bucket.put("bucket/jobs/out/.lock", json.dumps(owner).encode())
    begun = time.monotonic()
    with folder_of("cluster.run", FOLDER).held():
        assert time.monotonic() - begun >= locks.STALE


@pytest.mark.filterwarnings("ignore:clash. house_:spatialq.errors.FileWarning")
def test_a_cell_of_models_fetches_its_own(bucket, tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "executor_of", lambda *_, **__: SerialExecutor())
    monkeypatch.setattr(stage_files, "KEPT", 0)  # nothing is left for the next task
    row = models.make(tmp_path / "row")
    houses = [put_file(bucket, row / f"house_{k:02}.ifc") for k in (0, 6, 12, 18)]
    made = cluster.run("intersects_with", houses, FOLDER, cell_elements=30)
    assert made["parts"] >= 4
    asked = bucket.count("GET", "/stages/models/")
    assert len(houses) + made["parts"] <= asked < len(houses) + 2 * made["parts"]


def test_a_pattern_of_objects_that_would_find_the_parts_is_refused(bucket):
    for folder in ("s3://bucket/tiles/out", "s3://bucket/other/out"):
        found = "s3://bucket/**/tile_*.laz"
        with pytest.raises(FileError, match=r"files of the job in this folder would be found"):
            cluster.run("classify_ground", found, folder, part_format="laz", **surveys.QUIET)


def test_times_of_objects_are_whole_seconds():
    """Listings of some servers have milliseconds, which the answer about one object has not."""
    meta = {"path": "a", "size": 1, "e_tag": "x"}
    times = [datetime(2026, 1, 2, 3, 4, 5, part, tzinfo=UTC) for part in (0, 123_000)]
    one, other = (storage.ObjectInfo.of(meta | {"last_modified": each}) for each in times)
    assert one == other


def test_passwords_are_in_no_sentence(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://me:pass1234@127.0.0.1:9")
    said = storage._sentence(Exception("no connection"), as_path("s3://bucket/a"))
    assert "(http://127.0.0.1:9)" in str(said)
    assert "pass1234" not in str(said)
    with pytest.raises(ValueError, match="begin with 's3://'") as told:
        as_path("https://account.blob.core.windows.net/c/f.laz?sig=pass1234")
    assert "pass1234" not in str(told.value)
