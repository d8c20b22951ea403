"""Queries whose GlobalIds leave as IFC files."""

import warnings

import duckdb
import ifcopenshell
import pytest

import spatialq
from spatialq.errors import FileError, FileWarning
from tests.command_line import rows, spatialq_command
from tests.io.ifc_models import Builder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two models with five elements each, and the first one in a database."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("one", "two"):
        builder = Builder()
        builder.wall_with_window()
        builder.boxes(2)
        builder.write(folder / f"{name}.ifc")
    with spatialq.connect(str(folder / "one.duckdb")) as con:
        spatialq.load(con, [folder / "one.ifc"])
    return folder


@pytest.fixture
def con(files, tmp_path):
    """A database with the model 'one'; a test may load more."""
    (tmp_path / "one.duckdb").write_bytes((files / "one.duckdb").read_bytes())
    with spatialq.connect(str(tmp_path / "one.duckdb")) as con:
        yield con


def names(path):
    return {each.Name for each in ifcopenshell.open(str(path)).by_type("IfcElement")}


WALLS = "SELECT global_id FROM elements WHERE name LIKE 'Wall _'"


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TEMP VIEW v AS FROM read_ifc('one.ifc')",
        "CREATE TEMP TABLE v AS FROM read_ifc('one.ifc')",
        "CREATE TEMP VIEW w AS FROM read_ifc('one.ifc'); CREATE VIEW v AS FROM w WHERE volume > 0",
        "CREATE TEMP VIEW v AS FROM (FROM read_ifc('*.ifc')) WHERE file_name LIKE '%one%'",
    ],
)
def test_views_before_the_query(files, tmp_path, made):
    for name in ("one", "two"):
        (tmp_path / f"{name}.ifc").write_bytes((files / f"{name}.ifc").read_bytes())
    query = f"{made}; {WALLS.replace('elements', 'v')}"
    result = spatialq_command("sql", query, "-o", "part.ifc", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert names(tmp_path / "part.ifc") == {"Wall 0", "Wall 1"}


def test_a_query(con, tmp_path):
    assert spatialq.export_ifc(con, WALLS, tmp_path / "part.ifc") == 2
    assert names(tmp_path / "part.ifc") == {"Wall 0", "Wall 1"}


def test_a_relation(con, tmp_path):
    relation = con.sql("FROM elements").filter("name = 'Wall 1'")
    assert spatialq.export_ifc(con, relation, str(tmp_path / "part.ifc")) == 1
    assert names(tmp_path / "part.ifc") == {"Wall 1"}


@pytest.mark.parametrize(
    "query",
    [
        f"{WALLS} -- a comment\n;",
        f"SELECT NULL AS file_name, * FROM ({WALLS})",
        f"SELECT global_id AS wall_global_id, 1 AS a FROM ({WALLS})",
        f"SELECT global_id AS GlobalId FROM ({WALLS})",
        f"SELECT min(global_id) AS a, max(global_id) AS b FROM ({WALLS})",
        f"SELECT min(global_id) AS id_a_global_id, max(global_id) AS b_global_id FROM ({WALLS})",
        f"{WALLS} UNION ALL SELECT NULL",
        f"{WALLS} UNION ALL {WALLS}",
        f"WITH w AS ({WALLS}) SELECT w.* FROM w, elements AS e WHERE e.name = 'Wall 0'",
        "SELECT a, b FROM distance('walls', 'walls') WHERE a <> b",
        "SELECT global_id FROM properties RIGHT JOIN walls USING (global_id)",
        "SELECT child AS global_id FROM relations WHERE child_name LIKE 'Wall _'",
    ],
)
def test_columns_of_global_ids(con, tmp_path, query):
    con.execute("CREATE TEMP VIEW walls AS FROM elements WHERE name LIKE 'Wall _'")
    assert spatialq.export_ifc(con, query, tmp_path / "part.ifc") == 2
    assert names(tmp_path / "part.ifc") == {"Wall 0", "Wall 1"}


def test_a_storey_is_in_no_table_of_elements(con, tmp_path):
    query = "SELECT DISTINCT parent AS global_id FROM relations WHERE kind = 'contained_in'"
    assert spatialq.export_ifc(con, query, tmp_path / "part.ifc") == 1
    assert names(tmp_path / "part.ifc") == {"Wall", "Hole", "Window", "Wall 0", "Wall 1"}


def test_no_rows_are_a_model_without_elements(con, tmp_path):
    query = "SELECT global_id, file_name FROM elements WHERE false"
    assert spatialq.export_ifc(con, query, tmp_path / "part.ifc") == 0
    part = ifcopenshell.open(str(tmp_path / "part.ifc"))
    assert [each.Name for each in part.by_type("IfcProduct")] == ["Site"]


def test_the_table_that_is_read_tells_the_file(con, files, tmp_path):
    """Two models of equal GlobalIds, such as two revisions."""
    path = tmp_path / "revision.ifc"
    path.write_text((files / "one.ifc").read_text().replace("'Wall 1'", "'New 1'"))
    spatialq.load(con, [path], "revised")
    query = "SELECT global_id FROM {} WHERE name LIKE '% 1'"
    assert spatialq.export_ifc(con, query.format("elements"), tmp_path / "part.ifc") == 1
    assert names(tmp_path / "part.ifc") == {"Wall 1"}
    assert spatialq.export_ifc(con, query.format("revised"), tmp_path / "part.ifc") == 1
    assert names(tmp_path / "part.ifc") == {"New 1"}


def test_a_model_that_was_loaded_in_another_folder(con, files, tmp_path, monkeypatch):
    monkeypatch.chdir(files)
    spatialq.load(con, "two.ifc", "two")
    query = "SELECT global_id FROM two WHERE name LIKE 'Wall _'"
    assert con.sql("SELECT DISTINCT file_name FROM two").fetchall() == [("two.ifc",)]
    monkeypatch.chdir(tmp_path)
    assert spatialq.export_ifc(con, query, tmp_path / "part.ifc") == 2


def test_a_relative_name_means_the_model_that_the_query_reads(con, files, tmp_path, monkeypatch):
    monkeypatch.chdir(files)
    spatialq.load(con, "two.ifc", "two")
    text = (files / "two.ifc").read_text()
    (tmp_path / "two.ifc").write_text(text.replace("'Wall 1'", "'Wall here'"))
    monkeypatch.chdir(tmp_path)
    loaded = "SELECT global_id, file_name FROM two WHERE name = 'Wall 1'"
    spatialq.export_ifc(con, loaded, tmp_path / "loaded.ifc")
    assert names(tmp_path / "loaded.ifc") == {"Wall 1"}
    here = "SELECT global_id, file_name FROM read_ifc('two.ifc') WHERE name = 'Wall here'"
    spatialq.export_ifc(con, here, tmp_path / "here.ifc")
    assert names(tmp_path / "here.ifc") == {"Wall here"}


def test_of_several_models_the_global_ids_tell_the_file(con, files, tmp_path):
    spatialq.load(con, [files / "two.ifc"])
    query = f"{WALLS} AND file_name LIKE '%two.ifc'"
    assert spatialq.export_ifc(con, query, tmp_path / "part.ifc") == 2
    assert refused(con, WALLS, tmp_path / "no.ifc", ValueError) == (
        "export_ifc: the query must say in a column file_name which one file its GlobalIds are "
        f"from, got '{files}/one.ifc', '{files}/two.ifc'"
    )
    both = WALLS.replace("global_id", "global_id, file_name")
    assert "which one file" in refused(con, both, tmp_path / "no.ifc", ValueError)


def test_files_that_a_query_reads(con, files, tmp_path):
    query = f"SELECT global_id, file_name FROM read_ifc('{files}/two.ifc')"
    assert spatialq.export_ifc(con, query, tmp_path / "part.ifc") == 5
    without = query.replace(", file_name", "")
    assert refused(con, without, tmp_path / "no.ifc", ValueError) == (
        "export_ifc: the query must say in a column file_name which one file its GlobalIds are "
        "from, got none"
    )


def refused(con, query, path, kind=FileError):
    with pytest.raises(kind) as caught:
        spatialq.export_ifc(con, query, path)
    assert not path.exists()
    return str(caught.value)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT name, ifc_class FROM elements",
         "the query must give a column global_id of text, got name, ifc_class"),
        ("SELECT 1 AS a, '' AS b", "the query must give a column global_id of text, got a INTEGER"),
        ("SELECT 1; SELECT 2", "the query must be one statement, got 2"),
        ("", "the query must be one statement, got 0"),
    ],
)  # fmt: skip
def test_bad_queries(con, tmp_path, query, sentence):
    assert refused(con, query, tmp_path / "no.ifc", ValueError) == f"export_ifc: {sentence}"


