"""above, below, north_of, south_of, east_of, west_of through DuckDB."""

import math

import duckdb
import ifcopenshell
import ifcopenshell.util.geolocation
import numpy as np
import pytest

import spatialq
from spatialq.planner import log
from tests.conftest import real_file

from ..element_tables import box, put, put_room

OPPOSITE = {
    "above": "below", "below": "above", "north_of": "south_of", "south_of": "north_of",
    "east_of": "west_of", "west_of": "east_of",
}  # fmt: skip


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        put_room(con)
        con.execute("CREATE VIEW walls AS FROM elements WHERE ifc_class = 'IfcWall'")
        con.execute("CREATE VIEW slabs AS FROM elements WHERE ifc_class = 'IfcSlab'")
        # a stone of 1 m, and a larger one on each side
        sides = {
            "above": ((-1, -1, 2), (2, 2, 3)), "below": ((-1, -1, -3), (2, 2, -2)),
            "north_of": ((-1, 2, -1), (2, 3, 2)), "south_of": ((-1, -3, -1), (2, -2, 2)),
            "east_of": ((2, -1, -1), (3, 2, 2)), "west_of": ((-3, -1, -1), (-2, 2, 2)),
        }  # fmt: skip
        stones = [box((0, 0, 0), (1, 1, 1)), *(box(*limits) for limits in sides.values())]
        put(con, "around", global_id=["stone", *sides], mesh=stones)
        con.execute("CREATE VIEW stone AS FROM around WHERE global_id = 'stone'")
        yield con


def pairs(con, call):
    return sorted(row[:2] for row in con.sql(f"FROM {call}").fetchall())


def test_columns_and_types(con):
    relation = con.sql("FROM above('slabs', 'walls')")
    assert relation.columns == ["a", "b", "flags"]
    assert list(map(str, relation.types)) == ["VARCHAR", "VARCHAR", "VARCHAR[]"]


def test_b_lies_above_a(con):
    assert pairs(con, "above('slabs', 'walls')") == [("slab", "wall"), ("slab", "wall2")]
    assert pairs(con, "above('walls', 'slabs')") == []
    assert pairs(con, "below('walls', 'slabs')") == [("wall", "slab"), ("wall2", "slab")]


@pytest.mark.parametrize("direction", OPPOSITE)
@pytest.mark.parametrize("model", ["projection", "halfspace"])
def test_each_direction_finds_what_was_put_there(con, direction, model):
    call = f"{direction}('stone', 'around', model := '{model}')"
    if model == "projection":
        assert pairs(con, call) == [("stone", direction)]
        assert pairs(con, call.replace(direction, OPPOSITE[direction], 1)) == [
            ("stone", OPPOSITE[direction])
        ]
    else:  # the larger ones reach beyond the stone on all sides but one
        others = {name for name in OPPOSITE if name != OPPOSITE[direction]}
        assert {b for _, b in pairs(con, call)} == others
        strict = call.replace(")", ", strict := true)")
        assert pairs(con, strict) == [("stone", direction)]


def test_strict_demands_all_of_b(con):
    assert ("stone", "above") not in pairs(con, "above('stone', 'around', strict := true)")
    assert ("above", "stone") in pairs(con, "below('around', 'stone', strict := true)")


def test_true_north_turns_the_sides(con):
    """True north is east of the model's north."""
    assert pairs(con, "north_of('stone', 'around', true_north := 90)") == [("stone", "east_of")]
    assert pairs(con, "west_of('stone', 'around', true_north := 90.0)") == [("stone", "north_of")]


@pytest.fixture(params=["native", "lists"])
def site(request):
    """Two models: a stone and what is around it, where true north is east, and one towards +Y."""
    con = spatialq.connect() if request.param == "native" else duckdb.connect()
    if request.param == "lists":
        spatialq.install(con)
    put(
        con, "elements", global_id=["stone", "east", "north", "south"],
        true_north=[90.0, None, 90.0, 90.0],
        mesh=[
            box((0, 0, 0), (1, 1, 1)), box((2, 0, 0), (3, 1, 1)), box((0, 2, 0), (1, 3, 1)),
            box((0, -2, 0), (1, -1, 1)),
        ],
    )  # fmt: skip
    con.execute("CREATE VIEW stone AS FROM elements WHERE global_id = 'stone'")
    con.execute("CREATE VIEW bare AS SELECT global_id, mesh FROM elements")
    con.execute("CREATE VIEW unknown AS SELECT * REPLACE (NULL AS true_north) FROM elements")
    con.execute("CREATE VIEW other AS SELECT * REPLACE (0.0 AS true_north) FROM elements")
    with con:
        yield con


