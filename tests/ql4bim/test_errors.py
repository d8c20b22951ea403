"""What is wrong is said with its place, and what would be right."""
# ruff: noqa: E501 (a line for each error)

import json
import pickle

import ifcopenshell
import pytest

import spatialq
from spatialq.ql4bim.program import compile_script

M = 'm = ImportModel("house.ifc")\n'

WRONG = {
    # where, what, and the text under the carets
    'm = ImportModel("a.ifc"\nw = TypeFilter(m is IfcWall)': (2, 1, "'w' stands here, where", "w"),
    "w = TypeFilter(m is": (1, 20, "the script ends, where a name must follow", ""),
    M + "w = TypeFilter(m is IfcWal)": (2, 21, "no class 'IfcWal'; near names are IfcWall", "IfcWal"),
    M + "w = TypFilter(m is IfcWall)": (2, 5, "no operator 'TypFilter'; near names are TypeFilter", "TypFilter"),
    M + "w = tf(m is IfcWall)": (2, 5, "no operator 'tf'; near names are TF", "tf"),
    M + "w = TypeFilter(n is IfcWall)": (2, 16, "no variable 'n'", "n"),
    M + "walls = TF(m is IfcWall)\nx = TF(wals is IfcWall)": (3, 8, "near names are walls", "wals"),
    M + "w = AttributeFilter(m.Nam = 3)": (2, 23, "no class of objects has an attribute 'Nam'; near names are Name", "Nam"),
    M + "w = AttributeFilter(m.Name = 3)": (2, 30, "Name is a text, and 3 is a number", "3"),
    M + 'w = AttributeFilter(m.Elevation ~ 3)': (2, 35, "~ compares with a regular expression", "3"),
    M + 'w = AttributeFilter(m.Name ~ "(")': (2, 30, "no regular expression: missing )", '"("'),
    M + "w = AttributeFilter(m.OwnerHistory = 3)": (2, 23, "has no value that a script can read", "OwnerHistory"),
    M + "w = AttributeFilter(m.Pset_WallCommon = 3)": (2, 23, "write Pset_WallCommon.Property", "Pset_WallCommon"),
    M + "w = AttributeFilter(m.OverallHeight = 5deg)": (2, 39, "5deg is an angle", "5deg"),
    M + "w = TF(m is IfcWall)\nd = AF(w.OverallHeight > 2)": (3, 10, "no IfcWall has an attribute OverallHeight; IfcDoor,", "OverallHeight"),
    M + "t = TF(m is IfcTask)\no[a|b] = DA(t.HasOpenings)": (3, 15, "no IfcTask has an attribute HasOpenings", "HasOpenings"),
    M + "w = AttributeFilter(m.Name < unknown)": (2, 30, "unknown is = or !=", "unknown"),
    M + "o[a|b] = Deassociater(m.HasOpening)": (2, 25, "near names are HasOpenings", "HasOpening"),
    M + "o[a|b] = Deassociater(m.Name)": (2, 25, "Dereferencer follows it", "Name"),
    M + "o[a|b] = DA(m.HasOpenings)\nx = PR(o, [c])": (3, 12, "no column 'c'; there is a, b", "c"),
    M + "o[a|b] = DA(m.HasOpenings)\nx = PR(o, [3])": (3, 12, "no column '3'; there is a, b", "3"),
    M + "o[a|b|c] = DA(m.HasOpenings)": (2, 1, "gives 2 columns", "o"),
    M + "o[a|A] = DA(m.HasOpenings)": (2, 5, "begin with a lower-case letter", "A"),
    M + "o[a|a] = DA(m.HasOpenings)": (2, 5, "two columns are called 'a'", "a"),
    M + "x = Touches(m, m)": (2, 1, "gives a relation; write x[a|b] =", "x"),
    M + "x[a|b] = TF(m is IfcWall)": (2, 3, "gives a set, which has no columns", "a"),
    M + "x[a|b] = Touches(m, tolerence = 2mm)": (2, 21, "no keyword 'tolerence'; there is tolerance", "tolerence"),
    M + "x[a|b] = Touches(m, tol = 2deg)": (2, 27, "tol is a number of metres, got 2deg", "2deg"),
    M + 'x[a|b] = Touches(m, tol = "2mm")': (2, 27, "tol must be a number", '"2mm"'),
    M + "x[a|b] = Touches(m, m, m)": (2, 10, "takes one or two sets", "Touches"),
    M + "x[a|b] = CloserThan(m, m)": (2, 24, "a length must stand here", "m"),
    M + 'x[a|b] = Touches(m, "w")': (2, 21, "a set must stand here", '"w"'),
    M + "x[a|b] = Touches([a])": (2, 19, "a relation must stand before a column", "a"),
    M + "c = GroundFilter(m)": (2, 18, "a cloud must stand here, not a set", "m"),
    M + "w = TF(m is IfcWall, m.x = 2 mn)": (2, 30, "'mn' stands here", "mn"),
    M + 'w = AF(m.Name == "x")': (2, 16, "write = for ==", "="),
    M + 'w = AF(m.Name = "x" AND m.Tag = "y")': (2, 21, "write and in lower case", "AND"),
    M + 'w = AF(NOT m.Name = "x")': (2, 12, "write not in lower case", "m"),
    M + "w = AF(NOT(m is IfcWall))": (2, 8, "write not in lower case", "NOT"),
    M + "w = AF(m.Name = 'x')": (2, 17, 'texts are in double quotes: "text"', "'"),
    M + "w = TF(m is not IfcDoor)": (2, 17, "write not before all of it: not d is IfcDoor", "IfcDoor"),
    M + "w = AF(m, Pset_WallCommon.IsExternal = true)": (2, 11, "a property is one of a set: write m.Pset_WallCommon", "Pset_WallCommon"),
    M + "w = MI(TF(m is IfcDoor).OverallHeight)": (2, 24, "assign the call to a variable", "."),
    M + "w = Foo(m)": (2, 5, "no operator 'Foo'; docs/ql4bim.md has all of them", "Foo"),
    M + "w = TF(m is IfcCartesianPoint)": (2, 13, "IfcCartesianPoint is no class of objects", "IfcCartesianPoint"),
    M + "w[a|b] = DR(m.ObjectPlacement)": (2, 15, "has no value that a script can read", "ObjectPlacement"),
    M + 'd = EM(m, "a.ifc")\ne = EM(m, "./a.ifc")': (3, 5, "ExportModel: ./a.ifc is written already", "EM"),
    'm = IM(".")': (1, 8, "'.' is no .ifc or .ifczip file, and no table", '"."'),
    "func F(a, a) (b = TF(a is IfcWall))": (1, 11, "two variables are called 'a'", "a"),
    "func F(r[a|a]) (b = PR(r, [a]))": (1, 12, "two columns are called 'a'", "a"),
    "func F(r[a|b]) (s[a|b] = UN(r, r))\n" + M + "r[a|b] = DA(m.HasOpenings) t[q|q] = F(r)": (3, 32, "two columns are called 'q'", "q"),
    "x = A(1mn)": (1, 7, "no unit 'mn'; there is m", "1mn"),
    "x = A(1e999)": (1, 7, "the number is too large", "1e999"),
    'x = IM("a': (1, 8, "the text that begins here does not end", '"'),
    "/* /* */ x": (1, 1, "the comment that begins here does not end with */", "/*"),
    "or = IM()": (1, 1, "'or' is a word of the language", "or"),
    "X = IM()": (1, 1, "variables and columns begin with a lower-case letter", "X"),
    "x = A(" + "(" * 60: (1, 56, "brackets are nested more than 50 deep", "("),
    "x = IM(\0)": (1, 8, "a script cannot hold the character U+0000", "\N{REPLACEMENT CHARACTER}"),
    "func F(a) (b = F(a))\n" + M + "x = F(m)": (1, 16, "F calls itself; in F, which line 3 calls", "F"),
    "func F(a) (b = TF(a is IfcWal))\n" + M + "x = F(m)": (1, 24, "in F, which line 3 calls", "IfcWal"),
    "func F(a) (b = TF(m is IfcWall))\n" + M + "x = F(m)": (1, 19, "a function knows its own variables only", "m"),
    "func F(a) (b = TF(a is IfcWall))\n" + M + "x = F(m, m)": (3, 10, "F: takes (a)", "m"),
    "func F(r[a|b]) (b = PR(r, [a]))\n" + M + "x = F(m)": (3, 7, "F: a relation must stand here, not a set", "m"),
    "func TF(a) (b = IM(\"x\"))": (1, 6, "there is an operator TF already", "TF"),
    "\t" + M + "\tx = TF(m is IfcWal)": (2, 14, "no class", "IfcWal"),
    'x = IM("壁壁")  y = TF(x is IfcWal)': (1, 27, "no class", "IfcWal"),
}  # fmt: skip


