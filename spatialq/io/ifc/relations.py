"""The relationships of an IFC model: a row per pair, and the way from an object upwards."""

from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spatialq.io.ifc.columns import ADDED, RELATIONS, Columns
from spatialq.io.ifc.entities import entities, text
from spatialq.io.ifc.layouts import Layouts

RULES: tuple[tuple[str, str, str | None, str], ...] = (
    ("IfcRelContainedInSpatialStructure", "RelatedElements", "RelatingStructure", "contained_in"),
    ("IfcRelReferencedInSpatialStructure", "RelatedElements", "RelatingStructure", "referenced_in"),
    ("IfcRelAggregates", "RelatedObjects", "RelatingObject", "aggregates"),
    ("IfcRelNests", "RelatedObjects", "RelatingObject", "nests"),
    ("IfcRelVoidsElement", "RelatedOpeningElement", "RelatingBuildingElement", "voids"),
    ("IfcRelFillsElement", "RelatedBuildingElement", "RelatingOpeningElement", "fills"),
    ("IfcRelProjectsElement", "RelatedFeatureElement", "RelatingElement", "projects"),
    ("IfcRelAdheresToElement", "RelatedSurfaceFeatures", "RelatingElement", "adheres_to"),
    ("IfcRelConnectsElements", "RelatedElement", "RelatingElement", "connects"),
    ("IfcRelConnectsPathElements", "RelatedElement", "RelatingElement", "connects"),
    ("IfcRelConnectsWithRealizingElements", "RelatedElement", "RelatingElement", "connects"),
    (
        "IfcRelConnectsWithRealizingElements",
        "RealizingElements", "RelatingElement", "realizes_connection",
    ),
    ("IfcRelConnectsPorts", "RelatedPort", "RelatingPort", "connects_ports"),
    ("IfcRelConnectsPortToElement", "RelatingPort", "RelatedElement", "port_of"),
    ("IfcRelConnectsStructuralActivity", "RelatedStructuralActivity", "RelatingElement", "acts_on"),
    (
        "IfcRelConnectsStructuralElement",
        "RelatedStructuralMember", "RelatingElement", "connects_structural",
    ),
    (
        "IfcRelConnectsStructuralMember",
        "RelatedStructuralConnection", "RelatingStructuralMember", "connects_structural",
    ),
    (
        "IfcRelConnectsWithEccentricity",
        "RelatedStructuralConnection", "RelatingStructuralMember", "connects_structural",
    ),
    ("IfcRelCoversBldgElements", "RelatedCoverings", "RelatingBuildingElement", "covers"),
    ("IfcRelCoversSpaces", "RelatedCoverings", "RelatingSpace", "covers_space"),
    ("IfcRelCoversSpaces", "RelatedCoverings", "RelatedSpace", "covers_space"),  # IFC2X3
    ("IfcRelSpaceBoundary", "RelatedBuildingElement", "RelatingSpace", "bounds_space"),
    ("IfcRelSpaceBoundary1stLevel", "RelatedBuildingElement", "RelatingSpace", "bounds_space"),
    ("IfcRelSpaceBoundary2ndLevel", "RelatedBuildingElement", "RelatingSpace", "bounds_space"),
    ("IfcRelInterferesElements", "RelatedElement", "RelatingElement", "interferes"),
    ("IfcRelInteractionRequirements", "RelatedSpaceProgram", "RelatingSpaceProgram", "interacts"),
    ("IfcRelFlowControlElements", "RelatedControlElements", "RelatingFlowElement", "controls_flow"),
    ("IfcRelPositions", "RelatedProducts", "RelatingPositioningElement", "positioned_by"),
    ("IfcRelServicesBuildings", "RelatingSystem", "RelatedBuildings", "services"),
    ("IfcRelSequence", "RelatedProcess", "RelatingProcess", "sequence"),
    ("IfcRelAssignsToGroup", "RelatedObjects", "RelatingGroup", "assigned_to_group"),
    ("IfcRelAssignsToGroupByFactor", "RelatedObjects", "RelatingGroup", "assigned_to_group"),
    ("IfcRelAssignsToProduct", "RelatedObjects", "RelatingProduct", "assigned_to_product"),
    ("IfcRelAssignsToProcess", "RelatedObjects", "RelatingProcess", "assigned_to_process"),
    ("IfcRelAssignsToControl", "RelatedObjects", "RelatingControl", "assigned_to_control"),
    ("IfcRelAssignsToProjectOrder", "RelatedObjects", "RelatingControl", "assigned_to_control"),
    ("IfcRelSchedulesCostItems", "RelatedObjects", "RelatingControl", "assigned_to_control"),
    ("IfcRelAssignsTasks", "RelatedObjects", "RelatingControl", "assigned_to_control"),
    ("IfcRelAssignsTasks", "RelatedObjects", "TimeForTask", "timed_by"),
    ("IfcRelAssignsToActor", "RelatedObjects", "RelatingActor", "assigned_to_actor"),
    ("IfcRelOccupiesSpaces", "RelatedObjects", "RelatingActor", "assigned_to_actor"),
    ("IfcRelAssignsToResource", "RelatedObjects", "RelatingResource", "assigned_to_resource"),
    ("IfcRelDefinesByType", "RelatedObjects", "RelatingType", "defined_by_type"),
    ("IfcRelDefinesByObject", "RelatedObjects", "RelatingObject", "defined_by_object"),
    (
        "IfcRelDefinesByProperties",
        "RelatedObjects", "RelatingPropertyDefinition", "defined_by_properties",
    ),
    (
        "IfcRelOverridesProperties",
        "RelatedObjects", "RelatingPropertyDefinition", "defined_by_properties",
    ),
    (
        "IfcRelDefinesByTemplate",
        "RelatedPropertySets", "RelatingTemplate", "defined_by_template",
    ),
    ("IfcRelDeclares", "RelatedDefinitions", "RelatingContext", "declared_in"),
    ("IfcRelAssociates", "RelatedObjects", None, "associates"),
    (
        "IfcRelAssociatesAppliedValue",
        "RelatedObjects", "RelatingAppliedValue", "associates_applied_value",
    ),
    ("IfcRelAssociatesApproval", "RelatedObjects", "RelatingApproval", "associates_approval"),
    (
        "IfcRelAssociatesClassification",
        "RelatedObjects", "RelatingClassification", "associates_classification",
    ),
    ("IfcRelAssociatesConstraint", "RelatedObjects", "RelatingConstraint", "associates_constraint"),
    ("IfcRelAssociatesDocument", "RelatedObjects", "RelatingDocument", "associates_document"),
    ("IfcRelAssociatesLibrary", "RelatedObjects", "RelatingLibrary", "associates_library"),
    ("IfcRelAssociatesMaterial", "RelatedObjects", "RelatingMaterial", "associates_material"),
    (
        "IfcRelAssociatesProfileDef",
        "RelatedObjects", "RelatingProfileDef", "associates_profile_def",
    ),
    (
        "IfcRelAssociatesProfileProperties",
        "RelatedObjects", "RelatingProfileProperties", "associates_profile_properties",
    ),
)  # fmt: skip
"""How each relationship class becomes rows: the attribute of the children, that of the parents,
the kind. Many-to-many ones give every pair. An attribute that the schema lacks is passed over."""

