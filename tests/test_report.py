"""`spatialq report`: faults planted in a delivery of tiles are told, and nothing else."""

import json
import re
import struct

import duckdb
import laspy
import numpy as np
import pyproj
import pytest

import spatialq
from spatialq.errors import FileError, FileWarning
from spatialq.workflows import survey

from .command_line import spatialq_command

SIDE, DENSITY = 60.0, 4.0
"""Metres of a tile, and points per square metre of a strip."""
WEST, SOUTH = 500_000.0, 5_600_000.0
STRIPS = {1: (0.0, 48.0), 2: (36.0, 84.0), 3: (72.0, 120.0)}
"""From where to where strips go in y: each overlaps with the next one by 12 m."""
SHIFT = 0.12
HOLE = (90.0, 24.0, 10.0)
"""Centre and radius of an area without points."""


def terrain(x, y):
    """Heights of hills that have a slope of 8 degrees at most."""
    return 200 + 0.05 * x + 2 * np.sin(x / 25) + 1.5 * np.cos(y / 30)


def strips(seed=0, unit=1.0):
    """Points of three strips: x, y, z, number of the strip, time; the third one is too high."""
    rng = np.random.default_rng(seed)
    found = []
    for number, (low, high) in STRIPS.items():
        n = int(2 * SIDE * (high - low) * DENSITY)
        x, y = rng.uniform(0, 2 * SIDE, n), rng.uniform(low, high, n)
        z = terrain(x, y) + rng.normal(0, 0.02, n) + (SHIFT if number == 3 else 0.0)
        time = 1000.0 * number + np.sort(rng.uniform(0, 50, n))
        found.append(np.column_stack([x, y, z, np.full(n, number), time]))
    points = np.concatenate(found)
    x, y, radius = HOLE
    points = points[np.hypot(points[:, 0] - x, points[:, 1] - y) > radius]
    points[:, :3] /= unit
    return points


def write(path, points, *, crs="EPSG:25832", unit=1.0, version="1.4", point_format=6,
          corner=(WEST, SOUTH), scale=0.001, **columns):  # fmt: skip
    header = laspy.LasHeader(point_format=point_format, version=version)
    west, south = np.divide(corner, unit)
    header.scales, header.offsets = [scale, scale, 0.001], [west, south, 0]
    if crs:
        header.add_crs(pyproj.CRS(crs))
    cloud = laspy.LasData(header)
    cloud.x, cloud.y = points[:, 0] + west, points[:, 1] + south
    cloud.z, cloud.point_source_id, cloud.gps_time = points[:, 2:5].T
    cloud.return_number = cloud.number_of_returns = np.ones(len(points), np.uint8)
    cloud.intensity = np.arange(len(points)) % 1000
    cloud.classification = np.where(np.arange(len(points)) % 4, 2, 1)
    for name, values in columns.items():
        cloud[name] = values
    cloud.write(path)


def occupied(points, cell, unit=1.0):
    """Give the cells that have a point, whose coordinates are whole millimetres of the unit."""
    places = np.round(points[:, :2], 3) + np.divide((WEST, SOUTH), unit)
    return np.unique(np.floor(places / cell), axis=0)


