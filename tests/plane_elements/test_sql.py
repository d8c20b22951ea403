"""`plane_elements` through DuckDB, from points to elements."""

import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from spatialq.udfs.plane_elements import Options

import spatialq
from spatialq.database.connection import macros
from spatialq.demo.house import write_house
from spatialq.functions.declaration import parameters_of

from ..element_tables import box, put
from .cases import ROOM, patch

PAGE = Path(__file__).parents[2] / "docs/plane_elements.md"
(SCAN,) = re.findall(r"```sql\n(CREATE OR REPLACE VIEW scan .*?;)\n", PAGE.read_text(), re.DOTALL)
"""The view that the page makes of points in map coordinates; tests/test_docs.py runs the page."""
NAMES = ["south", "north", "west", "east", "floor", "ceiling"]
SCANNED = [
    patch((0, 0, 0), (4, 0, 0), (0, 0, 2.5), n=3000, noise=0.003, seed=1),
    patch((0, 3, 0), (4, 0, 0), (0, 0, 2.5), n=3000, noise=0.003, seed=2),
    patch((0, 0, 0), (0, 3, 0), (0, 0, 2.5), n=3000, noise=0.003, seed=3),
    patch((3.97, 0, 0), (0, 3, 0), (0, 0, 2.5), n=3000, noise=0.003, seed=4),  # built 3 cm off
    patch((0, 0, 0), (4, 0, 0), (0, 3, 0), n=4000, noise=0.003, seed=5),
    patch((0, 0, 2.5), (4, 0, 0), (0, 3, 0), n=4000, noise=0.003, seed=6),
    patch((1, 1, 0.75), (1.6, 0, 0), (0, 0.9, 0), n=1500, noise=0.003, seed=7),  # a table
]


def put_points(con, points, name="points", **columns):
    coordinates = dict(zip("xyz", np.ascontiguousarray(np.transpose(points)), strict=True))
    incoming = pa.table({"point_id": np.arange(len(points)) * 3, **coordinates, **columns})
    con.register("incoming", incoming)
    con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM incoming")
    con.unregister("incoming")


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        put_points(con, np.concatenate([points for points, _ in SCANNED]))
        put(
            con,
            "elements",
            global_id=[*NAMES, "column", "room", "picture"],
            ifc_class=["IfcWall"] * 4 + ["IfcSlab"] * 2 + ["IfcColumn", "IfcSpace", "IfcWall"],
            mesh=[
                *ROOM,
                box((8, 8, 0), (8.3, 8.3, 2.5)),
                box((0, 0, 0), (4, 3, 2.5)),
                None,
            ],
        )
        yield con


def test_columns_and_types(con):
    relation = con.sql("FROM plane_elements('points', 'elements')")
    planes = con.sql("FROM detect_planes('points')")
    own = {
        "plane_id": "BIGINT", "rank": "BIGINT", "global_id": "VARCHAR", "nearest": "DOUBLE",
        "overlap": "DOUBLE", "coverage": "DOUBLE", "angle": "DOUBLE", "deviation": "DOUBLE",
    }  # fmt: skip
    assert relation.columns == [*own, *planes.columns[1:]]
    assert list(map(str, relation.types)) == [*own.values(), *map(str, planes.types[1:])]


def test_the_faces_of_a_room_their_deviations_and_a_table_that_is_no_element(con):
    rows = con.sql(
        "SELECT global_id, nearest, angle, deviation FROM plane_elements('points', 'elements') "
        "WHERE rank = 1 ORDER BY global_id"
    ).fetchall()
    assert [row[0] for row in rows] == [*sorted(NAMES), None]
    for name, nearest, angle, deviation in rows[:-1]:
        assert nearest > 0.95
        assert angle < 0.3
        assert deviation == pytest.approx(0.03 if name == "east" else 0.0, abs=0.003)
    assert rows[-1][1:] == (None, None, None)


