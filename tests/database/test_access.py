"""What the settings of a connection keep readers and writers from, with both transports.

Files are looked for in the registries, so that a reader, writer or function that is new is tried.
What may be opened is what DuckDB's own readers open of the same names.
"""

import gc
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq import cluster
from spatialq.database import frames, instances, sources
from spatialq.database.instances import InstanceFunction
from spatialq.database.macros import macros
from spatialq.database.native import loading
from spatialq.database.sql_functions import sql_functions
from spatialq.database.transport.request import Request
from spatialq.database.writers import writers
from spatialq.demo.house import write_house
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import ElementsInput, GridInput
from spatialq.io import clouds
from spatialq.io.formats import MACROS, readers
from spatialq.io.grid import grids

from ..examples import thinned
from ..io.bcf_files import write as write_bcf
from ..io.test_grid import write_tif
from ..kernels import beside
from ..test_argument_types import ARGUMENTS, call
from ..test_load import write_las

REFUSED = "must not be opened, as enable_external_access is false for this connection"
FUNCTIONS = {macro.name: macro for macro, _ in ARGUMENTS}
SUFFIXES = [(each, suffix) for each in readers() for suffix in each.suffixes]

TOUCHING = ("open", "os.listdir", "os.scandir", "glob.glob", "os.mkdir", "os.remove", "os.rename")
_watched: list[str] = []
_opened: list[str] = []


def _audit(event, arguments):
    if event in TOUCHING and _watched:
        name = str(arguments[0])
        if name.startswith(_watched[0]):
            _opened.append(name)


sys.addaudithook(_audit)  # which cannot be taken away


@pytest.fixture
def untouched():
    """A function that watches a folder: nothing in it is opened or listed until the test ends."""
    _opened.clear()
    yield lambda folder: _watched.append(str(folder))
    _watched.clear()
    assert not _opened


def native():
    if loading.problem():
        pytest.skip(loading.problem())
    return spatialq.connect()


def lists():
    con = duckdb.connect()
    spatialq.install(con)
    return con


@pytest.fixture(params=[native, lists])
def con(request):
    with request.param() as con:
        yield con


def close(con, *folders):
    con.execute("SET allowed_directories = $1", [list(map(str, folders))])
    con.execute("SET enable_external_access = false; SET lock_configuration = true")


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """A folder with files that can be read, of each kind."""
    folder = tmp_path_factory.mktemp("outside")
    write_house(folder / "house.ifc")
    write_bcf(folder / "issues.bcf")
    write_las(folder / "cloud.las")
    (folder / "cloud.xyz").write_text("1 2 3\n4 5 6\n")
    np.save(folder / "grid.npy", np.zeros((40, 40)))
    write_tif(folder / "grid.tif", np.zeros((4, 4), np.float32))
    (folder / "plots.geojson").write_text(
        '{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, '
        '"geometry": {"type": "Point", "coordinates": [1, 2]}}]}'
    )
    (folder / "script.ql4bim").write_text('m = ImportModel("house.ifc")')
    (folder / "cluster_jobs").mkdir()
    cluster.run("owm_ground", folder / "cloud.las", folder / "cluster_table", unit=1.0)
    return folder


@pytest.mark.parametrize(("reader", "suffix"), SUFFIXES, ids=[suffix for _, suffix in SUFFIXES])
def test_no_reader_opens_a_file_outside(con, tmp_path, untouched, reader, suffix):
    secret = tmp_path / "secret" / (f"secret{suffix}" if suffix.startswith(".") else suffix)
    secret.parent.mkdir()
    secret.write_text("1 2 3\n4 5 6\n")
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / secret.name).symlink_to(secret)
    close(con, tmp_path / "open")
    untouched(secret.parent)
    macro = MACROS[reader.kind]
    for name in (
        secret,
        secret.parent / f"*{secret.suffix}",
        f"{tmp_path}/open/../secret/{secret.name}",
        f"{tmp_path}/*/{secret.name}",
        tmp_path / "open" / secret.name,  # a link
        tmp_path / "secret" / "missing" / secret.name,
    ):
        with pytest.raises(duckdb.Error, match=REFUSED):
            con.sql(f"FROM {macro}('{name}')").fetchall()
        with pytest.raises(spatialq.FileError, match=REFUSED):
            spatialq.load(con, name)


