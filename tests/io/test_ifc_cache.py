"""The cache of models on disk."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from spatialq.errors import FileError
from spatialq.io.ifc import cache, disk_cache
from spatialq.io.ifc.cache import CACHE, read_models

from .ifc_models import Builder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where models are kept; the cache in memory is empty."""
    monkeypatch.setenv("SPATIALQ_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.delenv(disk_cache.OFF)
    CACHE.clear()
    return tmp_path / "kept" / "ifc"


@pytest.fixture
def walls(tmp_path):
    builder = Builder()
    builder.boxes(3)
    return builder.write(tmp_path / "walls.ifc")


@pytest.fixture
def reads(monkeypatch):
    """The files that were read, rather than taken from the cache."""
    asked = []
    read = cache.read_model

    def counted(path, **options):
        asked.append((path.name, options["geometry"]))
        return read(path, **options)

    monkeypatch.setattr("spatialq.io.ifc.cache.read_model", counted)
    return asked


def again(path, geometry="auto"):
    """Read a file as another process would."""
    CACHE.clear()
    (model,) = read_models([path], geometry=geometry)
    return model


def test_another_process_finds_the_model(walls, folder, reads, tmp_path):
    first = again(walls)
    second = again(walls)
    assert reads == [("walls.ifc", "auto")]
    assert second == first
    for name, table in first.tables.items():
        assert second.tables[name].schema == table.schema
        assert second.tables[name].equals(table), name
    copy = tmp_path / "copy.ifc"
    copy.write_bytes(walls.read_bytes())
    assert set(again(copy).tables["elements"]["file_name"].to_pylist()) == {str(copy)}
    assert again(copy).path == copy
    assert len(reads) == 1


def test_a_model_with_meshes_answers_what_needs_none(walls, folder, reads):
    again(walls)
    model = again(walls, "none")
    assert "elements" not in model.tables
    assert model.geometry == "none"
    again(walls, "exact")
    assert [geometry for _, geometry in reads] == ["auto", "exact"]
    assert len(list(folder.iterdir())) == 2


def test_a_file_that_changes_is_read_again(walls, folder, reads):
    again(walls)
    other = Builder()
    other.boxes(2)
    other.write(walls)
    assert again(walls).tables["elements"].num_rows == 2
    assert len(reads) == 2


def test_a_file_that_changes_while_it_is_read_is_no_model(walls, folder, monkeypatch):
    other = Builder()
    other.boxes(2)
    other = other.write(walls.with_name("other.ifc")).read_bytes()
    read = cache.read_model

    def read_while_it_changes(path, **options):
        model = read(path, **options)
        walls.write_bytes(other)
        return model

    monkeypatch.setattr(cache, "read_model", read_while_it_changes)
    with pytest.raises(FileError, match="changed while it was read"):
        again(walls)
    assert list(folder.iterdir()) == []
    monkeypatch.setattr(cache, "read_model", read)
    assert again(walls).tables["elements"].num_rows == 2


def test_damaged_files_are_made_anew(walls, folder, reads):
    first = again(walls)
    (kept,) = folder.iterdir()
    good = kept.read_bytes()
    damaged = [b"", good[:10], good[:-1], good[:-100] + bytes(100), b"\0" + good[1:], good + b"x"]
    for number, content in enumerate(damaged):
        kept.write_bytes(content)
        model = again(walls)
        assert len(reads) == number + 2
        assert model.tables["elements"].num_rows == first.tables["elements"].num_rows
        assert again(walls) == model
    assert list(folder.iterdir()) == [kept]


def test_the_files_used_longest_ago_go(folder, reads, tmp_path, monkeypatch):
    paths = []
    for count in range(1, 5):
        builder = Builder()
        builder.boxes(count)
        paths.append(builder.write(tmp_path / f"{count}.ifc"))
        again(paths[-1])
        for age, file in enumerate(sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)):
            os.utime(file, (1000 + age, 1000 + age))
    sizes = {file: file.stat().st_size for file in folder.iterdir()}
    again(paths[0])  # the first one was used just now
    monkeypatch.setenv(disk_cache.BYTES, str(sum(sizes.values())))
    builder = Builder()
    builder.boxes(5)
    again(builder.write(tmp_path / "5.ifc"))
    before = len(reads)
    again(paths[0])
    assert len(reads) == before
    again(paths[1])
    assert len(reads) == before + 1
    assert sum(file.stat().st_size for file in folder.iterdir()) <= sum(sizes.values())


@pytest.mark.parametrize("value", ["off", "OFF", "0"])
def test_it_can_be_switched_off(walls, folder, reads, monkeypatch, value):
    monkeypatch.setenv(disk_cache.OFF, value)
    again(walls)
    again(walls)
    assert len(reads) == 2
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_does_no_harm(walls, tmp_path, folder, reads, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPATIALQ_CACHE_DIR", str(tmp_path / "file"))
    assert again(walls).tables["elements"].num_rows == 3


@pytest.mark.slow
def test_what_depends_on_the_load_is_not_kept(walls, folder, reads, worker_that):
    worker_that(
        "shape = worker.Worker.shape\n"
        "def odd(self, step_id):\n"
        "    os._exit(3) if self.model.by_id(step_id).Name == 'Wall 1' else shape(self, step_id)\n"
        "worker.Worker.shape = odd\n"
    )
    model = again(walls, "exact")
    assert not model.is_repeatable
    assert model.tables["elements"].num_rows == 2
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_several_processes_share_it(walls, folder):
    code = (
        "import sys; from pathlib import Path; from spatialq.io.ifc.cache import read_models\n"
        "(model,) = read_models([Path(sys.argv[1])], geometry='auto')\n"
        "print(model.tables['elements'].num_rows)"
    )

    def run(_):
        return subprocess.run(
            [sys.executable, "-c", code, walls], capture_output=True, text=True, check=True
        ).stdout

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == ["3\n"] * 4
    assert [file.suffix for file in folder.iterdir()] == [disk_cache.SUFFIX]
