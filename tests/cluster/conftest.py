"""Fixtures for tests of jobs."""

import pytest

from spatialq.cluster import driver
from spatialq.cluster.serial_executor import SerialExecutor


@pytest.fixture
def at_once(monkeypatch):
    """Have the tasks of jobs done in this process."""
    monkeypatch.setattr(driver, "executor_of", lambda *_, **__: SerialExecutor())
