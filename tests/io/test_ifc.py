import json
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ifcopenshell.api.georeference
import ifcopenshell.api.group
import ifcopenshell.api.material
import ifcopenshell.api.pset
import ifcopenshell.api.root
import ifcopenshell.api.type
import numpy as np
import pytest

from spatialq.database.readers.ifc_models import read_ifc, read_model
from spatialq.errors import FileWarning
from spatialq.io.ifc.cache import CACHE

from ..conftest import real_file
from .ifc_models import Builder


def by_name(model):
    return {row["name"]: row for row in model.tables["elements"].to_pylist()}


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["millimetre", "metre", "foot"])
@pytest.mark.parametrize("schema", ["IFC2X3", "IFC4", "IFC4X3"])
def test_a_wall_with_a_hole_has_the_volume_of_the_rest_in_cubic_metres(tmp_path, schema, unit):
    builder = Builder(schema, unit)
    builder.wall_with_window()
    model = read_model(builder.write(tmp_path / "house.ifc"), geometry="exact")
    rows = by_name(model)
    assert set(rows) == {"Wall", "Hole", "Window"}
    wall = rows["Wall"]
    assert wall["volume"] == pytest.approx(2.2, rel=1e-9)
    assert wall["area"] == pytest.approx(2 * (12 - 1) + 2 * 0.2 * (4 + 3) + 4 * 0.2, rel=1e-9)
    assert wall["is_closed"]
    assert wall["component_count"] == 1
    box = [wall[name] for name in ("xmin", "ymin", "zmin", "xmax", "ymax", "zmax")]
    assert box == pytest.approx([0, 0, 0, 4, 0.2, 3], abs=1e-9)
    assert (wall["ifc_class"], wall["storey"], wall["building"]) == (
        "IfcWall", "Ground floor", "House",
    )  # fmt: skip
    # The window stands in the storey through the hole and the wall.
    assert rows["Hole"]["storey"] == "Ground floor"
    assert model.length_unit_metres == pytest.approx(
        {"millimetre": 0.001, "metre": 1.0, "foot": 0.3048}[unit]
    )
    assert model.warnings == ()
    assert model.tables["load_errors"].num_rows == 0


def test_two_solids_that_do_not_meet_are_two_components(tmp_path):
    builder = Builder()
    boxes = [builder.box((0, 0, 0), (1, 1, 1)), builder.box((3, 0, 0), (1, 1, 2))]
    builder.add("IfcFurniture", "Pair", boxes)
    row = by_name(read_model(builder.write(tmp_path / "pair.ifc")))["Pair"]
    assert row["component_count"] == 2
    assert row["volume"] == pytest.approx(3.0)


def test_volumes_survive_coordinates_of_a_national_grid(tmp_path):
    builder = Builder(unit="millimetre")
    builder.add("IfcWall", "Far", [builder.box((0, 0, 0), (0.1, 0.1, 0.1))], at=(5e5, 5.6e6, 300))
    row = by_name(read_model(builder.write(tmp_path / "far.ifc")))["Far"]
    assert row["xmin"] == pytest.approx(5e5)
    assert row["volume"] == pytest.approx(1e-3, rel=1e-6)


def test_an_open_surface_has_an_area_but_no_volume(tmp_path):
    builder = Builder()
    corners = builder.model.create_entity(
        "IfcCartesianPointList3D", CoordList=((0.0, 0, 0), (2.0, 0, 0), (2.0, 2, 0), (0.0, 2, 0))
    )
    square = builder.model.create_entity(
        "IfcTriangulatedFaceSet", Coordinates=corners, CoordIndex=((1, 2, 3), (1, 3, 4))
    )
    builder.add("IfcPlate", "Square", [square], kind="Tessellation")
    row = by_name(read_model(builder.write(tmp_path / "open.ifc")))["Square"]
    assert not row["is_closed"]
    assert row["volume"] is None
    assert row["area"] == pytest.approx(4.0)


