"""A file where a function takes the name of a table is refused, with what makes a table of it."""

import duckdb
import pytest

import spatialq

CALLS = {
    "element_footprints({})": "element_footprints: elements",
    "model_alignment({})": "model_alignment: elements",
    "spatial_elements({})": "spatial_elements: elements",
    "elements_where('IfcWall', {})": "elements_where: elements",
    "intersects_with({})": "intersects_with: a",
    "distance('elements', {})": "distance: b",
    "above({}, 'elements')": "above: a",
    "disjoint({}, 'elements')": "disjoint: a",
    "point_elements('points', {}, 0.1)": "point_elements: elements",
    "point_elements({}, 'elements', 0.1)": "point_elements: points",
    "deviation('points', {})": "deviation: elements",
    "plane_elements('points', {})": "plane_elements: elements",
    "coverage('points', {})": "coverage: elements",
    "unmodelled('points', {})": "unmodelled: elements",
    "lod_select({}, {{eye: [1, 2, 3], target: [0, 0, 0]}})": "lod_select: lod",
}


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        con.execute(
            "CREATE TABLE points AS SELECT i AS point_id, i % 7 AS x, i // 7 AS y, i * 0.01 AS z "
            "FROM range(50) AS t(i)"
        )
        con.execute(
            "CREATE TABLE elements AS SELECT 'a' AS global_id, {vertices: [0.0, 0, 0, 1, 0, 0, 0, "
            "1, 0], faces: [0, 1, 2]}::STRUCT(vertices DOUBLE[], faces INTEGER[]) AS mesh"
        )
        yield con


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("file", "reader"),
    [
        ("house 'a'/house.ifc", "read_ifc"),
        ("x/forest.laz", "read_points"),
        ("*.laz", "read_points"),
    ],
)
def test_a_file_is_refused_with_what_reads_it(con, call, file, reader):
    text = "'" + file.replace("'", "''") + "'"
    with pytest.raises(duckdb.Error) as caught:
        con.sql(f"FROM {call.format(text)}").fetchall()
    sentence = f"{CALLS[call]} must be the name of a table"
    message = str(caught.value)
    assert sentence in message
    made = f"got the file {text}: CREATE TABLE t AS FROM {reader}({text}) makes a table of it"
    assert made in message


def test_a_table_of_a_schema_called_as_a_file_is_a_table(con):
    con.execute("CREATE SCHEMA main2; CREATE TABLE main2.laz AS FROM elements")
    for name in ("main2.laz", '"main2"."laz"'):
        ((count,),) = con.sql(f"SELECT count(*) FROM element_footprints('{name}')").fetchall()
        assert count == 1


def test_files_that_duckdb_reads_stay_tables(con, tmp_path):
    con.execute(f"COPY elements TO '{tmp_path}/e.parquet'")
    query = f"SELECT count(*) FROM element_footprints('{tmp_path}/e.parquet')"
    assert con.sql(query).fetchall() == [(1,)]
