"""Tables whose names look like patterns of files, in every function that takes a table by name."""

import itertools

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq.demo.house import write_house
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import (
    ElementsInput,
    GridInput,
    PointsAndElementsInput,
    PointsAndTableInput,
    PointsInput,
)
from spatialq.functions.sql_text import identifier, literal
from tests.element_tables import box, put
from tests.examples import combinations

NAMES = ("a*b", "a?b", "a[1]", "x[y", 'a"*b')
ARGUMENTS = {
    PointsInput: ("points",),
    GridInput: ("cells",),
    ElementsInput: ("elements", "elements"),
    PointsAndElementsInput: ("points", "elements"),
}
MORE = dict.fromkeys(
    ("pops_features", "pops_patches"), ", scales := [3], steps := [3], example_scale := 20"
)


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        con.execute(
            "CREATE TABLE points AS SELECT i AS point_id, (i % 40)::DOUBLE AS x, "
            "(i // 40)::DOUBLE AS y, 0.01 * (i % 7) AS z FROM range(1600) r(i)"
        )
        con.execute("CREATE TABLE cells AS SELECT x, y, z FROM points")
        put(con, "elements", global_id=["a", "b"], file_name=["f.ifc", "f.ifc"],
            mesh=[box((0, 0, -1), (5, 5, 0)), box((4, 4, -2), (6, 6, 3))])  # fmt: skip
        con.execute(
            "CREATE TABLE plots AS SELECT 1 AS polygon_id, "
            "'POLYGON ((0 0, 4 0, 0 4, 0 0))'::GEOMETRY AS geometry"
        )
        for kind, name in itertools.product(("points", "cells", "elements", "plots"), NAMES):
            con.execute(f"CREATE TABLE {identifier(f'{kind} {name}')} AS FROM {kind}")
        yield con


def statement(function, written):
    inputs = catalogue()[function].inputs
    if isinstance(inputs, PointsAndTableInput):
        kinds = ("points", {"polygons": "plots", "cloud": "points"}[inputs.kind])
    else:
        kinds = ARGUMENTS[type(inputs)]
    arguments = ", ".join(written(kind) for kind in kinds)
    macro = {"direction": "above"}.get(function, function)
    return f"FROM {macro}({arguments}{MORE.get(function, '')}, device := 'cpu') ORDER BY ALL"


def texts(name):
    """The ways of writing a table: quotes in a text, with a schema, and no text at all."""
    yield lambda kind: literal(identifier(f"{kind} {name}"))
    yield lambda kind: literal("main." + identifier(f"{kind} {name}"))
    if '"' not in name:  # what a name without quotes around it is to DuckDB has none within it
        yield lambda kind: identifier(f"{kind} {name}")
        yield lambda kind: literal(f"{kind} {name}")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", sorted(catalogue()))
def test_every_function_takes_a_table_called_as_a_pattern(con, function):
    expected = con.sql(statement(function, literal)).fetchnumpy()
    for name in NAMES:
        for written in [*texts(name)] if name == NAMES[0] else [next(texts(name))]:
            found = con.sql(statement(function, written)).fetchnumpy()
            for column, values in expected.items():
                if values.dtype != object:
                    np.testing.assert_array_equal(found[column], values)
            assert len(next(iter(found.values()))) == len(next(iter(expected.values())))


OTHERS = {
    "element_footprints": "FROM element_footprints({elements})",
    "model_alignment": "FROM model_alignment({elements})",
    "spatial_elements": "FROM spatial_elements({elements})",
    "point_elements": "FROM point_elements({points}, {elements}, 1.0, unit := 1)",
    "above": "FROM above({elements}, {elements})",
    "touches": "FROM touches({elements}, {elements})",
    "nearest": "FROM nearest({elements}, {elements}, 1)",
}


@pytest.mark.parametrize(("name", "call"), combinations(NAMES, sorted(OTHERS)))
def test_and_so_do_macros(con, call, name):
    plain, odd = (
        con.sql(OTHERS[call].format(**{kind: written(kind) for kind in ("points", "elements")}))
        for written in (literal, next(texts(name)))
    )
    assert sorted(odd.fetchall(), key=repr) == sorted(plain.fetchall(), key=repr)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["spatialq request", "SPATIALQ request"])
