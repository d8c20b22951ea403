"""Real models."""

import re

import ifcopenshell
import ifcopenshell.geom
import numpy as np
import pytest

from spatialq.database.readers.ifc_models import read_model
from spatialq.errors import FileError
from tests.conftest import read_real_model, real_file

pytestmark = pytest.mark.usefixtures("kept_models")

# products with a representation (as the collection's README counts them), rows, closed meshes,
# failed products
MODELS = {
    "data/ifc/06-03-01_windows_in_curved_wall_vw.ifc": (5, 5, 5, 0),
    "data/ifc/AC11-Institute-Var-2-IFC.ifc": (1179, 1069, 1065, 0),
    "data/ifc/AC20-FZK-Haus.ifc": (121, 107, 107, 0),
    "data/ifc/bimwhale_LargeBuilding.ifczip": (182, 182, 171, 0),
    "data/ifc/bimwhale_ManySimpleWalls.ifc": (34, 34, 34, 0),
    "data/ifc/bsi43_bath-csg-solid.ifc": (1, 1, 1, 0),
    "data/ifc/bsi43_beam-curved-i-shape-tessellated.ifc": (1, 1, 1, 0),
    "data/ifc/bsi43_geographic-referencing-gk.ifc": (1, 1, 1, 0),
    "data/ifc/bsi43_geographic-referencing-utm.ifc": (1, 1, 1, 0),
    "data/ifc/bsi43_grid-placement.ifc": (36, 10, 10, 25),  # IfcGridPlacement is not understood
    "data/ifc/bsi43_linear-placement-of-signal.ifc": (52, 25, 23, 0),
    "data/ifc/bsi43_mapped-shape-with-transformation.ifc": (1, 1, 1, 0),
    "data/ifc/bsi43_slab-openings.ifc": (3, 3, 3, 0),
    "data/ifc/compare_by_guid_rev_2.ifc": (6, 6, 5, 0),
    "data/ifc/Duplex_A_20110907.ifc": (286, 286, 266, 0),
    "data/ifc/Duplex_Electrical.ifczip": (104, 104, 102, 0),
    "data/ifc/geometrygym_great_court_roof.ifczip": (5178, 5178, 5178, 0),
    "data/ifc/Heizung_080729.ifczip": (404, 404, 237, 0),
    "data/ifc/hvac_heating.ifczip": (222, 222, 199, 0),
    "data/ifc/IfcOpenHouse_IFC4.ifc": (39, 39, 38, 0),
    "data/ifc/ISSUE_171_IfcSurfaceCurveSweptAreaSolid.ifc": (144, 97, 57, 0),
    "data/ifc/nested_mapped_item.ifc": (70, 70, 70, 0),
    "data/ifc/Office_A_20110811.ifc": (1083, 1083, 1055, 0),
    "data/ifc/pass-alb002-multiple_alignments_and_horizontal_reuse_no_cant.ifczip": (1441, 0, 0, 0),
    "data/ifc/SampleHouse4.ifczip": (69, 69, 69, 0),
    "data/ifc/Schependomlaan_BERNTS-Staalconstructie.ifczip": (965, 965, 960, 0),
    "data/ifc/Schependomlaan_GEELEN-Breedplaat_V1.ifc": (328, 327, 327, 0),
    "data/ifc/Schependomlaan_GEELEN-Breedplaat_V2.ifc": (201, 200, 200, 0),
    "data/ifc/Schependomlaan_GEELEN-Breedplaat_V3.ifc": (208, 207, 207, 0),
    "data/ifc/Schependomlaan_MULTICOM-balkons.ifc": (98, 98, 95, 0),
    "data/ifc/Schependomlaan_ROOT-breedplaatvloeren.ifczip": (61, 61, 61, 0),
    "data/ifc/Schependomlaan_ROOT-houten_kozijnen.ifczip": (233, 169, 169, 64),  # nothing is left
    "data/ifc/Schependomlaan_ROOT-kalkzandsteen.ifczip": (135, 135, 135, 0),
    "data/ifc/Schependomlaan_ROOT-staal.ifczip": (78, 78, 78, 0),
    "data/ifc/Schependomlaan_V_L_Constructief.ifczip": (580, 579, 579, 0),
    "data/ifc/Schependomlaan_XELLA-1e_verdieping.ifc": (748, 711, 711, 0),
    "data/ifc/Schependomlaan_XELLA-2e_verdieping.ifc": (590, 560, 560, 0),
    "data/ifc/Schependomlaan_XELLA-3e_verdieping.ifc": (257, 240, 240, 0),
    "data/ifc/Schependomlaan_XELLA-Begane_grond.ifc": (787, 750, 750, 0),
    "data/ifc/tested_sample_project.ifc": (103, 103, 103, 0),
    "data/ifc/TestModel_IFC4Add2.ifc": (32, 32, 32, 0),
    "data/ifc/webifc_example.ifc": (116, 116, 116, 0),
    "data/bad/fail-sps002-scenario01-ifcrailway_not_part_of_spatial_structure.ifc": (52, 2, 2, 0),
    "data/bad/ios_1032-curve.ifc": (1, 1, 1, 0),
    "data/bad/ios_474--walls--missing-subtractions--1--augmented.ifc": (8, 5, 5, 0),
    "data/bad/ios_539--rotated-studs--augmented.ifc": (425, 425, 424, 0),
    "data/bad/ios_605--wall--no-geometry.ifc": (5, 5, 5, 0),
    "data/bad/ios_743--segfault-on-geometry.ifc": (1, 1, 1, 0),
    "data/bad/ios_large_offset.ifc": (16, 13, 13, 0),
    "data/bad/osb_Copy_of_WallOnly.ifc": (1, 1, 1, 0),
    "data/bad/osb_ac16_sjis.ifc": (24, 24, 22, 0),
    "data/bad/osb_doubleguids.ifc": (21, 21, 20, 0),
    "data/bad/spf_extended_mvd.ifc": (0, 0, 0, 0),
    "data/bad/spf_fail_double_comma.ifc": (0, 0, 0, 0),
    "data/bad/spf_fail_invalid_0.ifc": (0, 0, 0, 0),
    "data/bad/spf_fail_invalid_header_entity.ifc": (0, 0, 0, 0),
    "data/bad/spf_fail_too_many_header_entity_fields.ifc": (0, 0, 0, 0),
    "data/bad/spf_fail_utf8_with_bom.ifc": (0, 0, 0, 0),
    "data/bad/spf_pass_1.ifc": (0, 0, 0, 0),
    "data/bad/spf_pass_double_reverse.ifc": (0, 0, 0, 0),
    "data/bad/spf_pass_reverse_comment.ifc": (0, 0, 0, 0),
    "data/bad/xbim_4walls1floorSite.ifczip": (6, 6, 5, 0),
    "data/bad/xbim_Axis2PlacementError.ifc": (0, 0, 0, 0),
    "data/bad/xbim_Ifc4WithNestedLists.ifczip": (2, 2, 1, 0),
    "data/bad/xbim_LargeTriangulatedCoordinates.ifc": (1, 1, 1, 0),
    "data/bad/xbim_Roof-01_BCAD.ifc": (26, 26, 23, 0),
}

