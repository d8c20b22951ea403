"""Pages of clashes: what a parser, a script engine and a reader find in them."""

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from PIL import Image

import spatialq
from spatialq.export.page import figure, table, tag, write_page
from spatialq.workflows import clash_page

from ..command_line import rows
from ..conftest import made_once
from ..io.ifc_models import Builder

SCRIPT_NAME = "<script>alert(1)</script> \"&' wall"
SORT = """
const rows = JSON.parse(process.argv[2]).map(text => ({cells: [{textContent: text}], text}));
const body = {rows, append(...all) { this.rows = all; }};
const header = {
  cellIndex: 0, closest: () => ({tBodies: [body]}),
  setAttribute(name, value) { this[name] = value; }, removeAttribute(name) { delete this[name]; },
  getAttribute(name) { return this[name]; },
};
header.parentNode = {cells: [header]};
const found = [];
for (let turn = 0; turn < 2; turn++) { sort(header); found.push(body.rows.map(row => row.text)); }
console.log(JSON.stringify(found));
"""


def write_files(folder):
    """Two walls that meet one with the name of an attack, and pages of their clashes."""
    builder = Builder("IFC4")
    for name, at, size in (
        (SCRIPT_NAME, (0, 0, 0), (4, 0.2, 3)),
        ("across", (1, -1, 0), (0.2, 2, 3)),
        ("across too", (3, -1, 0), (0.2, 2, 3)),
    ):
        builder.add("IfcWall", name, [builder.box(at, size)])
    builder.write(folder / "walls.ifc")
    for name, arguments in {"pairs": (), "again": (), "grouped": ("--group", "element")}.items():
        rows("clash", folder / "walls.ifc", *arguments, "-o", folder / f"{name}.html")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_once(tmp_path_factory, "pages", write_files)


def parsed(path):
    """Read a page: it is XML as well, which a parser of the standard library can tell."""
    return ET.fromstring(path.read_text("utf-8").partition("\n")[2])


def cells(page, number):
    """The texts of a table."""
    lines = list(page.iter("table"))[number].iter("tr")
    return [["".join(cell.itertext()).strip() for cell in line] for line in lines]


def test_a_page_has_the_clashes_and_a_picture_of_each(folder):
    page = parsed(folder / "pairs.html")
    assert page.find("head/title").text == "Clashes of walls.ifc"
    columns, *found = cells(page, 1)
    expected = rows("clash", folder / "walls.ifc")["clashes"]
    assert [line[columns.index("no.")] for line in found] == ["1", "2"]
    for line, row in zip(found, expected, strict=True):
        for side in "ab":
            text = f"IfcWall {row[f'{side}_name']} {row[side]}"
            assert line[columns.index(side)] == text
        depth = float(line[columns.index("penetration, mm")])
        assert depth == pytest.approx(1000 * row["penetration"], abs=0.005)
    assert "distance, mm" not in columns  # none is apart
    assert cells(page, 0)[1] == ["IfcWall", "IfcWall", "overlap", "2", "100"]
    for image in page.iter("img"):
        head, _, data = image.get("src").partition(",")
        assert head == "data:image/png;base64"
        picture = Image.open(io.BytesIO(base64.b64decode(data)))
        assert picture.size == (int(image.get("width")), int(image.get("height"))) == (800, 600)
        red, _, blue = np.moveaxis(np.asarray(picture).astype(int), 2, 0)
        assert (red > 2 * blue).sum() > 500 < (blue > 2 * red).sum()
    targets = {each.get("id") for each in page.iter("figure")}
    assert {each.get("href") for each in page.iter("a")} == {f"#{name}" for name in targets}
    assert len(targets) == 2


def test_groups_have_one_picture_each(folder):
    page = parsed(folder / "grouped.html")
    columns, group = cells(page, 1)
    assert dict(zip(columns, group, strict=True)) == {
        "group": "1", "what": f"IfcWall {SCRIPT_NAME}", "clashes": "2", "elements": "3",
        "deepest, mm": "100",
    }  # fmt: skip
    assert len(list(page.iter("figure"))) == 1
    lines = [each for each in page.iter("tr") if each.get("data-group")]
    assert [each.get("data-group") for each in lines] == ["1", "1"]
    assert [each.get("value") for each in page.iter("option")] == ["", "1"]


def test_the_bytes_are_the_same_each_time(folder):
    assert (folder / "pairs.html").read_bytes() == (folder / "again.html").read_bytes()


