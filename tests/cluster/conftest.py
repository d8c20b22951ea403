"""Fixtures for tests of jobs."""

import pytest

from spatialq.cluster import driver
from tests.cluster.surveys import InThisProcess


@pytest.fixture
def at_once(monkeypatch):
    """Have the tasks of jobs done in this process."""
    monkeypatch.setattr(driver, "executor_of", lambda *_, **__: InThisProcess())
