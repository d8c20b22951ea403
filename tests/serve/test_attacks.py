"""Who must not ask is refused, and what a query must not do it cannot."""

import gc
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import anyio
import duckdb
import pytest
from starlette.testclient import TestClient

from spatialq.serve.app import WAITING, Server
from spatialq.serve.guard import POLICY
from spatialq.serve.limits import Limits, QueryRefusedError
from spatialq.serve.pool import Answer, QueryFailedError
from spatialq.serve.queries import Target, run
from spatialq.serve.scene import open_scene

from .conftest import BASE, PORT, TOKEN, client_of, plain_duckdb

HERE = f"127.0.0.1:{PORT}"


@pytest.fixture(scope="module")
def plain(scene):
    """A client that is nobody's: addresses are those that it is given."""
    return TestClient(Server(scene).app(TOKEN, PORT), base_url=BASE)


@pytest.mark.parametrize(
    "host",
    [
        "evil.com", f"evil.com:{PORT}", "127.0.0.1", "127.0.0.1:80", f"127.0.0.1.evil.com:{PORT}",
        f"localhost.:{PORT}", f"[::1]:{PORT}", f"0.0.0.0:{PORT}", "", f"user@{HERE}",
    ],
)  # fmt: skip
def test_another_host_is_refused(plain, host):
    answer = plain.get(f"/{TOKEN}/health", headers={"host": host})
    assert answer.status_code == 421
    assert answer.json() == {"error": "view: this server answers to 127.0.0.1 and localhost alone"}


@pytest.mark.parametrize("host", [HERE, f"localhost:{PORT}", f"LOCALHOST:{PORT}"])
def test_the_own_host_is_answered(plain, host):
    assert plain.get(f"/{TOKEN}/health", headers={"host": host}).json() == {"ok": True}


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.com"}, {"origin": "null"}, {"origin": f"https://{HERE}"},
        {"origin": "http://127.0.0.1:1"}, {"origin": f"http://localhost:{PORT}"},
        {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "anything"},
        {"origin": f"http://{HERE}", "sec-fetch-site": "cross-site"},
    ],
)  # fmt: skip
def test_another_origin_is_refused(plain, headers):
    for method in ("GET", "POST", "OPTIONS"):
        answer = plain.request(method, f"/{TOKEN}/scene.json", headers=headers)
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("site", ["none", "same-origin"])
def test_the_own_origin_is_answered(plain, site):
    headers = {"origin": f"http://{HERE}", "sec-fetch-site": site}
    assert plain.get(f"/{TOKEN}/health", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/", "/health", "/scene.json", "//scene.json", f"/{TOKEN}x/health", f"/{TOKEN[:-1]}/health",
        f"/{TOKEN.upper()}/health", f"/x/{TOKEN}/health", "/../health", "/%00/health", "/sql",
        f"/?token={TOKEN}", "/\u00e9/health",
    ],
)  # fmt: skip
def test_another_token_finds_nothing(plain, path):
    for method in ("GET", "POST"):
        answer = plain.request(method, path)
        assert answer.status_code == 404
        assert TOKEN not in answer.text


def test_all_answers_have_the_headers_of_safety(plain):
    for path in ("/", f"/{TOKEN}/health", f"/{TOKEN}/nothing", f"/{TOKEN}/scene.json"):
        headers = plain.get(path).headers
        assert headers["content-security-policy"] == f"{POLICY}'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


