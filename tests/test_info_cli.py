"""`spatialq info`, compared with laspy, rasterio and IfcOpenShell."""

from collections import Counter

import ifcopenshell
import ifcopenshell.api.georeference
import laspy
import numpy as np
import pytest
import rasterio

from spatialq.workflows.places import EXTENT, readable

from .command_line import rows, spatialq_command
from .io.ifc_models import Builder
from .test_lengths_cli import write_floor


@pytest.mark.parametrize("point_format", [1, 7])
def test_info_of_a_cloud_is_what_laspy_finds(tmp_path, point_format):
    path = write_floor(tmp_path / "a.las", "EPSG:2222", 0.3048, 0.3048, point_format)
    cloud = laspy.read(path)
    rng = np.random.default_rng(3)
    cloud.classification[:] = rng.choice([2, 5, 6, 18], 6000)
    cloud.return_number[:] = rng.choice([1, 2, 3], 6000)
    cloud.write(tmp_path / "a.laz")
    (found,) = rows("info", tmp_path / "a.laz")
    x, y, z = (np.asarray(cloud[name]) for name in "xyz")
    assert found["rows"] == 6000
    assert found["zmin zmax"] == pytest.approx([z.min(), z.max()])
    assert found["xmin ymin xmax ymax"] == pytest.approx([x.min(), y.min(), x.max(), y.max()])
    assert found["density"] == pytest.approx(6000 / (np.ptp(x) * np.ptp(y) * 0.3048**2))
    assert (found["version"], found["point format"]) == ("1.4", point_format)
    assert found["scale"] == [1e-5] * 3
    for name, field in (("classes", "classification"), ("returns", "return_number")):
        counts = Counter(np.asarray(cloud[field]).tolist())
        assert found[name] == {str(value): counts[value] for value in sorted(counts)}


def test_info_of_a_cloud_without_points(tmp_path):
    header = laspy.LasHeader(point_format=6, version="1.4")
    laspy.LasData(header).write(tmp_path / "a.las")
    (found,) = rows("info", tmp_path / "a.las")
    assert (found["rows"], found["density"], found["zmin zmax"]) == (0, None, None)
    assert found["classes"] == found["returns"] == {}


def test_info_of_a_grid_is_what_rasterio_finds(tmp_path):
    z = np.random.default_rng(4).normal(100, 5, (30, 40)).astype(np.float32)
    z[:3] = -9999
    profile = {"driver": "GTiff", "width": 40, "height": 30, "count": 2, "dtype": z.dtype}
    place = rasterio.Affine(2, 0, 500000, 0, -3, 5600000)
    path = tmp_path / "a.tif"
    crs = "EPSG:25832"
    with rasterio.open(path, "w", crs=crs, transform=place, nodata=-9999, **profile) as file:
        file.write(np.stack([z, z]))
    (found,) = rows("info", path)
    with rasterio.open(path) as file:
        band = file.read(1, masked=True)
        assert found["zmin zmax"] == pytest.approx([band.min(), band.max()])
        assert found["cells with a value"] == band.count()
        assert found["xmin ymin xmax ymax"] == list(file.bounds)
        assert (found["bands"], found["nodata"]) == (file.count, file.nodata)
        assert found["cell size"] == [2, 3]
        assert found["columns x rows"] == [file.width, file.height]
        assert found["type"] == file.dtypes[0]


def test_info_of_a_model_is_what_ifcopenshell_finds(world):
    (found,) = rows("info", world.ifc)
    products = ifcopenshell.open(world.ifc).by_type("IfcProduct")
    counts = Counter(each.is_a() for each in products if each.Representation)
    assert found["products by class"] == counts
    assert found["products with geometry"] == counts.total()


