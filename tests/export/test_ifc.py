"""Parts of made models: what comes along, and what is refused."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import ifcopenshell
import ifcopenshell.api.classification
import ifcopenshell.api.group
import ifcopenshell.api.material
import ifcopenshell.api.pset
import ifcopenshell.api.root
import ifcopenshell.api.spatial
import ifcopenshell.api.system
import ifcopenshell.api.type
import ifcopenshell.util.classification
import ifcopenshell.util.element
import pytest

from spatialq.errors import FileError, FileWarning
from spatialq.export import ifc_part
from spatialq.export.ifc import write_part
from tests.io.ifc_models import Builder


class House(Builder):
    """A wall with two windows, two beams, a type, a group."""

    def __init__(self, schema="IFC4"):
        super().__init__(schema)
        self.wall, self.opening, self.window = self.wall_with_window()
        self.second = self.add("IfcOpeningElement", "Hole 2", [self.box((3, -0.1, 1), (0.5, 1, 1))])
        ifcopenshell.api.feature.add_feature(self.model, feature=self.second, element=self.wall)
        self.door = self.add("IfcDoor", "Door", [self.box((3, 0, 1), (0.5, 0.1, 1))])
        ifcopenshell.api.feature.add_filling(self.model, opening=self.second, element=self.door)
        self.beam = self.add("IfcBeam", "Beam", [self.box((0, 5, 0), (4, 0.2, 0.2))])
        self.tie = self.add("IfcBeam", "Tie", [self.box((0, 0, -1), (4, 4, 0.2))])
        create = ifcopenshell.api.root.create_entity
        self.beam_type = create(self.model, ifc_class="IfcBeamType", name="HEA")
        ifcopenshell.api.type.assign_type(
            self.model, related_objects=[self.beam, self.tie], relating_type=self.beam_type
        )
        pset = ifcopenshell.api.pset.add_pset(self.model, product=self.beam_type, name="Pset")
        ifcopenshell.api.pset.edit_pset(self.model, pset=pset, properties={"Load": 7.0})
        self.group = ifcopenshell.api.group.add_group(self.model, name="Steel")
        ifcopenshell.api.group.assign_group(
            self.model, products=[self.beam, self.tie], group=self.group
        )
        self.steel = ifcopenshell.api.material.add_material(self.model, name="Steel")
        ifcopenshell.api.material.assign_material(
            self.model, products=[self.beam, self.tie], material=self.steel
        )


@pytest.fixture(params=["IFC2X3", "IFC4", "IFC4X3"])
def house(request):
    return House(request.param)


@pytest.fixture
def modern():
    """The house where the schema makes no difference."""
    return House("IFC4")


def part_of(tmp_path, builder, *chosen, name="part.ifc"):
    """The model of the part for some entities of a builder's model."""
    source = builder.write(tmp_path / "source.ifc")
    global_ids = [each.GlobalId for each in chosen]
    answer = ifc_part.write(str(source), str(tmp_path / name), global_ids)
    assert answer["objects"] == len(chosen)
    assert not answer["missing"] + answer["repeated"]
    return ifcopenshell.open(str(tmp_path / name))


def products(model):
    return {each.Name for each in model.by_type("IfcProduct")}


SPATIAL = {"Site", "House", "Ground floor"}


def test_a_beam_has_its_type_group_and_material(tmp_path, house):
    part = part_of(tmp_path, house, house.beam)
    assert products(part) == SPATIAL | {"Beam"}
    (beam,) = part.by_type("IfcBeam")
    assert beam.id() == house.beam.id()
    assert str(beam) == str(house.beam)
    element = ifcopenshell.util.element
    assert element.get_type(beam).GlobalId == house.beam_type.GlobalId
    assert element.get_psets(beam) == element.get_psets(house.beam)
    assert element.get_psets(beam)["Pset"]["Load"] == 7.0
    assert element.get_material(beam).Name == "Steel"
    assert element.get_container(beam).Name == "Ground floor"
    (group,) = element.get_groups(beam)
    assert group.Name == "Steel"
    (relationship,) = part.by_type("IfcRelAssignsToGroup")
    assert relationship.RelatedObjects == (beam,)


