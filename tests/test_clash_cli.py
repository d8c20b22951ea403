"""`spatialq clash`, and the lengths that it reads."""

import zipfile

import ifcopenshell.api.georeference
import ifcopenshell.guid
import openpyxl
import pytest

import spatialq
from spatialq.data.units import metres
from spatialq.database.table_files import write_table
from spatialq.errors import CrsError, FileWarning
from spatialq.workflows import clash_files
from spatialq.workflows.clash import find_clashes

from .command_line import rows, spatialq_command
from .io.ifc_models import Builder

pytestmark = pytest.mark.slow  # as a whole


def read(path):
    with spatialq.connect() as con:
        result = con.execute(f"FROM '{path}'")
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def same(pairs):
    return {frozenset(pair) for pair in pairs}


def test_the_house_has_the_clashes_that_were_built_in(world, tmp_path):
    target = tmp_path / "clashes.parquet"
    (written,) = rows("clash", world.ifc, "-o", target)
    found = read(target)
    assert written == {"output": str(target), "rows": len(found), "left_out": {}}
    house = world.house
    listed = house.of("hard") + house.of("contains") + house.of("equal")
    assert same((row["a"], row["b"]) for row in found) == same(listed)
    relations = {row["relation"]: {row["a"], row["b"]} for row in found}
    assert relations["contains"] | relations.get("inside", set()) == {*house.of("contains")[0]}
    assert relations["equals"] == {*house.of("equal")[0]}
    deep = [row["penetration"] for row in found]
    assert deep == sorted(deep, reverse=True)
    for row in found:
        assert row["a_file"] == row["b_file"] == str(world.ifc)
        assert row["flags"] == []
        assert row["distance"] == 0
        assert max(row["penetration"], row["thickness"]) > 0.001


def test_a_pipe_through_a_beam_is_a_clash_whatever_its_wall_is(world):
    names = ("heating pipe through beam", "beam east")
    found = rows("clash", world.ifc, "--tolerance", "10mm")["clashes"]
    (row,) = (row for row in found if {row["a_name"], row["b_name"]} == {*names})
    assert row["penetration"] > 0.01 > row["thickness"]
    thick = rows("clash", world.ifc, "--tolerance", "10mm", "--min-thickness", "10mm")["clashes"]
    assert same((r["a"], r["b"]) for r in found) > same((r["a"], r["b"]) for r in thick)
    assert all(row["thickness"] >= 0.01 for row in thick)


def test_a_sheet_says_what_clashes_with_what(world, tmp_path):
    target = tmp_path / "clashes.xlsx"
    (written,) = rows("clash", world.ifc, "--no-pictures", "-o", target)
    names, *found = openpyxl.load_workbook(target).active.values
    assert names == (
        "relation", "penetration", "thickness", "distance", "a_name", "a_class", "a_storey",
        "b_name", "b_class", "b_storey", "a_storey_unified", "b_storey_unified", "x", "y", "z",
        "a_global_id", "b_global_id", "a_file", "b_file", "flags",
    )  # fmt: skip
    assert len(found) == written["rows"] > 0
    with spatialq.connect() as con:
        elements = con.sql(f"SELECT global_id, name, storey FROM read_ifc('{world.ifc}')")
        known = {global_id: said for global_id, *said in elements.fetchall()}
    for row in (dict(zip(names, each, strict=True)) for each in found):
        assert [row["a_name"], row["a_storey"]] == known[row["a_global_id"]]
        assert [row["b_name"], row["b_storey"]] == known[row["b_global_id"]]


def test_several_files_are_written_of_one_search(world, tmp_path):
    targets = [tmp_path / f"clashes.{suffix}" for suffix in ("bcf", "html", "xlsx", "csv", "png")]
    options = ("--bcf-version", "3.0", "--no-pictures")
    written = rows("clash", world.ifc, *options, *(each for t in targets for each in ("-o", t)))
    assert [each["output"] for each in written] == [*map(str, targets)]
    for target in targets[:-1]:
        alone = tmp_path / f"alone{target.suffix}"
        own = options[: 2 * (target.suffix == ".bcf")] + options[2:] * (target.suffix == ".xlsx")
        (one,) = rows("clash", world.ifc, *own, "-o", alone)
        assert one["rows"] == next(e["rows"] for e in written if e["output"] == str(target))
        if target.suffix in (".bcf", ".csv"):
            assert alone.read_bytes() == target.read_bytes()
    assert targets[-1].read_bytes().startswith(b"\x89PNG")
    again = spatialq_command("clash", world.ifc, "-o", targets[0], "-o", targets[0])
    assert "clash: outputs must be different files" in again.stderr


