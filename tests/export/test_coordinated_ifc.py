"""A coordinated model of clashes, as IfcOpenShell reads it."""

import zipfile

import ifcopenshell
import ifcopenshell.geom
import ifcopenshell.util.element
import ifcopenshell.util.placement
import ifcopenshell.validate
import numpy as np
import pytest

import spatialq
from spatialq.errors import FileWarning
from spatialq.export.clash_view import COLOURS
from spatialq.export.coordinated_ifc import PROXY, class_of

from ..command_line import rows, spatialq_command
from ..conftest import made_once
from ..io.ifc_models import Builder


def write_models(folder):
    """A wall in feet and IFC2X3, and two beams through it in millimetres and IFC4."""
    walls = Builder("IFC2X3", "foot")
    walls.add("IfcWall", "Façade 'west'", [walls.box((0, 0, 0), (4, 0.2, 3))], at=(10, 20, 1))
    walls.write(folder / "walls.ifc")
    beams = Builder("IFC4", "millimetre")
    for name, x in (("beam", 1), ("other beam", 3)):
        beams.add("IfcBeam", name, [beams.box((0, 0, 0), (0.2, 2, 0.3))], at=(10 + x, 19, 2))
    beams.write(folder / "beams.ifc")
    models = (folder / "walls.ifc", folder / "beams.ifc")
    for name, arguments in {
        "sides.ifc": (), "again.ifc": (), "zip.ifczip": (), "groups.ifc": ("--group", "element"),
    }.items():  # fmt: skip
        rows("clash", *models, *arguments, "-o", folder / name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_once(tmp_path_factory, "coordinated", write_models)


def shapes(path):
    """The triangles and the colour of each product, by GlobalId, as IfcOpenShell sees them."""
    settings = ifcopenshell.geom.settings(USE_WORLD_COORDS=True)
    model = ifcopenshell.open(path)
    found = {}
    for product in model.by_type("IfcElement"):
        shape = ifcopenshell.geom.create_shape(settings, product).geometry
        corners = np.reshape(shape.verts, (-1, 3))[np.reshape(shape.faces, (-1, 3))]
        (material,) = shape.materials
        found[product.GlobalId] = corners, np.array(material.diffuse.components)
    return found


def ordered(corners):
    """Triangles that begin with their first corner, in order."""
    rounded = np.round(corners, 6) + 0.0
    turned = [np.roll(each, -np.lexsort(each.T[::-1])[0], axis=0).ravel() for each in rounded]
    return np.array(sorted(turned, key=tuple))


def test_it_has_the_elements_of_both_models_where_they_are(folder):
    found = shapes(folder / "sides.ifc")
    with spatialq.connect() as con:
        elements = con.sql(
            f"SELECT global_id, mesh FROM read_ifc('{folder}/walls.ifc') UNION ALL "
            f"SELECT global_id, mesh FROM read_ifc('{folder}/beams.ifc')"
        ).fetchall()
    assert found.keys() == {global_id for global_id, _ in elements}
    for global_id, mesh in elements:
        vertices, faces = (np.reshape(mesh[name], (-1, 3)) for name in ("vertices", "faces"))
        corners, _ = found[global_id]
        np.testing.assert_allclose(ordered(corners), ordered(vertices[faces]), rtol=0, atol=2e-6)


def test_names_classes_storeys_and_properties_are_kept(folder):
    model = ifcopenshell.open(folder / "sides.ifc")
    assert model.schema == "IFC4"
    (wall,) = model.by_type("IfcWall")
    source = ifcopenshell.open(folder / "walls.ifc")
    (own,) = source.by_type("IfcWall")
    assert (wall.GlobalId, wall.Name) == (own.GlobalId, "Façade 'west'")
    place = ifcopenshell.util.placement.get_local_placement(wall.ObjectPlacement)[:3, 3]
    np.testing.assert_allclose(place, (10, 20, 1), rtol=0, atol=1e-3)
    storey = ifcopenshell.util.element.get_container(wall)
    assert storey.Name == "Ground floor"
    assert ifcopenshell.util.element.get_aggregate(storey).Name == "walls.ifc"
    beams = {each.GlobalId for each in model.by_type("IfcBeam")}
    said = ifcopenshell.util.element.get_psets(wall)["Clash"]
    assert set(said["With"].split()) == beams
    assert (said["Clashes"], said["GlobalId"]) == (2, wall.GlobalId)
    assert said["Deepest"] == pytest.approx(0.1, abs=1e-3)
    assert said["Model"].endswith("walls.ifc")


def test_colours_are_those_of_sides_or_groups(folder):
    clashes = rows("clash", folder / "walls.ifc", folder / "beams.ifc")["clashes"]
    found = shapes(folder / "sides.ifc")
    sides = [{row[side] for row in clashes} for side in "ab"]
    for global_id, (_, colour) in found.items():
        expected = COLOURS[0] if global_id in sides[0] else COLOURS[1]
        np.testing.assert_allclose(colour, np.array(expected) / 255, atol=1e-6)
    assert len({tuple(colour) for _, colour in found.values()}) == 2
    grouped = shapes(folder / "groups.ifc")
    assert len({tuple(colour) for _, colour in grouped.values()}) == 1  # all at one wall


@pytest.mark.slow  # its rules are read, by IfcOpenShell, from a file that it leaves open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["sides.ifc", "groups.ifc"])
def test_the_schema_allows_it(folder, name):
    logger = ifcopenshell.validate.json_logger()
    ifcopenshell.validate.validate(str(folder / name), logger, express_rules=True)
    assert logger.statements == []


def test_the_bytes_are_the_same_each_time_also_in_a_zip(folder):
    text = (folder / "sides.ifc").read_bytes()
    assert text == (folder / "again.ifc").read_bytes()
    with zipfile.ZipFile(folder / "zip.ifczip") as archive:
        (name,) = archive.namelist()
        assert archive.read(name) == text


def test_a_globalid_of_two_files_is_kept_by_the_first(folder, tmp_path):
    for name in ("one.ifc", "two.ifc"):
        (tmp_path / name).write_bytes((folder / "walls.ifc").read_bytes())
    rows("clash", tmp_path / "one.ifc", tmp_path / "two.ifc", "-o", tmp_path / "c.parquet")
    with spatialq.connect() as con:
        clashes = con.sql(f"FROM '{tmp_path}/c.parquet'")
        with pytest.warns(FileWarning, match="1 GlobalIds are of several"):
            spatialq.write(clashes, tmp_path / "both.ifc")
    model = ifcopenshell.open(tmp_path / "both.ifc")
    walls = model.by_type("IfcWall")
    own = {ifcopenshell.util.element.get_psets(each)["Clash"]["GlobalId"] for each in walls}
    assert len({each.GlobalId for each in walls}) == 2 > len(own)
    assert own < {each.GlobalId for each in walls}


@pytest.mark.parametrize(
    ("ifc_class", "expected"),
    [
        ("IfcWall", "IfcWall"), ("IfcFlowSegment", "IfcFlowSegment"), ("IfcSpace", PROXY),
        ("IfcOpeningElement", PROXY), ("IfcCourse", PROXY), ("IfcBuildingElement", PROXY),
        ("IfcElectricDistributionPoint", PROXY), ("IfcWallStandardCase", "IfcWall"),
    ],
)  # fmt: skip
def test_classes_that_no_storey_can_have_are_proxies(ifc_class, expected):
    assert class_of(ifc_class) == expected


def test_a_model_is_not_replaced(folder, tmp_path):
    (tmp_path / "walls.ifc").write_bytes((folder / "walls.ifc").read_bytes())
    result = spatialq_command(
        "clash", tmp_path / "walls.ifc", folder / "beams.ifc", "-o", tmp_path / "walls.ifc"
    )
    assert result.returncode == 1
    assert "output must be another file than the input" in result.stderr.replace("\n", " ")
    assert (tmp_path / "walls.ifc").read_bytes() == (folder / "walls.ifc").read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["walls.ifc"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("ending", ["ifc", "ifczip"])
def test_no_clashes_are_a_valid_model_of_nothing(tmp_path, ending):
    path = tmp_path / f"none.{ending}"
    with spatialq.connect() as con:
        none = con.sql("SELECT 'x' AS a, 'y' AS b, 'f' AS a_file, 'f' AS b_file LIMIT 0")
        assert spatialq.write(none, path) == 0
    model = ifcopenshell.open(path)
    log = ifcopenshell.validate.json_logger()
    ifcopenshell.validate.validate(model, log, express_rules=True)
    assert log.statements == []
    assert [len(model.by_type(name)) for name in ("IfcProject", "IfcElement")] == [1, 0]


def test_files_of_one_name_in_two_folders_are_two_buildings(folder, tmp_path):
    paths = [tmp_path / where / "walls.ifc" for where in ("north", "south")]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes((folder / "walls.ifc").read_bytes())
    for name in ("all.ifc", "all.html"):
        rows("clash", *paths, folder / "beams.ifc", "-o", tmp_path / name)
    model = ifcopenshell.open(tmp_path / "all.ifc")
    names = {str(path) for path in paths} | {"beams.ifc"}
    assert {each.Name for each in model.by_type("IfcBuilding")} == names
    page = (tmp_path / "all.html").read_text()
    assert all(f"<td>{name}</td>" in page for name in names)
