"""An export that was killed goes on where it was, and the result is that of one that was not."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from spatialq.udfs.build_lod import cpu, gpu

import spatialq
from spatialq.errors import FileError, FileWarning
from spatialq.export import copc, kept, potree
from spatialq.planner.plan import Plan
from spatialq.workflows import lod

from .test_lod_command import SMALL, memory_for, write_scene

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="a folder that is left has no lock there"),
]
OUTPUTS = {
    "copc": ["a.copc.laz"],
    "potree": ["p/metadata.json"],
    "tiles": ["t/tileset.json"],
    "both": ["a.copc.laz", "t/tileset.json"],
    "table": ["n.parquet", "t/tileset.json"],
}
RUNS = """
import json, os, sys, tempfile
from spatialq.export import additive_points, atomic, copc, kept, potree
from spatialq.workflows import lod, lod_points, lod_kept
from spatialq.udfs.build_lod import additive, cpu, external_partitioning
import spatialq, warnings
warnings.simplefilter("ignore")
copc.GROUP = potree.GROUP = 500
left = -1
def counted(work):
    def call(*given, **named):
        global left
        found = work(*given, **named)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), 9)
        return found
    return call
kept.Kept.save = counted(kept.Kept.save)
kept.Kept.save_arrays = counted(kept.Kept.save_arrays)
kept.Journal.add = counted(kept.Journal.add)
copc._compressed = counted(copc._compressed)
os.mkdir = counted(os.mkdir)
os.rename = counted(os.rename)
additive_points._brightest = counted(additive_points._brightest)
given = json.loads(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:  # load kernels; lazrs in no thread before a fork
    for name in ("metadata.json", "tileset.json"):
        spatialq.write_lod(given["source"], f"{folder}/{name}", **given["options"])
for line in sys.stdin:
    left, resume = json.loads(line)
    child = os.fork()
    if not child:
        spatialq.write_lod(given["source"], given["targets"], resume=resume, **given["options"])
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs in forks of a process, each of which kills itself after so many steps that change what is on
the disk."""


class Runs:
    """Exports of one kind."""

    def __init__(self, source, targets, **options):
        given = {"source": str(source), "targets": list(map(str, targets)), "options": options}
        self._process = subprocess.Popen(
            [sys.executable, "-c", RUNS, json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate(timeout=60)

    def killed(self, step, *, resume=False):
        """Run until a step; tell whether the run came so far."""
        self._process.stdin.write(json.dumps([step, resume]) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        assert status in (0, -signal.SIGKILL)
        return status != 0


def killed(folder, targets, step, memory):
    with Runs(folder / "a.las", targets, memory=memory, **SMALL) as runs:
        return runs.killed(step)


def contents(folder):
    """All files, but for the source and hidden ones, and what is in them."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "a.las"
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }  # fmt: skip


