"""What the tests of scripts run on: the house of the demo, and a small scan of it."""

from pathlib import Path

import numpy as np
import pytest

import spatialq
from spatialq.demo import write_house
from tests.conftest import made_once


def scan_of(walls: float) -> np.ndarray:
    """Give the points of two faces: the southern one is where it was planned, or off by `walls`."""
    x, z = np.meshgrid(np.arange(0.3, 9.7, 0.05), np.arange(0.1, 2.5, 0.05))
    south = np.column_stack([x.ravel(), np.full(x.size, -walls), z.ravel()])
    y, x = np.meshgrid(np.arange(1.0, 7.0, 0.05), np.arange(1.0, 9.0, 0.05))
    floor = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
    return np.concatenate([south, floor])


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the house, twice."""

    def make(place: Path) -> None:
        write_house(place / "house.ifc")
        write_house(place / "other.ifc")

    return made_once(tmp_path_factory, "ql4bim_house", make)


@pytest.fixture(scope="session")
def session_con():
    """A connection that all tests of a process share, so that models stay in memory."""
    con = spatialq.connect()
    points = scan_of(walls=0.03)
    x, y, z = points.T
    frame = {"x": x, "y": y, "z": z}
    con.register("scan_arrays", __import__("pyarrow").table(frame))
    con.execute(
        "CREATE TABLE scan AS SELECT row_number() OVER () AS point_id, x, y, z FROM scan_arrays"
    )
    yield con
    con.close()


@pytest.fixture
def con(session_con, folder, monkeypatch, tmp_path):
    """The connection, in the folder of the models."""
    monkeypatch.chdir(folder)
    return session_con