def test_groups_are_a_sheet_of_their_own(world, tmp_path):
    target = tmp_path / "clashes.xlsx"
    rows("clash", world.ifc, "--group", "element", "--no-pictures", "-o", target)
    book = openpyxl.load_workbook(target)
    assert book.sheetnames == ["rows", "groups", "matrix"]
    expected = rows("clash", world.ifc, "--group", "element")["groups"]
    names, *found = book["groups"].values
    assert [dict(zip(names, row, strict=True)) for row in found] == [
        # a sheet has 16 digits
        {k: float(f"{v:.16G}") if isinstance(v, float) else v for k, v in row.items()}
        for row in expected
    ]
    columns, *clashes = book["rows"].values
    ids = [row[columns.index("group_id")] for row in clashes]
    assert {each: ids.count(each) for each in ids} == {
        row["group_id"]: row["clashes"] for row in expected
    }


@pytest.mark.parametrize(
    ("arguments", "sheet", "what"),
    [((), "rows", "clashes"), (("--group", "storey"), "groups", "groups")],
)
def test_a_sheet_has_pictures_that_a_bcf_has(world, tmp_path, arguments, sheet, what):
    target, archive = tmp_path / "clashes.xlsx", tmp_path / "clashes.bcf"
    rows("clash", world.ifc, *arguments, "-o", target)
    rows("clash", world.ifc, "-o", archive)
    book = openpyxl.load_workbook(target)
    shown = book[sheet]
    count = len(rows("clash", world.ifc, *arguments, "--limit", "1000")[what])
    names, *_ = shown.values
    places = [(each.anchor._from.col, each.anchor._from.row) for each in shown._images]
    assert sorted(places) == [(len(names) - 1, k) for k in range(1, count + 1)]
    assert names[-1] == "picture"
    with zipfile.ZipFile(archive) as bcf:
        snapshots = {bcf.read(name) for name in bcf.namelist() if name.endswith(".png")}
    pictures = {image._data() for image in shown._images}
    assert pictures == snapshots if sheet == "rows" else pictures < snapshots
    assert sum(len(each._images) for each in book) == count


def test_pictures_are_bounded_and_those_of_other_files_refused(world, tmp_path, monkeypatch):
    monkeypatch.setattr(clash_files, "MOST_PICTURES", 2)
    target = tmp_path / "clashes.xlsx"
    asked = clash_files.Asked([], None, 1.0, "clashes", None, has_rules=False, has_volumes=False)
    with find_clashes([world.ifc]) as con:
        shown = clash_files.pictures(con, target, asked)
        write_table(con, "FROM clashes", target, pictures=shown)
    assert len(openpyxl.load_workbook(target)["rows"]._images) == 2
    result = spatialq_command("clash", world.ifc, "--no-pictures", "-o", tmp_path / "a.bcf")
    assert "clash: --no-pictures is for -o of .xlsx" in " ".join(result.stderr.split())


def test_the_matrix_is_a_sheet_of_its_own(world, tmp_path):
    target = tmp_path / "clashes.xlsx"
    rows("clash", world.ifc, "--no-pictures", "-o", target)
    book = openpyxl.load_workbook(target)
    assert book.sheetnames == ["rows", "matrix"]
    names, *found = book["matrix"].values
    expected = rows("clash", world.ifc, "--matrix", "class")["matrix"]
    for row, right in zip(found, expected, strict=True):
        assert dict(zip(names, row, strict=True)) == pytest.approx(right)


def test_volumes(world, tmp_path):
    found = rows("clash", world.ifc, "--volume")["clashes"]
    for row in found:
        assert 0 < row["volume"] <= row["dx"] * row["dy"] * row["dz"] * (1 + 1e-6)
        assert row["dx"] >= row["dy"] >= row["dz"] > 0
    assert {row["volume"] for row in rows("clash", world.ifc)["clashes"]} == {None}
    rows("clash", world.ifc, "--volume", "--no-pictures", "-o", tmp_path / "clashes.xlsx")
    names, *sheet = openpyxl.load_workbook(tmp_path / "clashes.xlsx").active.values
    assert names[2:7] == ("thickness", "volume", "dx", "dy", "dz")
    assert [row[3] for row in sheet] == pytest.approx([row["volume"] for row in found])
    rows("clash", world.ifc, "--volume", "-o", tmp_path / "job", "--executor", "serial")
    with spatialq.connect() as con:
        parts = con.sql(f"FROM cluster_table('{tmp_path / 'job'}')")
        assert same(parts.project("a, b, volume").fetchall()) == same(
            (row["a"], row["b"], row["volume"]) for row in found
        )
    groups = rows("clash", world.ifc, "--volume", "--group", "relation")["groups"]
    total = sum(group["volume"] for group in groups)
    assert total == pytest.approx(sum(row["volume"] for row in found))