def tiles(folder, points, **options):
    """Write four tiles; of a point at a border the upper one has it."""
    side = SIDE / options.get("unit", 1.0)
    for i in range(2):
        for j in range(2):
            mine = (points[:, 0] // side == i) & (points[:, 1] // side == j)
            write(folder / f"{i}{j}.laz", points[mine], **options)


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """The report on tiles in which nothing is wrong but the third strip and the hole."""
    folder = tmp_path_factory.mktemp("clean")
    points = strips()
    tiles(folder, points)
    return points, spatialq.write_report(folder)


def test_a_strip_that_lies_too_high(clean):
    _, report = clean
    pairs = {(row["a"], row["b"]): row for row in report["strip_pairs"]}
    assert set(pairs) == {(1, 2), (2, 3)}
    # 16 points of each strip in a cell of 2 m, with 20 mm of noise: 7 mm in each difference
    assert pairs[1, 2]["median"] == pytest.approx(0, abs=0.002)
    assert pairs[1, 2]["rms"] == pytest.approx(0.02 * np.sqrt(2 / 16), rel=0.25)
    assert pairs[2, 3]["median"] == pytest.approx(-SHIFT, abs=0.002)
    offsets = {row["strip"]: row["offset"] for row in report["strips"]}
    assert [offsets[k] for k in (1, 2, 3)] == pytest.approx([0, 0, SHIFT], abs=0.003)
    assert all(row["precision"] == pytest.approx(0.02, rel=0.05) for row in report["strips"])
    (sentence,) = [each for each in report["odd"] if "trip" in each]
    assert re.fullmatch(
        r"Strip 3 lies 0\.1[12]\d m above the strips that it overlaps with\.", sentence
    )


def test_a_hole(clean):
    points, report = clean
    assert report["cell_size"] == 2.0
    (hole,) = report["density"]["holes"]
    assert report["density"]["hole_count"] == 1
    x, y, _ = HOLE
    assert (hole["x"] - WEST, hole["y"] - SOUTH) == pytest.approx((x, y), abs=1.0)
    cells = occupied(points, 2.0)
    assert report["density"]["area"] == 4.0 * len(cells)
    inside = (cells < np.add((WEST, SOUTH), 2 * SIDE) / 2).all(axis=1)
    assert hole["area"] == 4.0 * (60 * 60 - inside.sum())
    assert report["density"]["mean"] == pytest.approx(len(points) / (4 * len(cells)))
    assert len([each for each in report["odd"] if "hole" in each]) == 1


def test_nothing_else_is_odd(clean):
    points, report = clean
    assert len(report["odd"]) == 2  # the strip and the hole
    assert report["points"] == len(points)
    assert report["overlaps"] == []
    assert report["crs"][0]["crs"] == "ETRS89 / UTM zone 32N (EPSG:25832)"
    assert {row["class"]: row["points"] for row in report["classes"]} == {
        1: sum(row["points"] // 4 + (row["points"] % 4 > 0) for row in report["files"]),
        2: sum(row["points"] - row["points"] // 4 - (row["points"] % 4 > 0)
               for row in report["files"]),
    }  # fmt: skip
    assert report["returns"] == [{"return": 1, "of_returns": 1, "points": len(points)}]
    assert report["ground"]["share"] == pytest.approx(0.75, abs=0.001)
    first = report["files"][0]
    mine = points[(points[:, 0] < SIDE) & (points[:, 1] < SIDE)]
    assert first["points"] == len(mine)
    assert first["strips"] == [1, 2]
    assert first["intensity"] == [0, 999]
    assert first["gps_time"] == [mine[:, 4].min(), mine[:, 4].max()]
    assert first["xmin"] == pytest.approx(WEST + mine[:, 0].min(), abs=0.001)
    assert first["format"] == "LAZ 1.4, point format 6"


def test_parts_of_files_give_the_same(clean, tmp_path, monkeypatch):
    points, report = clean
    tiles(tmp_path, points)
    monkeypatch.setattr(survey, "ROWS", 1)  # a query for each batch
    again = spatialq.write_report(tmp_path, memory="200MB")
    for name in ("points", "classes", "returns", "cell_size"):
        assert again[name] == report[name]
    for one, other in zip(again["strip_pairs"], report["strip_pairs"], strict=True):
        assert one == pytest.approx(other, abs=1e-9)


@pytest.fixture
def faulty(tmp_path):
    """Tiles with points that repeat others, in another CRS, and with a wrong box."""
    points = strips()
    tiles(tmp_path, points)
    first = points[(points[:, 0] < SIDE) & (points[:, 1] < SIDE)]
    second = points[(points[:, 0] < SIDE) & (points[:, 1] >= SIDE)]
    write(tmp_path / "00.laz", np.concatenate([first, first[:57]]))
    write(tmp_path / "01.laz", np.concatenate([second, first[100:131]]))
    other = points[(points[:, 0] >= SIDE) & (points[:, 1] >= SIDE)]
    write(tmp_path / "11.laz", other, crs="EPSG:25833", version="1.2", point_format=1)
    raw = bytearray((tmp_path / "10.laz").read_bytes())
    xmax, xmin = struct.unpack_from("<2d", raw, 179)
    struct.pack_into("<d", raw, 179, xmax - 10.0)
    (tmp_path / "10.laz").write_bytes(raw)
    mine = points[(points[:, 0] >= SIDE) & (points[:, 1] < SIDE)]
    x = np.round(mine[:, 0], 3) + WEST
    assert xmin == pytest.approx(x.min())
    return tmp_path, int((x > xmax - 10.0 + 0.0015).sum())


@pytest.fixture
def reported(faulty):
    folder, outside = faulty
    with pytest.warns(FileWarning, match="outside the header's"):
        report = spatialq.write_report(folder, [folder.parent / "r.html", folder.parent / "r.json"])
    return folder, outside, report


def test_planted_faults(reported):
    folder, outside, report = reported
    files = {row["file"].rpartition("/")[2]: row for row in report["files"]}
    assert {name: row["duplicates"] for name, row in files.items()} == {
        "00.laz": 57, "01.laz": 0, "10.laz": 0, "11.laz": 0,
    }  # fmt: skip
    assert [files[name]["outside"] for name in sorted(files)] == [0, 0, outside, 0]
    (overlap,) = report["overlaps"]
    assert (overlap["a"], overlap["b"]) == (str(folder / "00.laz"), str(folder / "01.laz"))
    assert overlap["duplicates"] == 31
    said = "\n".join(report["odd"])
    assert "'00.laz': 57 points (" in said
    assert "'00.laz', '01.laz' have 31 points in common, at the same place and time." in said
    assert f"'10.laz': {outside:,} of " in said
    assert "'11.laz': the CRS ETRS89 / UTM zone 33N (EPSG:25833), where most" in said
    assert "LAZ 1.2, point format 1: '11.laz'" in said
    assert {row["crs"]: len(row["files"]) for row in report["crs"]} == {
        "ETRS89 / UTM zone 32N (EPSG:25832)": 3, "ETRS89 / UTM zone 33N (EPSG:25833)": 1,
    }  # fmt: skip


def test_the_page_and_the_json(reported):
    folder, _, report = reported
    page = (folder.parent / "r.html").read_text("utf-8")
    for each in report["odd"]:
        assert each.replace("'", "&#x27;") in page
    assert page.count("data:image/png;base64,") == 2  # density and strips
    assert "://" not in re.sub(r"data:[^\"]*", "", page)
    assert json.loads((folder.parent / "r.json").read_text("utf-8")) == report
    query = f"SELECT unnest(files, recursive := true) FROM '{folder.parent / 'r.json'}'"
    with duckdb.connect() as con:
        assert len(con.sql(query).fetchall()) == 4


def test_tiles_that_overlap(tmp_path):
    points = strips()
    for name, low, high in (("a", 0, 66), ("b", 54, 120)):
        mine = points[(points[:, 0] >= low) & (points[:, 0] < high)]
        if name == "b":
            mine = np.add(mine, [0, 0, 0.3, 0, 0.5])  # another survey, 0.3 m higher
        write(tmp_path / f"{name}.laz", mine)
    (overlap,) = spatialq.write_report(tmp_path)["overlaps"]
    assert overlap["area"] == pytest.approx(12 * 120, rel=0.02)
    assert overlap["duplicates"] == 0
    assert overlap["median"] == pytest.approx(-0.3, abs=0.01)


def test_feet(tmp_path):
    foot = 1200 / 3937
    points = strips(unit=foot)
    tiles(tmp_path, points, unit=foot, crs="EPSG:2903")
    report = spatialq.write_report(tmp_path)
    assert (report["unit"], report["unit_of_height"]) == ("ftUS", "ftUS")
    cells = occupied(points, report["cell_size"], foot)
    area = len(cells) * (report["cell_size"] * foot) ** 2
    assert report["density"]["mean"] == pytest.approx(len(points) / area, rel=1e-3)
    offsets = {row["strip"]: row["offset"] for row in report["strips"]}
    assert offsets[3] == pytest.approx(SHIFT / foot, abs=0.01)
    assert any("above the strips" in each and "ftUS" in each for each in report["odd"])


def test_files_are_strips_where_nothing_else_tells_them_apart(tmp_path):
    points = strips()
    for number in STRIPS:
        mine = points[points[:, 3] == number]
        mine[:, 3] = 0
        write(tmp_path / f"line{number}.laz", mine)
    report = spatialq.write_report(tmp_path)
    assert report["strips_are"] == "files"
    offsets = {row["strip"]: row["offset"] for row in report["strips"]}
    assert offsets[str(tmp_path / "line3.laz")] == pytest.approx(SHIFT, abs=0.003)
    assert any(each.startswith("'line3.laz' lies 0.1") for each in report["odd"])


def test_degrees(tmp_path):
    points = strips() * [1e-5, 1e-5, 1, 1, 1]
    write(tmp_path / "a.laz", points, crs="EPSG:4326", corner=(7, 50), scale=1e-7)
    report = spatialq.write_report(tmp_path, tmp_path.parent / "degrees.html")
    assert report["density"] is None
    assert report["strip_pairs"] == report["overlaps"] == []
    assert any("in degrees" in each for each in report["odd"])


def test_other_formats_and_attributes(tmp_path):
    rng = np.random.default_rng(3)
    lines = "".join(f"{x:.3f} {y:.3f} {z:.3f}\n" for x, y, z in rng.uniform(0, 50, (5000, 3)))
    (tmp_path / "a.xyz").write_text(lines)
    points = strips()[:5000] * [0.1, 0.1, 1, 0, 0]
    colours = {"red": np.full(5000, 255), "green": np.zeros(5000), "blue": np.zeros(5000)}
    numbers = {"classification": np.full(5000, 30), "return_number": np.zeros(5000, int)}
    write(tmp_path / "b.laz", points, crs=None, point_format=7, intensity=np.zeros(5000),
          **numbers, **colours)  # fmt: skip
    report = spatialq.write_report(tmp_path)
    said = "\n".join(report["odd"])
    for part in ("No file names a CRS", "No point has a point_source_id",
                 "intensity of all points is 0", "GPS time of all points is 0", "colours go to 255",
                 "5,000 points with a return number of 0", "list: 30"):  # fmt: skip
        assert part in said, part
    assert report["files"][0]["format"] == "text"


def test_columns_that_are_none_of_las(tmp_path):
    """Text, fractions and NaN in columns with the names of LAS."""
    rng = np.random.default_rng(4)
    rows = [f"{x:.2f},{y:.2f},1.0,{k % 2}.5,{'a' if k % 2 else 2},nan\n"
            for k, (x, y) in enumerate(rng.uniform(0, 20, (500, 2)))]  # fmt: skip
    text = "x,y,z,intensity,classification,gps_time\n" + "".join(rows)
    (tmp_path / "a.csv").write_text(text)
    report = spatialq.write_report(tmp_path / "a.csv", tmp_path / "r.json")
    assert report["classes"] == [{"class": 2, "points": 250}]
    assert report["files"][0]["intensity"] == [0.5, 1.5]
    assert report["files"][0]["gps_time"] is None


def test_a_crs_for_files_without_one(tmp_path):
    tiles(tmp_path, strips()[:1000], crs=None)
    report = spatialq.write_report(tmp_path, crs="EPSG:25832")
    assert report["crs"][0]["crs"] == "ETRS89 / UTM zone 32N (EPSG:25832)"


def test_wrong_arguments(clean, tmp_path):
    write(tmp_path / "a.laz", strips()[:100])
    with pytest.raises(
        ValueError, match=r"report: .*\.pdf.* must end in one of \.html, \.htm, \.json"
    ):
        spatialq.write_report(tmp_path, tmp_path / "a.pdf")
    with pytest.raises(ValueError, match="report: override_crs needs crs"):
        spatialq.write_report(tmp_path, override_crs=True)
    write(tmp_path / "empty.laz", strips()[:0])
    with pytest.raises(ValueError, match=r"report: a report needs points, '.*empty\.laz' has none"):
        spatialq.write_report(tmp_path / "empty.laz")


def test_files_that_cannot_be_read(tmp_path):
    """The others are reported as if they had come alone; nothing of a damaged file is counted."""
    points = strips()
    tiles(tmp_path, points)
    expected = spatialq.write_report([tmp_path / "00.laz", tmp_path / "11.laz"])
    (tmp_path / "01.laz").write_bytes(b"no cloud")
    whole = (tmp_path / "10.laz").read_bytes()
    (tmp_path / "10.laz").write_bytes(whole[: len(whole) // 2] + bytes(len(whole) // 2))
    page = tmp_path.parent / "d.html"
    found = spatialq.write_report(tmp_path, page)
    reasons = {row["file"]: row["reason"] for row in found["unreadable"]}
    assert list(reasons) == [str(tmp_path / "01.laz"), str(tmp_path / "10.laz")]
    counted = ("file", "points", "duplicates", "strips", "classes", "xmin", "zmax")
    assert [[row[name] for name in counted] for row in found["files"]] == [
        [row[name] for name in counted] for row in expected["files"]
    ]
    assert [found[name] for name in ("classes", "crs")] == [expected["classes"], expected["crs"]]
    for pair, other in zip(found["strip_pairs"], expected["strip_pairs"], strict=True):
        assert pair == pytest.approx(other)
    first, second, *rest = found["odd"]
    assert first == f"'01.laz' cannot be read: {reasons[str(tmp_path / '01.laz')]}."
    assert second.startswith("'10.laz' cannot be read: ")
    assert rest == expected["odd"]
    assert "Files that cannot be read" in page.read_text("utf-8")
    done = spatialq_command("report", str(tmp_path), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["points"] == expected["points"]
    assert f"error: report: '{tmp_path / '01.laz'}': " in done.stderr
    with pytest.raises(FileError, match=r"report: .*01\.laz"):
        spatialq.write_report(tmp_path / "01.laz")
    with pytest.raises(FileError, match=r"report: .*10\.laz"):
        spatialq.write_report(tmp_path / "10.laz")


def test_the_command(tmp_path):
    points = strips()
    tiles(tmp_path, points)
    done = spatialq_command("report", str(tmp_path), "-o", str(tmp_path.parent / "c.html"))
    assert done.returncode == 0, done.stderr
    assert "Strip 3 lies 0.1" in done.stdout
    assert f"wrote {tmp_path.parent / 'c.html'}" in done.stderr
    told = json.loads(spatialq_command("report", str(tmp_path), "--json").stdout)
    assert told["points"] == len(points)