def test_a_wall_has_its_openings_and_what_fills_them(tmp_path, house):
    part = part_of(tmp_path, house, house.wall)
    assert products(part) == SPATIAL | {"Wall", "Hole", "Hole 2", "Window", "Door"}


def test_a_window_comes_with_its_wall_which_has_all_its_holes(tmp_path, house):
    part = part_of(tmp_path, house, house.window)
    assert products(part) == SPATIAL | {"Wall", "Hole", "Hole 2", "Window"}
    (fills,) = part.by_type("IfcRelFillsElement")
    assert fills.RelatedBuildingElement.Name == "Window"


def test_a_storey_comes_with_its_contents(tmp_path, house):
    part = part_of(tmp_path, house, house.storey)
    assert products(part) == products(house.model)


def test_a_group_comes_with_its_members(tmp_path, house):
    assert products(part_of(tmp_path, house, house.group)) == SPATIAL | {"Beam", "Tie"}


def test_a_type_comes_alone(tmp_path, house):
    part = part_of(tmp_path, house, house.beam_type)
    assert products(part) == set()
    (kept,) = part.by_type("IfcTypeObject")
    assert kept.HasPropertySets[0].Name == "Pset"
    assert part.by_type("IfcProject")


def test_the_project_is_the_whole_model(tmp_path, house):
    part = part_of(tmp_path, house, house.project)
    roots = {str(each) for each in house.model.by_type("IfcObjectDefinition")}
    assert {str(each) for each in part.by_type("IfcObjectDefinition")} == roots


def test_nothing_selected_is_the_root_of_the_building(tmp_path, house):
    part = part_of(tmp_path, house)
    assert products(part) == {"Site"}
    assert part.by_type("IfcProject")[0].UnitsInContext is not None


def test_parts_and_wholes(tmp_path):
    builder = Builder()
    whole = builder.add("IfcElementAssembly", "Stair", None)
    flights = [builder.add("IfcStairFlight", f"Flight {i}", None) for i in range(3)]
    ifcopenshell.api.aggregate.assign_object(builder.model, products=flights, relating_object=whole)
    assert products(part_of(tmp_path, builder, whole)) == SPATIAL | {"Stair"} | {
        "Flight 0", "Flight 1", "Flight 2",
    }  # fmt: skip
    assert products(part_of(tmp_path, builder, flights[1])) == SPATIAL | {"Stair", "Flight 1"}


def test_connections_are_between_elements_of_the_part(tmp_path):
    builder = Builder()
    model, walls = builder.model, builder.boxes(3)
    for one, other in ((0, 1), (1, 2)):
        model.create_entity(
            "IfcRelConnectsPathElements", GlobalId=ifcopenshell.guid.new(),
            RelatingElement=walls[one], RelatedElement=walls[other], RelatingPriorities=(),
            RelatedPriorities=(), RelatedConnectionType="ATSTART", RelatingConnectionType="ATEND",
        )  # fmt: skip
    part = part_of(tmp_path, builder, *walls[:2])
    (kept,) = part.by_type("IfcRelConnectsPathElements")
    assert (kept.RelatingElement.Name, kept.RelatedElement.Name) == ("Wall 0", "Wall 1")


def test_ports_come_with_their_element_and_connections_with_both_ends(tmp_path):
    builder = Builder()
    model = builder.model
    pipes = [builder.add("IfcPipeSegment", f"Pipe {i}", None) for i in range(3)]
    ends = [
        [ifcopenshell.api.system.add_port(model, element=pipe) for _ in range(2)] for pipe in pipes
    ]
    for i in (0, 1):
        model.create_entity(
            "IfcRelConnectsPorts", GlobalId=ifcopenshell.guid.new(), RelatingPort=ends[i][1],
            RelatedPort=ends[i + 1][0], RealizingElement=pipes[0],
        )  # fmt: skip
    part = part_of(tmp_path, builder, *pipes[1:])
    assert len(part.by_type("IfcDistributionPort")) == 4
    (kept,) = part.by_type("IfcRelConnectsPorts")
    assert (kept.RelatingPort.id(), kept.RelatedPort.id()) == (ends[1][1].id(), ends[2][0].id())
    assert kept.RealizingElement is None
    part = part_of(tmp_path, builder, ends[0][0])
    assert [each.Name for each in part.by_type("IfcPipeSegment")] == ["Pipe 0"]


