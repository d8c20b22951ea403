"""Jobs of `build_lod`: chunks and the nodes above them are the tree of one call on all files."""

import contextlib
import json
import os
import shutil
import signal
import time
from importlib.util import find_spec

import laspy
import numpy as np
import pyarrow.parquet as pq
import pytest
from spatialq.udfs.build_lod import chunks, cpu
from spatialq.udfs.build_lod.split import split
from spatialq.udfs.build_lod.tree import Cube, Points, Root

import spatialq
from spatialq import cluster
from spatialq.errors import FileError
from tests.cluster import surveys
from tests.cluster.test_jobs import at_once  # noqa: F401
from tests.command_line import rows as command_rows
from tests.command_line import spatialq_command
from tests.conftest import made_once, real_file

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
SMALL = {"max_points": 150, "grid_size": 16, "unit": 1.0}
CHUNK = 400


def write_tile(path, x, y, z, rng, *, format=7, crs=None):
    """Write points with colours, classes and times, in centimetres."""
    header = laspy.LasHeader(version="1.4", point_format=format)
    header.scales = np.full(3, 0.01)
    if crs is not None:
        header.add_crs(crs)
    record = laspy.ScaleAwarePointRecord.zeros(x.size, header=header)
    record.x, record.y, record.z = x, y, z
    record["return_number"] = record["number_of_returns"] = np.ones(x.size, np.uint8)
    record["intensity"] = rng.integers(0, 4000, x.size)
    record["classification"] = rng.integers(0, 7, x.size)
    record["gps_time"] = rng.random(x.size)
    if format == 7:
        for name in ("red", "green", "blue"):
            record[name] = rng.integers(0, 65536, x.size)
    with laspy.open(path, "w", header=header) as file:
        file.write_points(record)


def make(folder, crs=None):
    """Write tiles that overlap, one without colours, with points that coincide and a dense spot."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(2)
    for k in range(12):
        column, row = k % 4, k // 4
        n = 900 if k != 5 else 3000
        x, y = (rng.integers(0, 330, n) / 10 for _ in range(2))
        if k == 5:
            x[:2000], y[:2000] = x[:2000] / 40 + 3, y[:2000] / 40 + 3
            x[:300], y[:300] = 7.0, 8.0
        x, y = x + column * 30 + 1000, y + row * 30 + 5000
        z = np.round((x - 1000) / 20 + rng.integers(0, 8, n) / 10, 1)
        if k == 5:
            z[:300] = 4.0
        write_tile(folder / f"tile_{k:02}.laz", x, y, z, rng, format=6 if k == 3 else 7, crs=crs)
    return folder


@pytest.fixture(scope="session")
def tiles(tmp_path_factory):
    return made_once(tmp_path_factory, "coloured survey", make)


def run(source, folder, **options):
    given = SMALL | {"chunk_points": CHUNK} | options
    return cluster.run("build_lod", str(source), folder, **given)


def in_one_piece(source, **options):
    """Write the query of one call on all files."""
    given = SMALL | options
    literal = {name: repr(value) for name, value in given.items()}
    listed = "".join(f", {name} := {value}" for name, value in literal.items())
    return f"FROM build_lod('{source}'{listed})"


def require_same(folder, query):
    """Compare a job's rows with those of a query, as bags; give how many there are."""
    with spatialq.connect() as con:
        cluster.table(con, folder, "found")
        con.execute(f"CREATE TABLE expected AS {query}")
        for one, other in (("found", "expected"), ("expected", "found")):
            missing = f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})"
            assert con.sql(missing).fetchall() == [(0,)], (one, other)
        return con.sql("SELECT count(*) FROM found").fetchall()[0][0]


CASES = {
    "weighted": {},
    "average": {"strategy": "average"},
    "random": {"strategy": "random", "seed": 7},
    "first in full precision": {"strategy": "first", "full_precision": True},
    "bounds": {"bounds": [1013.3, 5007.7, 1081.0, 5058.8]},
    "attributes": {"attributes": ["gps_time", "intensity", "nir_or_red", "red"][:2]},
    "deep chunks": {"max_points": 5, "grid_size": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_parts_have_the_rows_of_one_piece(at_once, tiles, tmp_path, name):  # noqa: F811
    options = CASES[name]
    result = run(tiles, tmp_path / "out", **options)
    found = require_same(tmp_path / "out", in_one_piece(f"{tiles}/*.laz", **options))
    assert result["rows"] == found > 30
    assert result["parts"] > 10
