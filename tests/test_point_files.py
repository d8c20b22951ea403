"""Files of points in every function: a list, a pattern and a folder of tiles are one cloud.

The oracle is the same function on a table with the rows of `read_points`.
"""

import itertools
import threading
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spatialq
from spatialq.export.las_points import write_points
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import PointsAndOtherInput, PointsInput
from spatialq.io.crs import from_argument
from spatialq.io.source import Layout
from spatialq.runtime import budget, buffers
from tests.element_tables import box, put

from .examples import examples
from .kernels import WITH_TABLE, beside, put_others

FUNCTIONS = sorted(
    name
    for name, each in catalogue().items()
    if isinstance(each.inputs, PointsInput | PointsAndOtherInput)
)
N = 6000
CUTS = (0, 1, 1500, 1500, 4100, N)
"""Rows of the tiles: one point, none, many."""
COLUMNS = {"x": "DOUBLE", "y": "DOUBLE", "z": "DOUBLE", "intensity": "USMALLINT"}
LAYOUT = Layout((0.01, 0.01, 0.01), (0.0, 0.0, 0.0))
"""So that all tiles give the same coordinates back."""
BOUNDS = [10.0, 4.1, 60.0, 33.3]


def made_up():
    """Level ground and a roof, in hundredths as the files have it."""
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 8000, N) * 0.01, rng.integers(0, 4000, N) * 0.01
    on_roof = (x > 20) & (x < 30) & (y > 10) & (y < 20)
    z = (rng.integers(0, 3, N) + np.where(on_roof, 600, 0)) * 0.01
    return {"x": x, "y": y, "z": z, "intensity": rng.integers(0, 65536, N).astype(np.uint16)}


def write(path, columns, part, *, crs="EPSG:25832"):
    """Write some of the points to a file, by the project's own writer."""
    batch = pa.RecordBatch.from_pydict({name: values[part] for name, values in columns.items()})
    system = None if crs is None else from_argument("test", crs)
    write_points(path, COLUMNS, [batch], crs=system, layout=LAYOUT)


