"""Output appears whole, through links, or is refused before any work."""

import os
import resource
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

import spatialq
from spatialq.database.table_files import write_table
from spatialq.errors import FileError
from spatialq.export.atomic import (
    new_folder,
    require_outputs,
    require_writable,
    together,
    whole,
)
from spatialq.workflows.ground import write_ground


def test_a_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "a.csv", tmp_path / "link.csv"
    link.symlink_to(Path("folder") / "a.csv")
    for text in ("first", "second"):  # a link to nothing, and to a file
        with whole(link) as partial:
            assert partial.parent.parent == target.parent  # one file system
            partial.write_text(text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder.csv", "is a folder, no file"),
        ("pipe.csv", "is no regular file"),
        ("none/a.csv", "there is no folder '.*none'"),
        ("locked/a.csv", "folder '.*locked' cannot be written to"),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch, name, message):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "locked").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    # an administrator may write anywhere
    monkeypatch.setattr("os.access", lambda path, _: Path(path).name != "locked")
    target = tmp_path / name
    with pytest.raises(FileError, match=f"output: '{target}': {message}"):
        require_writable(target)
    with pytest.raises(FileError, match=message):
        write_ground(tmp_path / "none.las", target)
    with spatialq.connect() as con, pytest.raises(FileError, match=message):
        write_table(con, "SELECT error('the query ran')", target)


def test_a_full_disk(tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    for ending in ("csv", "json", "parquet"):
        target = tmp_path / f"a.{ending}"
        with spatialq.connect() as con:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
            try:
                with pytest.raises(FileError, match=f"output: '{target}': cannot be written") as e:
                    write_table(con, "SELECT random() AS a FROM range(1000000)", target)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert ".part" not in str(e.value)
        assert "{" not in str(e.value)  # DuckDB has some of it in JSON
        assert list(tmp_path.iterdir()) == []


def test_a_file_that_the_query_misses_is_no_matter_of_the_output(tmp_path):
    with spatialq.connect() as con, pytest.raises(duckdb.IOException, match=r"none\.csv"):
        write_table(con, "FROM 'none.csv'", tmp_path / "a.csv")


def test_two_writers_of_one_process_have_names_of_their_own(tmp_path):
    target = tmp_path / "a.csv"
    with whole(target) as one:
        pool = ThreadPoolExecutor(1)  # a thread of its own, as for two queries at once

        def write():
            with whole(target) as other:
                other.write_text("other")
                return other

        assert pool.submit(write).result() != one
        assert target.read_text() == "other"
        one.write_text("one")
    assert target.read_text() == "one"
    assert list(tmp_path.iterdir()) == [target]


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path):
    target = tmp_path / f"{'a' * 251}.csv"
    with whole(target) as partial:
        partial.write_text("text")
    assert target.read_text() == "text"


def test_files_appear_together(tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("old")
    with together():
        for path in (old, new):
            with whole(path) as partial:
                partial.write_text("text")
        assert old.read_text() == "old"
        assert not new.exists()
    assert [each.read_text() for each in (old, new)] == ["text", "text"]
    assert sorted(tmp_path.iterdir()) == [new, old]


def fails(*_):
    raise OSError(28, "No space left on device")


def becomes_a_folder(path):
    path.mkdir()


@pytest.mark.parametrize("failure", [fails, becomes_a_folder])
def test_if_one_fails_none_appears_and_the_old_ones_stay(tmp_path, failure):
    old, new, last = (tmp_path / f"{name}.csv" for name in ("old", "new", "last"))
    old.write_text("old")
    with pytest.raises(FileError, match=r"last\.csv': cannot be written"), together():  # noqa: PT012
        for path in (old, new, last):
            with whole(path) as partial:
                partial.write_text("text")
                if path is last:
                    failure(path)
    assert old.read_text() == "old"
    assert {each.name for each in tmp_path.iterdir()} <= {"old.csv", "last.csv"}
    assert not last.is_file()


def link(kind, name, target):
    name.hardlink_to(target) if kind == "hard" else name.symlink_to(target)


@pytest.mark.parametrize("kind", ["hard", "symbolic", "to nothing"])
def test_one_file_named_twice_is_refused(tmp_path, kind):
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    if kind != "to nothing":
        one.write_text("as it was")
    link(kind, other, one)
    sentence = "outputs must be different files, got '.*one.csv' and '.*other.csv', which are one"
    with pytest.raises(ValueError, match=f"a command: {sentence}"):
        require_outputs("a command", [tmp_path / "none.las"], [one, other], (".csv",))
    with pytest.raises(ValueError, match=sentence), together(), whole(one), whole(other):
        pass  # however they come together
    assert not one.exists() or one.read_text() == "as it was"


@pytest.mark.parametrize("kind", ["hard", "symbolic"])
def test_a_database_is_no_output(tmp_path, kind):
    database, output = tmp_path / "site.duckdb", tmp_path / "out.parquet"
    with spatialq.connect(str(database)) as con:
        con.execute("CREATE TABLE a AS SELECT 42 AS b")
        link(kind, output, database)
        sentence = r"out\.parquet': is a DuckDB database, which must not be overwritten"
        with pytest.raises(FileError, match=sentence):
            write_table(con, "FROM a", output)
    with pytest.raises(FileError, match=sentence):  # open or not
        require_writable(output)
    with duckdb.connect(str(database)) as con:
        assert con.sql("FROM a").fetchall() == [(42,)]


def test_a_new_folder_appears_with_its_files_or_not_at_all(tmp_path):
    new = tmp_path / "new"
    for failure in (None, "folder"):
        with suppress(FileError), together():
            new_folder(new)
            for name in ("a.csv", "b.csv"):
                with whole(new / name) as partial:
                    partial.write_text(name)
            assert not new.exists()
            if failure:
                (partial.parent.parent / "new").write_text("a file")  # so that it cannot be made
        if failure is None:
            assert [each.read_text() for each in sorted(new.iterdir())] == ["a.csv", "b.csv"]
            shutil.rmtree(new)
        else:
            assert new.read_text() == "a file"
            assert list(tmp_path.iterdir()) == [new]


def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path):
    target = tmp_path / "a.csv"
    code = (
        "import os, sys; from pathlib import Path; from spatialq.export.atomic import whole\n"
        "with whole(Path(sys.argv[1])) as partial:\n"
        "    partial.write_text('half')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, target], check=False)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".spatialq-")
    with whole(target) as partial:
        partial.write_text("text")
    assert list(tmp_path.iterdir()) == [target]


def test_links_in_a_circle_are_refused(tmp_path):
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(
        FileError, match=r"one\.csv': cannot be written: its links lead in a circle"
    ):
        require_writable(one)
