"""The page in headless Chromium, over a scene whose every coordinate and answer is known here.

They need playwright, Chromium (`SPATIALQ_CHROMIUM` names one that is not on the path) and the
bundle, which `make page` makes. Where a point is in the picture is computed from the camera in the
page's address, not asked of the page.
"""

import base64
import copy
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from spatialq.demo.house import write_house

from .page_server import OFFSET, TOKEN, Scene, Server

pytestmark = pytest.mark.slow  # as a whole

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "spatialq" / "serve" / "page"
ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
             "--ignore-gpu-blocklist"]  # fmt: skip
ACCENT = (255, 122, 0)
FIRST, SECOND = (226, 74, 51), (52, 138, 189)
GROUND, BUILDING = (171, 129, 82), (222, 108, 84)
SIDE = 30
"""Points along each side of the field, 0.8 m apart."""


def cube(low, high):
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    faces = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
             (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]  # fmt: skip
    low, high = np.array(low, float), np.array(high, float)
    return {"vertices": low + corners * (high - low), "faces": faces}


def field():
    """Points at different heights, those in the east buildings."""
    x, y = (each.ravel() * 0.8 for each in np.meshgrid(np.arange(SIDE), np.arange(SIDE)))
    red, blue = np.full(x.size, 90, "u1"), np.full(x.size, 200, "u1")
    heights = np.where(x > 12, 0.5, 0.0)
    return {
        "x": x, "y": y, "z": heights, "classification": np.where(x > 12, 6, 2).astype("u1"),
        "intensity": np.arange(x.size).astype("u2"), "red": red, "green": red, "blue": blue,
    }  # fmt: skip


def element(name, kind, storey, low, high):
    grey = (200, 200, 200)
    rest = {"ifc_class": kind, "name": name, "storey": storey, "system": None, "colour": grey}
    return {"global_id": f"{name}0123456789abcdefghijk"[:22], **rest, **cube(low, high)}


WALL = element("wall", "IfcWall", "ground floor", (26, 0, 0), (30, 1, 4))
DUCT = element("duct", "IfcDuctSegment", "ground floor", (27, 4, 0), (28, 8, 1))
SLAB = element("slab", "IfcSlab", "cellar", (26, 12, 0), (32, 20, 0.4))
ELEMENTS = [WALL, DUCT, SLAB]
PLANES = [{"plane_id": 4, "nx": 0.0, "ny": 0.0, "nz": 1.0, "d": 0.0, "points": 12,
           "outline": [[0, 26, 0], [6, 26, 0], [6, 30, 0], [0, 30, 0]]}]  # fmt: skip
CLASHES = [
    {"name": "wall and duct", "overlap": 0.25, "status": "open", "group": "walls",
     "elements": [WALL["global_id"], DUCT["global_id"]], "box": [26, 0, 0, 30, 8, 4]},
    {"name": "duct and slab", "overlap": 0.5, "status": "resolved", "group": "slabs",
     "elements": [DUCT["global_id"], SLAB["global_id"]], "box": [26, 4, 0, 32, 20, 1]},
]  # fmt: skip


@pytest.fixture(scope="session")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = os.environ.get("SPATIALQ_CHROMIUM") or shutil.which("chromium")
    if found is None:
        pytest.skip("Chromium is not installed")
    if not (PAGE / "app.js").is_file():
        pytest.skip("the page was not bundled (make page)")
    with sync.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def scene():
    return Scene(field(), ELEMENTS, PLANES, CLASHES)


@pytest.fixture
def server(scene):
    started = Server(scene, PAGE)
    yield started
    started.close()