def test_pairs_that_are_near(world):
    arguments = ("--a", "ifc_class LIKE 'IfcPipe%' OR ifc_class LIKE 'IfcDuct%'",
                 "--b", "ifc_class = 'IfcWall' -- and nothing else")  # fmt: skip
    found = rows("clash", world.ifc, *arguments, "--closer-than", "49.9mm")["clashes"]
    near = {frozenset((r["a"], r["b"])): r["distance"] for r in found if r["distance"] > 0.001}
    expected = {
        frozenset((pair.a, pair.b)): pair.distance
        for pair in world.house.pairs
        if pair.kind == "near"
    }
    assert set(near) == set(expected)
    for pair, distance in near.items():
        assert distance == pytest.approx(expected[pair], abs=1e-3)
    # the duct through the wall is still among them, with what it is
    assert {"overlap", "disjoint"} <= {row["relation"] for row in found}


def test_the_summary_and_its_limit(world):
    result = spatialq_command("clash", world.ifc, "--limit", 1)
    assert result.returncode == 0, result.stderr
    assert "IfcBeam" in result.stdout
    assert "equals" in result.stdout
    assert "only the first of the pairs is shown (--limit); -o writes all" in result.stderr
    found = rows("clash", world.ifc, "--a", "ifc_class = 'IfcWall'", "--limit", 1)
    assert found["counts"] == [
        {"class": "IfcWall", "other_class": "IfcWall", "relation": "overlap", "pairs": 1,
         "deepest": 0.05}
    ]  # fmt: skip
    assert len(found["clashes"]) == 1


def test_the_summary_says_how_the_first_class_stands_to_the_other(world):
    found = rows("clash", world.ifc, "--limit", 0)
    assert found["clashes"] == []
    assert {tuple(row.values())[:4] for row in found["counts"]} == {
        ("IfcBeam", "IfcPipeSegment", "overlap", 1),
        ("IfcColumn", "IfcColumn", "equals", 1),
        ("IfcDuctSegment", "IfcWall", "overlap", 1),
        ("IfcPipeSegment", "IfcWall", "inside", 1),
        ("IfcWall", "IfcWall", "overlap", 1),
    }


def crossing(tmp_path, name, unit="metre", *, shift=0.0, place=None):
    """A model of one beam; beams of two models cross when nothing is shifted."""
    builder = Builder(unit=unit)
    along_x = name == "one"
    size = (2.0, 0.1, 0.2) if along_x else (0.1, 2.0, 0.2)
    low = (-1.0 + shift, 0.0, 0.0) if along_x else (0.0 + shift, -1.0, 0.0)
    builder.add("IfcBeam", f"beam of {name}", [builder.box(low, size)])
    if place is not None:
        ifcopenshell.api.georeference.add_georeferencing(builder.model)
        ifcopenshell.api.georeference.edit_georeferencing(
            builder.model,
            projected_crs={"Name": "EPSG:25832"},
            coordinate_operation={"Eastings": place, "Northings": 5.0, "OrthogonalHeight": 0.0},
        )
    return builder.write(tmp_path / f"{name}.ifc")


def clashes(*arguments, **options):
    query = "SELECT a_name, b_name, relation, round(thickness, 6), a_file, b_file FROM clashes"
    with find_clashes(*arguments, **options) as con:
        return con.execute(query).fetchall()


def test_models_of_different_units_are_compared_in_metres(tmp_path):
    one = crossing(tmp_path, "one", "millimetre", place=400.0)
    other = crossing(tmp_path, "other", "metre", place=400.0)
    expected = [("beam of one", "beam of other", "overlap", 0.1, str(one), str(other))]
    assert clashes([one, other]) == expected
    assert clashes([str(tmp_path / "*.ifc")]) == expected
    assert clashes([one, other], tolerance=0.11) == []
    assert clashes([one, other], broad_phase="none", closer_than=0.01) == expected
    with pytest.raises(ValueError, match="intersects_with: no option 'within'; there is"):
        clashes([one, other], within=0.01)


