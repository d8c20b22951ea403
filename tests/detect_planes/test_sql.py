"""`detect_planes` through DuckDB."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spatialq.udfs.detect_planes import ORIENTATIONS, Options

import spatialq
from spatialq.functions.catalogue import Function, catalogue

from ..plane_points.cases import FLOOR, ROOF, ROOM, TABLES, surfaces

COLUMNS = [
    "plane_id", "nx", "ny", "nz", "d", "votes", "point_count", "cx", "cy", "cz", "rmse", "area",
    "orientation", "boundary",
]  # fmt: skip


def table(points):
    columns = zip(("point_id", "x", "y", "z"), zip(*points, strict=True), strict=True)
    return pa.table({name: np.array(values) for name, values in columns})


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        con.register("cloud", table(surfaces(1, *ROOM, *ROOF, clutter=300)))
        con.execute("CREATE TABLE pts AS FROM cloud")
        yield con


def kernel(con, where="true", **options):
    columns = con.sql(f"SELECT point_id, x, y, z FROM pts WHERE {where}").fetchnumpy()
    run = catalogue()["detect_planes"].kernel("cpu")
    found = run(*(columns[c] for c in "xyz"), columns["point_id"], Options(**options))
    found["orientation"] = np.array(ORIENTATIONS)[found["orientation"]]
    return list(zip(*(found[name].tolist() for name in COLUMNS), strict=True))


def test_columns_and_types(con):
    relation = con.sql("FROM detect_planes('pts')")
    assert relation.columns == COLUMNS
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    others = {
        "plane_id": "BIGINT", "point_count": "BIGINT", "orientation": "VARCHAR",
        "boundary": "GEOMETRY",
    }  # fmt: skip
    assert types == dict.fromkeys(COLUMNS, "DOUBLE") | others


@pytest.mark.parametrize(
    "call",
    [
        "detect_planes(pts)",
        "detect_planes('pts')",
        "detect_planes('pts', kernel := 'tangent', phi_num := 30, rho_num := NULL, split := false)",
        "detect_planes('pts', s_level := NULL, s_ms := NULL, s_ps := NULL, max_distance := NULL)",
        "detect_planes('pts', max_thickness := 1 / 25, min_isotropy := 1 / 6, device := 'cpu')",
        "detect_planes('pts', min_points := NULL, orientation_tolerance := 5)",
    ],
)
def test_all_ways_to_call_it_give_what_the_kernel_gives(con, call):
    found = con.sql(f"FROM {call}").fetchall()
    assert len(found) >= 8
    assert found == kernel(con)


@pytest.mark.parametrize("function", ["detect_planes", "plane_points"])
@pytest.mark.parametrize(
    "option",
    [
        {"kernel": "paper"},
        {"phi_num": 45},
        {"rho_num": 77},
        {"s_level": 2},
        {"s_ms": 44},
        {"s_ps": 0.01},
        {"max_thickness": 0.2},
        {"min_isotropy": 0.3},
        {"max_distance": 0.07},
        {"min_points": 33},
        {"split": True},
        {"outline": "convex"},
        {"orientation_tolerance": 9.0},
    ],
)
def test_each_option_reaches_the_kernel(con, monkeypatch, function, option):
    """From the table macro and from the aggregate."""
    reached = []

    def note(udf, _):
        def run(options, **columns):
            reached.append(options)
            return {name: columns["x"][:0].astype(np.int8) for name in udf.output.columns}

        return run

    monkeypatch.setattr(Function, "kernel", note)
    ((name, value),) = option.items()
    chosen = f"{name} := {value!r}"
    con.sql(f"FROM {function}('pts', {chosen})").fetchall()
    columns = "point_id, x, y, z"
    con.sql(f"SELECT {function}_list({columns}, {chosen}) FROM pts").fetchall()
    assert [options.function for options in reached] == [function] * 2
    assert {name: getattr(reached[0], name) for name in option} == option
    assert reached[0] == reached[1] == type(reached[0])(**option)


def test_group_by_runs_each_group_by_itself(con):
    rows = con.sql(
        "SELECT tile, detect_planes_list(point_id, x, y, z, "
        "max_distance := 0.02) FROM (SELECT *, x > 3 AS tile FROM pts) GROUP BY tile"
    ).fetchall()
    assert len(rows) == 2
    for tile, found in rows:
        expected = kernel(con, "x > 3" if tile else "x <= 3", max_distance=0.02)
        assert [tuple(row.values()) for row in found] == expected


def test_a_boundary_is_a_polygon_in_its_plane(con):
    rows = con.sql(
        "SELECT nx, ny, nz, d, boundary::VARCHAR FROM detect_planes('pts', max_distance := 0.02)"
    ).fetchall()
    for *normal, d, text in rows:
        assert text.startswith("POLYGON Z ((")
        corners = [list(map(float, c.split())) for c in text[12:-2].split(", ")]
        assert corners[0] == corners[-1]
        assert len(corners) >= 4
        assert np.array(corners) @ normal == pytest.approx(d, abs=1e-9)


def test_a_boundary_of_several_parts_is_a_multipolygon(con, tmp_path):
    con.register("tables", table(surfaces(9, *TABLES, FLOOR)))
    target = tmp_path / "planes.parquet"
    query = "FROM detect_planes('tables', max_distance := 0.05{})"
    con.sql(f"COPY ({query.format('')}) TO '{target}'")
    texts = con.sql(f"SELECT boundary::VARCHAR FROM '{target}' ORDER BY plane_id").fetchall()
    assert sorted(text.split(" Z ")[0] for (text,) in texts) == ["MULTIPOLYGON", "POLYGON"]
    geo = json.loads(pq.read_metadata(target).metadata[b"geo"])
    kinds = geo["columns"]["boundary"]["geometry_types"]
    assert sorted(kinds) == ["MultiPolygon Z", "Polygon Z"]
    for option in (", split := true", ", outline := 'convex'"):
        types = f"SELECT DISTINCT split_part(boundary::VARCHAR, ' Z ', 1) {query.format(option)}"
        assert con.sql(types).fetchall() == [("POLYGON",)]


def test_planes_have_their_orientation(con):
    query = "SELECT orientation, count(*) FROM detect_planes('pts') GROUP BY ALL ORDER BY ALL"
    assert con.sql(query).fetchall() == [("horizontal", 2), ("oblique", 2), ("vertical", 4)]
    # both halves of the roof rise by 2 in 3: 33.7 degrees
    query = "SELECT count(*) FROM detect_planes('pts', orientation_tolerance := {}) WHERE nz < 0.9"
    for tolerance, oblique in ((33.0, 2), (34.5, 0)):
        chosen = f"{query.format(tolerance)} AND orientation = 'oblique'"
        assert con.sql(chosen).fetchall() == [(oblique,)]


def test_a_parquet_file_of_planes_is_geoparquet(con, tmp_path):
    target = tmp_path / "planes.parquet"
    con.sql(f"COPY (FROM detect_planes('pts')) TO '{target}'")
    geo = json.loads(pq.read_metadata(target).metadata[b"geo"])
    assert geo["columns"]["boundary"]["geometry_types"] == ["Polygon Z"]
    query = "SELECT boundary FROM {} ORDER BY plane_id"
    again = con.sql(query.format(f"'{target}'")).fetchall()
    assert again == con.sql(query.format("detect_planes('pts')")).fetchall()


def test_an_empty_table_gives_an_empty_result(con):
    con.execute("CREATE OR REPLACE TEMP TABLE nothing AS FROM pts LIMIT 0")
    assert con.sql("FROM detect_planes('nothing')").fetchall() == []


def test_the_log_says_what_ran(con):
    con.sql("FROM detect_planes('pts')").fetchall()
    query = "SELECT function, row_count, device, reason <> '', error FROM spatialq_log()"
    (points,) = con.sql("SELECT count(*) FROM pts").fetchall()[0]
    assert con.sql(query).fetchall()[-1] == ("detect_planes", points, "cpu", True, None)


def test_arrays_without_a_database(con):
    columns = con.sql("SELECT x, y, z FROM pts").fetchnumpy()
    found = spatialq.run("detect_planes", *columns.values(), max_distance=0.02)
    expected = kernel(con, max_distance=0.02)
    assert found["boundary"].tolist() == [row[-1] for row in expected]
    assert found["plane_id"].tolist() == list(range(1, len(expected) + 1))
    points = spatialq.run("plane_points", *columns.values(), max_distance=0.02)
    counted = np.bincount(points["plane_id"], minlength=len(expected) + 1)[1:]
    assert counted.tolist() == found["point_count"].tolist()
