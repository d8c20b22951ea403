"""Output appears whole, through links, or is refused before any work."""

import os
import resource
from pathlib import Path

import duckdb
import pytest

import spatialq
from spatialq.database.table_files import write_table
from spatialq.errors import FileError
from spatialq.export.atomic import require_writable, whole
from spatialq.workflows.ground import write_ground


def test_a_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "a.csv", tmp_path / "link.csv"
    link.symlink_to(Path("folder") / "a.csv")
    for text in ("first", "second"):  # a link to nothing, and to a file
        with whole(link) as partial:
            assert partial.parent == target.parent
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