def test_patterns_and_a_file_that_cannot_be_read(tmp_path):
    for name in "ab":
        write_floor(tmp_path / f"{name}.las")
    (tmp_path / "aa.las").write_bytes(b"no cloud")
    result = spatialq_command("info", tmp_path / "*.las", tmp_path / "none.tif")
    assert result.returncode == 1
    errors = result.stderr.splitlines()
    assert len(errors) == 2
    assert "aa.las" in errors[0]
    assert errors[1] == f"error: info: '{tmp_path / 'none.tif'}': there is no such file"
    for name in "ab":
        assert str(tmp_path / f"{name}.las") in result.stdout
    good = rows("info", tmp_path / "[ab].las")
    assert [each["path"] for each in good] == [str(tmp_path / f"{name}.las") for name in "ab"]


def test_what_can_be_described_is_said(tmp_path):
    path = tmp_path / "nodes.parquet"
    path.touch()
    result = spatialq_command("info", path)
    assert (result.returncode, result.stdout) == (1, "")
    assert "nodes.parquet': is of no known format: its name must end in one of" in result.stderr
    assert result.stderr.strip().endswith(".xyz, ept.json, metadata.json, tileset.json")


def test_coordinates_are_shown_as_they_were_written(tmp_path):
    header = laspy.LasHeader(point_format=0, version="1.2")
    header.scales = [0.01] * 3
    cloud = laspy.LasData(header)
    cloud.X, cloud.Y, cloud.Z = [204999392, 0], [126750119, 0], [22873, 0]
    cloud.write(tmp_path / "a.las")
    shown = spatialq_command("info", tmp_path / "a.las").stdout
    for text in ("2049993.92,", "1267501.19]", "228.73]"):
        assert text in shown


def test_a_storey_without_a_name_is_called_unnamed():
    place = dict.fromkeys(("georeference", *EXTENT))
    storeys = [{"name": None, "elevation": 0.0}, {"name": "", "elevation": 3.0}]
    storeys.append({"name": "attic", "elevation": None})
    said = readable({**place, "storeys": storeys})
    assert said["storeys"] == "unnamed: 0, unnamed: 3, attic: unknown"


def federation(tmp_path):
    """Two models of one place: one on the map with two storeys, one off it."""
    lower, upper = Builder(unit="millimetre"), Builder()
    lower.add("IfcWall", "wall", [lower.box((1.0, 2.0, 0.0), (4.0, 0.2, 2.5))])
    lower.storey_at("upper floor", 2.8)
    ifcopenshell.api.georeference.add_georeferencing(lower.model)
    ifcopenshell.api.georeference.edit_georeferencing(
        lower.model,
        projected_crs={"Name": "EPSG:25832"},
        coordinate_operation={"Eastings": 400.0, "Northings": 5.0, "OrthogonalHeight": 7.0},
    )
    upper.add("IfcSlab", "slab", [upper.box((0.0, 0.0, 2.8), (6.0, 5.0, 0.25))])
    return [lower.write(tmp_path / "lower.ifc"), upper.write(tmp_path / "upper.ifc")]


@pytest.mark.slow
def test_commands_say_where_models_lie(tmp_path):
    paths = federation(tmp_path)
    storeys = [
        [{"name": "upper floor", "elevation": 2.8}, {"name": "Ground floor", "elevation": None}],
        [{"name": "Ground floor", "elevation": None}],
    ]
    said = [
        rows("info", *paths),
        rows("load", *paths, "--database", tmp_path / "a.duckdb"),
        rows("clash", *paths)["models"],
    ]
    for found in said:
        assert [each["path"] for each in found] == [str(path) for path in paths]
        assert found[0]["xmin ymin xmax ymax"] == pytest.approx([1, 2, 5, 2.2], abs=1e-5)
        assert found[1]["zmin zmax"] == pytest.approx([2.8, 3.05], abs=1e-5)
        assert [each["storeys"] for each in found] == storeys
        assert found[0]["georeference"]["eastings"] == 400
        assert found[1]["georeference"] is None
    for command in (("info",), ("load", "-d", tmp_path / "b.duckdb"), ("clash",)):
        shown = " ".join(spatialq_command(*command, *paths).stdout.split())
        assert "upper floor: 2.8, Ground floor: unknown" in shown
        assert "1, 2, 5, 2.2" in shown
        assert "EPSG:25832" in shown
