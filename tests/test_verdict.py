"""From a scan and a model to a verdict on each element: the command and the Python call."""

import warnings

import ifcopenshell
import ifcopenshell.util.element
import laspy
import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pyproj
import pytest
from PIL import Image

import spatialq
from spatialq.data.meshes import Meshes
from spatialq.demo.scanner import Change, rooms, scan, stations_in
from spatialq.errors import FileWarning, PlacementWarning
from spatialq.export.coordinated import Element
from spatialq.export.coordinated_ifc import guid_of, write_coordinated_ifc
from spatialq.workflows.verdict import _is_near, write_verdict

from .command_line import rows as rows_of
from .command_line import spatialq_command
from .conftest import made_once

pytestmark = pytest.mark.slow  # as a whole

GREY = (200, 200, 200)
MOVED = "wall 0 1 0 along y", (0.03, 0.0, 0.0)
MISSING, HIDDEN = "column 0 0 0", "duct 0 0 0"


def building():
    """Three rooms that make an L: the meshes of their elements, and the names."""
    (meshes, names), (annex, more) = rooms(2, 1), rooms(1, 1)
    moved = annex.vertices + np.array([0.0, 4.2, 0.0])
    annex = Meshes(moved, annex.faces, annex.vertex_starts, annex.face_starts)
    return meshes.followed_by(annex), [*names, *(f"annex {name}" for name in more)]


def write_building(folder):
    """The rooms, one wall of which was built 30 mm off, and one column not at all."""
    meshes, names = building()
    elements = [
        Element(
            guid_of(name), _class_of(name), name, None, "ground", "rooms",
            meshes.vertices[slice(*meshes.vertex_starts[k : k + 2])],
            meshes.faces[slice(*meshes.face_starts[k : k + 2])],
            is_closed=True, colour=GREY, colour_name="grey",
        )
        for k, name in enumerate(names)
    ]  # fmt: skip
    write_coordinated_ifc(folder / "rooms.ifc", elements, "Rooms")
    stations = stations_in(meshes, 4)
    changes = {
        names.index(MOVED[0]): Change(MOVED[1]),
        names.index(MISSING): Change(is_missing=True),
    }
    found = scan(meshes, stations, changes=changes, beams=60_000)
    np.savetxt(folder / "stations.txt", stations)
    points = np.stack([found.x, found.y, found.z], axis=1)
    _write_cloud(folder / "scan.laz", points)
    turn = np.radians(37.0)
    c, s = np.cos(turn), np.sin(turn)
    _write_cloud(folder / "elsewhere.laz", points @ np.array([(c, s, 0), (-s, c, 0), (0, 0, 1)]) + [
        40.0, -25.0, 3.0
    ])  # fmt: skip


def _class_of(name):
    kinds = {"slab": "Slab", "base": "Slab", "wall": "Wall", "column": "Column", "door": "Door"}
    return f"Ifc{kinds.get(name.removeprefix('annex ').split()[0], 'Covering')}"


