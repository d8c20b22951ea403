"""Reads IDS files: their XML, checked against the schema of IDS 1.0, as specifications."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from spatialq.errors import FileError
from spatialq.io.files import require_file
from spatialq.io.ids.patterns import PatternError, translated
from spatialq.io.ids.values import (
    BASES,
    BOUNDS,
    COUNTED,
    LENGTHS,
    ORDERED,
    SAME_BASE,
    Value,
    quoted,
)

READER = "check_ids"
MAX_BYTES = 64 << 20
"""Of a file: an IDS of a thousand specifications has 2 MB."""
MAX_DEPTH = 32
IDS = "http://standards.buildingsmart.org/IDS"
XS = "http://www.w3.org/2001/XMLSchema"
OTHER_NAMESPACES = (
    "http://www.w3.org/2001/XMLSchema-instance",
    "http://www.w3.org/XML/1998/namespace",
)
"""Those of attributes that any element may have."""

FACETS = ("entity", "partOf", "classification", "attribute", "property", "material")
MANY = 1 << 30
ONE, OPTIONAL, ANY = (1, 1), (0, 1), (0, MANY)
CONTENT: dict[str, dict[str, tuple[int, int]]] = {
    "ids": {"info": ONE, "specifications": ONE},
    "info": {
        "title": ONE, "copyright": OPTIONAL, "version": OPTIONAL, "description": OPTIONAL,
        "author": OPTIONAL, "date": OPTIONAL, "purpose": OPTIONAL, "milestone": OPTIONAL,
    },
    "specifications": {"specification": (1, MANY)},
    "specification": {"applicability": ONE, "requirements": OPTIONAL},
    "applicability": {"entity": OPTIONAL, **dict.fromkeys(FACETS[1:], ANY)},
    "requirements": dict.fromkeys(FACETS, ANY),
    "entity": {"name": ONE, "predefinedType": OPTIONAL},
    "partOf": {"entity": ONE},
    "classification": {"value": OPTIONAL, "system": ONE},
    "attribute": {"name": ONE, "value": OPTIONAL},
    "property": {"propertySet": ONE, "baseName": ONE, "value": OPTIONAL},
    "material": {"value": OPTIONAL},
}  # fmt: skip
"""Which children each element has, in this order, and how many of each."""
UNORDERED = ("requirements",)
"""Whose sequence of children may repeat, so that any order is one."""
VALUES = ("name", "predefinedType", "value", "system", "propertySet", "baseName")
"""Elements that hold a simple value or a restriction."""
TEXTS = (*CONTENT["info"], "simpleValue")

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "specification": ("name", "ifcVersion", "identifier", "description", "instructions"),
    "applicability": ("minOccurs", "maxOccurs"),
    "requirements": ("description",),
    "classification": ("uri",),
    "property": ("dataType", "uri"),
    "material": ("uri",),
    "partOf": ("relation",),
}
REQUIRED = {"specification": ("name", "ifcVersion")}
OF_REQUIREMENTS = ("cardinality", "instructions")
VERSIONS = ("IFC2X3", "IFC4", "IFC4X3_ADD2")
CARDINALITIES = ("required", "optional", "prohibited")
VOIDS = "IFCRELVOIDSELEMENT IFCRELFILLSELEMENT"
RELATIONS = (
    "IFCRELAGGREGATES", "IFCRELASSIGNSTOGROUP", "IFCRELCONTAINEDINSPATIALSTRUCTURE", "IFCRELNESTS",
    VOIDS,
)  # fmt: skip
OCCURS = {(1, MANY): "required", (0, MANY): "optional", (0, 0): "prohibited"}
AUTHOR = re.compile(r"[^@]+@[^.]+\..+")


@dataclass
class Node:
    """An element of XML."""

    name: str
    namespace: str
    line: int
    attributes: dict[str, str]
    children: list["Node"] = field(default_factory=list)
    text: str = ""


@dataclass(frozen=True)
class Facet:
    """What one object may or must have.

    Parameters
    ----------
    kind : str
        Of `FACETS`.
    line : int
        Of the file.
    values : dict from str to Value
        By the names of the elements, such as ``propertySet``.
    cardinality : str
        Of `CARDINALITIES`; 'required' in an applicability.
    data_type : str, optional
        Of a property.
    relation : str, optional
        Of partOf.
    whole : Facet, optional
        The entity that a part is of.
    instructions : str, optional
    """

    kind: str
    line: int
    values: dict[str, Value]
    cardinality: str = "required"
    data_type: str | None = None
    relation: str | None = None
    whole: "Facet | None" = None
    instructions: str | None = None

    def __str__(self) -> str:
        """Say what it is about, such as: property Pset_WallCommon.FireRating is 'F30'."""
        values = self.values
        if self.kind == "entity":
            kind = values.get("predefinedType")
            return f"entity {bare(values['name'])}" + (f" of type {bare(kind)}" if kind else "")
        if self.kind == "partOf":
            through = f" by {self.relation}" if self.relation else ""
            return f"part of {str(self.whole).removeprefix('entity ')}{through}"
        if self.kind == "attribute":
            said = f"attribute {bare(values['name'])}"
        elif self.kind == "property":
            said = f"property {bare(values['propertySet'])}.{bare(values['baseName'])}"
            said += f" of {self.data_type}" if self.data_type else ""
        elif self.kind == "classification":
            said = f"classification of {bare(values['system'])}"
        else:
            said = "material"
        return said + (f" is {values['value']}" if "value" in values else "")


def bare(value: Value) -> str:
    """Say a value as a name: without quotes, if it is simple."""
    return str(value) if value.simple is None else value.simple


@dataclass(frozen=True)
class Specification:
    """What objects it is about, and what they must have.

    Parameters
    ----------
    number : int
        From 1, in the order of the file.
    cardinality : str
        Whether there must be such objects: of `CARDINALITIES`.
    versions : tuple of str
        Schemas that it is meant for.
    """

    number: int
    line: int
    name: str
    cardinality: str
    versions: tuple[str, ...]
    applicability: tuple[Facet, ...]
    requirements: tuple[Facet, ...]
    identifier: str | None = None
    description: str | None = None
    instructions: str | None = None


@dataclass(frozen=True)
class Ids:
    """A file of specifications."""

    path: Path
    title: str
    specifications: tuple[Specification, ...]
    info: dict[str, str]


def parsed(path: Path, reader: str) -> Ids:
    """Read an IDS file and check it against the schema; see `spatialq.io.ids.files.read_ids`."""
    require_file(reader, path)
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise FileError.of(reader, path, f"is larger than {MAX_BYTES:,} bytes: refused")
    return _Document(reader, path).read(data)


class _Document:
    """One file."""

    def __init__(self, reader: str, path: Path) -> None:
        self.reader, self.path = reader, path
        self.where = ""

    def fail(self, line: int, reason: str) -> NoReturn:
        raise FileError.of(self.reader, self.path, f"line {line}: {self.where}{reason}")

    def read(self, data: bytes) -> Ids:
        root = self.parse(data)
        if (root.name, root.namespace) != ("ids", IDS):
            self.fail(
                root.line, f"the file is no IDS: its root is <{root.name}> of {root.namespace!r}"
            )
        self.check(root, "")
        info = {each.name: each.text for each in root.children[0].children}
        self.check_info(root.children[0])
        specifications = []
        for number, node in enumerate(root.children[1].children, 1):
            self.where = f"specification '{node.attributes['name']}': "
            specifications.append(self.specification(number, node))
        self.where = ""
        return Ids(self.path, info["title"], tuple(specifications), info)

    def parse(self, data: bytes) -> Node:
        """Read XML of any encoding that it declares; a document type could grow without limit."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        stack: list[Node] = []
        roots: list[Node] = []

        def start(name: str, attributes: dict[str, str]) -> None:
            line = parser.CurrentLineNumber
            if len(stack) == MAX_DEPTH:
                self.fail(line, f"elements lie deeper in each other than {MAX_DEPTH}")
            namespace, _, local = name.rpartition(" ")
            own = {
                key: value
                for key, value in attributes.items()
                if key.rpartition(" ")[0] not in OTHER_NAMESPACES
            }
            node = Node(local, namespace, line, own)
            (stack[-1].children if stack else roots).append(node)
            stack.append(node)

        def text(data: str) -> None:
            if stack:
                stack[-1].text += data

        def refuse(*_: Any) -> None:
            self.fail(parser.CurrentLineNumber, "has a document type, which IDS does not use")

        parser.StartElementHandler = start
        parser.EndElementHandler = lambda _: stack.pop()
        parser.CharacterDataHandler = text
        parser.StartDoctypeDeclHandler = refuse
        try:
            parser.Parse(data, True)  # noqa: FBT003 (expat takes it by position)
        except (expat.ExpatError, LookupError, UnicodeError, ValueError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError.of(self.reader, self.path, f"is no XML: {error}") from error
        return roots[0]

    def check(self, node: Node, parent: str) -> None:
        """Check an element against the schema, and what it holds."""
        where = f"<{node.name}>"
        if node.name == "specification":
            self.where = f"specification '{node.attributes.get('name', '')}': "
        allowed = ATTRIBUTES.get(node.name, ())
        if parent == "requirements":
            allowed += OF_REQUIREMENTS[node.name == "entity" :]
        for name in node.attributes:
            if name not in allowed:
                self.fail(node.line, f"{where} has no attribute '{name}'")
        for name in REQUIRED.get(node.name, ()):
            if name not in node.attributes:
                self.fail(node.line, f"{where} lacks the attribute '{name}'")
        if node.name in VALUES:
            self.check_value(node)
            return
        if node.name in TEXTS:
            if node.children:
                self.fail(
                    node.children[0].line, f"{where} holds text, no <{node.children[0].name}>"
                )
            return
        if node.text.strip():
            self.fail(node.line, f"{where} holds elements, no text")
        self.check_children(node)
        for child in node.children:
            self.check(child, node.name)

    def check_children(self, node: Node) -> None:
        content = CONTENT[node.name]
        order = list(content)
        last = 0
        for child in node.children:
            if child.namespace != IDS or child.name not in content:
                self.fail(child.line, f"<{node.name}> may not hold <{child.name}>")
            at = order.index(child.name)
            if at < last and node.name not in UNORDERED:
                self.fail(
                    child.line,
                    f"in <{node.name}>, <{child.name}> must stand before <{order[last]}>",
                )
            last = at
        for name, (least, most) in content.items():
            there = [child for child in node.children if child.name == name]
            if len(there) < least:
                self.fail(node.line, f"<{node.name}> lacks <{name}>")
            if len(there) > most:
                self.fail(there[most].line, f"<{node.name}> has more than one <{name}>")

    def check_value(self, node: Node) -> None:
        if node.text.strip():
            self.fail(node.line, f"<{node.name}> holds an element, no text")
        kinds = [(child.namespace, child.name) for child in node.children]
        if len(kinds) != 1 or kinds[0] not in ((IDS, "simpleValue"), (XS, "restriction")):
            self.fail(
                node.line, f"<{node.name}> must hold either <simpleValue> or <xs:restriction>"
            )
        (child,) = node.children
        if child.name == "simpleValue":
            self.check(child, node.name)

    def check_info(self, info: Node) -> None:
        for node in info.children:
            text = node.text.strip()
            if node.name == "date" and not BASES["xs:date"].fullmatch(text):
                self.fail(node.line, f"<date> must be such as 2026-01-31, got '{text}'")
            if node.name == "author" and not AUTHOR.fullmatch(text):
                self.fail(node.line, f"<author> must be an address of e-mail, got '{text}'")

    def specification(self, number: int, node: Node) -> Specification:
        attributes = node.attributes
        versions = tuple(attributes["ifcVersion"].split())
        for version in versions:
            if version not in VERSIONS:
                self.fail(
                    node.line, f"ifcVersion must be of {', '.join(VERSIONS)}, got '{version}'"
                )
        if not versions:
            self.fail(node.line, "ifcVersion names no version")
        applicability, *rest = node.children
        return Specification(
            number,
            node.line,
            attributes["name"],
            self.occurs(applicability),
            versions,
            tuple(self.facet(each) for each in applicability.children),
            tuple(self.facet(each) for each in (rest[0].children if rest else ())),
            attributes.get("identifier"),
            attributes.get("description"),
            attributes.get("instructions"),
        )

    def occurs(self, node: Node) -> str:
        """Read how many objects a specification must have."""
        said = [node.attributes.get(name, "1").strip() for name in ("minOccurs", "maxOccurs")]
        numbers = []
        for name, text in zip(("minOccurs", "maxOccurs"), said, strict=True):
            if text == "unbounded" and name == "maxOccurs":
                numbers.append(MANY)
            elif text.isascii() and text.isdigit() and len(text) < 9:
                numbers.append(int(text))
            else:
                self.fail(node.line, f"{name} must be a number, got '{text}'")
        found = OCCURS.get((numbers[0], numbers[1]))
        if found is None:
            self.fail(
                node.line,
                "minOccurs and maxOccurs must be 1 and unbounded, 0 and unbounded, or 0 and 0; "
                f"got {said[0]} and {said[1]}",
            )
        return found

    def facet(self, node: Node) -> Facet:
        attributes = node.attributes
        cardinality = attributes.get("cardinality", "required")
        allowed = CARDINALITIES[::2] if node.name == "partOf" else CARDINALITIES
        if cardinality not in allowed:
            self.fail(node.line, f"cardinality must be {' or '.join(allowed)}, got '{cardinality}'")
        relation = attributes.get("relation")
        if relation is not None and relation not in RELATIONS:
            self.fail(node.line, f"relation must be one of {RELATIONS}, got '{relation}'")
        data_type = attributes.get("dataType")
        if data_type is not None and not re.fullmatch(r"[A-Z]+", data_type):
            self.fail(node.line, f"dataType must be in capital letters, got '{data_type}'")
        whole = self.facet(node.children[0]) if node.name == "partOf" else None
        values = {} if whole else {each.name: self.value(each) for each in node.children}
        return Facet(
            node.name, node.line, values, cardinality, data_type, relation, whole,
            attributes.get("instructions"),
        )  # fmt: skip

    def value(self, node: Node) -> Value:
        (child,) = node.children
        if child.name == "simpleValue":
            return Value(node.line, simple=child.text)
        return self.restriction(child)

    def restriction(self, node: Node) -> Value:
        base = node.attributes.get("base")
        if set(node.attributes) - {"base", "id"}:
            self.fail(node.line, f"<xs:restriction> has no attributes {list(node.attributes)}")
        if base is not None:
            base = f"xs:{base.strip().rpartition(':')[2]}"
            base = SAME_BASE.get(base, base)
            if base not in BASES:
                self.fail(node.line, f"the base of <xs:restriction> cannot be '{base}'")
        found: dict[str, list[str]] = {}
        for child in node.children:
            for name, text in self.constraint(child, base):
                found.setdefault(name, []).append(text)
        if not found:
            self.fail(node.line, "<xs:restriction> restricts nothing")
        for name in (*BOUNDS, *LENGTHS):
            if len(found.get(name, ())) > 1:
                self.fail(node.line, f"<xs:restriction> has more than one <xs:{name}>")
        patterns = tuple((each, self.pattern(node, each)) for each in found.get("pattern", ()))
        return Value(
            node.line,
            base=base,
            enumeration=tuple(found.get("enumeration", ())),
            patterns=patterns,
            bounds={name: found[name][0].strip() for name in BOUNDS if name in found},
            lengths={name: int(found[name][0]) for name in LENGTHS if name in found},
        )

    def constraint(self, node: Node, base: str | None) -> Iterator[tuple[str, str]]:
        """Read what a restriction holds, with the rules of its base."""
        if node.namespace != XS:
            self.fail(node.line, f"<xs:restriction> may not hold <{node.name}>")
        if node.name == "annotation":
            return
        is_known = node.name in ("enumeration", "pattern", *BOUNDS, *LENGTHS)
        if not is_known:
            self.fail(node.line, f"<xs:{node.name}> is no restriction that IDS has")
        text = node.attributes.get("value")
        if text is None:
            self.fail(node.line, f"<xs:{node.name}> lacks the attribute 'value'")
        fits = {
            "enumeration": base != "xs:boolean",
            "pattern": True,
            **dict.fromkeys(BOUNDS, base is None or base in ORDERED),
            **dict.fromkeys(LENGTHS, base is None or base in COUNTED),
        }
        if not fits[node.name]:
            self.fail(node.line, f"<xs:{node.name}> does not go with the base {base}")
        if node.name in LENGTHS and not (text.strip().isascii() and text.strip().isdigit()):
            self.fail(node.line, f"<xs:{node.name}> must be a number, got '{text}'")
        if base is not None and node.name in ("enumeration", *BOUNDS):
            said = text if base == "xs:string" else text.strip()
            if not BASES[base].fullmatch(said):
                self.fail(node.line, f"<xs:{node.name}> must be of {base}, got '{text}'")
        yield node.name, text

    def pattern(self, node: Node, pattern: str) -> str:
        try:
            return translated(pattern)
        except PatternError as error:
            self.fail(node.line, f"the pattern {quoted(pattern)} is none of XML Schema: {error}")
