"""`model_changes`: every status of models that a script edited, told by their STEP numbers."""

import re
import shutil
from random import Random

import duckdb
import ifcopenshell
import pytest

import spatialq

from ..conftest import real_file
from ..io.ifc_models import Builder
from ..model_edits import EDITS, TURN, Edits, expected_changes

ODD = pytest.mark.filterwarnings("ignore:.*only curves:spatialq.errors.FileWarning")
REAL = (
    ("AC20-FZK-Haus.ifc", ("IfcWall", "IfcSlab", "IfcMember", "IfcBeam"), EDITS),
    ("Duplex_A_20110907.ifc", ("IfcWall", "IfcSlab", "IfcFooting", "IfcBeam"), EDITS * 2),
    ("webifc_example.ifc", ("IfcWall", "IfcSlab", "IfcColumn", "IfcBeam"), EDITS * 3),
    ("Schependomlaan_XELLA-2e_verdieping.ifc", ("IfcElement",), EDITS * 4),
)


def changed(old, new, **options):
    named = "".join(f", {name} := {value}" for name, value in options.items())
    with spatialq.connect() as con:
        result = con.execute(f"FROM model_changes('{old}', '{new}'{named})")
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def house(path):
    """Walls in a row, of which two are equal, and a slab."""
    builder = Builder("IFC4", "millimetre")
    for k in range(8):
        size = (0.2, 3.0 + 0.1 * max(k, 1), 2.5)
        builder.add("IfcWall", f"wall {k}", [builder.box((0, 0, 0), size)], at=(2.0 * k, 0, 0))
    slab = [builder.box((0, 0, -0.3), (20.0, 9.0, 0.3))]
    for k in range(8):
        builder.add("IfcSlab", f"slab {k}", slab, at=(30.0 * k, 50.0, 0.0))
    builder.model.write(str(path))
    return path


def check(old, new):
    rows = changed(old, new, unchanged="true")
    with spatialq.connect() as con:
        read = con.sql(f"SELECT step_id FROM read_ifc('{old}')").fetchall()
    expected, shifts = expected_changes(old, new, {step for (step,) in read})
    found = {
        ("old", row["old_step_id"]) if row["status"] == "removed" else ("new", row["step_id"]): row
        for row in rows
    }
    assert len(found) == len(rows)
    assert {key: set(row["changes"]) for key, row in found.items()} == expected
    for (_, step), row in found.items():
        one = row["changes"][:1]
        status = one[0] if one in (["added"], ["removed"]) else "changed" if one else "unchanged"
        assert row["status"] == status
        if "moved" in row["changes"] and step in shifts:
            assert [row[axis] for axis in ("dx", "dy", "dz")] == pytest.approx(
                shifts[step], abs=1e-4
            )
            assert row["turn"] == 0
        elif "moved" in row["changes"]:
            assert row["turn"] == pytest.approx(TURN, abs=1e-3)
            assert row["axis"] == pytest.approx([0, 0, 1], abs=1e-4)
    return found


def edited(old, new, classes, edits, seed=0):
    model = Edits(old, classes, seed)
    for each in edits:
        getattr(model, each)()
    model.model.write(str(new))
    return new


@pytest.mark.slow
def test_every_edit_of_a_small_model(tmp_path):
    old = house(tmp_path / "old.ifc")
    for edit in EDITS:
        new = edited(old, tmp_path / f"{edit}.ifc", ("IfcWall", "IfcSlab"), [edit])
        rows = check(old, new).values()
        assert any(row["changes"] for row in rows) or edit == "renumber"
        assert changed(old, new) == [row for row in rows if row["status"] != "unchanged"]


@pytest.mark.slow
def test_new_global_ids_are_told_apart_from_new_elements(tmp_path):
    old = house(tmp_path / "old.ifc")
    new = edited(old, tmp_path / "new.ifc", ("IfcWall",), ["renumber_all", "delete", "copy"])
    found = check(old, new)
    by = {row["name"]: row["matched_by"] for row in found.values() if row["status"] == "unchanged"}
    assert by["slab 3"] == "place and shape"
    assert by["Ground floor"] == by["Site"] == "class and name"
    assert all(
        row["global_id"] != row["old_global_id"] and row["old_global_id"]
        for row in found.values()
        if row["matched_by"]
    )


@pytest.mark.slow
def test_the_details_say_what_became_of_what(tmp_path):
    old = house(tmp_path / "old.ifc")
    model = ifcopenshell.open(str(old))
    (wall,) = (each for each in model.by_type("IfcWall") if each.Name == "wall 5")
    wall.Name, wall.Tag, wall.PredefinedType = "outer wall", "W5", "SHEAR"
    (storey,) = model.by_type("IfcBuildingStorey")
    storey.Elevation = 250.0
    model.write(str(tmp_path / "new.ifc"))
    (of_storey, of_wall) = sorted(
        changed(old, tmp_path / "new.ifc"), key=lambda row: row["ifc_class"]
    )
    assert of_wall["changes"] == ["renamed", "retyped", "property"]
    assert of_wall["details"] == [
        {"property": "name", "old": "wall 5", "new": "outer wall"},
        {"property": "predefined_type", "old": None, "new": "SHEAR"},
        {"property": "tag", "old": None, "new": "W5"},
    ]
    assert of_storey["details"] == [{"property": "Elevation", "old": None, "new": "250.0"}]