SLOW_PRODUCTS = {
    "data/ifc/IfcReinforcingBar.ifc": 538,
    "data/bad/ios_1001--reinforcingBar--segfault.ifc": 1,
    "data/bad/ios_732--slab--segfault.ifc": 135,
}
"""Models with products that take seconds to minutes: read with two seconds a product."""

REFUSED = {
    "data/bad/derived_empty_file.ifc": "the file is empty",
    "data/bad/ios_wall-with-opening-and-window_ifcxml_format.ifczip": "IFCXML is not supported",
    "data/bad/osb_errorfile.ifc": "only 7 of 6,184 entities could be parsed",
    "data/bad/schema_FJK-Project-Final.ifc": "cut off: the end mark",
    "data/bad/schema_KIT-Simple-Road-Test-Web-IFC4x3_RC2.ifc": "Unsupported schema: IFC4X3_RC2",
    "data/bad/schema_terrain-and-alignment.ifc": "Unsupported schema: IFC4X1",
    "data/bad/schema_Vogel_Gesamt.ifc": "Unsupported schema: IFC2X_FINAL",
    "data/bad/spf_fail_duplicate_id.ifc": "IfcOpenShell cannot read it",
    "data/bad/spf_fail_reverse_string.ifc": "IfcOpenShell cannot read it | Syntax error",
    "data/bad/xbim_InvalidNan.ifcxml": "IFCXML is not supported",
}


