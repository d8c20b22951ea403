"""The tasks of docs/view.md, done as there, on the house of the demo: results, and clicks.

Whoever knows CloudCompare and Solibri would try these first. What a person does counts as one:
a click, a choice in a menu, a text, a slider.
"""

import csv
import io
import re
import zipfile
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from PIL import Image

import spatialq
from spatialq.serve.app import Server
from spatialq.serve.limits import Limits
from spatialq.serve.scene import open_scene
from spatialq.serve.selection import TRUE
from spatialq.serve.server import Listening

from .test_page import ACCENT, browser, near  # noqa: F401  (browser is a fixture)

pytestmark = pytest.mark.slow

IDLE = """async () => {
    while (!window.spatialq) await new Promise((done) => setTimeout(done, 20));
    await window.spatialq.whenIdle();
}"""
MOST = 600_000
"""Milliseconds that anything may take: on a busy machine, a first query compiles for minutes."""
PAGE = Path(__file__).parents[2] / "docs" / "view.md"


@pytest.fixture(scope="module")
def con(house):
    with spatialq.connect() as opened:
        spatialq.load(opened, house / "house.laz", "points")
        spatialq.load(opened, house / "house.ifc")
        yield opened


@pytest.fixture(scope="module")
def served(house, con, tmp_path_factory):
    """The scene of the tasks: cloud, model and clashes."""
    clashes = tmp_path_factory.mktemp("tasks") / "clashes.parquet"
    pairs = spatialq.table(con, "elements").intersects_with(tolerance=0.002)
    spatialq.write(pairs.with_names().where("a < b").order("a", "b"), clashes)
    sources = [str(house / "house.laz"), str(house / "house.ifc"), str(clashes)]
    folder = tmp_path_factory.mktemp("cache_of_tasks")
    with open_scene(sources, limits=Limits(seconds=300.0), cache=folder) as scene:
        scene.build()
        with closing(Listening(Server(scene))) as listening:
            listening.start()
            yield listening.address


