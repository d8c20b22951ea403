"""Materials, classifications and true north: against ifcopenshell.util, and of made models."""

import json
from collections import defaultdict

import ifcopenshell
import ifcopenshell.guid
import ifcopenshell.util.classification
import ifcopenshell.util.element
import ifcopenshell.util.geolocation
import ifcopenshell.util.unit
import pytest

from spatialq.io.ifc.facts import describe
from spatialq.io.ifc.guard import checked
from spatialq.io.ifc.tables import table
from tests.conftest import real_file

MATERIALS = (
    "AC20-FZK-Haus.ifc", "AC11-Institute-Var-2-IFC.ifc", "Office_A_20110811.ifc",
    "ISSUE_171_IfcSurfaceCurveSweptAreaSolid.ifc", "SampleHouse4.ifczip", "TestModel_IFC4Add2.ifc",
    "bimwhale_LargeBuilding.ifczip", "Duplex_Electrical.ifczip", "bsi43_slab-openings.ifc",
    "Schependomlaan_V_L_Constructief.ifczip", "webifc_example.ifc",
)  # fmt: skip
CLASSIFIED = (
    "AC20-FZK-Haus.ifc", "AC11-Institute-Var-2-IFC.ifc", "Duplex_Electrical.ifczip",
    "SampleHouse4.ifczip", "bimwhale_LargeBuilding.ifczip", "webifc_example.ifc",
    "Schependomlaan_V_L_Constructief.ifczip", "Schependomlaan_ROOT-houten_kozijnen.ifczip",
)  # fmt: skip
NORTHS = (
    "AC20-FZK-Haus.ifc", "AC11-Institute-Var-2-IFC.ifc", "Duplex_A_20110907.ifc",
    "SampleHouse4.ifczip", "IfcOpenHouse_IFC4.ifc", "tested_sample_project.ifc",
    "TestModel_IFC4Add2.ifc", "hvac_heating.ifczip", "bimwhale_LargeBuilding.ifczip",
)  # fmt: skip


def opened(name):
    with checked(real_file(f"data/ifc/{name}")) as step:
        return ifcopenshell.open(str(step.path), format=".ifc")


def read(model, name):
    """The rows of a table, after a trip through JSON."""
    facts = json.loads(json.dumps(describe(model)))
    return table(name, facts["tables"][name], "x.ifc").to_pylist()


def by_owner(rows):
    found = defaultdict(list)
    for row in rows:
        found[row["global_id"]].append(row)
    return found


def parts_of(material, scale):
    """What a material definition consists of, by the attributes that its class has."""
    usage, end = material, getattr(material, "ForProfileEndSet", None)
    material = getattr(material, "ForLayerSet", getattr(material, "ForProfileSet", material))
    kind = material.is_a()
    if kind == "IfcMaterialLayerSet":
        for layer in material.MaterialLayers:
            offset = getattr(usage, "OffsetFromReferenceLine", None)
            yield {
                "kind": "layer",
                "set_name": material.LayerSetName,
                "name": getattr(layer, "Name", None),
                "material": layer.Material and layer.Material.Name,
                "thickness": pytest.approx(layer.LayerThickness * scale),
                "layer_direction": getattr(usage, "LayerSetDirection", None),
                "sense": getattr(usage, "DirectionSense", None),
                "offset": None if offset is None else pytest.approx(offset * scale),
            }
    elif kind == "IfcMaterialProfileSet":
        for profile in (*material.MaterialProfiles, *(end.MaterialProfiles if end else ())):
            yield {
                "kind": "profile",
                "name": profile.Name,
                "material": profile.Material and profile.Material.Name,
                "profile": profile.Profile and profile.Profile.ProfileName,
                "thickness": None,
            }
    elif kind == "IfcMaterialConstituentSet":
        for each in material.MaterialConstituents:
            yield {
                "kind": "constituent",
                "set_name": material.Name,
                "name": each.Name,
                "material": each.Material.Name,
                "fraction": each.Fraction,
            }
    elif kind == "IfcMaterialList":
        for each in material.Materials:
            yield {"kind": "list", "material": each.Name, "name": None, "set_name": None}
    else:
        assert kind == "IfcMaterial"
        yield {"kind": "material", "material": material.Name, "sense": None, "offset": None}


