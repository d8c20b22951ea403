"""Facets on small models: what the documentation of IDS 1.0 says, a sentence a test."""

import ifcopenshell
import ifcopenshell.guid
import pytest

from .ids_files import (
    OPTIONAL,
    PROHIBITED,
    REQUIRED,
    attribute,
    check,
    entity,
    facet,
    outcome,
    pattern,
    prop,
    specification,
    write_ids,
)


class Model:
    """A model whose entities are made by their attributes."""

    def __init__(self, schema="IFC4", prefix="MILLI"):
        self.file = ifcopenshell.file(schema=schema)
        length = self.file.create_entity(
            "IfcSIUnit", UnitType="LENGTHUNIT", Prefix=prefix, Name="METRE"
        )
        units = self.file.create_entity("IfcUnitAssignment", [length])
        self.make("IfcProject", UnitsInContext=units)

    def make(self, ifc_class, **attributes):
        return self.file.create_entity(ifc_class, GlobalId=ifcopenshell.guid.new(), **attributes)

    def properties(self, owners, name, *members):
        pset = self.make("IfcPropertySet", Name=name, HasProperties=members)
        self.make(
            "IfcRelDefinesByProperties", RelatedObjects=owners, RelatingPropertyDefinition=pset
        )
        return pset

    def single(self, name, kind=None, value=None):
        typed = None if kind is None else self.file.create_entity(kind, value)
        return self.file.create_entity("IfcPropertySingleValue", Name=name, NominalValue=typed)

    def bounded(self, name, lower=None, upper=None, set_point=None):
        names = ("LowerBoundValue", "UpperBoundValue", "SetPointValue")
        ends = {
            said: self.file.create_entity("IfcReal", float(end))
            for said, end in zip(names, (lower, upper, set_point), strict=True)
            if end is not None
        }
        return self.file.create_entity("IfcPropertyBoundedValue", Name=name, **ends)


@pytest.fixture
def checked(tmp_path):
    def run(model, *requirements, applies=None, occurs=OPTIONAL):
        applies = entity("IFCWALL") if applies is None else applies
        rules = write_ids(
            tmp_path / "rules.ids",
            specification(applies, *requirements, occurs=occurs, versions=model.file.schema),
        )
        return check(model.file, rules)

    return run


RANGE = "xs:double", '<xs:minExclusive value="2"/><xs:maxInclusive value="5"/>'


@pytest.mark.parametrize(
    ("said", "lower", "upper", "expected"),
    [
        (RANGE, 3, 4, "pass"), (RANGE, None, 4, "fail"), (RANGE, 3, None, "fail"),
        (RANGE, 2, 3, "fail"), (RANGE, 3, 5, "pass"), (RANGE, None, None, "fail"),
        ("2", 2, 4, "pass"), ("2", 2, None, "pass"), ("2", None, 2, "pass"), ("5", 2, 4, "fail"),
        ("3", 2, 4, "pass"),
        ("5", None, 4, "fail"),
        ("3", None, None, "fail"), (None, 2, None, "pass"),
    ],
)  # fmt: skip
def test_bounded_properties(said, lower, upper, expected, checked):
    model = Model()
    model.properties([model.make("IfcWall")], "Foo", model.bounded("Bar", lower, upper))
    assert outcome(checked(model, prop("Foo", "Bar", said, "IFCREAL"))) == expected


@pytest.mark.parametrize(("said", "expected"), [("2", "pass"), ("3", "pass"), ("2.5", "fail")])
def test_a_bounded_property_with_a_set_point_has_three_values(said, expected, checked):
    model = Model()
    model.properties([model.make("IfcWall")], "Foo", model.bounded("Bar", 2, 4, 3))
    assert outcome(checked(model, prop("Foo", "Bar", said, "IFCREAL"))) == expected


def test_all_values_of_a_list_must_be_in_a_range_and_one_must_be_a_value(checked):
    model = Model()
    values = [model.file.create_entity("IfcReal", each) for each in (3.0, 6.0)]
    several = model.file.create_entity("IfcPropertyListValue", Name="Bar", ListValues=values)
    model.properties([model.make("IfcWall")], "Foo", several)
    assert outcome(checked(model, prop("Foo", "Bar", RANGE, "IFCREAL"))) == "fail"
    assert outcome(checked(model, prop("Foo", "Bar", "6", "IFCREAL"))) == "pass"


