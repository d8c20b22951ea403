"""What a query selects is what DuckDB says, point by point of each tile."""

import random

import numpy as np
import pytest

from spatialq.serve.app import Server
from spatialq.serve.limits import Limits
from spatialq.serve.scene import open_scene

from .conftest import client_of, make_database, plain_duckdb

pytestmark = pytest.mark.slow

CONDITIONS = (
    "z > {a}", "z BETWEEN {a} AND {b}", "classification = {c}", "classification IN (1, {c})",
    "is_high", "NOT is_high", "kind = 'roof'", "kind IS NULL", "deviation > {a} / 10",
    "deviation IS NULL", "point_id % {c} = 0", "(x - 500200) * (y - 5600200) > {a}", "false",
    "true", "hash(point_id) % 7 < {c}",
)  # fmt: skip


@pytest.fixture(scope="module", params=["dense", "sparse"])
def served(request, tmp_path_factory, in_cache):
    """A client of a cloud with several tiles, its tiles, and a plain connection to its table."""
    n = 110_000
    ids = None if request.param == "dense" else np.random.default_rng(5).permutation(n) * 977 + 3
    path = make_database(tmp_path_factory.mktemp(request.param), n, ids)
    limits = Limits(seconds=60, memory=1 << 30, rows=50)
    with open_scene([str(path)], limits=limits) as scene:
        scene.build()
        (cloud,) = scene.clouds
        assert cloud.state == "ready", cloud.message
        with plain_duckdb(path) as con, client_of(Server(scene)) as client:
            yield client, cloud.tiles, con


