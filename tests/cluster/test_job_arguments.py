"""Wrong arguments of jobs: one sentence, and no folder is left of a job that was refused."""

import json
import math
import os
import shutil
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest
from spatialq.udfs.classify_ground import cpu

import spatialq
from spatialq import cluster
from spatialq.cluster.folder import JobFolder
from spatialq.errors import CrsError, FileError, JobError
from tests.cluster import surveys, test_pops_features
from tests.command_line import spatialq_command


@pytest.fixture
def tiles(tmp_path):
    folder = tmp_path / "tiles"
    return surveys.make(folder, columns=2, rows=1)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def run(tiles, folder, **options):
    source = options.pop("source", str(tiles))
    return cluster.run(options.pop("function", "owm_ground"), source, folder, **options)


SENTENCES = {
    "function": ([["owm_ground"], 5, None], "must be one of .*owm_ground"),
    "source": ([5, None, ["nope", 5], {"a": 1}], "must be a path or a list of paths"),
    "folder": ([5, None, ""], "must be the path of a folder"),
    "resume": (["no", 1, None], "must be true or false"),
    "workers": ([True, 1.5, 0, "2"], "must be a whole number from 1 to"),
    "executor": ([5, None, ["local"], "slurm"], "must be one of local, serial, ray"),
    "memory": (["xGB", 0, -1, math.nan, [1], True], "must be a size above 0"),
    "tile_size": ([0, -1, math.nan, True, [1], "5x"], "tile_size"),
    "progress": ([5, "yes"], "must be a function or None"),
    "part_format": ([5, ["laz"], "exe"], "must be one of parquet"),
    "device": ([5, None, "tpu"], "must be "),
}
CASES = [(name, value) for name, (values, _) in SENTENCES.items() for value in values]


@pytest.mark.parametrize(("name", "value"), CASES, ids=[f"{n}={v!r}" for n, v in CASES])
def test_a_wrong_argument_is_one_sentence(tiles, tmp_path, name, value):
    given = {"folder": tmp_path / "out", "unit": 1.0, name: value}
    sentence = rf"^cluster\.run: {name} .*{SENTENCES[name][1].removeprefix(name)}"
    with pytest.raises(ValueError, match=sentence) as told:
        run(tiles, **given)
    if name != "tile_size" or value != "5x":
        assert "got " in str(told.value)
    assert names_in(tmp_path) == ["tiles"]


@pytest.mark.parametrize("there", [False, True])
def test_nothing_is_left_of_a_job_that_is_refused_in_its_survey(at_once, tiles, tmp_path, there):
    if there:
        (tmp_path / "a").mkdir()
    with pytest.raises(ValueError, match="tile_size must give at most"):
        run(tiles, tmp_path / "a" / "b" / "out", unit=1.0, tile_size=1e-9)
    assert names_in(tmp_path) == (["a", "tiles"] if there else ["tiles"])
    assert not there or not names_in(tmp_path / "a")


def test_a_folder_that_was_there_stays_as_it_was(at_once, tiles, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="tile_size must give at most"):
        run(tiles, tmp_path / "out", unit=1.0, tile_size=1e-9)
    assert names_in(tmp_path / "out") == ["notes.txt"]


@pytest.mark.parametrize("tile_size", [None, 1e-9])
@pytest.mark.parametrize("folder", ["stages/rivers", "parts", ".unfinished"])
def test_a_folder_with_files_of_the_user_is_refused(at_once, tiles, tmp_path, folder, tile_size):
    mine = tmp_path / "out" / folder / "gauges.csv"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    before = set((tmp_path / "out").rglob("*"))
    with pytest.raises(JobError, match=r"there are files in stages, parts, .* in '.*out', but"):
        run(tiles, tmp_path / "out", unit=1.0, tile_size=tile_size)
    assert mine.read_text() == "mine"
    assert set((tmp_path / "out").rglob("*")) == before


def test_only_ground_points_are_for_clouds(at_once, tiles, tmp_path):
    for kind in ("parquet", "tif"):
        with pytest.raises(ValueError, match=f"ground_only must be false with .* '{kind}'"):
            run(
                tiles, tmp_path / "out", function="classify_ground", ground_only=True,
                part_format=kind, unit=1.0,
            )  # fmt: skip
        assert not (tmp_path / "out").exists()


