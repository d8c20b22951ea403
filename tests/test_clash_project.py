"""`spatialq clash --project`: what becomes of clashes from one run to the next."""

import re
import shutil
import signal
import subprocess
import sys
import zipfile
from datetime import datetime
from pathlib import Path
from random import Random

import duckdb
import ifcopenshell
import ifcopenshell.guid
import pytest

import spatialq
from spatialq.database.table_files import write_table
from spatialq.errors import FileError
from spatialq.export import clash_snapshot
from spatialq.export.clash_view import see
from spatialq.workflows.clash import find_clashes
from spatialq.workflows.clash_files import Asked, groups_sql, query_of

from .command_line import rows, spatialq_command
from .conftest import real_file
from .io.ifc_models import Builder
from .model_edits import EDITS, Edits

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("kept_models")]  # as a whole

KILLED = """
import os, signal, sys
from pathlib import Path
from spatialq.workflows import clash, clash_project
clash_project._models = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
clash.find_clashes(sys.argv[2:], project=Path(sys.argv[1]))
"""
"""A run that ends while it is being written."""


def beams(path, shifts=(0.0, 0.0, 0.0, 0.0), *, along_x):
    """Beams, of which each crosses that of the other model which has its number."""
    builder = Builder("IFC4", "millimetre")
    for k, shift in enumerate(shifts):
        low, size = ((-1.0, 0.0, 0.0), (2.0, 0.1, 0.2))
        if not along_x:
            low, size = ((0.0, -1.0, 0.0), (0.1, 2.0, 0.2))
        items = [builder.box(low, size)]
        builder.add("IfcBeam", f"{'xy'[not along_x]}{k}", items, at=(5.0 * k, 0.0, shift))
    builder.model.write(str(path))
    return path


@pytest.fixture
def models(tmp_path):
    return [beams(tmp_path / f"{name}.ifc", along_x=name == "x") for name in "xy"]


def run(project, models, **options):
    with find_clashes(models, project=project, **options) as con:
        return {row[0]: row[1:] for row in con.execute(
            "SELECT a_name, status, clash, assignee FROM clashes"
        ).fetchall()}  # fmt: skip


def query(project, text, *values):
    with duckdb.connect(str(project)) as con:
        return con.execute(text, values).fetchall()


def edit(path, change):
    model = ifcopenshell.open(str(path))
    change(model, {each.Name: each for each in model.by_type("IfcBeam")})
    model.write(str(path))


def raise_by(model, beam, millimetres):
    beam.ObjectPlacement.RelativePlacement.Location.Coordinates = (
        *beam.ObjectPlacement.RelativePlacement.Location.Coordinates[:2],
        millimetres,
    )


def test_what_comes_back_in_a_bcf_is_kept(models, tmp_path):
    project, sent, back = (tmp_path / name for name in ("p.duckdb", "sent.bcf", "back.bcf"))
    rows("clash", *models, "--project", project, "-o", sent)
    with zipfile.ZipFile(sent) as old, zipfile.ZipFile(back, "w") as new:
        (first, *_) = sorted(name for name in old.namelist() if name.endswith("markup.bcf"))
        for name in old.namelist():
            text = old.read(name)
            if name == first:
                (guid,) = re.findall(rb'<Topic Guid="([^"]+)"', text)
                text = text.replace(b'TopicStatus="new"', b'TopicStatus="approved"')
                text = text.replace(
                    b"<CreationAuthor>spatialq</CreationAuthor>",
                    b"<CreationAuthor>spatialq</CreationAuthor><AssignedTo>Ada</AssignedTo>",
                )
                text = text.replace(
                    b"  <Viewpoints",
                    b'  <Comment Guid="00000000-0000-4000-8000-000000000000">'
                    b"<Date>2026-01-02T03:04:05Z</Date><Author>Ada</Author>"
                    b"<Comment>as planned</Comment></Comment>\n  <Viewpoints",
                    1,
                )
            new.writestr(name, text)
    for archives in ([back], [back], []):
        told = [each for path in archives for each in ("--bcf-in", path)]
        rows("clash", *models, "--project", project, *told, "-o", sent)
        said = query(
            project,
            "SELECT status, assignee, author, comment, written_at FROM clashes "
            "LEFT JOIN comments USING (clash) ORDER BY ALL",
        )
        at = datetime(2026, 1, 2, 3, 4, 5)
        assert said == [
            *[("active", None, None, None, None)] * 3,
            ("approved", "Ada", "Ada", "as planned", at),
        ]
        with spatialq.connect() as con:
            topic = con.execute(
                "SELECT topic, status, assigned_to FROM read_bcf($1) WHERE status <> 'active'",
                [str(sent)],
            ).fetchall()
            comments = con.execute(
                "SELECT topic::VARCHAR, comment FROM read_bcf_comments($1) WHERE author = 'Ada'",
                [str(sent)],
            ).fetchall()
        assert topic == [(guid.decode(), "approved", "Ada")]
        assert comments == [(guid.decode(), "as planned")]


