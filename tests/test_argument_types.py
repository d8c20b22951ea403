"""Every argument of every macro, with values of wrong types and wrong tables: the error is ours.

It names the macro and the argument as the user writes them, and no function that the macro calls.
"""

import itertools
import re
import shutil

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq import cluster
from spatialq.database.macros import macros
from spatialq.demo.house import write_house
from spatialq.functions.sql_text import literal

from .examples import thinned
from .ids.ids_files import attribute, entity, specification, write_ids
from .io.bcf_files import write as write_bcf
from .test_load import write_las

WRONG = ("5", "'abc'", "[1]", "['abc']", "{a: 1}", "NULL", "DATE '2020-01-01'", "true", "1.5")
NEVER_RIGHT = ("DATE '2020-01-01'",)
FREE_TEXT = {("write_bcf", "author")}
"""Parameters of which any text is right: a date is one, too, as it travels as JSON."""
"""No argument is one."""
OUR_OWN = re.compile(r"spatialq_(pin|pins|unpin|plan|log|devices|transform|operation)$")
MISSING = "Table with name abc"
"""Of DuckDB about a text that names no table; the line below it shows the call."""
NO_MATCH = "STRUCT to STRUCT cast must have at least one matching member"
"""Of DuckDB about a struct that is no mesh: it does not ask a function before it casts one."""
FAMILIES = {
    "read_ifc_": "read_ifc", "read_bcf_": "read_bcf",
    "write_ground": "(classify_)?ground(_surface)?",
    "cluster_run": "owm_ground", "write_lod": "(build_)?lod",
    "write_tiles": "tiles|(build_)?lod", "ql4bim": "<script>",
    "model_changes": "read_ifc", "check_ids_files": "check_ids",
}  # fmt: skip
"""Other names in errors about values of the right type: the reader, or what it is composed of."""
FILES = itertools.count()
BCF = ("", "_comments", "_viewpoints", "_components")
COLUMNS = ("point_id", "x", "y", "z", "red", "green", "blue", "intensity", "classification")
"""Arguments of aggregates."""


def parameters(macro):
    head = macro.statement.split(") AS", 1)[0].split("(", 1)[1]
    pattern = r"(\w+)(?:\s*:=\s*((?:'[^']*'|\[[^]]*\]|[^,])*))?(?:,|$)"
    return {name: default.strip() for name, default in re.findall(pattern, head)}


def is_ours(macro):
    return not macro.name.startswith("spatialq_") or OUR_OWN.match(macro.name)


