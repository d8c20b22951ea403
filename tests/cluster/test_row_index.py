"""Runs of rows: of a plain file, only the parts near a tile are decoded."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spatialq import cluster
from spatialq.cluster import driver
from spatialq.cluster.row_index import MAX_RUNS, Boxes, ranges_in, rows_of_run
from spatialq.cluster.serial_executor import SerialExecutor
from spatialq.cluster.survey import Survey
from spatialq.io.las.laz import Laszip
from spatialq.io.las.source import LasSource
from tests.cluster import surveys

N = 130_000
ENDS = st.floats(-1e7, 1e7)


@given(st.integers(0, 1 << 30), st.integers(1, 300), st.integers(1, 40), ENDS, st.floats(0, 1e4))
def test_no_point_in_a_box_is_left_out(seed, n, rows, west, width):
    """By brute force, of rows some of which are no points, in any number of parts."""
    rng = np.random.default_rng(seed)
    x, y = (np.round(west + np.sort(rng.uniform(0, width, n)), rng.integers(0, 4)) for _ in "xy")
    ids = np.flatnonzero(rng.uniform(size=n) < 0.8)
    if ids.size == 0:
        return
    boxes = Boxes(rows, n)
    for part in np.array_split(ids, 3):
        boxes.add(part, x[part], y[part])
    extent = [x[ids].min(), y[ids].min(), x[ids].max(), y[ids].max()]
    runs = {"rows": rows, "extent": extent, "boxes": boxes.text()}
    sides = np.sort(rng.choice(np.concatenate([x[ids], y[ids]]), (2, 2)), axis=0)
    box = (sides[0, 0], sides[0, 1], sides[1, 0], sides[1, 1])
    inside = (x >= box[0]) & (x <= box[2]) & (y >= box[1]) & (y <= box[3])
    chosen = np.zeros(n, np.bool_)
    for first, stop in ranges_in(runs, box):
        chosen[first:stop] = True
    assert chosen[ids][inside[ids]].all()
    whole = ranges_in(runs, tuple(extent))
    assert {first // rows for first, _ in whole} >= set((ids // rows).tolist())
    assert ranges_in(runs, (extent[2] + 1, *extent[1:2], extent[2] + 2, extent[3])) == []


@pytest.mark.parametrize(("rows", "expected"), [(50_000 * 31, 50_000), (50_000 * 33, 100_000)])
def test_a_file_has_few_runs(rows, expected):
    run = rows_of_run(SimpleNamespace(rows_of_part=50_000, rows=rows))
    assert run == expected
    assert -(-rows // run) <= MAX_RUNS


@pytest.fixture
def decoded(monkeypatch):
    rows = []
    decode = Laszip.decode

    def counted(self, raw, chunks, selection, records):
        rows.append(sum(chunk.rows for chunk in chunks))
        decode(self, raw, chunks, selection, records)

    monkeypatch.setattr(Laszip, "decode", counted)
    return rows


def strips(folder):
    """Write two files side by side, sorted from south to north, of three chunks each."""
    rng = np.random.default_rng(3)
    for k in range(2):
        x = np.round(rng.uniform(100.0 * k, 100.0 * (k + 1), N), 2)
        y = np.round(np.sort(rng.uniform(0.0, 300.0, N)), 2)
        z = np.round(x / 50 + rng.uniform(0.0, 0.5, N), 2)
        surveys.write_tile(folder / f"{k}.laz", x, y, z)


@pytest.mark.parametrize("ending", ["laz", "las"])
def test_rows_of_a_file(tmp_path, decoded, ending):
    x = np.arange(N) / 100
    surveys.write_tile(tmp_path / f"a.{ending}", x, x, x)
    source = LasSource(tmp_path / f"a.{ending}")
    part = source.rows_of_part
    assert part == {"laz": 50_000, "las": 122_880}[ending]
    for ranges in ([(0, 1)], [(part - 1, part)], [(3, 5), (part, part + 1)], [(N - 1, N)], []):
        found = source.of_rows(ranges)
        ids = np.concatenate(
            [
                np.empty(0, np.int64),
                *(each["point_id"] for each in found.batches(["point_id", "x"])),
            ]
        )
        parts = sorted({row // part for first, stop in ranges for row in (first, stop - 1)})
        expected = [np.arange(k * part, min((k + 1) * part, N)) for k in parts]
        assert np.array_equal(ids, np.concatenate([np.empty(0, np.int64), *expected]))
        assert found.is_whole == (ids.size == N)
    assert not decoded or max(decoded) < N


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [None, [20.0, 10.0, 180.0, 290.0]])
def test_a_tile_decodes_what_is_near(tmp_path, monkeypatch, decoded, bounds):
    monkeypatch.setattr(driver, "executor_of", lambda *_, **__: SerialExecutor())
    tiles = tmp_path / "tiles"
    tiles.mkdir()
    strips(tiles)
    options = surveys.QUIET | {"window_size": 5.0, "cell_size": 5.0}
    more = {} if bounds is None else {"bounds": bounds}
    of_tiles = []
    for folder in ("near", "all"):
        decoded.clear()
        cluster.run("owm_ground", str(tiles), tmp_path / folder, tile_size=60.0, **options, **more)
        of_tiles.append(sum(decoded) - 2 * N)  # which the survey reads
        monkeypatch.setattr(Survey, "runs", lambda *_: None)
    literal = {"window_size": 5.0, "cell_size": 5.0} | {k: repr(v) for k, v in more.items()}
    expected = surveys.in_one_piece(tiles, **literal)
    assert surveys.of_job(tmp_path / "near") == expected == surveys.of_job(tmp_path / "all")
    assert of_tiles[0] < 0.7 * of_tiles[1]
