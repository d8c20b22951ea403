"""Revisions side by side, each in a schema of its own: tables are as of a fresh load."""

import random
import shutil

import duckdb
import pytest

import spatialq
from spatialq.database.model_tables import PARTS, beside_elements
from spatialq.errors import FileError
from spatialq.functions.sql_text import identifier
from tests.command_line import spatialq_command
from tests.test_load import write_las
from tests.test_unload import write

TABLES = ("elements", *PARTS, "load_errors")
MAIN = "main"


def rows(con, schema=MAIN, elements="elements"):
    """All rows of a model's tables, as texts and sorted; none of a table that is not there."""
    there = con.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = ?", [schema]
    ).fetchall()
    return {
        part: sorted(map(str, con.sql(f"FROM {identifier(schema)}.{identifier(name)}").fetchall()))
        if (name,) in there
        else []
        for part in TABLES
        for name in [part if part == "load_errors" else beside_elements(elements, part)]
    }


def fresh(paths):
    with spatialq.connect() as con:
        if paths:
            spatialq.load(con, paths)
        return rows(con)


@pytest.mark.slow
def test_a_hundred_operations_leave_what_a_fresh_load_makes(con, tmp_path):
    rng = random.Random(3)
    versions = [write(tmp_path / f"version_{k}.ifc", k) for k in range(1, 6)]
    files = [tmp_path / f"{name}.ifc" for name in "abc"]
    known = {k: fresh([path]) for k, path in enumerate(versions)}
    texts = {path.read_text(): k for k, path in enumerate(versions)}
    schemas = [MAIN, "2024-05", 'week "2"', "It's C"]
    loaded = {schema: {} for schema in schemas}  # file: the version that it was
    reader, done = con.cursor(), set()

    def check():
        for schema, models in loaded.items():
            expected = {
                part: sorted(
                    row.replace(str(versions[k]), str(file))
                    for file, k in models.items()
                    for row in known[k][part]
                )
                for part in TABLES
            }
            assert rows(reader, schema) == expected
        listed = reader.sql("SELECT revision, model, path FROM revisions()").fetchall()
        assert sorted(listed) == sorted(
            (schema, file.name, str(file))
            for schema, models in loaded.items()
            for file in models
            if schema != MAIN
        )

    for _ in range(100):
        schema, file = rng.choice(schemas), rng.choice(files)
        action = rng.choice(["append", "append", "update", "unload", "remove", "replace"])
        inside, revision = loaded[schema], None if schema == MAIN else schema
        there = con.execute(
            "SELECT count(*) FROM duckdb_schemas() WHERE schema_name = ?", [schema]
        ).fetchall()
        done.add((action, file in inside, revision is None))
        if action in ("append", "update", "replace"):
            shutil.copy(rng.choice(versions), file)
        if action == "append" and file in inside:
            with pytest.raises(FileError, match="already; update it"):
                spatialq.load(con, file, revision=revision)
        elif action in ("append", "update", "replace"):
            seen = []
            before = rows(reader, schema)
            spatialq.load(
                con,
                file,
                mode=action,
                revision=revision,
                progress=lambda *_, schema=schema, seen=seen: seen.append(rows(reader, schema)),
            )
            assert all(each == before for each in seen)  # none sees half
            if action == "replace":
                inside.clear()
            inside[file] = texts[file.read_text()]
        elif action == "unload" and file in inside:
            spatialq.unload(con, file, revision=revision)
            del inside[file]
        elif action == "remove" and revision is not None and there == [(1,)]:
            removed = spatialq.unload(con, revision=revision)
            assert {each.path for each in removed} == set(map(str, inside))
            inside.clear()
        else:
            with pytest.raises((FileError, ValueError), match=r"^unload: "):
                spatialq.unload(con, file if action == "unload" else None, revision=revision)
        assert con.sql("SELECT current_schema()").fetchall() == [(MAIN,)]
        check()
    assert len(done) >= 18  # of 20: each action, on a file that is there or not, in main or not


def test_names_without_a_schema_mean_the_revision_in_use(con, tmp_path):
    file = write(tmp_path / "a.ifc", 2)
    spatialq.load(con, file, revision="may")
    write(file, 3)
    spatialq.load(con, file, revision="june")
    elements = "SELECT count(*) FROM elements_where('IfcElement')"
    pairs = "SELECT count(*) FROM candidate_pairs('{}', distance := 100)"
    counts, sizes = {}, {}
    for revision in ("may", "june"):
        con.execute(f"USE {revision}")
        counts[revision] = con.sql(pairs.format("elements")).fetchall()
        sizes[revision] = con.sql(elements).fetchall()
        spatialq.load(con, write_las(tmp_path / f"{revision}.las", 10))  # into the one in use
        with pytest.raises(ValueError, match=f"^unload: revision '{revision}' is the current sche"):
            spatialq.unload(con, revision=revision)
    assert counts["may"] != counts["june"]
    assert sizes["may"] == [(2,)] != sizes["june"]
    con.execute("USE main")
    for revision, count in counts.items():
        assert con.sql(pairs.format(f"{revision}.elements")).fetchall() == count
    found = con.sql("FROM revision_changes('may.elements', 'june.elements')").fetchall()
    assert {row[0] for row in found} == {"added"}
    query = "SELECT revision, model, count(*) FROM revisions('{}') GROUP BY ALL ORDER BY ALL"
    assert con.sql(query.format("elements")).fetchall() == [
        ("june", "a.ifc", len(con.sql("FROM june.elements").fetchall())),
        ("may", "a.ifc", 2),
    ]
    assert con.sql(query.format("points")).fetchall() == [("june", None, 10), ("may", None, 10)]
    con.execute("DROP SCHEMA may CASCADE")  # needs nothing else
    assert con.sql("SELECT DISTINCT revision FROM revisions()").fetchall() == [("june",)]


