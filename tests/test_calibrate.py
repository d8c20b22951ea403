"""`calibrate`: what is measured, where it is kept, and that the planner uses it."""

import json

import pytest

import spatialq
from spatialq.data.meshes import Meshes
from spatialq.errors import FileError
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import Size
from spatialq.planner import calibration, log, rates
from spatialq.planner.statistics import size_of
from spatialq.workflows import calibration as measuring
from spatialq.workflows.calibration_inputs import make

from .command_line import spatialq_command as command


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """Two functions, on few rows, in a cache folder of the test's own."""
    functions = {name: catalogue()[name] for name in ("owm_ground", "classify_ground")}
    monkeypatch.setenv("SPATIALQ_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(rates, "_current", None)
    monkeypatch.setattr(measuring, "catalogue", lambda: functions)
    monkeypatch.setattr(measuring, "SIZES", (3000,))
    return tmp_path


@pytest.mark.slow
def test_figures_are_measured_kept_and_used(quick, monkeypatch):
    for _ in range(2):
        log.learn("owm_ground", "cpu", 1000, 9.0)
    found = spatialq.calibrate()
    assert {name for name, _, _ in found.measured} == {"owm_ground", "classify_ground"}
    assert not found.left_out
    assert found.path.parent == quick
    assert log.correction("owm_ground", "cpu", 1000) == 1  # it was of the figures before
    kept = json.loads(found.path.read_text())
    assert rates.from_json(kept["rates"]) == found.rates == rates.current()
    monkeypatch.setattr(rates, "_current", None)  # as in a new process
    assert rates.current() == found.rates
    factor = {name: factor for name, device, factor in found.measured if device == "cpu"}
    rate, shipped = found.rates.rate("owm_ground", "cpu"), rates.shipped().rate("owm_ground", "cpu")
    for name, step in shipped.steps.items():
        expected = factor["owm_ground"] * step.parallel
        assert rate.steps[name].parallel == pytest.approx(expected)
    assert 0 < rate.start < 1
    assert 0 < rate.load < 30  # seconds: measured in a new process


def test_what_there_is_no_time_for_keeps_the_figures_of_the_package(quick, monkeypatch):
    monkeypatch.setattr(measuring, "in_new_process", lambda *_: ({}, {}))
    found = spatialq.calibrate(limit=1e-9)
    assert list(found.left_out) == ["classify_ground", "owm_ground"]
    assert found.rates.kernels == rates.shipped().kernels


def test_functions_are_loaded_in_their_order(quick, monkeypatch):
    """Of those that share modules the first one pays: not another one in each run."""
    asked = []

    def in_new_process(_, names, *__):
        asked.append(list(names))
        return {}, {}

    several = ["owm_ground", "classify_ground", "detect_planes", "plane_points"]
    functions = {name: catalogue()[name] for name in several}
    monkeypatch.setattr(measuring, "catalogue", lambda: functions)
    monkeypatch.setattr(measuring, "in_new_process", in_new_process)
    spatialq.calibrate()
    assert asked[0] == several


def test_a_wrong_limit_and_a_folder_that_cannot_be_written_to(quick, monkeypatch):
    with pytest.raises(ValueError, match=r"calibrate: limit must be > 0 seconds, got 0"):
        spatialq.calibrate(limit=0)
    file = quick / "file"
    file.write_text("")
    monkeypatch.setenv("SPATIALQ_CACHE_DIR", str(file))
    with pytest.raises(FileError, match=r"calibrate: '.*file': is no folder that can be written"):
        calibration.save({})


def test_the_command_explains_itself():
    assert "Measure how fast this machine is" in command("calibrate", "--help").stdout


@pytest.mark.parametrize("name", catalogue())
def test_inputs_are_of_about_the_size_that_was_asked_for(name):
    function = catalogue()[name]
    arguments = make(function, 2400)
    size = size_of(function.inputs, arguments)
    assert size.rows == pytest.approx(2400, rel=0.05)
    assert isinstance(size, Size)
    meshes = [each for each in arguments.values() if isinstance(each, Meshes)]
    assert all(each.faces.max() < 8 for each in meshes)
