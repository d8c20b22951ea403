"""Properties with their units: against ifcopenshell.util.element, and units computed by hand."""

import json
import math
from collections import defaultdict

import ifcopenshell
import ifcopenshell.api.pset
import ifcopenshell.api.root
import ifcopenshell.api.type
import ifcopenshell.guid
import ifcopenshell.util.element
import ifcopenshell.util.unit
import pytest

from spatialq.io.ifc.facts import describe
from spatialq.io.ifc.guard import checked
from spatialq.io.ifc.property_table import property_table, property_texts
from spatialq.io.ifc.units import si_conversion, unit_name
from tests.conftest import real_file

MODELS = (
    "AC20-FZK-Haus.ifc", "AC11-Institute-Var-2-IFC.ifc", "Office_A_20110811.ifc",
    "SampleHouse4.ifczip", "TestModel_IFC4Add2.ifc", "Duplex_Electrical.ifczip",
    "hvac_heating.ifczip", "bimwhale_LargeBuilding.ifczip",
    "bsi43_linear-placement-of-signal.ifc", "Schependomlaan_ROOT-houten_kozijnen.ifczip",
)  # fmt: skip


def opened(name):
    with checked(real_file(f"data/ifc/{name}")) as step:
        return ifcopenshell.open(str(step.path), format=".ifc")


def read(model):
    """The table as rows, and the JSON objects by step id, after a trip through JSON."""
    packed = json.loads(json.dumps(describe(model)["properties"]))
    texts = property_texts(packed)
    rows = property_table(packed, "x.ifc").to_pylist()
    return rows, {step_id: json.loads(text) for step_id, text in texts.items()}