STEPS = (
    "../", "%2e%2e/", "%2E%2E%2F", "..%2f", "%252e%252e%252f", "..\\", "%5c..%5c", "....//",
    "/", "%2f", ".%00./", "%c0%ae%c0%ae/", "./../",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("below", ["", "clouds/0/", "clouds/0/tiles/", "clouds/0/preview/",
                                   "models/0/", "models/0/tileset/"])  # fmt: skip
def test_no_path_leads_outside(scene, plain, step, below):
    secret = scene.cache / "secret.json"
    secret.write_text('{"secret": 1}')
    for depth in range(1, 6):
        for name in ("secret.json", "etc/passwd", "app.py"):
            answer = plain.get(f"/{TOKEN}/{below}{step * depth}{name}")
            assert answer.status_code in (404, 503), answer.text
            assert "secret" not in answer.text.replace(name, "")
            assert "root:" not in answer.text


def test_what_lies_in_a_folder_but_is_no_tile_is_not_given(scene, plain):
    for name in ("ids.npy", "columns.json.bak", ".hidden.json"):
        assert plain.get(f"/{TOKEN}/clouds/0/{name}").status_code == 404
    link = scene.clouds[0].tiles.folder / "link.json"
    link.symlink_to("/etc/hostname")
    try:
        assert plain.get(f"/{TOKEN}/clouds/0/link.json").status_code == 404
    finally:
        link.unlink()


REFUSED = (
    "CREATE TABLE t AS SELECT 1", "CREATE TEMP TABLE t AS SELECT 1", "DROP TABLE points",
    "DELETE FROM points", "UPDATE points SET z = 0", "INSERT INTO points SELECT * FROM points",
    "CREATE OR REPLACE MACRO f() AS 1", "ALTER TABLE points DROP COLUMN z", "CHECKPOINT", "VACUUM",
    "COPY points TO '/tmp/stolen.csv'", "COPY points FROM '/etc/passwd'",
    "EXPORT DATABASE '/tmp/stolen'", "IMPORT DATABASE '/tmp'", "ATTACH '/tmp/x.duckdb'",
    "DETACH scene", "USE memory", "INSTALL httpfs", "LOAD httpfs", "SET threads = 64",
    "SET enable_external_access = true", "RESET memory_limit", "PRAGMA version",
    "PRAGMA enable_profiling", "CALL pragma_version()", "BEGIN", "COMMIT", "PREPARE p AS SELECT 1",
    "EXECUTE p", "SELECT 1; SELECT 2", "SELECT 1; DROP TABLE points", "EXPLAIN ANALYZE SELECT 1",
    "EXPLAIN (ANALYZE) DELETE FROM points", "", " ", ";", "-- nothing", "SELEC 1", "\x00",
    # what reads or writes files
    "FROM read_csv('/etc/passwd')", "FROM '/etc/passwd'", "FROM read_text('/etc/passwd')",
    "FROM read_blob('/etc/passwd')", "FROM 'x.parquet'", "FROM read_parquet('x.parquet')",
    "FROM read_json('/etc/passwd')", "FROM glob('/etc/*')", "FROM sniff_csv('/etc/passwd')",
    "FROM parquet_metadata('/etc/passwd')", "FROM read_duckdb('/tmp/x.duckdb')",
    "SELECT getenv('HOME')", "FROM duckdb_secrets()", "FROM 'http://127.0.0.1/x.csv'",
    "FROM read_points('/etc/passwd')", "FROM read_ifc('/etc/passwd')",
    "FROM read_bcf('/etc/passwd')", "FROM query('COPY points TO ''/tmp/stolen.csv''')",
    "FROM query_table('/etc/passwd')",
    "FROM write_lod('points', '/tmp/stolen.parquet', overwrite := true)",
    "FROM write_tiles('elements', '/tmp/stolen/tileset.json', overwrite := true)",
)  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_statements_that_do_more_than_read_are_refused(client, scene, text, tmp_path):
    text = text.replace("/tmp", str(tmp_path))  # where no other process leaves anything
    for address, name in (("query", "text"), ("sql", "sql")):
        answer = client.post(address, json={name: text})
        assert answer.status_code == 400, answer.text
        assert set(answer.json()) == {"error"}
        assert "\n" not in answer.json()["error"]
    arrow = {"accept": "application/vnd.apache.arrow.stream"}
    assert client.post("sql", json={"sql": text}, headers=arrow).status_code == 400
    assert list(tmp_path.iterdir()) == []
    with plain_duckdb(scene.opened.databases["scene"]) as con:
        ((count,),) = con.execute("SELECT count(*) FROM points").fetchall()
    assert count == scene.clouds[0].target.points


@pytest.mark.parametrize("text", ["INSTALL httpfs", "FORCE INSTALL h FROM community", "LOAD h"])
def test_loading_and_installing_are_refused_by_their_names(client, text):
    """DuckDB calls both LOAD."""
    error = "view: the box takes a statement that reads, such as SELECT or FROM, got "
    assert client.post("sql", json={"sql": text}).json() == {"error": f"{error}INSTALL or LOAD"}


GREEDY = (
    "WITH RECURSIVE t AS (SELECT 1 i UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t",
    "SELECT count(*) FROM range(100000000000) a, range(100000) b",
    "SELECT list(range) FROM range(1000000000)",
    "SELECT string_agg(repeat('x', 1000000), '') FROM range(100000)",
    "SELECT a.range FROM range(1000000000) a ORDER BY hash(a.range)",
    "SELECT max(length(repeat('x', 10000000) || range)) FROM range(100000)",
    "SELECT point_id FROM points, range(1000000000)",
    "SELECT list_sum(range(3000000000))",  # 24 GB that DuckDB does not count
)


@pytest.fixture(scope="module")
def hasty(house, scene):
    """A client whose queries have two seconds; the tiles are there by the scene."""
    limits = Limits(seconds=2.0, memory=256 << 20)
    opening = open_scene([str(house / "house.laz"), str(house / "house.ifc")], limits=limits)
    with opening as found, client_of(Server(found)) as client:
        found.build()
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("text", GREEDY)
def test_what_loops_or_allocates_ends_and_others_are_answered(hasty, scene, text):
    client, answers = hasty, {}

    def ask():
        answers["greedy"] = client.post("query", json={"text": text})

    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive():
        assert client.get("clouds/0/tileset.json").status_code == 200
        assert client.get("clouds/0/ids/r").status_code == 200
        time.sleep(0.05)
    assert answers["greedy"].status_code == 400
    error = answers["greedy"].json()["error"]
    assert error.startswith("view: the query took ")
    assert "\n" not in error
    after = client.post("query", json={"text": "SELECT count(*) FROM points"}).json()
    assert after["rows"] == [[scene.clouds[0].target.points]]


def test_fifty_clients_at_once_are_answered(client, scene):
    points = scene.clouds[0].target.points

    def ask(k):
        text = f"SELECT point_id FROM points WHERE point_id % 50 = {k}"
        while (answer := client.post("query", json={"text": text})).status_code == 503:
            assert answer.json()["error"].startswith("view: too many queries are waiting")
            time.sleep(0.05)
        assert answer.status_code == 200, answer.text
        assert client.get("clouds/0/tiles/r.glb").status_code == 200
        return answer.json()["count"]

    with ThreadPoolExecutor(50) as pool:
        counts = list(pool.map(ask, range(50)))
    assert counts == [len(range(k, points, 50)) for k in range(50)]


def test_too_many_waiting_queries_are_refused_in_a_sentence(scene, monkeypatch):
    go_on = threading.Event()

    def slow(*_, **__):
        go_on.wait()
        return Answer(b"{}", {})

    monkeypatch.setattr(scene.pool, "ask", slow)
    most = WAITING + scene.pool.size

    def ask(_):
        return client.post("query", json={"text": "SELECT 1"})

    with client_of(Server(scene)) as client, ThreadPoolExecutor(most + 5) as pool:
        asked = [pool.submit(ask, k) for k in range(most + 5)]
        try:
            while sum(each.done() for each in asked) < 5:  # only those refused can be
                time.sleep(0.01)
            first = next(each.result() for each in asked if each.done())
            assert client.get("health").status_code == 200
            assert client.get("clouds/0/tiles/r.glb").status_code == 200
        finally:
            go_on.set()
        codes = [each.result().status_code for each in asked]
    assert first.status_code == 503
    assert first.json() == {"error": "view: too many queries are waiting; try again in a moment"}
    assert codes.count(200) == most
    assert codes.count(503) == 5


class Leaving:
    """A client of a server that sends a query and goes when it is told to."""

    def __init__(self, app, text):
        self._app, self._parts = app, [json.dumps({"text": text}).encode()]
        self.leaves, self.said = anyio.Event(), []

    async def receive(self):
        if self._parts:
            return {"type": "http.request", "body": self._parts.pop(), "more_body": False}
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.said.append(message.get("status"))

    async def ask(self):
        host = BASE.removeprefix("http://").encode()
        scope = {"type": "http", "method": "POST", "path": f"/{TOKEN}/query", "query_string": b""}
        scope |= {"headers": [(b"host", host)]}
        await self._app(scope, self.receive, self.send)


def test_queries_of_clients_that_have_gone_are_not_worked_off(scene, monkeypatch):
    """The one that runs is ended, those that wait never begin, and the next is answered."""
    began, ended, asked = threading.Event(), threading.Event(), []

    def ask(text, *_, cancellation, **__):
        asked.append(text)
        if text == "endless":
            cancellation.of(SimpleNamespace(popen=SimpleNamespace(kill=ended.set)))
            began.set()
            ended.wait()
            raise QueryFailedError(text)
        return Answer(b"{}", {})

    monkeypatch.setattr(scene.pool, "ask", ask)
    monkeypatch.setattr(scene.pool, "size", 1)

    async def all_of_them():
        app = Server(scene).app(TOKEN, PORT)
        running, *waiting, last = (
            Leaving(app, text) for text in ("endless", *["waits"] * 18, "last")
        )
        async with anyio.create_task_group() as group:
            group.start_soon(running.ask)
            await anyio.to_thread.run_sync(began.wait)
            async with anyio.create_task_group() as gone:
                for each in waiting:
                    gone.start_soon(each.ask)
                    each.leaves.set()
            group.start_soon(last.ask)
            running.leaves.set()
        assert last.said[0] == 200

    anyio.run(all_of_them)
    assert asked == ["endless", "last"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400), (b"[]", 400), (b"{", 400), (b"\xff", 400), (b'{"text": 1}', 400),
        (b"[" * 100_000, 400), (json.dumps({"text": "x" * (1 << 20) + "x"}).encode(), 413),
        (b'{"text": "SELECT 1", "language": "python"}', 400),
        (b'{"text": "SELECT 1", "colour": 1}', 400),
        (b'{"text": "SELECT 1 AS point_id", "colour": "none"}', 400),
        (b'{"text": "SELECT ?", "parameters": "x"}', 400),
        (b'{"text": "SELECT ?", "parameters": [[]]}', 200),
        (b'{"text": "SELECT ?"}', 400),
        (b'{"text": "SELECT \'x\' AS point_id"}', 400),
        (b'{"text": "SELECT 1.5 AS point_id"}', 400),
    ],
)  # fmt: skip
def test_bodies_that_are_wrong(client, body, status):
    answer = client.post("query", content=body)
    assert answer.status_code == status, answer.text
    if status != 200:
        assert answer.json()["error"].startswith(("view: ", "Invalid", "Conversion", "Binder"))