def test_files_of_stages_stay_when_a_later_task_fails(at_once, tiles, tmp_path, monkeypatch):
    """It may be no fault of the arguments, and what is done has taken hours."""

    def fail(*_):
        message = "operands could not be broadcast"
        raise ValueError(message)

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(cpu, "terrain_of", fail)
        with pytest.raises(ValueError, match="operands"):
            run(tiles, out, function="classify_ground", unit=1.0)
    assert len(names_in(out / "stages" / "lowest")) == 2
    assert run(tiles, out, function="classify_ground", unit=1.0, resume=True)["rows"] == 1400


@pytest.mark.parametrize("at", ["parts", ".lock", "out"])
def test_a_run_that_begins_while_another_is_refused(tmp_path, monkeypatch, at):
    """After each removal of the first one, the second one is refused or has all that it needs."""
    first, second = JobFolder(tmp_path / "out"), JobFolder(tmp_path / "out")
    has_it = False
    with ExitStack() as stack:

        def followed(remove):
            def removed(path, **given):
                nonlocal has_it
                remove(path, **given)
                if Path(path).name == at and not has_it:
                    with suppress(JobError):
                        stack.enter_context(second.held())
                        has_it = True

            return removed

        with monkeypatch.context() as patched, first.held():
            for name in ("rmdir", "unlink"):
                patched.setattr(os, name, followed(getattr(os, name)))
            first.forget()
        assert has_it == (at != "parts")
        if has_it:
            second.require_new()
            second.write_manifest({})
            assert second.parts.is_dir()
            assert second.is_held()


def test_a_run_that_begins_while_jobs_are_listed(tmp_path):
    """Which has the lock for a moment, to see whether a run has it."""
    fcntl = pytest.importorskip("fcntl")
    folder = JobFolder(tmp_path)
    with (tmp_path / ".lock").open("w") as lister:
        fcntl.flock(lister, fcntl.LOCK_SH)
        timer = threading.Timer(0.02, fcntl.flock, (lister, fcntl.LOCK_UN))
        timer.start()
        with folder.held():
            assert folder.is_held()
        timer.join()


def test_memory_in_sql_and_on_the_command_line(tiles, tmp_path):
    out = tmp_path / "out"
    query = f"FROM cluster_run('owm_ground', '{tiles}', '{out}', memory := 'xGB')"
    with spatialq.connect() as con, pytest.raises(Exception, match="cluster_run: memory must be"):
        con.sql(query).fetchall()
    ran = spatialq_command("seeds", tiles, "-o", out, "--memory", "xGB")
    assert ran.returncode
    assert "seeds: memory must be a size above 0" in ran.stderr
    assert not out.exists()


@pytest.mark.parametrize("name", ["", "parts", "stages/x"])
def test_files_in_the_folder_of_the_job_are_refused(tiles, tmp_path, name):
    place = tmp_path / "out" / name
    shutil.copytree(tiles, place)
    with pytest.raises(FileError, match=r"this file of source is in the folder of the job, '.*out"):
        run(place, tmp_path / "out", unit=1.0)
    assert not (tmp_path / "out" / "job.json").exists()


def test_a_pattern_that_would_find_the_parts_is_refused(tiles, tmp_path):
    with pytest.raises(FileError, match=r"out': files of the job in this folder would be found"):
        run(
            tiles, tiles / "out", source=str(tiles / "**" / "*.laz"), function="classify_ground",
            part_format="laz", unit=1.0,
        )  # fmt: skip
    with pytest.raises(FileError, match="would be found as source"):
        run(tiles, tiles / "out", source=f"{tiles}/**/*", unit=1.0)
    assert not (tiles / "out").exists()


