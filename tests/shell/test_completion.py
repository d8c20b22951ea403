"""What is suggested where."""

import pytest

import spatialq
from spatialq.cli.shell.completion import Names, suggest
from spatialq.ql4bim.operators import operators


@pytest.fixture(scope="module")
def names():
    with spatialq.connect() as con:
        con.execute("CREATE TABLE points (point_id BIGINT, height DOUBLE)")
        con.execute("CREATE TABLE plots (plot_id BIGINT)")
        yield Names.of(
            con, {"walls": None, "doors": "IfcDoor"}, [each.name for each in operators()]
        )


def texts(text, names):
    return [each.text for each in suggest(text, names)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("FROM po", "points"),
        ("FROM point_el", "point_elements"),
        ("SELECT hei", "height"),
        ("SELEC", "SELECT"),
        ("SELECT count(*) FROM points WHER", "WHERE"),
        ("FROM classify_gr", "classify_ground"),
        ("FROM classify_ground('poi", "points"),
        ("SELECT is_a(ifc_class, 'ifcwa", "IfcWall"),
        ("SELECT p.hei", "height"),
        ("w = TypeF", "TypeFilter"),
        ("w = TypeFilter(wal", "walls"),
        ("w = TypeFilter(m is IfcWa", "IfcWall"),
        ("w = AttributeFilter(m, m.Overall", "OverallHeight"),
        ("w = AttributeFilter(m, m.Name = unk", "unknown"),
        (".ta", ".tables"),
        (".sql do", "doors"),
    ],
)
def test_the_first_suggestion(text, first, names):
    found = texts(text, names)
    assert found
    assert found[0] == first


def test_names_of_the_user_come_before_functions_and_keywords(names):
    kinds = [each.kind for each in suggest("SELECT p", names)]
    assert kinds[0] == "table"
    assert {"table", "column", "function", "keyword"} <= set(kinds)
    assert kinds.index("column") < kinds.index("function") < kinds.index("keyword")


@pytest.mark.parametrize("text", ["", "SELECT ", "w = TypeFilter(", "SELECT 1;", "-- comment po"])
def test_nothing_is_suggested_before_a_word_has_begun(text, names):
    assert texts(text, names) == [] or text.startswith("--")


def test_classes_are_those_of_objects(names):
    found = texts("w = TypeFilter(m is Ifc", names)
    assert {"IfcWall", "IfcDoorType", "IfcBuildingStorey"} <= set(found)
    assert not {"IfcCartesianPoint", "IfcExtrudedAreaSolid", "IfcRelAggregates"} & set(found)


def test_attributes_are_those_of_the_class_of_a_variable(names):
    found = texts("w = AttributeFilter(doors, doors.", names)
    assert {"Name", "OverallHeight", "OperationType"} <= set(found)
    assert "LongName" not in found
    assert "LongName" in texts("w = AttributeFilter(walls, walls.", names)


def test_a_script_gets_no_keywords_of_sql(names):
    assert texts("w = SELEC", names) == []


def test_paths_in_quotes(names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "house.ifc").touch()
    (tmp_path / "hall.laz").touch()
    (tmp_path / ".hidden").touch()
    assert texts("FROM read_las('ha", names) == ["hall.laz"]
    assert texts("FROM read_las('", names) == ["data/", "hall.laz"]
    assert texts('m = ImportModel("da', names) == ["data/"]
    (found,) = suggest('m = ImportModel("data/ho', names)
    assert (found.text, found.start) == ("house.ifc", -2)
    assert texts(f"FROM read_ifc('{tmp_path}/data/h", names) == ["house.ifc"]
    assert texts("FROM read_las('nowhere/", names) == []
    assert texts("FROM read_las('ha\0", names) == []