def test_a_clash_that_has_changed_is_not_approved_by_what_was_said_before(models, tmp_path):
    project, sent, back = (tmp_path / name for name in ("p.duckdb", "sent.bcf", "back.bcf"))
    rows("clash", *models, "--project", project, "-o", sent)
    with zipfile.ZipFile(sent) as old, zipfile.ZipFile(back, "w") as new:
        for name in old.namelist():
            text = old.read(name).replace(b'TopicStatus="new"', b'TopicStatus="approved"')
            new.writestr(name, text)
    edit(models[0], lambda model, beam: raise_by(model, beam["x1"], 50.0))
    rows("clash", *models, "--project", project, "--bcf-in", back, "-o", sent)
    found = query(project, "SELECT a_name, status FROM clashes ORDER BY a_name")
    assert found == [(f"x{k}", "changed" if k == 1 else "approved") for k in range(4)]


def test_what_becomes_of_clashes(models, tmp_path):
    project = tmp_path / "project.duckdb"
    first = run(project, models)
    assert {name: row[0] for name, row in first.items()} == dict.fromkeys(
        ("x0", "x1", "x2", "x3"), "new"
    )
    ids = {name: row[1] for name, row in first.items()}
    again = run(project, models)
    assert {row[0] for row in again.values()} == {"active"}

    query(project, "ALTER TABLE clashes ADD COLUMN priority INTEGER")
    said = "UPDATE clashes SET status = 'approved', assignee = 'Ada', priority = 3 WHERE a_name = ?"
    query(project, said, "x1")
    query(project, said, "x2")
    query(project, said, "x3")
    query(project, "INSERT INTO comments (clash, comment) VALUES (?, 'as built')", ids["x3"])

    def change(model, beam):
        raise_by(model, beam["x1"], 20.0)
        raise_by(model, beam["x2"], 5000.0)
        beam["x3"].GlobalId = ifcopenshell.guid.new()

    edit(models[0], change)
    third = run(project, models)
    assert {name: row[0] for name, row in third.items()} == {
        "x0": "active", "x1": "changed", "x3": "approved",
    }  # fmt: skip
    assert {name: row[1] for name, row in third.items()} == {
        name: ids[name] for name in ("x0", "x1", "x3")
    }
    kept = "SELECT a_name, status, assignee, priority, first_run, last_run FROM clashes ORDER BY 1"
    assert query(project, kept) == [
        ("x0", "active", None, None, 1, 3),
        ("x1", "changed", "Ada", 3, 1, 3),
        ("x2", "resolved", "Ada", 3, 1, 2),
        ("x3", "approved", "Ada", 3, 1, 3),
    ]
    edit(models[0], lambda model, beam: raise_by(model, beam["x2"], 0.0))
    fourth = run(project, models)
    assert fourth["x2"] == ("new", ids["x2"], "Ada")
    assert fourth["x1"][0] == "active"
    comments = "SELECT a_name, comment FROM comments JOIN clashes USING (clash)"
    assert query(project, comments) == [("x3", "as built")]
    history = "SELECT status FROM history WHERE clash = ? ORDER BY run"
    assert [status for (status,) in query(project, history, ids["x2"])] == [
        "new", "active", "resolved", "new",
    ]  # fmt: skip
    runs = query(project, "SELECT run, elements, searched, clashes FROM runs ORDER BY run")
    assert runs == [(1, 8, 8, 4), (2, 8, 0, 4), (3, 8, 2, 3), (4, 8, 1, 4)]
    digests = query(project, "SELECT count(DISTINCT digest) FROM models GROUP BY file_name")
    assert sorted(digests) == [(1,), (3,)]