def test_true_north_is_that_of_the_model(site):
    assert pairs(site, "north_of('stone', 'elements')") == [("stone", "east")]
    assert pairs(site, "east_of('stone', 'elements')") == [("stone", "south")]
    assert pairs(site, "west_of('stone', 'elements')") == [("stone", "north")]
    assert pairs(site, "north_of('elements', NULL)") == [("stone", "east")]
    assert pairs(site, "north_of('stone', 'elements', true_north := 0)") == [("stone", "north")]
    spatialq.pin(site, "elements")
    assert pairs(site, "north_of('stone', 'elements')") == [("stone", "east")]
    assert pairs(site, "north_of('elements', 'elements')") == [("stone", "east")]


def test_a_model_that_does_not_say_its_true_north_has_that_of_the_other(site):
    for table in ("bare", "unknown"):
        north = [("south", "north"), ("south", "stone"), ("stone", "north")]
        assert pairs(site, f"north_of('{table}', NULL)") == north
        assert ("stone", "east") in pairs(site, f"north_of('stone', '{table}')")
    query = (
        "SELECT x.global_id FROM elements AS x, stone AS s "
        "WHERE x.global_id <> 'stone' AND mesh_north_of(s.mesh, x.mesh)"
    )
    assert site.sql(query).fetchall() == [("north",)]  # meshes alone say nothing


def test_models_with_different_true_norths_are_one_sentence(site):
    message = "direction: the elements state different values in their column true_north, 0 and 90"
    with pytest.raises(duckdb.Error, match=f"{message}: give true_north"):
        pairs(site, "north_of('stone', 'other')")
    assert pairs(site, "north_of('stone', 'other', true_north := 0)") == [("stone", "north")]
    assert pairs(site, "above('stone', 'other')") == []


def test_true_north_is_looked_for_once_in_a_correlated_subquery(site):
    log._entries.clear()
    query = (
        "SELECT global_id FROM elements AS e "
        "WHERE EXISTS (FROM north_of('stone', 'elements') AS n WHERE n.b = e.global_id)"
    )
    assert site.sql(query).fetchall() == [("east",)]
    assert len(log.entries()) == 1


@pytest.mark.slow
def test_true_north_of_a_house():
    """No point of b is less far north than the northernmost of a."""
    path = real_file("data/ifc/AC20-FZK-Haus.ifc")
    turn = -ifcopenshell.util.geolocation.get_true_north(ifcopenshell.open(str(path)))
    assert turn == pytest.approx(50)
    with spatialq.connect() as con:
        con.execute(f"CREATE TABLE elements AS FROM read_ifc('{path}')")
        assert con.sql("SELECT DISTINCT true_north FROM elements").fetchall() == [
            (pytest.approx(turn),)
        ]
        con.execute("CREATE VIEW walls AS FROM elements WHERE ifc_class LIKE 'IfcWall%'")
        rows = con.sql("SELECT global_id, mesh FROM walls").fetchall()
        found = pairs(con, "north_of('walls', NULL, model := 'halfspace', strict := true)")
    reach = {}
    for name, mesh in rows:
        x, y, _ = np.reshape(mesh["vertices"], (-1, 3)).T
        north = x * math.sin(math.radians(turn)) + y * math.cos(math.radians(turn))
        reach[name] = north.min(), north.max()
    expected = [
        (a, b) for a in reach for b in reach if a != b and reach[b][0] >= reach[a][1] - 0.001
    ]
    assert found == sorted(expected) != []


def test_one_table_alone_gives_pairs_in_both_orders(con):
    within = pairs(con, "above('around', NULL)")
    assert ("below", "above") in within
    assert within == pairs(con, "above('around', 'around')")
    assert within == sorted((b, a) for a, b in pairs(con, "below('around', NULL)"))


@pytest.mark.parametrize("direction", OPPOSITE)
def test_scalar_forms_are_the_table_form_by_rows(con, direction):
    for options in ("", ", model := 'halfspace', strict := true", ", true_north := 90"):
        query = (
            "SELECT x.global_id, y.global_id FROM around AS x, around AS y "
            f"WHERE x.global_id <> y.global_id AND mesh_{direction}(x.mesh, y.mesh{options})"
        )
        assert sorted(con.sql(query).fetchall()) == pairs(
            con, f"{direction}('around', 'around'{options})"
        )
    query = f"SELECT mesh_{direction}(NULL, mesh), mesh_{direction}(mesh, NULL) FROM stone"
    assert con.sql(query).fetchall() == [(None, None)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("NULL, 'walls'", "above: a must be the name of a table of elements, got NULL"),
        ("'walls', 'walls', model := 'ray'", "above: model must be 'projection' or 'halfs"),
        ("'walls', 'walls', tolerance := -1", "above: tolerance must be >= 0 metres, got -1"),
        ("'walls', 'walls', true_north := 'inf'::DOUBLE", "above: true_north must be a fin"),
        ("'walls', 'walls', strict := NULL", "above: strict must not be NULL"),
    ],
)
def test_wrong_arguments_are_one_sentence(con, call, message):
    with pytest.raises(duckdb.Error, match=message):
        con.sql(f"FROM above({call})").fetchall()