COLOUR = "view: colour must be a column of numbers or texts, got "


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SELECT [1] AS point_id", "view: point_id of the result must be whole numbers, got list"),
        ("SELECT 'nan'::DOUBLE AS plane_id", "view: plane_id of the result must be whole numbers"),
        ("SELECT {'a': 1} AS plane_id", "view: plane_id of the result must be whole numbers"),
        ("SELECT [1] AS global_id", "view: global_id of the result must be text, got list"),
        ("SELECT 1 AS point_id, MAP {1: 2} AS colour", f"{COLOUR}map"),
        ("SELECT 1 AS point_id, [1] AS colour", f"{COLOUR}list"),
        ("SELECT 1 AS point_id, 'POINT (1 2)'::GEOMETRY AS colour", f"{COLOUR}binary"),
    ],
)  # fmt: skip
def test_columns_of_wrong_types_are_refused_and_the_next_query_is_answered(client, text, error):
    colour = "colour" if "colour" in text else None
    answer = client.post("query", json={"text": text, "colour": colour})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].startswith(error)
    assert client.post("query", json={"text": "SELECT 1"}).status_code == 200
    with duckdb.connect() as con:
        gc.disable()  # which would end a result that was left open
        try:
            with pytest.raises(QueryRefusedError):
                run(con, "", text, [Target(0, "points", 10, 9)], Limits(), colour=colour)
            assert run(con, "", "SELECT 1", [], Limits()).answer["rows"] == [[1]]
        finally:
            gc.enable()


