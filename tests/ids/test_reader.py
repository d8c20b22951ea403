"""IDS files: what is read, and what is refused, with the line."""

import re

import pytest

from spatialq.errors import FileError
from spatialq.io.ids import reader
from spatialq.io.ids.files import read_ids

from .ids_files import (
    HEAD,
    PROHIBITED,
    REQUIRED,
    TAIL,
    attribute,
    entity,
    facet,
    pattern,
    prop,
    specification,
    write_ids,
)

WALL = entity("IFCWALL")
NAME = attribute("Name")
BETWEEN = '<xs:minInclusive value="1"/><xs:maxExclusive value="2"/>'


def test_what_an_ids_says(tmp_path):
    rules = write_ids(
        tmp_path / "rules.ids",
        specification(
            WALL,
            attribute("Name", pattern("W[0-9]+"), 'cardinality="optional" instructions="Number!"'),
            prop("Foo", "Bar", ("xs:double", BETWEEN), "IFCREAL"),
            occurs=REQUIRED,
            versions="IFC4 IFC4X3_ADD2",
            name="Walls",
        ),
        specification(entity("IFCDOOR"), occurs=PROHIBITED),
    )  # fmt: skip
    walls, doors = read_ids(rules).specifications
    assert (walls.name, walls.cardinality, walls.versions) == (
        "Walls", "required", ("IFC4", "IFC4X3_ADD2"),
    )  # fmt: skip
    assert [str(each) for each in walls.applicability] == ["entity IFCWALL"]
    name, real = walls.requirements
    assert str(name) == "attribute Name is matching 'W[0-9]+'"
    assert (name.cardinality, name.instructions) == ("optional", "Number!")
    assert str(real) == "property Foo.Bar of IFCREAL is >= 1 and < 2"
    assert (doors.number, doors.cardinality, doors.requirements) == (2, "prohibited", ())


