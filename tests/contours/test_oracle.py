"""Contours against where heights cross the edges of a grid, by brute force, and against GEOS."""

import numpy as np
import pyogrio.raw
import pytest
import shapely

import spatialq
from spatialq.data.grid import Grid
from spatialq.export.raster import Raster, write_terrain

from ..conftest import real_file
from ..kernels import run
from .cases import CASES
from .oracle import crossings


def contours(grid, **options):
    found = run("contours", "cpu", {"grid": grid}, **options)
    found["geometry"] = shapely.from_wkb(found["geometry"])
    return found


def assert_apart(lines):
    """Lines are simple, and none meets another."""
    assert shapely.is_simple(lines).all()
    assert shapely.is_valid(lines).all()
    a, b = shapely.STRtree(lines).query(lines, predicate="intersects")
    assert (a == b).all()


@pytest.mark.parametrize("case", CASES)
def test_vertices_are_where_heights_cross_the_grid(case):
    grid, options = CASES[case]
    found = contours(grid, **options)
    lines, closed = found["geometry"], found["is_closed"]
    assert_apart(lines)
    assert np.array_equal(shapely.is_closed(lines), closed)
    assert found["length"] == pytest.approx(shapely.length(lines))
    assert (np.diff(found["height"]) >= 0).all()
    points, of = shapely.get_coordinates(lines, return_index=True)
    heights = found["height"][of]
    last = np.diff(of, append=-1) != 0
    once = ~(last & closed[of])  # the last vertex of a closed line is the first
    there = np.column_stack([heights, points])[once]
    expected = crossings(grid.z, grid.x0, grid.y0, grid.dx, grid.dy, **options)
    assert len(there) == len(expected)
    for height in np.unique(expected[:, 0]):
        ours, truth = (each[each[:, 0] == height, 1:] for each in (there, expected))
        apart = shapely.STRtree(shapely.points(truth)).query_nearest(
            shapely.points(ours), return_distance=True, all_matches=False
        )
        assert apart[1].max() < 1e-6
        assert len(np.unique(apart[0][1])) == len(truth)


def test_open_lines_end_at_the_edge():
    grid = CASES["hills"][0]
    found = contours(grid, interval=5.0)
    (west, south), (east, north) = grid.ends
    frame = shapely.box(west, south, east, north).exterior
    ends = shapely.get_coordinates(shapely.boundary(found["geometry"][~found["is_closed"]]))
    assert shapely.distance(shapely.points(ends), frame).max() < 1e-9


def test_a_cone_has_circles_with_the_height_on_the_left():
    y, x = np.mgrid[-50:51, -50:51] * 0.1
    found = contours(Grid(9 - np.hypot(x, y), -5.0, -5.0, 0.1, 0.1), interval=1.0)
    circles = (found["height"] > 4) & (found["height"] < 9)  # the top is raised
    assert found["is_closed"][circles].all()
    assert found["height"][circles].tolist() == [5, 6, 7, 8]
    rings = [shapely.LinearRing(each.coords) for each in found["geometry"][circles]]
    assert shapely.is_ccw(rings).all()
    assert found["length"][circles] == pytest.approx(
        2 * np.pi * (9 - found["height"][circles]), rel=5e-3
    )


def test_lines_end_beside_missing_cells():
    z = CASES["hills"][0].z.copy()
    z[10:14, 20:30] = np.nan
    z[30, 5] = np.nan
    found = contours(Grid(z), interval=2.0)
    assert_apart(found["geometry"])
    hole = shapely.box(20, 10, 29, 13)  # centres of cells without a height
    assert not shapely.intersects(found["geometry"], hole).any()
    assert (shapely.distance(found["geometry"], hole) < 1.01).any()


@pytest.mark.parametrize("ending", ["gpkg", "fgb", "parquet"])
def test_files_have_lines_and_the_crs(tmp_path, ending):
    grid = CASES["hills"][0]
    write_terrain(tmp_path / "dem.tif", Raster(grid.z[::-1], 1000.0, 2040.0, 1.0, "EPSG:25832"))
    target = tmp_path / f"contours.{ending}"
    with spatialq.connect() as con:
        rows = con.sql(f"FROM contours('{tmp_path}/dem.tif', interval := 5)")
        n = spatialq.write(rows, target)
        if ending == "parquet":
            query = f"SELECT height, ST_AsWKB(geometry) FROM '{target}'"
            assert (
                "25832"
                in con.sql(f"SELECT any_value(typeof(geometry)) FROM '{target}'").fetchall()[0][0]
            )
            heights, lines = zip(*con.sql(query).fetchall(), strict=True)
            lines = shapely.from_wkb(list(lines))
        else:
            known, _, lines, fields = pyogrio.raw.read(target)
            heights, lines = fields[list(known["fields"]).index("height")], shapely.from_wkb(lines)
            assert known["crs"] == "EPSG:25832"
    expected = contours(Grid(grid.z.astype(np.float32), 1000.5, 2000.5), interval=5.0)
    assert n == len(lines) == len(expected["height"])
    assert sorted(shapely.length(lines)) == pytest.approx(sorted(expected["length"]))
    assert sorted(heights) == expected["height"].tolist()


def test_a_table_without_cells_has_no_contours():
    with spatialq.connect() as con:
        con.execute("CREATE TABLE none (x DOUBLE, y DOUBLE, z DOUBLE)")
        found = con.sql("FROM contours('none')")
        assert found.columns == ["height", "is_closed", "length", "geometry"]
        assert found.fetchall() == []
    none = np.empty(0)
    found = spatialq.run("contours", none, none, none)
    assert {name: len(each) for name, each in found.items()} == dict.fromkeys(
        ("height", "is_closed", "length", "geometry"), 0
    )


def test_what_is_refused():
    grid = CASES["hills"][0]
    with pytest.raises(
        ValueError, match="interval must be so large that there are at most 100,000 "
    ):
        contours(grid, interval=1e-6)
    with pytest.raises(
        ValueError, match=r"a grid must be held whole, got 9,000,000 cells, which need 0.4 of 0.2"
    ):
        spatialq.run_grid("contours", np.zeros((3000, 3000)), dx=1.0, memory=0.25)


def test_a_real_terrain():
    path = real_file("data/dem/opengeos_lidar_dem.tif")
    with spatialq.connect() as con:
        rows = con.sql(
            f"SELECT height, ST_AsWKB(geometry) FROM contours('{path}', interval := 1)"
        ).fetchall()
        lowest, highest = con.sql(f"SELECT min(z), max(z) FROM read_grid('{path}')").fetchall()[0]
    assert_apart(shapely.from_wkb([line for _, line in rows]))
    levels = {height for height, _ in rows}
    assert levels == set(range(int(np.ceil(lowest)), int(np.floor(highest)) + 1))
