"""Rows in the forms of other libraries, as tables, files and HTML."""

import contextlib
import sys

import duckdb
import geopandas
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spatialq as sq
from spatialq.planner import log
from spatialq.query import pinned as pinning
from spatialq.query.html import ROWS


@pytest.fixture
def walls(site):
    return sq.table(site, "elements").is_a("IfcWall").select("name", "volume").order("name")


def test_all_forms_have_the_same_rows(walls):
    rows = walls.fetchall()
    table, frame, polars = walls.to_arrow(), walls.to_pandas(), walls.to_polars()
    assert isinstance(table, pa.Table)
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert len(rows) == walls.count() > 3
    assert [tuple(row.values()) for row in table.to_pylist()] == rows
    assert [tuple(row) for row in frame.itertuples(index=False)] == rows
    assert polars.rows() == rows
    assert walls.relation().fetchall() == rows
    # libraries that take Arrow
    assert pa.table(walls) == table
    assert pl.DataFrame(walls).rows() == rows


@pytest.mark.parametrize("library", ["pandas", "polars", "geopandas"])
def test_a_library_that_is_not_installed(walls, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    sentence = f"^to_{library}: {library} is not installed: pip install {library}$"
    with pytest.raises(sq.QueryError, match=sentence):
        getattr(walls, f"to_{library}")()


def test_geometries(site, con):
    points = sq.read_las(con, "tile.laz").limit(5).to_geopandas()
    assert isinstance(points, geopandas.GeoDataFrame)
    assert (points.geometry.x == points["x"]).all()
    assert (points.geometry.z == points["z"]).all()
    planes = sq.table(site, "points").detect_planes()
    shapes = planes.to_geopandas()
    assert shapes.geometry.name == "boundary"
    assert len(shapes) == planes.count() > 0
    assert shapes["area"].min() > 0
    assert set(shapes.geom_type) == {"Polygon"}
    boxes = sq.table(site, "elements").to_geopandas(crs="EPSG:25832")
    assert boxes.crs.to_epsg() == 25832
    assert list(boxes.bounds.minx) == list(boxes["xmin"])


def test_the_crs_is_that_of_the_cloud(con, tmp_path):
    from ..io.las_files import write

    write(tmp_path / "utm.laz", 3, 10, crs="EPSG:25832")
    query = sq.read_las(con, tmp_path / "utm.laz").where("z > 0").classify_ground()
    assert query.to_geopandas().crs.to_epsg() == 25832
    spatialq_table = sq.load(con, tmp_path / "utm.laz", "utm")
    assert spatialq_table is not None
    assert sq.table(con, "utm").limit(1).to_geopandas().crs.to_epsg() == 25832


def test_rows_of_different_crs_do_not_go_together(con, tmp_path):
    from ..io.las_files import write

    for name, code in (("one", 25832), ("two", 25833)):
        write(tmp_path / f"{name}.laz", 3, 10, crs=f"EPSG:{code}")
        sq.load(con, tmp_path / f"{name}.laz", name)
    one, file = sq.table(con, "one"), sq.read_las(con, tmp_path / "two.laz")
    for both in (
        one.join("two", "point_id"),
        one.union("two"),
        one.where("x IN (SELECT x FROM two)"),
    ):
        for run in (both.count, both.to_arrow, both.to_geopandas, lambda q=both: q.create("three"),
                    lambda q=both: q.write(tmp_path / "three.csv")):  # fmt: skip
            with pytest.raises(sq.CrsError, match=r"'table one' is in .*but 'table two' is in"):
                run()
    for run in (one.union(file).to_geopandas, lambda: one.union(file).write(tmp_path / "a.csv")):
        with pytest.raises(sq.CrsError, match=r"'table one' is in .*two\.laz"):
            run()
    assert sq.table(con, "two").union(file).to_geopandas().crs.to_epsg() == 25833


def test_tables(con):
    ground = sq.read_las(con, "tile.laz").classify_ground()
    ground.create("ground")
    with pytest.raises(sq.QueryError, match=r"create: .*ground.*exists"):
        ground.create("ground")
    ground.where("is_ground").create('main."ground"', replace=True)
    (same,) = con.sql("SELECT bool_and(is_ground) FROM ground").fetchall()[0]
    assert same
    assert sq.table(con, "ground").count() == ground.where("is_ground").count()


def test_of_rows_whose_crs_cannot_be_read_no_table_is_made():
    with sq.connect() as con:
        con.execute("""
            CREATE TABLE odd AS SELECT 0 AS point_id, 1.0 AS x, 2.0 AS y, 3.0 AS z;
            COMMENT ON TABLE odd IS '{"crs": "EPSG:999999"}';
            CREATE TABLE kept AS SELECT 7 AS x
        """)
        for name, replace in (("made", False), ("kept", True)):
            with pytest.raises(sq.CrsError, match="table odd: PROJ cannot read"):
                sq.table(con, "odd").create(name, replace=replace)
        assert con.sql("FROM kept").fetchall() == [(7,)]
        assert con.sql("SHOW TABLES").fetchall() == [("kept",), ("odd",)]


def test_a_read_only_database_cannot_be_written(site):
    with pytest.raises(sq.QueryError, match=r"create: .*read-only"):
        sq.table(site, "points").create("other")


@pytest.mark.slow
def test_files(site, tmp_path):
    ground = sq.table(site, "points").classify_ground().where("height > 1")
    for ending in ("parquet", "csv", "json"):
        path = tmp_path / f"high.{ending}"
        assert ground.write(path) == ground.count()
        assert site.sql(f"SELECT count(*) FROM '{path}'").fetchall() == [(ground.count(),)]
    grid = sq.table(site, "points").ground_surface(resolution=5.0).select("x", "y", "z")
    grid.write(tmp_path / "ground.tif")
    assert sq.read_grid(site, tmp_path / "ground.tif").count() == grid.count()
    walls = sq.read_ifc(site, "house.ifc").is_a("IfcWall")
    assert walls.select("global_id", "file_name").write(tmp_path / "walls.ifc") == walls.count()
    assert sq.read_ifc(site, tmp_path / "walls.ifc").is_a("IfcWall").count() == walls.count()
    with pytest.raises(ValueError, match="must end in one of"):
        ground.write(tmp_path / "high.docx")
    with pytest.raises(sq.FileError, match="nowhere"):
        ground.write(tmp_path / "nowhere" / "high.csv")


def test_html_shows_the_first_rows_and_runs_no_script(con):
    attack = "<script>alert(1)</script>"
    con.execute(
        'CREATE TABLE t AS SELECT i AS n, ? AS "<b>name</b>" FROM range(50) AS r(i)', [attack]
    )
    page = sq.table(con, "t")._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<tr>") == ROWS + 1
    assert "BIGINT" in page
    assert f"the first {ROWS} rows" in page
    long = sq.from_sql(con, "SELECT repeat('x', 1000000) AS text, NULL AS nothing, 1e99 AS big")
    assert len(long._repr_html_()) < 1000
    assert "NULL" in long._repr_html_()


def test_text_shows_columns_and_sql(walls, capsys):
    assert repr(walls).startswith('<Query: "name" VARCHAR, volume DOUBLE>\nSELECT name, volume')
    walls.show(2)
    assert "volume" in capsys.readouterr().out


def test_explain_names_devices_and_rows(site, con):
    log._entries.clear()
    query = sq.table(site, "points").where("z > 0").classify_ground(device="cpu").plane_points()
    sql, kernels, plan = query.explain().split("\n\n", 2)
    assert sql == query.sql()
    first, second = kernels.splitlines()
    assert first == "classify_ground: about 6,000 rows, on the cpu: device := 'cpu' was asked for"
    assert second.startswith("plane_points: about 6,000 rows, on the ")
    assert plan
    assert "about 6,000 rows" in sq.read_las(con, "tile.laz").owm_ground().explain()
    assert "about 900 rows" in sq.read_grid(con, "hill.tif").pops_features().explain()
    touching = sq.table(site, "elements").touches("elements").explain()
    assert "touches: about " in touching
    assert " elements, on the cpu: " in touching
    of_a_file = sq.read_ifc(con, "house.ifc").touches(sq.read_ifc(con, "house.ifc")).explain()
    assert "touches: about 1,000 elements (assumed, since " in of_a_file
    near = sq.table(site, "points").point_elements("elements", 0.5).explain()
    assert "point_elements: about 6,000 rows, on the cpu: " in near
    assert log.entries() == []


def test_explain_counts_the_table_that_is_meant(con):
    con.execute("CREATE SCHEMA s")
    con.execute("CREATE TABLE s.one AS SELECT 1 AS point_id, 0.0 AS x, 0.0 AS y, 0.0 AS z")
    con.execute("CREATE TABLE one AS FROM s.one UNION ALL FROM s.one")
    assert "about 1 rows" in sq.table(con, "s.one").owm_ground().explain()
    assert "about 2 rows" in sq.table(con, "one").owm_ground().explain()


class Uses(list):
    """The rows of pins as they are given up: each knows how often it was used."""

    def __init__(self, monkeypatch):
        real = pinning.unpin

        def unpin(con, name):
            self.extend(con.sql("SELECT device, uses, misses FROM spatialq_pins()").fetchall())
            return real(con, name)

        monkeypatch.setattr(pinning, "unpin", unpin)


def test_a_pin_lives_as_long_as_the_query_runs(site, monkeypatch):
    uses = Uses(monkeypatch)
    points = sq.table(site, "points").where("z > 0")
    chain = points.pin("cpu").classify_ground().plane_points()
    plain = points.classify_ground().plane_points()
    assert chain.sql() == plain.sql()
    assert sorted(chain.fetchall()) == sorted(plain.fetchall())
    assert uses == [("cpu", 2, 0)]
    assert site.sql("FROM spatialq_pins()").fetchall() == []
    assert site.sql("FROM duckdb_tables() WHERE temporary").fetchall() == []


def test_what_is_pinned_stays_a_step(site, monkeypatch):
    uses = Uses(monkeypatch)
    points = sq.table(site, "points").where("z > 0")
    box = (650010, 5600010, 650020, 5600020)
    for change in (
        lambda q: q.where("z > 101"),
        lambda q: q.within(box),
        lambda q: q.with_columns(z="z + 1"),
        lambda q: q.classify_ground().pin().plane_points(),
    ):
        plain = change(points).classify_ground().order("point_id").fetchall()
        del uses[:]
        assert change(points.pin()).classify_ground().order("point_id").fetchall() == plain
        assert uses
    file = sq.read_las(site, "tile.laz")
    assert file.pin().within(box).classify_ground().count() == file.within(box).count()
    del uses[:]
    points.pin().where("z > 101").count()
    assert uses == []  # no function reads them


def test_a_pin_is_gone_after_an_error(site, monkeypatch):
    uses = Uses(monkeypatch)
    chain = sq.table(site, "points").pin().classify_ground().where("error('no') IS NULL")
    with pytest.raises(sq.QueryError, match="no"):
        chain.fetchall()
    assert len(uses) == 1
    assert site.sql("FROM duckdb_tables() WHERE temporary").fetchall() == []


def test_one_step_of_clearing_up_does_not_stop_the_others(site, monkeypatch):
    def fail(*args, **kwargs):
        with contextlib.suppress(duckdb.Error):
            site.execute("SELECT error('this ends the transaction')")
        message = "the first error"
        raise ValueError(message)

    chain = sq.table(site, "points").pin().classify_ground()
    with monkeypatch.context() as patch:
        patch.setattr(pinning, "unpin", fail)
        assert chain.count() == 6000
    assert site.sql("FROM duckdb_tables() WHERE temporary").fetchall() == []
    monkeypatch.setattr(pinning, "pin", fail)
    for begin in ("SET VARIABLE nothing = 1", "BEGIN"):
        site.execute(begin)
        with pytest.raises(sq.QueryError, match="the first error"):
            chain.count()
    site.execute("ROLLBACK")
    assert site.sql("FROM duckdb_tables() WHERE temporary").fetchall() == []


def test_several_functions_of_one_cloud_are_pinned_where_that_pays(site, monkeypatch):
    uses = Uses(monkeypatch)
    points = sq.table(site, "points")
    chain = points.classify_ground().plane_points()
    chain.count()
    assert uses == []  # the extension collects as fast as a pin is checked
    monkeypatch.setattr(pinning, "transport", lambda con: "lists")
    chain.count()
    assert uses == [("cpu", 2, 0)]
    points.classify_ground().count()
    points.classify_ground().where("height < 1").plane_points().count()
    assert len(uses) == 1  # these read a cloud once
    site.execute("BEGIN")
    assert chain.count() == 6000
    site.execute("COMMIT")
    assert len(uses) == 2
