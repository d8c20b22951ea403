"""The documents say what is true: all that README.md and docs/ show runs, with that result.

Pages are read from top to bottom, as by somebody in the folder of `spatialq demo`.
"""

import re
import shutil
from functools import partial
from pathlib import Path

import laspy
import numpy as np
import pytest
import rasterio
from spatialq.udfs.build_lod import SAMPLE

import spatialq
from spatialq.database.connection import macros
from spatialq.export.camera import Camera
from spatialq.export.raster import Raster, write_terrain
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import parameters_of
from spatialq.ql4bim.operators import operators

from .conftest import made_once
from .ids.ids_files import attribute, entity, specification, write_ids
from .io.bcf_files import write as write_bcf
from .pages import LANGUAGES, ROOT, Reader, blocks

PAGES = ("README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")))
ELSEWHERE = ("docs/cookbook.md",)
"""What tests of their own run."""
VIEWS = {
    "ducts": "IfcDuctSegment", "beams": "IfcBeam", "walls": "IfcWall", "slabs": "IfcSlab",
    "spaces": "IfcSpace", "furniture": "IfcColumn", "desks": "IfcColumn", "exits": "IfcDoor",
    "house": "IfcWall", "trees": "IfcColumn", "roof": "IfcRoof", "antennas": "IfcBeam",
    "old": "IfcSlab", "new": "IfcSlab",
}  # fmt: skip
"""Sets of elements that examples in comments of macros name."""
ELEMENT_MACROS = {"intersects_with", "distance", "direction", "spatial_elements", "model_alignment"}
"""Files of sql/ whose examples may give no rows on the house."""


@pytest.fixture(scope="module")
def files(world, tmp_path_factory):
    """The folder of the demo, with a terrain model of it, two tiles and some grids."""
    return made_once(tmp_path_factory, "docs", partial(write_files, world))


def write_files(world, folder):
    (folder / "tiles").mkdir()
    for path in (world.las, world.ifc, world.scan, world.site):
        shutil.copy(path, folder)
    write_bcf(folder / "clashes.bcf")
    with spatialq.connect(str(folder / "demo.duckdb")) as con:
        spatialq.load(con, [folder / "village.laz", folder / "house.ifc"])
    spatialq.write_ground(folder / "village.laz", [folder / "terrain.tif"])
    cloud = laspy.read(folder / "village.laz")
    x = np.asarray(cloud.x) - cloud.header.mins[0]
    for name, mine in (
        ("tiles/west.laz", x < 40),
        ("tiles/east.laz", (x >= 40) & (x < 80)),
        ("tile.laz", x < 80),
        ("scan.laz", x < 80),
        ("forest.laz", x < 80),
    ):
        part = laspy.LasData(cloud.header, cloud.points[mine].copy())
        part.write(folder / name)
    rows, columns = np.mgrid[0:35, 0:70]
    noise = np.random.default_rng(2).normal(0, 2, rows.shape)
    z = 900 + 80 * np.sin(columns / 5) * np.cos(rows / 6) + noise
    for name in ("dem.tif", "tiles/a.tif", "tiles/b.tif"):  # 2 x 1 examples of 2 km
        write_terrain(folder / name, Raster(z, 0.0, 2100.0, 60.0, "EPSG:32633"))


@pytest.fixture
def con(files, tmp_path, monkeypatch):
    """A connection to the database of the demo, in a folder of its own."""
    folder = tmp_path / "demo"
    shutil.copytree(files, folder)
    monkeypatch.chdir(folder)
    with spatialq.connect("demo.duckdb") as con:
        yield con
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE])
def test_what_a_page_shows(con, page):
    reader = Reader(con)
    steps = list(blocks((ROOT / page).read_text()))
    if page == "docs/pops_method.md":  # which says so
        Path("slope.py").write_text(
            next(text for language, text, *_ in steps if language == "python")
        )
    for language, text, kind, expected in steps:
        if language in LANGUAGES:
            reader.check(language, text, kind, expected)
    if page == "docs/pops_features.md":
        with rasterio.open("pca2.tif") as raster, rasterio.open("terrain.tif") as terrain:
            assert raster.shape == (10, 10)
            assert raster.crs == terrain.crs
            assert "UTM zone 32N" in raster.crs.to_wkt()
            assert raster.descriptions == ("pca2 6 mean",)


