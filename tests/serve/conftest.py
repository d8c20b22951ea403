"""A scene of a house with its scan, and a client that is the page's own."""

from contextlib import contextmanager

import pytest

pytest.importorskip("starlette", reason="the extra [view] is not installed")
pytest.importorskip("httpx2", reason="httpx2 is not installed")

import duckdb
import numpy as np
import pyarrow as pa
from starlette.testclient import TestClient

import spatialq
from spatialq.demo.house import write_house
from spatialq.demo.house_scan import write_scan
from spatialq.serve.app import Server
from spatialq.serve.limits import Limits
from spatialq.serve.scene import open_scene

from ..conftest import made_once

PORT, TOKEN = 8123, "t0ken_of-tests"
BASE = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="session")
def house(tmp_path_factory):
    """A folder with house.ifc and house.laz."""

    def make(folder):
        write_house(folder / "house.ifc")
        write_scan(folder / "house.laz")

    return made_once(tmp_path_factory, "house_to_view", make)


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """The user's cache folder of a run."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def in_cache(cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPATIALQ_CACHE_DIR", str(cache))
        yield


@contextmanager
def plain_duckdb(path):
    """Give a connection of DuckDB alone to a database."""
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS oracle (READ_ONLY); USE oracle")
        yield con


@contextmanager
def client_of(server):
    """Give a client whose requests share a loop, as those of a server do."""
    app = server.app(TOKEN, PORT)
    with TestClient(app, base_url=f"{BASE}/{TOKEN}/") as client:
        yield client


@pytest.fixture(scope="session")
def scene(house, in_cache):
    """The house and its scan, with tiles."""
    limits = Limits(seconds=60.0, memory=256 << 20)  # on a machine that does much else
    with open_scene([str(house / "house.laz"), str(house / "house.ifc")], limits=limits) as found:
        found.build()
        yield found


@pytest.fixture(scope="session")
def client(scene):
    with client_of(Server(scene)) as found:
        yield found


@pytest.fixture
def patient(house, scene):
    """A client whose queries have the time to compile what they call."""
    limits = Limits(seconds=300.0, memory=256 << 20)
    opening = open_scene([str(house / "house.laz"), str(house / "house.ifc")], limits=limits)
    with opening as found, client_of(Server(found)) as client:
        yield client


def make_database(folder, n, ids=None):
    """Make a database of a surface with columns of all kinds, of which ids may be sparse."""
    rng = np.random.default_rng(3)
    x, y = rng.uniform(0, 400, (2, n))
    z = 10 * np.sin(x / 40) * np.cos(y / 30) + rng.normal(0, 0.05, n)
    path = folder / "made.duckdb"
    rows = {
        "point_id": np.arange(n) if ids is None else ids,
        "x": x + 500_000.25, "y": y + 5_600_000.5, "z": z,
        "red": rng.integers(0, 65536, n, dtype=np.uint16),
        "green": rng.integers(0, 65536, n, dtype=np.uint16),
        "blue": rng.integers(0, 65536, n, dtype=np.uint16),
        "classification": rng.integers(1, 7, n, dtype=np.uint8),
        "is_high": z > 2,
        "kind": np.array(["roof", "wall", "tree"])[rng.integers(0, 3, n)],
        "deviation": np.where(rng.random(n) < 0.1, np.nan, rng.normal(0, 1, n)),
    }  # fmt: skip
    with spatialq.connect(str(path)) as con:
        con.register("given", pa.table(rows))
        con.execute(
            "CREATE TABLE points AS SELECT * REPLACE (if(isnan(deviation), NULL, deviation) "
            "AS deviation, if(point_id % 11 = 0, NULL, kind) AS kind) FROM given"
        )
    return path
