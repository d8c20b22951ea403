"""Fixtures for all tests."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

from spatialq.demo import World, write_world
from spatialq.io.ifc import disk_cache
from spatialq.planner import devices
from spatialq.runtime import cuda

from .host.device import BUILDS, COMPILER, HostDevice

SHARED = Path(os.environ.get("SPATIALQ_TEST_DATA", Path(__file__).parents[2] / "shared"))
HOST = pytest.param("host", marks=pytest.mark.host)
GPU = pytest.param("gpu", marks=pytest.mark.gpu)

hypothesis.settings.register_profile("all", deadline=None)
hypothesis.settings.register_profile("test", deadline=None, derandomize=True)
hypothesis.settings.register_profile("check", max_examples=10, deadline=None, derandomize=True)
hypothesis.settings.load_profile("test")


def pytest_configure(config: pytest.Config) -> None:
    """Keep builds of CUDA sources for the host between runs; `--cache-clear` forgets them.

    Models are read each time, and the user's own cache of them is left alone.
    """
    os.environ[disk_cache.OFF] = "off"
    if config.pluginmanager.has_plugin("cacheprovider"):
        os.environ[BUILDS] = str(config.cache.mkdir("host_builds"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test of the demo world as slow: the first one has to make it."""
    for item in items:
        if "world" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


def real_file(relative: str) -> Path:
    """A file of the collection of real data beside the checkout; absent: skip, but fail in CI."""
    path = SHARED / relative
    if not path.exists():
        reason = f"no real test data here: {relative} is missing"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Make a folder of files once for all processes of a run."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            partial.mkdir()
            make(partial)
            partial.rename(folder)
    return folder


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The demo world of 2.5 million points: files and truth."""
    return write_world(made_once(tmp_path_factory, "world", write_world))


@pytest.fixture(params=[HOST, GPU])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """What GPU kernels run on: the host, which stands in for a GPU, and the GPU of this machine."""
    if request.param == "host":
        if COMPILER is None:
            reason = "g++ is not installed"
            pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
        host = HostDevice()
        monkeypatch.setattr(cuda, "device", lambda: host)
        return host
    if problem := devices.gpu().problem:
        pytest.fail(problem) if os.environ.get("SPATIALQ_REQUIRE_GPU") else pytest.skip(problem)
    return cuda.device()