def test_a_column_may_have_the_name_of_one_of_ours(con, name):
    con.execute(f'CREATE OR REPLACE TABLE named AS SELECT *, 7 AS "{name}" FROM points')
    for call in ("deviation({}, 'elements', max_distance := 2)", "owm_ground({}, unit := 1)"):
        expected, found = (
            con.sql(f"FROM {call.format(literal(table))} ORDER BY ALL").fetchall()
            for table in ("points", "named")
        )
        assert found == expected != []


@pytest.mark.parametrize("name", NAMES)
def test_the_builder_pins_and_the_crs(con, name):
    table = identifier(f"points {name}")
    con.execute(f'COMMENT ON TABLE {table} IS \'{{"crs": "EPSG:25832"}}\'')
    try:
        query = spatialq.table(con, table).owm_ground(device="cpu")
        expected = query.count()
        assert expected == con.sql("FROM owm_ground('points', crs := 'EPSG:25832')").shape[0]
        spatialq.pin(con, table)
        assert query.count() == expected
        ((uses,),) = con.sql("SELECT uses FROM spatialq_pins()").fetchall()
        assert uses == 1
        frame = con.sql(f"SELECT frame FROM spatialq_frame_of({literal(table)}, false)")
        assert "25832" in frame.fetchall()[0][0]
    finally:
        spatialq.unpin(con, table)
        con.execute(f"COMMENT ON TABLE {table} IS NULL")


def script(con, cloud):
    text = f'c = ImportCloud("{cloud}")\ng = GroundFilter(c)'
    return sorted(spatialq.run_script(con, text).result.fetchall())


@pytest.mark.parametrize("name", ["a*b", "a?b", "a[1]"])
def test_scripts(con, name):
    expected = script(con, "points")
    assert script(con, f"points {name}") == script(con, rf"\"points {name}\"") == expected != []


@pytest.mark.slow
def test_selectors_and_models_of_scripts(con, tmp_path):
    write_house(tmp_path / "house.ifc")
    spatialq.load(con, tmp_path / "house.ifc", "house")
    con.execute("""
        CREATE TABLE "h*" AS FROM house;
        CREATE TABLE "h*_objects" AS FROM house_objects;
        CREATE TABLE "h*_relations" AS FROM house_relations
    """)
    for call in ("elements_where('IfcWall', {})", "objects_where('IfcWall', {})"):
        tables = ("house", '"h*"') if "elements" in call else ("house_objects", '"h*_objects"')
        plain, odd = (con.sql(f"FROM {call.format(literal(each))}").shape[0] for each in tables)
        assert odd == plain > 0
    script = 'm = ImportModel("{}")\nw = TypeFilter(m is IfcWall)\nt[a|b] = Touches(w)'
    plain, odd = (
        sorted(spatialq.run_script(con, script.format(each)).result.fetchall())
        for each in ("house", r"\"h*\"")
    )
    assert odd == plain != []


def test_a_name_in_a_query(con):
    rows = con.sql("""WITH "w*" AS (FROM points) FROM owm_ground('"w*"')""").fetchall()
    assert len(rows) == con.sql("FROM owm_ground('points')").shape[0]


def test_without_quotes_files_come_first(con, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "points a*b"
    spatialq.write(spatialq.table(con, "points").where("x < 20"), "points a.xyz.b.las")
    quoted, bare = (f"FROM classify_ground({text})" for text in ("'\"points a*b\"'", f"'{name}'"))
    assert con.sql(quoted).shape[0] == con.sql(bare).shape[0] == 1600
    (tmp_path / "points a.xyz.b.las").rename("points a.las")
    con.execute('CREATE TABLE "points a*" AS FROM points')
    assert con.sql("FROM classify_ground('\"points a*\"')").shape[0] == 1600
    assert con.sql("FROM classify_ground('points a*')").shape[0] == 800


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nothing*", "Table with name nothing\\* does not exist"),
        ("nothing/*", "owm_ground: 'nothing/\\*': no file matches this pattern"),
        ("*.laz", "owm_ground: '\\*.laz': no file matches this pattern"),
    ],
)
def test_neither_a_table_nor_files(con, tmp_path, monkeypatch, text, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(duckdb.Error, match=sentence):
        con.sql(f"FROM owm_ground('{text}')").fetchall()