class Opened:
    """A page with what a person does in it; it must have said no error when it is closed."""

    def __init__(self, browser, url, width=640, height=480, scheme="light"):
        size = {"width": width, "height": height}
        self.tab = browser.new_page(
            viewport=size, reduced_motion="reduce", color_scheme=scheme, has_touch=width < 400
        )
        self.said, self.asked = [], []
        self.tab.on("console", lambda m: m.type == "error" and self.said.append(m.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.goto(url)
        self.idle()

    def idle(self):
        self.tab.evaluate("""async () => {
            const wait = () => new Promise((done) => setTimeout(done, 20));
            for (let k = 0; !window.spatialq && k < 1000; k++) await wait();
            await window.spatialq.whenIdle();
        }""")

    def panel(self, name):
        tab = self.tab.locator(f"#tabs [data-panel={name}]")
        if tab.get_attribute("aria-selected") != "true":
            tab.click()
        self.idle()

    def close_panels(self):
        selected = self.tab.locator("#tabs [aria-selected=true]")
        if selected.count():
            selected.click()
        self.idle()

    def state(self):
        return {name: each[0] for name, each in parse_qs(urlsplit(self.tab.url).fragment).items()}

    def project(self, points):
        """Where local points are in the window, by the camera of the address."""
        numbers = np.array(self.state()["v"].split(","), float)
        eye, target, fov = numbers[:3] - OFFSET, numbers[3:6] - OFFSET, numbers[6]
        back = (eye - target) / np.linalg.norm(eye - target)
        right = np.cross([0, 0, 1], back)
        right /= np.linalg.norm(right)
        axes = np.stack([right, np.cross(back, right), -back])
        seen = (np.atleast_2d(points) - eye) @ axes.T
        box = self.tab.locator("#canvas").bounding_box()
        scale = box["height"] / 2 / np.tan(np.radians(fov / 2))
        across = seen[:, :2] / seen[:, 2:] * scale
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        return np.stack([middle[0] + across[:, 0], middle[1] - across[:, 1]], axis=1)

    def click(self, point):
        self.tab.mouse.click(*self.project(point)[0])
        self.idle()

    def picture(self):
        """Take a screenshot without what lies over the scene."""
        show = "(how) => { for (const id of ['legend', 'tools']) document.getElementById(id).style"
        self.tab.evaluate(f"{show}.visibility = how; }}", "hidden")
        shot = self.tab.screenshot()
        self.tab.evaluate(f"{show}.visibility = how; }}", "")
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)

    def colours(self, points):
        """Colours at local points."""
        at = np.floor(self.project(points)).astype(int)
        return self.picture()[at[:, 1], at[:, 0]]

    def query(self, text, *, hide_others=False):
        self.panel("query")
        self.tab.fill("#query-text", text)
        self.tab.set_checked("#query-others", hide_others)
        self.tab.click("#query-run")
        self.tab.locator("#query-clear:not([disabled])").wait_for()
        self.idle()
        return self.tab.locator("#query-status").inner_text()

    def only_points(self):
        self.panel("scene")
        self.tab.uncheck("#contents label:has-text('house.ifc') input")
        self.tab.uncheck("#contents label:has-text('planes') input")
        self.close_panels()


@pytest.fixture
def opened(browser, server):
    page = Opened(browser, server.url)
    yield page
    assert page.said == []
    assert page.asked
    assert [url for url in page.asked if not url.startswith((server.url, "data:"))] == []
    page.tab.close()


@contextmanager
def shown(browser, scene, fragment="", **size):
    """A page of another scene, or of a link."""
    server = Server(scene, PAGE)
    page = Opened(browser, server.url + fragment, **size)
    yield page
    assert page.said == []
    page.tab.close()
    server.close()


def changed(scene, **cloud):
    """Give a scene whose cloud is told of otherwise."""
    other = copy.copy(scene)
    other.scene = copy.deepcopy(scene.scene)
    other.scene["clouds"][0] |= cloud
    return other


def near(colours, wanted, most=12):
    return np.abs(np.asarray(colours) - wanted).max(axis=-1) <= most


def every_point():
    points = field()
    return np.stack([points[axis] for axis in "xyz"], axis=1)


def test_the_bundle_is_that_of_the_sources(tmp_path):
    """The same sources and packages give the same bytes."""
    node, modules = shutil.which("node"), ROOT / "page" / "node_modules"
    if node is None or not modules.is_dir() or not (PAGE / "app.js").is_file():
        pytest.skip("Node.js, its packages in page, or the bundle are missing (make page)")
    subprocess.run([node, ROOT / "page" / "build.js", tmp_path], check=True)
    digests = [
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        for folder in (tmp_path, PAGE)
    ]
    assert set(digests[0]) == {"app.js", "app.css", "index.html", "THIRD_PARTY.txt"}
    assert digests[0] == digests[1]


def test_every_point_has_its_place_and_colour(opened):
    """What is far from the origin is drawn where it is, in its own colour."""
    opened.only_points()
    assert near(opened.colours(every_point()), (90, 90, 200)).mean() > 0.99


def test_picked_points_are_the_right_ones(opened):
    opened.only_points()
    points = every_point()
    for k in np.random.default_rng(0).choice(len(points), 8, replace=False):
        opened.click(points[k])
        row = opened.tab.locator("#details tr", has_text="point_id").locator("td")
        assert row.inner_text() == str(7 * k + 3)
        assert opened.state()["s"] == f"point:0:{7 * k + 3}"
        opened.tab.keyboard.press("Escape")


@pytest.mark.parametrize("which", ELEMENTS, ids=lambda each: each["name"])
def test_picked_elements_are_the_right_ones(opened, which):
    top = which["vertices"].max(0) * [0.5, 0.5, 1] + which["vertices"].min(0) * [0.5, 0.5, 0]
    opened.click(top)
    assert opened.state()["s"] == f"element:{which['global_id']}"
    assert opened.tab.locator("#details h2").inner_text() == which["name"]
    assert opened.tab.locator("#details").get_by_text(which["ifc_class"]).count()
    clashes = [c for c in CLASHES if which["global_id"] in c["elements"]]
    assert opened.tab.locator("#details details tbody tr").count() == len(clashes)


def test_a_picked_plane_shows_its_row(opened):
    opened.click([3, 28, 0])
    assert opened.state()["s"] == "plane:4"
    assert opened.tab.locator("#details h2").inner_text() == "Plane 4"


def test_the_points_of_a_plane_are_selected(opened):
    opened.click([3, 28, 0])
    table = opened.tab.locator("#details details")
    assert table.locator("summary .count").inner_text() == "129"
    assert not table.locator("table").is_visible()  # as it is long
    opened.tab.click("#details >> text=Select its points")
    opened.tab.locator("#query-clear:not([disabled])").wait_for(state="attached")
    opened.tab.locator("#details button.icon").click()
    opened.only_points()
    is_accent = near(opened.colours(every_point()), ACCENT)
    assert (is_accent == (np.arange(len(is_accent)) % 7 == 0)).mean() > 0.99
    wanted = 'SELECT point_id FROM memory.main."plane_points" WHERE plane_id = 4'
    assert opened.tab.input_value("#query-text") == wanted


def test_rows_of_other_tables_that_are_cut_say_so(browser, scene):
    other = copy.copy(scene)
    other._relation = lambda name, rows: {**scene._relation(name, rows), "is_cut": True}
    with shown(browser, other) as page:
        page.click([3, 28, 0])
        assert page.tab.locator("#details summary .count").inner_text() == "129 or more"


@pytest.mark.parametrize("hide_others", [False, True])
def test_a_query_repaints_its_points_and_no_others(opened, server, hide_others):
    opened.only_points()
    status = opened.query(
        f"SELECT point_id FROM points WHERE x - {OFFSET[0]} > 5 AND y - {OFFSET[1]} < 11",
        hide_others=hide_others,
    )
    points = every_point()
    wanted = (points[:, 0] > 5) & (points[:, 1] < 11)
    assert f"{wanted.sum()} points in the scene" in status
    opened.close_panels()
    colours = opened.colours(points)
    is_accent = near(colours, ACCENT)
    assert is_accent[wanted].mean() > 0.99
    assert not is_accent[~wanted].any()
    background = opened.picture()[60, 20]
    assert near(colours[~wanted], background, 2).mean() > 0.95 or not hide_others
    opened.panel("query")
    opened.tab.click("#query-clear")
    opened.close_panels()
    assert near(opened.colours(points), (90, 90, 200)).mean() > 0.99
    # each tile's marks were asked for once, and no points with them
    marks = [path for path in server.requests if "/query/" in path]
    assert len(marks) == len(set(marks)) == 5


def test_numbers_of_a_query_are_colours(opened):
    opened.only_points()
    opened.query("SELECT point_id, 2 * intensity AS twice FROM points WHERE intensity < 450")
    legend = opened.tab.locator("#legend").inner_text()
    assert legend.split() == ["twice", "0", "898"]
    opened.close_panels()
    colours = opened.colours(every_point())
    assert near(colours[:4], (68, 1, 84)).all()
    assert near(colours[446:450], (253, 231, 37)).all()
    brightness = colours[:450].sum(axis=1)
    assert (np.diff(brightness[::30]) >= 0).all()


def test_columns_are_colours(opened):
    opened.only_points()
    opened.panel("scene")
    opened.tab.select_option("#colours select >> nth=0", "classification")
    opened.close_panels()
    colours, points = opened.colours(every_point()), every_point()
    assert near(colours[points[:, 0] < 12], GROUND).mean() > 0.99
    assert near(colours[points[:, 0] > 12], BUILDING).mean() > 0.99
    assert opened.tab.locator("#legend").get_by_text("2 ground").count()
    opened.panel("scene")
    opened.tab.select_option("#colours select >> nth=0", "height")
    opened.close_panels()
    heights = opened.colours(points)
    assert not near(heights[points[:, 0] < 12][0], heights[points[:, 0] > 12][0], 20)


def test_a_class_of_points_is_hidden_in_the_legend(opened):
    """Its points are neither drawn nor picked."""
    opened.only_points()
    opened.panel("scene")
    opened.tab.select_option("#colours select >> nth=0", "classification")
    opened.tab.uncheck("#legend label:has-text('6 building') input")
    opened.close_panels()
    colours, points = opened.colours(every_point()), every_point()
    assert near(colours[points[:, 0] < 12], GROUND).mean() > 0.99
    assert near(colours[points[:, 0] > 12.8], opened.picture()[60, 20], 2).mean() > 0.99
    opened.click(points[10 * SIDE + 25])
    assert "s" not in opened.state()
    opened.tab.check("#legend label:has-text('6 building') input")
    opened.idle()
    assert near(opened.colours(points)[points[:, 0] > 12], BUILDING).mean() > 0.99


def test_categories_below_zero_are_hidden_and_rows_without_one_are_not(browser):
    """What is not drawn is not picked, and what is drawn is."""
    y = field()["y"]
    kind = np.select([y < 8, y < 16], [-1.0, 0.0], np.nan)
    points = {**field(), "kind": pa.array(kind, from_pandas=True)}  # NaN is NULL
    scene = Scene(points, ELEMENTS, PLANES, CLASHES)
    scene.scene["clouds"][0]["columns"][-1]["type"] = "integer"
    points = every_point()
    with shown(browser, scene) as page:
        page.only_points()
        page.panel("scene")
        page.tab.select_option("#colours select >> nth=0", "kind")
        page.close_panels()
        swatch = page.tab.locator("#legend label", has_text="-1").locator(".swatch")
        said = swatch.evaluate("(each) => getComputedStyle(each).backgroundColor")
        before = page.colours(points)
        assert near(before[y < 7.9], list(map(int, re.findall(r"\d+", said)))).mean() > 0.99
        for label in page.tab.locator("#legend label").all():
            label.locator("input").uncheck()
        page.idle()
        after, background = page.colours(points), page.picture()[60, 20]
        assert near(after[y < 15.9], background, 2).mean() > 0.99
        assert (near(after, before) & ~near(after, background, 2))[y > 16.1].mean() > 0.99
        page.click(points[5 * SIDE + 4])
        assert "s" not in page.state()
        page.click(points[25 * SIDE + 4])
        assert page.state()["s"] == f"point:0:{7 * (25 * SIDE + 4) + 3}"


def test_the_range_of_a_scale_stays_while_tiles_are_built(browser, scene):
    """The page asks each second how far they are."""
    other = changed(scene, state="building", progress=0.5)
    (cloud,) = other.scene["clouds"]
    cloud["columns"] = [each for each in cloud["columns"] if each["name"] in "xyz"]
    with shown(browser, other) as page:
        page.panel("scene")
        start = page.tab.locator("#colours input >> nth=0")

        def wait():
            for _ in range(2):
                with page.tab.expect_response("**/scene.json"):
                    pass
            page.idle()

        start.fill("520.1")
        wait()
        assert start.input_value() == "520.1"
        start.press("Enter")
        wait()
        assert start.input_value() == "520.1"
        assert page.tab.locator("#legend").inner_text().split()[1] == "520.1"
        z = next(each for each in cloud["columns"] if each["name"] == "z")
        z["low"] = 520.3  # there are other points now
        wait()
        assert start.input_value() == "520.3"


def test_a_link_keeps_its_colour_while_tiles_are_built(browser, scene):
    other = changed(scene, state="building", progress=0.5, columns=[], tileset=None)
    with shown(browser, other, "#c=classification") as page:
        page.tab.click("#copy-link")
        assert page.state()["c"] == "classification"
        other.scene["clouds"] = scene.scene["clouds"]
        page.tab.locator("#legend", has_text="2 ground").wait_for()


def test_hiding_a_category_needs_the_range_of_all_clouds(browser, scene):
    """Where two categories may have one place in the table of colours, none is hidden."""
    other = changed(scene)
    (cloud,) = other.scene["clouds"]
    far = {"name": "classification", "type": "integer", "min": -300, "max": 3}
    beside = {"id": 1, "tileset": None, "columns": [far]}
    other.scene["clouds"].insert(0, {**cloud, **beside})
    with shown(browser, other) as page:
        page.panel("scene")
        page.tab.select_option("#colours select >> nth=0", "classification")
        page.idle()
        assert page.tab.locator("#legend label:has-text('2 ground') input").is_disabled()


def test_a_scale_begins_without_what_may_be_noise(browser, scene):
    """With the quantiles that the server says, if it says any."""
    other = copy.copy(scene)
    other.scene = copy.deepcopy(scene.scene)
    for column in other.scene["clouds"][0]["columns"]:
        if column["name"] == "intensity":
            column |= {"low": 100, "high": 700}
    server = Server(other, PAGE)
    page = Opened(browser, server.url)
    page.panel("scene")
    page.tab.select_option("#colours select >> nth=0", "intensity")
    assert page.tab.locator("#legend").inner_text().split() == ["intensity", "100", "700"]
    assert page.said == []
    page.tab.close()
    server.close()


def test_a_row_of_a_list_flies_there(opened):
    opened.panel("lists")
    opened.tab.locator("#lists .row", has_text="duct and slab").click()
    opened.idle()
    target = np.array(opened.state()["v"].split(",")[3:6], float) - OFFSET
    assert target.tolist() == pytest.approx([29, 12, 0.5], abs=1e-3)
    picture = opened.picture()
    shaded = [(picture * 255 // np.maximum(picture.max(axis=2, keepdims=True), 1)), picture]
    for colour in (FIRST, SECOND):
        full = np.array(colour) * 255 // max(colour)
        assert (near(shaded[0], full, 8) & (shaded[1].max(axis=2) > 90)).sum() > 200
    opened.tab.keyboard.press("j")
    opened.idle()
    current = opened.tab.locator("#lists .row[aria-current=true]")
    assert "wall and duct" in current.inner_text()
    opened.tab.locator("#canvas").focus()
    opened.tab.keyboard.press("Escape")
    assert current.count() == 0


def test_a_section_box_of_a_list_cuts(opened):
    """What is outside the box is neither drawn nor picked."""
    opened.panel("lists")
    opened.tab.locator("#lists .row", has_text="wall and duct").click()
    opened.close_panels()
    opened.tab.keyboard.press("f")
    opened.idle()
    opened.click(SLAB["vertices"].mean(0))
    assert "s" not in opened.state()
    opened.tab.keyboard.press("Escape")
    opened.idle()
    opened.click([29, 16, 0.4])
    assert opened.state()["s"] == f"element:{SLAB['global_id']}"


def test_elements_are_hidden_by_class_and_storey(opened):
    opened.panel("scene")
    top = [28, 0.5, 4]
    opened.tab.uncheck("#facets .values label:has-text('IfcWall') input")
    opened.close_panels()
    opened.click(top)
    assert WALL["global_id"] not in opened.state().get("s", "")
    opened.panel("scene")
    opened.tab.select_option("#facets select >> nth=1", "storey")
    counts = opened.tab.locator("#facets .values .count").all_inner_texts()
    assert counts == ["1", "2"]
    opened.tab.click("#facets >> text=Show all")
    opened.close_panels()
    opened.click(top)
    assert opened.state()["s"] == f"element:{WALL['global_id']}"


def test_a_hidden_model_is_not_picked(opened):
    top = [28, 0.5, 4]
    opened.panel("scene")
    opened.tab.uncheck("#contents label:has-text('house.ifc') input")
    opened.click(top)
    assert "s" not in opened.state()
    opened.tab.check("#contents label:has-text('house.ifc') input")
    opened.click(top)
    assert opened.state()["s"] == f"element:{WALL['global_id']}"


def test_a_row_of_a_list_shows_elements_of_hidden_classes(opened):
    opened.panel("scene")
    opened.tab.uncheck("#facets .values label:has-text('IfcWall') input")
    opened.panel("lists")
    opened.tab.locator("#lists .row", has_text="wall and duct").click()
    opened.close_panels()
    opened.click([28, 0.5, 4])
    assert opened.state()["s"] == f"element:{WALL['global_id']}"


def test_a_section_of_the_sliders_is_removed(opened):
    opened.panel("scene")
    opened.tab.click("#part-section summary")
    remove = opened.tab.locator("#section >> text=Remove section")
    assert remove.is_disabled()
    highest = opened.tab.locator("#section input[aria-label='Highest z']")
    highest.fill("20")
    opened.close_panels()
    top = [28, 0.5, 4]
    opened.click(top)
    assert opened.state().get("s") != f"element:{WALL['global_id']}"
    opened.panel("scene")
    remove.click()
    assert remove.is_disabled()
    assert highest.input_value() == "200"
    opened.close_panels()
    opened.click(top)
    assert opened.state()["s"] == f"element:{WALL['global_id']}"


def test_heights_are_those_of_points(opened):
    """Elements are higher."""
    opened.panel("scene")
    opened.tab.select_option("#colours select >> nth=0", "height")
    low, high = OFFSET[2], OFFSET[2] + 0.5
    legend = opened.tab.locator("#legend").inner_text().replace("\u2009", "").split()
    assert [legend[0], *map(float, legend[1:])] == ["height", low, high]


def test_the_picture_is_saved(opened):
    with opened.tab.expect_download() as download:
        opened.tab.click("#tool-picture")
    assert download.value.suggested_filename == "scene.png"
    picture = np.asarray(Image.open(download.value.path()).convert("RGB")).astype(int)
    box = opened.tab.locator("#canvas").bounding_box()
    assert picture.shape[:2] == (box["height"], box["width"])
    top = opened.project(WALL["vertices"].max(0) * [0.5, 0.5, 1] + [13, 0, 0])
    x, y = np.floor(top[0] - [box["x"], box["y"]]).astype(int)
    assert not near(picture[y, x], picture[5, 5], 12)


def test_measuring_nothing_is_said(opened):
    opened.tab.click("#tool-measure")
    opened.tab.click("#canvas", position={"x": 5, "y": 5})
    note = opened.tab.locator("#note")
    assert note.inner_text() == "Nothing is there: pick a point, an element or a plane."


def test_a_query_selects_elements(opened):
    status = opened.query("SELECT global_id FROM elements WHERE ifc_class = 'IfcSlab'")
    assert "1 element in the scene" in status
    opened.tab.locator("#query-result tbody tr").click()
    opened.idle()
    assert opened.state()["s"] == f"element:{SLAB['global_id']}"


def test_a_link_opens_the_same_view(opened, browser):
    opened.tab.keyboard.press("1")
    opened.query("SELECT point_id FROM points WHERE classification = 6")
    opened.close_panels()
    points = every_point()
    opened.click(SLAB["vertices"].mean(0) * [1, 1, 2])
    again = Opened(browser, opened.tab.url)
    assert again.state() == opened.state()
    assert again.state()["q"].endswith("classification = 6")
    again.tab.keyboard.press("Escape")
    again.idle()
    assert (near(again.colours(points), ACCENT) == (points[:, 0] > 12)).mean() > 0.99
    assert again.said == []
    again.tab.close()


def test_a_link_opens_the_row_of_a_list_and_the_section(opened, browser):
    opened.panel("lists")
    opened.tab.locator("#lists .row", has_text="wall and duct").click()
    opened.idle()
    opened.tab.keyboard.press("1")
    opened.idle()
    opened.tab.click("#copy-link")
    again = Opened(browser, opened.tab.url)
    assert again.state() == opened.state()
    again.panel("lists")
    assert "wall and duct" in again.tab.locator("#lists .row[aria-current=true]").inner_text()
    again.close_panels()
    again.click(SLAB["vertices"].mean(0) * [1, 1, 2])  # outside the box, and faded
    assert "s" not in again.state()
    assert again.said == []
    again.tab.close()


def test_a_link_opens_its_row_in_a_list_of_another_order(opened, browser, scene):
    opened.panel("lists")
    opened.tab.locator("#lists .row", has_text="wall and duct").click()
    opened.idle()
    opened.tab.click("#copy-link")
    other = changed(scene)
    other.scene["lists"][0]["rows"].reverse()
    with shown(browser, other, f"#{urlsplit(opened.tab.url).fragment}") as page:
        page.panel("lists")
        current = page.tab.locator("#lists .row[aria-current=true]")
        assert "wall and duct" in current.inner_text()


def test_a_linked_plane_is_where_it_was(browser, scene):
    """Oblique, and far from zero: a normal of six digits would have it metres away."""
    normal = np.array([1.0, 2.0, 2.5]) / np.linalg.norm([1.0, 2.0, 2.5])
    at = np.array([28, 0.5, 2.0])
    numbers = [*normal, -normal @ (at + OFFSET)]
    with shown(browser, scene, f"#p={','.join(map(str, map(float, numbers)))}") as page:
        page.tab.click("#copy-link")
        *again, distance = map(float, page.state()["p"].split(","))
        assert again @ (at + OFFSET) + distance == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    "fragment",
    ["v=1,2,x,3,4,5,6,50", "v=1,2,3,4,5,6,", "b=1,2,3,4,5", "b=,,,,,", "p=0,0,0,-1", "p=1,x,0,0,1"],
)
def test_wrong_numbers_of_a_link_are_left_out(opened, browser, scene, fragment):
    opened.tab.click("#copy-link")
    with shown(browser, scene, f"#{fragment}") as page:
        page.tab.click("#copy-link")
        assert page.state() == opened.state()


def test_the_ends_of_a_section_may_be_typed_in_any_order(opened):
    opened.panel("scene")
    opened.tab.click("#part-section summary")
    section = {
        name: opened.tab.locator(f"#section input[aria-label='{name} z']")
        for name in ("From", "To", "Lowest", "Highest")
    }
    section["To"].fill(str(OFFSET[2] + 1.5))
    section["To"].press("Enter")
    section["From"].fill(str(OFFSET[2] + 3))
    section["From"].press("Enter")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert opened.tab.evaluate(focused) == "From z"
    ends = [float(section[name].input_value()) for name in ("From", "To")]
    assert ends == [OFFSET[2] + 1.5, OFFSET[2] + 3]
    highest = int(section["Highest"].input_value())
    section["Lowest"].fill("200")
    assert opened.tab.evaluate(focused) == "Lowest z"
    assert int(section["Lowest"].input_value()) == highest - 1


def test_a_section_is_where_its_numbers_say(opened):
    opened.panel("scene")
    opened.tab.click("#part-section summary")
    to = opened.tab.locator("#section input[aria-label='To z']")
    to.fill(str(OFFSET[2] + 1.5))
    to.press("Tab")
    assert opened.tab.locator("#section input[aria-label='Highest z']").input_value() != "200"
    opened.tab.click("#copy-link")
    assert opened.state()["b"].split(",")[5] == f"{OFFSET[2] + 1.5:.3f}"
    opened.close_panels()
    opened.click([28, 0.5, 4])  # the wall without its top
    assert opened.state().get("s") != f"element:{WALL['global_id']}"


def test_a_mistake_is_a_sentence(opened):
    opened.panel("query")
    opened.tab.fill("#query-text", "SELECT nothing FROM points")
    opened.tab.keyboard.press("Control+Enter")
    status = opened.tab.locator("#query-status.error")
    status.wait_for()
    assert "nothing" in status.inner_text()
    # the browser notes the answer's status by itself
    assert [text for text in opened.said if "400" not in text] == []
    opened.said.clear()


def test_history_and_completion(opened):
    opened.query("SELECT count(*) FROM points")
    opened.tab.fill("#query-text", "")
    opened.tab.focus("#query-text")
    opened.tab.keyboard.press("Alt+ArrowUp")
    assert opened.tab.input_value("#query-text") == "SELECT count(*) FROM points"
    opened.tab.fill("#query-text", "")
    opened.tab.keyboard.type("SELECT * FROM poi")
    opened.tab.locator("#query-completion li", has_text="points").wait_for()
    opened.tab.keyboard.press("Tab")
    opened.tab.keyboard.type(" WHERE classi")
    opened.tab.keyboard.press("Tab")
    assert opened.tab.input_value("#query-text") == "SELECT * FROM points WHERE classification"


def measured(page):
    """Measure between two points that differ in all axes; gives these, and what is said."""
    page.only_points()
    points = every_point()
    a, b = points[3 * SIDE + 4], points[20 * SIDE + 22]
    page.tab.click("#tool-measure")
    page.click(a)
    page.click(b)
    length, *axes = re.findall(r"-?[0-9.]+", page.tab.locator(".length").inner_text())
    unit = page.tab.locator(".length strong").inner_text().removeprefix(length)
    return b - a, float(length), unit, np.array(axes, float)


def test_a_length_is_that_of_its_points(opened):
    between, length, unit, axes = measured(opened)
    assert length == pytest.approx(np.linalg.norm(between), abs=0.002)
    assert (unit, axes.tolist()) == (" m", pytest.approx(between, abs=0.002))
    opened.tab.keyboard.press("Escape")
    assert opened.tab.locator(".length").count() == 0


@pytest.mark.parametrize(
    ("name", "scale"), [("ftUS", [1.0, 1.0]), ("ft", [1.0, 1 / 0.3048]), (None, [1.0, 1.0])]
)
def test_a_length_has_the_unit_of_the_coordinates(browser, scene, name, scale):
    """Heights of another unit are converted to that of x and y."""
    other = copy.copy(scene)
    other.scene = {**scene.scene, "units": {"name": name, "scale": scale}}
    server = Server(other, PAGE)
    page = Opened(browser, server.url)
    between, length, unit, axes = measured(page)
    wanted = between * [1, 1, scale[1]]
    assert length == pytest.approx(np.linalg.norm(wanted), abs=0.005)
    assert (unit, axes.tolist()) == (f" {name}" if name else "", pytest.approx(wanted, abs=0.005))
    assert page.said == []
    page.tab.close()
    server.close()


def test_depth_shading_darkens_what_is_behind_an_edge(browser):
    """Of a block of points on a field, from above, only the field beside the block is darker."""
    x, y = (each.ravel() * 0.05 for each in np.meshgrid(np.arange(160), np.arange(160)))
    is_high = (np.abs(x - 4) < 1) & (np.abs(y - 4) < 1)
    grey = np.full(x.size, 180, "u1")
    points = {"x": x, "y": y, "z": 2.0 * is_high, "red": grey, "green": grey, "blue": grey}
    server = Server(Scene(points, ELEMENTS, PLANES, CLASHES), PAGE)
    eye, target = np.add(OFFSET, [[4, 4 - 1e-3, 14], [4, 4, 0]])
    camera = ",".join(map(str, [*eye, *target, 50]))
    page = Opened(browser, f"{server.url}#v={camera}")
    page.panel("scene")
    page.tab.locator("#point-size").fill("8")
    page.close_panels()
    plain = page.picture()[..., 0]
    page.panel("scene")
    page.tab.check("#depth-shading")
    page.close_panels()
    shaded = page.picture()[..., 0]
    corners = page.project([[3.0, 3.0, 2.0], [5.0, 5.0, 2.0], [0.5, 0.5, 0.0], [7.5, 7.5, 0.0]])
    (left, bottom), (right, top), (west, south), (east, north) = corners.round().astype(int)
    rows, columns = np.mgrid[: plain.shape[0], : plain.shape[1]]
    # how far from the block in the picture: less than 0 inside
    apart = np.maximum.reduce([left - columns, columns - right, top - rows, rows - bottom])
    is_field = (columns > west) & (columns < east) & (rows > north) & (rows < south)
    assert near(plain[is_field, None], [180], 2).all()
    change = shaded - plain
    size = 8  # of points: the block is wider by up to half of it
    assert np.abs(change[is_field & ((apart <= 0) | (apart > size))]).max() <= 2
    beside = [change[is_field & (apart == k)].mean() for k in range(1, size + 1)]
    assert min(beside) < -100
    page.panel("scene")
    page.tab.uncheck("#depth-shading")
    page.close_panels()
    assert (page.picture()[..., 0] == plain).all()
    assert page.said == []
    page.tab.close()
    server.close()


def test_views_are_kept_and_restored(opened):
    opened.tab.keyboard.press("1")
    opened.panel("views")
    before = opened.state()["v"]
    opened.tab.fill("#views input[type=text]", "from above")
    opened.tab.click("#views >> text=Save view")
    saved = opened.tab.locator("#views .row", has_text="from above")
    saved.wait_for()
    opened.tab.locator("#canvas").focus()
    opened.tab.keyboard.press("3")
    opened.idle()
    assert opened.state()["v"] != before
    assert "They end with the server" in opened.tab.locator("#views").inner_text()
    saved.click()
    opened.idle()
    assert opened.state()["v"] == before


def test_a_server_that_is_gone_is_said(browser, scene):
    server = Server(scene, PAGE)
    page = Opened(browser, server.url)
    server.close()
    page.panel("query")
    page.tab.fill("#query-text", "SELECT 1")
    page.tab.click("#query-run")
    page.tab.locator("#query-status.error", has_text="does not answer").wait_for()
    page.tab.close()


@pytest.mark.parametrize("width", [360, 768, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_width_has_all(browser, server, width, scheme):
    """Nothing is wider than the window, everything to press has a name."""
    page = Opened(browser, server.url, width, 740, scheme)
    for panel in ("scene", "lists", "views", "query"):
        if page.tab.locator(f"#tabs [data-panel={panel}]").is_visible():
            page.panel(panel)
        assert page.tab.evaluate("document.documentElement.scrollWidth") == width
        assert page.tab.locator("#canvas").bounding_box()["height"] > 200
    unnamed = page.tab.evaluate("""() => {
        const all = document.querySelectorAll('button, input, select, textarea, a, canvas');
        const name = (each) =>
            each.textContent.trim() || each.ariaLabel || each.labels?.length || each.title;
        return [...all].filter((each) => !name(each)).map((each) => each.outerHTML);
    }""")
    assert unnamed == []
    page.tab.locator("#help-open").click()
    assert page.tab.locator("#help").is_visible()
    assert page.said == []
    page.tab.close()


def test_only_the_page_of_the_token(opened):
    assert urlsplit(opened.tab.url).path == f"/{TOKEN}/"


# The same with the server of `spatialq view`.


@contextmanager
def started(folder, *files):
    """Run `spatialq view`; gives its address."""
    for name in ("starlette", "uvicorn"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    command = [sys.executable, "-m", "spatialq", "view", *files, "--port", "0", "--no-browser"]
    environment = {**os.environ, "SPATIALQ_CACHE_DIR": str(folder / "cache")}
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, env=environment, **said) as process:
        try:
            yield next(
                found[0] for line in process.stdout if (found := re.search(r"http://\S+/", line))
            )
        finally:
            process.terminate()


def write_field(path, place):
    import laspy

    points = field()
    header = laspy.LasHeader(point_format=2, version="1.2")
    header.offsets, header.scales = place, [0.001] * 3
    las = laspy.LasData(header)
    for k, axis in enumerate("xyz"):
        setattr(las, axis, points[axis] + place[k])
    for name in ("classification", "intensity"):
        setattr(las, name, points[name])
    for name in ("red", "green", "blue"):
        setattr(las, name, points[name].astype("u2") * 257)
    las.write(path)


@pytest.fixture(scope="module")
def cloud_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cloud")
    write_field(folder / "field.laz", OFFSET)
    with started(folder, folder / "field.laz") as url:
        yield url


@pytest.fixture
def cloud(browser, cloud_server):
    page = Opened(browser, cloud_server)
    for _ in range(60):  # the tiles are made while the page shows a preview
        if not page.tab.get_by_text("building").count():
            break
        page.tab.wait_for_timeout(500)
    page.idle()
    yield page
    assert page.said == []
    assert [url for url in page.asked if not url.startswith((cloud_server, "data:"))] == []
    page.tab.close()


def test_the_server_gives_the_picked_points(cloud):
    points = every_point()
    for k in np.random.default_rng(1).choice(len(points), 5, replace=False):
        cloud.click(points[k])
        cloud.tab.locator("#details th[scope=row]", has_text="point_id").wait_for()
        rows = cloud.tab.locator("#details .body > table tr").all_inner_texts()
        row = dict(each.split("\t") for each in rows)
        place = [float(row[axis]) for axis in "xyz"]
        assert place == pytest.approx(points[k] + OFFSET, abs=1e-3)
        assert int(row["intensity"]) == k
        cloud.tab.keyboard.press("Escape")


def test_the_server_repaints(cloud):
    cloud.query("SELECT point_id FROM points WHERE intensity % 3 = 0 AND classification = 2")
    cloud.close_panels()
    points = field()
    wanted = (points["intensity"] % 3 == 0) & (points["classification"] == 2)
    is_accent = near(cloud.colours(every_point()), ACCENT)
    assert is_accent[wanted].mean() > 0.99
    assert not is_accent[~wanted].any()


def test_the_server_gives_the_picked_elements(browser, tmp_path):
    """From above, the element at a place is the one whose box reaches highest there."""
    pytest.importorskip("ifcopenshell", reason="ifcopenshell is not installed")
    write_house(tmp_path / "house.ifc")
    with started(tmp_path, tmp_path / "house.ifc") as url:
        page = Opened(browser, url)
        rows = page.tab.evaluate("fetch('elements.json').then((answer) => answer.json())")
        picks_roofs(page, rows)
        assert page.said == []
        page.tab.close()


def picks_roofs(page, rows):
    boxes = np.array([row["box"] for row in rows]) - np.tile(OFFSET, 2)
    page.tab.keyboard.press("1")
    page.idle()
    roofs = [k for k, row in enumerate(rows) if row["name"] and "roof" in row["name"]]
    assert roofs
    for k in roofs:
        centre = (boxes[k, :3] + boxes[k, 3:]) / 2
        page.click(centre)
        over = (boxes[:, :2] <= centre[:2]).all(axis=1) & (boxes[:, 3:5] >= centre[:2]).all(axis=1)
        highest = max(np.flatnonzero(over), key=lambda each: boxes[each, 5])
        assert page.state()["s"] == f"element:{rows[highest]['global_id']}"
        page.tab.keyboard.press("Escape")


# The same from the files that `--export` writes, from a disk and by a server that knows nothing.

BESIDE = np.array([30.0, 0.0, 0.0])
"""Where the field is, beside the house."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("ifcopenshell", reason="ifcopenshell is not installed")
    files = tmp_path_factory.mktemp("files")
    write_field(files / "field.laz", BESIDE)
    write_house(files / "house.ifc")
    target = files / "the page #1"
    command = [sys.executable, "-m", "spatialq", "view", "field.laz", "house.ifc", "--export"]
    environment = {**os.environ, "SPATIALQ_CACHE_DIR": str(files / "cache")}
    subprocess.run([*command, target], env=environment, cwd=files, check=True)
    return target


@pytest.fixture(params=["a double click", "a web server"])
def exported(request, browser, folder):
    server = None
    address = folder.as_uri() + "/"
    if request.param == "a web server":
        handler = partial(SimpleHTTPRequestHandler, directory=folder)
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        address = f"http://127.0.0.1:{server.server_port}/"
        threading.Thread(target=server.serve_forever, daemon=True).start()
    page = Opened(browser, f"{address}index.html")
    yield page
    assert page.said == []
    assert [url for url in page.asked if not url.startswith((address, "data:"))] == []
    page.tab.close()
    if server is not None:
        server.shutdown()
        server.server_close()


def test_an_exported_page_has_no_query_box(exported):
    tabs = exported.tab.locator("#tabs button:visible")
    assert tabs.all_inner_texts() == ["Scene", "Lists"]
    assert exported.tab.locator("#query-text").count() == 0


def test_an_exported_page_asks_nobody_whatever_it_runs(exported):
    asked = "fetch('https://example.org').then(() => 'answered', () => 'refused')"
    assert exported.tab.evaluate(asked) == "refused"
    assert any("Content Security Policy" in text for text in exported.said)
    exported.said.clear()
    exported.asked = [url for url in exported.asked if "example.org" not in url]


def test_an_exported_page_shows_its_points(exported):
    exported.tab.keyboard.press("1")
    exported.panel("scene")
    exported.tab.uncheck("#contents label:has-text('house.ifc') input")
    exported.idle()
    points = every_point() + BESIDE - OFFSET
    exported.close_panels()
    assert near(exported.colours(points), (90, 90, 200)).mean() > 0.99
    for k in np.random.default_rng(4).choice(len(points), 4, replace=False):
        exported.click(points[k])
        exported.tab.locator("#details th", has_text="point_id").wait_for()
        point, *place = exported.tab.locator("#details td").all_inner_texts()
        assert point == str(k)
        assert list(map(float, place)) == pytest.approx(points[k] + OFFSET, abs=1e-3)
        assert exported.state()["s"] == f"point:0:{k}"
        exported.tab.keyboard.press("Escape")
    exported.panel("scene")
    exported.tab.select_option("#colours select >> nth=0", "classification")
    exported.close_panels()
    colours, east = exported.colours(points), field()["classification"] == 6
    assert near(colours[~east], GROUND).mean() > 0.99
    assert near(colours[east], BUILDING).mean() > 0.99


def test_an_exported_page_shows_its_elements(exported, folder):
    script = (folder / "elements.json.js").read_text()
    text = base64.b64decode(script.removeprefix('spatialqFile("').removesuffix('")\n'))
    picks_roofs(exported, json.loads(gzip.decompress(text)))


def test_a_file_that_is_missing_is_said(browser, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "page")
    (tmp_path / "page" / "scene.json.js").unlink()
    page = browser.new_page()
    page.goto((tmp_path / "page" / "index.html").as_uri())
    page.locator("#note.error", has_text="scene.json.js cannot be read.").wait_for()
    page.close()