def test_boundaries_of_spaces(tmp_path):
    """They need both sides, but not the boundary on the other side of the wall."""
    builder = Builder()
    model = builder.model
    wall = builder.add("IfcWall", "Wall", [builder.box((0, 0, 0), (1, 1, 1))])
    rooms = [builder.add("IfcSpace", f"Room {i}", None) for i in range(2)]
    ifcopenshell.api.aggregate.assign_object(model, products=rooms, relating_object=builder.storey)
    sides = [
        model.create_entity(
            "IfcRelSpaceBoundary2ndLevel", GlobalId=ifcopenshell.guid.new(), RelatingSpace=room,
            RelatedBuildingElement=wall, PhysicalOrVirtualBoundary="PHYSICAL",
            InternalOrExternalBoundary="INTERNAL",
        )
        for room in rooms
    ]  # fmt: skip
    sides[0].CorrespondingBoundary, sides[1].CorrespondingBoundary = sides[1], sides[0]
    both = part_of(tmp_path, builder, wall, *rooms).by_type("IfcRelSpaceBoundary")
    assert [str(each) for each in both] == [str(each) for each in sides]
    (one,) = part_of(tmp_path, builder, wall, rooms[0]).by_type("IfcRelSpaceBoundary")
    assert one.CorrespondingBoundary is None
    assert not part_of(tmp_path, builder, rooms[0]).by_type("IfcRelSpaceBoundary")


def test_classifications_and_layers(tmp_path, house):
    model = house.model
    system = ifcopenshell.api.classification.add_classification(model, classification="Uniclass")
    ifcopenshell.api.classification.add_reference(
        model, products=[house.beam, house.wall], identification="Ss_20", name="Structure",
        classification=system,
    )  # fmt: skip
    shapes = [each.Representation.Representations[0] for each in (house.beam, house.wall)]
    model.create_entity("IfcPresentationLayerAssignment", Name="S-BEAM", AssignedItems=shapes)
    part = part_of(tmp_path, house, house.beam)
    (beam,) = part.by_type("IfcBeam")
    (reference,) = ifcopenshell.util.classification.get_references(beam)
    assert reference.Name == "Structure"
    assert ifcopenshell.util.classification.get_classification(reference).Name == "Uniclass"
    (layer,) = part.by_type("IfcPresentationLayerAssignment")
    assert [each.id() for each in layer.AssignedItems] == [shapes[0].id()]


def test_styles(tmp_path, house):
    model = house.model
    for element, name in ((house.beam, "red"), (house.tie, "blue")):
        style = model.create_entity("IfcSurfaceStyle", Name=name, Side="BOTH", Styles=())
        styles = (style,)
        if model.schema == "IFC2X3":
            styles = (model.create_entity("IfcPresentationStyleAssignment", Styles=styles),)
        item = element.Representation.Representations[0].Items[0]
        model.create_entity("IfcStyledItem", Item=item, Styles=styles)
    part = part_of(tmp_path, house, house.beam)
    (styled,) = part.by_type("IfcStyledItem")
    assert styled.Item == part.by_type("IfcBeam")[0].Representation.Representations[0].Items[0]
    assert [each.Name for each in part.by_type("IfcSurfaceStyle")] == ["red"]


def test_a_product_comes_with_that_at_whose_placement_it_is(tmp_path, house):
    house.beam.ObjectPlacement.PlacementRelTo = house.tie.ObjectPlacement
    assert products(part_of(tmp_path, house, house.beam)) == SPATIAL | {"Beam", "Tie"}


def test_strings_and_numbers_are_the_same(tmp_path, modern):
    modern.beam.Name = "Träger 'Ω' #12 \\ 木"
    modern.beam.Description = "of #5, and (#6)"
    part = part_of(tmp_path, modern, modern.beam)
    assert str(part.by_type("IfcBeam")[0]) == str(modern.beam)


def test_the_header_is_that_of_the_source(tmp_path, house):
    house.model.header.file_description.description = ("ViewDefinition [ReferenceView]",)
    house.model.header.file_name.author = ("Ann",)
    part = part_of(tmp_path, house, house.beam)
    assert part.header.file_description.description == ("ViewDefinition [ReferenceView]",)
    assert part.header.file_name.author == ("Ann",)
    assert part.schema_identifier == house.model.schema_identifier