def cut(folder, columns, cuts, ending=".laz"):
    for k, (first, stop) in enumerate(itertools.pairwise(cuts)):
        write(folder / f"t{k:02}{ending}", columns, slice(first, stop))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of tiles, and beside it the whole cloud."""
    folder = tmp_path_factory.mktemp("files") / "tiles"
    folder.mkdir()
    columns = made_up()
    cut(folder, columns, CUTS)
    write(folder.parent / "whole.laz", columns, slice(None))
    (folder / "readme.txt.bak").write_text("no cloud")
    (folder / ".hidden.laz").write_text("no cloud")
    return folder


def connection(transport):
    con = spatialq.connect() if transport == "native" else duckdb.connect()
    if transport == "lists":
        spatialq.install(con)
    put(con, "elements", global_id=["a"], mesh=[box((20, 10, 0), (30, 20, 6))])
    put_others(con, 5, 5, 70, 20)
    return con


@pytest.fixture(scope="module", params=["native", "lists"])
def con(request, folder):
    with connection(request.param) as con:
        con.execute(f"CREATE TABLE pts AS FROM read_points('{folder.parent}/whole.laz')")
        yield con


SPARSE = {"unmodelled": ", gap := 10, min_points := 1"}
"""Arguments with which there are rows of so few points."""


def call(name, points, more=""):
    return f"FROM {name}({points}{beside(name)}, unit := 1{SPARSE.get(name, '')}{more})"


def rows(con, query):
    """Give the rows; pairs with polygons, which come in no order, sorted."""
    found = con.execute(query).fetchall()
    return sorted(found) if any(f" {name}(" in query for name in WITH_TABLE) else found


def forms(folder):
    """All ways to name the tiles."""
    listed = ", ".join(f"'{folder}/t{k:02}.laz'" for k in range(len(CUTS) - 1))
    return {
        "pattern": f"'{folder}/*.laz'",
        "folder": f"'{folder}/'",
        "folder without a slash behind it": f"'{folder}'",
        "list": f"[{listed}]",
        "list of patterns": f"['{folder}/t0[0-2].laz', '{folder}/t0[34].laz']",
        "list of a folder": f"['{folder}']",
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tiles_are_one_cloud_however_they_are_named(con, folder, name):
    expected = rows(con, call(name, "'pts'"))
    assert len(expected) > 0
    for how, points in forms(folder).items():
        assert rows(con, call(name, points)) == expected, how
    assert rows(con, call(name, f"'{folder.parent}/whole.laz'")) == expected


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bounds_of_files_are_those_of_tables(con, folder, name):
    more = f", bounds := {BOUNDS}"
    expected = rows(con, call(name, "'pts'", more))
    assert len(expected) > 0
    assert rows(con, call(name, f"'{folder}/'", more)) == expected
    nothing = rows(con, call(name, f"'{folder}/'", ", bounds := [900, 0, 901, 1]"))
    if name == "coverage":  # which has a row of each element
        assert {row[2] for row in nothing} == {"no data"}
    else:
        assert nothing == []


@pytest.mark.slow
@examples(12)
@given(st.lists(st.integers(0, N), min_size=1, max_size=8), st.sampled_from([".laz", ".las"]))
def test_random_cuts_give_the_same_rows(tmp_path_factory, inner, ending):
    folder = tmp_path_factory.mktemp("cuts")
    columns = made_up()
    cut(folder, columns, (0, *sorted(inner), N), ending)
    with spatialq.connect() as con:
        cloud = pa.table(columns)  # noqa: F841 (named in the query)
        con.execute("CREATE TABLE pts AS SELECT row_number() OVER () - 1 AS point_id, * FROM cloud")
        for name in ("owm_ground", "classify_ground", "plane_points"):
            assert rows(con, call(name, f"'{folder}/*'")) == rows(con, call(name, "'pts'"))


def test_the_order_is_that_of_the_list(con, folder):
    backwards = ", ".join(f"'{folder}/t{k:02}.laz'" for k in range(len(CUTS) - 2, -1, -1))
    query = f"SELECT point_id, z FROM owm_ground([{backwards}], unit := 1)"
    read = " UNION ALL ".join(
        f"SELECT x, y, z FROM read_points({name})" for name in backwards.split(", ")
    )
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE other AS "
        f"SELECT row_number() OVER () - 1 AS point_id, * FROM ({read})"
    )
    assert rows(con, query) == rows(con, "SELECT point_id, z FROM owm_ground('other', unit := 1)")


def test_texts_of_an_enum_name_files_too(con, folder):
    file = f"'{folder}/t00.laz'"
    con.execute("DROP TYPE IF EXISTS of_files")
    con.execute(f"CREATE TYPE of_files AS ENUM ({file})")
    expected = rows(con, f"SELECT * FROM owm_ground({file}, unit := 1)")
    assert expected
    for named in (f"{file}::of_files", f"[{file}]::of_files[]"):
        assert rows(con, f"SELECT * FROM owm_ground({named}, unit := 1)") == expected


@pytest.mark.filterwarnings("ignore:.*records have no position")
def test_files_of_several_formats_are_one_cloud(con, tmp_path):
    columns = made_up()
    write(tmp_path / "a.laz", columns, slice(0, 3000))
    lines = zip(*(columns[axis][3000:] for axis in "xyz"), strict=True)
    text = "x,y,z\n" + "\n".join(f"{x:.2f},{y:.2f},{z:.2f}" for x, y, z in lines)
    (tmp_path / "b.csv").write_text(text.replace("x,y,z\n", "x,y,z\n1,nan,1\n"))
    found = f"['{tmp_path}/a.laz', '{tmp_path}/b.xyz']"
    (tmp_path / "b.csv").rename(tmp_path / "b.xyz")
    write(tmp_path / "a.laz", columns, slice(0, 3000), crs=None)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE joined AS SELECT * FROM read_points('{tmp_path}/a.laz') "
        f"UNION ALL BY NAME SELECT * REPLACE (point_id + 3000 AS point_id) "
        f"FROM read_points('{tmp_path}/b.xyz')"
    )
    for name in ("owm_ground", "classify_ground", "build_lod"):
        assert rows(con, call(name, found)) == rows(con, call(name, "'joined'"))


def test_elements_and_files(con, folder):
    query = f"SELECT count(*), max(overlap) FROM plane_elements('{folder}/', 'elements', unit := 1)"
    assert rows(con, query) == rows(con, query.replace(f"{folder}/", "pts"))
    with pytest.raises(duckdb.Error, match="plane_elements: elements must be the name of a table"):
        rows(con, f"FROM plane_elements('{folder}/', NULL)")


@pytest.mark.slow
def test_a_call_on_files_in_a_join(con, folder):
    query = (
        "SELECT count(*), sum(height) FROM pts JOIN classify_ground({}, unit := 1) "
        "USING (point_id) WHERE EXISTS (FROM owm_ground({}, unit := 1) s "
        "WHERE s.point_id = pts.point_id)"
    )
    tiles = f"'{folder}/*.laz'"
    assert rows(con, query.format(tiles, tiles)) == rows(con, query.format("'pts'", "'pts'"))


def test_the_crs_of_the_files_goes_with_the_rows(con, folder):
    """Seeds of files, as points of another function: their CRS is known, so nothing is said."""
    for points in forms(folder).values():
        query = f"WITH seeds AS (FROM owm_ground({points})) FROM ground_surface('seeds')"
        assert len(rows(con, query)) > 0


def test_files_of_different_crs_are_refused(con, folder, tmp_path):
    write(tmp_path / "other.laz", made_up(), slice(0, 9), crs="EPSG:25833")
    with pytest.raises(duckdb.Error, match=r"owm_ground: '.*t00.laz' is in .* but '.*other.laz'"):
        rows(con, call("owm_ground", f"['{folder}/t00.laz', '{tmp_path}/other.laz']"))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        ("NULL", "points must be the name of a table or a file, or a list of files, got NULL"),
        ("''", "points must be the name of a table or a file, or a list of files, got ''"),
        ("[]", r"points must be the name of a table or a file, or a list of files, got \[\]"),
        ("['']", r"or a list of files, got \[''\]"),
        ("['a.laz', NULL]", r"or a list of files, got \['a.laz', NULL\]"),
        ("5", "points must be the name of a table or a file, or a list of files, got 5"),
        ("[1, 2]", r"or a list of files, got \[1, 2\]"),
        ("['pts', 'more']", "'pts': there is no such file"),
        ("'{folder}/none.laz'", "none.laz': there is no such file"),
        ("['{folder}/t00.laz', '{folder}/none.laz']", "none.laz': there is no such file"),
        ("['{folder}/t00.laz', '{folder}/t0*.laz']", "t00.laz': is named twice"),
        ("'{folder}/*.e57'", "no file matches this pattern"),
        ("'{empty}/'", "there is no point cloud in this folder"),
        ("['{empty}']", "there is no point cloud in this folder"),
        ("['{folder}/readme.txt.bak']", "is no point cloud: its name must end in"),
    ],
)
def test_what_names_no_points_is_refused(con, folder, tmp_path_factory, name, points, sentence):
    empty = folder.parent / "empty"
    empty.mkdir(exist_ok=True)
    with pytest.raises(duckdb.Error, match=f"{name}: .*{sentence}"):
        rows(con, call(name, points.format(folder=folder, empty=empty)))


@pytest.mark.parametrize("name", ["owm_ground", "build_lod"])
def test_a_damaged_tile_is_named_by_the_function(con, folder, tmp_path, name):
    whole = (folder / "t00.laz").read_bytes()
    for cut in (200, len(whole) // 2):  # in its header, in its points
        (tmp_path / "cut.laz").write_bytes(whole[:cut])
        with pytest.raises(duckdb.Error, match=f"{name}: '{tmp_path}/cut.laz': ") as caught:
            rows(con, call(name, f"['{folder}/t00.laz', '{tmp_path}/cut.laz']"))
        assert "read_las" not in str(caught.value)


def test_a_damaged_tile_is_named_by_the_command(folder, tmp_path):
    whole = bytearray((folder / "t00.laz").read_bytes())
    middle = len(whole) * 3 // 4
    whole[middle : middle + 300] = bytes(300)
    (tmp_path / "cut.laz").write_bytes(whole)
    for write_files, name in ((spatialq.write_ground, "ground"), (spatialq.write_lod, "lod")):
        with pytest.raises(spatialq.FileError, match=f"^{name}: '{tmp_path}/cut.laz': "):
            write_files(tmp_path / "cut.laz", tmp_path / "out.parquet", crs="EPSG:25832")


def test_a_table_called_as_a_folder_is_a_table(con, folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    con.execute("CREATE OR REPLACE TEMP TABLE tiles AS FROM pts LIMIT 100")
    count = "SELECT count(*) FROM classify_ground({}, unit := 1)"
    assert rows(con, count.format("'tiles'")) == [(100,)]
    assert rows(con, count.format("'tiles/'")) == [(N,)]
    assert rows(con, count.format("['tiles']")) == [(N,)]
    con.execute("DROP TABLE tiles")


def test_the_folder_where_we_are_has_no_slash(con, folder, monkeypatch):
    (folder / "deeper").mkdir(exist_ok=True)
    count = "SELECT count(*) FROM classify_ground('{}', unit := 1)"
    monkeypatch.chdir(folder)
    assert rows(con, count.format(".")) == [(N,)]
    monkeypatch.chdir(folder / "deeper")
    assert rows(con, count.format("..")) == [(N,)]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("points", ["'\"'", "'...'"])
def test_what_is_no_name_at_all_is_refused(con, name, points):
    with pytest.raises(duckdb.Error, match=f"{name}: .* is no name of a table"):
        rows(con, call(name, points))


def test_a_full_disk_while_files_are_read_is_said_with_the_function(
    con, folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(buffers, "IN_FILES", 64)
    monkeypatch.setenv(budget.FOLDER, str(tmp_path / "none"))
    query = call("owm_ground", f"'{folder}/'", ", memory := '1B'")
    with pytest.raises(
        duckdb.Error, match=r"owm_ground: not enough memory to read the files: .* cannot be made"
    ):
        rows(con, query)


def test_a_prepared_call_reads_the_files_as_they_are_bound(con, tmp_path):
    columns = made_up()
    write(tmp_path / "a.laz", columns, slice(0, 100))
    con.execute(f"CREATE OR REPLACE TEMP MACRO n() AS TABLE "
                f"SELECT count(*) FROM classify_ground('{tmp_path}/*.laz', unit := 1)")  # fmt: skip
    assert rows(con, "FROM n()") == [(100,)]
    write(tmp_path / "b.laz", columns, slice(100, 250))
    assert rows(con, "FROM n()") == [(250,)]


@pytest.fixture
def delivered(folder, tmp_path):
    """A folder of two tiles with notes, as surveys are delivered."""
    there = tmp_path / "delivered"
    there.mkdir()
    for name in ("t00.laz", "t01.laz"):
        (there / name).write_bytes((folder / name).read_bytes())
    (there / "README.txt").write_text("Delivered by the surveyor.")
    (there / "index.csv").write_text("tile;date\n")
    return there


def test_notes_in_a_folder_are_no_clouds(con, folder, delivered):
    expected = rows(con, call("owm_ground", f"'{folder}/t0[01].laz'"))
    assert rows(con, call("owm_ground", f"'{delivered}/'")) == expected
    text = delivered.parent / "text"
    text.mkdir()
    (text / "a.txt").write_text("x y z\n1 2 3\n")
    assert rows(con, f"SELECT count(*) FROM read_points('{text}/')") == [(1,)]


@pytest.mark.parametrize("name", ["read_las", "read_points"])
def test_readers_take_folders(con, folder, delivered, name):
    expected = rows(con, f"SELECT * EXCLUDE (file_name) FROM {name}('{folder}/t0[01].laz')")
    for path in (delivered, f"{delivered}/"):
        assert rows(con, f"SELECT * EXCLUDE (file_name) FROM {name}('{path}')") == expected
    with pytest.raises(duckdb.Error, match="there is no point cloud in this folder"):
        rows(con, f"FROM {name}('{delivered.parent}')")


def test_the_query_builder_takes_folders(delivered, monkeypatch):
    monkeypatch.chdir(delivered.parent)
    with spatialq.connect() as con:
        for path in ("delivered", Path("delivered"), "delivered/"):
            tiles = spatialq.read_points(con, path)
            made = tiles.owm_ground(unit=1)
            assert "('delivered/', unit := 1" in made.sql()
            assert made.count() > 0
            assert "read_points" in tiles.explain()
            assert tiles.count() == spatialq.read_points(con, "delivered/*.laz").count()


def test_loading_a_folder(delivered):
    with spatialq.connect() as con:
        loaded = spatialq.load(con, delivered)
        assert len(loaded) == 2


@pytest.mark.parametrize("transport", ["native", "lists"])
def test_two_connections_at_once(folder, transport):
    wanted, found, errors = {}, {}, []
    cons = [connection(transport) for _ in range(2)]
    queries = [call("classify_ground", f"'{folder}/'"), call("plane_points", f"'{folder}/*.laz'")]
    for k, query in enumerate(queries):
        wanted[k] = rows(cons[k], query)

    def work(k):
        try:
            found[k] = [rows(cons[k], queries[k]) == wanted[k] for _ in range(3)]
        except duckdb.Error as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    assert found == {0: [True] * 3, 1: [True] * 3}
    for con in cons:
        con.close()


def test_columns_of_a_kernel_alone_are_decoded(con, folder, monkeypatch):
    from spatialq.io.las.source import LasSource

    asked = []
    read = LasSource.read_into
    monkeypatch.setattr(
        LasSource, "read_into", lambda self, a, t=None: asked.append(set(a)) or read(self, a, t)
    )
    rows(con, call("classify_ground", f"'{folder}/t03.laz'"))
    rows(con, call("build_lod", f"'{folder}/t03.laz'"))
    assert asked == [{"x", "y", "z"}, {"x", "y", "z", "intensity", "classification"}]


def test_the_query_builder_names_the_files(folder):
    with spatialq.connect() as con:
        tiles = spatialq.read_points(con, f"{folder}/*.laz")
        for made in (tiles.owm_ground(unit=1), tiles.detect_planes(unit=1)):
            assert "read_points" not in made.sql()
            assert f"('{folder}/*.laz', unit := 1" in made.sql()
            assert made.fetchall() == rows(con, made.sql())
        classified = tiles.classify_ground(unit=1, memory="2GB", bounds=BOUNDS)
        assert f"classify_ground('{folder}/*.laz', " in classified.sql()
        expected = rows(
            con,
            f"SELECT point_id, height FROM read_points('{folder}/*.laz') JOIN "
            f"classify_ground('{folder}/', unit := 1, bounds := {BOUNDS}) USING (point_id)",
        )
        assert classified.select("point_id", "height").fetchall() == expected
        some = tiles.where("intensity > 9000").owm_ground(unit=1)
        assert "read_points" in some.sql()
        assert "on the" in tiles.owm_ground(unit=1).explain()