def test_names_are_text_and_nothing_else_runs_or_is_loaded(folder):
    text = (folder / "pairs.html").read_text("utf-8")
    assert SCRIPT_NAME in "".join(parsed(folder / "pairs.html").itertext())
    assert text.count("<script") == 1
    (inner,) = re.findall("<script>(.*)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
    policy = re.search('Content-Security-Policy" content="([^"]*)"', text)[1]
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; img-src data:;")
    for each in parsed(folder / "pairs.html").iter():
        for name in ("src", "href", "data", "action", "srcset"):
            value = each.get(name, "data:")
            assert value.startswith(("data:", "#"))
    assert not re.search(r"url\(|@import|https?:", text)


def test_markup_is_escaped_wherever_it_is(tmp_path):
    bad = "</td><b onclick='x()'>\x00\x1b&amp;\"$title ${x}"
    content = [
        tag("p", bad, id=bad), table(bad, [bad], [[bad]], groups=[bad]),
        figure("f", b"x", 1, 1, bad, bad),
    ]  # fmt: skip
    write_page(tmp_path / "a.html", bad, content)
    page = parsed(tmp_path / "a.html")
    clean = bad.replace("\x00", "").replace("\x1b", "")
    assert page.find("head/title").text == page.find("body/main/h1").text == clean
    assert page.find(".//p").get("id") == page.find(".//p").text == clean
    assert page.find(".//img").get("alt") == page.find(".//figcaption").text == clean
    assert cells(page, 0) == [[clean], [clean]]
    assert page.find(".//b") is None


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_tables_are_sorted_numbers_as_numbers_empty_ones_last(folder, tmp_path):
    text = (folder / "pairs.html").read_text("utf-8")
    (function,) = re.findall(r"^function sort.*?^}", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "sort.js").write_text(function + SORT)
    for values, expected in (
        (["10", "9.5", "", "-1", "100"], ["-1", "9.5", "10", "100"]),
        (["b", "", "a", "c"], ["a", "b", "c"]),
    ):
        command = ["node", str(tmp_path / "sort.js"), json.dumps(values)]
        up, down = json.loads(subprocess.check_output(command, text=True))
        assert up == [*expected, ""]
        assert down == [*expected[::-1], ""]


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_script_of_a_page_without_clashes_ends_well(tmp_path):
    write_page(tmp_path / "none.html", "No clashes", [])
    (script,) = re.findall("<script>(.*)</script>", (tmp_path / "none.html").read_text(), re.DOTALL)
    page = "const document = {getElementById: () => null, querySelectorAll: () => []};"
    (tmp_path / "script.js").write_text(page + script)
    subprocess.run(["node", tmp_path / "script.js"], check=True)


def test_pictures_are_bounded_and_the_page_says_so(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(clash_page, "MOST_PICTURES", 1)
    rows("clash", folder / "walls.ifc", "-o", tmp_path / "c.parquet")
    with spatialq.connect() as con:
        spatialq.write(con.sql(f"FROM '{tmp_path}/c.parquet'"), tmp_path / "a.html")
    page = parsed(tmp_path / "a.html")
    assert len(list(page.iter("figure"))) == 1
    assert "There are pictures of the first 1 of 2." in "".join(page.itertext())


@pytest.mark.parametrize("ending", ["html", "ifc", "glb"])
def test_groups_of_any_kind_and_depths_that_are_none(folder, tmp_path, ending):
    rows("clash", folder / "walls.ifc", "-o", tmp_path / "c.parquet")
    said = "REPLACE ('nan'::DOUBLE AS penetration), [1, NULL] AS group_id"
    with spatialq.connect() as con:
        clashes = con.sql(f"SELECT * {said} FROM '{tmp_path}/c.parquet'")
        assert spatialq.write(clashes, tmp_path / f"a.{ending}") > 0


def test_no_clashes_are_a_page_too_and_rows_that_are_none_are_refused(folder, tmp_path):
    with spatialq.connect() as con:
        rows = con.sql("SELECT 'x' AS a, 'y' AS b LIMIT 0")
        assert spatialq.write(rows, tmp_path / "none.html") == 0
        assert "There are no clashes." in (tmp_path / "none.html").read_text()
        with pytest.raises(ValueError, match=r"rows of '.*' must be clashes with the GlobalIds"):
            spatialq.write(con.sql("SELECT 1 AS a"), tmp_path / "wrong.html")
    assert [each.name for each in tmp_path.iterdir()] == ["none.html"]
