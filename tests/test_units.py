"""Every function and command on coordinates in every unit, from every place where they may be.

The same scene is written in metres, feet, US survey feet, degrees, without a CRS, and with heights
in another unit than x and y. What is found must be the same as in metres, or one sentence must say
why it cannot be.
"""

import json
import re
import warnings

import duckdb
import laspy
import numpy as np
import pyarrow.parquet as pq
import pyproj
import pytest
import rasterio

import spatialq
from spatialq.errors import CrsWarning

from .classify_ground.cases import hill, scene
from .command_line import spatialq_command
from .element_tables import box, put

FOOT, US_FOOT = 0.3048, 1200 / 3937
KINDS = {
    "metres": ("EPSG:25832", 1.0, 1.0),
    "feet": ("EPSG:2222", FOOT, FOOT),
    "US feet": ("EPSG:2230", US_FOOT, US_FOOT),
    "degrees": ("EPSG:4326", 111000.0, 1.0),
    "no CRS": (None, 1.0, 1.0),
    "mixed": ("EPSG:25832+6360", 1.0, US_FOOT),
}
"""CRS, metres in a unit of x and y, and metres in a unit of z."""
X0, Y0 = 500000.0, 5000000.0
PLACES = ("table", "view", "CTE", "CTE of a file", "in a view")
"""Where the points are; the last is a view that calls the function."""
QUERIES = {
    "classify_ground": "SELECT count(*) FILTER (is_ground), max(height) * {up} "
    "FROM classify_ground('{t}')",
    "owm_ground": "SELECT count(*) FROM owm_ground('{t}')",
    "ground_surface": "SELECT count(z), avg(z) * {up} "
    "FROM ground_surface('{t}', resolution := 2 / {across})",
    "detect_planes": "SELECT count(*), sum(area) * {across} ** 2 FROM detect_planes('{t}')",
    "plane_points": "SELECT count(plane_id) FROM plane_points('{t}')",
    "plane_nodes": "SELECT count(*) FILTER (state = 'plane') FROM plane_nodes('{t}')",
    "plane_peaks": "SELECT count(*), max(rho) * {across} FROM plane_peaks('{t}')",
    "build_lod": "SELECT count(*), max(level) FROM build_lod('{t}', max_points := 500)",
    "deviation": "SELECT count(face), round(avg(distance), 2) "
    "FROM deviation('{t}', 'elements', 0.4)",
    "plane_elements": "SELECT count(global_id), round(avg(deviation), 2) "
    "FROM plane_elements('{t}', 'elements')",
    "point_elements": "SELECT count(*), max(distance) FROM point_elements('{t}', 'elements', 0.4)",
}
IN_METRES = ("classify_ground", "owm_ground", "ground_surface", "deviation", "plane_elements",
             "point_elements")  # fmt: skip
"""Functions with lengths in metres, which must know the unit."""
OF_SPACE = ("classify_ground", "detect_planes", "plane_points", "plane_nodes", "plane_peaks",
            "build_lod", "deviation", "plane_elements")  # fmt: skip
"""Functions that compare z with x and y, and say that they convert heights."""


def points():
    """A hill with a house, without noise: x, y and z in metres."""
    found = scene(2, terrain=hill, side=40.0, n=8000, x0=X0, y0=Y0)
    return np.array([p[1:4] for p in found]).T


def roof():
    """The southern half of the roof, 5 cm lower than the points: vertices and faces."""
    eaves, ridge = (hill(12, 12) + 5 + rise - 0.05 for rise in (1.2, 0.0))
    vertices, faces = box((X0 + 8, Y0 + 9, 0), (X0 + 16, Y0 + 12, 0))
    vertices[:, 2] += np.where(vertices[:, 1] > Y0 + 10, ridge, eaves)
    vertices[:, 2] -= np.arange(8) % 2 == 0
    return vertices, faces


def in_units(kind):
    _, across, up = KINDS[kind]
    x, y, z = points()
    if kind == "degrees":
        return 9 + (x - X0) / across, 45 + (y - Y0) / across, z
    return x / across, y / across, z / up


