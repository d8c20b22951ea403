"""Faults in jobs of every function: the rows are those of one call, no part is lost or double."""

import functools
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spatialq
from spatialq import cluster
from spatialq.cluster import driver
from spatialq.cluster.folder import JobFolder
from spatialq.cluster.points import CorePart
from spatialq.cluster.serial_executor import SerialExecutor
from spatialq.cluster.worker import answer, read_answer
from spatialq.errors import FileError
from tests.cluster import (
    models,
    surveys,
    test_build_lod,
    test_detect_planes,
    test_elements,
    test_pops_features,
)
from tests.cluster.processes import (
    ACTOR,
    Killer,
    command_of,
    kill_all,
    processes_below,
    wait_for_stage,
    workers_below,
)
from tests.cluster.test_jobs import needs_ray
from tests.conftest import made_once

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::spatialq.errors.FileWarning"),
]


@dataclass(frozen=True)
class Case:
    """A job of a function, and its rows in one piece."""

    function: str
    folder: str
    make: Callable[[Path], object]
    files: str
    options: dict[str, Any]
    more: dict[str, Any]
    """What only jobs have; `{source}` in a text is the folder of the files."""
    early: str
    """A stage before the parts, with several tasks."""

    def run(self, source, folder, **how):
        arguments = self.of_job(source) | {"workers": 2} | how
        return cluster.run(self.function, f"{source}/{self.files}", folder, **arguments)

    def of_job(self, source):
        more = {
            name: each.format(source=source) if isinstance(each, str) else each
            for name, each in self.more.items()
        }
        return self.options | more

    @functools.cache  # noqa: B019 # few, for the whole run
    def expected(self, source):
        if self.function == "intersects_with":
            return models.in_one_piece([f"{source}/{self.files}"], **self.options)
        if "elements" in self.more:
            with spatialq.connect() as con:
                files, members = f"{source}/{self.files}", self.of_job(source)["elements"]
                query = test_elements.in_sql(con, files, members, self.function, **self.options)
                return models.rows_of(con, query.sql_query())
        given = "".join(f", {name} := {_literal(each)}" for name, each in self.options.items())
        with spatialq.connect() as con:
            query = f"FROM {self.function}('{source}/{self.files}'{given})"
            return models.rows_of(con, query)

    def require_whole(self, source, folder):
        """Compare all rows; there is no part of which the journal does not know, and no rest."""
        assert models.of_job(folder) == self.expected(source)
        known = {done.name for done in JobFolder(folder).journal() if done.stage == "parts"}
        assert {path.name for path in (folder / "parts").iterdir()} == known
        assert not (folder / "stages").exists()
        assert list((folder / ".unfinished").iterdir()) == []

    def __hash__(self):
        return hash(self.function)


def _literal(value):
    return str(list(value)) if isinstance(value, tuple) else repr(value)


def few_tiles(folder):
    surveys.make(folder, columns=3, rows=2)


CASES = {
    case.function: case
    for case in (
        Case("owm_ground", "few_tiles", few_tiles, "*.laz", surveys.QUIET, {}, "survey"),
        Case("classify_ground", "few_tiles", few_tiles, "*.laz", surveys.QUIET, {}, "lowest"),
        Case("ground_surface", "few_tiles", few_tiles, "*.laz", surveys.QUIET, {}, "ground"),
        Case(
            "detect_planes", "building", test_detect_planes.make, "*.laz", {"unit": 1.0}, {},
            "pass001",
        ),
        Case(
            "plane_points", "building", test_detect_planes.make, "*.laz", {"unit": 1.0}, {},
            "points",
        ),
        Case(
            "build_lod", "coloured survey", test_build_lod.make, "*.laz", test_build_lod.SMALL,
            {"chunk_points": 1500}, "counts-0",
        ),
        Case(
            "pops_features", "grids", test_pops_features.make, "*.tif", test_pops_features.SMALL,
            {"tile_size": 60.0}, "survey",
        ),
        Case(
            "intersects_with", "row_of_models", models.make, "house_0[123].ifc", {},
            {"cell_elements": 30}, "models",
        ),
        Case(
            "plane_elements", "scanned_house", test_elements.make, "*.laz", {"unit": 1.0},
            {"elements": "{source}/*.ifc"}, "owners",
        ),
        Case(
            "point_elements", "scanned_house", test_elements.make, "*.laz",
            {"max_distance": 0.05, "unit": 1.0}, {"elements": "{source}/*.ifc"}, "models",
        ),
    )
}  # fmt: skip


HEADS = ["build_lod", "intersects_with"]
"""Functions whose jobs are tried without Ray's head: one whose stages depend on what was found, and
one whose workers have processes of their own. An executor gets tasks as text, whatever they are.
"""


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture
def source(case, tmp_path_factory):
    return made_once(tmp_path_factory, case.folder, case.make)


def test_workers_that_are_killed_are_replaced(case, source, tmp_path):
    killer = Killer([case.early, "parts"])
    made = case.run(source, tmp_path / "out", progress=killer)
    # a worker that reads models has processes of its own, which for a moment look as it does
    assert killer.killed.keys() == {case.early, "parts"}
    assert min(killer.killed.values()) >= 2
    case.require_whole(source, tmp_path / "out")
    assert made["resumed"] == 0


