"""The writer of BCF archives: schemas, other readers, the same bytes each time."""

import hashlib
import zipfile
from datetime import UTC, datetime

import pytest

from spatialq.export.bcf import Comment, Topic, View, guid, write_archive
from spatialq.export.camera import Camera
from spatialq.io.bcf import read_bcf

from ..conftest import real_file

PIPE, BEAM, SLAB = (str(k) * 22 for k in range(3))
PNG = b"\x89PNG\r\n\x1a\n"
CAMERA = Camera(eye=(1, 2, 3), target=(4, 6, 3), fov=60, width=800, height=600)
VIEW = View(
    CAMERA, (PIPE, BEAM), {"FF0000": [PIPE], "40C0C0C0": [SLAB]}, (PIPE, BEAM, SLAB), PNG,
    cut=(4, 6, 3),
)  # fmt: skip
FULL = Topic(
    "clash 1", "Rohr <in> Träger\x00 & more", VIEW, priority="High", labels=("heating", " "),
    assigned_to="d@e.f", due=datetime(2026, 1, 2, tzinfo=UTC), description="two\nlines",
    models=("a.ifc", "b.ifc"), related=("clash 2",), position=7,
    comments=(Comment("Move it", "g@h.i", datetime(2026, 1, 3, 4, 5, 6)), Comment("")),
)  # fmt: skip
PLAIN = Topic("clash 2", "x", View(CAMERA, ("odd id",), {}, ("odd id",), PNG))
SCHEMAS = {
    "bcf.version": "version", "markup.bcf": "markup", "viewpoint.bcfv": "visinfo",
    "extensions.xml": "extensions",
}  # fmt: skip


@pytest.fixture(params=["2.1", "3.0"])
def archive(request, tmp_path):
    path = tmp_path / f"{request.param}.bcf"
    assert write_archive(path, [FULL, PLAIN], version=request.param) == 2
    return path


def test_each_part_is_valid(archive):
    xmlschema = pytest.importorskip("xmlschema")
    folder = real_file(f"data/bcf/schemas/{archive.stem}")
    with zipfile.ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if not name.endswith(".png")]
        assert len(names) == (5 if archive.stem == "2.1" else 6)
        for name in names:
            schema = xmlschema.XMLSchema(folder / f"{SCHEMAS[name.rpartition('/')[2]]}.xsd")
            schema.validate(opened.read(name).decode())


def test_it_is_read_back(archive):
    rows = read_bcf(archive).rows
    full, plain = rows["topics"] if rows["topics"][0]["priority"] else rows["topics"][::-1]
    named = ("topic", "title", "topic_type", "status", "priority")
    assert {name: full[name] for name in named} == {
        "topic": guid("clash 1"), "title": "Rohr <in> Träger & more", "topic_type": "Clash",
        "status": "Open", "priority": "High",
    }  # fmt: skip
    assert (full["labels"], full["assigned_to"]) == (["heating"], "d@e.f")
    assert (full["due"], full["created"]) == (datetime(2026, 1, 2), datetime(2000, 1, 1))
    assert (full["description"], full["models"]) == ("two\nlines", ["a.ifc", "b.ifc"])
    assert full["related"] == [plain["topic"]]
    assert (full["position"], plain["position"]) == (7, None)
    said = [(each["comment"], each["author"], each["created"]) for each in rows["comments"]]
    assert said == [
        ("Move it", "g@h.i", datetime(2026, 1, 3, 4, 5, 6)),
        ("-", "spatialq", datetime(2000, 1, 1)),
    ]
    view = next(each for each in rows["viewpoints"] if each["topic"] == full["topic"])
    assert {each["viewpoint"] for each in rows["comments"]} == {view["viewpoint"]}
    assert (view["viewpoint_file"], view["snapshot_file"]) == ("viewpoint.bcfv", "snapshot.png")
    assert (view["camera"], view["eye"], view["fov"]) == ("perspective", [1, 2, 3], 60)
    assert view["view_direction"] == pytest.approx([0.6, 0.8, 0])
    assert view["up"] == pytest.approx([0, 0, 1])
    assert (view["default_visibility"], view["clipping_planes"]) == (False, 1)
    own = [each for each in rows["components"] if each["topic"] == full["topic"]]
    assert [(each["role"], each["global_id"], each.get("color")) for each in own] == [
        ("selection", PIPE, None), ("selection", BEAM, None),
        ("visibility", PIPE, None), ("visibility", BEAM, None), ("visibility", SLAB, None),
        ("coloring", PIPE, "FF0000"), ("coloring", SLAB, "40C0C0C0"),
    ]  # fmt: skip
    assert {each.get("authoring_tool_id") for each in rows["components"]} == {None, "odd id"}


def test_another_program_reads_it(archive):
    bcfxml = pytest.importorskip("bcf.bcfxml")
    loaded = bcfxml.load(archive)
    topic = loaded.topics[guid("clash 1")]
    assert topic.topic.title == "Rohr <in> Träger & more"
    assert [each.comment for each in topic.comments] == ["Move it", "-"]
    (view,) = topic.viewpoints.values()
    assert view.snapshot == PNG
    assert view.get_selected_guids() == [PIPE, BEAM]


def test_the_bytes_are_the_same_each_time(archive):
    before = hashlib.sha256(archive.read_bytes()).digest()
    write_archive(archive, [FULL, PLAIN], version=archive.stem)
    assert hashlib.sha256(archive.read_bytes()).digest() == before
    with zipfile.ZipFile(archive) as opened:
        assert {each.date_time for each in opened.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_nothing_is_left_of_an_archive_that_fails(tmp_path):
    def topics():
        yield FULL
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_archive(tmp_path / "a.bcf", topics())
    assert list(tmp_path.iterdir()) == []