PARTS = ("aggregates", "nests", "fills", "voids", "projects", "adheres_to")
"""The kinds that lead from a part to its whole, the most direct first."""

UPWARD = ("contained_in", *PARTS, "defined_by_type")
"""The kinds of which an object has one at most."""

Label = tuple[str | None, str, str | None]
"""GlobalId, class and name of an entity; None where it has none."""

NOBODY = (None, None, None)


@dataclass(frozen=True)
class Relations:
    """All relationships of a model.

    Parameters
    ----------
    columns : dict of lists
        Those of the table of relations.
    labels : dict from int to Label
        Every entity that takes part, by step id.
    types : dict from int to int
        The type of each typed object.
    containers : dict from int to int
        The spatial structure that contains an element, directly.
    parents : dict from int to int
        The whole of each part: what it is aggregated or nested in, voids or fills.
    """

    columns: Columns
    labels: dict[int, Label]
    types: dict[int, int]
    containers: dict[int, int]
    parents: dict[int, int]

    def label(self, step_id: int | None) -> Label | tuple[None, None, None]:
        """Give GlobalId, class and name; of None, three times None."""
        return self.labels[step_id] if step_id is not None else NOBODY


def read_relations(model: Any, layouts: Layouts) -> Relations:
    """Read all relationships of an open model."""
    rows = []
    labels = Labels(layouts)
    above: dict[str, dict[int, int]] = {kind: {} for kind in UPWARD}
    for kind, child, parent, about in pairs(model, labels):
        child_id, child_class, child_name = labels[child] if child is not None else NOBODY
        parent_id, parent_class, parent_name = labels[parent] if parent is not None else NOBODY
        rows.append(
            (child_id, parent_id, kind, child_class, child_name, parent_class, parent_name, *about)
        )
        if kind in above and child is not None and parent is not None:
            # Broken files give several: the first one counts.
            above[kind].setdefault(child, parent)
    names = [name for name in RELATIONS if name not in ADDED]
    lists = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
    return Relations(
        columns=dict(zip(names, lists, strict=True)),
        labels=labels,
        types=above["defined_by_type"],
        containers=above["contained_in"],
        parents=dict(ChainMap(*(above[kind] for kind in PARTS))),
    )