def test_pairs_are_searched_once_whether_their_volumes_are_asked_for_or_not(tmp_path):
    """Beams that cross, one that ends at another, and one near another, of which one is moved."""
    models = [
        beams(tmp_path / "x.ifc", (0.0, 0.05, 0.2, 0.21), along_x=True),
        beams(tmp_path / "y.ifc", along_x=False),
    ]
    project = tmp_path / "project.duckdb"
    whole = "a, b, relation, penetration, thickness, distance, volume, dx, dy, dz, flags"
    for has_volume, place in ((False, 0.0), (True, 0.0), (False, 0.0), (False, 20.0), (True, 40.0)):
        edit(models[0], lambda model, beam, place=place: raise_by(model, beam["x0"], place))
        options = {"closer_than": 0.05, "volume": has_volume}
        with find_clashes(models, **options) as con:
            expected = con.sql(f"SELECT {whole} FROM clashes ORDER BY ALL").fetchall()
        with find_clashes(models, project=project, **options) as con:
            assert con.sql(f"SELECT {whole} FROM clashes ORDER BY ALL").fetchall() == expected
        assert {row[2] for row in expected} == {"overlap", "touch", "disjoint"}
        assert any(row[6] for row in expected) == has_volume
    runs = query(project, "SELECT searched FROM runs ORDER BY run")
    assert runs == [(8,), (0,), (0,), (1,), (1,)]


def test_all_global_ids_are_new_and_the_file_has_another_name(models, tmp_path):
    project = tmp_path / "project.duckdb"
    first = run(project, models)
    renamed = tmp_path / "w.ifc"
    shutil.move(models[1], renamed)

    def renumber(model, _):
        for each in model.by_type("IfcRoot"):
            each.GlobalId = ifcopenshell.guid.new()

    edit(renamed, renumber)
    second = run(project, [models[0], renamed])
    assert {name: row[1] for name, row in second.items()} == {
        name: row[1] for name, row in first.items()
    }
    assert {row[0] for row in second.values()} == {"active"}
    # pairs in the other order are searched again, and are the same clashes
    assert {row[1] for row in run(project, [renamed, models[0]]).values()} == {
        row[1] for row in first.values()
    }


@pytest.mark.filterwarnings("ignore:clash. .* seems to be a copy:spatialq.errors.FileWarning")
def test_a_clash_that_is_left_out_is_not_resolved(models, tmp_path):
    project = tmp_path / "project.duckdb"
    shutil.copy(models[1], models[1].with_name("z.ifc"))
    models = [models[1], models[1].with_name("z.ifc")]  # each beam lies in another
    statuses = "SELECT status, count(*) FROM clashes GROUP BY status"
    history = "SELECT run, status, count(*) FROM history GROUP BY ALL ORDER BY ALL"
    assert {row[0] for row in run(project, models).values()} == {"new"}
    query(project, "UPDATE clashes SET status = 'approved' WHERE a_name = 'y1'")
    for _ in range(2):
        assert run(project, models, exclude="duplicates") == {}
        assert query(project, statuses) == [("excluded", 4)]
        assert query(project, history) == [(1, "new", 4), (2, "excluded", 4)]
    edit(models[1], lambda model, beam: raise_by(model, beam["y3"], 5000.0))
    assert run(project, models, exclude="duplicates") == {}
    assert sorted(query(project, statuses)) == [("excluded", 3), ("resolved", 1)]
    assert {row[0] for row in run(project, models).values()} == {"active"}
    assert query(project, history)[2:] == [(4, "resolved", 1), (5, "active", 3)]
    searched = query(project, "SELECT searched FROM runs ORDER BY run")
    assert searched == [(8,), (0,), (0,), (1,), (0,)], "exclusions do not change what is searched"


