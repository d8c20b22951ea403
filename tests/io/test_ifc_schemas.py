"""The classes of the IFC schemas, against IfcOpenShell's own knowledge of them."""

import importlib.util
from pathlib import Path

import ifcopenshell.ifcopenshell_wrapper as wrapper
import pytest
from ifcopenshell.util.pset import get_template

import spatialq
from spatialq.io.ifc.schemas import (
    inverse_of_objects,
    object_attributes,
    property_sets,
    schemas,
)

SCRIPT = Path(__file__).parents[2] / ".ci/ifc_schemas.py"
SCHEMAS = ("IFC2X3", "IFC4", "IFC4X3_ADD2")


def entities(schema):
    found = wrapper.schema_by_name(schema).declarations()
    return {each.name(): each.as_entity() for each in found if each.as_entity()}


def below(entity):
    """Walk downwards, whereas the project's own lineage was read upwards."""
    yield entity.name()
    for each in entity.subtypes():
        yield from below(each)


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        yield con


def test_the_file_is_what_ifcopenshell_says():
    spec = importlib.util.spec_from_file_location("ifc_schemas", SCRIPT)
    schema_generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(schema_generator)
    text = schema_generator.PATH.read_text(encoding="utf-8")
    assert text == schema_generator.generated(), "run `make generate`"
    assert tuple(schemas()) == SCHEMAS
    text = schema_generator.PROPERTY_SETS_PATH.read_text(encoding="utf-8")
    assert text == schema_generator.generated_property_sets(), "run `make generate`"
    text = schema_generator.VALUES_PATH.read_text(encoding="utf-8")
    assert text == schema_generator.generated_values(), "run `make generate`"


@pytest.mark.slow
@pytest.mark.parametrize("schema", SCHEMAS)
def test_property_sets(schema):
    """As IfcOpenShell finds a set by its name, not in its list of all of them."""
    templates = get_template(schema)
    found = {name: templates.get_by_name(name) for name in property_sets()}
    found = {name: template for name, template in found.items() if template}
    assert len(found) > 300
    assert len(found) == len(templates.get_applicable())
    for name, template in found.items():
        assert {each.Name for each in template.HasPropertyTemplates} <= set(property_sets()[name])
    assert "FireRating" in property_sets()["Pset_DoorCommon"]
    assert all(name.startswith(("Pset_", "Qto_")) for name in property_sets())


def test_an_inverse_attribute_is_no_attribute():
    inverse = inverse_of_objects()
    assert inverse["HasOpenings"] == ["IfcRelVoidsElement"]
    both = inverse.keys() & object_attributes()
    assert both == set(), "selectors take these as attributes"


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_class_and_every_supertype(con, schema):
    classes = entities(schema)
    expected = {(name, top) for top, entity in classes.items() for name in below(entity)}
    sql = (
        "WITH c AS (SELECT DISTINCT ifc_class FROM ifc_lineage() WHERE ifc_schema = $schema) "
        "SELECT a.ifc_class, b.ifc_class FROM c AS a, c AS b "
        "WHERE is_a(a.ifc_class, b.ifc_class, ifc_schema := $schema)"
    )
    rows = con.execute(sql, {"schema": schema}).fetchall()
    assert len(rows) == len(expected) > 2800
    assert set(rows) == expected
    lineage = "SELECT ifc_class, supertype FROM ifc_lineage() WHERE ifc_schema = $schema"
    rows = con.execute(lineage, {"schema": schema}).fetchall()
    assert len(rows) == len(expected)
    assert set(rows) == expected


@pytest.mark.parametrize("schema", SCHEMAS)
def test_inverse_attributes(con, schema):
    sql = (
        "SELECT l.ifc_class, i.inverse_attribute, i.relation_class, i.relation_attribute "
        "FROM ifc_inverse_attributes() AS i JOIN ifc_lineage() AS l "
        "ON l.supertype = i.ifc_class AND l.ifc_schema = i.ifc_schema "
        "WHERE l.ifc_schema = $schema"
    )
    rows = con.execute(sql, {"schema": schema}).fetchall()
    expected = {
        (
            name,
            each.name(),
            each.entity_reference().name(),
            each.attribute_reference().name(),
        )
        for name, entity in entities(schema).items()
        for each in entity.all_inverse_attributes()
    }
    assert len(rows) == len(expected) > 500
    assert set(rows) == expected