def asked(client, text, **more):
    answer = client.post("query", json={"text": text, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def values(client, tiles, key, kind):
    """Give what the server says of each point: id -> value."""
    found = {}
    for node in tiles.about["names"]:
        ids = np.frombuffer(client.get(f"clouds/0/ids/{node}").content, "<i8")
        data = client.get(f"query/{key}/clouds/0/{node}")
        assert data.status_code == 200
        given = np.frombuffer(data.content, np.uint8)
        if kind == "mask":
            assert len(given) == -(-len(ids) // 8)
            given = np.unpackbits(given, count=len(ids), bitorder="little")
        assert len(given) == len(ids)
        found.update(zip(ids.tolist(), given.tolist(), strict=True))
    return found


def test_random_conditions_select_the_points_that_duckdb_finds(served):
    client, tiles, con = served
    every = {each for (each,) in con.execute("SELECT point_id FROM points").fetchall()}
    draw = random.Random(4)
    counts = []
    for _ in range(12):
        parts = draw.sample(CONDITIONS, draw.randint(1, 2))
        a = draw.uniform(-9, 9)
        numbers = {"a": a, "b": a + draw.uniform(0, 6), "c": draw.randint(2, 6)}
        where = f" {draw.choice(('AND', 'OR'))} ".join(f"({each})" for each in parts)
        text = f"SELECT * FROM points WHERE {where.format(**numbers)}"
        answer = asked(client, text)
        select = answer["select"]["points"]["0"]
        true = {each for (each,) in con.execute(f"SELECT point_id FROM ({text})").fetchall()}
        found = values(client, tiles, answer["id"], select["kind"])
        assert select["kind"] == "mask"
        assert set(found) == every
        assert {key for key, value in found.items() if value} == true, text
        assert answer["count"] == select["count"] == len(true)
        assert answer["truncated"] == (len(true) > 50)
        counts.append(len(true))
    assert min(counts) < 20_000 < 40_000 < max(counts)


@pytest.mark.parametrize(
    ("column", "where"),
    [
        ("is_high", "true"), ("classification", "z > 0"), ("kind", "true"),
        ("deviation", "z < 3"), ("point_id % 100 AS rest", "true"),
    ],
)  # fmt: skip
def test_bytes_are_the_values_that_the_legend_says(served, column, where):
    client, tiles, con = served
    name = column.split()[-1]
    text = f"SELECT point_id, {column} FROM points WHERE {where}"
    answer = asked(client, text, colour=name)
    select = answer["select"]["points"]["0"]
    assert select["kind"] == "bytes"
    assert select["column"] == name
    true = dict(con.execute(text).fetchall())
    found = values(client, tiles, answer["id"], "bytes")
    legend = select["legend"]
    if isinstance(legend, list):
        known = [each["value"] for each in legend]
        assert {key: known[value - 1] for key, value in found.items() if value} == {
            key: value for key, value in true.items() if value is not None
        }
        return
    there = {key: value for key, value in true.items() if value is not None}
    assert legend["min"] == pytest.approx(min(there.values()))
    assert legend["max"] == pytest.approx(max(there.values()))
    step = (legend["max"] - legend["min"]) / 254
    assert {key for key, value in found.items() if value} == set(there)
    for key, value in there.items():
        assert abs(legend["min"] + (found[key] - 1) * step - value) <= step / 2 + 1e-5


@pytest.mark.parametrize("name", ["z", "classification", "is_high", "kind", "deviation"])
def test_columns_of_tiles_are_those_of_the_table(served, name):
    client, tiles, con = served
    true = dict(con.execute(f"SELECT point_id, {name} FROM points").fetchall())
    about = client.get("scene.json").json()["clouds"][0]["columns"]
    place = [each["name"] for each in about].index(name)
    said = about[place]
    known = [each for each in true.values() if each is not None]
    if name == "kind":
        assert said["values"] == ["roof", "tree", "wall"]
    else:
        assert [said["min"], said["max"]] == [min(known), max(known)]
    for node in tiles.about["names"]:
        ids = np.frombuffer(client.get(f"clouds/0/ids/{node}").content, "<i8")
        found = np.frombuffer(client.get(f"column/0/{place}/{node}").content, "<f4")
        wanted = [true[key] for key in ids.tolist()]
        if name == "kind":
            wanted = [None if each is None else said["values"].index(each) for each in wanted]
        expected = np.array([np.nan if each is None else each for each in wanted], np.float32)
        assert np.array_equal(found, expected, equal_nan=True)


def test_ids_that_are_not_of_the_cloud_and_null_select_nothing(served):
    client, tiles, _ = served
    text = "SELECT unnest([NULL, -1, 99999999999, NULL]) AS point_id"
    answer = asked(client, text)
    assert not any(values(client, tiles, answer["id"], "mask").values())
    assert answer["count"] == 4


def test_of_several_rows_of_a_point_the_last_counts(served):
    client, tiles, con = served
    ((key,),) = con.execute("SELECT max(point_id) FROM points").fetchall()
    answer = asked(client, f"SELECT {key} AS point_id, v FROM (VALUES (0.0), (4.0), (2.0)) t(v)")
    found = values(client, tiles, answer["id"], "bytes")
    assert {each: value for each, value in found.items() if value} == {key: 128}


def test_parameters_are_bound(served):
    client, _, con = served
    text = "SELECT point_id FROM points WHERE kind = ? AND z > ?"
    given = asked(client, text, parameters=["wall", 3.0])
    assert given["count"] == len(con.execute(text, ["wall", 3.0]).fetchall())
    text = "SELECT point_id FROM points WHERE kind = $kind"
    named = asked(client, text, parameters={"kind": "x' OR true --"})
    assert named["count"] == 0


def test_a_result_is_forgotten_after_others(served):
    client, _, _ = served
    first = asked(client, "SELECT 1 AS point_id")["id"]
    assert client.get(f"query/{first}/clouds/0/r").status_code == 200
    for _ in range(16):
        asked(client, "SELECT 1 AS point_id")
    assert client.get(f"query/{first}/clouds/0/r").status_code == 410


def test_a_query_without_ids_has_rows_alone(served):
    client, _, con = served
    text = "SELECT classification, count(*) AS n FROM points GROUP BY ALL ORDER BY 1"
    answer = asked(client, text)
    assert answer["rows"] == [list(row) for row in con.execute(text).fetchall()]
    assert answer["select"] is None
    assert not answer["truncated"]
    long = asked(client, "SELECT x FROM points")
    assert (len(long["rows"]), long["truncated"], long["count"]) == (50, True, None)
