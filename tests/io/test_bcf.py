"""BCF archives: the public ones, counted by bcf-client, and small ones, whole and damaged."""

import json
import zipfile
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

import spatialq
from spatialq.errors import FileError, FileWarning
from spatialq.io import bcf
from spatialq.io.bcf import read_bcf

from ..command_line import rows, spatialq_command
from ..conftest import real_file
from .bcf_files import BEAM, MARKUP, PIPE, SLAB, TOPIC, VERSION, VIEW, VISINFO, parts, write

COUNTS = json.loads(Path(__file__).with_name("bcf_counts.json").read_text())
ROLES = ("selection", "visibility", "coloring")


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        yield con


def table(con, name, path):
    found = con.sql(f"FROM {name}('{path}')")
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize("name", COUNTS)
def test_a_public_archive_has_what_another_reader_counts(con, name):
    path = real_file(f"data/bcf/{name}")
    components = table(con, "read_bcf_components", path)
    found = {
        "topics": len(table(con, "read_bcf", path)),
        "comments": len(table(con, "read_bcf_comments", path)),
        "viewpoints": len(table(con, "read_bcf_viewpoints", path)),
        **{role: sum(row["role"] == role for row in components) for role in ROLES},
    }
    expected = {key: value for key, value in COUNTS[name].items() if key != "by"}
    assert found == expected


def test_a_topic_with_all_that_belongs_to_it(con, tmp_path):
    path = write(tmp_path / "a.bcf")
    (topic,) = table(con, "read_bcf", path)
    assert topic == {
        "topic": TOPIC, "title": "Rohr in Träger", "topic_type": "Clash", "status": "Open",
        "priority": "High", "position": 3, "labels": ["heating", "storey 1"],
        "created": datetime(2026, 1, 2, 1, 4, 5), "author": "a@b.c", "modified": None,
        "modified_by": None, "due": None, "assigned_to": "d@e.f", "stage": None,
        "description": None, "server_id": None, "links": ["http://example.com"],
        "documents": ["plan.pdf"], "related": [VIEW], "models": ["house.ifc"],
        "project_id": None, "project": None, "bcf_version": "2.1", "file_name": str(path),
    }  # fmt: skip
    (comment,) = table(con, "read_bcf_comments", path)
    assert (comment["topic"], comment["comment"], comment["viewpoint"]) == (TOPIC, "Move it", VIEW)
    (view,) = table(con, "read_bcf_viewpoints", path)
    assert (view["camera"], view["eye"], view["view_direction"], view["up"], view["fov"]) == (
        "perspective", [1, 2, 3], [0, 1, 0], [0, 0, 1], 60,
    )  # fmt: skip
    assert (view["default_visibility"], view["spaces_visible"], view["openings_visible"]) == (
        True, False, True,
    )  # fmt: skip
    components = table(con, "read_bcf_components", path)
    assert [
        (row["role"], row["global_id"], row["visible"], row["color"]) for row in components
    ] == [
        ("selection", PIPE, None, None),
        ("selection", BEAM, None, None),
        ("visibility", SLAB, False, None),
        ("coloring", PIPE, None, "FF0000"),
    ]


def test_several_archives_and_the_name_of_one(con, tmp_path):
    for name in ("b.bcf", "a.bcfzip"):
        write(tmp_path / name)
    names = [row["file_name"] for row in table(con, "read_bcf", tmp_path / "*.bcf*")]
    assert names == [str(tmp_path / name) for name in ("a.bcfzip", "b.bcf")]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16", "ISO-8859-1", "windows-1252"])
def test_encodings(tmp_path, encoding):
    text = MARKUP.replace("UTF-8", encoding).encode(encoding)
    path = write(tmp_path / "a.bcf", parts(markup=text))
    assert read_bcf(path).rows["topics"][0]["title"] == "Rohr in Träger"


def test_backslashes_capitals_and_a_byte_order_mark(tmp_path):
    members = {name.replace("/", "\\").upper(): "\ufeff" + text for name, text in parts().items()}
    found = read_bcf(write(tmp_path / "a.bcf", members))
    assert [len(found.rows[name]) for name in bcf.TABLES] == [1, 1, 1, 4]


def test_a_viewpoint_that_is_missing_is_told(con, tmp_path):
    path = write(tmp_path / "a.bcf", parts(view=None))
    with pytest.warns(FileWarning, match="viewpoint.bcfv' is missing"):
        (view,) = table(con, "read_bcf_viewpoints", path)
    assert (view["viewpoint"], view["eye"]) == (VIEW, None)


