"""What scripts do: against IfcOpenShell's own answers and SQL written by hand."""

from pathlib import Path

import duckdb
import ifcopenshell
import ifcopenshell.guid
import pytest

import spatialq
from spatialq.io.ifc import schemas
from spatialq.ql4bim.attributes import inverse
from tests.conftest import real_file

M = 'm = ImportModel("house.ifc")\n'


def names(script, variable=None):
    query = script.result if variable is None else script[variable]
    return sorted(name for (name,) in query.select("name").fetchall())


def test_the_published_examples_run(con, tmp_path):
    """Those of the language's own pages, in one script: the model's counts are SQL's."""
    part = tmp_path / "walls.ifc"
    script = spatialq.run_script(
        con,
        M
        + f"""
        o[host|open] = Deassociater(m.HasOpenings)
        f[host|open|fill] = Deassociater(o, [open].HasFillings)
        p[host|fill] = Projector(f, [host], [fill])
        d[wall|door] = TypeFilter(p, [host] is IfcWall, [fill] is IfcDoor)
        tall[wall|door] = AttributeFilter(d, [door].OverallHeight >= 2000.0)
        s = TypeFilter(m is IfcSlab)      w = TypeFilter(m is IfcWall)
        t[slab|wall] = Touches(s, w)
        u[slab|wall] = BelowRelaxed(s, w)
        duct = TypeFilter(m is IfcFlowSegment)   beam = TypeFilter(m is IfcBeam)
        c[duct|beam] = Overlaps(duct, beam)
        e[elem|storey] = Deassociater(m.ContainedInStructure)
        g[elem|storey] = AttributeFilter(e, [storey].Name = "ground floor")
        only = Projector(g, [elem])
        tw = Projector(t, [wall])   done = ExportModel(tw, "{part}")
        """,
    )
    counted = {
        "tall": "SELECT count(*) FROM read_ifc_objects('house.ifc') WHERE ifc_class = 'IfcDoor' "
        "AND (attributes -> '$.OverallHeight')::DOUBLE >= 2000",
        "only": "SELECT count(*) FROM read_ifc_objects('house.ifc') o JOIN "
        "read_ifc_objects('house.ifc') s ON o.container_id = s.global_id "
        "WHERE s.name = 'ground floor'",
        "o": "SELECT count(*) FROM read_ifc_relations('house.ifc') WHERE kind = 'voids'",
        "f": "SELECT count(*) FROM read_ifc_relations('house.ifc') WHERE kind = 'fills'",
    }
    for name, statement in counted.items():
        ((expected,),) = con.sql(statement).fetchall()
        assert script[name].count() == expected > 0
    con.execute("CREATE OR REPLACE TEMP TABLE parts AS FROM read_ifc('house.ifc')")
    con.execute("CREATE OR REPLACE TEMP VIEW ws AS FROM parts WHERE ifc_class LIKE 'IfcWall%'")
    con.execute("CREATE OR REPLACE TEMP VIEW ss AS FROM parts WHERE ifc_class = 'IfcSlab'")
    for name, macro in (("t", "touches"), ("u", "below")):
        by_hand = con.sql(f"SELECT a, b FROM {macro}('ss', 'ws') ORDER BY ALL").fetchall()
        assert sorted(script[name].fetchall()) == by_hand != []
    assert script.exported == [part]
    written = ifcopenshell.open(str(part))
    assert len(written.by_type("IfcWall")) >= script["tw"].count() == 15
    assert script.result.columns == script["tw"].columns
    assert "mesh" not in script.result.columns


def test_variables_are_queries(con):
    script = spatialq.run_script(con, M + "w = TypeFilter(m is IfcWall)  t[a|b] = Touches(w)")
    assert list(script) == ["m", "w", "t"]
    assert isinstance(script["w"], spatialq.Objects)
    assert isinstance(script["t"], spatialq.Pairs)
    assert script["w"].where("storey = 'attic'").count() == 2
    with pytest.raises(KeyError):
        script["x"]
    assert script.sql("w") == script["w"].sql()