def test_lengths_are_metres_and_temperatures_kelvin(checked):
    model = Model()
    celsius = model.file.create_entity(
        "IfcSIUnit", UnitType="THERMODYNAMICTEMPERATUREUNIT", Name="DEGREE_CELSIUS"
    )
    (units,) = model.file.by_type("IfcUnitAssignment")
    units.Units = (*units.Units, celsius)
    model.properties(
        [model.make("IfcWall")], "Foo",
        model.single("Length", "IfcPositiveLengthMeasure", 2500.0),
        model.single("Heat", "IfcThermodynamicTemperatureMeasure", 20.0),
    )  # fmt: skip
    door = model.make("IfcDoor", OverallHeight=2100.0)
    assert door.OverallHeight == 2100
    assert outcome(
        checked(
            model,
            prop("Foo", "Length", "2.5", "IFCPOSITIVELENGTHMEASURE"),
            prop("Foo", "Heat", "293.15", "IFCTHERMODYNAMICTEMPERATUREMEASURE"),
        )
    ) == "pass"  # fmt: skip
    high = attribute("OverallHeight", "2.1")
    assert outcome(checked(model, high, applies=entity("IFCDOOR"), occurs=REQUIRED)) == "pass"


def test_every_set_that_a_pattern_means_must_have_the_property(checked):
    model = Model()
    wall = model.make("IfcWall")
    model.properties([wall], "Foo_A", model.single("Bar", "IfcLabel", "x"))
    asked = prop(pattern("Foo_.*"), "Bar", "x", "IFCLABEL")
    assert outcome(checked(model, asked)) == "pass"
    model.properties([wall], "Foo_B", model.single("Other", "IfcLabel", "x"))
    (row,) = checked(model, asked)
    assert row["reason"] == "its property set Foo_B has no value of a property Bar"
    model.properties([wall], "Foo_B", model.single("Bar", "IfcLabel", "y"))
    (row,) = checked(model, asked)
    assert "is 'y' of IFCLABEL, not 'x' of IFCLABEL" in row["reason"]


def test_an_object_hides_properties_of_its_type_one_by_one(checked):
    model = Model()
    wall = model.make("IfcWall")
    of_type = model.make(
        "IfcPropertySet",
        Name="Foo",
        HasProperties=[model.single("A", "IfcLabel", "x"), model.single("B", "IfcLabel", "x")],
    )
    kind = model.make("IfcWallType", HasPropertySets=[of_type], PredefinedType="NOTDEFINED")
    model.make("IfcRelDefinesByType", RelatedObjects=[wall], RelatingType=kind)
    model.properties([wall], "Foo", model.single("A", "IfcLabel", "y"))
    assert outcome(checked(model, prop("Foo", "A", "y", "IFCLABEL"))) == "pass"
    assert outcome(checked(model, prop("Foo", "B", "x", "IFCLABEL"))) == "pass"
    assert outcome(checked(model, prop("Foo", "A", "x", "IFCLABEL"))) == "fail"


def test_optional_and_prohibited_properties(checked):
    model = Model()
    wall = model.make("IfcWall")
    optional = prop("Foo", "Bar", "x", "IFCLABEL", 'cardinality="optional"')
    prohibited = prop("Foo", "Bar", attributes='cardinality="prohibited"')
    assert outcome(checked(model, optional, prohibited)) == "pass"
    model.properties([wall], "Foo", model.single("Bar"))
    assert outcome(checked(model, optional)) == "pass"
    assert outcome(checked(model, prohibited)) == "fail"  # "even if empty"
    model.properties([wall], "Foo2", model.single("Bar", "IfcLabel", "y"))
    assert outcome(checked(model, optional)) == "pass"
    model.properties([wall], "Foo", model.single("Bar", "IfcLabel", "y"))
    assert outcome(checked(model, optional)) == "fail"


def test_prohibited_attributes_may_not_even_be_empty(checked):
    model = Model()
    wall = model.make("IfcWall")
    prohibited = attribute("Name", attributes='cardinality="prohibited"')
    of_value = attribute("Name", "x", 'cardinality="prohibited"')
    assert outcome(checked(model, prohibited, of_value)) == "pass"
    wall.Name = ""
    assert outcome(checked(model, prohibited)) == "fail"
    assert outcome(checked(model, of_value)) == "pass"
    wall.Name = "x"
    assert outcome(checked(model, of_value)) == "fail"


