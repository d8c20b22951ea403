import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile

import pytest

from spatialq.database.readers.ifc_models import read_model
from spatialq.errors import FileError
from spatialq.io.ifc import cache as ifc_cache
from spatialq.io.ifc import process as ifc_process

from .ifc_models import Builder, mapped_boxes

pytestmark = pytest.mark.slow
HANG = 600
"""Seconds for which a process hangs that is to be ended."""
LIMIT = 5
"""Seconds for a product; a box takes far less, also on a machine that does much else."""


@pytest.fixture
def walls(tmp_path):
    """A file of ten walls, named Wall 0 to Wall 9."""
    builder = Builder()
    builder.boxes(10)
    return builder.write(tmp_path / "walls.ifc")


@pytest.fixture
def no_leftovers(tmp_path, monkeypatch):
    """A folder for temporary files that must be empty in the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


def geometry_errors(model):
    rows = model.tables["elements"].to_pylist()
    names = {row["global_id"]: row["name"] for row in rows}
    return [
        row["message"]
        for row in model.tables["load_errors"].to_pylist()
        if row["stage"] == "geometry" and row["global_id"] not in names
    ]


def bad_files(walls):
    """Broken variants of a good file, and what the message says of each."""
    text = walls.read_bytes()
    packed = walls.with_name("packed.zip")

    def zipped(**members):
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name.replace("_", "."), content)
        return packed.read_bytes()

    whole = zipped(a_ifc=text)
    # the data follow the header of 30 bytes and the name; 0xFF begins a block of no known kind
    damaged = whole[:35] + b"\xff" * 8 + whole[43:]
    return {
        "empty": (b"", "the file is empty"),
        "text": (b"hello\n", "does not begin with ISO-10303-21"),
        "binary": (os.urandom(5000), "does not begin with ISO-10303-21"),
        "xml": (b'<?xml version="1.0"?><ifcXML/>', "IFCXML is not supported"),
        "cut": (text[: len(text) // 2], "cut off: the end mark END-ISO-10303-21; is missing"),
        "schema": (text.replace(b"'IFC4'", b"'IFC2X_FINAL'"), "Unsupported schema: IFC2X_FINAL"),
        "syntax": (
            text.replace(b"IFCWALL(", b"IFCWALL(((("),
            "only [0-9]+ of [0-9]+ entities could be parsed",
        ),
        "zip_of_xml": (zipped(a_ifcxml=b"<ifcXML/>"), "'a.ifcxml': IFCXML is not supported"),
        "zip_of_nothing": (zipped(a_txt=b"text"), "must hold exactly one .ifc file, holds 0"),
        "zip_of_two": (zipped(a_ifc=text, b_ifc=text), "exactly one .ifc file, holds 2"),
        "zip_bomb": (zipped(a_ifc=b" " * (80 << 20)), "refused as a zip bomb"),
        "zip_damaged": (damaged, "the zip cannot be unpacked: Error -3 while"),
        "zip_cut": (whole[:-30], "the zip cannot be unpacked"),
    }


def test_a_bad_file_gives_one_sentence_with_its_name(walls, tmp_path, no_leftovers, capfd):
    for name, (content, reason) in bad_files(walls).items():
        path = tmp_path / f"{name}.ifc"
        path.write_bytes(content)
        with pytest.raises(FileError, match=reason) as caught:
            read_model(path)
        assert str(caught.value).startswith(f"read_ifc: '{path}': ")
    assert capfd.readouterr() == ("", "")


def test_a_missing_file_and_a_pattern_without_a_file_are_errors(tmp_path, ifc_con):
    with pytest.raises(FileError, match="there is no such file"):
        read_model(tmp_path / "none.ifc")
    for path, reason in (("none.ifc", "there is no such file"), ("none*.ifc", "no file matches")):
        with pytest.raises(Exception, match=f"read_ifc: .*{reason}"):
            ifc_con.sql(f"FROM read_ifc('{tmp_path / path}')").fetchall()
    with pytest.raises(Exception, match="path must be a file or a glob pattern, got NULL"):
        ifc_con.sql("FROM read_ifc(NULL)").fetchall()


@pytest.mark.parametrize(
    ("option", "value"),
    [("product_seconds", 0), ("product_seconds", float("inf")), ("workers", 0)],
)
def test_options_out_of_range_are_refused(walls, option, value):
    with pytest.raises(ValueError, match=f"read_ifc: {option} must be"):
        read_model(walls, **{option: value})


def test_lost_entities_are_counted(walls, tmp_path):
    text = walls.read_text()
    twice = re.search(r"^#\d+=IFCCARTESIANPOINT.*$", text, re.MULTILINE).group()
    path = tmp_path / "twice.ifc"
    path.write_text(text.replace(twice, f"{twice}\n{twice}"))
    model = read_model(path)
    assert re.search(r"only [\d,]+ of [\d,]+ entities could be parsed", model.warnings[0])
    assert model.tables["elements"].num_rows == 10
    assert model.tables["load_errors"]["stage"].to_pylist()[0] == "file"


def test_a_damaged_entity_costs_itself_and_a_warning(walls, tmp_path):
    path = tmp_path / "garbled.ifc"
    path.write_text(walls.read_text().replace("IFCWALL(", ";;(';\n#1=IFCWALL(", 1))
    model = read_model(path)
    assert model.tables["elements"].num_rows == 9
    assert re.match(r"only \d+ of \d+ entities could be parsed", model.warnings[0])


def test_bytes_that_are_no_unicode_do_not_break(walls, tmp_path):
    path = tmp_path / "latin.ifc"
    path.write_bytes(walls.read_bytes().replace(b"'Wall 3'", b"'W\xe4nd \\X2\\D800\\X0\\'"))
    model = read_model(path)
    assert "the file has characters outside of ASCII" in model.warnings[0]
    names = model.tables["elements"]["name"].to_pylist()
    assert len(names) == 10
    assert sum(name.startswith("Wall ") for name in names) == 9


ODD_SHAPE = """
shape = worker.Worker.shape
def odd(self, step_id):
    if self.model.by_id(step_id).Name in {names}:
        {action}
    shape(self, step_id)