def test_a_statement_that_is_no_query_does_not_run(con, tmp_path):
    with pytest.raises(duckdb.ParserException):
        spatialq.export_ifc(con, "CREATE TABLE t (global_id VARCHAR)", tmp_path / "no.ifc")
    assert con.sql("FROM duckdb_tables() WHERE table_name = 't'").fetchall() == []


def test_a_file_that_has_changed_or_gone(con, files, tmp_path):
    copy = tmp_path / "copy.ifc"
    copy.write_bytes((files / "one.ifc").read_bytes())
    spatialq.load(con, [copy], "copied")
    query = "SELECT global_id FROM copied WHERE name LIKE 'Wall _'"
    text = copy.read_text()
    copy.write_text("\n".join(line for line in text.splitlines() if "'Wall 1'" not in line))
    (lost,) = con.sql("SELECT global_id FROM copied WHERE name = 'Wall 1'").fetchall()[0]
    with pytest.warns(
        FileWarning, match="has changed since it was loaded: the part is of the file"
    ):
        message = refused(con, query, tmp_path / "no.ifc")
    assert message == (
        f"export_ifc: '{copy}': 1 of 2 GlobalIds are not of objects in it, such as '{lost}'"
    )
    copy.unlink()
    assert refused(con, query, tmp_path / "no.ifc") == f"read_ifc: '{copy}': there is no such file"