def test_materials_and_profiles_have_properties(checked):
    model = Model()
    material = model.file.create_entity("IfcMaterial", Name="Oak")
    model.file.create_entity(
        "IfcMaterialProperties", Name="Foo",
        Properties=[model.single("Bar", "IfcLabel", "x")], Material=material,
    )  # fmt: skip
    asked = prop("Foo", "Bar", "x", "IFCLABEL")
    found = checked(model, asked, applies=entity("IFCMATERIAL"))
    assert [row["status"] for row in found] == ["passed"]
    assert found[0]["global_id"] is None
    assert found[0]["name"] == "Oak"


def test_materials_of_ifc2x3_have_properties(checked):
    model = Model("IFC2X3")
    material = model.file.create_entity("IfcMaterial", Name="Oak")
    model.file.create_entity(
        "IfcExtendedMaterialProperties", Name="Foo",
        ExtendedProperties=[model.single("Bar", "IfcLabel", "x")], Material=material,
    )  # fmt: skip
    found = checked(model, prop("Foo", "Bar", "x", "IFCLABEL"), applies=entity("IFCMATERIAL"))
    assert [row["status"] for row in found] == ["passed"]


def test_types_say_what_occurrences_of_ifc2x3_are(checked):
    model = Model("IFC2X3")
    grille, other = (model.make("IfcFlowTerminal", Name=name) for name in ("grille", "other"))
    kind = model.make("IfcAirTerminalType", PredefinedType="GRILLE")
    model.make("IfcRelDefinesByType", RelatedObjects=[grille], RelatingType=kind)
    found = checked(model, attribute("Name", "grille"), applies=entity("IFCAIRTERMINAL"))
    assert [(row["name"], row["status"]) for row in found] == [("grille", "passed")]
    found = checked(model, entity("IFCAIRTERMINAL", "GRILLE"), applies=entity("IFCFLOWTERMINAL"))
    assert {row["name"]: row["status"] for row in found} == {
        "grille": "passed", "other": "failed",
    }  # fmt: skip
    assert other.is_a("IfcFlowTerminal")


def test_the_window_is_part_of_the_wall_through_the_opening(checked):
    model = Model()
    wall, window = model.make("IfcWall"), model.make("IfcWindow")
    opening = model.make("IfcOpeningElement")
    model.make("IfcRelVoidsElement", RelatingBuildingElement=wall, RelatedOpeningElement=opening)
    model.make("IfcRelFillsElement", RelatingOpeningElement=opening, RelatedBuildingElement=window)
    relation = 'relation="IFCRELVOIDSELEMENT IFCRELFILLSELEMENT"'
    for said in ("", relation):
        part = facet("partOf", said, entity=entity("IFCWALL"))
        assert outcome(checked(model, part, applies=entity("IFCWINDOW"))) == "pass"
    part = facet("partOf", 'relation="IFCRELAGGREGATES"', entity=entity("IFCWALL"))
    (row,) = checked(model, part, applies=entity("IFCWINDOW"))
    assert row["reason"] == "it is part of nothing by IFCRELAGGREGATES"


def test_parts_that_are_wholes_of_each_other_end(checked):
    model = Model()
    one, other = model.make("IfcWall"), model.make("IfcWall")
    for whole, part in ((one, other), (other, one)):
        model.make("IfcRelAggregates", RelatingObject=whole, RelatedObjects=[part])
    part = facet("partOf", entity=entity("IFCSITE"))
    assert outcome(checked(model, part)) == "fail"
    assert outcome(checked(model, facet("partOf", entity=entity("IFCWALL")))) == "pass"


@pytest.mark.parametrize(
    ("occurs", "empty", "full"),
    [(REQUIRED, "failed", "passed"), (OPTIONAL, "not applicable", "passed"),
     (PROHIBITED, "passed", "failed")],
)  # fmt: skip
def test_how_many_objects_there_must_be(occurs, empty, full, checked):
    model = Model()
    (row,) = checked(model, occurs=occurs)
    assert row["status"] == empty
    assert row["step_id"] is None
    model.make("IfcWall")
    (row,) = checked(model, occurs=occurs)
    assert (row["status"], row["ifc_class"]) == (full, "IfcWall")


def test_an_applicability_needs_no_class(checked):
    model = Model()
    wall, slab = (model.make(name, Name=name) for name in ("IfcWall", "IfcSlab"))
    model.properties([wall, slab], "Foo", model.single("Bar", "IfcBoolean", value=True))
    asked = prop("Foo", "Bar", "true", "IFCBOOLEAN")
    found = checked(model, attribute("Name", "IfcWall"), applies=asked)
    assert {row["name"]: row["status"] for row in found} == {
        "IfcWall": "passed", "IfcSlab": "failed",
    }  # fmt: skip
    found = checked(model, applies=attribute("Name", "IfcSlab"))
    assert [row["ifc_class"] for row in found] == ["IfcSlab"]