Pair = tuple[str, int | None, int | None, tuple[Any, ...]]
"""Kind, child, parent, and what the table says about the relationship."""


def pairs(model: Any, labels: "Labels") -> Iterator[Pair]:
    """Give every pair of related entities, and have them labelled.

    A relationship that names no child or no parent, such as the boundary of a space where there
    is no element, is a pair with None.
    """
    layouts = labels.layouts
    known = set()
    for ifc_class, child_attribute, parent_attribute, rule_kind in RULES:
        if ifc_class not in layouts:
            continue
        at = layouts[ifc_class].at
        if child_attribute not in at or parent_attribute not in (None, *at):
            continue
        child_at, parent_at = at[child_attribute], at.get(parent_attribute or "")
        is_known = ifc_class in known
        known.add(ifc_class)
        for relation in model.by_type(ifc_class, include_subtypes=False):
            argument = relation.get_argument
            children = labels.add(argument(child_at))
            parents = labels.add(argument(parent_at)) if parent_at is not None else []
            if is_known and not (children and parents):
                continue  # the first rule of its class has given a row
            name = text(argument(2))
            about = ifc_class, text(argument(0)), name, child_attribute, parent_attribute
            for parent in parents or (None,):
                kind = rule_kind
                if kind == "assigned_to_group" and labels.is_system(parent):
                    kind = "assigned_to_system"
                for child in children or (None,):
                    yield kind, child, parent, about


class Labels(dict[int, Label]):
    """GlobalId, class and name of entities by their step ids.

    Parameters
    ----------
    layouts : Layouts
    """

    def __init__(self, layouts: Layouts) -> None:
        super().__init__()
        self.layouts = layouts

    def add(self, value: object) -> list[int]:
        """Add the entities in the value of an attribute, and give their step ids."""
        found = []
        for entity in entities(value):
            step_id = entity.id()
            if step_id not in self:
                self[step_id] = self._label(entity)
            found.append(step_id)
        return found

    def _label(self, entity: Any) -> Label:
        ifc_class = entity.is_a()
        layout = self.layouts[ifc_class]
        return (
            text(entity.get_argument(0)) if layout.is_root else None,
            ifc_class,
            text(entity.get_argument(layout.name_at)) if layout.name_at is not None else None,
        )

    def is_system(self, step_id: int | None) -> bool:
        """Whether an entity is an IfcSystem."""
        return step_id is not None and "IfcSystem" in self.layouts[self[step_id][1]].lineage