@ODD
@pytest.mark.slow
@pytest.mark.parametrize(("name", "classes", "edits"), REAL)
def test_edits_of_real_models(tmp_path, name, classes, edits):
    old = real_file(f"data/ifc/{name}")
    check(old, edited(old, tmp_path / "new.ifc", classes, edits))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_random_edits_of_a_real_model(tmp_path, seed):
    name, classes, _ = REAL[2]
    old = real_file(f"data/ifc/{name}")
    chosen = Random(seed).choices(EDITS, k=15)
    check(old, edited(old, tmp_path / "new.ifc", classes, chosen, seed))


@ODD
@pytest.mark.slow
@pytest.mark.parametrize(("name", "classes", "edits"), REAL)
def test_new_global_ids_in_real_models(tmp_path, name, classes, edits):
    old = real_file(f"data/ifc/{name}")
    new = edited(old, tmp_path / "new.ifc", classes, ["renumber_all"])
    with spatialq.connect() as con:
        sql = f"SELECT global_id FROM read_ifc('{new}')"
        read = {global_id for (global_id,) in con.sql(sql).fetchall()}
    rows = [row for row in changed(old, new, unchanged="true") if row["global_id"] in read]
    assert len(rows) == len(read)
    assert {row["matched_by"] for row in rows} == {"place and shape"}
    assert {row["status"] for row in rows} == {"unchanged"}


def revised(con, unchanged="true"):
    found = con.sql(f"FROM revision_changes('week_1', 'week_2', unchanged := {unchanged})")
    return sorted(map(repr, found.fetchall()))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_revisions_in_a_database_differ_as_their_files_do(con, tmp_path, seed):
    """Of one file that is loaded, edited, and loaded again into tables of its own."""
    model, old = house(tmp_path / "model.ifc"), tmp_path / "old.ifc"
    shutil.copy(model, old)
    spatialq.load(con, model, "week_1")
    chosen = Random(seed).choices(EDITS, k=4)
    edited(old, model, ("IfcWall", "IfcSlab"), chosen, seed)
    spatialq.load(con, model, "week_2")
    for unchanged in ("true", "false"):
        of_files = con.sql(f"FROM model_changes('{old}', '{model}', unchanged := {unchanged})")
        assert revised(con, unchanged) == sorted(map(repr, of_files.fetchall()))
    con.execute("DELETE FROM week_1; DELETE FROM week_1_objects")
    assert {row[0] for row in con.sql("FROM revision_changes('week_1', 'week_2')").fetchall()} == {
        "added"
    }
    spatialq.unload(con, model, "week_2")
    assert revised(con) == []


@pytest.mark.slow
def test_revisions_of_several_models_are_compared_as_a_whole(con, tmp_path):
    files = [house(tmp_path / f"{name}.ifc") for name in "ab"]
    spatialq.load(con, files, "week_1")
    old = tmp_path / "old.ifc"
    shutil.copy(files[1], old)
    edited(old, files[1], ("IfcWall",), ["move", "rename", "delete"])
    spatialq.load(con, files, "week_2")
    of_files = con.sql(f"FROM model_changes('{old}', '{files[1]}')").fetchall()
    assert revised(con, "false") == sorted(map(repr, of_files))
    assert {row[0] for row in of_files} == {"changed", "removed"}


def test_what_is_no_revision_is_refused(con, tmp_path):
    spatialq.load(con, house(tmp_path / "model.ifc"), "week_1")
    for arguments, sentence in (
        ("'week_1', 'week_1', tolerance := -1", "tolerance must be metres >= 0, got -1.0"),
        ("'week_1', 'week_1', tolerance := NULL", "tolerance must be metres >= 0, got NULL"),
        ("'week_1', 'week_2'", "Table with name week_2 does not exist"),
        ("'week_2', 'week_1'", "Table with name week_2 does not exist"),
        ("'week_1', 'week_1', unchanged := NULL", "unchanged must be true or false, got NULL"),
        ("'week_1', 5", "new must be the name of a table, got 5"),
        ("'week_1_objects', 'week_1'", "revision_changes: old must be a table that load has"),
    ):
        with pytest.raises(duckdb.Error, match=sentence):
            con.sql(f"FROM revision_changes({arguments})").fetchall()
    con.execute(
        "CREATE TABLE week_2 AS FROM week_1; CREATE TABLE week_2_objects AS FROM week_1_objects"
    )
    for broken in ("{", "[1]", "abc"):
        con.execute("UPDATE week_2_objects SET properties = ?", [broken])
        sentence = f"in '.*model.ifc' must be a JSON object, got '{re.escape(broken)}'"
        sentence = f"revision_changes: properties of '.*' {sentence}"
        with pytest.raises(duckdb.Error, match=sentence):
            con.sql("FROM revision_changes('week_1', 'week_2')").fetchall()
    con.execute("ALTER TABLE week_1_objects DROP properties")
    with pytest.raises(duckdb.Error, match=r": (old|new) must have a column properties"):
        con.sql("FROM revision_changes('week_1', 'week_1')").fetchall()


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(Exception, match=r"model_changes: '.*there.ifc'"):
        changed(tmp_path / "there.ifc", tmp_path / "there.ifc")