@pytest.mark.slow
def test_a_folder_beside_or_below_the_tiles_is_fine(at_once, tiles, tmp_path):
    for source, folder in ((tiles, tiles / "out"), (f"{tiles}/*.laz", tmp_path)):
        made = run(tiles, folder, source=source, unit=1.0)
        again = run(tiles, folder, source=source, unit=1.0, resume=True)
        assert (made["resumed"], again["resumed"]) == (0, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ein Ordner äöü [1]*", "日本 's"])
def test_names_of_folders(at_once, tiles, tmp_path, name):
    run(tiles, tmp_path / name, unit=1.0)
    assert surveys.of_job(tmp_path / name) == surveys.in_one_piece(tiles)


def test_a_link_to_a_folder(at_once, tiles, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    run(tiles, tmp_path / "link", unit=1.0)
    assert run(tiles, tmp_path / "real", unit=1.0, resume=True)["resumed"] == 2
    (tmp_path / "same").symlink_to(tiles)
    with pytest.raises(FileError, match="is in the folder of the job"):
        run(tiles, tmp_path / "same", unit=1.0)
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(FileError, match=r"dangling': cannot be written: "):
        run(tiles, tmp_path / "dangling", unit=1.0)
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_that_cannot_be_one(tiles, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"file': folder must be a folder, this is a file"):
        run(tiles, tmp_path / "file", unit=1.0)
    with pytest.raises(FileError, match=r"out': cannot be written: Not a directory"):
        run(tiles, tmp_path / "file" / "out", unit=1.0)

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", denied)
    with pytest.raises(FileError, match=r"out': cannot be written: Permission denied"):
        run(tiles, tmp_path / "out", unit=1.0)


def test_a_bucket_is_no_folder(tiles):
    for bucket in ("s3://bucket", "s3://bucket/"):
        with pytest.raises(ValueError, match=r"folder must be one in the bucket, .*bucket/out"):
            run(tiles, bucket, unit=1.0)


def change(folder, change_line):
    path = folder / "journal.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{each}\n" for each in [change_line(lines[0]), *lines[1:]]))


LINES = {
    "another version": lambda line: json.dumps({**json.loads(line), "check": None}),
    "no digest": lambda _: '{"stage": "survey", "name": "a", "facts": {}}',
    "no object": lambda _: "5",
    "other facts": lambda line: line.replace('"rows"', '"lines"', 1),
    "other types": lambda line: line.replace('"points": ', '"points": "1"', 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_a_task_whose_line_was_changed_is_done_again(at_once, tiles, tmp_path, name):
    run(tiles, tmp_path / "out", unit=1.0)
    change(tmp_path / "out", LINES[name])
    run(tiles, tmp_path / "out", unit=1.0, resume=True)
    assert surveys.of_job(tmp_path / "out") == surveys.in_one_piece(tiles)


MANIFESTS = {"options": "x", "function": [], "started": None, "told": "x", "rows": {}}
NUMBERS = {"begun": math.inf, "told": math.nan, "started": 1e300, "journal": 10**40, "done": -1}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [*MANIFESTS.items(), *NUMBERS.items()])
def test_a_manifest_that_was_changed(at_once, tiles, tmp_path, name, value):
    out = tmp_path / "out"
    run(tiles, out, unit=1.0)
    manifest = json.loads((out / "job.json").read_text())
    (out / "job.json").write_text(json.dumps(manifest | {name: value}))
    for read in (cluster.jobs, surveys.of_job, lambda out: run(tiles, out, resume=True)):
        with pytest.raises(FileError, match=rf"is no manifest of a job: its {name} is "):
            read(out)
    (out / "job.json").write_text(json.dumps(manifest | {"function": "of_tomorrow"}))
    with pytest.raises(JobError, match="is of 'of_tomorrow', which this version"):
        surveys.of_job(out)


def test_a_journal_that_cannot_be_read(tmp_path):
    (tmp_path / "journal.jsonl").mkdir()
    with pytest.raises(FileError, match=r"journal\.jsonl': cannot be read: Is a directory"):
        list(JobFolder(tmp_path).journal())


def test_another_tile_size_is_told_as_it_was_given(at_once, tiles, tmp_path):
    run(tiles, tmp_path / "out", unit=1.0, tile_size="100ft")
    with pytest.raises(JobError, match=r"another tile_size, '100ft', not '50m'"):
        run(tiles, tmp_path / "out", unit=1.0, tile_size="50m", resume=True)
    with pytest.raises(JobError, match=r"another tile_size, '100ft', not 50\.0"):
        run(tiles, tmp_path / "out", unit=1.0, tile_size=np.float64(50), resume=True)


def test_files_in_two_systems_are_both_named(at_once, tmp_path):
    import laspy
    import pyproj

    tiles = surveys.make(tmp_path / "tiles", columns=2, rows=1)
    for path, code in zip(sorted(tiles.iterdir()), (25832, 25833), strict=True):
        file = laspy.read(path)
        file.header.add_crs(pyproj.CRS.from_epsg(code))
        file.write(path)
    sentence = r"'.*tile_0_0\.laz' is in .* but '.*tile_0_1\.laz' is in"
    with pytest.raises(CrsError, match=sentence):
        run(tiles, tmp_path / "out")
    assert names_in(tmp_path) == ["tiles"]


@pytest.mark.parametrize("function", ["owm_ground", "intersects_with"])
def test_a_folder_without_files_has_the_name_of_the_call(tmp_path, function):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileError, match=r"^cluster\.run: '.*empty': there is no"):
        cluster.run(function, empty, tmp_path / "out")
    query = f"FROM cluster_run('{function}', '{empty}', '{tmp_path / 'out'}')"
    with spatialq.connect() as con, pytest.raises(Exception, match=r"cluster_run: '.*empty'"):
        con.sql(query).fetchall()
    command = {"owm_ground": "seeds", "intersects_with": "clash"}[function]
    ran = spatialq_command(command, empty, "-o", tmp_path / "out", "--executor", "local")
    assert f"{command}: '{empty}': there is no" in ran.stderr
    assert ran.returncode