worker.Worker.shape = odd
"""


@pytest.mark.parametrize("signal_name", ["SIGSEGV", "SIGKILL", "SIGABRT"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_crash_costs_one_product(walls, worker_that, signal_name, workers, no_leftovers):
    action = f"os.kill(os.getpid(), signal.{signal_name})"
    worker_that(ODD_SHAPE.format(names=["Wall 0", "Wall 5", "Wall 9"], action=action))
    model = read_model(walls, geometry="exact", workers=workers)
    left = [f"Wall {i}" for i in (1, 2, 3, 4, 6, 7, 8)]
    assert model.tables["elements"]["name"].to_pylist() == left
    assert geometry_errors(model) == [f"IfcOpenShell crashed ({signal_name}) on this product"] * 3


def test_a_product_that_hangs_costs_its_time_limit(walls, worker_that):
    worker_that(ODD_SHAPE.format(names=["Wall 2"], action=f"time.sleep({HANG})"))
    began = time.monotonic()
    model = read_model(walls, geometry="exact", product_seconds=LIMIT)
    assert time.monotonic() - began < HANG / 2
    assert model.tables["elements"].num_rows == 9
    assert geometry_errors(model) == [f"IfcOpenShell took longer than {LIMIT} s on this product"]


def test_a_file_that_crashes_always_is_given_up(walls, worker_that, monkeypatch):
    monkeypatch.setattr(ifc_process, "MAX_LOST", 3)
    names = [f"Wall {i}" for i in range(10)]
    worker_that(ODD_SHAPE.format(names=names, action="os._exit(3)"))
    model = read_model(walls, geometry="exact")
    assert model.tables["elements"].num_rows == 0
    assert (
        geometry_errors(model)
        == ["IfcOpenShell ended (exit code 3) on this product"] * 3
        + ["not tried: IfcOpenShell was lost 3 times in this file"] * 7
    )


def test_an_error_in_the_worker_costs_one_product(walls, worker_that):
    worker_that(ODD_SHAPE.format(names=["Wall 4"], action="raise MemoryError('too much')"))
    model = read_model(walls, geometry="exact")
    assert model.tables["elements"].num_rows == 9
    (message,) = geometry_errors(model)
    assert "too much" in message


@pytest.mark.parametrize("place", ["__init__", "describe"])
def test_a_crash_while_parsing_is_a_file_error(walls, worker_that, place, no_leftovers):
    worker_that(f"worker.Worker.{place} = lambda *_, **__: os.kill(os.getpid(), signal.SIGSEGV)\n")
    with pytest.raises(FileError, match=r"IfcOpenShell crashed \(SIGSEGV\) while"):
        read_model(walls)


def test_a_parse_that_hangs_is_a_file_error(walls, worker_that, monkeypatch):
    monkeypatch.setattr(ifc_process, "OPENING", 1)
    worker_that(f"worker.Worker.__init__ = lambda *_: time.sleep({HANG})\n")
    with pytest.raises(FileError, match="took longer than 1 s while it parsed"):
        read_model(walls, product_seconds=1)


def test_what_the_worker_prints_is_not_seen(walls, worker_that, capfd):
    noise = "os.write(1, b'noise' * 10000); os.write(2, b'noise'); print('more', flush=True)"
    worker_that(ODD_SHAPE.format(names=["Wall 1"], action=noise))
    assert read_model(walls, geometry="exact").tables["elements"].num_rows == 10
    assert capfd.readouterr() == ("", "")


def test_ctrl_c_of_the_worker_is_one_of_the_caller(walls, worker_that, no_leftovers):
    worker_that(ODD_SHAPE.format(names=["Wall 1"], action="os.kill(os.getpid(), signal.SIGINT)"))
    with pytest.raises(KeyboardInterrupt):
        read_model(walls, geometry="exact")


def test_ctrl_c_of_the_caller_ends_the_workers(walls, worker_that, monkeypatch, tmp_path):
    pids = tmp_path / "pids"
    worker_that(
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        + ODD_SHAPE.format(names=["Wall 1"], action=f"time.sleep({HANG})")
    )

    def interrupted(session):
        while not pids.exists() or not pids.read_text().endswith("\n"):
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(ifc_process.Session, "_supervise", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_model(walls, geometry="exact")
    for pid in pids.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


ODD_FAST_SHAPES = """
find = ifclite_geom.geometry_data_buffers
def odd(text):
    {action}