ARGUMENTS = [
    (macro, argument)
    for macro in macros("native")
    if is_ours(macro)
    for argument in parameters(macro)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("types")
    write_house(folder / "house.ifc")
    write_bcf(folder / "issues.bcf")
    write_ids(folder / "rules.ids", specification(entity("IFCWALL"), attribute("Name")))
    write_las(folder / "cloud.las")
    np.save(folder / "grid.npy", np.zeros((4, 4)))
    (folder / "plots.geojson").write_text(
        '{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, '
        '"geometry": {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 4], [0, 0]]]}}]}'
    )
    (folder / "cluster_jobs").mkdir()
    cluster.run("owm_ground", folder / "cloud.las", folder / "cluster_table", unit=1.0)
    return folder


@pytest.fixture(scope="module")
def con(folder):
    con = spatialq.connect()
    spatialq.load(con, [folder / "house.ifc"])
    con.execute(
        "CREATE TABLE points AS SELECT i AS point_id, i % 7 AS x, i // 7 AS y, i * 0.01 AS z, "
        "1::USMALLINT AS red, 2::USMALLINT AS green, 3::USMALLINT AS blue, "
        "4::USMALLINT AS intensity, 2::UTINYINT AS classification FROM range(50) AS t(i)"
    )
    con.execute(
        "CREATE TABLE cells AS SELECT 60.0 * i AS x, 60.0 * k AS y, sin(i) + k AS z "
        "FROM range(40) AS a(i), range(40) AS b(k)"
    )
    file = literal(str(folder / "house.ifc"))
    con.execute(
        f"CREATE TABLE clashes AS SELECT *, {file} AS a_file, {file} AS b_file, "
        "'IfcWall' AS a_class, 'IfcSlab' AS b_class "
        "FROM intersects_with('elements')"
    )
    con.execute(  # but a wall and a slab: of all, touches and coverage take seconds
        "DELETE FROM elements WHERE ifc_class NOT IN ('IfcWall', 'IfcSlab') OR global_id NOT IN "
        "(SELECT global_id FROM elements_in_box('elements', 0, 0, 0, 0, 0, 0))"
    )
    con.execute(
        "CREATE TABLE plots AS SELECT 1 AS polygon_id, "
        "'POLYGON ((0 0, 4 0, 0 4, 0 0))'::GEOMETRY AS geometry"
    )
    con.execute("CREATE TABLE lod AS FROM build_lod('points', device := 'cpu')")
    yield con
    con.close()


def right(macro, argument, folder):
    """A value with which the macro can be called."""
    if argument in COLUMNS and macro.name.endswith("_list"):
        return argument
    models = "elements" if macro.name == "revision_changes" else str(folder / "house.ifc")
    path = {
        "read_las": "cloud.las", "read_points": "cloud.las", "read_grid": "grid.npy",
        "write_ground": "cloud.las", "write_lod": "cloud.las", "write_tiles": "cloud.las",
        "read_vector": "plots.geojson",
        "cluster_run": "cloud.las", "ids_specifications": "rules.ids",
        **dict.fromkeys((f"read_bcf{of}" for of in BCF), "issues.bcf"),
    }  # fmt: skip
    values = {
        "points": "points", "a": "elements", "b": "elements", "elements": "elements", "lod": "lod",
        "grid": "cells", "relations": "relations", "selector": "IfcWall", "table_name": "points",
        "clashes": "clashes", "objects": "objects", "polygons": "plots", "reference": "points",
        "relation": "touch",
        "path": str(folder / path.get(macro.name, "house.ifc")), "function": "owm_ground",
        "script": f'm = ImportModel("{folder}/house.ifc")', "supertype": "IfcWall",
        "ifc_class": "IfcWall", "value": '{"YearComponent": 2024}', "from_crs": "EPSG:25832",
        "to_crs": "EPSG:4326", "folder": str(folder / macro.name),
        "rules": str(folder / "rules.ids"),
        **dict.fromkeys(("before", "after", "surface", "terrain"), "cells"),
        "old": models, "new": models,
    }  # fmt: skip
    output = "lod.copc.laz" if macro.name == "write_lod" else "ground.csv"
    target = f"clashes{next(FILES)}.bcf" if macro.name == "write_bcf" else "tiles/tileset.json"
    expressions = {
        "output": literal(str(folder / target)),
        "outputs": f"[{literal(str(folder / output))}]", "d": "1.0", "max_distance": "1.0",
        "one": "mesh", "other": "mesh", "mesh": "mesh", "row_count": "1000",
        "x": "565000", "y": "5934000", "z": "NULL", "camera": "{eye: [1, 2, 3], target: [0, 0, 0]}",
        "packed": r"'\x01\x00\x01\x01\x05\x06\x07'::BLOB", "size": "2",
        **dict.fromkeys(("xmin", "ymin", "zmin", "xmax", "ymax", "zmax"), "0"),
        "matrix": "[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]",
    }  # fmt: skip
    return expressions.get(argument) or literal(values[argument])


def call(macro, argument, value, folder):
    given = []
    for name, default in parameters(macro).items():
        if name == argument:
            given.append(value if not default else f"{name} := {value}")
        elif not default:
            given.append(right(macro, name, folder))
    text = f"{macro.name}({', '.join(given)})"
    if macro.is_table:
        return f"FROM {text} LIMIT 1"
    table = "points" if macro.name.endswith("_list") else "elements"
    return f"SELECT {text} FROM {table}" + ("" if table == "points" else " LIMIT 1")


@pytest.mark.parametrize(
    ("macro", "argument"),
    thinned(ARGUMENTS),
    ids=[f"{macro.name} {argument}" for macro, argument in ARGUMENTS],
)
def test_a_value_of_a_wrong_type(con, folder, macro, argument, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # 'abc' may be a folder that is made
    others = [other for begin, other in FAMILIES.items() if macro.name.startswith(begin)]
    name = "|".join([macro.name.removesuffix("_list"), *others])
    for value in WRONG:
        query = call(macro, argument, value, folder)
        try:
            con.execute(query).fetchall()
        except (duckdb.Error, RuntimeError) as error:
            sentence = str(error).split("\n\nLINE")[0]
            if value == "'abc'" and MISSING in sentence:
                continue
            if value == "{a: 1}" and NO_MATCH in sentence:
                continue
            assert re.search(rf"({name})(_list)?:", sentence), (query, sentence)
            said = re.split(rf"(?:{name})(?:_list)?:", sentence, maxsplit=1)[-1]
            assert not re.search(r"spatialq_\w+|_udf|query_table|No function matches", said), query
            assert value != "NULL" or not re.search(r"\bNone\b", said), query
        else:
            assert value not in NEVER_RIGHT or (macro.name, argument) in FREE_TEXT, query


NAMED = ("points", "a", "b", "elements", "grid", "relations", "clashes", "objects", "polygons",
         "lod", "before", "after", "surface", "terrain")  # fmt: skip
"""Arguments that name tables."""
OF_TABLES = [
    (macro, argument)
    for macro, argument in ARGUMENTS
    if macro.is_table
    and argument in NAMED
    and macro.name != "points_within"
    and (argument != "relations" or macro.name == "related_elements")
]
"""`relations` of other macros are looked at only where pairs are left out."""
EVERY_COLUMN = (
    "point_id x y z global_id mesh ifc_class file_name step_id storey zmin zmax name elevation "
    "kind child parent parent_class a b node predefined_type"
)
WRONG_TABLES = ("other", "other_empty", "texts", "dates", "missing.laz", "sub/missing.foo", "sub/",
                "rules.ids")  # fmt: skip
RAW = re.compile(r"Binder Error|Catalog Error|Conversion Error|Candidate|Traceback")
"""What DuckDB says of the text of a macro, and Python of a mistake of ours."""
TAKE_TEXTS = ("grouped_clashes", "elements_where", "related_elements", "unified_storeys",
              "write_bcf")  # fmt: skip
"""Macros whose columns are texts, so that nothing is wrong about a table of them."""
OPTIONAL = ("grouped_clashes", "clash_groups")
"""Macros for which x, y and z may be absent: DuckDB itself says that text in them is no number."""


@pytest.mark.parametrize(
    ("macro", "argument"),
    thinned(OF_TABLES),
    ids=[f"{macro.name} {argument}" for macro, argument in OF_TABLES],
)
def test_a_table_or_path_of_another_kind(con, folder, macro, argument, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "rules.ids").write_text("<ids/>")
    con.execute("CREATE OR REPLACE TABLE other AS SELECT 'a' AS title, 1 AS n")
    con.execute("CREATE OR REPLACE TABLE other_empty AS FROM other WHERE false")
    for view, value in (("texts", "'abc'"), ("dates", "DATE '2020-01-01'")):
        columns = ", ".join(f"{value} AS {name}" for name in EVERY_COLUMN.split())
        con.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT {columns}")
    others = [other for begin, other in FAMILIES.items() if macro.name.startswith(begin)]
    name = "|".join([macro.name, *others])
    for table in WRONG_TABLES:
        query = call(macro, argument, literal(table), folder)
        try:
            con.execute(query).fetchall()
        except (duckdb.Error, RuntimeError) as error:
            sentence = str(error).split("\n\nLINE")[0]
            if macro.name in OPTIONAL and "Could not convert string" in sentence:
                continue
            assert re.search(rf"({name}):", sentence), (query, sentence)
            assert not RAW.search(sentence), (query, sentence)
        else:
            of_texts = macro.name in TAKE_TEXTS and table in ("texts", "dates")
            assert of_texts or table == "other_empty", query


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::spatialq.errors.FileWarning")  # a cloud without colours
def test_the_calls_are_right_but_for_one_argument(con, folder):
    shutil.rmtree(folder / "cluster_run", ignore_errors=True)  # of the calls above
    shutil.rmtree(folder / "tiles", ignore_errors=True)
    for written in ("ground.csv", "lod.copc.laz"):
        (folder / written).unlink(missing_ok=True)
    for macro, arguments in itertools.groupby(ARGUMENTS, key=lambda each: each[0]):
        next(arguments)
        con.execute(call(macro, "", "", folder)).fetchall()