def simple(value):
    """What IfcOpenShell says of a property as JSON."""
    if isinstance(value, dict) and "properties" in value:
        return simple(value["properties"])
    if isinstance(value, dict) and value.get("type") == "IfcPropertyBoundedValue":
        names = {
            "lower": "LowerBoundValue",
            "upper": "UpperBoundValue",
            "set_point": "SetPointValue",
        }
        return {key: simple(value[name]) for key, name in names.items() if value.get(name)}
    if isinstance(value, dict) and value.get("type") == "IfcPropertyTableValue":
        return {key: simple(value[f"{key.title()}Values"] or ()) for key in ("defining", "defined")}
    if isinstance(value, dict):
        return {name: simple(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [simple(part) for part in value]
    if isinstance(value, ifcopenshell.entity_instance):
        return simple(value.wrappedValue) if value.id() == 0 else value.is_a()
    return value


def psets(element, **options):
    found = {}
    for name, values in ifcopenshell.util.element.get_psets(element, **options).items():
        found[name] = {key: simple(value) for key, value in values.items() if key != "id"}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_properties_equal_those_of_ifcopenshell(name):
    model = opened(name)
    rows, texts = read(model)
    by_owner = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        by_owner[row["global_id"]][row["pset"]][row["property"]] = row
    compared = unnamed = 0
    for owner in model.by_type("IfcObjectDefinition"):
        expected = psets(owner)
        if None in expected:  # IfcOpenShell makes one of all sets without a name
            unnamed += sum(map(len, by_owner[owner.GlobalId].values()))
            continue
        assert texts[owner.id()] == expected
        own = psets(owner, should_inherit=False)
        found = by_owner[owner.GlobalId]
        assert {pset: set(values) for pset, values in found.items()} == {
            pset: set(values) for pset, values in expected.items() if values
        }
        for pset, values in found.items():
            for key, row in values.items():
                value = expected[pset][key]
                is_text = value is None or isinstance(value, str)
                assert row["value"] == (value if is_text else json.dumps(value, ensure_ascii=False))
                is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
                assert row["number"] == (value if is_number else None)
                assert row["source"] == ("instance" if key in own.get(pset, ()) else "type")
                compared += 1
    assert compared + unnamed == len(rows) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_units_of_properties_equal_those_of_ifcopenshell(name):
    """Factor by factor, but mass, of which IfcOpenShell's unit is the gram, and temperatures."""
    model = opened(name)
    rows, _ = read(model)
    by_key = {(row["global_id"], row["pset"], row["property"]): row for row in rows}
    compared = 0
    for definition in (*model.by_type("IfcPropertySet"), *model.by_type("IfcElementQuantity")):
        for owner in ifcopenshell.util.element.get_elements_by_pset(definition):
            for member in getattr(definition, "HasProperties", None) or definition[5] or ():
                row = by_key.get((owner.GlobalId, definition.Name, member.Name))
                if row is None or not member.is_a("IfcPropertySingleValue") or not member[2]:
                    continue
                if row["number"] != member[2].wrappedValue or isinstance(member[2][0], bool):
                    continue
                unit = ifcopenshell.util.unit.get_property_unit(member, model)
                assert row["unit"] == (unit_name(unit) if unit else None)
                if unit and "gram" not in row["unit"] and "celsius" not in row["unit"]:
                    factor = ifcopenshell.util.unit.get_unit_scale(unit)
                    assert row["unit_si"] == pytest.approx(factor, rel=1e-12)
                    assert row["number_si"] == pytest.approx(row["number"] * factor, rel=1e-12)
                    compared += 1
    assert compared or name.startswith("bsi43")


class Units:
    """Units of a model, made of their parts."""

    def __init__(self, schema="IFC4"):
        self.model = ifcopenshell.file(schema=schema)

    def si(self, kind, name, prefix=None):
        return self.model.create_entity("IfcSIUnit", UnitType=kind, Prefix=prefix, Name=name)

    def converted(self, kind, name, factor, base, offset=None):
        ratio = self.model.create_entity("IfcReal", factor)
        measure = self.model.create_entity("IfcMeasureWithUnit", ratio, base)
        ifc_class = (
            "IfcConversionBasedUnit" if offset is None else "IfcConversionBasedUnitWithOffset"
        )
        more = {} if offset is None else {"ConversionOffset": offset}
        return self.model.create_entity(
            ifc_class, UnitType=kind, Name=name, ConversionFactor=measure, **more
        )

    def derived(self, *elements):
        parts = [self.model.create_entity("IfcDerivedUnitElement", *each) for each in elements]
        return self.model.create_entity("IfcDerivedUnit", Elements=parts, UnitType="USERDEFINED")


U = Units()
METRE, KELVIN, GRAM = (
    U.si(*each)
    for each in (
        ("LENGTHUNIT", "METRE"), ("THERMODYNAMICTEMPERATUREUNIT", "KELVIN"), ("MASSUNIT", "GRAM"),
    )
)  # fmt: skip
KILOGRAM = U.si("MASSUNIT", "GRAM", "KILO")
MILLIMETRE = U.si("LENGTHUNIT", "METRE", "MILLI")
CELSIUS = U.si("THERMODYNAMICTEMPERATUREUNIT", "DEGREE_CELSIUS")
WATT = U.si("POWERUNIT", "WATT")
CUBIC_METRE = U.si("VOLUMEUNIT", "CUBIC_METRE")
SECOND = U.si("TIMEUNIT", "SECOND")
INCH = U.converted("LENGTHUNIT", "INCH", 25.4, MILLIMETRE)
KINDS = "LENGTHUNIT", "MASSUNIT", "THERMODYNAMICTEMPERATUREUNIT"

# unit, its name, factor, offset
UNITS = {
    "millimetre": (MILLIMETRE, "millimetre", 0.001, 0),
    "square millimetre": (U.si("AREAUNIT", "SQUARE_METRE", "MILLI"), "millisquare_metre", 1e-6, 0),
    "cubic decimetre": (U.si("VOLUMEUNIT", "CUBIC_METRE", "DECI"), "decicubic_metre", 1e-3, 0),
    "kilogram": (KILOGRAM, "kilogram", 1, 0),
    "gram": (GRAM, "gram", 0.001, 0),
    "megagram": (U.si("MASSUNIT", "GRAM", "MEGA"), "megagram", 1000, 0),
    "tonne": (U.converted(KINDS[1], "tonne", 1000.0, KILOGRAM), "tonne", 1000, 0),
    "kilowatt": (U.si("POWERUNIT", "WATT", "KILO"), "kilowatt", 1000, 0),
    "lux": (U.si("ILLUMINANCEUNIT", "LUX"), "lux", 1, 0),
    "inch": (INCH, "inch", 0.0254, 0),
    "foot of inches": (U.converted(KINDS[0], "FOOT", 12.0, INCH), "foot", 0.3048, 0),
    "foot": (U.converted(KINDS[0], "FOOT", 0.3048, METRE), "foot", 0.3048, 0),
    "degree": (
        U.converted("PLANEANGLEUNIT", "DEGREE", math.pi / 180, U.si("PLANEANGLEUNIT", "RADIAN")),
        "degree", math.pi / 180, 0,
    ),
    "litre": (U.converted("VOLUMEUNIT", "litre", 0.001, CUBIC_METRE), "litre", 0.001, 0),
    "kelvin": (KELVIN, "kelvin", 1, 0),
    "Celsius": (CELSIUS, "degree_celsius", 1, 273.15),
    "Fahrenheit of IfcOpenShell": (
        U.converted(KINDS[2], "fahrenheit", 1.8, KELVIN, -459.67), "fahrenheit", 5 / 9, 255.372222,
    ),
    "Fahrenheit as the schema says": (
        U.converted(KINDS[2], "DEGREE FAHRENHEIT", 5 / 9, KELVIN, 255.372222),
        "degree fahrenheit", 5 / 9, 255.372222,
    ),
    "Réaumur": (U.converted(KINDS[2], "REAUMUR", 1.25, CELSIUS, 0.0), "reaumur", 1.25, 273.15),
    "heat transfer": (
        U.derived((WATT, 1), (METRE, -2), (KELVIN, -1)), "watt metre^-2 kelvin^-1", 1, 0,
    ),
    "heat transfer by Celsius": (
        U.derived((WATT, 1), (METRE, -2), (CELSIUS, -1)), "watt metre^-2 degree_celsius^-1", 1, 0,
    ),
    "density": (U.derived((KILOGRAM, 1), (METRE, -3)), "kilogram metre^-3", 1, 0),
    "litre a second": (
        U.derived((U.converted("VOLUMEUNIT", "litre", 0.001, CUBIC_METRE), 1), (SECOND, -1)),
        "litre second^-1", 0.001, 0,
    ),
    "newton a square millimetre": (
        U.derived((U.si("FORCEUNIT", "NEWTON"), 1), (MILLIMETRE, -2)),
        "newton millimetre^-2", 1e6, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNITS)
def test_numbers_become_those_of_si_units(name):
    unit, text, factor, offset = UNITS[name]
    assert unit_name(unit) == text
    assert si_conversion(unit) == pytest.approx((factor, offset), rel=1e-9)


def test_water_boils_at_the_same_temperature_in_all_units():
    numbers = {"kelvin": 373.15, "Celsius": 100, "Fahrenheit of IfcOpenShell": 212, "Réaumur": 80}
    for name, number in numbers.items():
        factor, offset = si_conversion(UNITS[name][0])
        assert factor * number + offset == pytest.approx(373.15)


def test_what_has_no_si_unit_has_no_factor():
    model = ifcopenshell.file(schema="IFC4")
    circle = model.create_entity("IfcConversionBasedUnit", UnitType="LENGTHUNIT", Name="circle")
    ratio = model.create_entity("IfcReal", 2.0)
    circle.ConversionFactor = model.create_entity("IfcMeasureWithUnit", ratio, circle)
    huge = U.derived((U.si("LENGTHUNIT", "METRE", "EXA"), 900))
    label = U.converted("LENGTHUNIT", "odd", 1.0, METRE)
    label.ConversionFactor.ValueComponent = U.model.create_entity("IfcLabel", "a lot")
    units = [
        circle, huge, label,
        model.create_entity("IfcMonetaryUnit", "EUR"),
        model.create_entity("IfcContextDependentUnit", UnitType="USERDEFINED", Name="PIECE"),
        model.create_entity("IfcConversionBasedUnit", UnitType="LENGTHUNIT", Name="nothing"),
        model.create_entity("IfcSIUnit", UnitType="LENGTHUNIT"),
        model.create_entity("IfcDerivedUnit", UnitType="USERDEFINED"),
    ]  # fmt: skip
    assert [si_conversion(unit) for unit in units[:-2]] == [None] * (len(units) - 2)
    assert all(isinstance(unit_name(unit), str) for unit in units)


class House:
    """A wall with its type, to which sets of any kind can be given."""

    def __init__(self, schema="IFC4"):
        self.model = model = ifcopenshell.file(schema=schema)
        units = [
            self.unit("LENGTHUNIT", "METRE", "MILLI"),
            self.unit("MASSUNIT", "GRAM", "KILO"),
            self.unit(KINDS[2], "DEGREE_CELSIUS"),
        ]
        self.project = self.add("IfcProject", "P")
        self.project.UnitsInContext = model.create_entity("IfcUnitAssignment", units)
        self.wall = self.add("IfcWall", "W")
        self.kind = self.add("IfcWallType", "T")
        self.add("IfcRelDefinesByType", None, RelatedObjects=[self.wall], RelatingType=self.kind)

    def add(self, ifc_class, name, **attributes):
        guid = ifcopenshell.guid.new()
        return self.model.create_entity(ifc_class, GlobalId=guid, Name=name, **attributes)

    def unit(self, kind, name, prefix=None):
        return self.model.create_entity("IfcSIUnit", UnitType=kind, Prefix=prefix, Name=name)

    def single(self, name, kind, value, unit=None):
        measure = None if kind is None else self.model.create_entity(kind, value)
        return self.model.create_entity(
            "IfcPropertySingleValue", Name=name, NominalValue=measure, Unit=unit
        )

    def give(self, owner, name, properties, ifc_class="IfcPropertySet"):
        pset = self.add(ifc_class, name)
        pset[5 if ifc_class == "IfcElementQuantity" else 4] = properties
        if owner.is_a("IfcTypeObject"):
            owner.HasPropertySets = (*(owner.HasPropertySets or ()), pset)
        else:
            self.relate(owner, pset)
        return pset

    def relate(self, owner, pset):
        self.add(
            "IfcRelDefinesByProperties", None, RelatedObjects=[owner],
            RelatingPropertyDefinition=pset,
        )  # fmt: skip

    def of(self, owner):
        rows, texts = read(self.model)
        return [row for row in rows if row["global_id"] == owner.GlobalId], texts[owner.id()]


@pytest.mark.parametrize("schema", ["IFC2X3", "IFC4", "IFC4X3"])
def test_an_object_hides_the_properties_of_its_type_one_by_one(schema):
    house = House(schema)
    house.give(
        house.kind, "A", [house.single("x", "IfcReal", 1.0), house.single("y", "IfcReal", 2.0)]
    )
    house.give(house.kind, "B", [house.single("z", "IfcReal", 3.0)])
    house.give(house.wall, "A", [house.single("y", "IfcReal", 4.0)])
    rows, json_object = house.of(house.wall)
    assert json_object == {"A": {"x": 1.0, "y": 4.0}, "B": {"z": 3.0}}
    assert {(row["pset"], row["property"], row["number"], row["source"]) for row in rows} == {
        ("A", "x", 1.0, "type"), ("A", "y", 4.0, "instance"), ("B", "z", 3.0, "type"),
    }  # fmt: skip
    rows, json_object = house.of(house.kind)  # its own, so not marked
    assert json_object == {"A": {"x": 1.0, "y": 2.0}, "B": {"z": 3.0}}
    assert {row["source"] for row in rows} == {"instance"}


def test_numbers_have_the_project_s_unit_or_their_own():
    house = House()
    centimetre, gram = house.unit("LENGTHUNIT", "METRE", "CENTI"), house.unit("MASSUNIT", "GRAM")
    quantity = house.model.create_entity
    house.give(house.wall, "A", [
        house.single("Length", "IfcPositiveLengthMeasure", 5.0),
        house.single("Span", "IfcNonNegativeLengthMeasure", 6.0),
        house.single("Own", "IfcLengthMeasure", 7.0, centimetre),
        house.single("Mass", "IfcMassMeasure", 8.0),
        house.single("Heat", "IfcThermodynamicTemperatureMeasure", 9.0),
        house.single("Count", "IfcCountMeasure", 10),
        house.single("Label", "IfcLabel", "11"),
        house.single("Truth", "IfcBoolean", True),  # noqa: FBT003
    ])  # fmt: skip
    house.give(house.wall, "Q", [
        quantity("IfcQuantityLength", Name="Height", LengthValue=12.0),
        quantity("IfcQuantityWeight", Name="Weight", Unit=gram, WeightValue=13.0),
        quantity("IfcQuantityCount", Name="Pieces", CountValue=14),
        quantity("IfcQuantityArea", Name="Area", AreaValue=15.0),  # the project says no unit
    ], "IfcElementQuantity")  # fmt: skip
    names = "number", "unit", "unit_si", "number_si"
    rows, _ = house.of(house.wall)
    found = {row["property"]: [row[name] for name in names] for row in rows}
    expected = {
        "Length": [5.0, "millimetre", 0.001, 0.005],
        "Span": [6.0, "millimetre", 0.001, 0.006],
        "Own": [7.0, "centimetre", 0.01, 0.07],
        "Mass": [8.0, "kilogram", 1.0, 8.0],
        "Heat": [9.0, "degree_celsius", None, 282.15],
        "Count": [10.0, None, None, None],
        "Label": [None, None, None, None],
        "Truth": [None, None, None, None],
        "Height": [12.0, "millimetre", 0.001, 0.012],
        "Weight": [13.0, "gram", 0.001, 0.013],
        "Pieces": [14.0, None, None, None],
        "Area": [15.0, None, None, None],
    }
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        near = [pytest.approx(value) if isinstance(value, float) else value for value in values]
        assert found[name] == near, name


def test_fixed_attributes_of_a_set_have_the_project_s_unit():
    house = House()
    lining = house.add("IfcDoorLiningProperties", "L", LiningDepth=90.0)
    house.relate(house.wall, lining)
    (row,), json_object = house.of(house.wall)
    assert json_object == {"L": {"LiningDepth": 90.0}}
    assert (row["unit"], row["number_si"]) == ("millimetre", 0.09)


def test_odd_sets_lose_nothing_and_break_nothing():
    house = House()
    create = house.model.create_entity
    cycle = create("IfcComplexProperty", Name="cycle", UsageName="u")
    cycle.HasProperties = [cycle, house.single("x", "IfcReal", 1.0)]
    deep = house.single("bottom", "IfcReal", 1.0)
    for _ in range(100):
        deep = create("IfcComplexProperty", Name="deep", UsageName="u", HasProperties=[deep])
    house.give(house.wall, "A", [
        cycle, deep,
        house.single("nothing", None, None),
        house.single("huge", "IfcLengthMeasure", 1e308),
        create("IfcPropertySingleValue"),
        create("IfcPropertyEnumeratedValue", Name="no enumeration"),
        create("IfcPropertyListValue", Name="no list"),
        create("IfcPropertyBoundedValue", Name="no bounds"),
        create("IfcPropertyTableValue", Name="no table"),
        create("IfcPropertyReferenceValue", Name="no reference"),
        house.single("twice", "IfcReal", 1.0), house.single("twice", "IfcReal", 2.0),
    ])  # fmt: skip
    empty = house.give(house.wall, "Empty", [])
    house.relate(house.wall, empty)
    house.give(house.wall, None, [house.single("of a set without a name", "IfcReal", 3.0)])
    house.give(house.wall, "A", [house.single("more", "IfcReal", 4.0)])
    house.add("IfcRelDefinesByProperties", None, RelatedObjects=[house.wall])
    house.add("IfcRelDefinesByProperties", None, RelatingPropertyDefinition=empty)
    rows, json_object = house.of(house.wall)
    assert json_object["Empty"] == {}
    assert json_object["IfcPropertySet"] == {"of a set without a name": 3.0}
    assert json_object["A"]["twice"] == 2.0
    assert json_object["A"]["more"] == 4.0
    assert json_object["A"]["cycle"]["x"] == 1.0
    assert json_object["A"]["no table"] == {"defining": [], "defined": []}
    for name in ("nothing", "no reference", "IfcPropertySingleValue"):
        assert json_object["A"][name] is None
    assert len(rows) == len(json_object["A"]) + 1  # that of the set without a name
    assert {row["source"] for row in rows} == {"instance"}


def test_a_relationship_may_have_several_sets():
    house = House()
    sets = [house.give(house.kind, name, [house.single("x", "IfcReal", 1.0)]) for name in "AB"]
    house.relate(house.wall, sets[0])
    house.kind.HasPropertySets = None
    several = f"IFCPROPERTYSETDEFINITIONSET(({','.join(f'#{each.id()}' for each in sets)}))"
    text = house.model.to_string().replace(f"),#{sets[0].id()});", f"),{several});")
    assert several in text
    _, texts = read(ifcopenshell.file.from_string(text))
    assert texts[house.wall.id()] == {"A": {"x": 1.0}, "B": {"x": 1.0}}


def test_an_entity_of_the_wrong_class_is_no_property_set():
    """IfcOpenShell does not check what a file refers to."""
    house = House()
    pset = house.give(house.wall, "A", [house.single("x", "IfcReal", 1.0)])
    house.give(house.kind, "B", [house.single("y", "IfcReal", 1.0)])
    text = house.model.to_string()
    wall, single = f"#{house.wall.id()}", f"#{pset.HasProperties[0].id()}"
    damaged = [
        text.replace(f",(#{pset[4][0].id()}));", f",({wall},$,{single}));"),
        text.replace(f",({wall}),#{pset.id()});", f",({wall},$),{wall});"),
        text.replace(f",({wall}),#{pset.id()});", f",$,{single});"),
        text.replace("IFCREAL(1.)", wall),
        text.replace("IFCREAL(1.)", "'text'"),
        text.replace("'x'", "17"),
        text.replace(f",(#{pset[4][0].id()}));", ",(#9999));"),
        text.replace(f",({wall}),#{pset.id()});", f",({wall},#9998),#9999);"),
    ]
    for each in damaged:
        assert each != text
        model = ifcopenshell.file.from_string(each)
        _, texts = read(model)
        assert texts[house.kind.id()].keys() == {"B"}


def test_an_entity_in_the_place_of_a_name_is_no_name():
    """The name of a material that a property refers to, and that of a set."""
    house = House()
    steel = house.model.create_entity("IfcMaterial", "steel")
    reference = house.model.create_entity(
        "IfcPropertyReferenceValue", Name="r", PropertyReference=steel
    )
    house.give(house.wall, "A", [reference])
    _, properties = house.of(house.wall)
    assert properties == {"A": {"r": "steel"}}
    wall = f"#{house.wall.id()}"
    text = house.model.to_string().replace("'steel'", wall).replace("'A'", wall)
    assert text.count(f"IFCMATERIAL({wall}") == 1
    _, texts = read(ifcopenshell.file.from_string(text))
    assert texts[house.wall.id()] == {"IfcPropertySet": {"r": "IfcMaterial"}}
