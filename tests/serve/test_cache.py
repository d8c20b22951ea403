"""Of the cache of `spatialq view`, what nobody opened for long goes, and nothing that is open."""

import os
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("fcntl", reason="without locks, nothing is removed")

from spatialq.serve import cache
from spatialq.serve.cache import DAY, cache_folder, is_there

AGES = {"cloud-new": 0.5, "model-week": 7, "files-month": 29, "files-old": 31, "cloud-year": 365}
"""Days since a folder was opened."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SPATIALQ_CACHE_DIR", str(tmp_path))
    now = time.time()
    for name, days in AGES.items():
        made = tmp_path / "view" / name
        made.mkdir(parents=True)
        (made / "tileset.json").write_text("{}")
        os.utime(made, (now - days * DAY,) * 2)
    return tmp_path / "view"


def names(folder):
    return {each.name for each in folder.iterdir() if each.is_dir()}


def on_a_disk(monkeypatch, free):
    """Let a part of the disk be free, of which each folder takes a hundredth."""

    def usage(folder):
        gone = len(AGES) - len(names(folder))
        return SimpleNamespace(total=1000, free=free + 10 * gone)

    monkeypatch.setattr(cache.shutil, "disk_usage", usage)


def test_what_nobody_opened_for_a_month_goes(folder, monkeypatch):
    on_a_disk(monkeypatch, 500)
    with cache_folder() as found:
        assert found == folder
        assert names(folder) == {"cloud-new", "model-week", "files-month"}


def test_on_a_full_disk_what_was_unused_longest_goes_first(folder, monkeypatch):
    on_a_disk(monkeypatch, 75)
    with cache_folder():
        assert names(folder) == {"cloud-new", "model-week"}


def test_what_was_opened_today_stays_on_a_full_disk(folder, monkeypatch):
    on_a_disk(monkeypatch, 0)
    with cache_folder():
        assert names(folder) == {"cloud-new"}


def test_nothing_goes_while_others_have_it_open(folder, monkeypatch):
    on_a_disk(monkeypatch, 500)
    with cache_folder():
        was = names(folder)
        old = folder / "cloud-of_another"
        old.mkdir()
        os.utime(old, (0, 0))
        with cache_folder():
            assert names(folder) == was | {old.name}
    with cache_folder():
        assert names(folder) == was


def test_what_is_opened_counts_as_used(folder, monkeypatch):
    on_a_disk(monkeypatch, 500)
    assert is_there(folder / "cloud-year")
    assert not is_there(folder / "none")
    with cache_folder():
        assert "cloud-year" in names(folder)