def test_pages_quote_errors_in_blocks_only():
    """So that no page quotes a sentence that nobody checks."""
    names = "|".join([*catalogue(), *(macro.name for macro in macros("native"))])
    for page in PAGES:
        prose = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)
        assert not re.findall(rf"`(?:{names}): [^`]*`", prose), page


@pytest.mark.parametrize("operator", operators(), ids=lambda operator: operator.name)
def test_every_operator_of_scripts_has_an_example(operator):
    text = (ROOT / "docs/ql4bim.md").read_text()
    (section,) = re.findall(rf"^#### {operator.name} \((\w+)\)$(.*?)(?=^##)", text, re.M | re.S)
    assert section[0] == operator.shorts[0]
    for other in operator.shorts[1:]:
        assert other in section[1]
    ((_, script, kind, _),) = (each for each in blocks(section[1]) if each[0] == "ql4bim")
    assert f"{operator.name}(" in script
    assert kind == "text"


FIXED = {"relations", "k", "direction"}
"""Parameters that a macro's name gives."""


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_parameter_is_in_a_table(name):
    """Of the function's page, or of the page of the first output of its declaration."""
    function = catalogue()[name]
    page = (ROOT / f"docs/{function.declaration.outputs[0].name}.md").read_text()
    table = r"<!-- parameters: \w+ -->\n(.*?)<!-- end of parameters -->"
    tables = "".join(re.findall(table, page, re.DOTALL))
    for parameter in {*(each.name for each in function.parameters), "device"} - FIXED:
        assert f"| `{parameter}` |" in tables, parameter


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_column_is_on_the_page(name):
    text = (ROOT / f"docs/{name}.md").read_text()
    for column in catalogue()[name].output.columns:
        assert re.search(rf"`[^`]*\b{column}\b[^`]*`", text), column


def test_samples_and_cameras_are_on_their_pages():
    text = (ROOT / "docs/build_lod.md").read_text()
    for name in SAMPLE:
        assert re.search(rf"`[^`]*\b{name}\b[^`]*`", text), name
    text = (ROOT / "docs/lod_select.md").read_text()
    camera = (each.name for each in parameters_of(Camera))
    for name in (*camera, "pixels", "max_samples", "octants"):
        assert f"`{name}`" in text, name


OF_SCANS = ("coverage", "deviation", "plane_elements", "point_elements", "unmodelled")
"""Functions that refuse a scan far from the elements, as the village is from the house."""