def test_seeds_takes_lengths_as_ground_does(at_once, tmp_path):
    """Also in the unit of the file, here feet."""
    import laspy
    import pyproj

    tiles = surveys.make(tmp_path / "tiles", columns=2, rows=1)
    for path in tiles.iterdir():
        file = laspy.read(path)
        file.header.add_crs(pyproj.CRS.from_epsg(2230))
        file.write(path)
    found = []
    for k, length in enumerate(("8u", "8ftUS")):
        ran = spatialq_command("seeds", tiles, "-o", tmp_path / f"{k}", "--window-size", length)
        assert ran.returncode == 0, ran.stderr
        manifest = json.loads((tmp_path / f"{k}" / "job.json").read_text())
        assert manifest["options"]["window_size"] == pytest.approx(8 * 1200 / 3937)
        found.append(surveys.of_job(tmp_path / f"{k}"))
    assert found[0] == found[1] != []
    ran = spatialq_command("seeds", tiles, "-o", tmp_path / "x", "--window-size", "8")
    assert "seeds: window_size must say its unit, got '8'" in ran.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("pattern", ["**/tile_*.laz", "**/tile_0_1.*"])
def test_a_pattern_that_would_find_parts_named_as_files_is_refused(tiles, pattern):
    with pytest.raises(FileError, match="would be found as source"):
        cluster.run(
            "classify_ground", f"{tiles}/{pattern}", tiles / "out", part_format="laz", unit=1.0
        )
    assert not (tiles / "out").exists()


def test_parts_of_one_name_are_refused_before_files_are_read(tiles, tmp_path):
    shutil.copytree(tiles, tmp_path / "again")
    with pytest.raises(FileError, match=r"tile_0_0\.laz"):
        run(
            tiles, tmp_path / "out", source=[tiles, tmp_path / "again"], function="plane_points",
            part_format="laz", unit=1.0,
        )  # fmt: skip
    assert not (tmp_path / "out").exists()


def test_numbers_of_numpy(at_once, tmp_path):
    grid = test_pops_features.write(tmp_path / "a.tif", np.ones((30, 40), np.float32))
    more = {"nodata": np.float32(-9999), "scales": (5.0, 7.0), "example_scale": 20.0}
    cluster.run("pops_features", grid, tmp_path / "out", **more)
    assert json.loads((tmp_path / "out" / "job.json").read_text())["options"]["nodata"] == -9999


def test_names_that_are_no_text(tiles, tmp_path):
    bad = tmp_path / os.fsdecode(b"tile_\xe9.laz")
    shutil.copy(tiles / "tile_0_0.laz", bad)
    with pytest.raises(FileError, match="its name is not UTF-8; rename it"):
        run(tiles, tmp_path / "out", source=[tiles, bad])
