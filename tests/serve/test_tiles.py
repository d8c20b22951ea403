"""Tiles have each point once, where it lies, and say which one it is."""

import json

import numpy as np
import pytest

import spatialq
from spatialq.serve.cloud_tiles import PREVIEW_POINTS, Tiles, write_preview, write_tiles

from ..export.tiles_reading import Glb
from .conftest import make_database

pytestmark = pytest.mark.slow

STEP = 1e-3


def tiles_of(folder, tileset="tileset.json"):
    """Walk through a tileset: node, points in the map, colours; boxes nest, errors fall."""
    root = json.loads((folder / tileset).read_text())["root"]
    offset = np.array(root["transform"]).reshape(4, 4)[3, :3]
    assert root["refine"] in ("ADD", "REPLACE")
    found = {}

    def walk(tile, base, outer):
        middle, half = np.array(tile["boundingVolume"]["box"]).reshape(4, 3)[[0, 1]], None
        half = np.diag(np.array(tile["boundingVolume"]["box"][3:]).reshape(3, 3))
        low, high = middle[0] - half, middle[0] + half
        if outer is not None:
            assert (low >= outer[0] - 1e-6).all()
            assert (high <= outer[1] + 1e-6).all()
            assert tile["geometricError"] <= outer[2]
        here = low, high, tile["geometricError"]
        uri = tile.get("content", {}).get("uri")
        if uri is not None and uri.endswith(".json"):
            nested = json.loads((base / uri).read_text())["root"]
            walk(nested, (base / uri).parent, here)
            return
        if uri is not None:
            glb = Glb((base / uri).read_bytes())
            (primitive,) = glb.json["meshes"][0]["primitives"]
            places = glb.positions(primitive)
            assert (places >= low - 1e-6).all()
            assert (places <= high + 1e-6).all()
            node = uri.rsplit("/", 1)[-1].removesuffix(".glb")
            assert node not in found
            found[node] = places + offset, glb.attributes(primitive)
        for child in tile.get("children", []):
            walk(child, base, here)

    walk(root, folder, None)
    return found


@pytest.mark.parametrize("ids", ["dense", "sparse"])
def test_each_point_is_in_one_tile_where_it_lies(tmp_path, ids):
    n = 120_000
    given = np.arange(n)[::-1] * 1_000_003 + 5 if ids == "sparse" else None
    path = make_database(tmp_path, n, given)
    with spatialq.connect(str(path), read_only=True) as con:
        seen = []
        tiles = write_tiles(con, "points", n, tmp_path_folder(tmp_path), seen.append)
        table = con.execute("SELECT point_id, x, y, z, red, green, blue FROM points").fetchnumpy()
    assert seen[-1] == 1
    assert seen == sorted(seen)
    order = np.argsort(table["point_id"])
    by_id = {name: values[order] for name, values in table.items()}
    found = tiles_of(tiles.folder)
    assert len(found) >= 5
    every = []
    for node, (places, attributes) in found.items():
        own = np.asarray(tiles.ids_of(node))
        every.append(own)
        at = np.searchsorted(by_id["point_id"], own)
        assert (by_id["point_id"][at] == own).all()
        true = np.stack([by_id[axis][at] for axis in "xyz"], axis=1)
        steps = np.ptp(true, axis=0) / 65535
        assert (np.abs(places - true) <= np.maximum(steps, STEP) / 2 + 1e-6).all()
        red = by_id["red"][at] / 65535  # IEC 61966-2-1
        linear = np.where(red <= 0.04045, red / 12.92, ((red + 0.055) / 1.055) ** 2.4)
        assert np.abs(attributes["COLOR_0"][:, 0] - linear).max() < 1e-4
    assert np.array_equal(np.sort(np.concatenate(every)), by_id["point_id"])
    assert sum(map(len, every)) == n == tiles.about["points"]
    assert set(found) <= set(tiles.about["names"])


def tmp_path_folder(tmp_path, name="tiles"):
    folder = tmp_path / name
    folder.mkdir()
    return folder


def small(con, rows):
    con.execute("CREATE OR REPLACE TABLE p (point_id BIGINT, x DOUBLE, y DOUBLE, z DOUBLE)")
    con.executemany("INSERT INTO p VALUES (?, ?, ?, ?)", rows)
    return len(rows)


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([(7, 1.0, 2.0, 3.0)], [7]),
        ([(k, 1.0, 2.0, 3.0) for k in range(5)], [0, 1, 2, 3, 4]),
        ([(0, 0.0, 0.0, 0.0), (1, float("nan"), 0.0, 0.0), (2, 9e5, 9e5, 1.0)], [0, 2]),
        ([(0, 0.0, 0.0, 0.0), (1, float("inf"), 0.0, 0.0), (2, 1.0, None, 1.0)], [0]),
    ],
    ids=["one", "in one place", "nan", "infinite and NULL"],
)
def test_few_and_odd_points(tmp_path, rows, kept):
    with spatialq.connect() as con:
        n = small(con, rows)
        tiles = write_tiles(con, "p", n, tmp_path_folder(tmp_path), lambda _: None)
        first = write_preview(con, "p", n, tmp_path_folder(tmp_path, "preview"))
    found = tiles_of(tiles.folder)
    assert sorted(each for node in found for each in tiles.ids_of(node)) == kept
    assert "COLOR_0" not in next(iter(found.values()))[1]
    assert sorted(first.ids_of("preview")) == kept


def test_a_table_without_finite_points_is_refused(tmp_path):
    with spatialq.connect() as con:
        n = small(con, [(0, float("nan"), 0.0, 0.0)])
        with pytest.raises(ValueError, match="view: table p has no point with finite coordinates"):
            write_tiles(con, "p", n, tmp_path_folder(tmp_path), lambda _: None)


def test_the_first_picture_is_of_some_of_the_points(tmp_path):
    n = 2 * PREVIEW_POINTS + 10
    with spatialq.connect(str(make_database(tmp_path, n)), read_only=True) as con:
        tiles = write_preview(con, "points", n, tmp_path_folder(tmp_path))
        ((node, (places, _)),) = tiles_of(tiles.folder).items()
        ids = np.asarray(Tiles(tiles.folder).ids_of(node))
        table = con.execute("SELECT x, y, z FROM points ORDER BY point_id").fetchnumpy()
    assert node == "preview"
    assert n / 3 - 1 <= len(ids) == len(places) <= PREVIEW_POINTS
    true = np.stack([table[axis][ids] for axis in "xyz"], axis=1)
    assert np.abs(places - true).max() < np.ptp(true, axis=0).max() / 65535