def test_models_can_be_said_from_outside(con, folder, tmp_path):
    file = tmp_path / "walls.ql4bim"
    file.write_text('\ufeffm = ImportModel("nowhere.ifc")\nw = TypeFilter(m is IfcWall)', "utf-8")
    assert spatialq.run_script(con, file, models="house.ifc").result.count() == 15
    assert spatialq.run_script(con, str(file), models={"m": Path("other.ifc")}).result.count() == 15
    without = "w = TypeFilter(model is IfcWall)"
    assert spatialq.run_script(con, without, models=folder / "house.ifc").result.count() == 15
    two = 'a = IM("a.ifc") b = IM("b.ifc")'
    with pytest.raises(spatialq.ScriptError, match="there are several models"):
        spatialq.run_script(con, two, models="house.ifc")
    with pytest.raises(spatialq.ScriptError, match="given for 'c', but the models are a, b"):
        spatialq.run_script(con, two, models={"a": "house.ifc", "c": "other.ifc"})
    with pytest.raises(spatialq.FileError, match=r"no_such\.ql4bim"):
        spatialq.run_script(con, "no_such.ql4bim")


def test_loaded_tables_are_models_as_well(con):
    loaded = spatialq.connect()
    spatialq.read_ifc(loaded, "house.ifc", name="elements")
    script = """elements = ImportModel("elements")
    w = TypeFilter(elements is IfcWall)
    relations[host|open] = Deassociater(w.HasOpenings)
    n = AttributeFilter(w.Pset_WallCommon.IsExternal = true)
    touching[a|b] = Touches(w)"""
    ours = spatialq.run_script(loaded, script)
    file = spatialq.run_script(con, script.replace('("elements")', '("house.ifc")'))
    for name in ("w", "relations", "n", "touching"):
        assert sorted(map(str, ours[name].fetchall())) == sorted(map(str, file[name].fetchall()))
        assert ours[name].count() > 0


def test_sql_gives_the_same_rows(con):
    script = M + "w = TypeFilter(m is IfcWall)\nt[a|b] = Touches(w)"
    ours = spatialq.run_script(con, script)
    for name in ("w", "t"):
        rows = con.sql("FROM ql4bim($1, variable := $2)", params=[script, name]).fetchall()
        assert sorted(map(str, rows)) == sorted(map(str, ours[name].fetchall())) != []


def test_names_of_parts_are_not_hidden(con):
    """A variable may be called as what the macros and steps have inside."""
    expected = spatialq.run_script(con, M + "w = TF(m is IfcWall)\nt[a|b] = Touches(w)").result
    for name in ("whole", "related", "part_of", "below", "pairs", "rel", "obj", "one", "e", "p"):
        script = M + f"{name} = TF(m is IfcWall)\nt[a|b] = Touches({name})"
        assert sorted(spatialq.run_script(con, script).result.fetchall()) == sorted(
            expected.fetchall()
        )
        script = (
            M + f"{name}[host|open] = DA(m.HasOpenings)\nx[a|b|c] = DA({name}, [open].HasFillings)"
        )
        assert spatialq.run_script(con, script).result.count() == 16