def one(con, expression):
    ((value,),) = con.sql(f"SELECT {expression}").fetchall()
    return value


def test_the_new_and_the_old_name_mean_the_same(con):
    sql = (
        "SELECT DISTINCT ifc_class FROM ifc_lineage() "
        "WHERE is_a(ifc_class, $top, ifc_schema := $schema)"
    )
    for old, new in (
        ("IfcBuildingElement", "IfcBuiltElement"),
        ("IfcBuildingElementType", "IfcBuiltElementType"),
    ):
        for schema in (*SCHEMAS, None):
            first, second = (
                set(con.execute(sql, {"top": top, "schema": schema}).fetchall())
                for top in (old, new)
            )
            assert first == second
            assert len(first) > 20
    # only one schema has this class
    for top in ("IfcBuildingElement", "IfcBuiltElement"):
        for schema in ("'IFC2X3'", "'IFC4'", "'IFC4X3_ADD2'", "NULL"):
            assert one(con, f"is_a('IfcPavement', '{top}', ifc_schema := {schema})")
            bar = one(con, f"is_a('IfcReinforcingBar', '{top}', ifc_schema := {schema})")
            assert bar == (schema in ("'IFC2X3'", "NULL"))


def test_a_supertype_that_only_another_schema_has(con):
    assert one(con, "is_a('IfcSpace', 'IfcSpatialElement', 'IFC2X3')")
    assert not one(con, "is_a('IfcWall', 'IfcSpatialElement', 'IFC2X3')")


def test_case_null_and_columns(con):
    assert one(con, "is_a('IFCWALL', 'ifcproduct', 'ifc4x3')")
    assert one(con, "is_a(NULL, 'IfcWall')") is None
    assert one(con, "is_a('IfcWall', NULL)") is None
    assert one(con, "NOT is_a('IfcWall', 'IfcDoor')")
    assert not one(con, "is_a('no class', 'IfcDoor')")
    con.execute(
        "CREATE OR REPLACE TABLE classes AS FROM (VALUES ('IfcWall', 'IfcRoot', 'IFC4'), "
        "('IfcDoor', 'IfcWall', 'IFC2X3'), (NULL, 'IfcRoot', NULL), "
        "('IfcReinforcingBar', 'IfcBuildingElement', 'IFC2X3'), "
        "('IfcReinforcingBar', 'IfcBuildingElement', 'IFC4')) "
        "AS v(ifc_class, supertype, ifc_schema)"
    )
    rows = con.sql("SELECT is_a(ifc_class, supertype, ifc_schema) FROM classes").fetchall()
    assert rows == [(True,), (False,), (None,), (True,), (False,)]
    counts = con.sql(
        "SELECT count(*) FILTER (is_a(ifc_class, 'IfcBuildingElement')), "
        "count(*) FILTER (NOT is_a(ifc_class, 'IfcBuildingElement')) FROM classes"
    ).fetchall()
    assert counts == [(4, 0)]
    joined = con.sql(
        "SELECT count(*) FROM classes AS a JOIN classes AS b ON is_a(a.ifc_class, b.supertype)"
    ).fetchall()
    assert joined == [(4 + 1 + 4 + 4 + 4,)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("'IfcWal'", "supertype must be a class of {}, got 'IfcWal'; near names are IfcWall, "),
        ("''", "supertype must be a class of {}, got ''; such as 'IfcWall'"),
        ("'IfcWall', ifc_schema := 'IFC5'", "ifc_schema must be one of {}, got 'IFC5'"),
    ],
)
def test_unknown_names(con, arguments, sentence):
    with pytest.raises(Exception, match="is_a") as caught:
        con.sql(f"SELECT is_a(name, {arguments}) FROM (SELECT 'IfcWall' AS name)").fetchall()
    assert f"is_a: {sentence.format(', '.join(SCHEMAS))}" in str(caught.value)