def test_the_source_is_not_overwritten(con, files, tmp_path):
    copy = tmp_path / "copy.ifc"
    copy.write_bytes((files / "one.ifc").read_bytes())
    spatialq.load(con, [copy], "copied")
    link = tmp_path / "link.ifc"
    link.symlink_to(copy)
    with pytest.raises(FileError, match="output must be another file than the input"):
        spatialq.export_ifc(con, "SELECT global_id FROM copied", link)
    assert copy.read_bytes() == (files / "one.ifc").read_bytes()


def test_the_command_line(con, tmp_path):
    con.close()
    given = ("sql", WALLS, "-d", tmp_path / "one.duckdb", "-o")
    assert rows(*given, tmp_path / "part.ifc") == [
        {"output": str(tmp_path / "part.ifc"), "rows": 2}
    ]
    assert rows(*given, tmp_path / "part.ifczip")[0]["rows"] == 2
    assert names(tmp_path / "part.ifczip") == names(tmp_path / "part.ifc") == {"Wall 0", "Wall 1"}
    wrong = spatialq_command(*given, tmp_path / "part.ifcxml")
    assert wrong.returncode == 1
    said = wrong.stderr.replace("\n", " ")
    assert "must end in one of " in said
    assert ".ifc, .ifczip, " in said


def test_warnings_reach_the_caller(con, files, tmp_path):
    copy = tmp_path / "copy.ifc"
    text = (files / "one.ifc").read_text()
    ids = [each.GlobalId for each in ifcopenshell.open(str(files / "one.ifc")).by_type("IfcWall")]
    copy.write_text(text.replace(ids[1], ids[2]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        query = f"SELECT '{ids[1]}' AS global_id, '{copy}' AS file_name".replace(ids[1], ids[2])
        assert spatialq.export_ifc(con, query, tmp_path / "part.ifc") == 2
    assert [warning.filename for warning in caught] == [__file__]
    assert names(tmp_path / "part.ifc") == {"Wall 0", "Wall 1"}
