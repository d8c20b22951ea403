"""Fixtures for the readers."""

from collections.abc import Iterator

import duckdb
import pytest

from .las_files import install


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        install(connection)
        yield connection