def _write_cloud(path, points, crs=None):
    cloud = laspy.LasData(laspy.LasHeader(point_format=6, version="1.4"))
    cloud.header.scales = [1e-4] * 3
    if crs is not None:
        cloud.header.add_crs(pyproj.CRS(crs))
    cloud.xyz = points
    cloud.write(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_once(tmp_path_factory, "verdict", write_building)


@pytest.fixture(scope="module")
def scanners(folder):
    return [tuple(map(float, each)) for each in np.loadtxt(folder / "stations.txt", ndmin=2)]


def by_name(rows):
    return {row["name"]: row for row in rows}


def require_right(rows):
    found = by_name(rows)
    assert found[MOVED[0]]["status"] == "displaced"
    assert found[MOVED[0]]["dx"] == pytest.approx(MOVED[1][0], abs=0.003)
    assert found[MISSING]["status"] == "not found"
    assert found[HIDDEN]["status"] in ("occluded", "no data")
    wrong = [n for n, row in found.items() if row["status"] in ("displaced", "not found")]
    assert sorted(wrong) == sorted([MOVED[0], MISSING])


def test_a_scan_in_place(folder, scanners):
    found = write_verdict(
        [folder / "scan.laz", folder / "rooms.ifc"], register="none", scanners=scanners
    )
    require_right(found["verdicts"])
    assert found["statuses"]["displaced"] == found["statuses"]["not found"] == 1
    assert sum(found["statuses"].values()) == found["elements"] == len(building()[1])


def test_a_matrix_places_the_scan(folder, scanners):
    turn = np.radians(-37.0)
    c, s = np.cos(turn), np.sin(turn)
    back = np.array([(c, -s, 0, 0), (s, c, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1.0)])
    back[:3, 3] = -back[:3, :3] @ [40.0, -25.0, 3.0]
    moved = (np.linalg.inv(back) @ np.c_[scanners, np.ones(len(scanners))].T)[:3].T
    found = write_verdict(
        [folder / "elsewhere.laz", folder / "rooms.ifc"], register=back.ravel(), scanners=moved
    )
    require_right(found["verdicts"])


def test_a_scan_that_lies_elsewhere_is_placed(folder):
    found = write_verdict([folder / "elsewhere.laz", folder / "rooms.ifc"])
    moved = by_name(found["verdicts"])[MOVED[0]]
    assert moved["status"] == "displaced"
    assert moved["dx"] == pytest.approx(0.03, abs=0.005)


def test_every_output(folder, scanners, tmp_path):
    names = ("v.xlsx", "v.csv", "v.json", "v.parquet", "v.laz", "v.bcf", "v.ifc", "v.png")
    outputs = [argument for name in names for argument in ("-o", tmp_path / name)]
    where = [argument for each in scanners
             for argument in ("--scanner", ",".join(map(str, each)))]  # fmt: skip
    result = spatialq_command(
        "verdict", folder / "scan.laz", folder / "rooms.ifc", "--register", "none", *where, *outputs
    )
    assert result.returncode == 0, result.stderr
    require_right(pq.read_table(tmp_path / "v.parquet").to_pylist())
    cloud, source = laspy.read(tmp_path / "v.laz"), laspy.read(folder / "scan.laz")
    assert len(cloud) == len(source)
    np.testing.assert_allclose(cloud.xyz, source.xyz, atol=1e-3)
    on_moved = np.abs(cloud.deviation - 0.03) < 0.01
    assert on_moved.sum() > 500
    assert (np.asarray(cloud.red)[on_moved] > np.asarray(cloud.green)[on_moved]).all()
    book = openpyxl.load_workbook(tmp_path / "v.xlsx")
    assert book.sheetnames == ["rows", "unmodelled"]
    header, *things = book["unmodelled"].iter_rows(values_only=True)
    assert header[:2] == ("cluster_id", "point_count")
    source_things = write_verdict([folder / "scan.laz", folder / "rooms.ifc"], register="none")
    assert [row[1] for row in things] == [
        each["point_count"] for each in source_things["unmodelled"]
    ]
    model = ifcopenshell.open(tmp_path / "v.ifc")
    sets = {each.Name: ifcopenshell.util.element.get_pset(each, "Verdict")
            for each in model.by_type("IfcElement")}  # fmt: skip
    assert sets[MISSING]["Status"] == "not found"
    assert sets[MOVED[0]]["Dx"] == pytest.approx(0.03, abs=0.003)
    with spatialq.connect() as con:
        topics = con.execute(f"SELECT title FROM read_bcf('{tmp_path / 'v.bcf'}')").fetchall()
    assert sorted(title.split(":")[1].split()[0] for (title,) in topics) == ["displaced", "not"]
    with Image.open(tmp_path / "v.png") as picture:
        assert picture.size == (1200, 900)


def test_what_is_printed(folder, scanners):
    where = [argument for each in scanners
             for argument in ("--scanner", ",".join(map(str, each)))]  # fmt: skip
    arguments = folder / "scan.laz", folder / "rooms.ifc", "--register", "none", *where
    result = spatialq_command("verdict", *arguments)
    assert result.returncode == 0, result.stderr
    assert MOVED[0] in result.stdout
    assert "not found" in result.stdout
    # what needs work comes first
    first, second = (result.stdout.index(name) for name in (MISSING, MOVED[0]))
    assert first < second < result.stdout.index(HIDDEN)
    (row,) = rows_of("verdict", *arguments)
    require_right(row["verdicts"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["rooms.ifc"], "verdict: files must be clouds and models, a point cloud among them"),
        (["scan.laz"], "verdict: files must be clouds and models, an IFC file among them"),
        (["scan.laz", "rooms.ifc", "--register", "1,2"],
         "verdict: --register must be 16 numbers with commas between, got '1,2'"),
        (["scan.laz", "rooms.ifc", "--register", ",".join(["2.0"] * 16)],
         "verdict: register must be 'auto', 'none' or the 16 numbers of a rigid movement"),
        (["scan.laz", "rooms.ifc", "--scanner", "1,2"],
         "verdict: --scanner must be 3 numbers with commas between, got '1,2'"),
        (["scan.laz", "rooms.ifc", "--scanner", "nan,0,0"],
         "verdict: scanners must be positions of three finite numbers each"),
        (["scan.laz", "rooms.ifc", "--crs", "EPSG:4326"],
         "verdict: 'scan.laz' is in WGS 84 (EPSG:4326), which is not projected"),
        (["scan.laz", "rooms.ifc", "-o", "v.txt"], "must end in one of"),
        (["scan.la*", "rooms.ifc", "-o", "scan.las"], "which the next run would read"),
        (["scan.laz", "room*.ifc", "-o", "rooms2.ifc"], "which the next run would read"),
        ([".", "-o", "v.ifc"], "which the next run would read"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(folder, arguments, sentence):
    result = spatialq_command("verdict", *arguments, cwd=folder)
    assert result.returncode == 1
    assert sentence in result.stderr


def test_positions_must_have_three_numbers(folder):
    files = [folder / "scan.laz", folder / "rooms.ifc"]
    for wrong in ([1.0, 2.0, 3.0], [(1.0, 2.0)], [("a", 0, 0)], 5):
        with pytest.raises(ValueError, match="verdict: scanners must be positions of three"):
            write_verdict(files, scanners=wrong)


def test_a_scan_without_points(folder, tmp_path):
    _write_cloud(tmp_path / "empty.laz", np.empty((0, 3)))
    with pytest.warns(FileWarning, match="the scan has no points: the scan is used where it lies"):
        found = write_verdict([tmp_path / "empty.laz", folder / "rooms.ifc"])
    assert found["statuses"] == {"no data": found["elements"]}


def test_a_scan_far_from_the_models_is_said(folder):
    files = [folder / "elsewhere.laz", folder / "rooms.ifc"]
    with pytest.warns(PlacementWarning, match="the scan has no point near the elements"):
        write_verdict(files, register="none")


def test_a_scanner_far_from_the_points_is_said(folder):
    files = [folder / "scan.laz", folder / "rooms.ifc"]
    with pytest.warns(FileWarning, match="scanner at 1000, 0, 0 is .* m from the points"):
        write_verdict(files, register="none", scanners=[(1.0, 1.0, 1.5), (1000.0, 0.0, 0.0)])


def test_a_scan_whose_unit_is_found_is_not_said_to_be_in_metres(folder, tmp_path):
    points = laspy.read(folder / "elsewhere.laz").xyz
    _write_cloud(tmp_path / "feet.laz", points / 0.3048)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = write_verdict(
            [tmp_path / "feet.laz", folder / "rooms.ifc"], tmp_path / "v.laz", tolerance=0.01
        )
    assert found["sentence"].endswith("its unit is feet")
    assert by_name(found["verdicts"])[MOVED[0]]["dx"] == pytest.approx(0.03, abs=0.005)
    moved = laspy.read(tmp_path / "v.laz").xyz
    matrix = np.reshape(found["matrix"], (4, 4))
    wanted = laspy.read(tmp_path / "feet.laz").xyz @ matrix[:3, :3].T + matrix[:3, 3]
    np.testing.assert_allclose(moved, wanted, atol=1e-4)


def test_feet_across_and_metres_up(folder, tmp_path):
    points = laspy.read(folder / "elsewhere.laz").xyz
    foot = 1200 / 3937
    _write_cloud(tmp_path / "mixed.laz", points / [foot, foot, 1], "EPSG:2263+5703")
    found = write_verdict([tmp_path / "mixed.laz", folder / "rooms.ifc"])
    moved = by_name(found["verdicts"])[MOVED[0]]
    assert moved["status"] == "displaced"
    assert moved["dx"] == pytest.approx(0.03, abs=0.005)


def test_of_places_in_feet_the_own_one_is_meant(folder):
    corners = np.array([(0.0, 0.0, 0.0), (30.0, 20.0, 10.0)]).T
    to_metres = np.diag([0.3048, 0.3048, 0.3048, 1.0])
    assert _is_near(to_metres, corners, 0.3048)
    assert not _is_near(to_metres, corners, 1.0)


def test_a_folder_may_hold_topics(folder, tmp_path):
    for name in ("scan.laz", "rooms.ifc"):
        (tmp_path / name).symlink_to(folder / name)
    for _ in range(2):
        found = write_verdict([tmp_path], tmp_path / "v.bcf", register="none")
    assert found["elements"] == len(building()[1])


@pytest.mark.parametrize(
    "option", [{"faces": True}, {"unit": 0.3048}, {"scanner": [1.0, 2.0, 3.0]}]
)
def test_options_that_would_change_the_rows_are_refused(folder, option):
    files = [folder / "scan.laz", folder / "rooms.ifc"]
    with pytest.raises(ValueError, match=f"verdict: no option '{next(iter(option))}'; there is "):
        write_verdict(files, register="none", **option)


def test_one_file_is_one_file(folder):
    with pytest.raises(ValueError, match="verdict: files must be clouds and models"):
        write_verdict(str(folder / "scan.laz"))
