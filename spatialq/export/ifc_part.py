"""The process that writes a part of an IFC file: which entities belong to it, and their lines.

IfcOpenShell may crash on a damaged file, so this module runs as a process of its own
(`python -m spatialq.export.ifc_part SOURCE TARGET SECONDS`), started by `spatialq.export.ifc`. It
reads a JSON list of GlobalIds from standard input and answers with one JSON object, see `write`.

What belongs to a part, in the order in which it is found:

1. the selected objects;
2. downwards, what they consist of: parts, openings with their fillings, ports, the contents of a
   spatial structure, the members of a group (`PARTS`);
3. upwards, what all of these hang on, without its other parts: wholes, hosts, containers, groups,
   types, property sets, the project (`PARTS` and `ABOVE` from the other end), and the product at
   whose placement another one is placed. A host has all its openings, as it has its shape by them;
4. the relationships between these, cut to them;
5. forward, every entity that the lines of these name;
6. backwards, what is said about such entities from outside: styles, map conversions, properties of
   materials, layers (`ATTACHED` and `LISTS`).

Lines keep their numbers, and all that is not cut is as IfcOpenShell read it.
"""

import json
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from io import TextIOWrapper
from typing import Any, TypeAlias
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from spatialq.io.ifc.entities import entities
from spatialq.io.ifc.layouts import Layouts
from spatialq.io.ifc.mesh_stream import private_stdout
from spatialq.io.ifc.worker import SPARE_SECONDS, complaints

Entity: TypeAlias = Any
"""`ifcopenshell.entity_instance`, which has no types."""

Ends: TypeAlias = tuple[str, str]

PARTS: dict[str, Ends] = {
    "IfcRelAggregates": ("RelatingObject", "RelatedObjects"),
    "IfcRelNests": ("RelatingObject", "RelatedObjects"),
    "IfcRelVoidsElement": ("RelatingBuildingElement", "RelatedOpeningElement"),
    "IfcRelProjectsElement": ("RelatingElement", "RelatedFeatureElement"),
    "IfcRelAdheresToElement": ("RelatingElement", "RelatedSurfaceFeatures"),
    "IfcRelFillsElement": ("RelatingOpeningElement", "RelatedBuildingElement"),
    "IfcRelConnectsPortToElement": ("RelatedElement", "RelatingPort"),
    "IfcRelContainedInSpatialStructure": ("RelatingStructure", "RelatedElements"),
    "IfcRelAssignsToGroup": ("RelatingGroup", "RelatedObjects"),
    "IfcRelDeclares": ("RelatingContext", "RelatedDefinitions"),
}
"""Relationships that are followed both ways: the attributes that name the whole and its parts."""

ABOVE: dict[str, Ends] = {
    "IfcRelReferencedInSpatialStructure": ("RelatingStructure", "RelatedElements"),
    "IfcRelDefinesByType": ("RelatingType", "RelatedObjects"),
    "IfcRelDefinesByObject": ("RelatingObject", "RelatedObjects"),
    "IfcRelDefinesByProperties": ("RelatingPropertyDefinition", "RelatedObjects"),
    "IfcRelDefinesByTemplate": ("RelatingTemplate", "RelatedPropertySets"),
    "IfcRelConnectsStructuralMember": ("RelatingStructuralMember", "RelatedStructuralConnection"),
}
"""Relationships that are followed upwards only."""

FEATURES = {
    name: PARTS[name]
    for name in ("IfcRelVoidsElement", "IfcRelProjectsElement", "IfcRelAdheresToElement")
}
"""Relationships to parts without which an element would have another shape."""

ATTACHED = {
    "IfcStyledItem": "Item",
    "IfcIndexedColourMap": "MappedTo",
    "IfcIndexedTextureMap": "MappedTo",
    "IfcTextureMap": "MappedTo",
    "IfcShapeAspect": "PartOfProductDefinitionShape",
    "IfcMaterialDefinitionRepresentation": "RepresentedMaterial",
    "IfcMaterialClassificationRelationship": "ClassifiedMaterial",
    "IfcMaterialRelationship": "RelatingMaterial",
    "IfcMaterialProperties": "Material",
    "IfcProfileProperties": "ProfileDefinition",
    "IfcCoordinateOperation": "SourceCRS",
}
"""Classes that say something about one entity: the attribute that names it."""

LISTS = {
    "IfcPresentationLayerAssignment": "AssignedItems",
    "IfcResourceLevelRelationship": "RelatedResourceObjects",
    "IfcDocumentInformation": "DocumentReferences",
}
"""Classes that say something about many entities: the attribute that names them, which is cut."""

REFERENCE = re.compile(r"'(?:[^']|'')*'|#(\d+)")
"""A string, in which a # means nothing, or the number of an entity."""


