"""Every function of points gives the same to the bit, whether its arrays are in memory or files."""

import subprocess
import sys

import pytest

from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import PointsAndOtherInput, PointsInput
from spatialq.runtime import budget, buffers, file_memory

from .interruption import work_after_ctrl_c
from .kernels import arguments_of, arrays_in, assert_same, cases_of, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not file_memory.IS_POSSIBLE, reason="arrays are in files on Linux only"),
]
WITH_POINTS = [
    (name, case)
    for name, each in catalogue().items()
    if isinstance(each.inputs, PointsInput | PointsAndOtherInput)
    for case in getattr(cases_of(name), "PARITY", cases_of(name).CASES)
]


@pytest.mark.parametrize(("function", "case"), WITH_POINTS)
def test_every_case_is_the_same_in_files(function, case, tmp_path, monkeypatch):
    arguments, options = arguments_of(function, case)
    expected = arrays_in(run(function, "cpu", arguments, **options))
    monkeypatch.setattr(buffers, "IN_FILES", 64)
    monkeypatch.setattr(buffers, "CHUNK", 7)
    monkeypatch.setattr(buffers, "TAKEN", 5)
    with budget.limited(1, tmp_path), file_memory.noting() as note:
        found = run(function, "cpu", arguments, **options)
    assert_same(found, expected)
    if len(next(iter(expected.values()))) > 64:
        assert note.bytes > 64


SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from spatialq.execution.call import call
from spatialq.functions.catalogue import catalogue
from spatialq.planner import log
from spatialq.runtime import budget, buffers, progress

name, n, memory, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
with budget.limited(budget.parse_size(memory), folder):
    cloud = {each: buffers.empty(n) for each in "xyz"}
    rng, side = np.random.default_rng(1), np.sqrt(n / 8)
    for first in range(0, n, 1 << 18):
        part = slice(first, min(first + (1 << 18), n))
        size = part.stop - first
        x, y = side * rng.random(size), side * (first + size * rng.random(size)) / n
        house = (np.abs(x % 50 - 25) < 6) & (np.abs(y % 50 - 25) < 8)
        z = 20 * np.sin(x / 150) * np.cos(y / 110) + 6 * house + 0.05 * rng.standard_normal(size)
        cloud["x"][part], cloud["y"][part], cloud["z"][part] = x, y, z
    function = catalogue()[name]
    none = dict.fromkeys(["point_id", *getattr(function.inputs, "attributes", ())])
    with progress.observing(lambda done, stage: print(stage, flush=True)):
        found, _ = call(function, {**cloud, **none}, function.choose({}), "cpu")
print(log.entries()[-1].reason)
status = Path("/proc/self/status").read_text()  # ru_maxrss has that of the parent before exec, too
print(int(status.partition("VmHWM:")[2].split()[0]) << 10)
"""


def begin(function, points, memory, folder):
    command = [sys.executable, "-c", SCRIPT, function, points, memory, folder]
    return subprocess.Popen(
        [str(each) for each in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("function", ["owm_ground", "classify_ground", "plane_points", "build_lod"])
def test_the_peak_stays_under_the_budget(function, tmp_path):
    process = begin(function, 10_000_000, "600MB", tmp_path)
    said, wrong = process.communicate(timeout=600)
    assert process.returncode == 0, wrong
    *_, reason, peak = said.splitlines()
    assert int(peak) < 660e6
    assert function == "owm_ground" or (
        f"in files under '{tmp_path}', as the memory budget is 0.6 GB" in reason
    )
    assert list(tmp_path.iterdir()) == []


def test_interruption_is_answered_in_files(tmp_path, monkeypatch):
    monkeypatch.setenv("SPATIALQ_THREADS", "2")
    process = begin("classify_ground", 10_000_000, "400MB", tmp_path)
    assert process.stdout.readline()  # the first stage of the kernel
    took, _, wrong = work_after_ctrl_c(process)
    assert took < 2 * 5
    assert "classify_ground: interrupted" in wrong
    assert list(tmp_path.iterdir()) == []
