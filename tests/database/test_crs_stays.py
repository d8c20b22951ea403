"""The CRS of a file in feet stays with its rows, in whatever way a table is made of them."""

import json

import duckdb
import laspy
import numpy as np
import pyarrow.parquet as pq
import pyproj
import pytest

import spatialq
from spatialq.errors import CrsError, CrsWarning

from ..command_line import spatialq_command

FEET = "EPSG:2903"
POINTS = 6000


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    """Terrain in US survey feet with steps that are terrain in metres and objects in feet."""
    rng = np.random.default_rng(5)
    header = laspy.LasHeader(point_format=6, version="1.4")
    header.scales, header.offsets = [0.001] * 3, [1_600_000, 1_400_000, 0]
    header.add_crs(pyproj.CRS(FEET))
    points = laspy.LasData(header)
    x, y = rng.uniform(0, 300, (2, POINTS))
    points.x, points.y = x + 1_600_000, y + 1_400_000
    points.z = 5000 + 0.05 * x + np.where(rng.random(POINTS) < 0.3, rng.uniform(1, 4, POINTS), 0)
    path = tmp_path_factory.mktemp("feet") / "feet.laz"
    points.write(path)
    return path


def view(con, cloud, _):
    con.execute(f"CREATE VIEW made AS FROM read_las('{cloud}')")


def loaded(con, cloud, _):
    spatialq.load(con, [cloud], "made")


def created(con, cloud, _):
    spatialq.read_las(con, cloud).create("made")


def created_of_table(con, cloud, _):
    spatialq.load(con, [cloud], "first")
    spatialq.from_sql(con, "SELECT * FROM first WHERE z > 0").create("made")


def view_of_parquet(con, cloud, folder):
    spatialq.write(con.sql(f"FROM read_las('{cloud}')"), folder / "a.parquet")
    con.execute(f"CREATE VIEW made AS FROM read_parquet('{folder}/a.parquet')")


def view_of_sorted_parquet(con, cloud, folder):
    query = f"SELECT point_id, x, y, z FROM read_las('{cloud}')"
    spatialq.write(con.sql(query), folder / "a.parquet", sort=True)
    con.execute(f"CREATE VIEW made AS SELECT * FROM '{folder}/*.parquet'")


def created_of_parquet(con, cloud, folder):
    spatialq.load(con, [cloud], "first")
    spatialq.write(con.sql("FROM first"), folder / "a.parquet")
    spatialq.from_sql(con, f"FROM read_parquet('{folder}/a.parquet')").create("made")


def view_of_a_list_of_parquet(con, cloud, folder):
    _halves(con, cloud, folder)
    files = f"['{folder}/0.parquet', '{folder}/1.parquet']"
    con.execute(f"CREATE VIEW made AS FROM read_parquet({files})")


def created_of_a_list_of_parquet(con, cloud, folder):
    _halves(con, cloud, folder)
    files = f"['{folder}/1.parquet', '{folder}/0.parquet']"
    spatialq.from_sql(con, f"FROM parquet_scan({files})").create("made")


def _halves(con, cloud, folder):
    for k in range(2):
        query = f"FROM read_las('{cloud}') WHERE point_id % 2 = {k}"
        spatialq.write(con.sql(query), folder / f"{k}.parquet")


MADE = (
    view, loaded, created, created_of_table, view_of_parquet, view_of_sorted_parquet,
    created_of_parquet, view_of_a_list_of_parquet, created_of_a_list_of_parquet,
)  # fmt: skip


def ground(con, table, _):
    ((found,),) = con.sql(
        f"SELECT count(*) FROM classify_ground('{table}') WHERE is_ground"
    ).fetchall()
    return found


def laz(con, table, folder):
    spatialq.write(con.sql(f"SELECT x, y, z FROM {table}"), folder / "out.laz")
    with laspy.open(folder / "out.laz") as file:
        return file.header.parse_crs().to_epsg()


def parquet(con, table, folder):
    spatialq.write(con.sql(f"SELECT z, y, x FROM {table}"), folder / "out.parquet")
    return pyproj.CRS(pq.read_schema(folder / "out.parquet").metadata[b"crs"].decode()).to_epsg()


@pytest.fixture(scope="module")
def expected(cloud):
    with spatialq.connect() as con:
        in_feet = ground(con, cloud, None)
        of_arrays = spatialq.run("classify_ground", *laspy.read(cloud).xyz.T)["is_ground"].sum()
    assert in_feet != of_arrays  # what metres would give
    return {ground: in_feet, laz: 2903, parquet: 2903}