# attributes and properties


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A model in millimetres with what is easily compared in a wrong way."""
    model = ifcopenshell.file(schema="IFC4")
    make = model.create_entity
    guid = ifcopenshell.guid.new
    unit = make("IfcSIUnit", None, "LENGTHUNIT", "MILLI", "METRE")
    project = make(
        "IfcProject", guid(), None, "p", UnitsInContext=make("IfcUnitAssignment", [unit])
    )
    for name, height, tag in (
        ("A", 900.0, "12"), ("a", 2000.0, None), ("B", 10000.0, "9"), (None, None, None),
    ):  # fmt: skip
        door = make("IfcDoor", guid(), None, name, OverallHeight=height, Tag=tag)
        if name:
            values = [
                make("IfcPropertyEnumeratedValue", "Status", None, [make("IfcLabel", f"é{name}")]),
                make("IfcPropertySingleValue", "Loud", None, make("IfcBoolean", name == "A")),
                make("IfcPropertySingleValue", "Rating", None, make("IfcLabel", "9")),
                make("IfcPropertySingleValue", "Gap", None, make("IfcLengthMeasure", height)),
            ]
            pset = make("IfcPropertySet", guid(), None, "My Set", HasProperties=values)
            make("IfcRelDefinesByProperties", guid(), None, None, None, [door], pset)
    times = {"ScheduleStart": "2024-05-01T08:00:00", "ScheduleFinish": "2024-05-03T08:00:00"}
    task = make("IfcTask", guid(), None, "build", TaskTime=make("IfcTaskTime", **times))
    make(
        "IfcRelAssignsToProduct",
        guid(),
        None,
        None,
        None,
        [task],
        None,
        model.by_type("IfcDoor")[0],
    )
    second = make("IfcTask", guid(), None, "remove")
    make(
        "IfcRelAssignsToProcess",
        guid(),
        None,
        None,
        None,
        [model.by_type("IfcDoor")[1]],
        None,
        second,
    )
    assert project
    path = tmp_path_factory.mktemp("odd") / "odd.ifc"
    model.write(str(path))
    return path


COMPARED = {
    # integers, which the published program compares the wrong way round, and floats
    "d.OverallHeight < 2000": ["A"],
    "d.OverallHeight <= 2000": ["A", "a"],
    "d.OverallHeight > 2000.0": ["B"],
    "d.OverallHeight >= 2000.0": ["B", "a"],
    "2000 <= d.OverallHeight": ["B", "a"],
    "d.OverallHeight = 2000": ["a"],
    "d.OverallHeight != 2000": ["A", "B"],
    "d.OverallHeight >= 2m": ["B", "a"],
    "d.OverallHeight < 100cm": ["A"],
    # texts, of which the published program tests all signs for equality in any case
    'd.Name = "a"': ["a"],
    'd.Name != "a"': ["A", "B"],
    'd.Name < "B"': ["A"],
    'd.Name ~ "(?i)A"': ["A", "a"],
    'd.Tag < "2"': ["A"],
    # what is missing
    "d.Name = unknown": [None],
    "d.Tag != unknown": ["A", "B"],
    'not d.Name = "a"': ["A", "B", None],
    "not d.OverallHeight > 1000": ["A", None],
    "not (d.OverallHeight > 1000 and d.Tag = unknown)": ["A", "B", None],
    # truth values and properties
    'd."My Set".Loud = true': ["A"],
    'd."My Set".Loud = false': ["B", "a"],
    'd."My Set".Loud != true': ["B", "a"],
    'not d."My Set".Loud = true': ["B", "a", None],
    'd."My Set".Loud = unknown': [None],
    'd."My Set".Gap > 1m': ["B", "a"],
    'd."My Set".Gap > 1000': ["B", "a"],
    'd."My Set".Status = "éA"': ["A"],
    'd."My Set".Status != "éA"': ["B", "a"],
    'd."My Set".Status ~ "éA"': ["A"],
    'd."My Set".Rating = 9': [],
    'd."My Set".Rating = "9"': ["A", "B", "a"],
    'd."My Set".Gap = d.OverallHeight': ["A", "B", "a"],
    "d.Name = d.Name": ["A", "B", "a"],
    "d.Name != d.Tag": ["A", "B"],
    "d.HasAssignments >= 1": ["a"],
    "d.ReferencedBy = 0": ["B", "a", None],
    "d > 3": ["A", "B", "a", None],
    "d > 4": [],
}


@pytest.mark.parametrize("condition", COMPARED)
def test_comparisons_mean_what_they_say(con, odd, condition):
    script = f'm = IM("{odd}") d = TF(m is IfcDoor) x = AF(d, {condition})'
    found = spatialq.run_script(con, script).result.select("name").fetchall()
    assert sorted((name for (name,) in found), key=str) == sorted(COMPARED[condition], key=str)


def test_tasks_and_their_times(con, odd):
    ran = spatialq.run_script(
        con,
        f"""m = ImportModel("{odd}")
        t[door|task|start|finish] = TimeResolver(m)
        u[door|task|start|finish] = AttributeFilter(t, [start] < "2024-06-01")
        b = Projector(u, [task])
        """,
    )
    assert ran["t"].count() == 2
    ((_, _, start, finish),) = ran["u"].fetchall()
    assert (start, finish) == ("2024-05-01T08:00:00", "2024-05-03T08:00:00")
    assert names(ran, "b") == ["build"]


def test_tasks_of_ifc2x3_have_times_as_well(con, tmp_path):
    model = ifcopenshell.file(schema="IFC2X3")
    make, guid = model.create_entity, ifcopenshell.guid.new
    unit = make("IfcSIUnit", None, "LENGTHUNIT", None, "METRE")
    make("IfcProject", guid(), None, "p", UnitsInContext=make("IfcUnitAssignment", [unit]))
    wall, task = make("IfcWall", guid(), None, "w"), make("IfcTask", guid(), None, "build")
    plan = make("IfcWorkSchedule", guid(), None, "plan")
    day = make("IfcCalendarDate", 1, 5, 2024)
    start = make("IfcDateAndTime", day, make("IfcLocalTime", 8, 30))
    times = make("IfcScheduleTimeControl", guid(), ScheduleStart=start, ScheduleFinish=day)
    make("IfcRelAssignsTasks", guid(), None, None, None, [task], None, plan, times)
    make("IfcRelAssignsToProduct", guid(), None, None, None, [task], None, wall)
    model.write(str(tmp_path / "old.ifc"))
    script = f'm = IM("{tmp_path / "old.ifc"}") t[wall|task|start|finish|real] = TR(m)'
    found = spatialq.run_script(con, script).result.fetchall()
    expected = ("2024-05-01T08:30:00", "2024-05-01T00:00:00", None)
    assert found == [(wall.GlobalId, task.GlobalId, *expected)]


def test_several_greatest_are_all_given(con):
    script = spatialq.run_script(con, M + "d = TF(m is IfcDoor) k = MI(d.OverallHeight)")
    heights = [h for (h,) in con.sql(
        "SELECT (attributes -> '$.OverallHeight')::DOUBLE FROM read_ifc_objects('house.ifc') "
        "WHERE ifc_class = 'IfcDoor'").fetchall()]  # fmt: skip
    assert script.result.count() == heights.count(min(heights)) > 1


# inverse attributes


def followed(model, attribute):
    """Follow an inverse attribute with IfcOpenShell: pairs of GlobalIds."""
    pairs = set()
    for entity in model.by_type("IfcObjectDefinition"):
        for relation in getattr(entity, attribute, None) or ():
            for k in range(4, len(relation)):
                value = relation[k]
                others = value if isinstance(value, tuple) else (value,)
                if relation.attribute_name(k).startswith("Relat") and entity not in others:
                    pairs |= {
                        (entity.GlobalId, other.GlobalId)
                        for other in others
                        if isinstance(other, ifcopenshell.entity_instance) and other.is_a("IfcRoot")
                    }
    return pairs


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["AC20-FZK-Haus.ifc", "SampleHouse4.ifczip", "Duplex_A_20110907.ifc",
     "bsi43_linear-placement-of-signal.ifc"],
)  # fmt: skip
def test_all_inverse_attributes_lead_where_ifcopenshell_follows_them(con, name):
    path = real_file(f"data/ifc/{name}")
    model = ifcopenshell.open(str(path))
    schema = schemas.schemas()[model.schema_identifier]
    has = {
        attribute
        for name in schema.subtypes["IfcObjectDefinition"]
        for above in schema.lineage(name)
        for attribute in schema[above].inverse
    }
    total = 0
    for attribute in sorted(has):
        way = inverse(attribute)
        if way is None or way.is_named:
            continue
        script = f'm = IM("{path}") r[a|b] = DA(m.{attribute})'
        found = spatialq.run_script(con, script).result.fetchall()
        assert set(found) == followed(model, attribute), attribute
        total += len(found)
    assert total > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Duplex_A_20110907.ifc", "AC20-FZK-Haus.ifc"])
def test_classes_and_properties_of_real_models(con, name):
    path = real_file(f"data/ifc/{name}")
    model = ifcopenshell.open(str(path))
    script = spatialq.run_script(
        con,
        f"""m = ImportModel("{path}")
        w = TypeFilter(m is IfcWall)
        b = TypeFilter(m is IfcBuildingElement)
        e = PropertyFilter(w, "Pset_WallCommon.IsExternal" = true)
        """,
    )
    for name, ifc_class in (("w", "IfcWall"), ("b", "IfcBuildingElement")):
        assert script[name].count() == len(model.by_type(ifc_class)) > 0
    ((external,),) = con.sql(
        f"SELECT count(*) FROM read_ifc_objects('{path}') WHERE ifc_class LIKE 'IfcWall%' "
        "AND ifc_class NOT LIKE '%Type' AND (properties -> '$.Pset_WallCommon.IsExternal')::BOOLEAN"
    ).fetchall()
    assert script["e"].count() == external
    assert external > 0 or "FZK" in path.name


# scans


def test_walls_whose_scan_is_off(con):
    """In four lines. The southern wall was built 30 mm farther out, the slab where it should be."""
    script = spatialq.run_script(
        con,
        """m = ImportModel("house.ifc")
        c = ImportCloud("scan")
        b[plane|element|deviation] = PlaneElements(c, m)
        off = Projector(AttributeFilter(b, [deviation] > 20mm), [element])
        """,
    )
    assert "wall south 0" in names(script)
    assert script["b"].columns == ["plane", "element", "deviation"]
    deviations = dict(
        con.sql(f"SELECT o.name, b.deviation FROM ({script.sql('b')}) AS b "
                "JOIN read_ifc_objects('house.ifc') AS o ON o.global_id = b.element").fetchall()
    )  # fmt: skip
    assert deviations["wall south 0"] == pytest.approx(0.03, abs=0.002)


def test_points_near_elements(con):
    """The points of the slab are on it, those of the wall 30 mm in front."""
    lines = """m = ImportModel("house.ifc")  c = ImportCloud("scan")
    t[point|element|gap] = CloserThan(c, TypeFilter(m is IfcWall), 40mm)
    far[point|element|gap] = AttributeFilter(t, [gap] > 25mm, [point].z > 1)
    low[point|element|gap] = AttributeFilter(t, [point] is IfcWall)
    """
    with pytest.raises(spatialq.ScriptError, match="clouds have no class"):
        spatialq.run_script(con, lines)
    script = spatialq.run_script(con, lines.rpartition("low")[0])
    rows = script["far"].fetchall()
    assert len(rows) > 1000
    assert {round(gap, 6) for _, _, gap in rows} == {0.03}
    assert script["t"].count() > len(rows)


def test_what_belongs_together_can_be_left_out(con):
    script = spatialq.run_script(con, M + "t[a|b] = Intersects(m, exclude_related = true)")
    con.execute("CREATE OR REPLACE TEMP TABLE parts AS FROM read_ifc('house.ifc')")
    con.execute("CREATE OR REPLACE TEMP TABLE ties AS FROM read_ifc_relations('house.ifc')")
    by_hand = "FROM intersects_with('parts', exclude_related := true, relations := 'ties')"
    assert sorted(script.result.fetchall()) == sorted(con.sql(f"SELECT a, b {by_hand}").fetchall())


def test_an_empty_script(con):
    script = spatialq.run_script(con, "// nothing")
    assert list(script) == []
    with pytest.raises(spatialq.ScriptError, match="no result"):
        script.result  # noqa: B018
    with pytest.raises(duckdb.Error, match="no result"):
        con.sql("FROM ql4bim('')")