def write_cloud(path, kind):
    header = laspy.LasHeader(point_format=6, version="1.4")
    x, y, z = in_units(kind)
    header.scales = [1e-8, 1e-8, 1e-6] if kind == "degrees" else [1e-5] * 3
    header.offsets = [np.floor(v.min()) for v in (x, y, z)]
    if KINDS[kind][0] is not None:
        header.add_crs(pyproj.CRS(KINDS[kind][0]))
    cloud = laspy.LasData(header)
    cloud.x, cloud.y, cloud.z = x, y, z
    cloud.write(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("units")
    found = {kind: folder / f"{kind.replace(' ', '_')}.las" for kind in KINDS}
    for kind, path in found.items():
        write_cloud(path, kind)
    return found


@pytest.fixture(scope="module")
def con(files):
    con = spatialq.connect()
    for path in files.values():
        spatialq.load(con, path, path.stem)
        con.execute(f"CREATE VIEW v_{path.stem} AS SELECT * FROM {path.stem} WHERE z > -1e6")
    put(con, "elements", global_id=["roof"], ifc_class=["IfcRoof"], mesh=[roof()])
    return con


def run(con, query):
    """Give the first row and the warnings about units, or the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            row = con.execute(query).fetchall()[0]
        except duckdb.Error as error:
            return str(error), []
    return row, sorted({str(each.message) for each in caught if each.category is CrsWarning})


def written(con, function, kind, place, path):
    """Write a query that calls a function on the points of that kind, which are in that place."""
    _, across, up = KINDS[kind]
    table = path.stem
    name = {"view": f"v_{table}", "CTE": "q", "CTE of a file": "q"}.get(place, table)
    query = QUERIES[function].format(t=name, across=across, up=up)
    if place == "in a view":
        con.execute(f"CREATE OR REPLACE VIEW inner_view AS {query}")
        return "FROM inner_view"
    if place == "CTE":
        columns = "point_id, x, round(y, 9) AS y, z::DOUBLE AS z"
        return f"WITH q AS (SELECT {columns} FROM {table}) {query}"
    if place == "CTE of a file":
        return f"WITH q AS (FROM read_las('{path}')) {query}"
    return query


@pytest.fixture(scope="module")
def expected(con):
    """What each function finds in metres, as `unit := 1` of a table without a CRS says."""
    con.execute("CREATE TABLE plain AS SELECT point_id, x, y, z FROM metres")
    found = {}
    for function, query in QUERIES.items():
        asked = query.format(t="plain", across=1, up=1).replace("'plain'", "'plain', unit := 1", 1)
        if "elements'" in asked:
            asked = query.format(t="plain", across=1, up=1)[:-1] + ", unit := 1)"
        found[function], noted = run(con, asked)
        assert not noted
    return found


ANYWHERE = ("classify_ground", "build_lod", "point_elements")
"""Functions that are called on points in each place: with lengths in metres, without, and with
elements. In which CRS the points are is found by the same code for all functions of their kind.
"""
CALLS = [
    (function, kind, place)
    for function in QUERIES
    for kind in KINDS
    for place in (PLACES if function in ANYWHERE else PLACES[:1])
]


@pytest.mark.parametrize(("function", "kind", "place"), CALLS)
def test_sql(con, files, expected, function, kind, place):
    found, noted = run(con, written(con, function, kind, place, files[kind]))
    if kind == "degrees" and function != "build_lod":
        sentence = rf"{function}: the CRS of '.*', WGS 84 \(EPSG:4326\), is not projected"
        assert re.search(sentence, found)
        return
    about = {
        "degrees": "is not projected",
        "no CRS": "is not known" if function in IN_METRES else None,
        "mixed": "heights of" if function in OF_SPACE else None,
    }.get(kind)
    assert [about in each for each in noted] == ([True] if about else [])
    assert all(each.startswith(f"{function}: ") for each in noted)
    if kind != "degrees":
        assert found == pytest.approx(expected[function], rel=0.02, abs=0.02)


SIZES = {
    "classify_ground": lambda found: np.count_nonzero(found["is_ground"]),
    "owm_ground": lambda found: found["x"].size,
    "ground_surface": lambda found: np.count_nonzero(~np.isnan(found["z"])),
    "detect_planes": lambda found: found["plane_id"].size,
    "plane_points": lambda found: np.count_nonzero(found["plane_id"]),
    "build_lod": lambda found: found["node"].size,
    "deviation": lambda found: np.count_nonzero(found["element"] >= 0),
    "plane_elements": lambda found: np.count_nonzero(found["element"] >= 0),
}
"""How much functions find on arrays: the first value of their query."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", SIZES)
def test_arrays(con, expected, function, kind):
    """In Python `crs` is said; what is not said is metres."""
    crs, across, _ = KINDS[kind]
    options = {"crs": crs}
    if function == "build_lod":
        options["max_points"] = 500
    if function == "ground_surface":
        options["resolution"] = 2 / across
    if function == "deviation":
        options["max_distance"] = 0.4
    if function in ("deviation", "plane_elements"):
        mesh = con.execute("SELECT mesh FROM elements").fetchall()[0][0]
        options["elements"] = [[np.reshape(mesh[part], (-1, 3)) for part in ("vertices", "faces")]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrsWarning)
        if kind == "degrees" and function != "build_lod":
            with pytest.raises(spatialq.CrsError, match=f"{function}: .* is not projected"):
                spatialq.run(function, *in_units(kind), **options)
            return
        found = spatialq.run(function, *in_units(kind), **options)
    if kind != "degrees":
        assert SIZES[function](found) == pytest.approx(expected[function][0], rel=0.02)