ifclite_geom.geometry_data_buffers = odd
"""


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "crashed (SIGSEGV)"),
        ("os.abort()", "crashed (SIGABRT)"),
        ("raise MemoryError", "ended (exit code 1)"),
        ("return bytearray(1 << 40)", "ended (exit code 1)"),
        ("os._exit(0)", "ended (exit code 0)"),
        (f"time.sleep({HANG})", f"took longer than {LIMIT}.01 s"),
    ],
)
def test_without_the_fast_process_ifcopenshell_makes_all_meshes(
    walls, fast_process_that, action, reason, no_leftovers
):
    fast_process_that(ODD_FAST_SHAPES.format(action=action))
    model = read_model(walls, product_seconds=LIMIT)
    assert model.tables["elements"]["mesh_source"].to_pylist() == ["IfcOpenShell"] * 10
    assert model.warnings == (f"ifclite-geom {reason}: IfcOpenShell makes all meshes",)
    assert not model.is_repeatable


BROKEN_MESHES = {
    "a mesh is missing": "elements.popitem()",
    "a mesh is open": "last['faces'] = last['faces'][:-12]",
    "a mesh is empty": "last['faces'] = last['vertices'] = b''",
    "a coordinate is no number": "last['vertices'] = b'\\xff' * len(last['vertices'])",
    "a mesh is far away": "last['vertices'] = struct.pack('<3d', 1e6, 0, 0) * 8",
    "a product is unknown": "elements[123456789] = elements.popitem()[1]",
}


@pytest.mark.parametrize("what", BROKEN_MESHES)
def test_a_mesh_that_is_not_whole_is_made_by_ifcopenshell(walls, fast_process_that, what):
    fast_process_that(
        "import struct\nfind = ifclite_geom.geometry_data_buffers\ndef odd(text):\n"
        "    found = find(text)\n    elements = found['elements']\n"
        "    last = elements[max(elements)]\n"
        f"    {BROKEN_MESHES[what]}\n    return found\n"
        "ifclite_geom.geometry_data_buffers = odd\n"
    )
    model = read_model(walls)
    sources = model.tables["elements"]["mesh_source"].to_pylist()
    assert sorted(sources) == ["IfcOpenShell"] + 9 * ["ifclite-geom"]
    assert model.tables["elements"]["volume"].to_pylist() == pytest.approx([0.125] * 10)
    assert model.tables["load_errors"].num_rows == 0


def test_what_the_fast_process_prints_is_not_seen(walls, fast_process_that, capfd):
    noise = "os.write(1, b'noise' * 10000); os.write(2, b'noise'); print('more', flush=True)"
    fast_process_that(ODD_FAST_SHAPES.format(action=f"{noise}; return find(text)"))
    model = read_model(walls)
    assert set(model.tables["elements"]["mesh_source"].to_pylist()) == {"ifclite-geom"}
    assert capfd.readouterr() == ("", "")


def test_an_error_of_the_fast_process_kills_no_worker(walls, fast_process_that, worker_that):
    """A file that cannot be opened ends both processes at once."""
    fast_process_that(ODD_FAST_SHAPES.format(action=f"time.sleep({HANG})"))
    worker_that("worker.Worker.__init__ = lambda *_: (_ for _ in ()).throw(ValueError('no'))\n")
    began = time.monotonic()
    with pytest.raises(FileError, match="no"):
        read_model(walls)
    assert time.monotonic() - began < HANG / 2


ODD_COPIES = """
copies = worker.Worker.shape_copies
def odd(self, step_ids):
    {action}
