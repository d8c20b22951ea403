"""EXPORT DATABASE and IMPORT DATABASE, between databases with and without spatialq."""

import shutil

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq.database import sources
from spatialq.errors import FileError

from ..command_line import spatialq_command


@pytest.fixture
def site(tmp_path):
    """A database with a table of a file, renamed, and some things of the user's."""
    np.save(tmp_path / "z.npy", np.arange(6.0).reshape(2, 3))
    con = spatialq.connect(str(tmp_path / "site.duckdb"))
    spatialq.load(con, tmp_path / "z.npy", "t", crs="EPSG:25832")
    con.execute("CREATE VIEW high AS FROM t WHERE z > 2; COMMENT ON VIEW high IS 'it''s high'")
    con.execute("CREATE MACRO twice(x) AS 2 * x; COMMENT ON COLUMN t.z IS 'metres'")
    con.execute('CREATE SCHEMA "o\'ther"; CREATE TABLE "o\'ther"."a b" AS SELECT 1 AS one')
    con.execute('COMMENT ON TABLE "o\'ther"."a b" IS \'mine\'')
    yield con
    con.close()


def require_site(con, table="t", *, comments=True):
    query = "SELECT table_name, row_count, crs_name FROM spatialq_sources"
    assert con.sql(query).fetchall() == [(table, 6, "ETRS89 / UTM zone 32N (EPSG:25832)")]
    assert con.sql("SELECT count(*), twice(4) FROM high").fetchall() == [(3, 8)]
    assert con.sql('SELECT one FROM "o\'ther"."a b"').fetchall() == [(1,)]
    if comments:
        query = "SELECT comment FROM duckdb_views() WHERE view_name = 'high'"
        assert con.sql(query).fetchall() == [("it's high",)]
        query = "SELECT comment FROM duckdb_tables() WHERE table_name = 'a b'"
        assert con.sql(query).fetchall() == [("mine",)]
        query = "SELECT comment FROM duckdb_columns() WHERE comment IS NOT NULL"
        assert con.sql(query).fetchall() == [("metres",)]


def test_an_exported_database_goes_into_any_other(site, tmp_path):
    site.execute(
        "ALTER TABLE t RENAME TO grid; CREATE OR REPLACE VIEW high AS FROM grid WHERE z > 2"
    )
    site.execute("COMMENT ON VIEW high IS 'it''s high'")
    folder = tmp_path / "it's exported"
    spatialq.export_database(site, folder)
    moved = shutil.move(folder, tmp_path / "it's moved")
    with spatialq.connect() as con:
        spatialq.import_database(con, moved)
        require_site(con, "grid")
        assert con.sql("SELECT count(*) > 0 FROM spatialq_devices()").fetchall() == [(True,)]
        with pytest.raises(duckdb.CatalogException, match="already exists"):
            spatialq.import_database(con, moved)
    quoted = str(moved).replace("'", "''")
    with spatialq.connect() as con:
        con.execute(f"IMPORT DATABASE '{quoted}'")
        require_site(con, "grid")
    plain = str(tmp_path / "plain.duckdb")
    with duckdb.connect(plain) as con:
        con.execute(f"IMPORT DATABASE '{quoted}'")
    with spatialq.connect(plain) as con:
        require_site(con, "grid")
        spatialq.load(con, tmp_path / "z.npy", "grid", crs="EPSG:25832", mode="replace")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_duckdb_exported_is_imported(site, tmp_path, form):
    folder = tmp_path / "exported"
    site.execute("CREATE TABLE made AS FROM t LIMIT 5")
    site.execute(f"EXPORT DATABASE '{folder}' (FORMAT {form})")
    with spatialq.connect() as con:
        spatialq.import_database(con, folder)
        require_site(con, comments=False)
        assert sources.require_one_crs(con, "FROM made") is None
    with duckdb.connect() as con:
        spatialq.import_database(con, folder)
        spatialq.install(con)
        require_site(con, comments=False)


def test_a_table_that_was_made_anew_gets_no_crs_by_its_name(site, tmp_path):
    site.execute("CREATE OR REPLACE TABLE t AS FROM t LIMIT 2")
    site.execute(f"EXPORT DATABASE '{tmp_path / 'exported'}'")
    with spatialq.connect() as con:
        spatialq.import_database(con, tmp_path / "exported")
        assert con.sql("FROM spatialq_sources").fetchall() == []


def test_an_import_is_whole_or_nothing(site, tmp_path):
    folder = tmp_path / "exported"
    spatialq.export_database(site, folder)
    (folder / "t.parquet").unlink()
    with spatialq.connect() as con:
        with pytest.raises(duckdb.Error, match=r"t\.parquet"):
            spatialq.import_database(con, folder)
        assert con.sql("FROM duckdb_tables()").fetchall() == []
        with pytest.raises(FileError, match="is no folder that EXPORT DATABASE wrote"):
            spatialq.import_database(con, tmp_path)
        con.execute("BEGIN; CREATE TABLE mine AS SELECT 1 AS x")
        with pytest.raises(ValueError, match="the connection has a transaction open; COMMIT or"):
            spatialq.import_database(con, folder)


def test_on_the_command_line(site, tmp_path):
    site.close()
    folder = tmp_path / "exported"
    old, new = str(tmp_path / "site.duckdb"), str(tmp_path / "new.duckdb")
    for command in (
        ("sql", f"EXPORT DATABASE '{folder}' (FORMAT parquet)", "--database", old),
        ("sql", f"SELECT 1; IMPORT DATABASE '{folder}'", "--database", new, "--create"),
    ):
        result = spatialq_command(*command)
        assert result.returncode == 0, result.stderr
    with spatialq.connect(new) as con:
        require_site(con)