def test_zip(tmp_path, modern):
    part = part_of(tmp_path, modern, modern.beam, name="part.IFCZIP")
    assert products(part) == SPATIAL | {"Beam"}
    (tmp_path / "part.IFCZIP").rename(tmp_path / "source.ifczip")
    write_part(tmp_path / "source.ifczip", [modern.beam.GlobalId], tmp_path / "again.ifczip")
    again = (tmp_path / "again.ifczip").read_bytes()
    assert again == (tmp_path / "source.ifczip").read_bytes()


def test_a_part_of_a_part_is_the_same(tmp_path, modern):
    part_of(tmp_path, modern, modern.window)
    write_part(tmp_path / "part.ifc", [modern.window.GlobalId], tmp_path / "again.ifc")
    assert (tmp_path / "again.ifc").read_bytes() == (tmp_path / "part.ifc").read_bytes()


def test_equal_global_ids(tmp_path, modern):
    modern.tie.GlobalId = modern.beam.GlobalId
    source = modern.write(tmp_path / "source.ifc")
    with pytest.warns(FileWarning, match="of several objects") as caught:
        assert write_part(source, [modern.beam.GlobalId], tmp_path / "part.ifc") == 2
    assert str(caught[0].message) == (
        f"export_ifc: '{source}': 1 GlobalIds are of several objects, such as "
        f"'{modern.beam.GlobalId}': all of these are in the part"
    )
    part = ifcopenshell.open(str(tmp_path / "part.ifc"))
    assert products(part) == SPATIAL | {"Beam", "Tie"}


def refused(tmp_path, builder, global_ids, kind=FileError, target="part.ifc", **options):
    """The sentence for a part that is refused; nothing is left of it."""
    source = builder.write(tmp_path / "source.ifc")
    with pytest.raises(kind) as caught:
        write_part(source, global_ids, tmp_path / target, **options)
    assert [path.name for path in tmp_path.iterdir() if path.name != "odd_worker.py"] == [
        "source.ifc"
    ]
    return str(caught.value).replace(str(tmp_path), "here")


@pytest.mark.slow
def test_global_ids_that_are_not_there(tmp_path, modern):
    property_set = modern.beam_type.HasPropertySets[0].GlobalId
    chosen = [modern.beam.GlobalId, "c", "b", "a", "d", property_set]
    assert refused(tmp_path, modern, chosen[:-1]) == (
        "export_ifc: 'here/source.ifc': 4 of 5 GlobalIds are not of objects in it, such as "
        "'a', 'b', 'c'"
    )
    assert f"1 of 2 GlobalIds are not of objects in it, such as '{property_set}'" in refused(
        tmp_path, modern, [modern.beam.GlobalId, property_set]
    )


def test_bad_targets(tmp_path, modern):
    assert refused(tmp_path, modern, [], target="source.ifc") == (
        "export_ifc: 'here/source.ifc': output must be another file than the input"
    )
    assert refused(tmp_path, modern, [], ValueError, "part.csv") == (
        "export_ifc: output 'here/part.csv' must end in one of .ifc, .ifczip"
    )
    assert refused(tmp_path, modern, [], target="no/part.ifc") == (
        "output: 'here/no/part.ifc': there is no folder 'here/no'"
    )
    assert refused(tmp_path, modern, [], ValueError, seconds=0) == (
        "export_ifc: seconds must be > 0 and <= 1,000,000, got 0"
    )
    assert "got inf" in refused(tmp_path, modern, [], ValueError, seconds=float("inf"))
    assert "got nan" in refused(tmp_path, modern, [], ValueError, seconds=float("nan"))


@pytest.fixture
def process_that(monkeypatch, tmp_path):
    """Replace the process by Python code."""

    def use(code):
        script = tmp_path / "odd_worker.py"
        script.write_text(code)
        monkeypatch.setattr(
            "spatialq.export.ifc.command",
            lambda source, target, seconds: [sys.executable, str(script), str(target)],
        )

    return use


HALF = "import os, sys, time; open(sys.argv[1], 'w').write('half'); "


@pytest.mark.slow
def test_a_process_that_hangs(tmp_path, modern, process_that):
    process_that(HALF + "time.sleep(600)")
    assert refused(tmp_path, modern, [], seconds=1) == (
        "export_ifc: 'here/source.ifc': IfcOpenShell took longer than 1 s to take a part of it"
    )


