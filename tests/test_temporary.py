"""Temporary folders: what a killed process left is removed, and nothing else."""

import os
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

import spatialq
from spatialq.demo.house import write_house
from spatialq.runtime import temporary
from spatialq.runtime.temporary import held_folder, temporary_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs locks of files")

HOLD = """
import sys, time
from pathlib import Path
from spatialq.runtime.temporary import held_folder, temporary_folder
with temporary_folder("spatialq_ifc_", Path(sys.argv[1])) as folder:
    (folder / "model.ifc").write_text("a model")
    print(folder, flush=True)
    time.sleep(600)
"""


def holder(place):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place)], stdout=subprocess.PIPE, text=True
    )
    return process, Path(process.stdout.readline().strip())


def end(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_is_not(tmp_path):
    dead, left = holder(tmp_path)
    end(dead)
    assert (left / "model.ifc").exists()
    living, used = holder(tmp_path)
    try:
        assert not left.exists()
        with temporary_folder("spatialq_ifc_", tmp_path) as own:
            assert sorted(tmp_path.iterdir()) == sorted([used, own])
            assert (used / "model.ifc").exists()
        assert not own.exists()
    finally:
        end(living)


def test_reading_a_zip_removes_what_a_killed_reader_left(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("SPATIALQ_IFC_CACHE", "off")
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    write_house(tmp_path / "house.ifc")
    with zipfile.ZipFile(tmp_path / "house.ifczip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tmp_path / "house.ifc", "house.ifc")
    code = (
        "import os, signal; from pathlib import Path; from spatialq.io.ifc import guard\n"
        f"with guard.checked(Path({str(tmp_path / 'house.ifczip')!r})):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    (left,) = (tmp_path / "temporary").glob("spatialq_ifc_*")
    assert (left / "model.ifc").stat().st_size == (tmp_path / "house.ifc").stat().st_size
    with spatialq.connect() as con:
        assert con.sql(f"FROM read_ifc('{tmp_path / 'house.ifczip'}')").fetchall()
    assert not left.exists()


@pytest.mark.parametrize("kind", ["of another system", "without a lock", "a link", "of a user"])
def test_what_may_belong_to_others_stays(tmp_path, monkeypatch, kind):
    dead, left = holder(tmp_path / ".")
    end(dead)
    if kind == "of another system":
        (left / temporary.LOCK).write_text("another")
    elif kind == "without a lock":
        (left / temporary.LOCK).unlink()
    elif kind == "a link":
        left = left.rename(tmp_path / "elsewhere")
        (tmp_path / "spatialq_ifc_link").symlink_to(left)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
    with temporary_folder("spatialq_ifc_", tmp_path):
        assert (left / "model.ifc").read_text() == "a model"


def test_a_folder_is_never_seen_without_the_lock_of_its_owner(tmp_path):
    with temporary_folder("spatialq_ifc_", tmp_path) as folder:
        for _ in range(3):
            with temporary_folder("spatialq_ifc_", tmp_path):
                assert folder.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_a_fixed_name_is_held_by_one(tmp_path, monkeypatch):
    folder = tmp_path / "held"
    with held_folder(folder) as is_left:
        assert not is_left
        (folder / "a").write_text("b")
        with pytest.raises(BlockingIOError), held_folder(folder):
            pass
        temporary.remove_abandoned("held", tmp_path)
        assert (folder / "a").exists()
    with held_folder(folder) as is_left:
        assert is_left
    monkeypatch.setattr(temporary, "_system", lambda: "another one")
    with held_folder(folder) as is_left:
        assert not is_left
    assert (folder / "a").read_text() == "b"
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="File exists"), held_folder(tmp_path / "file"):
        pass


KILLED = """
import os, signal, sys
from pathlib import Path
from spatialq.runtime.temporary import temporary_folder

calls = 0

def killed(event, arguments):
    global calls
    if event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "open"):
        if sys.argv[1] in str(arguments[0]):
            calls += 1
            if calls == int(sys.argv[2]):
                os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(killed)
with temporary_folder("spatialq_ifc_", Path(sys.argv[1])) as folder:
    (folder / "parts").mkdir()
    (folder / "parts" / "a").write_text("a part")
    (folder / "model.ifc").write_text("a model")
"""


def test_of_a_process_killed_at_any_step_the_next_removes_all_but_a_lock_without_a_name(tmp_path):
    step, codes = 1, []
    while not codes or codes[-1] == -signal.SIGKILL:
        done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(step)], check=False)
        codes.append(done.returncode)
        with temporary_folder("spatialq_ifc_", tmp_path) as own:
            # a lock's file that has nothing in it yet is not known to be of this system
            assert [path for path in tmp_path.iterdir() if path != own and not is_new(path)] == []
        step += 1
    assert codes[-1] == 0
    assert len(codes) > 8


def is_new(folder):
    there = list(folder.iterdir())
    return [path.name for path in there] == ["owner.new"] and there[0].stat().st_size == 0


def test_a_folder_is_made_beside_processes_that_remove_abandoned_ones(tmp_path):
    ends = threading.Event()

    def remove():
        while not ends.is_set():
            temporary.remove_abandoned("spatialq_ifc_", tmp_path)

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        for k in range(300):
            with temporary_folder("spatialq_ifc_", tmp_path) as own:
                (own / "model.ifc").write_text(str(k))
                assert (own / "model.ifc").read_text() == str(k)
    finally:
        ends.set()
        remover.join()
    assert list(tmp_path.iterdir()) == []
