"""Grids whose content, or whose neighbours, name other files or a server."""

import socket
import threading
import warnings
from itertools import count

import duckdb
import numpy as np
import pyarrow as pa
import pyproj
import pytest
import rasterio

from spatialq.errors import FileError
from spatialq.io.grid.source import GridSource
from spatialq.io.grid.warped import WarpedGrid

from .test_grid import write_tif

SECRET = b"confidential" * 100
NUMBERS = count()
NOTES = (
    "<PAMDataset><SRS>EPSG:25832</SRS>"
    '<Metadata><MDI key="history">dem --grids=/data/in init=/a</MDI></Metadata>'
    '<PAMRasterBand band="1"><Description>of grids=/data</Description></PAMRasterBand>'
    "</PAMDataset>"
)
"""What is said of files, beside a CRS that names none."""


class Listener:
    """A server that notes who asks it."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.requests = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                asked, _ = self.socket.accept()
            except OSError:
                return
            self.requests.append(asked.recv(1000))
            asked.close()

    @property
    def url(self):
        """A name that GDAL did not try before: it remembers those that failed."""
        return f"/vsicurl/http://127.0.0.1:{self.port}/{next(NUMBERS)}.tif"


@pytest.fixture
def listener():
    found = Listener()
    yield found
    found.socket.close()


@pytest.fixture
def cells():
    return np.arange(600 * 600, dtype=np.float32).reshape(600, 600)


def virtual(source, side=600, kind="Float32"):
    """Write a virtual dataset whose band is that of another."""
    return (
        f'<VRTDataset rasterXSize="{side}" rasterYSize="{side}">'
        '<Metadata><MDI key="INTERNAL_MASK_FLAGS_1">2</MDI></Metadata>'
        f'<VRTRasterBand dataType="{kind}" band="1"><SimpleSource>'
        f'<SourceFilename relativeToVRT="0">{source}</SourceFilename><SourceBand>1</SourceBand>'
        "</SimpleSource></VRTRasterBand></VRTDataset>"
    )


def raw(secret):
    """Write a virtual dataset whose cells are the bytes of a file."""
    return (
        '<VRTDataset rasterXSize="10" rasterYSize="1">'
        '<VRTRasterBand dataType="Byte" band="1" subClass="VRTRawRasterBand">'
        f'<SourceFilename relativeToVRT="0">{secret}</SourceFilename></VRTRasterBand></VRTDataset>'
    )


def service(url):
    return (
        '<GDAL_WMS><Service name="TMS">'
        f"<ServerUrl>{url.removeprefix('/vsicurl/')}?${{x}}</ServerUrl>"
        "</Service><DataWindow><UpperLeftX>0</UpperLeftX><UpperLeftY>9</UpperLeftY><LowerRightX>9"
        "</LowerRightX><LowerRightY>0</LowerRightY><SizeX>9</SizeX><SizeY>9</SizeY></DataWindow>"
        "<BandsCount>1</BandsCount></GDAL_WMS>"
    )


@pytest.mark.parametrize("name", ["a.tif", "a.asc", "a.hgt", "a.dem", "a.vrt"])
@pytest.mark.parametrize("kind", ["raw", "virtual", "service"])
def test_what_is_no_grid_but_names_one(con, tmp_path, listener, name, kind):
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    path = tmp_path / "there" / name
    path.parent.mkdir()
    path.write_text({"raw": raw(secret)}.get(kind) or globals()[kind](listener.url))
    for query in (
        f"FROM read_grid('{path}')",
        f"FROM read_grid('{path}', to_crs := 'EPSG:25832')",
        f"FROM pops_features('{path}', scales := [3])",
    ):
        with pytest.raises(duckdb.Error, match=r"cannot be read by GDAL|is no grid"):
            con.sql(query).fetchall()
    assert listener.requests == []


@pytest.mark.parametrize("to_crs", ["", ", to_crs := 'EPSG:4258', resolution := 1e-4"])
def test_what_a_file_says_of_its_overviews_is_not_followed(con, tmp_path, listener, cells, to_crs):
    path = write_tif(tmp_path / "tags.tif", cells)
    with rasterio.open(path, "r+") as file:
        file.update_tags(ns="OVERVIEWS", OVERVIEW_FILE=listener.url)
    beside = write_tif(tmp_path / "beside.tif", cells)
    (tmp_path / "beside.tif.aux.xml").write_text(
        '<PAMDataset><Metadata domain="OVERVIEWS"><MDI key="OVERVIEW_FILE">'
        f"{listener.url}</MDI></Metadata></PAMDataset>"
    )
    external = write_tif(tmp_path / "external.tif", cells)
    (tmp_path / "external.tif.ovr").write_text(virtual(listener.url, 300))
    chained = write_tif(tmp_path / "chained.tif", cells)
    with rasterio.open(write_tif(tmp_path / "o.tif", cells[::2, ::2].copy()), "r+") as file:
        file.update_tags(ns="OVERVIEWS", OVERVIEW_FILE=listener.url)
    (tmp_path / "o.tif").rename(tmp_path / "chained.tif.ovr")
    for each in (path, beside, external, chained):
        assert len(con.sql(f"SELECT z FROM read_grid('{each}'{to_crs})").fetchall()) > 0
        found = GridSource(each).overview(100)
        at = np.arange(3, 600, 6)
        np.testing.assert_array_equal(found, cells[np.ix_(at, at)])
    assert listener.requests == []


def test_a_mask_is_a_tiff_beside_the_file(con, tmp_path, listener, cells):
    path = write_tif(tmp_path / "good.tif", cells)
    inside = np.full(cells.shape, 255, np.uint8)
    inside[:, :100] = 0
    write_tif(tmp_path / "mask.tif", inside)
    with rasterio.open(tmp_path / "mask.tif", "r+") as file:
        file.update_tags(INTERNAL_MASK_FLAGS_1="2")
        file.update_tags(ns="OVERVIEWS", OVERVIEW_FILE=listener.url)
    (tmp_path / "mask.tif").rename(tmp_path / "good.tif.MSK")
    query = "SELECT count(z) FROM read_grid('{}')"
    assert con.sql(query.format(path)).fetchall() == [(500 * 600,)]
    assert np.isnan(GridSource(path).overview(6)).sum() == 6
    assert listener.requests == []
    for ending in (".msk", ".MSK", ".Msk"):
        folder = tmp_path / f"folder{ending}"
        folder.mkdir()
        bad = write_tif(folder / "bad.tif", cells)
        bad.with_name(f"bad.tif{ending}").write_text(virtual(listener.url, kind="Byte"))
        with pytest.raises(FileError, match=f"its mask 'bad.tif{ending}' is no TIFF"):
            GridSource(bad)
    assert listener.requests == []


def test_files_beside_it_go_on_being_read(con, tmp_path):
    z = np.ones((2, 3), np.float32)
    kind = {"driver": "GTiff", "height": 2, "width": 3, "count": 1, "dtype": z.dtype}
    with (
        warnings.catch_warnings(action="ignore"),
        rasterio.open(tmp_path / "a.tif", "w", **kind) as file,
    ):
        file.write(z, 1)
    (tmp_path / "A.tfw").write_text("2\n0\n0\n-2\n101\n203\n")
    (tmp_path / "a.tif.aux.xml").write_text("<PAMDataset><SRS>EPSG:25832</SRS></PAMDataset>")
    grid = GridSource(tmp_path / "a.tif")
    assert grid.box[:2] == (100, 200)
    assert '"code":25832' in grid.crs
    text = "ncols 3\nnrows 2\nxllcorner 100\nyllcorner 200\ncellsize 2\n1 1 1\n1 1 1\n"
    (tmp_path / "b.tif").write_text(text)  # the content decides, not the name
    wkt = pyproj.CRS(25832).to_wkt("WKT1_ESRI")
    (tmp_path / "b.prj").write_text(wkt)
    grid = GridSource(tmp_path / "b.tif")
    assert (grid.box[:2], '"code":25832' in grid.crs) == ((100, 200), True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.prj", "+init={}:foo"),
        ("a.asc.aux.xml", "<PAMDataset><SRS>+&#105;nit={}:foo</SRS></PAMDataset>"),
        ("a.asc.aux.xml", "<PAMDataset><SRS>+proj=longlat +nadgrids={}</SRS></PAMDataset>"),
        ("a.asc.aux.xml", "<PAMDataset>< srs><!-- </SRS> -->+init={}:foo</srs></PAMDataset>"),
        ("a.asc.aux.xml", '<PAMDataset srs="+init={}:foo"/>'),
        ("a.asc.aux.xml", '<PAMDataset><GCPList Projection="+init={}:foo"/></PAMDataset>'),
        ("a.hdr", 'ENVI\ncoordinate system string = {{PROJCS["a",\nEXTENSION["PROJ4",+init={}]]}}'),
    ],
)
def test_a_crs_beside_a_file_names_no_file(tmp_path, name, text):
    init = tmp_path / "init"
    init.write_text("<foo> +proj=utm +zone=32 +ellps=GRS80 +type=crs <>\n")
    path = tmp_path / "a.asc"
    path.write_text("ncols 1\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\n1\n")
    (tmp_path / name).write_text(text.format(init))
    with pytest.raises(FileError, match=f"'{name}' beside it names the file '{init}"):
        GridSource(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.asc.aux.xml", NOTES),
        ("a.hdr", "ENVI\ndescription = {dem --grids=/data/in}\ncoordinate system string = {}\n"),
    ],
)
def test_what_is_said_of_files_but_is_no_crs(tmp_path, monkeypatch, name, text):
    path = tmp_path / "a.asc"
    path.write_text("ncols 1\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\n1\n")
    (tmp_path / name).write_text(text)
    assert GridSource(path).shape == (1, 1)
    monkeypatch.setattr("spatialq.io.grid.gdal.LONGEST_TEXT", len(text) - 1)
    with pytest.raises(FileError, match=f"'{name}' beside it has more than {len(text) - 1} bytes"):
        GridSource(path)


@pytest.mark.parametrize("big", ["NO", "YES"])
@pytest.mark.parametrize("order", ["LITTLE", "BIG"])
def test_a_crs_of_a_geotiff_names_no_file(tmp_path, cells, big, order):
    wkt = pyproj.CRS(25832).to_wkt("WKT1_ESRI").replace("ETRS_1989_UTM_Zone_32N", "A" * 200)
    wkt = wkt.replace("500000.0", "500001.0")
    options = {"GEOTIFF_KEYS_FLAVOR": "ESRI_PE", "BIGTIFF": big, "ENDIANNESS": order}
    path = write_tif(tmp_path / "a.tif", cells, crs=wkt, **options)
    assert GridSource(path).crs
    raw, text = path.read_bytes(), b'",EXTENSION["PROJ4","+proj=utm +init=/tmp/init:foo"],"'
    assert b"PE String" in raw
    path.write_bytes(raw.replace(b"A" * len(text), text, 1))
    with pytest.raises(FileError, match="its CRS names the file '/tmp/init:foo'"):
        GridSource(path)
    for size in (8, 12, 16, 20):
        path.write_bytes(raw[:size])
        with pytest.raises(FileError, match="cannot be read by GDAL"):
            GridSource(path)


@pytest.mark.parametrize("name", ["GTIFF_DIR:1:a.tif", "zip:a.tif", "a.tif?b=c#d.tif", "vrt:a.tif"])
def test_a_name_that_gdal_understands_is_that_of_a_file(con, tmp_path, monkeypatch, cells, name):
    monkeypatch.chdir(tmp_path)
    write_tif(tmp_path / "a.tif", np.zeros((2, 2), np.float32))
    write_tif(tmp_path / "good.tif", cells).rename(name)
    assert con.sql("SELECT max(z) FROM read_grid(?)", params=[name]).fetchall() == [(359999,)]


def test_no_file_system_of_gdal(con, tmp_path, monkeypatch, cells):
    monkeypatch.setattr("spatialq.io.grid.gdal.ELSEWHERE", str(tmp_path))
    path = write_tif(tmp_path / "a.tif", cells)
    with pytest.raises(FileError, match="GDAL takes names that begin with"):
        GridSource(path)
    for name in ("/vsizip/a.zip/a.tif", "/vsicurl/http://127.0.0.1/a.tif"):
        with pytest.raises(duckdb.Error, match="there is no such file"):
            con.sql(f"FROM read_grid('{name}')")


def test_a_grid_of_text_is_warped_by_its_own_driver(tmp_path, listener):
    from spatialq.io import crs
    from spatialq.io.reproject import reprojection

    rows = "\n".join(" ".join(["7"] * 40) for _ in range(40))
    path = tmp_path / "a.asc"
    path.write_text(
        "ncols 40\nnrows 40\nxllcorner 500000\nyllcorner 5600000\ncellsize 10\n"
        f"NODATA_value -9999\n{rows}\n"
    )
    wkt = pyproj.CRS(25832).to_wkt("WKT1_ESRI")
    path.with_suffix(".prj").write_text(wkt)
    operation = reprojection("read_grid", *map(crs.from_text, ("EPSG:25832", "EPSG:25833")))
    grid = WarpedGrid(path, operation=operation)
    assert f"vrt://{path}?if=AAIGrid" in grid._virtual
    z = pa.concat_batches(grid.batches(["z"]))["z"].to_numpy(zero_copy_only=False)
    np.testing.assert_allclose(z[~np.isnan(z)], 7.0)
    # the file is another one when it is read than it was when it was opened
    path.write_text(virtual(listener.url, 40))
    with pytest.raises(FileError, match="cannot be read by GDAL"):
        grid.read_span(grid.spans()[0], ["z"])
    assert listener.requests == []
    odd = path.rename(tmp_path / "a?.asc")
    odd.write_text("ncols 1\nnrows 1\nxllcorner 500000\nyllcorner 5600000\ncellsize 1\n7\n")
    with pytest.raises(FileError, match=r"cannot be reprojected while there is a \?"):
        WarpedGrid(odd, operation=operation)


def test_all_drivers_are_there():
    from spatialq.io.grid.gdal import DRIVERS

    with rasterio.Env() as env:
        assert set(DRIVERS) <= env.drivers().keys()
    assert list(DRIVERS) == sorted(DRIVERS)


@pytest.mark.parametrize(
    ("driver", "ending", "options"),
    [("HFA", "img", {}), ("JP2OpenJPEG", "jp2", {"QUALITY": 100, "REVERSIBLE": "YES"}),
     ("GRIB", "grb2", {})],
)  # fmt: skip
def test_other_formats_of_one_file(tmp_path, driver, ending, options):
    path, heights = tmp_path / f"a.{ending}", np.arange(200, dtype=np.uint16).reshape(10, 20)
    made = {"width": 20, "height": 10, "count": 1, "dtype": "uint16", "crs": "EPSG:32632",
            "transform": rasterio.Affine(1, 0, 500_000, 0, -1, 5_600_000)}  # fmt: skip
    made["dtype"] = "float32" if driver == "GRIB" else "uint16"
    with rasterio.open(path, "w", driver=driver, **made, **options) as file:
        file.write(heights.astype(made["dtype"]), 1)
    source = GridSource(path)
    assert source.shape == (20, 10)
    (rows,) = source.batches(["z"])
    assert np.array_equal(rows["z"].to_numpy().reshape(10, 20), heights)


def test_the_cells_of_an_erdas_file_are_in_it(tmp_path):
    inner, outer = tmp_path / "in", tmp_path / "xyz.ige"
    inner.mkdir()
    path = inner / "abcdef.img"
    with warnings.catch_warnings(action="ignore"):
        with rasterio.open(path, "w", driver="HFA", width=20, height=10, count=1,
                           dtype="float32", USE_SPILL="YES") as file:  # fmt: skip
            file.write(np.ones((10, 20), np.float32), 1)
        (inner / "abcdef.ige").rename(outer)
        path.write_bytes(path.read_bytes().replace(b"abcdef.ige", b"../xyz.ige"))
        with rasterio.open(path) as file:  # GDAL follows it
            assert file.read(1).sum() == 200
    with pytest.raises(FileError, match="names another file for its cells, which is not read"):
        GridSource(path)


@pytest.mark.parametrize("ending", [".tif.msk", ".tif.aux.xml", ".prj", ".tfw", ".tifw", ".WLD"])
def test_a_link_beside_a_grid_stays_in_its_folder(tmp_path, cells, ending):
    inner, tiles = tmp_path / "in", tmp_path / "tiles"
    inner.mkdir()
    tiles.mkdir()
    path = write_tif(inner / "a.tif", cells)
    other = tmp_path / f"secret{ending}"
    other.write_bytes(path.read_bytes() if ending.endswith(".msk") else b"1 0 0 -1 700 800")
    (inner / f"a{ending}").symlink_to(other)
    with pytest.raises(FileError, match="beside it is a link to another folder"):
        GridSource(path)
    (inner / f"a{ending}").unlink()
    (tiles / "a.tif").symlink_to(path)  # a folder of links to a grid and what is beside it
    (inner / "a.tfw").write_text("1\n0\n0\n-1\n700\n800\n")
    (tiles / "a.tfw").symlink_to(inner / "a.tfw")
    assert GridSource(tiles / "a.tif").shape == cells.shape
