"""Edits of IFC models through IfcOpenShell, and what they changed, told without code of ours.

Entities keep their STEP numbers when IfcOpenShell writes a model, so an object is the same in two
files if its number is; placements, shapes and properties are compared as the files have them.
"""

import random

import ifcopenshell
import ifcopenshell.api.feature
import ifcopenshell.api.geometry
import ifcopenshell.api.pset
import ifcopenshell.api.root
import ifcopenshell.guid
import ifcopenshell.util.element
import ifcopenshell.util.placement
import numpy as np
from ifcopenshell.util.unit import calculate_unit_scale

TURN = 37.3
"""Degrees; no shape of the models looks the same after it."""


class Edits:
    """A model that is edited; `classes` are those of the products to choose from."""

    def __init__(self, path, classes, seed=0):
        self.model = ifcopenshell.open(path)
        self.scale = calculate_unit_scale(self.model)
        self.random = random.Random(seed)
        self.classes = classes
        self.used = set()
        self.count = 0

    def pick(self, *, simple=False):
        """A product that was not edited yet: with a shape, and in no other product."""
        found = [
            each
            for name in self.classes
            for each in self.model.by_type(name)
            if each.Representation is not None
            and each.id() not in self.used
            and not getattr(each, "FillsVoids", ())
            and not each.IsDecomposedBy
            and (not simple or (not each.HasOpenings and _extrusion(each) is not None))
        ]
        chosen = self.random.choice(sorted(found, key=lambda each: each.id()))
        self.used.add(chosen.id())
        self.used |= {rel.RelatedOpeningElement.id() for rel in chosen.HasOpenings}
        return chosen

    def place(self, product, shift, turn=0.0):
        """Move a product by metres, and turn it about the vertical axis of its placement."""
        matrix = ifcopenshell.util.placement.get_local_placement(product.ObjectPlacement)
        matrix[:3, 3] = matrix[:3, 3] * self.scale + shift
        angle = np.radians(turn)
        spin = np.array(
            [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]]
        )
        matrix[:3, :3] = spin @ matrix[:3, :3]
        ifcopenshell.api.geometry.edit_object_placement(
            self.model, product=product, matrix=matrix, is_si=True, should_transform_children=True
        )

    def move(self):
        self.place(self.pick(), [self.random.choice([0.05, -1.2, 3.0]), 0.25, 0.0])

    def turn(self):
        self.place(self.pick(), [0.0, 0.0, 0.0], TURN)

    def rename(self):
        product = self.pick()
        self.count += 1
        product.Name = f"{product.Name} renamed {self.count}"

    def renumber(self):
        self.pick().GlobalId = ifcopenshell.guid.new()

    def annotate(self):
        product = self.pick()
        self.count += 1
        pset = ifcopenshell.api.pset.add_pset(self.model, product=product, name="Pset_Edited")
        ifcopenshell.api.pset.edit_pset(self.model, pset=pset, properties={"Mark": str(self.count)})

    def reclassify(self):
        """Another class: IfcOpenShell makes a new entity, which has the GlobalId."""
        product = self.pick(simple=True)
        made = ifcopenshell.api.root.reassign_class(
            self.model, product=product, ifc_class="IfcCovering"
        )
        self.used.add(made.id())

    def delete(self):
        ifcopenshell.api.root.remove_product(self.model, product=self.pick(simple=True))

    def copy(self):
        product = self.pick(simple=True)
        made = ifcopenshell.api.root.copy_class(self.model, product=product)
        self.used.add(made.id())
        self.own_shape(made, product)
        self.place(made, [0.0, 0.0, 7.0 + self.random.random()])

    def stretch(self):
        """Another depth of an extrusion, of which the product gets one of its own."""
        product = self.pick(simple=True)
        self.own_shape(product)
        _extrusion(product).Depth *= 1.25

    def split(self):
        """Half of an extrusion stays, the other half becomes a product."""
        product = self.pick(simple=True)
        self.own_shape(product)
        solid = _extrusion(product)
        solid.Depth /= 2
        made = ifcopenshell.api.root.copy_class(self.model, product=product)
        self.used.add(made.id())
        self.own_shape(made, product)
        matrix = ifcopenshell.util.placement.get_local_placement(product.ObjectPlacement)[:3, :3]
        if solid.Position is not None:
            inner = ifcopenshell.util.placement.get_axis2placement(solid.Position)
            matrix = matrix @ inner[:3, :3]
        direction = matrix @ np.array(solid.ExtrudedDirection.DirectionRatios)
        self.place(made, direction / np.linalg.norm(direction) * solid.Depth * self.scale)

    def own_shape(self, product, other=None):
        """Copy the representations, which other products may have as well, or those of another."""
        product.Representation = ifcopenshell.util.element.copy_deep(
            self.model,
            (other or product).Representation,
            exclude=("IfcRepresentationContext",),
        )

    def renumber_all(self):
        for each in self.model.by_type("IfcRoot"):
            each.GlobalId = ifcopenshell.guid.new()