@pytest.mark.slow
@pytest.mark.parametrize("name", MATERIALS)
def test_materials_equal_those_of_ifcopenshell(name):
    model = opened(name)
    rows = by_owner(read(model, "materials"))
    scale = ifcopenshell.util.unit.calculate_unit_scale(model)
    compared = 0
    for owner in model.by_type("IfcObjectDefinition"):
        found = rows.pop(owner.GlobalId, [])
        material = ifcopenshell.util.element.get_material(owner)
        own = ifcopenshell.util.element.get_material(owner, should_inherit=False)
        assert [row["position"] for row in found] == list(range(1, len(found) + 1))
        assert {row["source"] for row in found} <= {"instance" if own else "type"}
        expected = list(parts_of(material, scale)) if material else []
        several = [r for r in owner.HasAssociations if r.is_a("IfcRelAssociatesMaterial")]
        assert len(found) == len(expected) or len(several) > 1
        for row, part in zip(found, expected, strict=False):
            assert {key: row[key] for key in part} == part
            compared += 1
    assert not rows
    assert compared


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIED)
def test_classifications_equal_those_of_ifcopenshell(name):
    model = opened(name)
    rows = by_owner(read(model, "classifications"))
    for owner in model.by_type("IfcObjectDefinition"):
        own = ifcopenshell.util.classification.get_references(owner, should_inherit=False)
        expected = set()
        for each in ifcopenshell.util.classification.get_references(owner):
            system = ifcopenshell.util.classification.get_classification(each)
            identification = each[1]  # ItemReference or Identification
            source = "instance" if each in own else "type"
            system = system and system.Name
            expected.add((system, identification, each.Name, each.Location, source))
        found = rows.pop(owner.GlobalId, [])
        names = "system", "identification", "name", "location", "source"
        assert {tuple(row[each] for each in names) for row in found} == expected
    assert not rows


@pytest.mark.slow
@pytest.mark.parametrize("name", NORTHS)
def test_true_north_equals_that_of_ifcopenshell(name):
    """Theirs is counted anticlockwise, and 0 where the file does not say."""
    model = opened(name)
    (row,) = read(model, "models")
    turn = (-ifcopenshell.util.geolocation.get_true_north(model)) % 360
    assert (row["true_north"] or 0.0) % 360 == pytest.approx(turn, abs=1e-9)
    said = any(
        context.TrueNorth
        for context in model.by_type("IfcGeometricRepresentationContext", include_subtypes=False)
    )
    assert (row["true_north"] is not None) == said
    assert row["name"] == model.by_type("IfcProject")[0].Name


class House:
    """A wall with its type in a model in millimetres."""

    def __init__(self, schema="IFC4"):
        self.model = ifcopenshell.file(schema=schema)
        unit = self.make("IfcSIUnit", UnitType="LENGTHUNIT", Prefix="MILLI", Name="METRE")
        project = self.add("IfcProject")
        project.UnitsInContext = self.make("IfcUnitAssignment", [unit])
        self.wall, self.kind = self.add("IfcWall"), self.add("IfcWallType")
        self.add("IfcRelDefinesByType", RelatedObjects=[self.wall], RelatingType=self.kind)

    def make(self, ifc_class, *values, **attributes):
        return self.model.create_entity(ifc_class, *values, **attributes)

    def add(self, ifc_class, **attributes):
        return self.make(ifc_class, GlobalId=ifcopenshell.guid.new(), **attributes)

    def give(self, owner, what):
        kind = "Classification" if what.is_a().startswith("IfcClass") else "Material"
        relation = self.add(f"IfcRelAssociates{kind}", RelatedObjects=[owner])
        relation[5] = what

    def of(self, owner, name):
        return by_owner(read(self.model, name))[owner.GlobalId]


def test_layers_of_a_wall_hide_those_of_its_type():
    house = House()
    brick, wool = (house.make("IfcMaterial", name, Category=name[0]) for name in ("brick", "wool"))
    layers = [
        house.make("IfcMaterialLayer", brick, 240.0, Name="core", Category="LoadBearing"),
        house.make("IfcMaterialLayer", wool, 120.5),
        house.make("IfcMaterialLayer", None, 0.0),
    ]
    together = house.make("IfcMaterialLayerSet", layers, "outer wall")
    house.give(house.kind, together)
    names = "position", "name", "material", "category", "thickness", "set_name", "offset", "source"
    layers = [
        (1, "core", "brick", "LoadBearing", 0.24, "outer wall"),
        (2, None, "wool", "w", 0.1205, "outer wall"),
        (3, None, None, None, 0.0, "outer wall"),
    ]

    def rows(owner):
        return [tuple(row[name] for name in names) for row in house.of(owner, "materials")]

    assert rows(house.kind) == [(*layer, None, "instance") for layer in layers]
    assert rows(house.wall) == [(*layer, None, "type") for layer in layers]
    house.give(
        house.wall, house.make("IfcMaterialLayerSetUsage", together, "AXIS2", "NEGATIVE", -120.0)
    )
    assert rows(house.wall) == [(*layer, -0.12, "instance") for layer in layers]
    (row, *_) = house.of(house.wall, "materials")
    assert (row["kind"], row["layer_direction"], row["sense"]) == ("layer", "AXIS2", "NEGATIVE")


def test_constituents_and_tapering_profiles():
    house = House()
    steel = house.make("IfcMaterial", "steel")
    glass = house.make("IfcMaterialConstituent", Name="pane", Material=steel, Fraction=0.25)
    house.give(house.wall, house.make("IfcMaterialConstituentSet", "set", None, [glass]))
    (row,) = house.of(house.wall, "materials")
    names = "kind", "set_name", "name", "material", "fraction"
    assert [row[name] for name in names] == ["constituent", "set", "pane", "steel", 0.25]
    sets = []
    for name in ("thick", "thin"):
        shape = house.make("IfcCircleProfileDef", "AREA", name, Radius=1.0)
        profile = house.make("IfcMaterialProfile", name[:4], Material=steel, Profile=shape)
        sets.append(house.make("IfcMaterialProfileSet", name, None, [profile]))
    house.give(
        house.kind,
        house.make(
            "IfcMaterialProfileSetUsageTapering", ForProfileSet=sets[0], ForProfileEndSet=sets[1]
        ),
    )
    rows = house.of(house.kind, "materials")
    assert [(row["set_name"], row["profile"]) for row in rows] == [
        ("thick", "thick"), ("thin", "thin"),
    ]  # fmt: skip