def test_meshes_are_welded_and_flat(tmp_path):
    builder = Builder()
    builder.boxes(1)
    row = read_model(builder.write(tmp_path / "box.ifc")).tables["elements"].to_pylist()[0]
    assert len(row["mesh"]["vertices"]) == 3 * 8
    faces = np.array(row["mesh"]["faces"]).reshape(-1, 3)
    assert faces.shape == (12, 3)
    assert set(faces.ravel()) == set(range(8))


def property_model(schema="IFC4"):
    builder = Builder(schema, "millimetre")
    wall, *_ = builder.wall_with_window()
    model = builder.model
    kind = ifcopenshell.api.root.create_entity(model, ifc_class="IfcWallType", name="Brick 200")
    ifcopenshell.api.type.assign_type(model, related_objects=[wall], relating_type=kind)
    add = ifcopenshell.api.pset.add_pset
    edit = ifcopenshell.api.pset.edit_pset
    edit(
        model,
        pset=add(model, product=kind, name="Pset_WallCommon"),
        properties={"FireRating": "REI 60", "IsExternal": False},
    )
    edit(
        model,
        pset=add(model, product=wall, name="Pset_WallCommon"),
        properties={"IsExternal": True, "Reference": "Außenwand „A“"},
    )
    quantities = ifcopenshell.api.pset.add_qto(model, product=wall, name="Qto_WallBaseQuantities")
    ifcopenshell.api.pset.edit_qto(model, qto=quantities, properties={"Length": 4000.0})
    brick = ifcopenshell.api.material.add_material(model, name="Brick")
    ifcopenshell.api.material.assign_material(model, products=[wall], material=brick)
    group = ifcopenshell.api.group.add_group(model, name="Facade")
    ifcopenshell.api.group.assign_group(model, products=[wall], group=group)
    return builder


@pytest.mark.slow
@pytest.mark.parametrize("schema", ["IFC2X3", "IFC4", "IFC4X3"])
def test_properties_of_the_instance_hide_those_of_the_type(tmp_path, schema):
    model = read_model(property_model(schema).write(tmp_path / "p.ifc"))
    wall = by_name(model)["Wall"]
    assert (wall["type_name"], wall["material"]) == ("Brick 200", "Brick")
    assert json.loads(wall["properties"]) == {
        "Pset_WallCommon": {
            "FireRating": "REI 60",
            "IsExternal": True,
            "Reference": "Außenwand „A“",
        },
        "Qto_WallBaseQuantities": {"Length": 4000.0},
    }
    rows = {
        row["property"]: (row["value"], row["number"], row["unit"], row["source"])
        for row in model.tables["properties"].to_pylist()
        if row["global_id"] == wall["global_id"]
    }
    assert rows == {
        "FireRating": ("REI 60", None, None, "type"),
        "IsExternal": ("true", None, None, "instance"),
        "Reference": ("Außenwand „A“", None, None, "instance"),
        "Length": ("4000.0", 4000.0, "millimetre", "instance"),
    }


def test_relations_name_both_ends_and_the_kind(tmp_path):
    model = read_model(property_model().write(tmp_path / "r.ifc"))
    found = {
        (row["kind"], row["child_name"], row["parent_name"])
        for row in model.tables["relations"].to_pylist()
    }
    assert found == {
        ("aggregates", "Site", "Test"),
        ("aggregates", "House", "Site"),
        ("aggregates", "Ground floor", "House"),
        ("contained_in", "Wall", "Ground floor"),
        ("contained_in", "Window", "Ground floor"),
        ("voids", "Hole", "Wall"),
        ("fills", "Window", "Hole"),
        ("defined_by_type", "Wall", "Brick 200"),
        ("assigned_to_group", "Wall", "Facade"),
        ("associates_material", "Wall", "Brick"),
        ("defined_by_properties", "Wall", "Pset_WallCommon"),
        ("defined_by_properties", "Wall", "Qto_WallBaseQuantities"),
    }


