"""Coordinate reference systems: units of their axes."""

import pyproj
import pytest

from spatialq.errors import CrsError
from spatialq.io import crs
from spatialq.io.reproject import reprojection

SURVEY_FOOT = 1200 / 3937


@pytest.mark.parametrize(
    ("code", "unit"),
    [("EPSG:2230+5703", SURVEY_FOOT), ("EPSG:25832+6360", 1.0), ("EPSG:2222+5703", 0.3048)],
)
def test_heights_get_the_unit_of_x_and_y(code, unit):
    mixed = pyproj.CRS(code)
    found = pyproj.CRS.from_json(crs.with_one_unit(mixed.to_json()))
    assert [axis.unit_conversion_factor for axis in found.axis_info] == pytest.approx([unit] * 3)
    assert found.sub_crs_list[0] == mixed.sub_crs_list[0]
    assert found.sub_crs_list[1].datum == mixed.sub_crs_list[1].datum
    stated = found.to_json_dict()
    assert ["id" in each for each in (stated, *stated["components"])] == [False, True, False]
    assert found.name.endswith(f"({mixed.axis_info[0].unit_name})")


def test_heights_of_a_system_of_three_dimensions_get_the_unit_of_x_and_y():
    system = pyproj.CRS("EPSG:2230").to_3d()
    assert [axis.unit_name for axis in system.axis_info] == ["US survey foot"] * 2 + ["metre"]
    found = pyproj.CRS.from_json(crs.with_one_unit(system.to_json()))
    assert [axis.unit_name for axis in found.axis_info] == ["US survey foot"] * 3


@pytest.mark.parametrize("code", ["EPSG:25832", "EPSG:25832+7837", "EPSG:2222+6360", "EPSG:4979"])
def test_other_systems_stay_as_they_are(code):
    same = pyproj.CRS(code).to_json()  # feet of two kinds count as one unit
    assert crs.with_one_unit(same) == same


INIT = "<foo> +proj=utm +zone=32 +ellps=GRS80 +type=crs <>\n"
PROJECTED = (
    'PROJCS["a",GEOGCS["b",DATUM["WGS_1984",SPHEROID["c",6378137,298.257223563]{grids}],'
    'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],PROJECTION["custom_proj4"],'
    'UNIT["m",1],EXTENSION["PROJ4","{proj}"]]'
)


@pytest.mark.parametrize(
    "text",
    [
        "+init={}:foo",
        "init={}:foo",
        "+proj=pipeline +step +init={}:foo",
        "+proj=longlat +ellps=GRS80 +nadgrids=@null,{} +type=crs",
        "+proj=longlat +ellps=GRS80 +geoidgrids=../a.gtx +vunits=m +type=crs",
        '+proj=longlat +ellps=GRS80 +nadgrids="@a b,{}" +type=crs',
        '+proj=pipeline +step +proj=hgridshift +grids="a ""b,{}"',
        "+proj=longlat +ellps=GRS80 +nadgrids=https://example.com/a.tif +type=crs",
        PROJECTED.format(grids="", proj="+proj=utm +init={}:foo"),
        PROJECTED.format(grids=',EXTENSION["PROJ4_GRIDS","{}"]', proj="+proj=utm +zone=32"),
    ],
)
def test_a_crs_that_names_a_file(tmp_path, text):
    file = tmp_path / "init"
    file.write_text(INIT)
    with pytest.raises(CrsError, match=r"names the file '.*only those in the folders of PROJ"):
        crs.from_text(text.format(file))


def test_a_table_whose_crs_names_a_file(tmp_path):
    system = pyproj.CRS("+proj=longlat +ellps=GRS80 +nadgrids=a.gsb +type=crs").to_json()
    assert crs.from_text(system) == system
    assert crs.from_text("+proj=longlat +ellps=GRS80 +nadgrids=@null +type=crs")
    system = system.replace("a.gsb", f"{tmp_path}/a.gsb")
    with pytest.raises(CrsError, match=f"names the file '{tmp_path}/a.gsb'"):
        reprojection("f", system, crs.from_text("EPSG:4326"))