def test_a_run_that_is_killed_leaves_the_one_before(models, tmp_path):
    project = tmp_path / "project.duckdb"
    run(project, models)
    tables = ("runs", "models", "history", "clashes", "pairs")
    before = [query(project, f"FROM {table}") for table in tables]
    edit(models[0], lambda model, beam: raise_by(model, beam["x2"], 5000.0))
    command = [sys.executable, "-c", KILLED, project, *models]
    done = subprocess.run([*map(str, command)], check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL
    assert [query(project, f"FROM {table}") for table in tables] == before
    assert run(project, models).keys() == {"x0", "x1", "x3"}


SIDES = (
    {},
    {"closer_than": 0.05},
    {"a": "ifc_class = 'IfcSlab' OR name LIKE '%2%'", "b": "ifc_class <> 'IfcSlab'"},
    {"exclude": "default", "tolerance": 0.005},
)


@pytest.mark.filterwarnings("ignore::spatialq.errors.FileWarning")  # products without faces
@pytest.mark.parametrize("options", SIDES)
def test_random_edits_give_the_rows_of_a_full_run(tmp_path, options):
    real = real_file("data/ifc/webifc_example.ifc")
    model = tmp_path / "model.ifc"
    shutil.copy(real, model)
    other = real_file("data/ifc/Schependomlaan_XELLA-3e_verdieping.ifc")
    random = Random(str(options))
    for k in range(4):
        check_full(tmp_path / "project.duckdb", [model, other], options)
        edits = Edits(model, ("IfcWall", "IfcSlab", "IfcColumn", "IfcBeam"), k)
        for each in random.choices(EDITS, k=8):
            getattr(edits, each)()
        edits.model.write(str(model))
    searched = query(tmp_path / "project.duckdb", "SELECT searched, elements FROM runs ORDER BY 1")
    assert all(some < everything / 3 for some, everything in searched[:-1])


def check_full(project, models, options):
    with find_clashes(models, **options) as con:
        result = con.execute("FROM clashes")
        names = ", ".join(column for column, *_ in result.description)
        full = result.fetchall()
        groups = con.execute(groups_sql("'element'", 1.0)).fetchall()
    with find_clashes(models, project=project, **options) as con:
        unique = dict.fromkeys(frozenset((row[0], row[1])) for row in full)
        found = con.execute(f"SELECT {names} FROM clashes").fetchall()
        found_groups = con.execute(groups_sql("'element'", 1.0)).fetchall()
    if options.get("a") is None:
        assert found == full
        assert found_groups == groups
    else:  # a pair may be found in both orders, and is one clash
        assert [frozenset(row[:2]) for row in found] == list(unique)
        assert set(map(str, found)) <= set(map(str, full))


@pytest.mark.filterwarnings("ignore::spatialq.errors.FileWarning")  # models of which one was moved
def test_models_that_are_replaced_one_after_the_other_give_the_rows_of_a_full_run(tmp_path):
    random = Random(5)
    models = [tmp_path / f"{k}.ifc" for k in range(5)]
    for k, path in enumerate(models):
        beams(path, along_x=k % 2 == 0)
    listed = models.copy()
    for _ in range(10):
        check_full(tmp_path / "project.duckdb", listed, {})
        which = random.randrange(5)
        shifts = [random.choice((0.0, 0.05, 0.15, 1.0)) for _ in range(random.randrange(3, 6))]
        beams(models[which], shifts, along_x=which % 2 == 0)
        # others may be missing for a while, and be listed in another order
        listed = random.sample(models, random.choice((4, 5, 5)))
    searched = query(tmp_path / "project.duckdb", "SELECT searched, elements FROM runs")
    assert any(some < everything for some, everything in searched)


@pytest.mark.filterwarnings("ignore::spatialq.errors.FileWarning")  # products without faces
def test_random_edits_give_the_bcf_of_a_full_run(tmp_path, monkeypatch):
    """Only pictures that show something new are drawn; the bytes are those of all drawn anew."""
    drawn = []
    monkeypatch.setattr(clash_snapshot, "see", lambda *args: drawn.append(0) or see(*args))
    model, live = tmp_path / "model.ifc", tmp_path / "live.bcf"
    shutil.copy(real_file("data/ifc/webifc_example.ifc"), model)
    asked = Asked(["clash", "status", "assignee"], "'element'", 1.0, "groups",
                  matrix=None, has_rules=False, has_volumes=False)  # fmt: skip
    counts = []
    for k in range(4):
        full = tmp_path / f"full_{k}.bcf"
        with find_clashes([model], project=tmp_path / "project.duckdb") as con:
            con.execute("CREATE TABLE named AS FROM grouped_clashes('clashes', per := 'element')")
            con.execute("CREATE OR REPLACE TABLE clashes AS FROM named")
            query, _ = query_of(con, ".bcf", asked)
            write_table(con, query, live)
            counts.append(len(drawn))
            drawn.clear()
            assert write_table(con, query, full) == len(drawn)
        assert live.read_bytes() == full.read_bytes()
        edits = Edits(model, ("IfcWall", "IfcSlab", "IfcColumn", "IfcBeam"), k)
        edits.move()
        edits.stretch()
        edits.model.write(str(model))
        drawn.clear()
    assert all(0 < some < counts[0] for some in counts[1:]), counts


def test_another_test_searches_all(models, tmp_path):
    project = tmp_path / "project.duckdb"
    run(project, models)
    run(project, models, tolerance=0.002)
    assert query(project, "SELECT searched FROM runs") == [(8,), (8,)]


def test_another_database_is_refused(models, tmp_path):
    query(tmp_path / "other.duckdb", "CREATE TABLE runs (x INTEGER)")
    with pytest.raises(FileError, match="is a database, but not one of clashes"):
        run(tmp_path / "other.duckdb", models)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("DELETE FROM runs", "has clashes, but no run that found them"),
        ("ALTER TABLE clashes DROP assignee", "has no column assignee in clashes, as projects"),
        ("ALTER TABLE pairs RENAME penetration TO depth", "has no column penetration in pairs"),
    ],
)
def test_what_lost_its_rows_or_columns_is_refused_as_it_is(models, tmp_path, change, reason):
    project = tmp_path / "project.duckdb"
    run(project, models)
    query(project, change)
    before = query(project, "SELECT * FROM clashes ORDER BY clash")
    with pytest.raises(FileError, match=reason):
        run(project, models)
    assert query(project, "SELECT * FROM clashes ORDER BY clash") == before


