"""Fixtures for all tests."""

import os
from pathlib import Path

import pytest

from spatialq.demo import World, write_world

SHARED = Path(os.environ.get("SPATIALQ_TEST_DATA", Path(__file__).parents[2] / "shared"))


def real_file(relative: str) -> Path:
    """A file of the collection of real data beside the checkout; absent: skip, but fail in CI."""
    path = SHARED / relative
    if not path.exists():
        reason = f"no real test data here: {relative} is missing"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The demo world of 2.5 million points, made once a session: files and truth."""
    return write_world(tmp_path_factory.mktemp("world"))
