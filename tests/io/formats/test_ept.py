"""Entwine Point Tiles: folders made here from the description of the format."""

import json

import laspy
import numpy as np
import pyarrow as pa
import pytest

import spatialq
from spatialq.errors import FileError
from spatialq.io.ept import EptSource

SCHEMA = [
    {"name": "X", "type": "signed", "size": 4, "scale": 0.01, "offset": 500000},
    {"name": "Y", "type": "signed", "size": 4, "scale": 0.01, "offset": 5000000},
    {"name": "Z", "type": "signed", "size": 4, "scale": 0.01, "offset": 0},
    {"name": "Intensity", "type": "unsigned", "size": 2},
    {"name": "Classification", "type": "unsigned", "size": 1},
    {"name": "GpsTime", "type": "float", "size": 8},
]
RECORD = np.dtype(
    [("X", "<i4"), ("Y", "<i4"), ("Z", "<i4"), ("i", "<u2"), ("c", "u1"), ("t", "<f8")]
)


def write_ept(folder, kind, n=100):
    """A cube of side 64 with a root, four children and a grandchild on a page of its own."""
    (folder / "ept-data").mkdir(parents=True)
    (folder / "ept-hierarchy").mkdir()
    about = {
        "bounds": [500000, 5000000, 0, 500064, 5000064, 64],
        "boundsConforming": [500000, 5000000, 0, 500064, 5000064, 32],
        "dataType": kind, "hierarchyType": "json", "points": 6 * n, "schema": SCHEMA,
        "span": 16, "srs": {"authority": "EPSG", "horizontal": "25832"}, "version": "1.1.0",
    }  # fmt: skip
    (folder / "ept.json").write_text(json.dumps(about))
    keys = [(0, 0, 0, 0), *((1, x, y, 0) for x in (0, 1) for y in (0, 1)), (2, 3, 3, 1)]
    names = ["-".join(map(str, key)) for key in keys]
    page = dict.fromkeys(names[:5], n) | {names[5]: -1}
    (folder / "ept-hierarchy" / "0-0-0-0.json").write_text(json.dumps(page))
    (folder / "ept-hierarchy" / f"{names[5]}.json").write_text(json.dumps({names[5]: n}))
    random, parts = np.random.default_rng(1), []
    for (level, *cell), name in zip(keys, names, strict=True):
        side = 6400 >> level
        records = np.zeros(n, RECORD)
        for axis, k in zip("XYZ", cell, strict=True):
            records[axis] = random.integers(side * k, side * (k + 1), n)
        records["Z"] //= 2
        records["i"], records["c"] = random.integers(0, 65536, n), random.integers(0, 32, n)
        records["t"] = random.uniform(0, 1e6, n)
        write_node(folder / "ept-data" / name, kind, records)
        parts.append(records)
    return folder / "ept.json", np.concatenate(parts)


def write_node(path, kind, records):
    if kind == "binary":
        path.with_name(f"{path.name}.bin").write_bytes(records.tobytes())
    elif kind == "zstandard":
        raw = pa.compress(records.tobytes(), "zstd", asbytes=True)
        path.with_name(f"{path.name}.zst").write_bytes(raw)
    else:
        header = laspy.LasHeader(point_format=1, version="1.4")
        header.scales, header.offsets = [0.01] * 3, [500000, 5000000, 0]
        cloud = laspy.LasData(header)
        cloud.X, cloud.Y, cloud.Z = (records[axis] for axis in "XYZ")
        cloud.intensity, cloud.gps_time = records["i"], records["t"]
        cloud.classification = records["c"]
        cloud.write(path.with_name(f"{path.name}.laz"))


def expected(records):
    offsets = {"X": 500000, "Y": 5000000, "Z": 0}
    xyz = [records[axis] * 0.01 + offset for axis, offset in offsets.items()]
    return np.column_stack(
        [np.arange(len(records)), *xyz, records["i"], records["c"], records["t"]]
    )


COLUMNS = "point_id, x, y, z, intensity, classification, gps_time"


@pytest.mark.parametrize("kind", ["laszip", "binary", "zstandard"])
def test_all_points(tmp_path, kind):
    path, records = write_ept(tmp_path / "cloud", kind)
    with spatialq.connect() as con:
        found = con.sql(f"SELECT {COLUMNS} FROM read_points('{path}') ORDER BY 1").fetchall()
        np.testing.assert_array_equal(np.array(found, float), expected(records))
        view = spatialq.read_points(con, path, name="cloud")
        assert view.count() == 600
        con.execute("CREATE TABLE loaded AS FROM cloud")
        assert "25832" in (EptSource(path).crs or "")


