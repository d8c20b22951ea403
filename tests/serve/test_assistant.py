"""What an assistant gets over the Model Context Protocol."""

import base64
import sys

import pytest

pytest.importorskip("mcp", reason="the extra [mcp] is not installed")

import anyio
import duckdb
from mcp import Client, StdioServerParameters

from spatialq.functions.catalogue import catalogue
from spatialq.io.ifc.process import environment
from spatialq.serve.assistant import open_assistant
from spatialq.serve.limits import Limits
from spatialq.workflows.rendering import write_picture

from .conftest import make_database

pytestmark = pytest.mark.slow
LIMITS = Limits(seconds=60.0, memory=256 << 20, rows=5)


@pytest.fixture(scope="module")
def opened(house, in_cache):
    with open_assistant([str(house / "house.laz"), str(house / "house.ifc")], None, LIMITS) as it:
        yield it


def call(server, tool, **arguments):
    async def called():
        async with Client(server) as client:
            return await client.call_tool(tool, arguments)

    return anyio.run(called)


def test_the_tools_have_a_description(opened):
    async def listed():
        async with Client(opened) as client:
            return (await client.list_tools()).tools

    found = anyio.run(listed)
    assert {each.name for each in found} == {"tables", "functions", "sql", "picture"}
    assert all(each.description for each in found)


def test_tables_have_their_columns(opened):
    found = call(opened, "tables").structured_content["result"]
    of = {each["table"]: each["columns"] for each in found}
    assert of.keys() >= {"points", "elements", "relations", "properties"}
    assert of["points"]["point_id"] == "BIGINT"


def test_functions_are_those_of_sql_with_their_arguments(opened):
    lines = call(opened, "functions").content[0].text.splitlines()
    names = {each.partition(":")[0] for each in lines}
    wanted = {*catalogue(), "elements_where", "read_las", "element_boxes", "above"}
    assert names >= wanted - {"direction"}  # which SQL has as above, below and so on
    assert not [each for each in names if each.startswith("spatialq_")]
    help_of = call(opened, "functions", name="owm_ground").content[0].text
    assert help_of.startswith("owm_ground( points, window_size := 10.0,")
    for each in catalogue()["owm_ground"].parameters:
        assert f"\n{each.name}: " in help_of
    wrong = call(opened, "functions", name="owm_grund")
    assert wrong.is_error
    assert "owm_ground" in wrong.content[0].text


def test_rows_are_those_of_duckdb_and_it_is_said_that_there_are_more(opened):
    text = "SELECT ifc_class, count(*) AS n FROM elements GROUP BY ALL ORDER BY ALL"
    found = call(opened, "sql", query=text).structured_content
    counted = call(opened, "sql", query="SELECT count(DISTINCT ifc_class) FROM elements")
    ((classes,),) = counted.structured_content["rows"]
    assert classes > 5
    assert len(found["rows"]) == 5
    assert found["note"].startswith("the first 5 rows; there are more")
    with duckdb.connect() as con:
        ((three,),) = con.execute("SELECT 1 + ?", [2]).fetchall()
    bound = call(opened, "sql", query="SELECT 1 + ?", parameters=[2]).structured_content
    assert (bound["rows"], bound["note"]) == ([[three]], "1 rows, which are all")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("DROP TABLE points", "view: the box takes a statement that reads"),
        ("FROM read_csv('/etc/passwd')", "disabled"),
        (
            "SELECT list_sum(range(3000000000))",
            "took more than 256 MiB of memory (its share of --memory)",
        ),
    ],
)
def test_queries_have_the_limits_of_the_box(opened, text, said):
    found = call(opened, "sql", query=text)
    assert found.is_error
    assert said in found.content[0].text
    assert call(opened, "sql", query="SELECT 1").structured_content["rows"] == [[1]]


def test_a_picture_is_that_of_render(house, in_cache, tmp_path):
    sources = [str(house / "house.ifc")]
    view = {"view_height": 30.0}
    with open_assistant(sources, None, LIMITS) as server:
        (found,) = call(server, "picture", **view, width=160, height=120).content
        large = call(server, "picture", width=5000)
    assert found.mime_type == "image/png"
    write_picture(sources, tmp_path / "a.png", **view, size=(160, 120))
    assert base64.b64decode(found.data) == (tmp_path / "a.png").read_bytes()
    assert large.is_error
    assert "from 1 to 2000, got 5000 and 600" in large.content[0].text


def test_the_command_answers_over_standard_streams_and_draws_no_tables(tmp_path, in_cache):
    path = make_database(tmp_path, 1000)
    command = StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "spatialq", "mcp", str(path), "--rows", "2"],
        env=environment(),
    )
    found = call(command, "sql", query="FROM points ORDER BY point_id")
    assert [row[0] for row in found.structured_content["rows"]] == [0, 1]
    picture = call(command, "picture")
    assert picture.is_error
    assert "a picture is drawn of files" in picture.content[0].text