@pytest.mark.slow
def test_the_examples_of_the_macros(con):
    """Those of functions; readers' and planner's name files of their own."""
    for view, ifc_class in VIEWS.items():
        con.execute(f"CREATE VIEW {view} AS FROM elements WHERE ifc_class = '{ifc_class}'")
    con.execute("ALTER TABLE points RENAME TO all_points")
    con.execute(
        "CREATE VIEW points AS SELECT *, x > 652050 AS tile FROM all_points "
        "WHERE x < 652100 AND y < 5606100 "
        "UNION ALL BY NAME "  # a wall
        "SELECT 10_000_000 + i AS point_id, 652050.0 AS x, 5606000 + i % 100 / 10 AS y, "
        "430 + i // 100 / 10 AS z, true AS tile FROM range(10_000) AS r(i)"
    )
    con.execute(
        "CREATE VIEW near_origin AS "  # where the cameras of the examples are
        "SELECT * REPLACE (x - 652000 AS x, y - 5606000 AS y, z - 400 AS z) FROM points"
    )
    con.execute("CREATE TABLE lod AS FROM build_lod('near_origin', max_points := 5000)")
    con.execute("CREATE TABLE cells AS FROM read_grid('dem.tif')")
    con.execute("CREATE TABLE clashes AS FROM intersects_with('elements')")
    con.execute(
        "CREATE TABLE named_clashes AS SELECT c.*, e.ifc_class AS a_class, f.ifc_class AS b_class "
        "FROM clashes AS c JOIN elements AS e ON e.global_id = c.a "
        "JOIN elements AS f ON f.global_id = c.b"
    )
    for name, height in (("before", 0), ("after", 1), ("surface", 9), ("terrain", 0)):
        con.execute(
            f"CREATE TABLE {name} AS SELECT x, y, z + {height} AS z FROM read_grid('dem.tif')"
        )
    con.execute("CREATE TABLE last_year AS FROM points")
    con.execute(
        "CREATE TABLE plots AS SELECT 1 AS polygon_id, 'POLYGON ((652000 5606000, 652050 5606000, "
        "652000 5606050, 652000 5606000))'::GEOMETRY AS geometry"
    )
    write_ids(Path("rules.ids"), specification(entity("IFCDOOR"), attribute("Name", "none")))
    ran = set()
    for path in sorted((ROOT / "sql").glob("*.sql")):
        if path.stem.startswith(("read_", "write_")) or path.stem == "spatialq_planner":
            continue
        for macro in macros("native"):
            if macro.statement not in path.read_text():
                continue
            for example in re.findall("^example: (.*)", macro.comment, re.MULTILINE):
                assert f"{macro.name}(" in example
                if macro.name in OF_SCANS:
                    continue
                if macro.name == "check_ids":
                    continue  # the folder of the files that the tables name was renamed
                rows = con.execute(example).fetchall()
                # no revision is loaded here
                assert rows or path.stem in ELEMENT_MACROS | {"revisions"}, example
                ran.add(path.stem)
    assert ran >= ELEMENT_MACROS | {"detect_planes", "plane_points", "pops_features", "build_lod"}


def shown(page, start):
    """The one statement of a page that has such a start."""
    text = (ROOT / f"docs/{page}.md").read_text()
    (found,) = (text for language, text, *_ in blocks(text) if start in text and language == "sql")
    return found


@pytest.mark.slow
def test_a_viewer_draws_the_samples_of_its_octants(con):
    con.execute("CREATE TABLE lod AS FROM build_lod('points')")
    query = shown("lod_select", "WITH needed").replace("0]})", "0]}, pixels := 8)")
    drawn = sorted(con.execute(query).fetchall())
    (needed,) = re.findall(r"WITH needed AS \((.*?\n)\)\n", query, re.DOTALL)
    expected = []
    for row in con.sql(needed).to_arrow_table().to_pylist():
        middle = {axis: row[f"{axis}min"] + row["size"] / 2 for axis in "xyz"}
        for sample in row["samples"]:
            x, y, z = (sample[axis] >= middle[axis] for axis in "xyz")
            if row["octants"] >> (4 * x + 2 * y + z) & 1:
                expected.append(tuple(sample[n] for n in (*"xyz", "red", "green", "blue")))
    assert 0 < len(drawn) < con.sql(f'SELECT sum("count") FROM ({needed})').fetchall()[0][0]
    assert drawn == sorted(expected)


@pytest.mark.slow
def test_the_centres_of_patches(con):
    """Where z is x, its mean over a patch is the patch's centre."""
    _, columns = np.mgrid[0:40, 0:80]
    slope = Raster(0.5 + columns.astype(float), 0.0, 40.0, 1.0, "EPSG:32633")
    write_terrain(Path("slope.tif"), slope)
    query = shown("pops_patches", "WITH sizes")
    for old, new in (
        ("terrain", "slope"),
        ("'pca']", "'stat']"),
        ("'pca1'", "'mean'"),
        ("round(value, 4) AS pca1", "value"),
    ):
        query = query.replace(old, new)
    rows = con.execute(query.split("LIMIT")[0]).fetchnumpy()
    assert rows["x"].size == 2 * 12 * 12
    np.testing.assert_allclose(rows["x"], rows["value"], rtol=0, atol=1e-6)