def test_models_at_different_places_are_refused(tmp_path):
    one = crossing(tmp_path, "one", place=400.0)
    other = crossing(tmp_path, "other", place=401.0)
    message = (
        f"clash: '{one}' and '{other}' lie at different places on the map: EPSG:25832 400.000 "
        "5.000 0.000 turned 0.0000° against EPSG:25832 401.000"
    )
    with pytest.raises(CrsError, match=message.replace(".", r"\.")):
        clashes([one, other])
    assert len(clashes([one, crossing(tmp_path, "other")])) == 1, "one that does not say fits any"


def test_a_query_over_tables_of_models_at_different_places_is_refused(tmp_path):
    database = tmp_path / "db.duckdb"
    with spatialq.connect(str(database)) as con:
        for name, place in (("one", 400.0), ("other", 401.0), ("third", None)):
            spatialq.load(con, crossing(tmp_path, name, place=place), name)
    result = spatialq_command("sql", "FROM intersects_with('one', 'other')", "-d", database)
    assert result.returncode == 1
    assert "error: query: " in result.stderr
    assert "lie at different places on the map" in result.stderr
    query = "SELECT relation FROM intersects_with('one', 'third')"
    assert rows("sql", query, "-d", database) == [{"relation": "overlap"}]


def test_models_far_apart_are_warned_about(tmp_path):
    models = [crossing(tmp_path, "one"), crossing(tmp_path, "other", shift=5e5)]
    with pytest.warns(FileWarning, match=r"are 500\.0 km apart: they seem to have different"):
        assert clashes(models) == []


def test_global_ids_that_two_files_share_stay_apart(tmp_path):
    builder = Builder()
    builder.add("IfcBeam", "beam", [builder.box((0, 0, 0), (1, 1, 1))])
    models = [builder.write(tmp_path / f"{name}.ifc") for name in ("old", "new")]
    with pytest.warns(FileWarning, match=r"1 of the 1 elements of .*old\.ifc' are in .*new\.ifc'"):
        assert clashes(models) == [("beam", "beam", "equals", 1.0, *map(str, models))]


def test_what_belongs_together_is_left_out(tmp_path):
    builder = Builder()
    *_, window = builder.wall_with_window()
    builder.add("IfcBeam", "beam", [builder.box((1.2, 0, 1.2), (0.2, 0.2, 0.2))])
    thick = [builder.box((0.9, 0.05, 0.9), (1.2, 0.1, 1.2))]
    window.Representation.Representations[0].Items = thick
    model = builder.write(tmp_path / "m.ifc")
    names = {frozenset(row[:2]) for row in clashes([model], exclude="none")}
    assert names == {frozenset(("Wall", "Window")), frozenset(("Window", "beam"))}
    names = {frozenset(row[:2]) for row in clashes([model])}
    assert names == {frozenset(("Window", "beam"))}
    with find_clashes([model]) as con:
        left_out = con.execute("SELECT excluded, a_name, b_name FROM left_out").fetchall()
        columns = [con.table(name).columns for name in ("left_out", "clashes")]
        assert columns[0] == [*columns[1], "excluded"]
    assert [(rule, {*pair}) for rule, *pair in left_out] == [("openings", {"Wall", "Window"})]


@pytest.fixture
def services(tmp_path):
    """A house's services: each pair overlaps, and is what its rule is about."""
    builder = Builder()

    def bar(name, at, ifc_class="IfcPipeSegment"):
        return builder.add(ifc_class, name, [builder.box((at, 0, 0), (1, 0.2, 0.2))])

    bar("one", 0.0), bar("same", 0.0)
    parts = [bar("part", 10.0, "IfcMember"), bar("other part", 10.5, "IfcMember")]
    whole = builder.add("IfcCurtainWall", "whole", [])
    members = [bar("pipe", 20.0), bar("crossing", 20.5)]
    joined = [bar("beam", 30.0, "IfcBeam"), bar("column", 30.5, "IfcColumn")]
    both = [bar("bend", 40.0), bar("tee", 40.5)]
    bar("true", 50.0), bar("clash", 50.5)
    model = builder.model
    system = model.create_entity("IfcSystem", ifcopenshell.guid.new(), Name="water")

    def relate(ifc_class, **attributes):
        model.create_entity(ifc_class, ifcopenshell.guid.new(), **attributes)

    relate("IfcRelAggregates", RelatingObject=whole, RelatedObjects=parts)
    relate("IfcRelAssignsToGroup", RelatedObjects=[*members, *both], RelatingGroup=system)
    for one, other in (joined, both):
        relate("IfcRelConnectsElements", RelatingElement=one, RelatedElement=other)
    return builder.write(tmp_path / "services.ifc")