def test_what_cannot_be_opened_is_said_before_models_are_read(tmp_path):
    missing = tmp_path / "missing.ifc"
    (tmp_path / "text.duckdb").write_text("text")
    with pytest.raises(FileError, match=r"^clash: '.*text.duckdb': cannot be opened: .* valid"):
        run(tmp_path / "text.duckdb", [missing])
    with pytest.raises(FileError, match=r"^clash: '.*': there is no folder '.*nowhere'"):
        run(tmp_path / "nowhere" / "a.duckdb", [missing])
    with pytest.raises(FileError, match=rf"^clash: 'no/p': there is no folder '{Path.cwd()}/no'"):
        run(Path("no/p"), [missing])
    with pytest.raises(FileError, match=r"^clash: '.*missing.ifc'"):
        run(tmp_path / "new.duckdb", [missing])
    assert [each.name for each in tmp_path.iterdir()] == ["text.duckdb"]


def test_a_search_that_fails_leaves_no_project(models, tmp_path):
    with pytest.raises(Exception, match="method"):
        run(tmp_path / "new.duckdb", models, method="guess")
    with pytest.raises(Exception, match="tolerance"):
        run(tmp_path / "new.duckdb", models, tolerance=-1.0)
    assert not (tmp_path / "new.duckdb").exists()


def test_the_command(models, tmp_path):
    project = tmp_path / "project.duckdb"
    found = rows("clash", *models, "--project", project)
    assert found["statuses"] == [{"status": "new", "clashes": 4}]
    assert {row["status"] for row in found["clashes"]} == {"new"}
    result = spatialq_command("clash", *models, "--project", project)
    assert "4 active" in result.stderr
    result = spatialq_command("clash", *models, "--project", project, "-o", tmp_path / "c.xlsx")
    assert result.returncode == 0, result.stderr
    assert "4 active" in result.stderr
    refused = spatialq_command(
        "clash", *models, "--project", project, "-o", tmp_path / "out", "--executor", "local"
    )
    assert refused.returncode == 1
    assert "--project" in refused.stderr