def read(name):
    return read_real_model(name, "exact")


def failed(model):
    return model.tables["load_errors"]["stage"].to_pylist().count("geometry")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_product_is_a_row_an_error_or_a_curve(name):
    model = read(name)
    shaped, rows, closed, failures = MODELS[name]
    assert model.tables["elements"].num_rows == rows
    assert failed(model) == failures
    assert rows + failures + model.curve_only == shaped
    assert sum(model.tables["elements"]["is_closed"].to_pylist()) >= closed
    assert all(
        volume is None or volume > 0 for volume in model.tables["elements"]["volume"].to_pylist()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW_PRODUCTS)
def test_products_that_take_too_long_are_at_most_errors(name):
    model = read_model(real_file(name), geometry="exact", product_seconds=2)
    assert (
        model.tables["elements"].num_rows + failed(model) + model.curve_only == SLOW_PRODUCTS[name]
    )
    for row in model.tables["load_errors"].to_pylist():
        assert row["stage"] == "file" or re.search("longer than 2 s|not tried", row["message"])


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_unreadable_files_are_refused(name):
    with pytest.raises(FileError, match=re.escape(REFUSED[name])):
        read_model(real_file(name))


@pytest.mark.slow
def test_the_largest_model_gives_its_properties():
    path = real_file("data/ifc/revit2012_janesville_restaurant.ifczip")
    model = read_model(path, geometry="none")
    assert "elements" not in model.tables
    assert model.length_unit == "foot"
    assert model.tables["properties"].num_rows > 30_000
    assert model.tables["relations"].num_rows == 16_019


@pytest.mark.slow
def test_volumes_equal_those_of_the_divergence_theorem():
    """Sum over the triangles of projected area times mean height, in local coordinates."""
    model = ifcopenshell.open(str(real_file("data/ifc/AC20-FZK-Haus.ifc")))
    settings = ifcopenshell.geom.settings()
    settings.set("reorient-shells", True)  # noqa: FBT003 (their signature)
    expected = {}
    for shape in ifcopenshell.geom.iterator(settings, model, 1):
        at = np.array(shape.geometry.verts).reshape(-1, 3)[
            np.array(shape.geometry.faces).reshape(-1, 3)
        ]
        (x0, y0), (x1, y1), (x2, y2) = (at[:, corner, :2].T for corner in range(3))
        projected = ((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)) / 2
        expected[shape.guid] = abs(np.sum(projected * at[:, :, 2].mean(axis=1)))
    elements = read("data/ifc/AC20-FZK-Haus.ifc").tables["elements"]
    volumes = dict(
        zip(elements["global_id"].to_pylist(), elements["volume"].to_pylist(), strict=True)
    )
    assert volumes == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_two_disciplines_in_feet_and_metres_share_one_place():
    """The electrical model of the duplex is in feet, the architectural one in metres."""
    boxes = []
    for name in ("data/ifc/Duplex_A_20110907.ifc", "data/ifc/Duplex_Electrical.ifczip"):
        elements = read(name).tables["elements"]
        low = [min(elements[axis].to_pylist()) for axis in ("xmin", "ymin", "zmin")]
        high = [max(elements[axis].to_pylist()) for axis in ("xmax", "ymax", "zmax")]
        boxes.append((np.array(low), np.array(high)))
    (low_a, high_a), (low_b, high_b) = boxes
    assert (low_b > low_a - 1).all()
    assert (high_b < high_a + 1).all()