EDITS = (
    "reclassify", "delete", "copy", "stretch", "split",
    "move", "turn", "rename", "renumber", "annotate",
)  # fmt: skip
"""All kinds of edits; first those of products that are one extrusion, of which there are few."""


def _extrusion(product):
    """The one extrusion that the body of a product is; None for others."""
    bodies = [
        each
        for each in product.Representation.Representations
        if each.RepresentationIdentifier == "Body"
    ]
    items = [item for body in bodies for item in body.Items]
    return items[0] if [item.is_a() for item in items] == ["IfcExtrudedAreaSolid"] else None


def shape_of(product):
    """What the shape of a product depends on, without its place."""
    if product.Representation is None:
        return None
    own = [
        _plain(item)
        for each in product.Representation.Representations
        if each.RepresentationIdentifier in ("Body", "Facetation", "Tessellation")
        for item in each.Items
    ]
    here = np.linalg.inv(placement(product))
    openings = [rel.RelatedOpeningElement for rel in getattr(product, "HasOpenings", ())]
    cut = [(shape_of(each), np.round(here @ placement(each), 6).tolist()) for each in openings]
    return repr(own), repr(sorted(cut, key=repr))


def _plain(value):
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, ifcopenshell.entity_instance):
        return [value.is_a(), *(_plain(value[k]) for k in range(len(value)))]
    return value


def placement(product):
    matrix = np.eye(4)
    if getattr(product, "ObjectPlacement", None) is not None:
        matrix = ifcopenshell.util.placement.get_local_placement(product.ObjectPlacement)
    return matrix


def expected_changes(old_path, new_path, with_mesh):
    """What changed, by number in the new file, or in the old one: change -> its shift in metres.

    `with_mesh` are the numbers of old products that have a mesh. Objects that did not change are
    there, too, with an empty set.
    """
    old, new = ifcopenshell.open(old_path), ifcopenshell.open(new_path)
    scale = calculate_unit_scale(old)
    before = {each.id(): each for each in old.by_type("IfcObjectDefinition")}
    after = {each.id(): each for each in new.by_type("IfcObjectDefinition")}
    number = {each.GlobalId: each.id() for each in after.values() if each.id() not in before}
    same = {i: i if i in after else number.get(each.GlobalId) for i, each in before.items()}
    found, shifts = {}, {}
    for i, a in before.items():
        b = after.get(same[i])
        if b is None:
            found["old", i] = {"removed"}
            continue
        has_moved = i in with_mesh and not np.allclose(placement(a), placement(b), atol=1e-9)
        is_reshaped = i in with_mesh and shape_of(a) != shape_of(b)
        if a.GlobalId != b.GlobalId and (has_moved or is_reshaped):
            found["old", i], found["new", b.id()] = {"removed"}, {"added"}
            continue
        changes = {"reshaped"} if is_reshaped else {"moved"} if has_moved else set()
        changes |= {"renamed"} if a.Name != b.Name else set()
        changes |= {"retyped"} if a.is_a() != b.is_a() else set()
        changes |= {"property"} if _properties(a) != _properties(b) else set()
        found["new", b.id()] = changes
        one, other = placement(a), placement(b)
        if np.allclose(one[:3, :3], other[:3, :3]):
            shifts[b.id()] = (other - one)[:3, 3] * scale
    kept = set(same.values())
    found |= {("new", i): {"added"} for i in after if i not in kept}
    return found, shifts


def _properties(product):
    sets = ifcopenshell.util.element.get_psets(product)
    names = ("Description", "ObjectType", "Tag", "LongName")
    return {name: getattr(product, name, None) for name in names}, {
        (name, key): value
        for name, each in sets.items()
        for key, value in each.items()
        if key != "id"
    }
