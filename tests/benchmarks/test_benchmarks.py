"""Every benchmark runs, on tiny input."""

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from ..conftest import HOST, real_file
from ..host import cupy_module

FOLDER = Path(__file__).parents[2] / "benchmarks"
_SPEC = importlib.util.spec_from_file_location("registry", FOLDER / "registry.py")
registry = importlib.util.module_from_spec(_SPEC)
sys.modules["registry"] = registry
_SPEC.loader.exec_module(registry)
POINTS = 2000


@pytest.fixture(scope="module", autouse=True)
def scripts():
    """Let scripts import each other, as they do where Python is started with one of them."""
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "").parent == FOLDER:
            del sys.modules[name]


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a script with its arguments; what it changes in the environment is undone."""

    def call(each):
        script = FOLDER / f"{each.script}.py"
        options = registry.arguments(each, each.tiny, tmp_path, POINTS)
        if each.process:
            subprocess.run([sys.executable, script, *options], check=True, timeout=300)
            return
        monkeypatch.setattr(sys, "argv", [str(script), *options])
        runpy.run_path(str(script), run_name="__main__")

    with patch.dict(os.environ):
        yield call


def chosen(*, gpu):
    """List them; every fourth is not slow, if it is not slow or of Ray itself."""
    of_kind = [each for each in registry.BENCHMARKS if each.gpu == gpu and not each.not_on_host]
    return [
        pytest.param(
            each,
            id=f"{each.script} {each.tiny}".strip(),
            marks=[pytest.mark.slow] if k % 4 or each.slow or each.ray else [],
        )
        for k, each in enumerate(of_kind)
    ]


def test_every_script_is_registered():
    scripts = {path.stem for path in FOLDER.glob("*.py")}
    named = {each.script for each in registry.BENCHMARKS}
    assert named.isdisjoint(registry.SHARED)
    assert named | set(registry.SHARED) == scripts


@pytest.mark.parametrize("each", chosen(gpu=False))
def test_on_the_cpu(run, each):
    if each.data:
        real_file(f"data/{each.data}")
    run(each)


@pytest.mark.parametrize("device", [HOST], indirect=True)
@pytest.mark.parametrize("each", chosen(gpu=True))
def test_on_the_gpu(run, device, monkeypatch, each):
    monkeypatch.setitem(sys.modules, "cupy", cupy_module)
    run(each)


def test_the_tables_of_the_readme_are_those_of_the_result_files():
    figures = runpy.run_path(str(FOLDER / "figures.py"))
    text = figures["README"].read_text(encoding="utf-8")
    marked = {name for _, name, _ in figures["TABLE"].findall(text)}
    assert marked == set(figures["TABLES"])
    assert figures["with_figures"](text) == text


@pytest.mark.parametrize("script", ["ground_accuracy", "plane_scans"])
def test_no_data_is_an_error(monkeypatch, tmp_path, capsys, script):
    monkeypatch.setattr(sys, "argv", [script, "--data", str(tmp_path)])
    with pytest.raises(SystemExit) as exit_:
        runpy.run_path(str(FOLDER / f"{script}.py"), run_name="__main__")
    assert exit_.value.code == 1
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"{script}: --data {tmp_path} has no")
    assert err.count("\n") == 1