@pytest.mark.parametrize("kind", ["laszip", "binary"])
def test_by_box_and_resolution(tmp_path, kind, monkeypatch):
    path, records = write_ept(tmp_path / "cloud", kind)
    rows = expected(records)
    bounds = [500000, 5000000, 500020, 5000025]
    inside = (rows[:, 1] <= bounds[2]) & (rows[:, 2] <= bounds[3])
    read, whole = [], EptSource.read_span
    monkeypatch.setattr(
        EptSource, "read_span", lambda *given: read.append(given[1].name) or whole(*given)
    )
    with spatialq.connect() as con:

        def ids(**given):
            named = "".join(f", {name} := {value}" for name, value in given.items())
            query = f"SELECT point_id FROM read_points('{path}'{named}) ORDER BY 1"
            return [row for (row,) in con.sql(query).fetchall()]

        assert ids(bounds=bounds) == rows[inside, 0].tolist()
        assert set(read) == {"0-0-0-0", "1-0-0-0"}
        assert ids(resolution=4) == list(range(100))
        assert ids(resolution=3.9) == list(range(500))
        assert ids(resolution=1.9) == list(range(600))
        assert ids(bounds=bounds, resolution=4) == rows[inside & (rows[:, 0] < 100), 0].tolist()


def test_commands_take_it(tmp_path):
    path, _ = write_ept(tmp_path / "cloud", "binary")
    done = spatialq.write_lod(path, tmp_path / "a.copc.laz", max_points=50, grid_size=8)
    assert done["points"] == 600
    assert laspy.read(tmp_path / "a.copc.laz").header.point_count == 600


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("ept.json", "{", "'ept.json' cannot be read"),
        ("ept.json", "[]", "'ept.json' is no JSON object"),
        ("ept.json", "{}", "its bounds, span or dataType is missing"),
        ("ept-hierarchy/0-0-0-0.json", '{"0-0-0-0": -5}', "node 0-0-0-0 has -5 points"),
        ("ept-hierarchy/0-0-0-0.json", '{"0-0-0": 5}', "there can be no node '0-0-0'"),
        ("ept-hierarchy/0-0-0-0.json", '{"1-2-0-0": 5}', "there can be no node '1-2-0-0'"),
        ("ept-hierarchy/0-0-0-0.json", '{"0-0-0-0": -1}', "is listed twice"),
        ("ept-hierarchy/0-0-0-0.json", '{"0-0-0-0": 5, "00-0-0-0": 5}', "no node '00-0-0-0'"),
        ("ept-hierarchy/0-0-0-0.json", '{"../ept": -1}', "there can be no node '../ept'"),
        ("ept-hierarchy/0-0-0-0.json", f'{{"{"9" * 5000}-0-0-0": 5}}', "there can be no node"),
        ("ept-hierarchy/0-0-0-0.json", '{"1-0-0-0": 5}', "node 1-0-0-0 of its hierarchy has no"),
        ("ept-hierarchy/2-3-3-1.json", '{"1-0-0-0": 5}', "node 1-0-0-0 is listed twice"),
        (
            "ept-hierarchy/2-3-3-1.json",
            '{"2-3-3-1": -1}',
            "page 2-3-3-1 of its hierarchy is listed",
        ),
        ("ept-hierarchy/2-3-3-1.json", "", "'2-3-3-1.json' cannot be read"),
        ("ept-data/1-0-0-0.bin", "abc", "has 3 bytes of points, 2300 are promised"),
    ],
)
def test_damage_is_named(tmp_path, name, text, reason):
    path, _ = write_ept(tmp_path / "cloud", "binary")
    (tmp_path / "cloud" / name).write_text(text)
    with pytest.raises(FileError, match=reason):
        list(EptSource(path).batches(["x"]))


def test_a_missing_node(tmp_path):
    for kind, end in (("binary", "bin"), ("laszip", "laz")):
        path, _ = write_ept(tmp_path / kind, kind)
        (tmp_path / kind / "ept-data" / f"1-1-1-0.{end}").unlink()
        with pytest.raises(FileError, match="1-1-1-0"):
            list(EptSource(path).batches(["x"]))


def test_counts_beyond_memory(tmp_path):
    path, _ = write_ept(tmp_path / "cloud", "zstandard")
    (tmp_path / "cloud/ept-hierarchy/0-0-0-0.json").write_text('{"0-0-0-0": 1000000000000000000}')
    source = EptSource(path)
    assert source.warnings == [
        "promises 600 points, its hierarchy has 1000000000000000000",
    ]
    with pytest.raises(FileError, match="node 0-0-0-0 cannot be read"):
        list(source.batches(["x"]))


@pytest.mark.parametrize("folder", ["ept-data", "ept-hierarchy"])
def test_links_to_other_folders(tmp_path, folder):
    path, _ = write_ept(tmp_path / "cloud", "binary")
    linked = tmp_path / "linked"
    linked.symlink_to(tmp_path / "cloud")
    assert EptSource(linked / "ept.json").rows == 600  # the folder itself may be a link
    (tmp_path / "cloud" / folder).rename(tmp_path / "elsewhere")
    (tmp_path / "cloud" / folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match=f"names '{folder}/0-0-0-0.*', which is a link to"):
        list(EptSource(path).batches(["x"]))
