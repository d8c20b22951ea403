"""The site of the documentation has every page, and links of the repository lead somewhere.

`make docs` builds the site and checks its links and anchors; here is what needs no tool for that.
"""

import importlib.util
import re

import pytest

import spatialq
from spatialq.database.connection import macros

from .pages import ROOT

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "udfs/*/README.md", "benchmarks/*.md", "examples/*.md")
    for path in ROOT.glob(pattern)
)


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / ".ci/docs_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_navigation_names_every_page_once():
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = re.findall(r"[\w/.]+\.md", nav)
    assert sorted(named) == sorted([*(page.removeprefix("docs/") for page in PAGES), "sql.md"])


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_lead_to_files(page):
    prose = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)
    for link in re.findall(r"\]\((?!https?:|#)([^)\s#]+)", prose):
        assert (ROOT / page).parent.joinpath(link).exists(), link


def test_pictures_are_small_and_shown():
    pictures = list((ROOT / "docs/images").iterdir())
    assert all(path.stat().st_size <= 60_000 for path in pictures)
    text = "".join((ROOT / page).read_text() for page in PAGES if page.startswith("docs/"))
    assert {path.name for path in pictures} == set(re.findall(r"images/([\w.]+)\)", text))


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 300


def test_the_page_of_python_has_every_public_name():
    text = (ROOT / "docs/python.md").read_text()
    named = re.findall(r"^::: (?!spatialq\.(?:cluster|serve))[\w.]+\.(\w+)$", text, re.MULTILINE)
    assert sorted(named) == sorted(set(spatialq.__all__) - {"__version__"})


def test_the_page_of_sql_has_every_macro_that_users_call(hooks):
    headings = re.findall(r"^## (\w+)$", hooks.sql_page(), re.MULTILINE)
    called = {macro.name for macro in macros("native")}
    for stem in hooks.INTERNAL:
        text = (ROOT / f"sql/{stem}.sql").read_text()
        called -= set(re.findall(r"^CREATE OR REPLACE MACRO (\w+)", text, re.MULTILINE))
    assert len(headings) == len(set(headings))
    assert set(headings) == called


def test_what_macros_say_is_no_markup(hooks):
    comment = (
        "-- Rows of <a>_relations in *all* files.\n-- a: A file such as\n--     'tiles/*.laz'.\n"
    )
    page = hooks.macro(comment, "f(a)", is_table=True)
    said = r"Rows of &lt;a&gt;\_relations in \*all\* files."
    assert page.split("\n\n")[2:] == [said, r"- `a`: A file such as 'tiles/\*.laz'."]