CASES = {
    "no specification": ("", "<specifications> lacks <specification>"),
    "text": ("<specification name='a' ifcVersion='IFC4'>words</specification>", "no text"),
    "no name": ("<specification ifcVersion='IFC4'/>", "lacks the attribute 'name'"),
    "version": (specification(WALL, NAME, versions="IFC5"), "got 'IFC5'"),
    "no applicability": (
        "<specification name='a' ifcVersion='IFC4'/>", "<specification> lacks <applicability>"
    ),
    "empty applicability": (specification("", NAME), "the applicability has no facet"),
    "two entities": (specification(WALL + WALL, NAME), "has more than one <entity>"),
    "order": (specification(NAME + WALL, NAME), "<entity> must stand before <attribute>"),
    "unknown facet": (specification("<colour/>", NAME), "may not hold <colour>"),
    "occurs": (
        specification(WALL, NAME, occurs='minOccurs="2" maxOccurs="unbounded"'), "got 2 and"
    ),
    "occurs text": (specification(WALL, NAME, occurs='minOccurs="x"'), "must be a number, got 'x'"),
    "cardinality of an applicability": (
        specification(attribute("Name", attributes='cardinality="required"'), NAME),
        "<attribute> has no attribute 'cardinality'",
    ),
    "cardinality of entity": (
        specification(WALL, facet("entity", 'cardinality="optional"', name="IFCWALL")),
        "<entity> has no attribute 'cardinality'",
    ),
    "optional part": (
        specification(WALL, facet("partOf", 'cardinality="optional"', entity=entity("IFCSITE"))),
        "cardinality must be required or prohibited, got 'optional'",
    ),
    "relation": (
        specification(WALL, facet("partOf", 'relation="IFCRELX"', entity=entity("IFCSITE"))),
        "got 'IFCRELX'",
    ),
    "whole of a relation": (
        specification(
            WALL, facet("partOf", 'relation="IFCRELASSIGNSTOGROUP"', entity=entity("IFCWALL"))
        ),
        "nothing is part of entity IFCWALL, only of IfcGroup",
    ),
    "no value": (specification(WALL, "<attribute><name/></attribute>"), "either <simpleValue> or"),
    "requirements of what is prohibited": (
        specification(WALL, NAME, occurs=PROHIBITED), "can have no requirements"
    ),
    "class": (specification(entity("IFCRABBIT"), NAME), "'IFCRABBIT' is no class of IFC2X3"),
    "class of another schema": (
        specification(entity("IFCROAD"), NAME, versions="IFC4"), "'IFCROAD' is no class of IFC4 "
    ),
    "class in small letters": (specification(entity("IfcWall"), NAME), "in capital letters"),
    "predefined type": (
        specification(entity("IFCWALL", "ROUND"), NAME, versions="IFC2X3"),
        "'ROUND' is no predefined type of IfcWall in IFC2X3",
    ),
    "attribute": (specification(WALL, attribute("Nmae")), "near names are Name"),
    "attribute of another class": (
        specification(WALL, attribute("OverallHeight")), "no class of IFC2X3 can meet the attribute"
    ),
    "inverse attribute": (specification(WALL, attribute("HasOpenings")), "is no attribute of"),
    "value of a list": (
        specification(entity("IFCCARTESIANPOINT"), attribute("Coordinates", "1")),
        "has no value that could be compared",
    ),
    "value of another type": (
        specification(entity("IFCDOOR"), attribute("OverallHeight", "high")),
        "'high' is no value of xs:double",
    ),
    "classes that exclude each other": (
        specification(WALL, entity("IFCSLAB")), "can meet the entity IFCSLAB and the facets before"
    ),
    "optional without value": (
        specification(WALL, attribute("Name", attributes='cardinality="optional"')),
        "an optional attribute must have a value",
    ),
    "optional property without type": (
        specification(WALL, prop("A", "B", attributes='cardinality="optional"')),
        "an optional property must have a dataType",
    ),
    "prohibited property with type": (
        specification(WALL, prop("A", "B", kind="IFCTEXT", attributes='cardinality="prohibited"')),
        "a prohibited property can have no dataType",
    ),
    "value without type": (
        specification(WALL, prop("A", "B", "C")), "with a value must have a dataType"
    ),
    "data type": (specification(WALL, prop("A", "B", kind="IFCWALL")), "'IFCWALL' is no data type"),
    "data type in small letters": (
        specification(WALL, prop("A", "B", kind="IfcText")), "in capital letters, got 'IfcText'"
    ),
    "integer": (
        specification(WALL, prop("A", "B", "4.0", "IFCINTEGER")), "'4.0' is no value of xs:integer"
    ),
    "decimal comma": (specification(WALL, prop("A", "B", "4,2", "IFCREAL")), "'4,2' is no value"),
    "reserved prefix": (
        specification(WALL, prop("Pset_Ours", "B")), "names that begin with Pset_ and Qto_ are"
    ),
    "property of a standard set": (
        specification(WALL, prop("Pset_WallCommon", "FireRatin")), "near names are FireRating"
    ),
    "type of a standard property": (
        specification(WALL, prop("Pset_WallCommon", "IsExternal", kind="IFCTEXT")),
        "must be of IFCBOOLEAN by the standard",
    ),
    "base": (
        specification(
            entity("IFCDOOR"),
            attribute("OverallHeight", ("xs:string", '<xs:enumeration value="2"/>')),
        ),
        "must have the base xs:double, got xs:string",
    ),
    "base of a name": (
        specification(WALL, attribute(("xs:double", '<xs:enumeration value="2"/>'))),
        "must have the base xs:string, got xs:double",
    ),
    "bounds of a text": (
        specification(WALL, attribute("Name", ("xs:string", '<xs:minInclusive value="2"/>'))),
        "<xs:minInclusive> does not go with the base xs:string",
    ),
    "digits": (
        specification(WALL, attribute("Name", ("xs:string", '<xs:totalDigits value="2"/>'))),
        "<xs:totalDigits> is no restriction that IDS has",
    ),
    "pattern": (specification(WALL, attribute("Name", pattern("(a"))), "a '(' is not closed"),
    "nothing restricted": (
        specification(WALL, attribute("Name", ("xs:string", ""))), "restricts nothing"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_ids_is_refused_with_the_place(name, tmp_path):
    said, expected = CASES[name]
    rules = write_ids(tmp_path / "rules.ids", said)
    with pytest.raises(FileError, match=re.escape(expected)) as error:
        read_ids(rules)
    line = int(re.search(r"rules\.ids': line (\d+): ", str(error.value))[1])
    assert line in (HEAD.count("\n") + 1, HEAD.count("\n") + 2)


def test_every_facet_may_be_of_ifc2x3_by_the_type_of_its_occurrences(tmp_path):
    air = specification(entity("IFCAIRTERMINAL", "GRILLE"), NAME, versions="IFC2X3")
    assert read_ids(write_ids(tmp_path / "rules.ids", air)).specifications[0].requirements


def test_entities_of_xml_are_refused(tmp_path):
    bomb = HEAD.replace(
        "<ids ", '<!DOCTYPE ids [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>\n<ids ', 1
    )
    (tmp_path / "bomb.ids").write_text(bomb + specification(WALL, NAME) + TAIL)
    with pytest.raises(FileError, match="line 2: has a document type"):
        read_ids(tmp_path / "bomb.ids")


def test_what_is_deep_or_large_is_refused(tmp_path, monkeypatch):
    (tmp_path / "deep.ids").write_text("<a>" * 100_000 + "</a>" * 100_000)
    with pytest.raises(FileError, match="elements lie deeper in each other than 32"):
        read_ids(tmp_path / "deep.ids")
    rules = write_ids(tmp_path / "large.ids", specification(WALL, NAME))
    monkeypatch.setattr(reader, "MAX_BYTES", 100)
    with pytest.raises(FileError, match="is larger than 100 bytes: refused"):
        read_ids(rules)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "is no XML: no element found"),
        (b"ISO-10303-21;", "is no XML"),
        (b"<ids/>", "the file is no IDS: its root is <ids> of ''"),
        (b"<?xml version='1.0' encoding='nope'?><ids/>", "is no XML"),
        (b"<html xmlns='x'/>", "its root is <html> of 'x'"),
    ],
)
def test_other_files_are_refused(data, expected, tmp_path):
    (tmp_path / "rules.ids").write_bytes(data)
    with pytest.raises(FileError, match=re.escape(expected)):
        read_ids(tmp_path / "rules.ids")
    with pytest.raises(FileError, match="there is no such file"):
        read_ids(tmp_path / "missing.ids")