def spread(start: Iterable[Entity], reached: Callable[[Entity], Iterable[Entity]]) -> list[Entity]:
    """Give the entities of `start` and all that is reached from them, each once."""
    found = {entity.id(): entity for entity in start}
    pending = list(found.values())
    while pending:
        for other in reached(pending.pop()):
            if other.id() not in found:
                found[other.id()] = other
                pending.append(other)
    return list(found.values())


def roots(value: Any) -> list[Entity]:
    """Give the entities with a GlobalId in the value of an attribute."""
    return [entity for entity in entities(value) if entity.is_a("IfcRoot")]


class Part:
    """The part of a model that belongs to some of its objects; see the module.

    The relationships of the model are cut: nothing else may use it afterwards.

    Parameters
    ----------
    model : ifcopenshell.file
    selected : sequence of entities
        None give the project and the roots of its spatial structure.

    Attributes
    ----------
    lines : dict from int to str
        The entities of the part in the order of their numbers, as STEP text.
    """

    def __init__(self, model: Any, selected: Sequence[Entity]) -> None:
        self.model = model
        self.layouts = Layouts(model.schema_identifier)
        self.relationships = cache(self._relationships)
        self.lines: dict[int, str] = {}

        projects = model.by_type("IfcProject")
        wanted = spread(selected, self.parts) or [s for p in projects for s in self.parts(p)]
        kept = spread([*projects, *wanted], self.above)
        self.add([*kept, *self.cut_relationships(kept)])
        self.add_attached()
        self.add_lists()
        self.lines = dict(sorted(self.lines.items()))

    def _relationships(self, entity: Entity) -> list[Entity]:
        inverse = self.model.get_inverse(entity)
        return [each for each in inverse if each.is_a("IfcRelationship")]

    def ends(self, table: dict[str, Ends], relationship: Entity) -> Ends | None:
        """Look up the row for a relationship or for a supertype of it."""
        lineage = self.layouts[relationship.is_a()].lineage
        return next((table[name] for name in lineage if name in table), None)

    def related(self, whole: Entity, table: dict[str, Ends]) -> Iterator[Entity]:
        """Give the parts of an object by the relationships of a table."""
        for relationship in self.relationships(whole):
            ends = self.ends(table, relationship)
            if ends and whole in roots(getattr(relationship, ends[0])):
                yield from roots(getattr(relationship, ends[1]))

    def parts(self, whole: Entity) -> Iterator[Entity]:
        """Give what an object consists of."""
        return self.related(whole, PARTS)

    def above(self, entity: Entity) -> Iterator[Entity]:
        """Give what an object cannot be without."""
        for relationship in self.relationships(entity):
            if ends := self.ends(PARTS | ABOVE, relationship):
                yield from roots(getattr(relationship, ends[0]))
        yield from self.related(entity, FEATURES)
        yield from roots(tuple(entity))  # property sets of a type, loads of an analysis
        yield from hosts(entity)

    def cut_relationships(self, kept: Iterable[Entity]) -> list[Entity]:
        """Give the relationships between the objects kept, cut to these.

        One between an object that is kept and one that is not goes. What may be missing, such as
        the other side of a space boundary, is left out.
        """
        ids = {entity.id() for entity in kept}
        touching = spread((r for entity in kept for r in self.relationships(entity)), lambda _: ())
        holding = [each for each in touching if self.holds(each, ids)]
        ids |= {each.id() for each in holding}  # space boundaries name each other
        for each in holding:
            for index, value in enumerate(each):
                if any(root.id() not in ids for root in roots(value)):
                    each[index] = cut(value, ids)
        return holding

    def holds(self, relationship: Entity, ids: set[int]) -> bool:
        """Whether a relationship still says something: all that it relates is there in part."""
        layout = self.layouts[relationship.is_a()]
        for name, value in zip(layout.at, relationship, strict=True):
            named = roots(value)
            needed = name not in layout.optional or name.startswith("Relat")
            if named and needed and not any(root.id() in ids for root in named):
                return False
        return True

    def add(self, start: Iterable[Entity]) -> None:
        """Add entities with all that their lines name."""
        pending = list(start)
        while pending:
            entity = pending.pop()
            if entity.id() not in self.lines:
                line = self.lines[entity.id()] = entity.to_string(True)  # noqa: FBT003 (of C++)
                named = (int(number) for number in REFERENCE.findall(line) if number)
                pending += [self.model.by_id(each) for each in named if each not in self.lines]

    def add_attached(self) -> None:
        """Add what is attached to entities of the part, and to what this brings along."""
        attached = [
            (entity, [each.id() for each in entities(value)])
            for entity, _, value in self.of_classes(ATTACHED)
        ]
        size = -1
        while size < len(self.lines):
            size = len(self.lines)
            self.add(e for e, about in attached if any(one in self.lines for one in about))

    def add_lists(self) -> None:
        """Add what is said about many entities, cut to those of the part."""
        ids = self.lines.keys()
        for entity, attribute, value in self.of_classes(LISTS):
            named = entities(value)
            left = [each for each in named if each.id() in ids]
            if left and entity.id() not in ids:
                if len(left) < len(named):
                    setattr(entity, attribute, left)
                self.add([entity])

    def of_classes(self, table: dict[str, str]) -> list[tuple[Entity, str, Any]]:
        """Give the entities of some classes with the name and the value of their attribute.

        Not each schema has all classes, nor their attributes.
        """
        return [
            (entity, attribute, getattr(entity, attribute, None))
            for ifc_class, attribute in table.items()
            if ifc_class in self.layouts
            for entity in self.model.by_type(ifc_class)
        ]


