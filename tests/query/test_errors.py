"""What is wrong is said at the line that wrote it, with the near names."""

import re

import duckdb
import pytest

import spatialq as sq


def points(con):
    return sq.table(con, "points")


def elements(con):
    return sq.table(con, "elements")


WRONG = {
    "where: no column 'classificaton'; near names are classification": lambda c: points(c).where(
        "classificaton = 2"
    ),
    "where: no column 'X Y'; ": lambda c: points(c).where('"X Y" = 2'),
    "where: no function 'hight'": lambda c: points(c).where("hight(z) > 2"),
    "where: 'z > 2)' is not a condition: syntax error": lambda c: points(c).where("z > 2)"),
    "where: '(z > 2' is not a condition: syntax error": lambda c: points(c).where("(z > 2"),
    "where: 'z > 2 /*' is not a condition: unterminated": lambda c: points(c).where("z > 2 /*"),
    'where: "name = \'x" is not a condition: unterminated': lambda c: points(c).where("name = 'x"),
    "where: 'z > 2; SELECT 1' is not a condition": lambda c: points(c).where("z > 2; SELECT 1"),
    "where: 'z > 2; DROP TABLE points' is not a condition": lambda c: points(c).where(
        "z > 2; DROP TABLE points"
    ),
    "where: 'z GROUP BY x' is not a condition": lambda c: points(c).where("z GROUP BY x"),
    "where: 'true FROM elements' is not a condition": lambda c: points(c).where(
        "true FROM elements"
    ),
    "where: 'true) UNION (SELECT 1' is not a condition": lambda c: points(c).where(
        "true) UNION (SELECT 1"
    ),
    "where: 'true UNION SELECT 1' is not a condition": lambda c: points(c).where(
        "true UNION SELECT 1"
    ),
    "where: 'z > 2;' is not a condition": lambda c: points(c).where("z > 2;"),
    "where: 'z > 2; --' is not a condition": lambda c: points(c).where("z > 2; --"),
    "where: 'z > 2,' is not a condition": lambda c: points(c).where("z > 2,"),
    "where: 'z > 2 WINDOW w AS ()' is not a condition": lambda c: points(c).where(
        "z > 2 WINDOW w AS ()"
    ),
    "select: 'x;' is not a list": lambda c: points(c).select("x;"),
    "order: 'x;' is not a list of terms": lambda c: points(c).order("x;"),
    "where: 'x, y' is not a condition": lambda c: points(c).where("x, y"),
    "where: 'x AS y' is not a condition": lambda c: points(c).where("x AS y"),
    "where: a condition must be a text, got ''": lambda c: points(c).where(""),
    "where: a condition must be a text, got 3": lambda c: points(c).where(3),
    "select: no column 'q'; ": lambda c: points(c).select("x", "q"),
    "select: 'x FROM elements' is not a list": lambda c: points(c).select("x FROM elements"),
    "select: name at least one column": lambda c: points(c).select(),
    "with_columns: no column 'zz'; near names are z": lambda c: points(c).with_columns(a="zz"),
    "with_columns: 'x AS b' is not an expression": lambda c: points(c).with_columns(a="x AS b"),
    "order: no column 'heigth'": lambda c: points(c).order("heigth DESC"),
    "order: 'z LIMIT 3' is not a list of terms": lambda c: points(c).order("z LIMIT 3"),
    "limit: n must be a whole number >= 0 and <= 2**62, got -1": lambda c: points(c).limit(-1),
    "limit: n must be a whole number >= 0 and <= 2**62, got 2.5": lambda c: points(c).limit(2.5),
    f"limit: n must be a whole number >= 0 and <= 2**62, got {2**70}": lambda c: points(c).limit(
        2**70
    ),
    "where: a condition must be Unicode, got \"z = '\\ud800'\"": lambda c: points(c).where(
        "z = '\ud800'"
    ),
    "storey: name must be Unicode, got": lambda c: elements(c).storey("\ud800"),
    "select: two columns are called 'x'; give one another name with AS": lambda c: points(c).select(
        "x", "y", "x"
    ),
    "aggregate: two columns are called 'n'": lambda c: points(c).aggregate(
        "max(z) AS n", "min(z) AS n"
    ),
    "join: two columns are called 'name_right'": lambda c: (
        elements(c)
        .select("global_id", "name")
        .join("objects", "global_id")
        .join("objects", "global_id")
    ),
    "aggregate: 'x' is no aggregate, such as max(x), and not in group; select": lambda c: points(
        c
    ).aggregate("x", group="classification"),
    "aggregate: 'classification' is no aggregate": lambda c: points(c).aggregate("classification"),
    "table: no table 'inde'": lambda c: sq.table(c, "inde"),
    "closer_than: d must be a length >= 0 such as 2mm (mm, cm, m, in, ft, ftUS, us-ft)": (
        lambda c: elements(c).closer_than("elements", "5 miles")
    ),
    "intersects_with: tolerance must be a length": lambda c: elements(c).intersects_with(
        tolerance="x"
    ),
    "classify_ground: overlap must be a number, got '0.5'": lambda c: points(c).classify_ground(
        overlap="0.5"
    ),
    "write: 'o.doc' must end in one of .bcf, .bcfzip, ": lambda c: points(c).write("o.doc"),
    "aggregate: name at least one aggregate": lambda c: points(c).aggregate(group="x"),
    "aggregate: no column 'clas'; ": lambda c: points(c).aggregate("count(*)", group="clas"),
    "join: how must be 'inner', 'left'": lambda c: points(c).join("points", "x", how="outer"),
    "join: no column 'globalid' in these rows; near names are global_id": lambda c: elements(
        c
    ).join("objects", "globalid"),
    "join: no column 'volume' in the others": lambda c: elements(c).join("objects", "volume"),
    "join: no table 'objcts'; near names are objects": lambda c: elements(c).join("objcts", "name"),
    "join: on must be columns or conditions, not both; 'name' is a column": lambda c: elements(
        c
    ).join("objects", ["name", "a.global_id = b.global_id"]),
    "join: on must be a column, several, or a condition, got none": lambda c: elements(c).join(
        "objects", []
    ),
    "join: other must be a query or the name of a table, got int": lambda c: points(c).join(3, "x"),
    "union: other must be a query or the name of a table, got NoneType": lambda c: points(c).union(
        None
    ),
    "table: no table 'pionts'; near names are points": lambda c: sq.table(c, "pionts"),
    "from_sql: the query must be one statement, got 2": lambda c: sq.from_sql(
        c, "FROM points; FROM elements"
    ),
    "from_sql: no column 'q'": lambda c: sq.from_sql(c, "SELECT q FROM points"),
    "within: bounds must be xmin, ymin, xmax, ymax, got (1, 2)": lambda c: points(c).within((1, 2)),
    "within: bounds must be xmin, ymin, xmax, ymax, got (5, 0, 1, 1)": lambda c: points(c).within(
        (5, 0, 1, 1)
    ),
    "is_a: ifc_class must be a class of IFC2X3, IFC4, IFC4X3_ADD2, got 'IfcWal'; near names are "
    "IfcWall": lambda c: elements(c).is_a("IfcWal"),
    "storey: no storey 'Ground Floor'; near names are ground floor": lambda c: elements(c).storey(
        "Ground Floor"
    ),
    "elements_where: ": lambda c: elements(c).elements_where("IfcWall, ("),
    "elements_where: selector must be a text, got None": lambda c: elements(c).elements_where(None),
    "classify_ground: no argument 'objectwidth'; near names are object_width": lambda c: points(
        c
    ).classify_ground(objectwidth=3),
    "classify_ground: object_width must be >= 0 and <= 1000 metres, got -1.0": lambda c: points(
        c
    ).classify_ground(object_width=-1),
    "detect_planes: kernel must be 'tangent'": lambda c: points(c).detect_planes(kernel="tange"),
    "classify_ground: device must be 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'": lambda c: (
        points(c).classify_ground(device="tpu").fetchall()
    ),
    "intersects_with: b must be elements, which have the columns global_id, mesh": lambda c: (
        elements(c).intersects_with("points")
    ),
    "intersects_with: no table 'wals'": lambda c: elements(c).intersects_with("wals"),
    "plane_elements: elements must be elements, which have": lambda c: points(c).plane_elements(
        points(c)
    ),
    "pin: device must be 'cpu' or 'gpu', got 'tpu'": lambda c: points(c).pin("tpu"),
    "elements: column must be 'a' or 'b', got 'c'": lambda c: (
        elements(c).intersects_with().elements("c")
    ),
    "with_names: the elements of these pairs are not known": lambda c: sq.from_sql(
        c, "SELECT 'x' AS a, 'y' AS b"
    ).with_names(),
    "as_kind: these rows are no points: missing columns: y, z": lambda c: (
        points(c).select("point_id", "x").as_kind(sq.Points)
    ),
    "create: ": lambda c: points(c).create("points"),
    "to_geopandas: these rows have no geometry": lambda c: points(c).select("z").to_geopandas(),
    "to_geopandas: geometry must be a column of type GEOMETRY, got 'x'": lambda c: points(
        c
    ).to_geopandas(geometry="x"),
}