def test_one_of_several_patterns_is_enough(checked):
    # XML Schema Part 2, 4.3.4.3: patterns of one restriction are alternatives; IfcTester wants all
    model = Model()
    for name in ("x", "DT01", "y"):
        model.make("IfcWall", Name=name)
    said = "xs:string", '<xs:pattern value="x"/><xs:pattern value="DT.*"/>'
    found = {row["name"]: row["status"] for row in checked(model, attribute("Name", said))}
    assert found == {"x": "passed", "DT01": "passed", "y": "failed"}


def test_code_and_system_are_those_of_one_reference(checked):
    model = Model()
    wall = model.make("IfcWall")
    for system, code in (("S", "2"), ("Y", "1")):
        source = model.file.create_entity("IfcClassification", Name=system)
        reference = model.file.create_entity(
            "IfcClassificationReference", Identification=code, ReferencedSource=source
        )
        model.make(
            "IfcRelAssociatesClassification",
            RelatedObjects=[wall],
            RelatingClassification=reference,
        )
    for code, expected in (("2", "pass"), ("1", "fail")):
        for cardinality, is_right in (("required", True), ("prohibited", False)):
            asked = facet("classification", f'cardinality="{cardinality}"', value=code, system="S")
            assert (outcome(checked(model, asked)) == expected) is is_right


def test_only_the_named_relation_leads_to_the_whole_as_far_as_it_goes(checked):
    model = Model()
    wall, assembly = model.make("IfcWall"), model.make("IfcElementAssembly")
    storey, group, system = (
        model.make(name) for name in ("IfcBuildingStorey", "IfcGroup", "IfcSystem")
    )
    model.make("IfcRelAggregates", RelatingObject=assembly, RelatedObjects=[wall])
    model.make(
        "IfcRelContainedInSpatialStructure", RelatingStructure=storey, RelatedElements=[assembly]
    )
    model.make("IfcRelAssignsToGroup", RelatingGroup=group, RelatedObjects=[wall])
    model.make("IfcRelAssignsToGroup", RelatingGroup=system, RelatedObjects=[group])
    contained, grouped = "IFCRELCONTAINEDINSPATIALSTRUCTURE", "IFCRELASSIGNSTOGROUP"
    for relation, whole, expected in (
        (None, "IFCBUILDINGSTOREY", "pass"), (contained, "IFCBUILDINGSTOREY", "fail"),
        (None, "IFCSYSTEM", "pass"), (grouped, "IFCSYSTEM", "pass"), (grouped, "IFCGROUP", "pass"),
    ):  # fmt: skip
        said = f'relation="{relation}"' if relation else ""
        asked = facet("partOf", said, entity=entity(whole))
        assert outcome(checked(model, asked)) == expected


@pytest.mark.parametrize(
    ("of_type", "own", "expected"),
    [
        (("USERDEFINED", "WALDO"), ("SHEAR", None), {"USERDEFINED", "WALDO"}),
        (("USERDEFINED", None), ("SHEAR", None), {"USERDEFINED"}),
        (("SHEAR", None), ("USERDEFINED", "WALDO"), {"SHEAR"}),
        (("NOTDEFINED", None), ("SHEAR", None), {"NOTDEFINED", "SHEAR"}),
        (("NOTDEFINED", None), ("USERDEFINED", "WALDO"), {"NOTDEFINED", "USERDEFINED", "WALDO"}),
        (None, ("USERDEFINED", "WALDO"), {"USERDEFINED", "WALDO"}),
        (None, (None, "WALDO"), set()),
    ],
)
def test_predefined_types_are_those_of_the_type_if_it_says_one(of_type, own, expected, checked):
    model = Model()
    wall = model.make("IfcWall", PredefinedType=own[0], ObjectType=own[1])
    if of_type is not None:
        kind = model.make("IfcWallType", PredefinedType=of_type[0], ElementType=of_type[1])
        model.make("IfcRelDefinesByType", RelatedObjects=[wall], RelatingType=kind)
    names = ("USERDEFINED", "WALDO", "SHEAR", "NOTDEFINED")
    found = {name for name in names if outcome(checked(model, entity("IFCWALL", name))) == "pass"}
    assert found == expected