def test_a_file_in_an_allowed_folder_is_read(con, outside, tmp_path):
    shutil.copy(outside / "cloud.las", tmp_path / "open.las")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "link.las").symlink_to(tmp_path / "open.las")
    con.execute("SET allowed_paths = $1", [[str(outside / "cloud.xyz")]])
    close(con, tmp_path)
    for name in ("open.las", "*.las", "inner/../open.las", "inner/link.las", "**/link.las", ""):
        assert con.sql(f"SELECT count(*) FROM read_points('{tmp_path}/{name}')").fetchall()[0][0]
    assert con.sql(f"FROM read_points('{outside}/cloud.xyz')").fetchall()
    with pytest.raises(duckdb.Error, match=REFUSED):
        con.sql(f"FROM read_points('{outside}/cloud.las')")


def test_duckdb_allows_the_same(con, tmp_path):
    for folder in ("a", "a/b", "ab"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_text("1 2 3\n")
    (tmp_path / "a" / "link.csv").symlink_to(tmp_path / "ab" / "x.csv")
    (tmp_path / "a" / "folder").symlink_to(tmp_path / "ab")
    (tmp_path / "ab" / "link.csv").symlink_to(tmp_path / "a" / "x.csv")
    con.execute("SET allowed_paths = $1", [[str(tmp_path / "ab" / "one.csv")]])
    close(con, tmp_path / "a")
    said = []
    for name in ("a/x.csv", "a/b/x.csv", "ab/x.csv", "a/../ab/x.csv", "ab/../a/x.csv", "a/link.csv",
                 "a/folder/x.csv", "ab/link.csv", "a/./x.csv", "*/x.csv", "a/*.csv"):  # fmt: skip
        allowed = []
        for reader in ("read_csv", "read_points"):
            try:
                con.sql(f"FROM {reader}('{tmp_path}/{name}')").fetchall()
            except duckdb.Error:
                allowed.append(False)
            else:
                allowed.append(True)
        assert len(set(allowed)) == 1, name
        said += allowed
    assert set(said) == {True, False}


@pytest.fixture(scope="module", params=[native, lists])
def closed(request, outside):
    """A connection with tables that may open no file."""
    with request.param() as con:
        spatialq.load(con, outside / "house.ifc")
        con.execute(
            "DELETE FROM elements WHERE rowid >= 8; "  # whose pairs take no second
            "CREATE TABLE points AS SELECT i AS point_id, i % 7 AS x, i // 7 AS y, i * 0.01 AS z, "
            "1::USMALLINT AS red, 2::USMALLINT AS green, 3::USMALLINT AS blue, "
            "4::USMALLINT AS intensity, 2::UTINYINT AS classification FROM range(50) AS t(i); "
            "CREATE TABLE cells AS SELECT 60.0 * i AS x, 60.0 * k AS y, sin(i) + k AS z "
            "FROM range(40) AS a(i), range(40) AS b(k); "
            "CREATE TABLE lod AS FROM build_lod('points', device := 'cpu'); "
            "CREATE TABLE plots AS SELECT 1 AS polygon_id, "
            "'POLYGON ((0 0, 9 0, 0 9, 0 0))'::GEOMETRY AS geometry; "
            "CREATE TABLE clashes AS SELECT 'x' AS a, 'y' AS b, 'p' AS a_class, 'q' AS b_class"
        )
        close(con)
        yield con


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_opens_a_file_outside(closed, outside, untouched, name, monkeypatch):
    """Those that name no file in their arguments work as before."""
    monkeypatch.chdir(outside)  # of which cluster_jobs() lists the jobs
    untouched(outside)
    query = call(FUNCTIONS[name], "", "", outside)
    if str(outside) in query or name == "cluster_jobs":
        with pytest.raises(duckdb.Error, match=REFUSED):
            closed.execute(query).fetchall()
    else:
        closed.execute(query).fetchall()


TAKING_FILES = [each for each in catalogue().values() if not isinstance(each.inputs, ElementsInput)]


@pytest.mark.parametrize("function", TAKING_FILES, ids=lambda each: each.name)
def test_no_kernel_gets_a_file_outside(closed, outside, untouched, function):
    untouched(outside)
    name = "grid.npy" if isinstance(function.inputs, GridInput) else "cloud.las"
    more = beside(function.name)
    for given in (f"'{outside}/{name}'", f"'{outside}/*'"):
        with pytest.raises(duckdb.Error, match=REFUSED):
            closed.sql(f"FROM {function.name}({given}{more})").fetchall()


def test_no_plan_that_a_user_writes_opens_a_file_outside(outside, untouched, monkeypatch):
    """The functions behind the macros get plans as text, which anybody can write.

    They are noted where files may be opened, and tried where they may not.
    """
    noted = {}

    def note(function, *arguments):
        found = called(function, *arguments)
        is_native = function._function.is_native
        values = arguments if is_native else [each[0].as_py() for each in arguments]
        noted.setdefault(function._function.name, list(values))
        return found

    called = InstanceFunction.__call__
    monkeypatch.setattr(InstanceFunction, "__call__", note)
    with lists() as con:
        for query in (
            f"FROM read_las('{outside}/cloud.las')", f"FROM read_grid('{outside}/grid.npy')",
            f"FROM read_grid('{outside}/grid.tif')", f"FROM read_ifc('{outside}/house.ifc')",
            f"FROM read_ifc_objects('{outside}/house.ifc')",
            f"FROM read_bcf('{outside}/issues.bcf')",
            f"FROM read_vector('{outside}/plots.geojson')",
            f"FROM owm_ground('{outside}/cloud.las', unit := 1)",
            f"FROM pops_features('{outside}/grid.npy', scales := [2], example_scale := 4)",
            f"FROM cluster_table('{outside}/cluster_table')",
        ):  # fmt: skip
            con.sql(query).fetchall()
    noted.pop("spatialq_shown_udf")  # it writes any value as text, and so does the next one
    noted.pop("spatialq_tables_udf")
    behind = {name: given for name, given in noted.items() if str(outside) in repr(given)}
    assert {"spatialq_read_points_span", "spatialq_read_grid_span", "spatialq_owm_ground_files",
            "spatialq_read_vector_layer",
            "spatialq_ifc_elements", "spatialq_bcf_topics",
            "spatialq_pops_features_band"} <= behind.keys()  # fmt: skip
    with lists() as con:
        close(con)
        untouched(outside)
        for name, given in behind.items():
            marks = ", ".join(f"${k + 1}" for k in range(len(given)))
            with pytest.raises(duckdb.Error, match=REFUSED):
                con.execute(f"SELECT {name}({marks})", given).fetchall()


def test_no_request_that_a_user_writes_opens_a_file_outside(outside, untouched):
    """With the extension an aggregate gets the request, also one that names files."""
    con = native()
    with con:
        close(con)
        untouched(outside)
        source = {"files": [[f"{outside}/cloud.las", 0, 0]]}
        request = Request({"device": "cpu", "unit": 1.0}, 1, source)
        with pytest.raises(duckdb.Error, match=REFUSED):
            con.execute(
                "SELECT spatialq_owm_ground_aggregate($1, 0::UTINYINT, 1::BIGINT, 1.0, 2.0, 3.0)",
                [request.text],
            ).fetchall()


def test_a_view_and_a_script_of_python(con, outside, untouched):
    view = clouds.read_points(con, outside / "cloud.las", name="v")
    grid = grids.read_grid(con, outside / "grid.npy", name="g")
    built = spatialq.read_las(con, outside / "cloud.las")
    assert view.fetchall()
    assert grid.fetchall()
    close(con)
    untouched(outside)
    for name in "vg":
        with pytest.raises(duckdb.Error, match=REFUSED):
            con.sql(f"FROM {name}").fetchall()
    for read in (
        built.fetchall,
        lambda: spatialq.read_las(con, outside / "cloud.las"),
        lambda: spatialq.read_points(con, outside),
        lambda: spatialq.read_ifc(con, outside / "house.ifc"),
        lambda: spatialq.check_ids(con, outside / "house.ifc", outside / "rules.ids"),
        lambda: spatialq.ids_specifications(con, outside / "rules.ids"),
        lambda: clouds.read_points(con, outside / "cloud.las"),
        lambda: grids.read_grid(con, outside / "grid.npy"),
        lambda: spatialq.run_script(con, outside / "script.ql4bim"),
        lambda: spatialq.run_script(con, f'm = ImportModel("{outside}/house.ifc")')["m"].count(),
        lambda: spatialq.import_database(con, outside),
    ):
        with pytest.raises((spatialq.SpatialqError, duckdb.Error), match=REFUSED):
            read()


@pytest.mark.parametrize("writer", writers(), ids=lambda each: each.name)
def test_no_writer_writes_a_file_outside(closed, tmp_path, writer):
    (suffix, *_) = writer.suffixes
    target = tmp_path / (f"x{suffix}" if suffix.startswith(".") else suffix)
    with pytest.raises(spatialq.FileError, match=REFUSED):
        spatialq.write(closed.sql("SELECT 1.0 AS x, 2.0 AS y, 3.0 AS z"), target)
    assert not list(tmp_path.iterdir())


FILE_FUNCTIONS = ("write_bcf", "write_ground", "write_lod", "write_tiles")
CLASHES = "CREATE TABLE clashes (a VARCHAR, b VARCHAR)"


@pytest.fixture
def of_files(outside, tmp_path):
    """Calls of the functions that write, with what they write."""
    shutil.copy(outside / "cloud.las", tmp_path)
    cloud, tiles = tmp_path / "cloud.las", tmp_path / "tiles" / "tileset.json"
    written = {
        "write_ground": (f"'{cloud}', ['{tmp_path}/ground.csv']", tmp_path / "ground.csv"),
        "write_lod": (f"'{cloud}', ['{tmp_path}/lod.parquet']", tmp_path / "lod.parquet"),
        "write_tiles": (f"'{cloud}', '{tiles}'", tiles),
    }
    on_cpu = {name: (f"{each}, device := 'cpu'", path) for name, (each, path) in written.items()}
    return {"write_bcf": (f"'clashes', '{tmp_path}/a.bcf'", tmp_path / "a.bcf"), **on_cpu}


def test_these_are_the_functions_that_write():
    names = {macro.name for macro in macros("native")}
    assert {name for name in names if name.startswith("write_")} == set(FILE_FUNCTIONS)


@pytest.mark.filterwarnings("ignore::spatialq.errors.FileWarning")
@pytest.mark.parametrize("name", FILE_FUNCTIONS)
def test_a_query_replaces_no_file(con, of_files, name):
    arguments, target = of_files[name]
    con.execute(CLASHES)
    query = f"SELECT * FROM {name}({arguments}"
    con.sql(f"{query})").fetchall()
    before = target.read_bytes(), target.stat().st_ino
    with pytest.raises(duckdb.Error, match=rf"{name}: '.*': is there already; overwrite := true"):
        con.sql(f"{query})").fetchall()
    assert (target.read_bytes(), target.stat().st_ino) == before
    con.sql(f"{query}, overwrite := true)").fetchall()
    assert target.stat().st_ino != before[1]


@pytest.mark.parametrize("name", thinned([*FILE_FUNCTIONS, "cluster_run"]))
def test_a_read_only_connection_writes_no_file(of_files, tmp_path, name):
    database = tmp_path / "q.duckdb"
    with spatialq.connect(database) as con:
        con.execute(CLASHES)
    calls = {key: arguments for key, (arguments, _) in of_files.items()}
    calls["cluster_run"] = f"'owm_ground', '{tmp_path}/cloud.las', '{tmp_path}/job'"
    before = sorted(tmp_path.rglob("*"))
    with spatialq.connect(database, read_only=True) as con:
        with pytest.raises(duckdb.Error, match=f"{name}: the connection must not be read-only"):
            con.sql(f"FROM {name}({calls[name]})").fetchall()
        # DuckDB writes, too, where it is told to
        assert spatialq.write(con.sql("SELECT 1 AS a"), tmp_path / "a.csv") == 1
        assert con.sql(f"FROM read_las('{tmp_path}/cloud.las')").fetchall()
    assert sorted({*tmp_path.rglob("*")} - {tmp_path / "a.csv"}) == before


@pytest.mark.parametrize("make", [native, lists])
def test_a_cursor_whose_connection_was_collected_keeps_what_was_allowed(make, outside):
    read = f"FROM read_las('{outside}/cloud.las')"
    first, second, third = make(), make(), make()
    close(second)
    left = first.cursor(), second.cursor()
    stream = third.sql(read).to_arrow_reader(10)
    del first, second, third
    gc.collect()
    assert left[0].sql(read).fetchall()
    with pytest.raises(duckdb.Error, match=REFUSED):
        left[1].sql(read).fetchall()
    assert stream.read_all().num_rows


@pytest.mark.parametrize("make", [native, lists])
def test_a_cursor_that_is_left_is_asked_what_it_may_open(make, outside, tmp_path):
    read = f"FROM read_las('{outside}/cloud.las')"
    before = kept()
    left = make().cursor()
    gc.collect()
    assert left.sql(read).fetchall()
    close(left)
    with pytest.raises(duckdb.Error, match=REFUSED):
        left.sql(read).fetchall()
    left.close()
    spatialq.connect().close()
    instances.settle()
    assert kept() <= before


def kept():
    """Which instances keep a cursor, as their connections were collected."""
    gc.collect()
    return {number for number, each in list(instances._instances.items()) if each._kept}


def test_the_extension_is_of_the_database_that_loads_it():
    if loading.problem():
        pytest.skip(loading.problem())
    with spatialq.connect() as con:
        con.execute(
            "CREATE TABLE p AS SELECT i AS point_id, i AS x, i AS y, 0 AS z FROM range(9) t(i)"
        )
        other = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        with other, pytest.raises(duckdb.Error, match=r"is loaded by spatialq\.connect\(\)"):
            other.execute(f"LOAD '{loading.PATH}'")
        spatialq.connect().close()
        assert con.sql("SELECT count(*) FROM owm_ground('p', unit := 1)").fetchall()


def test_threads_that_open_one_new_file_agree_whose_functions_it_has(outside, tmp_path):
    query = f"SELECT count(*) FROM owm_ground('{outside}/cloud.las', unit := 1)"

    def read(_):
        with spatialq.connect(tmp_path / "q.duckdb") as con:
            return con.sql(query).fetchall()

    with ThreadPoolExecutor(4) as pool:
        assert len({str(each) for each in pool.map(read, range(12))}) == 1


def test_another_connection_must_be_installed_on_when_the_first_is_closed(outside, tmp_path):
    read = f"FROM read_las('{outside}/cloud.las')"
    first, other = (duckdb.connect(tmp_path / "q.duckdb") for _ in range(2))
    spatialq.install(first)
    assert other.sql(read).fetchall()
    first.close()
    with pytest.raises(duckdb.Error, match=r"cannot be opened, .*spatialq.install\(con\)"):
        other.sql(read).fetchall()
    spatialq.install(other)
    assert other.sql(read).fetchall()
    other.close()


def test_what_was_allowed_is_of_the_last_connection(outside, tmp_path):
    read = f"FROM read_las('{outside}/cloud.las')"
    first, second, third = (duckdb.connect(tmp_path / "q.duckdb") for _ in range(3))
    spatialq.install(first)
    spatialq.install(second)
    del second
    gc.collect()
    close(first)
    first.close()
    with pytest.raises(duckdb.Error, match="cannot be opened"):
        third.sql(read).fetchall()
    third.close()


@pytest.mark.parametrize("kind", ["MACRO", "TEMP MACRO"])
def test_no_macro_of_the_user_stands_for_a_function_of_duckdb(con, outside, untouched, kind):
    close(con)
    untouched(outside)
    for name in ("current_setting(a)", "coalesce(a)", "list(a)", "spatialq_instance(a)",
                 "json_valid(a)", "spatialq_text(a, b)", "spatialq_refuse(a, b)"):  # fmt: skip
        try:
            con.execute(f"CREATE OR REPLACE {kind} {name} AS '{outside}/cloud.las'")
        except duckdb.Error:
            continue
    con.execute("CREATE SCHEMA system; CREATE MACRO memory.system.current_setting(a) AS 'x'")
    with pytest.raises(duckdb.Error):
        con.sql(f"FROM read_las('{outside}/cloud.las')").fetchall()
    with pytest.raises(spatialq.FileError, match=REFUSED):
        spatialq.load(con, outside / "cloud.las")


def test_a_forged_operation_names_no_grid(con, outside, tmp_path):
    cloud = tmp_path / "a.xyz"
    cloud.write_text("9 50 0\n")
    close(con, tmp_path)
    status = cloud.stat()
    steps = f"+proj=pipeline +step +proj=vgridshift +grids={outside}/secret.gtx"
    operation = {"source": "EPSG:4326", "target": "EPSG:4258", "operation": "x", "accuracy": 1,
                 "moves_heights": True, "z_factor": 1, "note": "", "pipeline": steps,
                 "pipeline_in_axis_order": steps}  # fmt: skip
    plan = {"caller": "read_points", "files": [[str(cloud), status.st_mtime_ns, status.st_size]],
            "spans": [1], "columns": ["x", "y", "z"], "bounds": None, "places": {},
            "resolution": None, "operations": [operation]}  # fmt: skip
    with pytest.raises(duckdb.Error, match=r"names the file '.*secret.gtx'"):
        con.execute("SELECT spatialq_read_points_span($1, 0)", [json.dumps(plan)]).fetchall()


def test_what_is_looked_up_for_a_query_is_not_opened(con, outside, untouched):
    """The CRS of the files that it names, for example."""
    close(con)
    untouched(outside)
    query = f"FROM read_las('{outside}/cloud.las')"
    assert frames.systems(con, query) == []
    assert frames.layout(con, query) is None
    assert sources.require_one_crs(con, f"CREATE TABLE t AS {query}; {query}") is None


def test_instances_have_numbers_that_nobody_guesses():
    numbers = {instances.Instance().number for _ in range(100)}
    assert len(numbers) == 100
    assert all(number > 2**40 for number in sorted(numbers)[5:])


def test_nobody_may_open_files_of_an_instance_that_is_not_known():
    assert not instances.find(-1).access().allows("/")


# ---- what DuckDB calls is there as long as it may be called ----


def test_functions_outlive_every_cache_and_every_other_connection(con):
    con.execute("CREATE TABLE pts AS SELECT i AS point_id, i AS x, i % 7 AS y, 1 AS z "
                "FROM range(100) t(i)")  # fmt: skip
    other = con.cursor()
    sql_functions.cache_clear()
    spatialq.install(other)
    other.close()
    gc.collect()
    rubbish = [object() for _ in range(100_000)]  # in the place of what was freed
    assert con.sql("SELECT count(*) FROM owm_ground('pts')").fetchall()[0][0]
    assert con.sql("SELECT count(*) FROM spatialq_devices()").fetchall()
    assert rubbish


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["spatialq.connect", "lists"])
def test_functions_while_connections_come_and_go_in_threads(transport, tmp_path):
    """In a process of its own, which a use after free would end."""
    code = f"""
import gc, threading, duckdb, spatialq
from spatialq.database.sql_functions import sql_functions
def lists():
    con = duckdb.connect()
    spatialq.install(con)
    return con
make = {transport}
gc.set_threshold(10)
def work():
    for _ in range(8):
        con = make()
        cursor = con.cursor()
        con.execute("CREATE TABLE p AS SELECT i AS point_id, i AS x, i % 7 AS y, 1 AS z "
                    "FROM range(50) t(i)")
        sql_functions.cache_clear()
        gc.collect()
        del con
        assert cursor.sql("SELECT count(*) FROM owm_ground('p', unit := 1)").fetchall()
        cursor.close()
threads = [threading.Thread(target=work) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
print("done")
"""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=300,
        cwd=tmp_path,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr


@pytest.mark.skipif(bool(loading.problem()), reason=f"extension: {loading.problem()}")
def test_what_an_instance_owns_goes_with_it():
    for _ in range(5):
        spatialq.connect().close()
    spatialq.connect().close()  # which looks for those that are no more
    before = len(instances._instances)
    for _ in range(5):
        spatialq.connect().close()
    assert len(instances._instances) <= before + 1