def test_the_map_conversion_is_kept_and_not_applied(tmp_path):
    builder = Builder("IFC4")
    builder.boxes(1)
    ifcopenshell.api.georeference.add_georeferencing(builder.model)
    ifcopenshell.api.georeference.edit_georeferencing(
        builder.model,
        projected_crs={"Name": "EPSG:25832"},
        coordinate_operation={"Eastings": 458657.3, "Northings": 5438232.25, "Scale": 0.9996},
    )
    model = read_model(builder.write(tmp_path / "geo.ifc"))
    assert model.georeference["crs_name"] == "EPSG:25832"
    assert model.georeference["eastings"] == 458657.3
    assert model.georeference["scale"] == 0.9996
    assert model.tables["elements"]["xmin"].to_pylist() == [0.0]


def test_the_map_conversion_of_ifc2x3_stands_in_property_sets(tmp_path):
    builder = Builder("IFC2X3")
    for name, values in (
        ("ePSet_MapConversion", {"Eastings": 100.5, "Northings": 200.0}),
        ("ePSet_ProjectedCRS", {"Name": "EPSG:28992"}),
    ):
        pset = ifcopenshell.api.pset.add_pset(builder.model, product=builder.site, name=name)
        ifcopenshell.api.pset.edit_pset(builder.model, pset=pset, properties=values)
    model = read_model(builder.write(tmp_path / "geo.ifc"))
    assert model.georeference["crs_name"] == "EPSG:28992"
    assert (model.georeference["eastings"], model.georeference["northings"]) == (100.5, 200.0)


def test_a_model_without_elements_gives_empty_tables(tmp_path, ifc_con):
    path = Builder().write(tmp_path / "empty.ifc")
    assert ifc_con.sql(f"FROM read_ifc('{path}')").fetchall() == []
    assert ifc_con.sql(f"FROM read_ifc_properties('{path}')").fetchall() == []
    assert ifc_con.sql(f"FROM read_ifc_errors('{path}')").fetchall() == []


def _of_curves(path, *classes, with_wall=False):
    builder = Builder("IFC4X3")
    for k, ifc_class in enumerate(classes):
        line = builder.model.create_entity(
            "IfcPolyline", Points=[builder.point(k, 0, 0), builder.point(k, 1, 0)]
        )
        builder.add(ifc_class, f"Line {k}", [line], kind="Curve3D")
    if with_wall:
        builder.add("IfcWall", "Wall", [builder.box((0, 0, 0), (1, 1, 1))])
    return builder.write(path)


LEFT_OUT = "have curves and no faces: left out of the elements"


def test_alignments_are_said_to_be_left_out(tmp_path, ifc_con):
    classes = ["IfcAlignment", "IfcReferent", "IfcAlignment", "IfcAnnotation"]
    path = _of_curves(tmp_path / "way.ifc", *classes, with_wall=True)
    with pytest.warns(FileWarning, match=f"2 IfcAlignment, 1 IfcReferent {LEFT_OUT}"):
        (wall,) = ifc_con.sql(f"SELECT ifc_class FROM read_ifc('{path}')").fetchall()
    assert wall == ("IfcWall",)
    rows = ifc_con.sql(f"SELECT stage, message FROM read_ifc_errors('{path}')").fetchall()
    assert rows == [("file", f"2 IfcAlignment, 1 IfcReferent {LEFT_OUT}")]
    assert read_model(path, geometry="none").warnings == ()  # which has no elements anyway


def test_a_model_of_curves_alone_says_so(tmp_path):
    path = _of_curves(tmp_path / "plan.ifc", "IfcAnnotation", "IfcGrid", "IfcAnnotation")
    (warning,) = read_model(path).warnings
    assert warning == f"2 IfcAnnotation, 1 IfcGrid {LEFT_OUT}"
    path = _of_curves(tmp_path / "one.ifc", "IfcReferent")
    assert read_model(path).warnings == (f"1 IfcReferent {LEFT_OUT.replace('have', 'has')}",)


