"""Real models against brute force: objects one by one, with IfcOpenShell's own utilities."""

import re

import ifcopenshell.util.classification
import ifcopenshell.util.element as util
import ifcopenshell.util.unit
import pytest

from ..conftest import real_file
from .ids_files import (
    attribute,
    check,
    entity,
    facet,
    opened,
    pattern,
    prop,
    specification,
    write_ids,
)

MODELS = ("AC20-FZK-Haus.ifc", "Duplex_A_20110907.ifc", "Office_A_20110811.ifc")
CLASSES = pattern("IFC(WALL|WALLSTANDARDCASE|SLAB|DOOR|WINDOW|SPACE|BEAM|COLUMN|MEMBER)")
NAMES = re.compile(r"IFC(WALL|WALLSTANDARDCASE|SLAB|DOOR|WINDOW|SPACE|BEAM|COLUMN|MEMBER)")

pytestmark = pytest.mark.slow


def psets(element):
    return util.get_psets(element, should_inherit=True)


def has_external(element):
    return psets(element).get("Pset_WallCommon", {}).get("IsExternal") is not None


def is_named(element):
    return bool(re.fullmatch(r".*[0-9]", element.Name or ""))


def is_high(element):
    height = getattr(element, "OverallHeight", None)
    scale = ifcopenshell.util.unit.calculate_unit_scale(element.file)
    return height is not None and height * scale >= 2.1 - 1e-5


def has_material(element):
    return bool(util.get_material(element))


def is_in_storey(element):
    above, seen = [element], set()
    while above:
        each = above.pop()
        found = [
            util.get_container(each, should_get_direct=True),
            util.get_aggregate(each),
            util.get_nest(each),
            util.get_filled_void(each),
            util.get_voided_element(each),
            *util.get_groups(each),
        ]
        for one in found:
            if one is not None and one.id() not in seen:
                seen.add(one.id())
                above.append(one)
                if one.is_a() == "IfcBuildingStorey":
                    return True
    return False


def is_classified(element):
    # one without a system, as in the first model, cannot be of the system that is asked for
    references = ifcopenshell.util.classification.get_references(element)
    systems = map(ifcopenshell.util.classification.get_classification, references)
    return any(each is not None and each.Name is not None for each in systems)


def is_thin(element):
    found = [
        sets["Width"] for name, sets in psets(element).items()
        if name == "BaseQuantities" and isinstance(sets.get("Width"), int | float)
    ]  # fmt: skip
    scale = ifcopenshell.util.unit.calculate_unit_scale(element.file)
    return bool(found) and found[0] * scale <= 0.2 + 1e-6


RULES = {
    "external": (prop("Pset_WallCommon", "IsExternal", kind="IFCBOOLEAN"), has_external),
    "named": (attribute("Name", pattern(".*[0-9]")), is_named),
    "high": (
        attribute("OverallHeight", ("xs:double", '<xs:minInclusive value="2.1"/>')), is_high
    ),
    "material": (facet("material"), has_material),
    "storey": (facet("partOf", entity=entity("IFCBUILDINGSTOREY")), is_in_storey),
    "classified": (facet("classification", system=pattern(".*")), is_classified),
    "thin": (
        prop("BaseQuantities", "Width", ("xs:double", '<xs:maxInclusive value="0.2"/>'),
             "IFCLENGTHMEASURE"),
        is_thin,
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", MODELS)
def test_the_same_objects_pass(name, rule, tmp_path):
    path = real_file(f"data/ifc/{name}")
    requirement, is_right = RULES[rule]
    top = pattern("IFC(DOOR|WINDOW)") if rule == "high" else CLASSES
    rules = write_ids(tmp_path / "rules.ids", specification(entity(top), requirement))
    found = {row["step_id"]: row["status"] == "passed" for row in check(path, rules)}
    wanted = re.compile("IFC(DOOR|WINDOW)") if rule == "high" else NAMES
    elements = [each for each in opened(path).by_type("IfcProduct")
                if wanted.fullmatch(each.is_a().upper())]  # fmt: skip
    assert found == {each.id(): is_right(each) for each in elements}
    assert len(found) > 10
