"""Whether the specifications of an IDS can be met: the rules that are not in its XML schema.

The rules are those of the facets' documentation of IDS 1.0 and of buildingSMART's audit tool.
"""

from collections.abc import Collection
from typing import NoReturn

from spatialq.errors import FileError
from spatialq.io.ids.reader import VOIDS, Facet, Ids, Specification
from spatialq.io.ids.schemas import BY_TYPE, Schema, known
from spatialq.io.ids.values import BASES, Value
from spatialq.io.ifc.schemas import near_names

ENDS = {
    "IFCRELAGGREGATES": ("IfcObjectDefinition", "IfcObjectDefinition"),
    "IFCRELASSIGNSTOGROUP": ("IfcGroup", "IfcObjectDefinition"),
    "IFCRELCONTAINEDINSPATIALSTRUCTURE": ("IfcSpatialElement", "IfcProduct"),
    "IFCRELNESTS": ("IfcObjectDefinition", "IfcObjectDefinition"),
    VOIDS: ("IfcElement", "IfcElement"),
}
"""What a whole and a part of each relation are."""
OLD_ENDS = {"IfcSpatialElement": "IfcSpatialStructureElement"}
"""Their names in IFC2X3."""
PREFIXES = ("Pset_", "Qto_")
"""Reserved for standard sets."""


def audit(ids: Ids, reader: str) -> None:
    """Check the specifications of a file.

    Raises
    ------
    FileError
        With the line and the specification.
    """
    for specification in ids.specifications:
        _Audit(ids, specification, reader).check()


