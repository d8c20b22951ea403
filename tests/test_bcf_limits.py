"""Archives of no clash and of one, without a place, with unusual names; and a process killed."""

import os
import signal
import subprocess
import sys
import time
import zipfile

import pytest

import spatialq
from spatialq.export.bcf import Topic, View, write_archive
from spatialq.export.camera import Camera

from .conftest import made_once, real_file
from .io.ifc_models import Builder

VERSIONS = ("2.1", "3.0")
NAMES = {
    "umlauts": "Träger ß, Größe 梁 🏗",
    "long": "x" * 3000,
    "markup": "<b>&amp;</b> ]]> \"quoted\" 'too'",
    "control": "be\x01fore\x0b\x1f\ufffe after",
    "blank": " \t ",
    "control only": "\x00\x01",
}


def write_model(folder):
    model = Builder()
    model.boxes(3)
    model.write(folder / "a.ifc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_once(tmp_path_factory, "bcf_limits", write_model)


@pytest.fixture
def con(folder):
    with spatialq.connect() as con:
        con.execute(
            f"CREATE TABLE clashes AS SELECT a.global_id AS a, b.global_id AS b, a.file_name "
            f"FROM read_ifc('{folder}/a.ifc') AS a JOIN read_ifc('{folder}/a.ifc') AS b "
            "ON a.global_id < b.global_id"
        )
        yield con


def validate(path, version):
    xmlschema = pytest.importorskip("xmlschema")
    folder = real_file(f"data/bcf/schemas/{version}")
    named = {"bcf.version": "version", "markup.bcf": "markup", "viewpoint.bcfv": "visinfo",
             "extensions.xml": "extensions"}  # fmt: skip
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            if not name.endswith(".png"):
                part = named[name.rpartition("/")[2]]
                xmlschema.XMLSchema(folder / f"{part}.xsd").validate(archive.read(name).decode())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("number", [0, 1, 3])
def test_archives_of_few_clashes_are_whole_and_valid(con, tmp_path, version, number):
    path = tmp_path / "a.bcf"
    rows = con.sql(f"FROM clashes ORDER BY a, b LIMIT {number}")
    assert spatialq.write(rows, path, bcf_version=version) == number
    assert con.sql(f"SELECT count(*) FROM read_bcf('{path}')").fetchall() == [(number,)]
    validate(path, version)


def test_a_clash_without_a_place_has_the_middle_of_both(con, tmp_path):
    con.execute("CREATE TABLE placed AS FROM clashes ORDER BY a, b LIMIT 1")
    pictures = []
    for more in ("", ", NULL::DOUBLE AS x, NULL::DOUBLE AS y, NULL::DOUBLE AS z", ", 1.0 AS x"):
        path = tmp_path / "a.bcf"
        spatialq.write(con.sql(f"SELECT *{more} FROM placed"), path)
        pictures.append(path.read_bytes())
    assert len(set(pictures)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_unusual_names_are_kept_as_far_as_xml_can(con, tmp_path, version, name):
    text = NAMES[name]
    kept = "".join(c for c in text if c not in "\x00\x01\x0b\x1f\ufffe").strip()
    path = tmp_path / "a.bcf"
    con.execute("CREATE OR REPLACE TABLE named AS FROM clashes ORDER BY a, b LIMIT 1")
    given = con.sql(
        "SELECT *, $t AS title, $t AS status, $t AS assigned_to, $t AS description, "
        "[$t] AS labels, $t AS topic, [$t] AS comments FROM named",
        params={"t": text},
    ).to_arrow_table()
    con.register("given", given)
    spatialq.write(con.sql("FROM given"), path, bcf_version=version)
    validate(path, version)
    columns = "title, status, assigned_to, description, labels"
    ((title, status, assigned, described, labels),) = con.sql(
        f"SELECT {columns} FROM read_bcf('{path}')"
    ).fetchall()
    if kept:
        assert (title, status, assigned, described) == (kept,) * 4
        assert labels == [kept]
    else:
        assert title
        assert status


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_no_half_archive(tmp_path):
    """Neither where there was none, nor in the place of one."""
    old = tmp_path / "old.bcf"
    view = View(Camera(eye=(1, 2, 3), target=(4, 6, 3)), ("x",), {}, ("x",), b"png")
    write_archive(old, [Topic("a", "a", view)])
    before = old.read_bytes()
    code = """
import sys, time
from pathlib import Path
from spatialq.export.bcf import Topic, View, write_archive
from spatialq.export.camera import Camera
view = View(Camera(eye=(1, 2, 3), target=(4, 6, 3)), ("x",), {}, ("x",), bytes(1 << 20))

def topics():
    for k in range(10**6):
        if k == 20:
            print("under way", flush=True)
        yield Topic(str(k), "a", view)

write_archive(Path(sys.argv[1]), topics())
"""
    for name in ("old.bcf", "new.bcf"):
        command = [sys.executable, "-c", code, str(tmp_path / name)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout.readline() == b"under way\n"
                time.sleep(0.05)
            finally:
                os.kill(process.pid, signal.SIGKILL)
    assert old.read_bytes() == before
    assert not (tmp_path / "new.bcf").exists()
    # the next one tidies up what was left
    write_archive(tmp_path / "new.bcf", [Topic("a", "a", view)])
    assert {each.name for each in tmp_path.iterdir() if not each.name.startswith(".")} == {
        "old.bcf", "new.bcf",
    }  # fmt: skip