def hosts(product: Entity) -> Iterator[Entity]:
    """Give the product and the grids by which another product is placed."""
    seen = set()
    placement = getattr(product, "ObjectPlacement", None)
    while placement and placement.id() not in seen:
        seen.add(placement.id())
        for location in entities(getattr(placement, "PlacementLocation", None)):
            for axis in entities(tuple(location)):
                if axis.is_a("IfcGridAxis"):
                    yield from (*axis.PartOfU, *axis.PartOfV, *axis.PartOfW)
        placement = getattr(placement, "PlacementRelTo", None)
        if placed := getattr(placement, "PlacesObject", None):
            # Several may share it; what they stand in is their host rather than one of them.
            yield next((each for each in placed if is_spatial(each)), placed[0])
            return


def is_spatial(product: Entity) -> bool:
    """Whether a product is a site, building, storey, space or the like."""
    return any(map(product.is_a, ("IfcSpatialStructureElement", "IfcSpatialElement")))


def cut(value: Any, ids: set[int]) -> Any:
    """Take the roots out of an attribute's value that are not kept."""
    if not isinstance(value, tuple):
        return None
    return tuple(each for each in value if not each.is_a("IfcRoot") or each.id() in ids) or None


def write(source: str, target: str, global_ids: list[str]) -> dict[str, Any]:
    """Write the part of a file that belongs to some objects.

    Returns
    -------
    dict
        ``entities`` read from the source, ``objects`` selected, ``missing`` GlobalIds that no
        object has, and ``repeated`` ones that several have. If some are missing nothing is
        written.
    """
    import ifcopenshell

    model = ifcopenshell.open(source, format=".ifc")
    wanted = set(global_ids)
    selected = [each for each in model.by_type("IfcObjectDefinition") if each.GlobalId in wanted]
    counts = Counter(each.GlobalId for each in selected)
    answer = {
        "entities": len(model.entity_names()),
        "objects": len(selected),
        "missing": sorted(wanted - counts.keys()),
        "repeated": sorted(name for name, count in counts.items() if count > 1),
    }
    if not answer["missing"]:
        save(target, model, Part(model, selected))
    return answer


def save(target: str, model: Any, part: Part) -> None:
    """Write the lines of a part, with the header of its model."""
    import ifcopenshell

    empty = ifcopenshell.file(schema=model.schema_identifier)
    empty.assign_header_from(model)
    head, data, end = empty.to_string().partition("DATA;\n")
    with step_text(target) as text:
        text.write(head + data)
        text.writelines(f"{line};\n" for line in part.lines.values())
        text.write(end)


@contextmanager
def step_text(target: str) -> Iterator[TextIOWrapper]:
    """Open a file to write STEP text, in a zip if its name ends so."""
    with ExitStack() as stack:
        if target.lower().endswith(".ifczip"):
            archive = stack.enter_context(ZipFile(target, "w", ZIP_DEFLATED))
            member = ZipInfo("model.ifc")  # of a fixed date: equal parts are equal files
            member.compress_type = ZIP_DEFLATED
            file = archive.open(member, "w", force_zip64=True)
        else:
            file = open(target, "wb")  # noqa: PTH123, SIM115
        # Strings of damaged files may not be Unicode: their bad characters become "?".
        yield stack.enter_context(TextIOWrapper(file, encoding="utf-8", errors="replace"))


def main(source: str, target: str, seconds: str) -> None:
    """Write the part whose GlobalIds are on standard input, and answer."""
    # Ctrl-C reaches the whole process group: end at once, even inside C++ code. So does a limit
    # of time for a process whose parent is gone.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "alarm"):
        signal.alarm(int(float(seconds)) + SPARE_SECONDS)
    out = private_stdout()
    try:
        answer = write(source, target, json.load(sys.stdin))
    except OSError as error:  # for example a full disk
        answer = {"unwritten": error.strerror}
    except Exception as error:
        import ifcopenshell

        reasons = [str(error).strip() or type(error).__name__]
        if not isinstance(error, ifcopenshell.SchemaError):
            reasons += complaints(ifcopenshell.get_log())
        answer = {"error": " | ".join(reasons)}
    out.write(json.dumps(answer).encode())
    out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