def hidden(folder):
    return [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.fixture
def small_groups(monkeypatch):
    for module in (copc, potree):
        monkeypatch.setattr(module, "GROUP", 500)


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_killed_export_goes_on_and_gives_the_same_bytes(tmp_path, name):
    source, memory = write_scene(tmp_path / "a.las"), memory_for(700)
    targets = [tmp_path / each for each in OUTPUTS[name]]
    with Runs(source, targets, memory=memory, **SMALL) as runs:
        assert not runs.killed(-1)
        expected = contents(tmp_path)
        assert expected
        for step in (1, 2, 4, 7, 11, 15, 20, 26, 33, 41, 50, 60, 80):
            clear(tmp_path)
            if not runs.killed(step):
                break
            assert not runs.killed(-1, resume=True)
            assert contents(tmp_path) == expected, step
            assert not hidden(tmp_path), step


def test_columns_of_attributes_are_read_again(tmp_path):
    source = write_scene(tmp_path / "a.las")
    targets = [tmp_path / each for each in (*OUTPUTS["table"], *OUTPUTS["copc"])]
    given = {"memory": memory_for(700), "attributes": ["gps_time", "user_data"], **SMALL}
    with Runs(source, targets, **given) as runs:
        assert not runs.killed(-1)
        expected = contents(tmp_path)
        for step in (2, 9, 20, 33):
            clear(tmp_path)
            assert not runs.killed(step) or not runs.killed(-1, resume=True)
            assert contents(tmp_path) == expected, step
            assert not hidden(tmp_path), step


@pytest.mark.parametrize("name", ["copc", "tiles"])
def test_a_cloud_that_fits_into_memory(tmp_path, name):
    source, targets = write_scene(tmp_path / "a.las"), [tmp_path / each for each in OUTPUTS[name]]
    with Runs(source, targets, **SMALL) as runs:
        assert not runs.killed(-1)
        expected = contents(tmp_path)
        for step in (2, 6, 9):
            clear(tmp_path)
            assert not runs.killed(step) or not runs.killed(-1, resume=True)
            assert contents(tmp_path) == expected, step
            assert not hidden(tmp_path), step


def clear(folder):
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "a.las":
            path.unlink()


def test_an_export_that_is_killed_again_and_again_ends(tmp_path):
    source, memory = write_scene(tmp_path / "a.las"), memory_for(700)
    targets, times = [tmp_path / each for each in OUTPUTS["copc"]], 0
    with Runs(source, targets, memory=memory, **SMALL) as runs:
        assert not runs.killed(-1)
        expected = contents(tmp_path)
        clear(tmp_path)
        while runs.killed(8, resume=True):
            assert not any(target.exists() for target in targets)
            times += 1
            assert times < 30
    assert times >= 2
    assert contents(tmp_path) == expected
    assert not hidden(tmp_path)


@pytest.mark.parametrize("name", ["copc", "potree", "tiles"])
def test_nothing_is_done_twice(tmp_path, name, small_groups, monkeypatch):
    """Of an export that failed in the last step all else is there."""
    source, memory = write_scene(tmp_path / "a.las"), memory_for(700)
    targets = [tmp_path / each for each in OUTPUTS[name]]
    spatialq.write_lod(source, targets, memory=memory, **SMALL)
    expected = contents(tmp_path)
    clear(tmp_path)
    with monkeypatch.context() as patched:

        def full(*_):
            raise OSError(28, "No space left on device")

        last = {"copc": (copc, "_info"), "potree": (potree, "_hierarchy")}
        from spatialq.export.tiles import tileset

        patched.setattr(*last.get(name, (tileset.Tree, "close")), full)
        with pytest.raises((FileError, OSError), match="No space left on device"):
            spatialq.write_lod(source, targets, memory=memory, resume=True, **SMALL)
    assert not contents(tmp_path)
    calls = []

    def count(module, function):
        work = getattr(module, function)
        monkeypatch.setattr(
            module, function, lambda *a, **k: calls.append(function) or work(*a, **k)
        )

    from spatialq.udfs.build_lod import cpu, external_partitioning

    from spatialq.export import additive_points
    from spatialq.io.las.laz import Laszip

    count(cpu, "build")
    count(external_partitioning, "write_points")
    count(copc, "_compressed")
    count(additive_points.AdditivePoints, "of_nodes")
    count(Laszip, "decode")
    spatialq.write_lod(source, targets, memory=memory, resume=True, **SMALL)
    assert not calls
    assert contents(tmp_path) == expected


def test_the_next_run_may_be_on_a_gpu_with_less_memory(tmp_path, monkeypatch):
    """Then parts that are too large for it are divided anew: none of them is one leaf."""
    source, target = write_scene(tmp_path / "a.las"), tmp_path / "t" / "tileset.json"
    memory = memory_for(1500)
    spatialq.write_lod(source, target, memory=memory, **SMALL)
    expected = contents(tmp_path)
    clear(tmp_path)
    assert killed(tmp_path, [target], 12, memory)
    monkeypatch.setattr(gpu, "build_and_bring", cpu.build)
    monkeypatch.setattr(gpu, "capacity", lambda _: 400)
    monkeypatch.setattr(
        "spatialq.execution.call.plan_call", lambda *_: Plan("gpu", 1.0, "it is there", [])
    )
    done = spatialq.write_lod(source, target, memory=memory, resume=True, **SMALL)
    assert done["device"] == "gpu"
    assert contents(tmp_path) == expected


@pytest.mark.parametrize("name", ["copc", "tiles"])
def test_after_a_full_disk(tmp_path, name):
    source, memory = write_scene(tmp_path / "a.las"), memory_for(700)
    targets = [tmp_path / each for each in OUTPUTS[name]]
    spatialq.write_lod(source, targets, memory=memory, **SMALL)
    expected = contents(tmp_path)
    limit = (
        "import resource, signal, sys, spatialq\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))\n"
        "spatialq.write_lod(sys.argv[3], sys.argv[4:], memory=float(sys.argv[2]),\n"
        "    resume=True, max_points=300, grid_size=8)"
    )
    for size in (100, 3000, 50_000, 125_000):
        clear(tmp_path)
        given = [str(size), str(memory), str(source), *map(str, targets)]
        done = subprocess.run([sys.executable, "-c", limit, *given], capture_output=True, text=True)
        if done.returncode:
            sentence = r"(spatialq\.errors\.FileError|MemoryError): .*File too large$"
            assert re.match(sentence, done.stderr.splitlines()[-1]), done.stderr
            assert not contents(tmp_path)
            assert hidden(tmp_path)
            spatialq.write_lod(source, targets, memory=memory, resume=True, **SMALL)
        assert contents(tmp_path) == expected
        assert not hidden(tmp_path)


def test_a_full_disk_from_the_beginning_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    source = write_scene(tmp_path / "a.las")
    monkeypatch.setattr(kept.Kept, "save", full)
    with pytest.raises(FileError, match=r"a\.copc\.laz': cannot be written: No space left"):
        spatialq.write_lod(source, [tmp_path / "a.copc.laz"])
    assert not hidden(tmp_path)


def changed_source(folder):
    write_scene(folder / "a.las", seed=2)
    os.utime(folder / "a.las", (1, 1))
    return {}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (changed_source, r"'.*a.las' changed"),
        (lambda _: {"max_points": 200}, "an option changed"),
    ],
)
def test_what_was_made_of_something_else_is_not_used(tmp_path, change, named):
    source, target = write_scene(tmp_path / "a.las"), tmp_path / "a.copc.laz"
    memory = memory_for(700)
    assert killed(tmp_path, [tmp_path / "a.copc.laz"], 8, memory)
    options = {**SMALL, **change(tmp_path)}
    with pytest.warns(
        FileWarning, match=rf"^lod: what an earlier run left of .* as {named}: it st"
    ):
        spatialq.write_lod(source, target, memory=memory, resume=True, **options)
    found = contents(tmp_path)
    spatialq.write_lod(source, target, memory=memory, **options)
    assert contents(tmp_path) == found