@pytest.mark.parametrize("script", WRONG)
def test_the_place_and_the_reason_are_told(script):
    line, column, reason, marked = WRONG[script]
    with pytest.raises(spatialq.ScriptError) as caught:
        compile_script(script, name="clash.ql4bim")
    error = caught.value
    assert (error.line, error.column) == (line, column)
    assert reason in error.reason
    head, shown, carets = str(error).split("\n")
    assert head == f"clash.ql4bim:{line}:{column}: {error.reason}"
    at = next(k for k, sign in enumerate(carets) if sign == "^")
    assert under(shown, carets, at) == marked


def under(shown, carets, at):
    """Give what is above the carets, where a wide character takes two columns."""
    wide = "".join(each + "\0" if each > "\u2e80" and each < "\ufff0" else each for each in shown)
    assert [s for s in wide[:at] if s == "\t"] == [s for s in carets[:at] if s == "\t"]
    return wide[at : len(carets)].replace("\0", "")


def test_long_lines_are_shown_in_part():
    script = M.replace("\n", " ") + "x = IM(" + '"a"' * 100_000
    with pytest.raises(spatialq.ScriptError) as caught:
        compile_script(script)
    assert len(str(caught.value)) < 500


def test_errors_can_be_sent_to_other_processes():
    with pytest.raises(spatialq.ScriptError) as caught:
        compile_script("x")
    sent = pickle.loads(pickle.dumps(caught.value))
    assert (str(sent), sent.line, sent.column) == (str(caught.value), 1, 2)