PAIRS = {
    "duplicates": ("one", "same"), "assemblies": ("part", "other part"),
    "systems": ("pipe", "crossing"), "connections": ("beam", "column"),
    "connections too": ("bend", "tee"), "no rule": ("true", "clash"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("exclude", "left_out"),
    [
        ("none", {}),
        ("default", {"assemblies": 1, "connections": 2}),
        ("duplicates", {"duplicates": 1}),
        ("systems, default", {"assemblies": 1, "connections": 2, "systems": 1}),
        ("systems", {"systems": 2}),
        ("default,duplicates,systems",
         {"assemblies": 1, "connections": 2, "duplicates": 1, "systems": 1}),
    ],
)  # fmt: skip
def test_each_rule_leaves_out_its_pairs(services, tmp_path, exclude, left_out):
    found = rows("clash", services, "--exclude", exclude)
    kept = {frozenset((row["a_name"], row["b_name"])) for row in found["clashes"]}
    names = {name.removesuffix(" too") for name in left_out}
    if "systems" in names:
        names.add("connections too")
    expected = {
        frozenset(pair)
        for rule, pair in PAIRS.items()
        if rule not in names and not (rule == "connections too" and "connections" in names)
    }
    assert kept == expected
    assert found["left_out"] == left_out
    (job,) = rows(
        "clash", services, "-o", tmp_path / "job", "--executor", "serial", "--exclude", exclude
    )
    assert job.get("left_out", {}) == left_out
    assert job["rows"] == len(kept)


def test_what_is_left_out_is_said(services, tmp_path):
    said = "3 left out: 2 connections, 1 assemblies"
    for more in ([], ["-o", tmp_path / "x.csv"], ["-o", tmp_path / "job", "--executor", "serial"]):
        result = spatialq_command("clash", services, *more)
        assert result.returncode == 0, result.stderr
        assert said in result.stderr
    assert "left out" not in spatialq_command("clash", services, "--exclude", "none").stderr
    (written,) = rows("clash", services, "-o", tmp_path / "x.csv")
    assert written["left_out"] == {"connections": 2, "assemblies": 1}
    result = spatialq_command("clash", services, "--exclude", "default, twins")
    assert result.stderr.strip() == (
        "error: clash: exclude must be 'none', 'default', or one or more of duplicates, openings, "
        "coverings, assemblies, connections, systems with commas between, got 'default, twins'"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none.ifc"], 1, "error: clash: 'none.ifc': there is no such file"),
        (["*.ifc"], 1, "error: clash: '*.ifc': no file matches this pattern"),
        (["a.ifc", "--tolerance", "thin"], 1, "error: clash: tolerance must be a length >= 0 such"),
        (["a.ifc", "--tolerance", "-1mm"], 1, "error: clash: tolerance must be a length >= 0 such"),
        (["a.ifc", "--closer-than", "2km"], 1, "error: clash: closer_than must be a length"),
        (
            ["a.ifc", "-o", "x.tif"],
            1,
            "error: output: 'x.tif' must end in one of .bcf, .bcfzip, .csv, ",
        ),
        (["a.ifc", "--bcf-version", "3", "-o", "a.bcf"], 2, "error: Invalid value for '--bcf-ver"),
        (["a.ifc", "--bcf-version", "3.0"], 1, "error: clash: --bcf-version is for -o of .bcf or"),
        (["a.ifc", "--bcf-version", "3.0", "-o", "a.csv"], 1, "error: clash: --bcf-version is for"),
        (["a.ifc", "--bcf-in", "no.bcf"], 1, "error: clash: 'no.bcf': there is no such file"),
        (["a.ifc", "-o", "no/x.csv"], 1, "error: output: 'no/x.csv': there is no folder"),
        ([], 2, "error: Missing argument 'models'"),
    ],
)
def test_errors_are_one_line(tmp_path, arguments, code, message):
    result = spatialq_command("clash", *arguments, cwd=tmp_path)
    assert result.returncode == code
    assert result.stderr.startswith(message)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_model_without_elements_is_told(tmp_path):
    Builder("IFC4", "metre").model.write(str(tmp_path / "empty.ifc"))
    result = spatialq_command("clash", tmp_path / "empty.ifc")
    assert result.returncode == 0
    assert result.stderr == "warning: clash: no element of the models has a mesh\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--a", "ifc_clas = 'IfcBeam'"], "error: clash: a must be a condition over the columns"),
        (["--b", "1 = "], "error: clash: b must be a condition over the columns of read_ifc, or"),
        (["--method", "quick"], "error: intersects_with: method must be 'exact' or 'pairmesh'"),
        (
            ["--device", "tpu"],
            "error: intersects_with: device must be 'auto', 'cpu', 'gpu' or one GPU",
        ),
    ],
)
def test_wrong_options_are_one_line(tmp_path, arguments, message):
    model = crossing(tmp_path, "one")
    result = spatialq_command("clash", model, *arguments)
    assert result.stderr.startswith(message)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("text", "value"),
    [("2mm", 0.002), (" 5 CM ", 0.05), ("1e-3m", 0.001), ("0", 0.0), ("1 in", 0.0254),
     ("2ft", 0.6096), ("3937ftUS", 1200.0), ("3937 us-ft", 1200.0)],
)  # fmt: skip
def test_lengths(text, value):
    assert metres("f", "x", text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", ["", "mm", "2 km", "two mm", "nan", "inf", "1e999", "-1", "1 2mm"])
def test_what_is_no_length(text):
    with pytest.raises(ValueError, match=f"f: x must be a length >= 0 such as 2mm .*'{text}'"):
        metres("f", "x", text)


def test_a_length_without_a_unit_is_refused_with_its_readings():
    readings = "'50': 50mm is 50 millimetres, 50m is 50 metres"
    with pytest.raises(ValueError, match=f"f: x must say its unit, got {readings}"):
        metres("f", "x", "50")


def pairs_of(model, **sides):
    with find_clashes([model], **sides) as con:
        return sorted(con.sql("SELECT a, b FROM clashes").fetchall())


def test_selectors_and_conditions_mean_the_same(world):
    assert pairs_of(world.ifc, a="IfcWall") == pairs_of(world.ifc, a="ifc_class = 'IfcWall'")
    for selector, condition in (
        ("IfcPipeSegment", "is_a(ifc_class, 'IfcPipeSegment')"),
        (
            "IfcFlowSegment + IfcBeam",
            "ifc_class IN ('IfcPipeSegment', 'IfcDuctSegment', 'IfcBeam')",
        ),
        ("IfcElement, !IfcWall", "ifc_class <> 'IfcWall' AND is_a(ifc_class, 'IfcElement')"),
    ):
        found = pairs_of(world.ifc, a=selector, b="IfcWall + IfcPipeSegment")
        assert found == pairs_of(
            world.ifc, a=condition, b="ifc_class IN ('IfcWall', 'IfcPipeSegment')"
        )
        assert found
    first, _ = pairs_of(world.ifc, a="IfcWall")[0]
    assert pairs_of(world.ifc, a=first, b="IfcWall")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("IfcWal", "clash: a: a class of the selector must be a class of "),
        ("IfcWall, Nme=x", "clash: a: no class of objects has an attribute 'Nme'; near names are "),
        ("ifcwall", "clash: a: at line 1, column 1 of the selector 'ifcwall' is no class, attribu"),
        ("! IfcWall,", "clash: a: at line 1, column 11 of the selector "),
        ("ifc_clas = 'IfcWall'", 'not found in FROM clause! Candidate bindings: "ifc_class"'),
        ("is_a(ifc_class, 'IfcWal')", "is_a: supertype must be a class of "),
        (
            "name = 'open",
            "clash: a must be a condition over the columns of read_ifc, or a selector ",
        ),
        ("Name=/W.*/", "clash: a must be a condition over the columns of read_ifc, or a selector "),
    ],
)
def test_what_is_not_understood_fails_before_a_model_is_read(tmp_path, monkeypatch, text, said):
    def read(*_, **__):
        raise AssertionError

    monkeypatch.setattr("spatialq.io.ifc.cache.read_models", read)
    model = crossing(tmp_path, "one")
    with pytest.raises(ValueError, match="clash: a") as caught:
        find_clashes([model], a=text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(AssertionError):
        find_clashes([model], a="name = 'x' -- or not", b="IfcWall, material=x")


def test_unknown_properties_are_warned_of(tmp_path):
    result = spatialq_command("clash", crossing(tmp_path, "one"), "--a", 'IfcBeam, "my set".Y=1')
    assert result.returncode == 0
    unknown = "clash: a: neither the model nor the standard has a property set named 'my set'; "
    assert result.stderr.count(f"{unknown}the model has none") == 1
    assert result.stderr.count("clash: no element of the models matches a: ") == 1