class _Audit:
    """Of one specification."""

    def __init__(self, ids: Ids, specification: Specification, reader: str) -> None:
        self.ids, self.specification, self.reader = ids, specification, reader
        self.schemas = [known()[name] for name in specification.versions]

    def fail(self, line: int, reason: str) -> NoReturn:
        where = f"line {line}: specification '{self.specification.name}': "
        raise FileError.of(self.reader, self.ids.path, where + reason)

    def check(self) -> None:
        specification = self.specification
        if not specification.applicability:
            self.fail(specification.line, "the applicability has no facet, so it is of no object")
        if specification.cardinality == "prohibited" and specification.requirements:
            self.fail(
                specification.requirements[0].line,
                "objects that must not be there can have no requirements",
            )
        for facet in specification.requirements:
            self.check_cardinality(facet)
        for schema in self.schemas:
            classes: set[str] | None = None
            for facets in (specification.applicability, specification.requirements):
                for facet in facets:
                    if facet.cardinality != "required":
                        self.check_facet(facet, schema, classes)
                        continue
                    possible = self.check_facet(facet, schema, classes)
                    if possible is None:
                        continue
                    both = possible if classes is None else classes & possible
                    if not both:
                        self.fail(
                            facet.line,
                            f"no class of {schema.name} can meet the {facet} and the facets before",
                        )
                    classes = both

    def check_cardinality(self, facet: Facet) -> None:
        has_value = "value" in facet.values
        if facet.kind == "property":
            if facet.cardinality == "optional" and facet.data_type is None:
                self.fail(facet.line, "an optional property must have a dataType")
            if facet.cardinality == "prohibited" and facet.data_type is not None:
                self.fail(facet.line, "a prohibited property can have no dataType")
        elif facet.cardinality == "optional" and not has_value:
            self.fail(facet.line, f"an optional {facet.kind} must have a value, or it cannot fail")

    def check_facet(
        self, facet: Facet, schema: Schema, classes: set[str] | None
    ) -> set[str] | None:
        """Check a facet; give the classes that can meet it, if it says something of classes."""
        for name in ("name", "predefinedType", "system", "propertySet", "baseName"):
            if name in facet.values:
                self.check_base(facet.values[name], ["xs:string"], f"<{name}>")
        if facet.kind == "entity":
            return self.entity(facet, schema)
        if facet.kind == "attribute":
            return self.attribute(facet, schema, classes)
        if facet.kind == "partOf":
            return self.part_of(facet, schema)
        if facet.kind == "property":
            self.property(facet, schema)
        elif "value" in facet.values:
            self.check_base(facet.values["value"], ["xs:string"], "<value>")
        return None

    def matching(self, value: Value, names: Collection[str], what: str) -> list[str]:
        """Give the names that a value allows; each that it names itself must be there."""
        for each in value.given:
            if each not in names:
                near = near_names(each, names)
                hint = f"; near names are {', '.join(near)}" if near else ""
                self.fail(value.line, f"'{each}' is no {what}{hint}")
        ordered = list(names)
        found = [ordered[i] for i in value.of_texts(ordered).nonzero()[0]]
        if not found:
            self.fail(value.line, f"there is no {what} {value}")
        return found

    def entity(self, facet: Facet, schema: Schema) -> set[str]:
        name = facet.values["name"]
        found = self.matching(name, schema.classes, f"class of {schema.name} in capital letters")
        classes = {schema.classes[each] for each in found}
        if schema.name == "IFC2X3":  # what is of the class may be called by its type as well
            classes |= {each for each, (occurrence, _) in BY_TYPE.items() if occurrence in classes}
        kind = facet.values.get("predefinedType")
        if kind is not None:
            self.check_base(kind, ["xs:string"], "<predefinedType>")
            named = sorted(schema.classes[each] for each in found)
            common = set.intersection(*(set(schema.predefined(each)) for each in named))
            if "USERDEFINED" not in common:
                what = f"predefined type of {', '.join(named[:3])} in {schema.name}"
                self.matching(kind, sorted(common), what)
        return classes

    def attribute(self, facet: Facet, schema: Schema, classes: set[str] | None) -> set[str]:
        what = f"attribute of {schema.name} that is stored in files"
        names = set(self.matching(facet.values["name"], schema.attribute_names, what))
        found = set()
        bases = set()
        for ifc_class in schema.classes.values() if classes is None else classes:
            there = schema.attributes(ifc_class)
            if names & there.keys():
                found.add(ifc_class)
                bases |= {there[each] for each in names & there.keys()}
        value = facet.values.get("value")
        if value is not None and found:
            bases.discard("")
            if not bases:
                self.fail(
                    value.line,
                    f"the {str(facet).split(' is ')[0]} is an entity, a list or of several types: "
                    "it has no value that could be compared",
                )
            self.check_value(value, sorted(bases))
        return found

    def part_of(self, facet: Facet, schema: Schema) -> set[str] | None:
        assert facet.whole is not None
        wholes = self.entity(facet.whole, schema)
        if facet.relation is None:
            return None
        whole, part = ENDS[facet.relation]
        if schema.name == "IFC2X3":
            whole = OLD_ENDS.get(whole, whole)
        if not schema.are(wholes, whole):
            self.fail(
                facet.line, f"by {facet.relation} nothing is part of {facet.whole}, only of {whole}"
            )
        return schema.are(schema.classes.values(), part)

    def property(self, facet: Facet, schema: Schema) -> None:
        values = facet.values
        kind = facet.data_type
        if kind is not None and kind not in schema.types:
            self.fail(facet.line, f"'{kind}' is no data type of properties in {schema.name}")
        if "value" in values:
            if kind is None:
                self.fail(facet.line, "a property with a value must have a dataType")
            self.check_value(values["value"], [schema.types[kind]])
        if facet.cardinality != "required":
            return
        sets = list(schema.sets)
        of_set = values["propertySet"]
        found = [sets[i] for i in of_set.of_texts(sets).nonzero()[0]]
        for each in of_set.given:
            if each.startswith(PREFIXES) and each not in schema.sets:
                self.fail(
                    of_set.line,
                    f"'{each}' is no standard property set of {schema.name}, and names that begin "
                    "with Pset_ and Qto_ are reserved for these",
                )
        # a pattern may mean sets of a project as well
        if not found or (len(found) < len(of_set.given)) or of_set.patterns:
            return
        names = {name for each in found for name in schema.sets[each]}
        what = f"property of {', '.join(found[:3])} in {schema.name}"
        matched = self.matching(values["baseName"], sorted(names), what)
        allowed = {schema.sets[each].get(name, "") for each in found for name in matched}
        is_open = not allowed <= schema.types.keys()  # some have no type, or a mistaken one
        if kind is not None and kind not in allowed and not is_open:
            self.fail(
                facet.line,
                f"the {facet} must be of {' or '.join(sorted(allowed))} by the standard",
            )

    def check_value(self, value: Value, bases: list[str]) -> None:
        """Check that a value can be one of some types of XML."""
        self.check_base(value, bases, "the value")
        patterns = [BASES[base] for base in bases if base]
        for text in (*value.given, *value.bounds.values()):
            if patterns and not any(each.fullmatch(text) for each in patterns):
                self.fail(value.line, f"'{text}' is no value of {' or '.join(bases)}")

    def check_base(self, value: Value, bases: list[str], what: str) -> None:
        """Check the base of a restriction."""
        if value.base is not None and any(bases) and value.base not in bases:
            wanted = " or ".join(bases)
            self.fail(
                value.line,
                f"the restriction of {what} must have the base {wanted}, got {value.base}",
            )