def test_what_only_the_data_can_tell_is_told_before_anything_is_written(con, tmp_path):
    part = tmp_path / "part.ifc"
    part.write_text("as it was")
    script = M + f'w = TF(m is IfcWall)\nd = EM(w, "{part}")\n'
    for wrong, place, reason in (
        ("x = AF(m.Pset_WalCommon.IsExternal = true)", (4, 25), "near names are Pset_WallCommon"),
        ('x = TF(m is IfcPile)\ny = EM(x, "y.ifc")', (5, 5), "there are no objects to write"),
        ('c = ImportCloud("no_such_cloud")', (4, 1), "no table 'no_such_cloud'"),
    ):
        with pytest.raises(spatialq.ScriptError, match=reason) as caught:
            spatialq.run_script(con, script + wrong)
        assert (caught.value.line, caught.value.column) == place
        assert part.read_text() == "as it was"


def test_sql_tells_the_place_as_well(con):
    with pytest.raises(Exception, match=r"script>:1:50: TypeFilter: no class 'IfcWal'"):
        con.sql("""FROM ql4bim('m = ImportModel("house.ifc") x = TypeFilter(m is IfcWal)')""")
    with pytest.raises(Exception, match=r"no object has a property Pset_Foo\.Bar"):
        con.sql(
            """FROM ql4bim('x = AF(model.Pset_Foo.Bar = 3)', model := 'house.ifc')"""
        ).fetchall()
    with pytest.raises(Exception, match="ExportModel: a query writes no file"):
        con.sql("""FROM ql4bim('x = EM(model, "a.ifc")', model := 'house.ifc')""").fetchall()


def test_functions_may_not_call_each_other_without_end():
    chain = "\n".join(f"func F{k}(a) (b = F{k - 1}(a))" for k in range(1, 3000))
    script = f"func F0(a) (b = TF(a is IfcDoor))\n{chain}\n{M}x = F2999(m)"
    with pytest.raises(spatialq.ScriptError, match="functions call each other more than 50 deep"):
        compile_script(script)


