"""Parts of real models: IfcOpenShell finds in them what it finds in the whole."""

import random
from collections import Counter

import ifcopenshell
import ifcopenshell.geom
import ifcopenshell.util.classification
import ifcopenshell.util.element
import ifcopenshell.util.placement
import ifcopenshell.validate
import numpy as np
import pytest

from spatialq.export.ifc import write_part
from spatialq.io.ifc.guard import checked
from spatialq.io.ifc.worker import SETTINGS
from tests.conftest import real_file

pytestmark = pytest.mark.slow

MODELS = (
    "AC20-FZK-Haus.ifc",  # IFC4: fills, space boundaries, material properties, layers
    "AC11-Institute-Var-2-IFC.ifc",  # IFC2X3: zones, classification, space boundaries
    "hvac_heating.ifczip",  # IFC4: ports, systems
    "Office_A_20110811.ifc",  # IFC2X3: placements at hosts, path connections, fills
    "SampleHouse4.ifczip",  # IFC4: classification, mapped geometry
    "Schependomlaan_V_L_Constructief.ifczip",  # IFC2X3: classification, path connections
    "bsi43_linear-placement-of-signal.ifc",  # IFC4X3: alignment, map conversion
    "bsi43_grid-placement.ifc",  # IFC4X3: placements at the axes of a grid
)
SIZES = (25, None)
COMPARED, MESHES = 200, 12
"""Elements of a part of which the facts and the meshes are compared: all would take minutes."""

PAIRS = {
    "IfcRelFillsElement": ("RelatingOpeningElement", "RelatedBuildingElement"),
    "IfcRelVoidsElement": ("RelatingBuildingElement", "RelatedOpeningElement"),
    "IfcRelConnectsPathElements": ("RelatingElement", "RelatedElement"),
    "IfcRelConnectsPorts": ("RelatingPort", "RelatedPort"),
    "IfcRelConnectsPortToElement": ("RelatingPort", "RelatedElement"),
    "IfcRelSpaceBoundary": ("RelatingSpace", "RelatedBuildingElement"),
    "IfcRelConnectsStructuralActivity": ("RelatingElement", "RelatedStructuralActivity"),
}


@pytest.fixture(scope="module", params=MODELS)
def source(request):
    """A model as a file without a zip, and open."""
    with checked(real_file(f"data/ifc/{request.param}")) as step:
        yield step.path, ifcopenshell.open(str(step.path))


@pytest.fixture(scope="module")
def complaints_of_source(source):
    return complaints(source[0])


@pytest.fixture(scope="module", params=SIZES)
def part(request, source, tmp_path_factory):
    """The model, a part of it by elements and spaces of any class, these, and its file."""
    path, model = source
    target = tmp_path_factory.mktemp("part") / "part.ifc"
    classes = ("IfcElement", "IfcSpatialElement", "IfcSpatialStructureElement")
    known = [each for each in classes if each != classes[1] or not model.schema.startswith("IFC2")]
    everything = sorted({e.GlobalId for each in known for e in model.by_type(each)})
    size = len(everything) if request.param is None else min(request.param, len(everything))
    chosen = random.Random(size).sample(everything, size)
    assert write_part(path, chosen, target) == size
    return model, ifcopenshell.open(str(target)), chosen, target


def said(value):
    """The text of entities, sorted, where there are several; numbers of entities are in it."""
    several = isinstance(value, list | tuple | set)
    return sorted(map(str, value)) if several else str(value)


def facts(element):
    """What IfcOpenShell says of an element, by its own ways to the answer."""
    util = ifcopenshell.util.element
    return {
        "entity": str(element),
        "psets": util.get_psets(element),
        "container": said(util.get_container(element)),
        "type": said(util.get_type(element)),
        "aggregate": said(util.get_aggregate(element)),
        "nest": said(util.get_nest(element)),
        "filled": said(util.get_filled_void(element)),
        "voided": said(util.get_voided_element(element)),
        "openings": said([rel.RelatedOpeningElement for rel in inverse(element, "HasOpenings")]),
        "parts": said(util.get_parts(element)),
        "groups": said(util.get_groups(element)),
        "materials": said(util.get_materials(element)),
        "styles": said(util.get_styles(element)),
        "layers": sorted(layer.Name for layer in util.get_layers(element.file, element)),
        "classifications": said(ifcopenshell.util.classification.get_references(element)),
        "placement": placement(element),
    }


def placement(element):
    """Where an element is; IfcOpenShell does not understand placements at grids."""
    at = getattr(element, "ObjectPlacement", None)
    if at is None or at.is_a("IfcGridPlacement"):
        return None
    return ifcopenshell.util.placement.get_local_placement(at).tolist()


def inverse(element, name):
    return getattr(element, name, None) or ()


def test_elements_are_as_in_the_whole(part):
    model, found, chosen, _ = part
    for global_id in chosen[:COMPARED]:
        assert facts(found.by_guid(global_id)) == facts(model.by_guid(global_id))


def test_relationships_between_elements_of_the_part(part):
    """Each that has both ends there, or needs one only, as virtual boundaries do; no other."""
    model, found, *_ = part
    kept = {product.id() for product in found.by_type("IfcProduct")}
    for ifc_class, ends in PAIRS.items():
        expected = {
            str(rel)
            for rel in model.by_type(ifc_class)
            if all((end := getattr(rel, name)) is None or end.id() in kept for name in ends)
        }
        assert {str(rel) for rel in found.by_type(ifc_class)} == expected


def test_entities_are_unchanged_but_for_their_lists(part):
    model, found, *_ = part
    cut = ("IfcRelationship", "IfcPresentationLayerAssignment", "IfcDocumentInformation")
    for entity in found:
        if not any(map(entity.is_a, cut)):
            assert str(entity) == str(model.by_id(entity.id()))
    assert {e.GlobalId for e in found.by_type("IfcRoot")} <= {
        e.GlobalId for e in model.by_type("IfcRoot")
    }


def shape(kernel, element):
    try:
        return kernel.create_shape(element)
    except RuntimeError:
        return None


def test_meshes_are_bit_equal(part):
    model, found, chosen, _ = part
    settings = ifcopenshell.geom.settings()
    for name, value in SETTINGS.items():
        settings.set(name, value)
    kernels = [ifcopenshell.geom.kernel(settings, each) for each in (model, found)]
    with_shape = [each for each in chosen if model.by_guid(each).Representation][:MESHES]
    assert with_shape
    for global_id in with_shape:
        pair = [
            shape(kernel, each.by_guid(global_id))
            for kernel, each in zip(kernels, (model, found), strict=True)
        ]
        assert (pair[0] is None) == (pair[1] is None)
        if pair[0] is None:
            continue
        whole, other = (each.geometry for each in pair)
        assert np.array_equal(whole.verts_buffer, other.verts_buffer)
        assert np.array_equal(whole.faces_buffer, other.faces_buffer)
        assert list(whole.material_ids) == list(other.material_ids)
        assert [m.name for m in whole.materials] == [m.name for m in other.materials]


def complaints(path):
    """How often each kind of complaint is made: its attribute or rule."""
    logger = ifcopenshell.validate.json_logger()
    ifcopenshell.validate.validate(str(path), logger)
    return Counter(
        (each.get("type"), each.get("attribute") or each["message"][:60])
        for each in logger.statements
    )


# IfcOpenShell's validation opens the file and forgets to close it
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_validation_is_no_worse(part, complaints_of_source):
    *_, path = part
    assert not complaints(path) - complaints_of_source
