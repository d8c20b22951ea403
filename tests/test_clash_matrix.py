"""The clash matrix, as rows, as a table and as a picture."""

from collections import Counter

import duckdb
import pytest
from PIL import Image

import spatialq
from spatialq.errors import FileError
from spatialq.export.matrix_picture import DARK, EMPTY, PALE, write_matrix_picture
from spatialq.workflows.clash_matrix import square

from .command_line import rows, spatialq_command

CLASHES = [
    ("IfcWall", "IfcPipe", 0.1, "x/one.ifc", "y/two.ifc"),
    ("IfcPipe", "IfcWall", 0.3, "y/two.ifc", "x/one.ifc"),
    ("IfcWall", "IfcWall", None, "x/one.ifc", "x/one.ifc"),
    ("IfcSlab", "IfcWall", 0.2, "x/one.ifc", "z/two.ifc"),
]


@pytest.fixture
def con():
    with spatialq.connect() as con:
        con.execute(
            "CREATE TABLE clashes (a_class TEXT, b_class TEXT, penetration DOUBLE, a_file TEXT, "
            "b_file TEXT, a_storey TEXT, b_storey TEXT)"
        )
        con.executemany("INSERT INTO clashes VALUES (?, ?, ?, ?, ?, NULL, 'attic')", CLASHES)
        yield con


@pytest.mark.parametrize(("per", "columns"), [("class", (0, 1)), ("file", (3, 4))])
def test_each_pair_of_values_is_a_row(con, per, columns):
    expected, deepest = Counter(), {}
    for row in CLASHES:
        pair = tuple(sorted(row[k] for k in columns))
        expected[pair] += 1
        deepest[pair] = max(deepest.get(pair, 0), row[2] or 0)
    found = con.sql(f"FROM clash_matrix('clashes', per := '{per}')").fetchall()
    assert [row[:2] for row in found] == sorted(expected)
    assert {row[:2]: row[2] for row in found} == expected
    assert {row[:2]: row[3] or 0 for row in found} == deepest


def test_what_has_no_value_is_counted(con):
    found = con.sql("FROM clash_matrix('clashes', per := 'storey')").fetchall()
    assert found == [("", "attic", 4, 0.3)]
    con.execute("DELETE FROM clashes")
    assert con.sql("FROM clash_matrix('clashes')").fetchall() == []


@pytest.mark.parametrize("is_empty", [False, True])
def test_what_two_sides_do_not_have_is_refused(con, is_empty):
    if is_empty:
        con.execute("DELETE FROM clashes")
    message = "clash_matrix: per must be a column that a and b have, such as 'class' or 'file', got"
    for per in ("mood", "penetration"):
        with pytest.raises(duckdb.Error, match=f"{message} '{per}'"):
            con.sql(f"FROM clash_matrix('clashes', per := '{per}')").fetchall()


def test_the_square_is_symmetric_and_files_are_named_shortly(con):
    def found(per):
        result = con.sql(f"FROM clash_matrix('clashes', per := '{per}')")
        return [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]

    assert square(found("class"), "class") == (
        ["IfcPipe", "IfcSlab", "IfcWall"], [[0, 0, 2], [0, 0, 1], [2, 1, 1]],
    )  # fmt: skip
    names, counts = square(found("file"), "file")
    assert names == ["one.ifc", "y/two.ifc", "z/two.ifc"]
    assert counts == [[1, 2, 1], [2, 0, 0], [1, 0, 0]]


def test_a_picture_has_a_cell_for_each_pair(tmp_path):
    path = tmp_path / "x.png"
    counts = [[0, 1, 100], [1, 0, 10], [100, 10, 1]]
    write_matrix_picture(path, ["a", "", "long name"], counts, "title")
    with Image.open(path) as image:
        wide, tall = image.size
        side, low = 64, (wide - 24 - 3 * 64, tall - 24 - 3 * 64)
        colours = [
            [image.getpixel((low[0] + j * side + 3, low[1] + i * side + 3)) for j in range(3)]
            for i in range(3)
        ]
    assert colours[0][0] == colours[1][1] == EMPTY
    assert colours[0][1] == colours[1][0] == colours[2][2] == PALE
    assert colours[0][2] == colours[2][0] == DARK
    assert colours[1][2] == tuple(round((f + m) / 2) for f, m in zip(PALE, DARK, strict=True))
    write_matrix_picture(path, [], [], "no clashes")
    write_matrix_picture(path, ["x"] * 200, [[1] * 200] * 200, "many")
    with Image.open(path) as image:
        assert image.size[0] < 4000
    write_matrix_picture(path, ["long" * 20_000, "two\nlines"], [[1, 2], [2, 0]], "names")
    with Image.open(path) as image:
        assert image.size[0] < 1000
    with pytest.raises(FileError, match=r"a picture of a matrix has up to 500 rows, got 5,000"):
        write_matrix_picture(tmp_path / "no.png", ["x"] * 5000, [[1] * 5000] * 5000, "too many")


@pytest.mark.slow
def test_the_matrix_of_a_run(world, tmp_path):
    shown = rows("clash", world.ifc, "--matrix", "class")
    expected = Counter(tuple(sorted((r["a_class"], r["b_class"]))) for r in shown["clashes"])
    assert {(r["one"], r["other"]): r["clashes"] for r in shown["matrix"]} == expected
    text = spatialq_command("clash", world.ifc, "--matrix", "class").stdout
    assert all(name in text for pair in expected for name in pair)
    for name, per in (
        ("x.png", []),
        ("y.png", ["--matrix", "storey"]),
        ("z.csv", ["--matrix", "file"]),
    ):
        (written,) = rows("clash", world.ifc, *per, "-o", tmp_path / name)
        assert written["output"] == str(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 0
    with spatialq.connect() as con:
        found = con.sql(f"FROM '{tmp_path / 'z.csv'}'").fetchall()
    assert [row[:3] for row in found] == [(str(world.ifc), str(world.ifc), sum(expected.values()))]
    for more, said in (
        (["--matrix", "class", "-o", "x.bcf"], "output: 'x.bcf' must end in one of .csv, .json"),
        (
            ["--matrix", "mood"],
            "clash: --matrix must be one of class, name, storey, storey_unified, file, got",
        ),
        (["-o", "no/x.png"], "output: 'no/x.png': there is no folder"),
        (["--matrix", "file", "--executor", "serial", "-o", "job"], "clash: --matrix is no option"),
    ):
        result = spatialq_command("clash", world.ifc, *more, cwd=tmp_path)
        assert result.returncode == 1
        assert f"error: {said}" in result.stderr