def test_a_process_that_crashes(tmp_path, modern, process_that):
    process_that(HALF + "os.kill(os.getpid(), 11)")
    assert refused(tmp_path, modern, []) == (
        "export_ifc: 'here/source.ifc': IfcOpenShell crashed (SIGSEGV) while it took a part of it"
    )


def test_a_process_that_is_interrupted(tmp_path, modern, process_that):
    process_that(HALF + "import signal; signal.signal(2, signal.SIG_DFL); os.kill(os.getpid(), 2)")
    assert refused(tmp_path, modern, [], KeyboardInterrupt) == ""


def test_a_full_disk(tmp_path, modern, process_that):
    process_that(
        "import sys; from spatialq.export import ifc_part\n"
        f"ifc_part.main({str(tmp_path / 'source.ifc')!r}, '/dev/full', '10')"
    )
    said = refused(tmp_path, modern, [])
    assert said.endswith(".ifc': cannot be written: No space left on device")
    assert "source.ifc" not in said


@pytest.mark.slow
def test_ctrl_c_ends_it(tmp_path, modern):
    """Only the caller gets the signal, as from a notebook."""
    source = modern.write(tmp_path / "source.ifc")
    script = tmp_path / "caller.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import sys
            from pathlib import Path
            from spatialq.export import ifc
            code = "import os, time; print(os.getpid(), file=open('pid', 'w')); time.sleep(600)"
            ifc.command = lambda *_: [sys.executable, "-c", code]
            ifc.write_part(Path({str(source)!r}), [], Path("part.ifc"))
            """
        )
    )
    process = subprocess.Popen([sys.executable, script], cwd=tmp_path, stderr=subprocess.PIPE)
    pid = tmp_path / "pid"
    while not pid.exists() or not pid.read_text():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in said
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert {path.name for path in tmp_path.iterdir()} == {"source.ifc", "caller.py", "pid"}


def test_cycles(tmp_path, house):
    """Parts of each other, and placements relative to each other."""
    beam, tie = house.beam, house.tie
    for whole, part in ((beam, tie), (tie, beam)):
        house.model.create_entity(
            "IfcRelAggregates", GlobalId=ifcopenshell.guid.new(), RelatingObject=whole,
            RelatedObjects=[part],
        )  # fmt: skip
    beam.ObjectPlacement.PlacementRelTo = tie.ObjectPlacement
    tie.ObjectPlacement.PlacementRelTo = beam.ObjectPlacement
    assert products(part_of(tmp_path, house, beam)) == SPATIAL | {"Beam", "Tie"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_damaged_files(tmp_path, seed):
    """Lines lost and references mixed up: a part that opens, or one sentence."""
    dice = random.Random(seed)
    house = House(dice.choice(["IFC2X3", "IFC4", "IFC4X3"]))
    lines = house.write(tmp_path / "whole.ifc").read_text().splitlines()
    numbers = [line.split("=")[0] for line in lines if line.startswith("#")]
    for at, line in enumerate(lines):
        if not line.startswith("#") or dice.random() < 0.9:
            continue
        head, equals, tail = line.partition("=")
        wrong = (dice.choice(numbers), "$", "()", "*", "'text'", f"({dice.choice(numbers)},$)")
        parts = tail.split("#")
        if dice.random() < 0.3 or len(parts) == 1:
            lines[at] = ""
        else:
            where = dice.randrange(1, len(parts))
            parts[where] = parts[where].lstrip("0123456789")
            lines[at] = head + equals + "#".join(parts[:where]) + dice.choice(wrong)
            lines[at] += "#".join(parts[where:])
    source = tmp_path / "source.ifc"
    source.write_text("\n".join(lines))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FileWarning)
        try:
            write_part(source, [house.window.GlobalId], tmp_path / "part.ifc", seconds=60)
        except FileError as error:
            assert str(error).startswith(f"export_ifc: '{source}': ")  # noqa: PT017
            assert "Traceback" not in str(error)  # noqa: PT017
            return
    part = ifcopenshell.open(str(tmp_path / "part.ifc"))
    assert house.window.GlobalId in {each.GlobalId for each in part.by_type("IfcRoot")}