def test_a_file_that_cannot_be_read_makes_no_revision(con, tmp_path):
    bad = tmp_path / "bad.ifc"
    bad.write_text("no model")
    with pytest.raises(FileError, match=r"bad\.ifc"):
        spatialq.load(con, bad, revision="may")
    assert con.sql("SELECT current_schema()").fetchall() == [(MAIN,)]
    assert con.sql("FROM duckdb_schemas() WHERE schema_name = 'may'").fetchall() == []
    assert con.sql("FROM revisions()").fetchall() == []
    with pytest.raises(duckdb.Error, match=r"must be a table of revisions \(there is none\), got"):
        con.sql("FROM revisions('elements')")


def test_revisions_of_another_database(con, tmp_path):
    file = write(tmp_path / "a.ifc", 2)
    con.execute(f"ATTACH '{tmp_path}/site.duckdb' AS site")
    con.execute("USE site")
    spatialq.install(con)
    spatialq.load(con, file, revision="may")
    assert con.sql("SELECT revision FROM revisions()").fetchall() == [("may",)]
    assert con.sql("SELECT current_database()").fetchall() == [("site",)]
    con.execute("USE memory")
    assert con.sql("FROM revisions()").fetchall() == []


def test_revisions_are_exported(con, tmp_path):
    spatialq.load(con, write(tmp_path / "a.ifc", 3), revision="may")
    spatialq.export_database(con, tmp_path / "exported")
    with spatialq.connect() as other:
        spatialq.import_database(other, tmp_path / "exported")
        query = "SELECT revision, model, row_count FROM revisions()"
        assert other.sql(query).fetchall() == con.sql(query).fetchall() != []
        assert rows(other, "may") == rows(con, "may")


@pytest.mark.parametrize("name", ["", "a\nb", "main", "TEMP", "pg_catalog", "memory"])
def test_a_name_that_no_revision_can_have(con, tmp_path, name):
    with pytest.raises(ValueError, match=r"^load: revision must be "):
        spatialq.load(con, write(tmp_path / "a.ifc", 2), revision=name)


def test_what_is_refused(con, tmp_path):
    with pytest.raises(
        ValueError, match=r"^unload: revision must be one that is loaded, and none is, got 'x"
    ):
        spatialq.unload(con, revision="x")
    with pytest.raises(ValueError, match=r"^unload: paths must be files, unless a whole revision"):
        spatialq.unload(con)
    spatialq.load(con, write(tmp_path / "a.ifc", 2), revision="may")
    con.execute("CREATE SCHEMA mine; CREATE TABLE mine.elements AS SELECT 1 AS a")
    with pytest.raises(ValueError, match=r"^unload: revision must be one of 'may', got 'mine'"):
        spatialq.unload(con, revision="mine")
    with pytest.raises(
        duckdb.Error, match=r"revisions: table_name must be a table of revisions \("
    ):
        con.sql("FROM revisions('elments')")


def test_the_command_line(tmp_path):
    file = write(tmp_path / "a.ifc", 2)
    database = ("--database", tmp_path / "site.duckdb")
    for revision in ("2024-05", "2024-06"):
        spatialq_command("load", file, *database, "--revision", revision)
    query = "SELECT revision, model FROM revisions()"
    listed = spatialq_command("sql", query, *database, "--json").stdout
    assert listed.count("a.ifc") == 2
    spatialq_command("unload", *database, "--revision", "2024-05")
    assert "2024-05" not in spatialq_command("sql", query, *database, "--json").stdout
    again = spatialq_command("unload", *database, "--revision", "2024-05")
    assert again.returncode == 1
    assert "unload: revision must be one of '2024-06', got '2024-05'" in again.stderr


def test_the_case_of_a_name_does_not_matter(con, tmp_path):
    file = write(tmp_path / "a.ifc", 2)
    spatialq.load(con, file, revision="May")
    spatialq.load(con, write(tmp_path / "b.ifc", 3), revision="may")
    assert con.sql("SELECT DISTINCT revision FROM revisions('elements')").fetchall() == [("May",)]
    con.execute("USE may")
    spatialq.load(con, write_las(tmp_path / "a.las", 10))
    con.execute("USE main")
    assert spatialq.unload(con, file, revision="MAY")
    assert spatialq.unload(con, revision="mAY")
    assert con.sql("FROM revisions()").fetchall() == []


def test_a_revision_in_the_search_path_is_not_removed(con, tmp_path):
    spatialq.load(con, write(tmp_path / "a.ifc", 2), revision="may")
    con.execute("SET search_path = 'main,may'")
    with pytest.raises(ValueError, match="'may' is the current schema; USE another one before"):
        spatialq.unload(con, revision="may")
    assert con.sql("SELECT count(*) FROM revisions()").fetchall() == [(1,)]


def test_tables_may_have_columns_called_as_those_of_revisions(con, tmp_path):
    for revision in ("may", "june"):
        spatialq.load(con, write(tmp_path / "a.ifc", 2), revision=revision)
        con.execute(f"CREATE TABLE {revision}.mine AS SELECT 1 AS model, 2 AS file_name")
    found = con.sql("SELECT revision, model FROM revisions('mine') ORDER BY ALL").fetchall()
    assert found == [("june", "2"), ("may", "2")]


@pytest.mark.parametrize("revision", ["", " ", 2024])
def test_what_is_no_name_is_refused(con, tmp_path, revision):
    with pytest.raises(ValueError, match=r"^load: revision must be a name without"):
        spatialq.load(con, write(tmp_path / "a.ifc", 2), revision=revision)