@pytest.mark.slow
@pytest.mark.parametrize("sentence", WRONG)
def test_the_sentence(site, sentence):
    with pytest.raises(sq.QueryError) as raised:
        WRONG[sentence](site)
    assert str(raised.value).startswith(sentence)
    assert "\n" not in str(raised.value)


def test_files_are_refused_as_files(con, tmp_path):
    broken = tmp_path / "broken.laz"
    broken.write_bytes(b"LASF" + bytes(300))
    with pytest.raises(sq.FileError, match=r"^read_las: .*broken\.laz"):
        sq.read_las(con, broken)
    with pytest.raises(sq.FileError, match=r"read_las: 'none\.laz': there is no such file"):
        sq.read_las(con, "none.laz")
    with pytest.raises(sq.FileError, match="read_ifc: "):
        sq.read_ifc(con, "none.ifc")
    with pytest.raises(sq.FileError, match="read_ifc_objects: 'x/"):
        sq.read_ifc_objects(con, "x/*.ifc")
    model = tmp_path / "broken.ifc"
    model.write_text("ISO-10303-21; nothing")
    with pytest.raises(sq.FileError, match=r"broken\.ifc"):
        sq.read_ifc(con, model).fetchall()


@pytest.mark.parametrize("path", [None, 5, "", ["tile.laz"], b"tile.laz"])
@pytest.mark.parametrize(
    "reader", ["read_las", "read_grid", "read_ifc", "read_ifc_objects", "read_vector"]
)
def test_what_is_no_path(con, reader, path):
    with pytest.raises(sq.QueryError, match=f"^{reader}: path must be a file or a pattern"):
        getattr(sq, reader)(con, path)
    with pytest.raises(sq.FileError, match=f"^{reader}: 'x+': File name too long"):
        getattr(sq, reader)(con, "x" * 5000)


