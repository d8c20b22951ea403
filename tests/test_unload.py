"""Building models that are read again in place, or removed: tables are as of a fresh load."""

import json
import random
import shutil
from pathlib import Path

import pytest

import spatialq
from spatialq.database.model_tables import PARTS, beside_elements
from spatialq.errors import FileError
from tests.command_line import spatialq_command
from tests.io.ifc_models import Builder
from tests.test_load import write_las

TABLES = ("elements", *PARTS)


def write(path, boxes):
    builder = Builder()
    builder.boxes(boxes)
    if boxes % 2:
        builder.wall_with_window()
    builder.write(path)
    return path


def rows(con, table="elements"):
    """All rows of a model's tables, as texts and sorted; none of a table that is not there."""
    there = {name for (name,) in con.sql("SELECT table_name FROM duckdb_tables()").fetchall()}
    return {
        part: sorted(map(str, con.sql(f'FROM "{name}"').fetchall())) if name in there else []
        for part in TABLES
        for name in [beside_elements(table, part)]
    }


def fresh(paths):
    with spatialq.connect() as con:
        if paths:
            spatialq.load(con, paths)
        return rows(con)


@pytest.mark.slow
def test_a_hundred_operations_leave_what_a_fresh_load_makes(con, tmp_path):
    rng = random.Random(1)
    versions = [write(tmp_path / f"version_{k}.ifc", k) for k in range(1, 6)]
    files = [tmp_path / f"{name}.ifc" for name in "abcd"]
    loaded = {"elements": {}, "other": {}}  # file: its rows when it was loaded
    done = set()
    for _ in range(100):
        table, file = rng.choice(list(loaded)), rng.choice(files)
        inside = loaded[table]
        action = rng.choice(["update", "update", "append", "unload"])
        if action != "unload":
            shutil.copy(rng.choice(versions), file)
        is_refused = (action == "append") == (file in inside) and action != "update"
        done.add((action, file in inside))
        if is_refused:
            refuse = spatialq.load if action == "append" else spatialq.unload
            with pytest.raises(FileError, match=r"already; update it|is not in table"):
                refuse(con, file, table)
        elif action == "unload":
            (gone,) = spatialq.unload(con, file, table)
            assert (gone.table, gone.path) == (table, str(file))
            del inside[file]
        else:
            spatialq.load(con, file, table, mode=action)
            inside[file] = fresh([file])
        for name, models in loaded.items():
            assert rows(con, name) == {
                part: sorted(row for each in models.values() for row in each[part])
                for part in TABLES
            }
        listed = con.sql("SELECT table_name, path FROM spatialq_sources").fetchall()
        assert sorted(listed) == sorted((t, str(f)) for t, models in loaded.items() for f in models)
    assert len(done) == 6
    for file in files:  # and of all files as they are now, at once
        spatialq.load(con, file, mode="update")
    assert rows(con) == fresh(files)


def test_readers_see_the_model_before_until_it_is_whole(con, tmp_path):
    one, two = write(tmp_path / "one.ifc", 3), write(tmp_path / "two.ifc", 2)
    spatialq.load(con, [one, two])
    before, reader, seen = rows(con), con.cursor(), []
    write(two, 40)
    spatialq.load(con, two, mode="update", progress=lambda *_: seen.append(rows(reader)))
    assert seen
    assert all(each == before for each in seen)
    assert rows(reader) == rows(con) == fresh([one, two]) != before


def test_a_model_that_cannot_be_read_leaves_the_one_before(con, tmp_path):
    one, two = write(tmp_path / "one.ifc", 3), write(tmp_path / "two.ifc", 2)
    spatialq.load(con, [one, two])
    before = rows(con)
    two.write_text("no model")
    with pytest.raises(FileError, match=r"two\.ifc"):
        spatialq.load(con, [two], mode="update")
    two.unlink()
    assert rows(con) == before
    spatialq.unload(con, two)
    assert rows(con) == fresh([one])
    with pytest.raises(FileError, match=r"^unload: .*two\.ifc': is in no table; spatialq_sources"):
        spatialq.unload(con, [one, two])
    assert rows(con) == fresh([one])  # all or nothing


def test_the_folder_from_which_a_model_was_loaded_does_not_matter(con, tmp_path, monkeypatch):
    write(tmp_path / "one.ifc", 2)
    write(tmp_path / "models.ifc", 2)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    spatialq.load(con, ["./one.ifc", "models.ifc"])
    monkeypatch.chdir(tmp_path / "below")
    spatialq.load(con, "../one.ifc", mode="update")
    names = "SELECT DISTINCT file_name FROM {} ORDER BY ALL"
    expected = [(str(Path("../one.ifc")),), ("models.ifc",)]
    assert con.sql(names.format("objects")).fetchall() == expected
    assert con.sql(names.format("elements")).fetchall() == expected
    spatialq.unload(con, ["../models.ifc", "../one.ifc"])
    assert not any(rows(con).values())


def test_errors_of_a_model_go_with_its_last_table(con, tmp_path):
    one = write(tmp_path / "one.ifc", 2)
    spatialq.load(con, one)
    spatialq.load(con, one, "other")
    con.execute("INSERT INTO load_errors SELECT file_name, 'x', 'x', 'geometry', 'x' FROM models")
    spatialq.unload(con, one, "other")
    assert con.sql("SELECT count(*) FROM load_errors").fetchall() == [(1,)]
    spatialq.unload(con, one)
    assert con.sql("SELECT count(*) FROM load_errors").fetchall() == [(0,)]


def test_what_is_refused(con, tmp_path):
    cloud = write_las(tmp_path / "a.las", 10)
    spatialq.load(con, cloud)
    with pytest.raises(FileError, match="the rows of table 'points' do not say which file they"):
        spatialq.unload(con, cloud)
    with pytest.raises(FileError, match="is not in table 'elements'; spatialq_sources lists"):
        spatialq.unload(con, cloud, "elements")
    con.execute("BEGIN")
    with pytest.raises(ValueError, match="unload: the connection has a transaction open; COMMIT"):
        spatialq.unload(con, cloud)


def test_on_the_command_line(tmp_path):
    one, database = write(tmp_path / "one.ifc", 2), tmp_path / "a.duckdb"
    load = ("load", one, "-d", database)
    assert spatialq_command(*load).returncode == 0
    again = spatialq_command(*load)
    assert again.returncode == 1
    assert "already; update it (--update, or mode='update'), replace the table" in again.stderr
    write(one, 4)
    assert spatialq_command(*load, "--update").returncode == 0
    assert spatialq_command(*load, "--update", "--replace").returncode == 2
    gone = spatialq_command("unload", one, "-d", database, "--json")
    assert json.loads(gone.stdout) == [{"table": "elements", "path": str(one)}]
    assert spatialq_command("unload", one, "-d", database).returncode == 1
    missing = spatialq_command("unload", one, "-d", tmp_path / "b.duckdb")
    assert missing.returncode == 1
    assert missing.stderr.endswith("there is no such database; near names are a.duckdb\n")