@needs_ray
@pytest.mark.parametrize("case", ["classify_ground", "intersects_with"], indirect=True)
def test_actors_that_are_killed_are_replaced(case, source, tmp_path):
    killer = Killer([case.early, "parts"], ACTOR)
    case.run(source, tmp_path / "out", executor="ray", progress=killer)
    assert min(killer.killed[stage] for stage in (case.early, "parts")) >= 1
    case.require_whole(source, tmp_path / "out")


@needs_ray
@pytest.mark.parametrize("case", HEADS, indirect=True)
def test_the_head_of_ray_is_killed(case, source, tmp_path):
    """All of it at once: the job ends, and another one, without Ray, goes on."""
    arguments = {"function": case.function, "source": f"{source}/{case.files}", "workers": 2}
    arguments |= {"folder": str(tmp_path / "out"), "executor": "ray"} | case.of_job(source)
    command = [sys.executable, "-c", surveys.SCRIPT, json.dumps(arguments)]
    soon = os.environ | {"RAY_gcs_rpc_server_reconnect_timeout_s": "5"}  # not after a minute
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=soon) as process:
        wait_for_stage(tmp_path / "out", case.early, process)
        found = processes_below(process.pid)
        head = [pid for pid, each in found.items() if "/raylet " in each or "/gcs_server " in each]
        assert len(head) == 2, found
        for pid in workers_below(process.pid, ACTOR):
            os.kill(pid, signal.SIGSTOP)  # or they might do all that is left before Ray ends them
        for pid in head:
            os.kill(pid, signal.SIGKILL)
        try:
            process.communicate(timeout=120)
        finally:
            kill_all({process.pid: command_of(process.pid)} | found)
    assert process.returncode != 0
    case.run(source, tmp_path / "out", resume=True)
    case.require_whole(source, tmp_path / "out")


class FullDisk(SerialExecutor):
    """No task of one stage, the first that is not among some, can write but a few bytes."""

    MOST = 16

    def __init__(self, passed):
        self.passed, self.stage = passed, ""

    def map(self, tasks):
        for task in tasks:
            if task.root and task.stage not in self.passed:
                self.stage = self.stage or task.stage
            is_full = task.stage == self.stage
            with file_limit(self.MOST if is_full else resource.RLIM_INFINITY):
                text = answer(task.text())
            yield read_answer(text)


@contextmanager
def file_limit(most):
    """Let files of this process have some bytes at most."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_in_each_stage_in_turn(case, source, tmp_path, monkeypatch):
    out, passed = tmp_path / "out", []
    case.expected(source)  # kernels are compiled, and kept in files
    while True:
        able = FullDisk(passed)
        monkeypatch.setattr(driver, "executor_of", lambda *_, able=able, **__: able)
        try:
            case.run(source, out, resume=True)
        except FileError as error:
            said = str(error)
            place = out / "parts" if able.stage == "parts" else out / "stages" / able.stage
            assert said.startswith(f"output: '{place}/")
            assert said.count("\n") == 0
            assert "': cannot be written: " in said
            assert ".unfinished" not in said
            assert list((out / ".unfinished").iterdir()) == []
            assert list(place.iterdir()) == []
            passed.append(able.stage)
        else:
            break
    assert passed[-1] == "parts"
    assert len(passed) == len(set(passed))
    case.require_whole(source, out)


def damage(path, k):
    """Flip a bit, cut, or remove a file."""
    content = bytearray(path.read_bytes())
    if k % 3 == 0:
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif k % 3 == 1:
        path.write_bytes(content[: len(content) // 2])
    else:
        path.unlink()


def test_parts_that_are_damaged_are_made_again(at_once, case, source, tmp_path):
    out = tmp_path / "out"
    case.run(source, out)
    parts = sorted((out / "parts").iterdir())[:3]
    for k, path in enumerate(parts):
        damage(path, k)
    made = case.run(source, out, resume=True)
    if case.function != "build_lod":  # whose parts of nodes above need all first nodes
        assert made["resumed"] == made["parts"] - len(parts)
    case.require_whole(source, out)


@pytest.mark.parametrize("case", ["owm_ground"], indirect=True)
def test_a_worker_without_memory_says_what_to_do(at_once, case, source, tmp_path, monkeypatch):
    def fail(*_):
        return np.empty(1 << 55)  # NumPy's own kind of MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(CorePart, "read", fail)
        said = (
            r"memory was not enough for task '0000000\.parquet': resume .* workers or more memory"
        )
        with pytest.raises(MemoryError, match=said):
            case.run(source, tmp_path / "out")
    case.run(source, tmp_path / "out", resume=True)
    case.require_whole(source, tmp_path / "out")


def test_a_stage_whose_folder_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "stages").write_bytes(b"")
    with pytest.raises(FileError, match=r"stages/points': cannot be written: Not a directory"):
        JobFolder(tmp_path).begin("points")
