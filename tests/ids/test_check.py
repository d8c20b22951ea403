"""`check_ids` in SQL and Python, and `spatialq check` with its reports."""

import json
import zipfile

import duckdb
import openpyxl
import pytest
import xmlschema

import spatialq
from spatialq.demo.house import write_house
from spatialq.errors import FileWarning
from spatialq.io.bcf import read_bcf

from ..command_line import spatialq_command
from ..conftest import real_file
from .ids_files import (
    REQUIRED,
    attribute,
    entity,
    facet,
    prop,
    specification,
    write_ids,
)

pytestmark = pytest.mark.slow
HIGH = attribute("OverallHeight", ("xs:double", '<xs:minInclusive value="2.2"/>'))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checks")
    write_house(folder / "house.ifc")
    walls = specification(
        entity("IFCWALL"), prop("Pset_WallCommon", "IsExternal", kind="IFCBOOLEAN"), occurs=REQUIRED
    )
    write_ids(folder / "right.ids", walls)
    write_ids(
        folder / "wrong.ids",
        walls,
        specification(entity("IFCDOOR"), HIGH, facet("material"), name="Doors &amp; &lt;more&gt;"),
        specification(entity("IFCPILE"), attribute("Name"), name="Piles"),
    )
    (folder / "bad.ids").write_text("<ids/>")
    return folder


def test_rows_of_tables_and_files(folder):
    with spatialq.connect() as con:
        spatialq.load(con, [folder / "house.ifc"])
        of_table = con.sql(f"FROM check_ids('elements', '{folder}/wrong.ids')").fetchall()
        of_file = con.sql(
            f"FROM check_ids_files('{folder}/hou*.ifc', '{folder}/wrong.ids')"
        ).fetchall()
        assert of_table == of_file
        query = spatialq.check_ids(con, folder / "house.ifc", folder / "wrong.ids")
        assert query.fetchall() == of_file
        doors = con.sql("SELECT count(*) FROM objects WHERE ifc_class = 'IfcDoor'").fetchall()[0][0]
        counts = query.where("specification = 'Doors & <more>'").count()
        assert counts == 2 * doors > 0
        (row,) = query.where("specification = 'Piles'").fetchall()
        assert row[5] == "not applicable"
        assert row[6:11] == (None,) * 5
        listed = con.sql(f"FROM ids_specifications('{folder}/wrong.ids')").fetchall()
        assert [each[:3] for each in listed] == [
            (1, "Rule", "required"), (2, "Doors & <more>", "optional"), (3, "Piles", "optional"),
        ]  # fmt: skip
        assert listed[1][5] == ["attribute OverallHeight is >= 2.2", "material"]
        con.sql("CREATE TABLE empty AS FROM elements WHERE false")
        assert con.sql(f"FROM check_ids('empty', '{folder}/wrong.ids')").fetchall() == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("check_ids_files('{0}/house.ifc', '{0}/bad.ids')", "line 1: the file is no IDS"),
        ("check_ids_files('{0}/no.ifc', '{0}/right.ids')", "there is no such file"),
        ("check_ids_files('{0}/bad.ids', '{0}/right.ids')", "check_ids: '.*bad.ids': "),
        ("check_ids(5, '{0}/right.ids')", "elements must be the name of a table, got 5"),
        ("ids_specifications(NULL)", "ids_specifications: path must be a file"),
    ],
)
def test_what_cannot_be_checked(call, expected, folder):
    with spatialq.connect() as con, pytest.raises(duckdb.Error, match=expected):
        con.sql(f"FROM {call.format(folder)}").fetchall()


def test_entities_that_are_lost_are_said(folder):
    text = (folder / "house.ifc").read_text()
    start = text.index("IFCDOOR(")
    broken = folder / "broken.ifc"
    broken.write_text(f"{text[:start]}IFCDOORS({text[start + 8 :]}")
    with spatialq.connect() as con, pytest.warns(FileWarning, match="entities could be parsed"):
        con.sql(f"FROM check_ids_files('{broken}', '{folder}/right.ids')").fetchall()


def test_the_exit_status_says_what_came_of_it(folder):
    house = folder / "house.ifc"
    for rules, status in (("right", 0), ("wrong", 1), ("bad", 2), ("missing", 2)):
        result = spatialq_command("check", house, folder / f"{rules}.ids")
        assert result.returncode == status, result.stderr
    assert spatialq_command("check", folder / "bad.ids", folder / "right.ids").returncode == 2
    assert spatialq_command("check", folder / "right.ids").returncode == 2
    found = json.loads(spatialq_command("check", house, folder / "wrong.ids", "--json").stdout)
    assert found["passed"] is False
    assert [each["status"] for each in found["specifications"]] == [
        "passed", "failed", "not applicable",
    ]  # fmt: skip
    assert found["failed"][0]["reason"] == "the attribute OverallHeight is '2.1', not >= 2.2"


@pytest.fixture(scope="module")
def reports(folder):
    found = {}
    for ending in ("html", "xlsx", "json", "bcf"):
        found[ending] = folder / f"report.{ending}"
        arguments = ("check", folder / "house.ifc", folder / "wrong.ids", "-o", found[ending])
        assert spatialq_command(*arguments).returncode == 1
        first = found[ending].read_bytes()
        if ending != "xlsx":
            assert spatialq_command(*arguments).returncode == 1
            assert found[ending].read_bytes() == first
    return found


def test_reports_say_the_same(reports):
    found = json.loads(reports["json"].read_text(encoding="utf-8"))
    failed = [row for row in found["checks"] if row["status"] == "failed"]
    assert failed
    sheet = openpyxl.load_workbook(reports["xlsx"]).active
    assert sheet.max_row == len(found["checks"]) + 1
    page = reports["html"].read_text(encoding="utf-8")
    assert "Doors &amp; &lt;more&gt;" in page
    assert "<more>" not in page
    assert all(row["global_id"] in page for row in failed)


def test_issues_select_what_failed(reports):
    found = json.loads(reports["json"].read_text(encoding="utf-8"))
    bcf = read_bcf(reports["bcf"])
    expected = {
        (row["requirement"], row["global_id"])
        for row in found["checks"] if row["status"] == "failed"
    }  # fmt: skip
    titles = {row["topic"]: row["title"].split(": ", 1)[1] for row in bcf.rows["topics"]}
    assert {
        (titles[row["topic"]], row["global_id"]) for row in bcf.rows["components"]
        if row["role"] == "selection"
    } == expected  # fmt: skip
    schemas = {
        name: xmlschema.XMLSchema(real_file(f"data/bcf/schemas/2.1/{name}.xsd"))
        for name in ("markup", "visinfo")
    }
    with zipfile.ZipFile(reports["bcf"]) as archive:
        for name in archive.namelist():
            for ending, schema in (("markup.bcf", "markup"), (".bcfv", "visinfo")):
                if name.endswith(ending):
                    schemas[schema].validate(archive.read(name).decode())


def test_rows_of_several_models_name_them(folder, tmp_path):
    write_house(tmp_path / "second.ifc")
    models = folder / "house.ifc", tmp_path / "second.ifc"
    found = json.loads(spatialq_command("check", *models, folder / "wrong.ids", "--json").stdout)
    names = {row["file_name"].rpartition("/")[2] for row in found["failed"]}
    assert names == {"house.ifc", "second.ifc"}
