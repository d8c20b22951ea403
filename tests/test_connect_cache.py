"""The file of macros in the user's cache folder: made once, used, and never relied on."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import spatialq
from spatialq.database.macros import macros

COUNT = "SELECT count(comment) FROM duckdb_functions() WHERE database_name = 'memory'"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPATIALQ_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def works():
    """Whether a new database has all macros, their comments, and nothing else attached."""
    with spatialq.connect() as con:
        assert con.sql(COUNT).fetchall() == [(len(macros("native")),)]
        assert con.sql("SELECT database_name FROM duckdb_databases() WHERE NOT internal").fetchall() == [("memory",)]  # noqa: E501  # fmt: skip
        assert con.sql("FROM spatialq_devices()").fetchall()
    return True


def test_the_file_is_made_once_and_used(cache):
    assert works()
    (file,) = cache.iterdir()
    made = file.stat().st_mtime_ns
    assert works()
    assert file.stat().st_mtime_ns == made


@pytest.mark.parametrize("damage", [b"", b"no database", None])
def test_a_damaged_file_is_not_used(cache, damage):
    assert works()
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 3] if damage is None else damage)
    assert works()


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SPATIALQ_CACHE_DIR", str(tmp_path / "file"))
    assert works()


def test_a_database_that_may_open_no_files(cache):
    with spatialq.connect(config={"enable_external_access": False}) as con:
        assert con.sql(COUNT).fetchall() == [(len(macros("lists")),)]


@pytest.mark.slow
def test_many_at_once_make_one_file(cache):
    code = "import spatialq; assert spatialq.connect().sql('FROM spatialq_devices()').fetchall()"
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: works(), range(8)))
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(list(cache.iterdir())) == 1