COMMANDS = {
    "ground": (["-o", "{folder}/heights.parquet"], lambda done: done["ground_points"]),
    "planes": (["-o", "{folder}/planes.parquet"], lambda done: done["plane_points"]),
    "lod": (["--max-points", "500"], lambda done: done["nodes"]),
}
"""Options of commands for clouds, and how much they find."""


def ran(name, kind, path, folder):
    """Run a command; give what it found, and what it said."""
    options, size = COMMANDS[name]
    words = [each.format(folder=folder) for each in options]
    done = spatialq_command(name, path, *words, "--json")
    return done.returncode, size(json.loads(done.stdout)[0]) if done.stdout else None, done.stderr


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COMMANDS)
def test_commands(files, tmp_path, name, kind):
    code, found, said = ran(name, kind, files[kind], tmp_path)
    if kind == "degrees" and name != "lod":
        assert code == 1
        assert re.search(r"the CRS of '.*', WGS 84 \(EPSG:4326\), is not projected", said)
        assert not list(tmp_path.iterdir())
        return
    assert code == 0, said
    about = {
        "degrees": "is not projected",
        "no CRS": "is not known, so" if name == "ground" else None,
        "mixed": "heights of",
    }.get(kind)
    assert "heights of" in said if kind == "mixed" else "heights of" not in said
    assert about is None or about in said
    if kind != "degrees":
        assert found == pytest.approx(ran(name, "metres", files["metres"], tmp_path)[1], rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_have_the_crs_of_the_file(files, tmp_path, kind):
    """Or one of it in which heights have the unit of x and y, where they were converted."""
    crs = KINDS[kind][0]
    if kind == "degrees":
        pytest.skip("test_commands: an error")
    written = [tmp_path / name for name in ("planes.parquet", "ground.laz", "terrain.tif")]
    for name, target in zip(("planes", "ground", "ground"), written, strict=True):
        resolution = ["--resolution", "2m"] if target.suffix == ".tif" else []
        done = spatialq_command(name, files[kind], "-o", target, *resolution)
        assert done.returncode == 0, done.stderr
    geo = json.loads(pq.read_metadata(written[0]).metadata[b"geo"])
    known = geo["columns"]["boundary"]["crs"]
    with rasterio.open(written[2]) as terrain:
        of_raster = terrain.crs
    if crs is None:
        assert known is None
        assert of_raster is None
        assert laspy.read(written[1]).header.parse_crs() is None
        return
    assert laspy.read(written[1]).header.parse_crs().equals(pyproj.CRS(crs))
    assert pyproj.CRS(of_raster.to_wkt()).to_2d().equals(pyproj.CRS(crs).to_2d())
    of_table = pyproj.CRS.from_json_dict(known)
    across, up = of_table.axis_info[0], of_table.axis_info[-1]
    assert across.unit_conversion_factor == pytest.approx(KINDS[kind][1], rel=1e-5)
    assert up.unit_conversion_factor == pytest.approx(KINDS[kind][1], rel=1e-5)