FILES = {"read_las": "tile.laz", "read_grid": "hill.tif", "read_ifc": "house.ifc"}
NO_NAMES = {
    "taken": "name: there is a table 'taken' already|Table with name \"taken\" already exists",
    "": "name must be a text",
    5: "name must be a text",
    '"a" x': "'\"a\" x' is no name of a table",
    "no.such": "name must be without a schema|no schema 'no'",
}


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("reader", FILES)
def test_names_that_a_reader_cannot_give(con, reader, name):
    con.execute("CREATE TABLE taken AS SELECT 1 AS n")
    before = con.sql("SELECT table_name FROM duckdb_tables()").fetchall()
    with pytest.raises(sq.QueryError, match=f"^{reader}: ({NO_NAMES[name]})"):
        getattr(sq, reader)(con, FILES[reader], name=name)
    assert con.sql("SELECT table_name FROM duckdb_tables()").fetchall() == before


def test_a_connection_without_our_functions(files):
    expected = r"^\w+: this connection has no functions of spatialq: call spatialq.install\(con\)"
    with duckdb.connect() as con:
        con.execute("CREATE TABLE cloud AS SELECT 1 AS point_id, 1.0 AS x, 1.0 AS y, 1.0 AS z")
        cloud = sq.table(con, "cloud")
        for call in (
            lambda: sq.read_las(con, "tile.laz"),
            lambda: sq.read_ifc(con, "house.ifc"),
            cloud.classify_ground,
            lambda: cloud.where("is_a('IfcWall', 'IfcWall')"),
        ):
            with pytest.raises(sq.QueryError, match=expected):
                call()


def test_a_method_of_other_rows(site):
    with pytest.raises(AttributeError) as raised:
        elements(site).classify_ground()
    assert str(raised.value).startswith(
        "classify_ground is a method of points, which have the columns point_id, x, y, z; "
        "missing columns: point_id, x, y, z"
    )
    with pytest.raises(TypeError, match=r"fetchall\(\) gives them, count\(\) their number"):
        list(points(site))
    with pytest.raises(AttributeError, match=r"a query has no method 'wher'; .*where"):
        points(site).wher("z > 1")
    assert not hasattr(points(site), "_repr_png_")


def test_a_connection_that_was_closed(files):
    con = sq.connect()
    query = sq.read_las(con, "tile.laz")
    con.close()
    for call in (query.count, query.explain, lambda: query.where("z > 1")):
        with pytest.raises(sq.QueryError, match=r"^\w+: the connection of this query was closed"):
            call()


def test_queries_of_two_connections(site, con):
    with pytest.raises(sq.QueryError, match="union: other is of another connection"):
        points(site).union(sq.read_las(con, "tile.laz"))


def test_what_is_a_comment_or_a_text_stays_one(site):
    found = points(site).where("z > 101 -- AND false").where("'; DROP TABLE points; --' <> 'x'")
    (expected,) = site.sql("SELECT count(*) FROM points WHERE z > 101").fetchall()[0]
    assert found.count() == expected
    assert found.select("x -- , y").columns == ["x"]
    assert found.order("x -- DESC", "y").limit(1).count() == 1
    assert found.aggregate("max(x) -- c", "min(y)").columns == ["max(x)", "min(y)"]
    assert re.search(r"z > 101 -- AND false\n+AND ", found.sql())