def test_a_reference_hides_those_of_the_type_in_its_system():
    house = House()
    systems = [house.make("IfcClassification", Name=name) for name in ("OmniClass", "Uniclass")]
    above = house.make("IfcClassificationReference", None, "21", None, systems[0])
    make = house.make
    house.give(house.kind, make("IfcClassificationReference", None, "21.1", "of type", above))
    house.give(house.kind, make("IfcClassificationReference", None, "Ss_25", None, systems[1]))
    house.give(house.kind, make("IfcClassificationReference", "http://x", "17", None, None))
    own = make("IfcClassificationReference", None, "21.2", "own", above)
    house.give(house.wall, own)
    house.give(house.wall, own)
    names = "system", "identification", "name", "location", "source"

    def rows():
        return [
            tuple(row[name] for name in names) for row in house.of(house.wall, "classifications")
        ]

    expected = [
        ("OmniClass", "21.2", "own", None, "instance"),
        ("Uniclass", "Ss_25", None, None, "type"),
        (None, "17", None, "http://x", "type"),
    ]
    assert rows() == expected
    house.give(house.wall, systems[1])  # the system itself
    assert rows() == [
        expected[0], ("Uniclass", None, None, None, "instance"), expected[2],
    ]  # fmt: skip


def test_notations_of_ifc2x3():
    house = House("IFC2X3")
    facets = [house.make("IfcClassificationNotationFacet", value) for value in ("21", "22")]
    house.give(house.wall, house.make("IfcClassificationNotation", facets))
    house.give(house.wall, house.make("IfcClassificationReference", "http://x", "21", "wall"))
    notation, reference = house.of(house.wall, "classifications")
    assert notation["identification"] in ("21.22", "22.21")  # facets have no order
    names = "system", "identification", "name", "location"
    assert [reference[name] for name in names] == [None, "21", "wall", "http://x"]


def test_damaged_associations_break_nothing():
    house = House()
    circle = house.make("IfcClassificationReference", None, "1")
    circle.ReferencedSource = circle
    house.give(house.wall, circle)
    for ifc_class in (
        "IfcMaterialLayerSetUsage", "IfcMaterialLayerSet", "IfcMaterialProfileSetUsage",
        "IfcMaterialProfileSet", "IfcMaterialConstituentSet", "IfcMaterialList", "IfcMaterialLayer",
        "IfcMaterialProfile", "IfcMaterialConstituent", "IfcMaterial",
    ):  # fmt: skip
        house.give(house.wall, house.make(ifc_class))
    for kind in ("Material", "Classification"):
        house.add(f"IfcRelAssociates{kind}", RelatedObjects=[house.wall])
        house.add(f"IfcRelAssociates{kind}")
    usage = house.make("IfcMaterialLayerSetUsage", LayerSetDirection="AXIS1")
    house.give(house.wall, usage)
    wall, usage = f"#{house.wall.id()}", f"#{usage.id()}="
    text = house.model.to_string()
    damaged = text.replace("IFCMATERIALLIST($)", f"IFCMATERIALLIST(({wall},$))")
    damaged = damaged.replace(
        f"{usage}IFCMATERIALLAYERSETUSAGE($", f"{usage}IFCMATERIALLAYERSETUSAGE({usage[:-1]}"
    )
    damaged = damaged.replace("IFCMATERIALLAYER($", f"IFCMATERIALLAYER({wall}")
    assert damaged != text
    model = ifcopenshell.file.from_string(damaged)
    rows = by_owner(read(model, "materials"))[house.wall.GlobalId]
    assert [row["kind"] for row in rows] == ["list", "layer", "profile", "constituent", "material"]
    (row,) = by_owner(read(model, "classifications"))[house.wall.GlobalId]
    assert (row["system"], row["identification"]) == (None, "1")


@pytest.mark.parametrize(
    ("ratios", "degrees"),
    [
        ((0.0, 1.0), 0.0), ((1.0, 0.0), 90.0), ((-1.0, 1.0), -45.0), ((0.0, -2.0, 0.0), 180.0),
        ((0.0, 0.0), None), ((1.0,), None), (None, None),
    ],
)  # fmt: skip
def test_true_north_is_counted_clockwise(ratios, degrees):
    house = House()
    direction = house.make("IfcDirection", ratios) if ratios else None
    house.make("IfcGeometricRepresentationContext", ContextType="Model")
    house.make("IfcGeometricRepresentationContext", ContextType="Model", TrueNorth=direction)
    (row,) = read(house.model, "models")
    assert row["true_north"] == (None if degrees is None else pytest.approx(degrees))