def test_annotations_beside_elements_are_no_news(tmp_path):
    model = read_model(_of_curves(tmp_path / "a.ifc", "IfcAnnotation", "IfcGrid", with_wall=True))
    assert model.curve_only == 2
    assert model.warnings == ()
    assert model.tables["load_errors"].num_rows == 0


@pytest.mark.slow
def test_real_alignments():
    model = read_model(real_file(
        "data/ifc/pass-alb002-multiple_alignments_and_horizontal_reuse_no_cant.ifczip"
    ))  # fmt: skip
    assert model.tables["elements"].num_rows == 0
    (message,) = model.tables["load_errors"]["message"].to_pylist()
    assert re.fullmatch(rf"\d+ IfcAlignment.* {LEFT_OUT}", message)


def test_curves_only_are_counted_in_a_warning(tmp_path):
    builder = Builder()
    line = builder.model.create_entity(
        "IfcPolyline", Points=[builder.point(0, 0, 0), builder.point(1, 0, 0)]
    )
    builder.add("IfcBuildingElementProxy", "Line", [line], kind="Curve3D")
    model = read_model(builder.write(tmp_path / "line.ifc"))
    assert model.tables["elements"].num_rows == 0
    assert model.curve_only == 1
    (warning,) = model.warnings
    assert warning.startswith("1 products have only curves")
    assert model.tables["load_errors"]["stage"].to_pylist() == ["file"]


def test_sql_gives_the_documented_columns(tmp_path, ifc_con):
    path = property_model().write(tmp_path / "house.ifc")
    columns = dict(
        ifc_con.sql(f"SELECT column_name, column_type FROM (DESCRIBE FROM read_ifc('{path}'))")
        .fetchall()
    )  # fmt: skip
    assert list(columns) == [
        "global_id", "ifc_class", "name", "description", "type_name", "storey", "building",
        "material", "properties", "xmin", "ymin", "zmin", "xmax", "ymax", "zmax", "mesh",
        "mesh_source", "is_closed", "component_count", "volume", "area", "true_north", "ifc_schema",
        "step_id", "file_name",
    ]  # fmt: skip
    assert columns["mesh"] == "STRUCT(vertices DOUBLE[], faces INTEGER[])"
    external = ifc_con.sql(
        f"SELECT name FROM read_ifc('{path}') "
        "WHERE (properties->'$.Pset_WallCommon.IsExternal')::BOOLEAN"
    ).fetchall()
    assert external == [("Wall",)]
    hosts = ifc_con.sql(
        f"SELECT e.name, r.parent_name FROM read_ifc('{path}') e "
        f"JOIN read_ifc_relations('{path}') r ON r.child = e.global_id WHERE r.kind = 'voids'"
    ).fetchall()
    assert hosts == [("Hole", "Wall")]


@pytest.mark.slow
def test_a_pattern_reads_several_files(tmp_path, ifc_con):
    for count in (1, 2, 3):
        builder = Builder()
        builder.boxes(count)
        builder.write(tmp_path / f"m{count}.ifc")
    rows = ifc_con.sql(
        f"SELECT file_name, count(*) FROM read_ifc('{tmp_path}/m*.ifc') GROUP BY 1 ORDER BY 1"
    ).fetchall()
    assert rows == [(str(tmp_path / f"m{count}.ifc"), count) for count in (1, 2, 3)]
    models = ifc_con.sql(f"SELECT ifc_schema FROM read_ifc_models('{tmp_path}/*.ifc')").fetchall()
    assert models == [("IFC4",)] * 3