def test_what_is_no_script_and_no_variable(con, tmp_path):
    for name in ("s1.txt", "/tmp/some where/s1.txt"):
        with pytest.raises(spatialq.FileError, match=r"no script; the name of one's file ends in"):
            spatialq.run_script(con, name)
    script = spatialq.run_script(con, "\ufeff" + M + "walls = TF(m is IfcWall)")
    with pytest.raises(KeyError, match="no variable 'wals'; near names are walls"):
        script["wals"]
    assert "wals" not in script
    with pytest.raises(
        spatialq.ScriptError, match=r"for 'mm', which is no model .* near names are m"
    ):
        spatialq.run_script(con, M, models={"mm": "house.ifc"})
    with pytest.raises(spatialq.ScriptError, match="for 'mm', which is no model"):
        spatialq.run_script(con, 'c = ImportCloud("scan")', models={"mm": "house.ifc"})
    with pytest.raises(spatialq.ScriptError, match=r"'no_such' is no model: neither an .ifc"):
        spatialq.run_script(con, 'm = ImportModel("no_such")')


def test_all_exports_are_looked_at_before_the_first_is_written(con, tmp_path):
    part = tmp_path / "part.ifc"
    script = M + f'w = TF(m is IfcWall)\nd = EM(w, "{part}")\n'
    with pytest.raises(spatialq.FileError, match="there is no folder"):
        spatialq.run_script(con, script + f'e = EM(w, "{tmp_path}/no/part.ifc")')
    assert not part.exists()


def test_what_sql_checks_hides_no_table(con):
    loaded = spatialq.connect()
    for name in ("wrong", "names", "reason", "checked"):
        loaded.execute(f"CREATE TABLE {name} AS SELECT 7 AS point_id, 1.0 AS x, 2.0 AS y, 3.0 AS z")
        script = f'c = IC("{name}") n = AF(model.Pset_WallCommon.%s = 3) p = AF(c.x = 1)'
        rows = "FROM ql4bim($1, variable := $2, model := 'house.ifc')"
        for variable in ("c", "p"):
            with pytest.raises(Exception, match=r"no object has .*; near names are Pset_WallComm"):
                loaded.sql(rows, params=[script % "IsExternl", variable]).fetchall()
            known = f'c = IC("{name}") p = AF(c.x = 1) n = PF(model, "IsExternal" = true)'
            assert loaded.sql(rows, params=[known, variable]).fetchall() == [(7, 1.0, 2.0, 3.0)]


def test_what_is_exported_is_computed_once(con, tmp_path):
    loaded = spatialq.connect()
    spatialq.read_ifc(loaded, "house.ifc", name="elements")
    seen = []
    loaded.create_function(
        "seen", lambda name: seen.append(name) is None, ["VARCHAR"], "BOOLEAN", side_effects=True
    )
    loaded.execute("ALTER TABLE objects RENAME TO kept")
    loaded.execute("CREATE VIEW objects AS FROM kept WHERE seen(global_id)")
    ((count,),) = loaded.execute("SELECT count(*) FROM kept").fetchall()
    script = 'm = IM("elements") w = TF(m is IfcWall)'
    spatialq.run_script(loaded, script)
    before = len(seen)
    written = spatialq.run_script(loaded, f'{script} d = EM(w, "{tmp_path}/walls.ifc")').exported
    assert len(ifcopenshell.open(str(written[0])).by_type("IfcWall")) == 15
    assert len(seen) - 2 * before == count


def test_tables_of_different_crs_do_not_stand_together(con):
    loaded = spatialq.connect()
    spatialq.load(loaded, "house.ifc", "one")
    spatialq.load(loaded, "other.ifc", "two")
    script = 'a = IM("one")\nb = IM("two")\nt[x|y] = Touches(a, b)'
    assert "t" in spatialq.run_script(loaded, script)
    for table, crs in (("one", "EPSG:25832"), ("two", "EPSG:25833")):
        (comment,) = loaded.execute(
            "SELECT comment FROM duckdb_tables() WHERE table_name = ?", [table]
        ).fetchall()[0]
        said = json.dumps({**json.loads(comment), "crs": crs})
        loaded.execute(f"COMMENT ON TABLE {table} IS '{said}'")
    with pytest.raises(
        spatialq.ScriptError, match=r"t: .*'table one' is in .* 'table two' is in"
    ) as caught:
        spatialq.run_script(loaded, script)
    assert caught.value.line == 3
    assert "b" in spatialq.run_script(loaded, 'a = IM("one") b = IM("two")')