worker.Worker.shape_copies = odd
"""


@pytest.mark.parametrize(
    "action",
    [
        "os.kill(os.getpid(), signal.SIGSEGV)",
        f"time.sleep({HANG})",
        "raise MemoryError",
        "self.model = None; copies(self, step_ids)",
        "worker.send(self.out, b'E')",
        "copies(self, step_ids[:2])",
    ],
)
def test_copies_that_fail_together_are_shaped_singly(tmp_path, worker_that, action):
    builder = Builder()
    mapped_boxes(builder, 5)
    path = builder.write(tmp_path / "copies.ifc")
    worker_that(ODD_COPIES.format(action=action))
    model = read_model(path, geometry="exact", product_seconds=LIMIT)
    assert model.tables["elements"]["volume"].to_pylist() == pytest.approx([0.125] * 5)
    assert geometry_errors(model) == []


def test_a_script_without_a_main_guard_reads_a_model(walls, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from spatialq.database.readers.ifc_models import read_model\n"
        f"print(read_model({str(walls)!r}).tables['elements'].num_rows)\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == ("10\n", "")


def test_a_bad_file_ends_the_reading_of_the_others(walls, worker_that, tmp_path):
    worker_that(ODD_SHAPE.format(names=["Wall 1"], action=f"time.sleep({HANG})"))
    bad = tmp_path / "a.ifc"
    bad.write_bytes(b"")
    began = time.monotonic()
    with pytest.raises(FileError, match="the file is empty"):
        ifc_cache.read_models([bad, walls], geometry="exact")
    assert time.monotonic() - began < HANG / 2


def test_one_bad_file_of_several_names_itself(walls, tmp_path, ifc_con):
    (tmp_path / "x.ifc").write_bytes(b"")
    with pytest.raises(Exception, match=r"x\.ifc': the file is empty"):
        ifc_con.sql(f"FROM read_ifc('{tmp_path}/*.ifc')").fetchall()