@pytest.mark.parametrize("kind", ["DOUBLE", "INTEGER", "DECIMAL(9, 2)", "BIGINT"])
def test_elements_with_a_column_without_values_are_selected(kind):
    """As elevations of walls, which QL4BIM has: the column colours nothing."""
    with duckdb.connect() as con:
        text = f"SELECT 'a' AS global_id, NULL::{kind} AS elevation"
        answer = run(con, "", text, [], Limits()).answer
    assert answer["select"]["elements"] == {"global_ids": ["a"], "values": None, "legend": None}


def test_other_ids_are_json(client):
    text = "SELECT 1.50::DECIMAL(5, 2) AS global_id, 7::HUGEINT AS plane_id, NULL AS a_global_id"
    select = client.post("query", json={"text": text}).json()["select"]
    assert select["elements"]["global_ids"] == ["1.50"]
    assert select["planes"] == [7]


def test_of_columns_with_one_name_the_first_counts(client):
    """A join has some."""
    text = (
        "SELECT a.point_id, 1 AS v, b.point_id + 1 AS point_id, 'x' AS v "
        "FROM points AS a JOIN points AS b USING (point_id) WHERE point_id < 5"
    )
    answer = client.post("query", json={"text": text, "colour": "v"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["select"]["points"]["0"]["legend"][0]["value"] == 1


def test_bodies_that_are_too_long(client):
    answer = client.post("views.bcf", content=b"x" * ((32 << 20) + 1))
    assert answer.status_code == 413

    def parts():
        for _ in range(40):
            yield b"x" * (1 << 20)

    answer = client.post("views.bcf", content=parts())
    assert answer.status_code == 413


def test_odd_values_are_json(client):
    text = (
        "SELECT 'nan'::DOUBLE AS a, 'inf'::FLOAT AS b, "
        "170141183460469231731687303715884105727 AS c, '\\x00'::BLOB AS d, "
        "DATE '2026-01-01' AS e, [1, NULL] AS f, {'x': 'inf'::DOUBLE} AS g, range(100) AS h, "
        "MAP {'k': 1} AS i, INTERVAL 1 DAY AS j, NULL AS k, 1.50::DECIMAL(5, 2) AS l"
    )
    answer = client.post("query", json={"text": text})
    assert answer.status_code == 200, answer.text
    (row,) = answer.json()["rows"]
    assert row[:2] == [None, None]
    assert row[4:8] == ["2026-01-01", [1, None], {"x": None}, "100 values"]
    assert row[-1] == "1.50"
