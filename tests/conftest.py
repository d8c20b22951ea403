"""Fixtures for all tests."""

import fcntl
import gc
import logging
import os
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import duckdb
import hypothesis
import pytest

import spatialq
from spatialq.cli.progress import COMPILING
from spatialq.demo import World, write_world
from spatialq.io.ifc import disk_cache
from spatialq.io.ifc.cache import read_models
from spatialq.io.ifc.columns import Geometry
from spatialq.io.ifc.model import IfcModel
from spatialq.planner import devices
from spatialq.runtime import compile_cache, cuda

from .host.device import BUILDS, COMPILER, HostDevice

SHARED = Path(os.environ.get("SPATIALQ_TEST_DATA", Path(__file__).parents[2] / "shared"))
HOST = pytest.param("host", marks=pytest.mark.host)
GPU = pytest.param("gpu", marks=pytest.mark.gpu)

hypothesis.settings.register_profile("all", deadline=None)
hypothesis.settings.register_profile("test", max_examples=30, deadline=None, derandomize=True)
hypothesis.settings.register_profile("check", max_examples=10, deadline=None, derandomize=True)
hypothesis.settings.load_profile("test")


def pytest_configure(config: pytest.Config) -> None:
    """Keep builds of CUDA sources for the host between runs; `--cache-clear` forgets them.

    Models are read each time, and the user's own cache of them is left alone. Where a script starts
    the tests in the background, SIGINT is ignored, and would be by the processes that get it here.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ[disk_cache.OFF] = "off"
    if config.pluginmanager.has_plugin("cacheprovider"):
        os.environ[BUILDS] = str(config.cache.mkdir("host_builds"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Undo after each test what the command line does for the rest of its process."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return (yield)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        logging.getLogger(compile_cache.__name__).removeHandler(COMPILING)


def pytest_collection_finish() -> None:
    """Let `gc.collect`, which some tests call, pass over the tests, which stay until the end."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let it find all objects again, or extension modules say at exit which were not released."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow the tests of the demo world, and most of those that have a connection by lists.

    The first test of the world has to make it. A connection by lists takes four times as long as a
    native one; of each test function the first case with such a connection is not slow.
    """
    with_lists = set()
    for item in items:
        if "world" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            function = item.nodeid.partition("[")[0]
            if item.callspec.params.get("con") == "lists":
                if function in with_lists:
                    item.add_marker(pytest.mark.slow)
                with_lists.add(function)


def real_file(relative: str) -> Path:
    """A file of the collection of real data beside the checkout; absent: skip, but fail in CI."""
    path = SHARED / relative
    if not path.exists():
        reason = f"no real test data here: {relative} is missing"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Give the temporary folder of a run that all its processes have in common."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Make a folder of files once for all processes of a run."""
    folder = shared_folder(factory) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            partial.mkdir()
            make(partial)
            partial.rename(folder)
    return folder


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with an empty database; modules have others of this name."""
    with spatialq.connect() as con:
        yield con


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The demo world of 2.5 million points: files and truth."""
    return write_world(made_once(tmp_path_factory, "world", write_world))


@pytest.fixture
def kept_models(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the models that a test reads through the caches, for all tests of a run that ask for it.

    Real models take seconds, and what is tested of most is not how they are read.
    """
    folder = shared_folder(tmp_path_factory) / "models"
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("SPATIALQ_CACHE_DIR", str(folder))
    monkeypatch.delenv(disk_cache.OFF)


def read_real_model(relative: str, geometry: Geometry = "auto") -> IfcModel:
    """Read a model of the collection of real data; of tests with `kept_models`."""
    (model,) = read_models([real_file(relative)], geometry=geometry)
    return model


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