@pytest.mark.parametrize("out", [ground, laz, parquet])
@pytest.mark.parametrize("make", MADE)
def test_the_crs_stays(make, out, cloud, expected, tmp_path):
    (tmp_path / "out").mkdir()
    with spatialq.connect() as con:
        make(con, cloud, tmp_path)
        assert out(con, "made", tmp_path / "out") == expected[out]


def test_the_command_line(cloud, expected, tmp_path):
    database, file = tmp_path / "a.duckdb", tmp_path / "a.parquet"
    done = spatialq_command("sql", f"SELECT point_id, x, y, z FROM read_las('{cloud}')", "-o", file)
    assert done.returncode == 0, done.stderr
    make = f"CREATE TABLE made AS FROM read_parquet('{file}')"
    done = spatialq_command("sql", make, "--database", database, "--create")
    assert done.returncode == 0, done.stderr
    count = "SELECT count(*) AS n FROM classify_ground('made') WHERE is_ground"
    done = spatialq_command("sql", count, "--database", database, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [{"n": expected[ground]}]


COPIED = "COPY (FROM read_las('{cloud}')) TO '{folder}/a.parquet'; "


@pytest.mark.parametrize(
    "make",
    [
        "CREATE TABLE made AS FROM read_las('{cloud}')",
        f"{COPIED} CREATE TABLE made AS FROM '{{folder}}/a.parquet'",
        f"{COPIED} CREATE VIEW made AS FROM '{{folder}}/a.parquet'",
    ],
)
def test_what_duckdb_drops_is_an_error(make, cloud, tmp_path):
    with spatialq.connect() as con:
        con.execute(make.format(cloud=cloud, folder=tmp_path))
        with pytest.raises(duckdb.Error, match="'made' does not state its CRS, which may be that"):
            ground(con, "made", None)
        con.sql("SELECT count(*) FROM classify_ground('made', crs := 'EPSG:2903')").fetchall()


@pytest.mark.parametrize("files", ["'{0}/*.parquet'", "['{0}/a.parquet', '{0}/b.parquet']"])
def test_parquet_in_several_systems_is_refused(files, cloud, tmp_path):
    """As the readers of clouds refuse it; where the rows are copied only, it is a warning."""
    with spatialq.connect() as con:
        query = f"SELECT point_id, x, y, z FROM read_las('{cloud}')"
        spatialq.write(con.sql(query), tmp_path / "a.parquet")
        spatialq.from_sql(con, query).create("other")
        con.execute("""COMMENT ON TABLE other IS '{"crs": "EPSG:25832"}'""")
        spatialq.write(con.sql("FROM other"), tmp_path / "b.parquet")
        both = f"FROM read_parquet({files.format(tmp_path)})"
        says = r"'[^']*a\.parquet' is in .*EPSG:2903.* but '[^']*b\.parquet' is in .*EPSG:25832"
        with pytest.raises(CrsError, match=says):
            spatialq.write(con.sql(both), tmp_path / "c.laz")
        with pytest.raises(CrsError, match=says):
            spatialq.from_sql(con, both).create("made")
        con.execute(f"CREATE VIEW made AS {both}")
        with pytest.raises(duckdb.Error, match=says):
            ground(con, "made", None)
        with pytest.warns(CrsWarning, match=f"no CRS is noted, as {says}"):
            spatialq.write(con.sql("FROM made"), tmp_path / "c.parquet")


def test_parquet_of_others(tmp_path):
    """The CRS of a GeoParquet file counts for x and y beside its geometry; others state none."""
    with spatialq.connect() as con:
        points = "SELECT i / 100 AS x, (i % 7) / 10 AS y, 0.0::DOUBLE AS z FROM range(1000) AS t(i)"
        con.execute(f"CREATE TABLE p AS {points}")
        con.execute(f"""COMMENT ON TABLE p IS '{{"crs": "{FEET}"}}'""")
        shapes = "SELECT *, ('POINT (' || x || ' ' || y || ')')::GEOMETRY AS geometry FROM p"
        spatialq.write(con.sql(shapes), tmp_path / "a.parquet")
        con.execute(f"CREATE VIEW made AS FROM '{tmp_path}/a.parquet'")
        assert laz(con, "made", tmp_path) == 2903
        con.execute(f"COPY p TO '{tmp_path}/b.parquet'")
        con.execute(f"CREATE VIEW other AS FROM '{tmp_path}/b.parquet'")
        spatialq.write(con.sql("FROM other"), tmp_path / "b.laz")
        with laspy.open(tmp_path / "b.laz") as file:
            assert file.header.parse_crs() is None