@pytest.mark.parametrize("number", ["NaN", "INF", "-1e999", "left", ""])
def test_what_is_no_number_is_null(con, tmp_path, number):
    view = VISINFO.replace("<Y>2</Y>", f"<Y>{number}</Y>").replace("60<", f"{number}<")
    (row,) = table(con, "read_bcf_viewpoints", write(tmp_path / "a.bcf", parts(view=view)))
    assert (row["eye"], row["fov"]) == (None, None)
    assert row["view_direction"] == [0.0, 1.0, 0.0]


ENTITIES = '<!DOCTYPE Markup [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
DAMAGED = {
    "no version": (parts(version=None), "has no bcf.version, as a BCF archive must"),
    "version 1.0": (parts(version=VERSION.format("1.0")), "is BCF of version '1.0'; 2.0, 2.1, 3.0"),
    "no topic": (parts(markup="<Markup/>"), "markup.bcf' has no Topic"),
    "cut off": (parts(markup=MARKUP[:200]), "markup.bcf' is no XML that can be read: "),
    "entities": (
        parts(markup=MARKUP.replace("<Markup>", f"{ENTITIES}<Markup>")),
        "it has a document type, which BCF does not use",
    ),
    "no such encoding": (
        parts(view='<?xml version="1.0" encoding="none"?>' + VISINFO),
        "viewpoint.bcfv' is no XML that can be read: ",
    ),
    "no UTF-8": (parts(markup=MARKUP.encode("latin-1")), "is no XML that can be read: "),
    "bomb": (parts(view=b" " * (bcf.MAX_PART + 1)), "in all: refused as a zip bomb"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_archive_is_refused_in_one_sentence(con, tmp_path, name):
    members, reason = DAMAGED[name]
    path = write(tmp_path / "a.bcf", members)
    with pytest.raises(FileError) as caught:
        read_bcf(path)
    message = str(caught.value)
    assert message.startswith(f"read_bcf: '{path}': ")
    assert reason in message
    assert "\n" not in message
    with pytest.raises(duckdb.Error, match="read_bcf: "):
        con.sql(f"FROM read_bcf_components('{path}')").fetchall()


def test_no_damage_is_more_than_one_sentence(tmp_path):
    """Each byte of a whole archive changed: it is read, or refused."""
    path = write(tmp_path / "a.bcf")
    whole = path.read_bytes()
    refused = 0
    for k in range(0, len(whole), 7):
        path.write_bytes(whole[:k] + bytes([whole[k] ^ 0xFF]) + whole[k + 1 :])
        try:
            read_bcf(path)
        except FileError:
            refused += 1
    assert refused > 100
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match="the zip cannot be unpacked"):
        read_bcf(path)


def test_parts_that_are_large_together_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(bcf, "MAX_READ", 10_000)
    members = parts() | {f"{k}/markup.bcf": MARKUP for k in range(10)}
    with pytest.raises(FileError, match="refused as a zip bomb"):
        read_bcf(write(tmp_path / "a.bcf", members))


def test_deep_elements_do_not_end_the_process(tmp_path):
    deep = "<a>" * 300_000 + "</a>" * 300_000
    path = write(tmp_path / "a.bcf", parts(markup=MARKUP.replace("<Title>", f"{deep}<Title>")))
    assert read_bcf(path).rows["topics"][0]["title"] == "Rohr in Träger"


def test_an_encrypted_part_is_refused(tmp_path):
    path = write(tmp_path / "a.bcf")
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo("bcf.version").header_offset
    data[at + 6] |= 1  # in the header of the part, and in the directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match="the zip cannot be unpacked"):
        read_bcf(path)


def test_info_counts(tmp_path):
    (found,) = rows("info", write(tmp_path / "a.bcf"))
    assert (found["kind"], found["format"], found["version"]) == ("bcf", "BCF", "2.1")
    assert (found["topics"], found["comments"], found["viewpoints"]) == (1, 1, 1)
    assert found["topics by status"] == {"Open": 1}
    assert found["components by role"] == {"coloring": 1, "selection": 2, "visibility": 1}


def test_an_archive_is_not_loaded(tmp_path):
    path = write(tmp_path / "a.bcf")
    result = spatialq_command("load", path, "-d", tmp_path / "a.duckdb")
    assert result.returncode == 1
    assert "a.bcf': is no point cloud or grid or building model: its name must" in result.stderr