class Person:
    """Someone at the page, whose actions count."""

    def __init__(self, driven, address, **how):
        how = {"viewport": {"width": 1440, "height": 900}, **how}
        self.tab = driven.new_page(reduced_motion="reduce", **how)
        self.tab.set_default_timeout(MOST)
        self.said, self.actions = [], 0
        self.tab.on("console", lambda m: m.type == "error" and self.said.append(m.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.goto(address)
        self.tab.evaluate(IDLE)

    def did(self):
        self.actions += 1
        self.tab.evaluate(IDLE)

    def click(self, what, **how):
        self.tab.locator(what).first.click(**how)
        self.did()

    def choose(self, what, value):
        self.tab.locator(what).first.select_option(value)
        self.did()

    def write(self, what, text):
        self.tab.locator(what).first.fill(text)
        self.did()

    def slide(self, what, value):
        self.write(what, value)

    def read(self, what):
        return self.tab.locator(what).first.inner_text()

    def query(self, text):
        self.write("#query-text", text)
        with self.tab.expect_response(lambda each: each.url.endswith("/query")):
            self.tab.click("#query-run")
        self.tab.locator("#query-status", has_text="row").wait_for()
        self.did()
        return self.read("#query-status").replace("\u2009", "")

    def picture(self):
        shot = self.tab.locator("#canvas").screenshot()
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)


def has_hue(picture, colour):
    """Whether a colour is seen, however bright it is."""
    bright = picture.max(axis=2, keepdims=True)
    hues = picture * 255 // np.maximum(bright, 1)
    full = np.array(colour) * 255 // max(colour)
    return (near(hues, full, 8) & (bright[..., 0] > 60)).sum() > 100


@pytest.fixture
def person(browser, served):  # noqa: F811
    found = Person(browser, served)
    yield found
    assert found.said == []
    found.tab.close()


def told():
    """The clicks that the page tells of, by the names of the tasks."""
    rows = re.findall(r"^\| (\d+)\. ([^|]+?) \|.*\| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    return {int(number): int(clicks) for number, _, clicks in rows}


def count(con, text):
    return con.sql(text).fetchall()[0][0]


def test_01_all_is_there(person, con):
    """Cloud, model and clashes are open, and the list comes first."""
    rows = count(con, "SELECT count(*) FROM intersects_with('elements', tolerance := 0.002)")
    assert person.tab.locator("#lists .row").count() == rows
    contents = person.tab.locator("#contents").text_content().replace("\u2009", "")
    assert f"house.laz{count(con, 'SELECT count(*) FROM points')}" in contents
    assert person.actions == told()[1]


def test_02_a_class_is_hidden(person):
    before = person.picture()
    person.click("#tabs [data-panel=scene]")
    person.click("#facets .values label:has-text('IfcWall') input")
    assert person.actions == told()[2]
    assert (before != person.picture()).any(axis=2).mean() > 0.01


def test_03_points_are_coloured_by_height(person, con):
    """From the lowest to the highest without 2 % of the points at either end."""
    person.click("#tabs [data-panel=scene]")
    person.choose("#colours select", "height")
    low, high = con.sql("SELECT quantile_cont(z, [0.02, 0.98]) FROM points").fetchall()[0][0]
    shown = [float(each) for each in person.read("#legend .ends").split()]
    assert shown == pytest.approx([low, high], rel=2e-3, abs=1e-3)
    assert person.actions == told()[3]


def test_04_a_point_is_picked(person, con):
    """Also where the model that hid it was unchecked."""
    person.click("#tabs [data-panel=scene]")
    person.click("#contents label:has-text('house.ifc') input")
    person.click("#canvas", position={"x": 590, "y": 500})
    cells = person.tab.locator("#details table").first.locator("tr")
    row = dict(line.split("\t") for line in cells.all_inner_texts())
    true = con.sql(f"SELECT x, y, z FROM points WHERE point_id = {row['point_id']}").fetchall()[0]
    assert [float(row[axis]) for axis in "xyz"] == pytest.approx(true, abs=5e-4)
    assert person.actions == told()[4]


def test_05_a_length_is_measured(person):
    person.click("#tool-measure")
    person.click("#canvas", position={"x": 540, "y": 560})
    person.click("#canvas", position={"x": 680, "y": 520})
    numbers = [float(each) for each in re.findall(r"-?\d+\.\d+", person.read("#labels .length"))]
    assert numbers[0] == pytest.approx(np.linalg.norm(numbers[1:4]), abs=2e-3)
    assert numbers[0] > 0.5
    assert person.actions == told()[5]


def test_06_a_section_box_cuts(person):
    person.click("#tabs [data-panel=scene]")
    before = person.picture()
    person.click("#part-section summary")
    person.slide("#section input[aria-label='Highest z']", "90")
    assert (before != person.picture()).any(axis=2).mean() > 0.01
    assert person.actions == told()[6]


def test_07_a_clash_is_flown_to(person, con):
    person.click("#lists .row:has-text('pipe through beam')")
    assert person.tab.locator("#lists .row[aria-current=true]").count() == 1
    box = con.sql(
        "SELECT min(xmin), min(ymin), min(zmin), max(xmax), max(ymax), max(zmax) FROM elements "
        "WHERE name IN ('beam east', 'heating pipe through beam')"
    ).fetchall()[0]
    link = parse_qs(urlsplit(person.tab.url).fragment)["v"][0].split(",")
    target = (np.array(box[:3]) + box[3:]) / 2
    assert [float(each) for each in link[3:6]] == pytest.approx(target.tolist(), abs=2e-3)
    assert person.actions == told()[7]


def test_08_a_view_goes_out_as_bcf(person):
    person.click("#lists .row")
    began = person.actions
    person.click("#tabs [data-panel=views]")
    person.write("#views input[type=text]", "Duct in wall")
    person.click("#views button[type=submit]")
    person.tab.locator("#views .row", has_text="Duct in wall").first.wait_for()
    with person.tab.expect_download() as download:
        person.click("#views a.button")
    with zipfile.ZipFile(download.value.path()) as archive:
        (markup,) = [each for each in archive.namelist() if each.endswith("markup.bcf")][-1:]
        assert "Duct in wall" in archive.read(markup).decode()
    assert person.actions - began == told()[8]


def test_09_a_query_repaints_points(person, con):
    said = person.query("SELECT point_id FROM points WHERE z > 3")
    assert f"{count(con, 'SELECT count(*) FROM points WHERE z > 3')} points in the scene" in said
    assert near(person.picture(), ACCENT).sum() > 100
    assert person.actions == told()[9]


def test_10_sql_selects_elements(person, con):
    said = person.query("SELECT global_id FROM elements WHERE is_a(ifc_class, 'IfcWall')")
    walls = count(con, "SELECT count(*) FROM elements WHERE is_a(ifc_class, 'IfcWall')")
    assert f"{walls} elements in the scene" in said
    assert person.actions == told()[10]
    # a further column colours them, as the legend says
    person.query("SELECT global_id, is_a(ifc_class, 'IfcWall') AS is_wall FROM elements")
    assert has_hue(person.picture(), TRUE)
    assert person.read("#legend").split() == ["query", "False", "True"]


def test_11_ql4bim_selects_elements(person, con):
    person.choose("#query-language", "ql4bim")
    said = person.query("walls = TypeFilter(model is IfcWall)")
    walls = count(con, "SELECT count(*) FROM elements WHERE is_a(ifc_class, 'IfcWall')")
    assert f"{walls} elements in the scene" in said
    assert person.actions == told()[11]


def test_12_a_link_opens_the_same(person, browser):  # noqa: F811
    person.query("SELECT point_id FROM points WHERE z > 3")
    began = person.actions
    person.click("#copy-link")
    other = Person(browser, person.tab.url)
    assert (
        other.read("#query-status").partition(" in ")[0]
        == person.read("#query-status").partition(" in ")[0]
    )
    assert other.tab.url == person.tab.url
    other.tab.close()
    assert person.actions - began == told()[12]


def test_13_rows_go_out_as_a_file(person, con):
    person.query("SELECT point_id, z FROM points WHERE z > 5 ORDER BY point_id")
    began = person.actions
    with person.tab.expect_download() as download:
        person.click("#query-save")
    assert download.value.suggested_filename == "rows.csv"
    with Path(download.value.path()).open(newline="", encoding="utf-8") as file:
        names, *rows = list(csv.reader(file))
    true = con.sql("SELECT point_id, z FROM points WHERE z > 5 ORDER BY point_id").fetchall()
    assert names == ["point_id", "z"]
    assert [(int(key), float(z)) for key, z in rows] == true[:1000]
    assert person.actions - began == told()[13]


def test_14_the_picture_goes_out(person):
    with person.tab.expect_download() as download:
        person.click("#tool-picture")
    with Image.open(download.value.path()) as picture:
        assert picture.format == "PNG"
    assert person.actions == told()[14]


def test_15_in_the_dark_on_a_telephone(browser, served):  # noqa: F811
    """360 pixels: a clash is flown to, and nothing is wider than the window."""
    size = {"width": 360, "height": 740}
    person = Person(browser, served, viewport=size, color_scheme="dark", has_touch=True)
    assert person.picture()[5, 5].max() < 60
    person.click("#tabs [data-panel=lists]")
    person.click("#lists .row")
    assert person.tab.evaluate("document.documentElement.scrollWidth") == 360
    for name in ("scene", "views", "query"):
        person.tab.click(f"#tabs [data-panel={name}]")
        assert person.tab.evaluate("document.documentElement.scrollWidth") == 360
    assert person.said == []
    assert person.actions == told()[15]
    person.tab.close()