def test_the_planes_are_those_of_detect_planes(con):
    columns = ", ".join(con.sql("FROM detect_planes('points')").columns)
    own = con.sql(f"SELECT {columns} FROM plane_elements('points', 'elements') WHERE rank = 1")
    theirs = con.sql(f"SELECT {columns} FROM detect_planes('points', split := true)")
    assert own.order("plane_id").fetchall() == theirs.order("plane_id").fetchall()


def test_the_arguments_of_the_macro_are_the_options(con):
    (statement,) = (macro.statement for macro in macros("native") if macro.name == "plane_elements")
    given = dict(re.findall(r"^    (\w+) := (.*?),?$", statement, re.MULTILINE))
    assert given.pop("device") == "'auto'"
    assert given.pop("memory") == "NULL"
    defaults = {each.name: each.default for each in parameters_of(Options)}
    assert set(given) == set(defaults)
    for name, text in given.items():
        ((value,),) = con.execute(f"SELECT {text}").fetchall()
        assert (float(value) if isinstance(value, Decimal) else value) == defaults[name], name


def test_the_example_of_the_macro(con):
    (comment,) = (macro.comment for macro in macros("native") if macro.name == "plane_elements")
    (example,) = re.findall("example: (.*)", comment)
    assert con.sql(f"SELECT global_id FROM ({example})").fetchall() == [("east",)]


@pytest.mark.parametrize(
    "query",
    [
        "FROM plane_elements(points, elements, max_offset := 0.02)",
        "WITH p AS (FROM points) FROM plane_elements('p', 'elements', max_offset := 0.02)",
        "WITH e AS (FROM elements) FROM plane_elements('points', 'e', max_offset := 0.02)",
    ],
)
def test_tables_by_name_and_common_table_expressions(con, query):
    expected = con.sql("FROM plane_elements('points', 'elements', max_offset := 0.02)").fetchall()
    assert con.sql(query).fetchall() == expected


def test_elements_without_a_plane_by_an_anti_join(con):
    rows = con.sql(
        "SELECT e.global_id FROM spatial_elements('elements') AS e "
        "ANTI JOIN plane_elements('points', 'elements') USING (global_id)"
    ).fetchall()
    assert rows == [("column",)]


def test_what_a_plane_must_match(con):
    def count(**options):
        chosen = "".join(f", {name} := {value}" for name, value in options.items())
        (row,) = con.sql(
            f"SELECT count(global_id) FROM plane_elements('points', 'elements'{chosen}) "
            "WHERE rank = 1"
        ).fetchall()
        return row[0]

    assert count() == 6
    assert count(max_offset=0.02) == 5
    assert count(min_overlap=1.0, max_offset=0.001) == 0


def test_a_cloud_in_feet(con):
    con.execute("CREATE OR REPLACE VIEW feet AS SELECT point_id, x / 0.3048 AS x, "
                "y / 0.3048 AS y, z / 0.3048 AS z FROM points")  # fmt: skip
    metres, feet = (
        con.sql(
            f"SELECT global_id, deviation FROM plane_elements({call}) "
            "WHERE rank = 1 ORDER BY global_id"
        ).fetchall()
        for call in ("'points', 'elements'", "'feet', 'elements', unit := 0.3048")
    )
    assert [row[0] for row in feet] == [row[0] for row in metres]
    for (_, one), (_, other) in zip(metres[:-1], feet[:-1], strict=True):
        assert one == pytest.approx(other, abs=1e-3)


def test_no_points_and_no_elements(con):
    con.execute("CREATE OR REPLACE VIEW no_points AS FROM points WHERE false")
    con.execute("CREATE OR REPLACE VIEW no_elements AS FROM elements WHERE false")
    assert con.sql("FROM plane_elements('no_points', 'elements')").fetchall() == []
    rows = con.sql("SELECT rank, global_id FROM plane_elements('points', 'no_elements')").fetchall()
    assert rows == [(1, None)] * len(SCANNED)