@pytest.mark.slow
def test_geometry_runs_once_a_file_and_only_when_asked(tmp_path, ifc_con, monkeypatch):
    path = property_model().write(tmp_path / "house.ifc")
    asked = []

    def counted(path, *, geometry="auto", **options):
        asked.append(geometry)
        return read_model(path, geometry=geometry, **options)

    monkeypatch.setattr("spatialq.io.ifc.cache.read_model", counted)
    for macro in ("objects", "relations", "properties"):
        ifc_con.sql(f"FROM read_ifc_{macro}('{path}')").fetchall()
    assert asked == ["none"]
    for macro in ("read_ifc", "read_ifc_errors", "read_ifc_relations", "read_ifc"):
        ifc_con.sql(f"FROM {macro}('{path}')").fetchall()
    assert asked == ["none", "auto"]
    ifc_con.sql(f"EXPLAIN FROM read_ifc('{path}', product_seconds := 5)").fetchall()
    assert asked == ["none", "auto"]
    other = Builder()
    other.boxes(2)
    other.write(path)
    assert len(ifc_con.sql(f"FROM read_ifc('{path}')").fetchall()) == 2


def test_queries_from_several_threads_share_one_reading(tmp_path, ifc_con):
    path = property_model().write(tmp_path / "house.ifc")

    def count(_):
        with ifc_con.cursor() as con:
            return con.sql(f"SELECT count(*) FROM read_ifc('{path}')").fetchall()[0][0]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, range(8))) == [3] * 8


def test_python_creates_all_tables_or_none(tmp_path, ifc_con):
    path = property_model().write(tmp_path / "house.ifc")
    assert read_ifc(ifc_con, path).count("*").fetchall() == [(3,)]
    assert ifc_con.sql("SHOW TABLES").fetchall() == []
    ifc_con.execute("CREATE TABLE house_models (i INTEGER)")
    with pytest.raises(Exception, match="house_models"):
        read_ifc(ifc_con, path, name="house")
    assert ifc_con.sql("SHOW TABLES").fetchall() == [("house_models",)]
    ifc_con.execute("DROP TABLE house_models")
    assert read_ifc(ifc_con, path, name="house").count("*").fetchall() == [(3,)]
    assert ifc_con.sql("SELECT count(*) FROM house_relations").fetchall() == [(12,)]


def test_python_warns_of_what_is_odd(tmp_path, ifc_con):
    builder = Builder()
    first, second = builder.boxes(2)
    second.GlobalId = first.GlobalId
    path = builder.write(tmp_path / "twins.ifc")
    with pytest.warns(FileWarning, match="1 products repeat a GlobalId"):
        assert read_ifc(ifc_con, path).count("*").fetchall() == [(2,)]


def test_a_zip_and_a_byte_order_mark_are_read(tmp_path):
    builder = Builder()
    builder.boxes(2)
    plain = builder.write(tmp_path / "plain.ifc")
    with zipfile.ZipFile(tmp_path / "packed.ifczip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(plain, "folder/model.IFC")
    (tmp_path / "marked.ifc").write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert read_model(tmp_path / "packed.ifczip").tables["elements"].num_rows == 2
    marked = read_model(tmp_path / "marked.ifc")
    assert marked.tables["elements"].num_rows == 2
    assert "byte order mark" in marked.warnings[0]


def test_the_examples_of_the_macros_run(tmp_path, ifc_con, monkeypatch):
    property_model().write(tmp_path / "house.ifc")
    monkeypatch.chdir(tmp_path)
    root = Path(__file__).parents[2]
    macros = (root / "sql/read_ifc.sql").read_text()
    examples = re.findall(r"^-- example: (.*)$", macros, re.MULTILINE)
    assert len(examples) == 8
    for statement in examples:
        rows = ifc_con.sql(statement).fetchall()
        # It has neither.
        missing = re.search("read_ifc_(errors|classifications)", statement)
        assert rows or missing, statement


def test_the_cache_forgets_the_oldest(tmp_path, monkeypatch):
    CACHE.clear()
    monkeypatch.setattr(CACHE, "max_bytes", 1)
    for count in (1, 2):
        builder = Builder()
        builder.boxes(count)
        path = builder.write(tmp_path / f"m{count}.ifc")
        CACHE.read(path, geometry="auto", product_seconds=60.0)
    assert len(CACHE._models) == 1
