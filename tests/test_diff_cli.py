"""`spatialq diff`, and the same in Python."""

import csv

import pytest

import spatialq
from spatialq.errors import QueryError

from .command_line import rows, spatialq_command
from .database.test_model_changes import changed, edited, house

pytestmark = pytest.mark.slow  # as a whole


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    folder = tmp_path_factory.mktemp("states")
    old = house(folder / "old.ifc")
    edits = ["move", "turn", "rename", "annotate", "delete", "renumber"]
    return old, edited(old, folder / "new.ifc", ("IfcWall", "IfcSlab"), edits)


def test_the_table_and_json_are_those_of_sql(states):
    expected = changed(*states)
    found = rows("diff", *states)
    assert found["changes"] == expected
    assert sum(each["objects"] for each in found["counts"]) == len(expected) == 5
    result = spatialq_command("diff", *states, "--limit", 4)
    assert "turned 37.30°" in result.stdout
    assert "only the first 4 objects are shown (--limit); -o writes all" in result.stderr


def test_a_state_that_is_cut_off_is_an_error_of_the_command(states, tmp_path):
    (tmp_path / "half.ifc").write_bytes(states[1].read_bytes()[:-100])
    result = spatialq_command("diff", states[0], tmp_path / "half.ifc")
    assert result.stderr.startswith(f"error: diff: '{tmp_path}/half.ifc': cut off")


def test_a_sheet_says_what_became_of_what(states, tmp_path):
    target = tmp_path / "changes.csv"
    assert rows("diff", *states, "-o", target) == [{"output": str(target), "rows": 5}]
    with target.open(encoding="utf-8") as file:
        said = {row["changes"]: row["what"] for row in csv.DictReader(file)}
    assert said["renamed"].startswith("name: ")
    assert said["property"] == "Pset_Edited.Mark: - → 2"
    assert said["removed"] == ""


def test_a_parquet_has_the_columns_of_sql(states, tmp_path):
    rows("diff", *states, "--unchanged", "-o", tmp_path / "changes.parquet")
    with spatialq.connect() as con:
        found = con.execute(f"FROM '{tmp_path}/changes.parquet'").fetchall()
    assert found == [tuple(row.values()) for row in changed(*states, unchanged="true")]


def test_new_global_ids_are_counted(states):
    result = spatialq_command("diff", *states, "--unchanged")
    assert "1 of these objects have a new GlobalId" in result.stderr
    assert "nothing changed" in spatialq_command("diff", states[0], states[0]).stderr


def test_what_moved_less_than_the_tolerance_did_not_move(states):
    found = rows("diff", *states, "--tolerance", "10m")
    assert not any("moved" in row["changes"] for row in found["changes"])


def test_a_query_in_python(states):
    with spatialq.connect() as con:
        query = spatialq.model_changes(con, *states)
        assert query.where("'moved' IN changes").count() == 2
        assert query.count() == 5
        with pytest.raises(QueryError, match="model_changes: old must be a file, got 5"):
            spatialq.model_changes(con, 5, states[1])
        moved = "'moved' IN changes"
        for tolerance in (9.0, "9m"):
            assert (
                spatialq.model_changes(con, *states, tolerance=tolerance).where(moved).count() < 2
            )
        with pytest.raises(QueryError, match="model_changes: tolerance must say its unit, got '9'"):
            spatialq.model_changes(con, *states, tolerance="9")