def test_without_resume_what_is_left_is_cleared(tmp_path):
    source, target = write_scene(tmp_path / "a.las"), tmp_path / "a.copc.laz"
    assert killed(tmp_path, [target], 8, memory_for(700))
    assert hidden(tmp_path)
    spatialq.write_lod(source, tmp_path / "other.copc.laz", **SMALL)
    assert not hidden(tmp_path)
    assert killed(tmp_path, [target], 8, memory_for(700))
    spatialq.write_lod(source, tmp_path / "other.copc.laz", resume=True, **SMALL)
    assert len(hidden(tmp_path)) == 1
    spatialq.write_lod(source, target, **SMALL)
    assert not hidden(tmp_path)


@pytest.mark.parametrize("resume", [False, True])
def test_two_runs_at_once_are_refused(tmp_path, resume, monkeypatch):
    source, target = write_scene(tmp_path / "a.las"), tmp_path / "a.copc.laz"
    write = copc._hierarchy
    asked = []

    def meanwhile(*given):
        with pytest.raises(FileError, match=r"^lod: '.*a.copc.laz': is being written by another"):
            lod_apart(source, target, resume=resume)
        asked.append(1)
        return write(*given)

    def lod_apart(*given, **named):
        from spatialq.export.atomic import apart

        with apart():
            return lod.write_lod(*given, **SMALL, **named)

    monkeypatch.setattr(copc, "_hierarchy", meanwhile)
    spatialq.write_lod(source, target, resume=resume, **SMALL)
    assert asked
    assert not hidden(tmp_path)


def test_in_sql_and_as_a_command(tmp_path, small_groups):
    from ..command_line import rows

    source, target = write_scene(tmp_path / "a.las"), tmp_path / "a.copc.laz"
    spatialq.write_lod(source, target, **SMALL)
    expected = contents(tmp_path)
    small = ("--max-points", 300, "--grid-size", 8, "--resume")
    for go_on in (
        lambda: rows("lod", source, "-o", target, *small),
        lambda: spatialq.connect().sql(
            f"FROM write_lod('{source}', ['{target}'], max_points := 300, grid_size := 8, "
            "resume := true)"
        ).fetchall(),
    ):  # fmt: skip
        clear(tmp_path)
        assert killed(tmp_path, [target], 8, 1)
        assert len(go_on()) == 1
        assert contents(tmp_path) == expected
        assert not hidden(tmp_path)


def test_outputs_on_two_file_systems(tmp_path, small_groups):
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second file system, /dev/shm")
    import tempfile

    source = write_scene(tmp_path / "a.las")
    with tempfile.TemporaryDirectory(dir=memory) as name:
        targets = [tmp_path / "a.copc.laz", Path(name) / "p" / "metadata.json"]
        spatialq.write_lod(source, targets, **SMALL)
        expected = contents(tmp_path), contents(Path(name))
        for target in (*targets, *targets[1].parent.iterdir()):
            target.unlink(missing_ok=True)
        targets[1].parent.rmdir()
        assert killed(tmp_path, targets, 15, 1)
        spatialq.write_lod(source, targets, resume=True, **SMALL)
        assert (contents(tmp_path), contents(Path(name))) == expected
        assert not hidden(tmp_path)
        assert not hidden(Path(name))


def test_a_name_says_which_outputs(tmp_path):
    """The folder of one pair of outputs is not that of another."""
    a, b, c = (tmp_path / name for name in ("a.copc.laz", "b.copc.laz", "c.copc.laz"))
    names = {kept._folder(a, group) for group in ([a], [a, b], [a, c])}
    assert len(names) == 3
    assert kept._folder(a, [a, b]) == kept._folder(a, [b, a])