def test_the_log_counts_points(con):
    con.sql("FROM plane_elements('points', 'elements')").fetchall()
    query = 'SELECT function, row_count FROM spatialq_log() ORDER BY "at" DESC LIMIT 1'
    n = sum(len(points) for points, _ in SCANNED)
    assert con.sql(query).fetchall() == [("plane_elements", n)]


def test_arrays_without_a_database(con):
    points = np.concatenate([points for points, _ in SCANNED])
    found = spatialq.run("plane_elements", *points.T, elements=ROOM, max_offset=0.02)
    assert sorted(found["element"].tolist()) == [-1, -1, 0, 1, 2, 4, 5]
    assert len(found["nx"]) == len(found["plane_id"]) == 7


def scan_of(con, name, rng, density=300.0):
    """Points on all faces of the elements of a table, in metres, and whose they are."""
    points, owners = [], []
    for global_id, mesh in con.sql(f"SELECT global_id, mesh FROM {name}").fetchall():
        corners = np.reshape(mesh["vertices"], (-1, 3))[np.reshape(mesh["faces"], (-1, 3))]
        one, other = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
        area = np.linalg.norm(np.cross(one, other), axis=1) / 2
        face = rng.choice(len(area), int(density * area.sum()), p=area / area.sum())
        s, t = rng.random((2, len(face), 1))
        beyond = s + t > 1
        s, t = np.where(beyond, 1 - s, s), np.where(beyond, 1 - t, t)
        points.append(corners[face, 0] + s * one[face] + t * other[face])
        owners += [global_id] * len(face)
    points = np.concatenate(points)
    return points + rng.normal(0.0, 0.003, points.shape), owners


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """The demo's house, and a scan of its walls, slabs and roofs in map coordinates."""
    with spatialq.connect() as con:
        path = tmp_path_factory.mktemp("house") / "house.ifc"
        truth = write_house(path)
        spatialq.load(con, path)
        con.execute("CREATE VIEW shell AS FROM elements WHERE ifc_class IN ('IfcWall', 'IfcSlab')")
        points, owners = scan_of(con, "shell", np.random.default_rng(5))
        c, s = np.cos(np.radians(truth.angle)), np.sin(np.radians(truth.angle))
        turn = np.array([(c, -s, 0), (s, c, 0), (0, 0, 1)])
        points = points @ turn.T + (truth.eastings, truth.northings, truth.height)
        put_points(con, points, owner=pa.array(owners))
        con.execute(SCAN)
        yield con


@pytest.mark.slow
def test_the_walls_slabs_and_roofs_of_a_house(house):
    """Every element that a plane's points came from has that share of it, and no other is best."""
    house.execute(
        "CREATE TEMP TABLE found AS FROM plane_elements('scan', 'shell') "
        "WHERE rmse < 0.004 AND area > 1"  # what is thicker than the noise is not one face
    )
    house.execute(
        "CREATE TEMP TABLE truth AS "
        "SELECT plane_id, owner, count(*) / sum(count(*)) OVER (PARTITION BY plane_id) AS share "
        "FROM plane_points('scan', split := true) JOIN points USING (point_id) "
        "WHERE plane_id IN (SELECT plane_id FROM found) GROUP BY plane_id, owner"
    )
    assert house.sql("SELECT count(DISTINCT plane_id) FROM found").fetchall()[0][0] > 20
    missed = house.sql(
        "SELECT * FROM truth AS t LEFT JOIN found AS f "
        "ON f.plane_id = t.plane_id AND f.global_id = t.owner "
        "WHERE t.share > 0.2 AND coalesce(f.nearest, 0) < t.share - 0.1"
    ).fetchall()
    assert missed == []
    wrong = house.sql(
        "SELECT * FROM found AS f LEFT JOIN truth AS t "
        "ON f.plane_id = t.plane_id AND f.global_id = t.owner "
        "WHERE f.rank = 1 AND (t.share IS NULL OR t.share < 0.2 OR abs(f.deviation) > 0.002)"
    ).fetchall()
    assert wrong == []
