"""`spatialq.view`: what is selected in the page is a query, and rows that Python selects are there.

What a person does in the page is done in headless Chromium; without it, the page's messages are
sent as the page sends them.
"""

import json
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import spatialq
from spatialq.errors import QueryError
from spatialq.serve import notebook
from spatialq.serve.guard import POLICY

from .test_page import browser  # noqa: F401  (a fixture)

pytestmark = pytest.mark.slow

N = 400


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as opened:
        k = np.arange(N)
        rows = {"point_id": k * 3, "x": k % 20 + 4e5, "y": k // 20 + 5.6e6, "z": k % 7 + 0.5}
        opened.register("given", pa.table(rows))
        opened.execute("CREATE TABLE scan AS FROM given")
        yield opened


@pytest.fixture
def scan(con):
    return spatialq.table(con, "scan")


@pytest.fixture
def view(scan):
    found = spatialq.view(scan)
    ready(found)
    yield found
    found.close()


def ask(view, path, body=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{view.address}{path}", data, headers or {})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def ready(view):
    while "building" in (each["state"] for each in json.loads(ask(view, "scene.json"))["clouds"]):
        pass


def ids(query):
    return sorted(query.select("point_id").fetchall())


def test_nothing_is_selected_at_first(view, scan):
    assert view.selected.fetchall() == []
    assert view.selected.columns == scan.columns


def test_points_that_were_clicked_are_a_query_of_the_rows(view):
    ask(view, "chosen", {"kind": "point", "cloud": 0, "ids": ["33", "6"]})
    assert view.selected.fetchall() == [
        (6, 400002.0, 5600000.0, 2.5),
        (33, 400011.0, 5600000.0, 4.5),
    ]
    assert isinstance(view.selected, spatialq.Points)
    ask(view, "chosen", {})
    assert view.selected.count() == 0


@pytest.mark.parametrize(
    "text",
    [
        "SELECT point_id FROM points WHERE z > 4",
        "WITH high AS (FROM POINTS WHERE z > 4) SELECT point_id, z FROM high; ",
        "FROM points WHERE z > 4 -- the high ones",
    ],
)
def test_the_query_of_the_box_is_one_of_the_rows(view, scan, text):
    said = json.loads(ask(view, "query", {"text": text}))
    assert said["select"]["points"]["0"]["count"] == scan.where("z > 4").count()
    ask(view, "chosen", {"kind": "point", "cloud": 0, "ids": [], "text": text})
    assert ids(view.selected) == ids(scan.where("z > 4"))


def test_rows_that_python_selects_are_those_of_the_tiles(view, scan):
    view.selected = "z > 4"
    said = json.loads(ask(view, "chosen"))
    key, count = said["result"]["id"], scan.where("z > 4").count()
    assert said["number"] == 1
    assert said["result"]["select"]["points"]["0"] == {
        "kind": "mask",
        "count": count,
        "column": None,
    }
    of_tile = np.frombuffer(ask(view, "clouds/0/ids/r"), "<i8")
    mask = np.unpackbits(np.frombuffer(ask(view, f"query/{key}/clouds/0/r"), np.uint8),
                         bitorder="little")[: len(of_tile)]  # fmt: skip
    assert sorted(of_tile[mask == 1].tolist()) == [key for (key,) in ids(scan.where("z > 4"))]
    ask(view, "chosen", {"kind": "point", "cloud": 0, "ids": [], "result": key})
    assert ids(view.selected) == ids(scan.where("z > 4"))
    # a further column colours them
    view.selected = scan.select("point_id", "z")
    said = json.loads(ask(view, "chosen"))
    assert said["number"] == 2
    assert said["result"]["select"]["points"]["0"]["column"] == "z"


def test_elements_and_pairs_are_selected_by_their_global_ids(con, house):
    elements = spatialq.read_ifc(con, house / "house.ifc")
    walls = elements.is_a("IfcWall")
    pairs = elements.is_a("IfcFlowSegment").intersects_with(walls, tolerance=0.002)
    first = pairs.order("a", "b").limit(1).select("a", "b").fetchall()[0]
    for query, chosen, condition in (
        (walls, first[1:], f"global_id = '{first[1]}'"),
        (pairs, first[:1], f"a = '{first[0]}'"),
        (pairs, first, f"a = '{first[0]}' AND b = '{first[1]}'"),
    ):
        view = spatialq.view(query)
        try:
            known = {each["global_id"] for each in json.loads(ask(view, "elements.json"))}
            assert known >= set(chosen)
            ask(view, "chosen", {"kind": "element", "ids": list(chosen)})
            found = view.selected
            assert type(found) is type(query)
            assert found.count() == query.where(condition).count() > 0
        finally:
            view.close()


def test_a_relation_of_duckdb_is_shown(con):
    view = spatialq.view(con.sql("FROM scan WHERE z > 4"))
    try:
        cloud = json.loads(ask(view, "scene.json"))["clouds"][0]
        assert cloud["points"] == con.sql("FROM scan WHERE z > 4").count("*").fetchall()[0][0]
    finally:
        view.close()


def test_what_cannot_be_shown_is_said(con, scan, view):
    with pytest.raises(QueryError, match=r"^view: rows must be queries, got none$"):
        spatialq.view()
    with pytest.raises(
        QueryError, match=r"^view: rows must be a query or a relation of DuckDB, got"
    ):
        spatialq.view("scan")
    with pytest.raises(
        QueryError, match=r"^view: rows must have point_id, x, y and z, or .* got z$"
    ):
        spatialq.view(scan.select("z"))
    with pytest.raises(
        QueryError, match=r"^view: selected must have point_id, global_id or .* got z"
    ):
        view.selected = scan.select("z")
    assert con.sql(
        "SELECT database_name FROM duckdb_databases() WHERE NOT internal"
    ).fetchall() == [("memory",)]


def test_a_page_that_is_closed_has_no_server(scan):
    view = spatialq.view(scan)
    view.close()
    with pytest.raises(urllib.error.URLError):
        ask(view, "health")


def test_only_origins_that_were_said_may_show_the_page(view):
    framed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe"}
    for headers in (framed, {"Sec-Fetch-Site": "cross-site"}):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            ask(view, "", headers=headers)
    view._permit(["http://localhost:8888", "vscode-webview://1abc"])
    request = urllib.request.Request(view.address, headers=framed)
    with urllib.request.urlopen(request, timeout=60) as answer:
        policy = answer.headers["content-security-policy"]
    assert policy == f"{POLICY}http://localhost:8888 vscode-webview://1abc"
    for path in ("health", "scene.json", "index.html"):  # what is no page for a frame
        with pytest.raises(urllib.error.HTTPError, match="403"):
            ask(view, path, headers=framed)
    with pytest.raises(ValueError, match=r"^view: an origin must be such as http://localhost:8888"):
        view._permit(["*; script-src *"])


def test_show_prints_where_there_is_no_notebook(scan, capfd):
    assert scan.limit(2).show() is None
    assert "point_id" in capfd.readouterr().out


def test_show_gives_a_view_in_a_notebook_that_has_the_extra(scan, monkeypatch, capfd):
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setattr(notebook, "missing", lambda _: "")
    view = scan.show()
    view.close()
    assert isinstance(view, notebook.View)
    assert scan.select("z").show() is None
    monkeypatch.setattr(notebook, "missing", lambda extra: extra == "notebook" and "it is missing")
    assert scan.show() is None


def test_a_front_end_without_widgets_has_a_sentence(view, monkeypatch):
    monkeypatch.setattr(notebook, "missing", lambda _: "it is missing")
    said = f"<View: points at {view.address}>\nit is missing"
    assert view._repr_mimebundle_() == {"text/plain": said}
    with pytest.raises(QueryError, match=r"^view: it is missing$"):
        _ = view.widget


def test_the_widget_has_the_address_once_its_origins_are_known(view):
    pytest.importorskip("anywidget", reason="the extra [notebook] is not installed")
    bundle = view._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["text/plain"] == repr(view)
    assert "application/vnd.jupyter.widget-view+json" in data
    widget = view.widget
    assert widget.address == ""
    widget.set_state({"origins": ["http://localhost:8888"]})
    assert widget.address == view.address
    assert ask(view, "", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe"})


HOST = """<!doctype html><body><div id="cell"></div><script type="module">
import widget from "./widget.js";
const values = { address: "", height: 500 }, heard = {};
const model = {
  get: (name) => values[name],
  set: (name, value) => { values[name] = value; },
  save_changes: async () => {
    values.address = await window.permit(values.origins);
    heard["change:address"]?.();
  },
  on: (name, run) => { heard[name] = run; },
  off: () => {},
};
widget.render({ model, el: document.getElementById("cell") });
</script>"""


@pytest.fixture
def host():
    """A page of another origin that shows a widget as anywidget does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            is_script = self.path == "/widget.js"
            self.send_response(200)
            self.send_header("content-type", "text/javascript" if is_script else "text/html")
            self.end_headers()
            self.wfile.write((notebook.FRONT_END if is_script else HOST).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


IDLE = """async () => {
    const wait = () => new Promise((done) => setTimeout(done, 20));
    for (let k = 0; !window.spatialq && k < 1000; k++) await wait();
    await window.spatialq.whenIdle();
}"""


def test_in_a_frame_of_a_notebook_selections_go_both_ways(browser, host, view, scan):  # noqa: F811
    tab = browser.new_page(viewport={"width": 1000, "height": 600}, reduced_motion="reduce")
    said = []
    tab.on("console", lambda m: m.type == "error" and said.append(m.text))
    tab.on("pageerror", lambda error: said.append(str(error)))

    def permit(origins):
        view._permit(origins)
        return view.address

    tab.expose_function("permit", permit)
    tab.goto(host)
    frame = tab.frame_locator("iframe")
    frame.locator("#canvas").wait_for()
    (page,) = tab.frames[1:]
    page.evaluate(IDLE)
    # the box selects: Python has it as a query
    frame.locator("#query-text").fill("SELECT point_id FROM points WHERE z > 4")
    with tab.expect_response(
        lambda each: each.url.endswith("/chosen") and each.request.method == "POST"
    ):
        frame.locator("#query-run").click()
    assert ids(view.selected) == ids(scan.where("z > 4"))
    # Python selects: the page has its rows, and tells that it has them
    with tab.expect_response(
        lambda each: each.url.endswith("/chosen") and each.request.method == "POST"
    ):
        view.selected = scan.where("z < 1").select("point_id")
    page.evaluate(IDLE)
    count = scan.where("z < 1").count()
    assert f"{count} points in the scene" in frame.locator("#query-status").inner_text()
    assert ids(view.selected) == ids(scan.where("z < 1"))
    # a click on a row of the result selects its point
    with tab.expect_response(
        lambda each: each.url.endswith("/chosen") and each.request.method == "POST"
    ):
        frame.locator("#query-result tbody tr").first.click()
    assert ids(view.selected) == ids(scan.where("z < 1"))[:1]
    # of a click and a result the later one counts
    with tab.expect_response(
        lambda each: each.url.endswith("/chosen") and each.request.method == "POST"
    ):
        view.selected = scan.where("z > 4").select("point_id")
    assert ids(view.selected) == ids(scan.where("z > 4"))
    assert page.title() == "points · spatialq"
    assert said == []
    tab.close()


def test_another_page_cannot_show_it(browser, host, view):  # noqa: F811
    tab = browser.new_page()
    tab.expose_function("permit", lambda _: view.address)
    view._permit(["http://localhost:1"])
    with tab.expect_event("console", lambda each: "frame-ancestors" in each.text):
        tab.goto(host)
    assert tab.frames[1].url != view.address
    tab.close()
