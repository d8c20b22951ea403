"""A small cloud, a grid and a house, as files and as tables."""

from pathlib import Path

import laspy
import numpy as np
import pytest

import spatialq
from spatialq.demo.house import write_house
from spatialq.export.raster import Raster, write_terrain

from ..conftest import made_once

SIDE = 40.0
"""Metres of the square that the cloud covers."""


def write_cloud(path):
    """Write a slope with a block on it: 6000 points on a grid of 1 mm."""
    random = np.random.default_rng(7)
    x, y = random.uniform(0, SIDE, (2, 6000))
    on_block = (abs(x - 20) < 4) & (abs(y - 20) < 4)
    header = laspy.LasHeader(point_format=3, version="1.4")
    header.scales, header.offsets = [0.001] * 3, [650_000, 5_600_000, 0]
    cloud = laspy.LasData(header)
    cloud.x, cloud.y = 650_000 + x, 5_600_000 + y
    cloud.z = 100 + 0.05 * x + np.where(on_block, 5, 0) + random.normal(0, 0.01, x.size)
    cloud.classification = np.where(on_block, 6, 2)
    cloud.write(path)


def write_files(folder):
    write_cloud(folder / "tile.laz")
    write_house(folder / "house.ifc")
    z = np.fromfunction(lambda row, column: 0.1 * row + np.sin(column), (30, 30))
    write_terrain(folder / "hill.tif", Raster(z, 0.0, 60.0, 2.0))


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    return made_once(tmp_path_factory, "query_files", write_files)


@pytest.fixture
def con(files):
    with spatialq.connect() as found:
        yield found


@pytest.fixture(scope="session")
def loaded(files, tmp_path_factory):
    """A database with the tables points, cells, elements, objects and so on."""

    def load(folder):
        with spatialq.connect(str(folder / "site.duckdb")) as con:
            spatialq.load(con, files / "tile.laz", "points")
            spatialq.load(con, files / "hill.tif", "cells")
            spatialq.load(con, files / "house.ifc")

    return made_once(tmp_path_factory, "query_database", load) / "site.duckdb"


@pytest.fixture
def site(loaded):
    """The database, opened for reading only."""
    with spatialq.connect(str(loaded), read_only=True) as con:
        yield con


@pytest.fixture(autouse=True)
def _in_folder(files, monkeypatch):
    monkeypatch.chdir(files)
