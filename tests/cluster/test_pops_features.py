"""`pops_features` as a job: the rows of one call on the same files, to the bit."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import rasterio
from spatialq.udfs.pops_features.methods import USER_METHODS

import spatialq
from spatialq import cluster
from spatialq.cluster import driver
from spatialq.cluster.serial_executor import SerialExecutor
from spatialq.data import grid as data_grid
from spatialq.errors import CrsError, CrsWarning, FileError, FileWarning, JobError
from spatialq.execution import call
from tests.cluster import surveys
from tests.command_line import rows as command_rows
from tests.command_line import spatialq_command
from tests.conftest import made_once, real_file
from tests.examples import combinations

SMALL = {"scales": (5.0, 7.0), "example_scale": 20.0}
ROWS, COLUMNS, CELL = 75, 118, 2.0
SHAPES = {"a": (ROWS, COLUMNS), "b": (33, 47), "c": (12, 10)}
"""7 by 11 examples of 10 by 10 cells and a rest, 3 by 4, and one."""


def write(path, z, *, west=500_000.0, crs="EPSG:25832", nodata=-9999.0, cell=CELL, **options):
    with rasterio.open(
        path, "w", driver="GTiff", height=z.shape[0], width=z.shape[1], count=1, dtype=z.dtype,
        crs=crs, nodata=nodata, transform=rasterio.Affine(cell, 0, west, 0, -cell, 5_600_000.0),
        **options,
    ) as file:  # fmt: skip
        file.write(z, 1)
    return path


def make(folder):
    """Write grids side by side, in blocks that fit no example; some cells have no value."""
    rng = np.random.default_rng(4)
    west = 500_000.0
    for name, (rows, columns) in SHAPES.items():
        y, x = np.mgrid[0:rows, 0:columns].astype(float)
        z = 20 * np.sin(x / 9) * np.cos(y / 7) + rng.normal(400, 0.3, x.shape)
        z[rng.random(z.shape) < 0.05] = -9999
        z[3:20, 5:29] = -9999
        blocks = {"tiled": True, "blockxsize": 16, "blockysize": 48, "compress": "deflate"}
        write(folder / f"{name}.tif", z.astype(np.float32), west=west, **blocks)
        west += columns * CELL
    return folder


@pytest.fixture(scope="session")
def grids(tmp_path_factory):
    return made_once(tmp_path_factory, "grids", make)


def in_one_piece(source, options=SMALL):
    """Write the call of the function on all files."""
    given = "".join(f", {name} := {_literal(value)}" for name, value in options.items())
    return f"pops_features('{source}'{given})"


def _literal(value):
    return str(list(value)) if isinstance(value, tuple) else repr(value)


def require_same(folder, expected):
    """Compare all columns to the bit, both ways, with repeats; give the number of rows."""
    with spatialq.connect() as con:
        con.execute(f"CREATE TABLE expected AS FROM {expected}")
        found = cluster.table(con, folder, "found")
        described = con.sql("FROM expected")
        assert (found.columns, found.types) == (described.columns, described.types)
        for one, other in (("expected", "found"), ("found", "expected")):
            ((left,),) = con.sql(
                f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})"
            ).fetchall()
            assert left == 0, (one, other)
        ((n,),) = con.sql("SELECT count(*) FROM expected").fetchall()
    return n


def run(source, folder, **options):
    return cluster.run("pops_features", str(source), folder, **(SMALL | options))


CASES = {
    "as it is": {},
    "examples that overlap": {"example_step": 7.0},
    "examples apart": {"example_step": 27.0},
    "other patches": {"scales": (5.0, 9.0, 20.0), "steps": (2.0, 9.0, 3.0)},
    "all methods": {"methods": ("stat_centred", "pca_ternary", "stat", "pca")},
    "many values needed": {"min_valid": 0.97, "min_patches": 5, "quantiles": "linear"},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tile_size"),
    [
        *(("as it is", each) for each in (None, 1.0, 47.3, 60.0, 1e9)),
        *((name, each) for name in CASES if name != "as it is" for each in (1.0, 47.3)),
    ],
)
def test_parts_have_the_rows_of_one_piece(at_once, grids, tmp_path, name, tile_size):
    options = SMALL | CASES[name]
    result = run(grids, tmp_path / "out", tile_size=tile_size, **options)
    n = require_same(tmp_path / "out", in_one_piece(f"{grids}/*.tif", options))
    assert result["rows"] == n > 100
    if tile_size in (None, 1e9):
        assert result["parts"] == 3
    if name == "as it is":
        assert result["parts"] == {None: 3, 1.0: 77 + 12 + 1, 47.3: 24 + 4 + 1, 60.0: 12 + 2 + 1,
                                   1e9: 3}[tile_size]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "tile_size"), combinations([{}, CASES["examples that overlap"]], [None, 47.3])
)
def test_patches_have_the_rows_of_one_piece(at_once, grids, tmp_path, options, tile_size):
    options = SMALL | options
    made = cluster.run("pops_patches", grids, tmp_path / "out", tile_size=tile_size, **options)
    one = in_one_piece(f"{grids}/*.tif", options).replace("pops_features", "pops_patches")
    assert made["rows"] == require_same(tmp_path / "out", one) > 1000


def test_patches_are_no_rasters(grids, tmp_path):
    with pytest.raises(ValueError, match="part_format must be one of parquet for pops_patches"):
        cluster.run("pops_patches", grids, tmp_path / "out", part_format="tif", **SMALL)


@pytest.mark.slow
def test_a_tile_is_read_in_bands_and_no_further(at_once, grids, tmp_path, monkeypatch):
    """Each call of the kernel has the cells of its examples, and those behind the last ones."""
    monkeypatch.setattr(data_grid, "BAND_CELLS", 1)
    seen = []
    kernel = call.call_outputs
    monkeypatch.setattr(
        call, "call_outputs", lambda *args, **named: (seen.append(args[1]["grid"].z.shape),
                                                      kernel(*args, **named))[1])  # fmt: skip
    run(grids / "a.tif", tmp_path / "out", tile_size=60.0)
    assert set(seen) == {(10, 30), (10, 118 - 90)}
    assert len(seen) == 7 * 4
    monkeypatch.setattr(call, "call_outputs", kernel)
    require_same(tmp_path / "out", in_one_piece(grids / "a.tif"))


@pytest.mark.slow
@pytest.mark.parametrize("tile_size", [None, 50.0])
def test_heights_in_another_unit_and_files_in_another_crs(at_once, grids, tmp_path, tile_size):
    """Heights in feet over metres are converted; a warped grid has the same values in windows."""
    feet = "EPSG:25832+6360"
    z = np.random.default_rng(2).normal(900, 9, (61, 70))
    write(tmp_path / "feet.tif", z, crs=feet)
    with pytest.warns(CrsWarning, match="heights were converted to the unit of x and y"):
        run(tmp_path / "feet.tif", tmp_path / "of_feet", tile_size=tile_size)
    with pytest.warns(CrsWarning):
        require_same(tmp_path / "of_feet", in_one_piece(tmp_path / "feet.tif"))
    of_file = {"to_crs": "EPSG:32633", "resolution": 2.5}
    run(grids, tmp_path / "out", tile_size=tile_size, **of_file)
    require_same(tmp_path / "out", in_one_piece(f"{grids}/*.tif", SMALL | of_file))


@pytest.mark.slow
@pytest.mark.parametrize("tile_size", [None, 50.0])
def test_a_band_of_several_and_a_value_that_is_none(at_once, tmp_path, tile_size):
    z = np.random.default_rng(9).integers(0, 60, (2, 50, 45)).astype(np.int16)
    with rasterio.open(
        tmp_path / "two.tif", "w", driver="GTiff", height=50, width=45, count=2, dtype="int16",
        crs="EPSG:25832", transform=rasterio.Affine(2, 0, 0, 0, -2, 100),
    ) as file:  # fmt: skip
        file.write(z)
    of_file = {"band": 2, "nodata": 17.0}
    run(tmp_path / "two.tif", tmp_path / "out", tile_size=tile_size, **of_file)
    require_same(tmp_path / "out", in_one_piece(tmp_path / "two.tif", SMALL | of_file))


REAL = {
    "Exploradores_ASTER_Z.tif": ((100.0, 150.0, 300.0), 1000.0, 3000.0),
    "N27E086.hgt": ((0.003, 0.005), 0.02, 0.1),
    "SainteHelens.dem": ((100.0, 150.0, 300.0), 1000.0, 4000.0),
    "landlab_tidal_zSW3.asc": ((6.0, 10.0, 20.0), 66.0, 200.0),
    "EMD_andrews_x1_trueDTM.npy": ((3.0, 5.0, 10.0), 33.0, 150.0),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*lengths are in degrees", "ignore:.*declare it; read with")
@pytest.mark.parametrize("name", REAL)
def test_real_grids(at_once, tmp_path, name):
    path, (scales, example, tile_size) = real_file(f"data/dem/{name}"), REAL[name]
    options = {"scales": scales, "example_scale": example}
    result = cluster.run("pops_features", path, tmp_path / "out", tile_size=tile_size, **options)
    assert result["parts"] > 3
    assert require_same(tmp_path / "out", in_one_piece(path, options)) == result["rows"] > 1000


@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_what_is_done(grids, tmp_path):
    arguments = {"function": "pops_features", "source": str(grids), "folder": str(tmp_path / "out"),
                 "workers": 1, "tile_size": 1.0, **SMALL}  # fmt: skip
    process = subprocess.Popen([sys.executable, "-c", surveys.SCRIPT, json.dumps(arguments)])
    until = time.monotonic() + 120
    while surveys.journal_lines(tmp_path / "out") < 8 and process.poll() is None:
        assert time.monotonic() < until, "the job does not go on"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(60)
    (described,) = cluster.jobs(tmp_path)
    assert described["state"] == "unfinished"
    result = run(grids, tmp_path / "out", workers=2, tile_size=1.0, resume=True)
    assert (result["parts"], result["resumed"] >= 5) == (90, True)
    require_same(tmp_path / "out", in_one_piece(f"{grids}/*.tif"))


@pytest.mark.slow
def test_what_has_changed_is_noticed(at_once, grids, tmp_path):
    copy = tmp_path / "grids"
    shutil.copytree(grids, copy)
    run(copy, tmp_path / "out")
    with pytest.raises(JobError, match=r"with another scales, \[5\.0, 7\.0\], not \[5\.0, 8\.0\]"):
        run(copy, tmp_path / "out", resume=True, scales=(5.0, 8.0))
    with pytest.raises(JobError, match=r"with another nodata, None, not 5\.0"):
        run(copy, tmp_path / "out", resume=True, nodata=5.0)
    (copy / "b.tif").touch()
    with pytest.raises(JobError, match=r"b.tif' has changed since the job"):
        run(copy, tmp_path / "out", resume=True)


@pytest.mark.slow
def test_a_file_that_changes_while_the_job_runs(grids, tmp_path, monkeypatch):
    copy = tmp_path / "grids"
    shutil.copytree(grids, copy)

    class Touching(SerialExecutor):
        def map(self, tasks):
            for done in super().map(tasks):
                if done.stage == "survey":
                    (copy / "b.tif").touch()
                yield done

    monkeypatch.setattr(driver, "executor_of", lambda *_, **__: Touching())
    with pytest.raises(FileError, match=r"b\.tif': was changed while the job ran"):
        run(copy, tmp_path / "out")


@pytest.mark.slow
def test_rasters_fit_together(at_once, grids, tmp_path):
    """The means that the command writes of the whole file, each cell once."""
    spatialq.write_features(grids / "a.tif", tmp_path / "whole.tif", **SMALL)
    result = run(grids / "a.tif", tmp_path / "out", tile_size=60.0, part_format="tif")
    assert (result["parts"], result["rows"]) == (12, 77)
    with rasterio.open(tmp_path / "whole.tif") as file:
        whole, corner, names = file.read(masked=True), file.transform, file.descriptions
    found = np.full(whole.shape, np.inf)
    for path in (tmp_path / "out/parts").iterdir():
        with rasterio.open(path) as file:
            assert (file.descriptions, file.crs.to_epsg()) == (names, 25832)
            column, row = (round(each) for each in ~corner @ (file.bounds.left, file.bounds.top))
            part = found[:, row : row + file.height, column : column + file.width]
            assert np.isinf(part).all()
            part[:] = file.read(masked=True).filled(np.nan)
            assert corner @ (column, row) == pytest.approx((file.bounds.left, file.bounds.top))
    np.testing.assert_array_equal(found, whole.filled(np.nan))
    with spatialq.connect() as con, pytest.raises(JobError, match=r"are tif files, no rows"):
        cluster.table(con, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("tile_size", [None, 60.0])
def test_a_grid_without_a_value_is_named(at_once, grids, tmp_path, tile_size):
    """A call refuses such a file; a job of many has its rows, as those of tiles without a value."""
    copy = tmp_path / "grids"
    shutil.copytree(grids, copy)
    write(copy / "sea.tif", np.full((40, 40), -9999.0))
    with pytest.warns(FileWarning, match=r"1 of 4 grids have no value, such as '.*sea\.tif'"):
        run(copy, tmp_path / "out", tile_size=tile_size)
    with spatialq.connect() as con:
        cluster.table(con, tmp_path / "out", "found")
        query = "SELECT count(*), count(mean), sum(patches) FROM found WHERE file_name LIKE '%sea%'"
        assert con.sql(query).fetchall() == [(16 * 2 * 11, 0, 0)]


def test_what_is_refused(at_once, grids, tmp_path):
    def refused(error, message, source=grids, **options):
        with pytest.raises(error, match=message):
            run(source, tmp_path / "out", **options)
        assert not (tmp_path / "out").exists()

    refused(ValueError, "band must be a whole number from 1, got 0", band=0)
    refused(ValueError, r"band must be 1 to 1 for '.*a\.tif', got 2", band=2)
    refused(ValueError, "nodata must be a number, got 'x'", nodata="x")
    refused(ValueError, "nodata must be a number, got nan", nodata=float("nan"))
    refused(ValueError, "to_crs must be a text, got 25833", to_crs=25833)
    refused(ValueError, "resolution must be a number above 0, got -1", resolution=-1)
    refused(ValueError, "resolution needs to_crs", resolution=2.0)
    refused(ValueError, "scales must be from 4, two cells along x", scales=(1.0,))
    refused(ValueError, "part_format must be one of parquet, tif", part_format="laz")
    with pytest.raises(FileError, match="is no grid: its name must end in"):
        run(__file__, tmp_path / "out")

    """A method of the user's, which is known in this process alone."""


def test_methods_of_the_user_are_refused(grids, tmp_path):
    """They are known in this process alone."""
    spatialq.pops_method("corner", features=["a"])(lambda z, dx, dy, out: None)
    try:
        with pytest.raises(ValueError, match=r"methods must be of pca, .* got 'corner'"):
            run(grids, tmp_path / "out", methods=("pca", "corner"))
    finally:
        del USER_METHODS["corner"]


def test_files_that_do_not_go_together(at_once, tmp_path):
    z = np.random.default_rng(1).normal(size=(40, 40))
    write(tmp_path / "a.tif", z)
    write(tmp_path / "b.tif", z, crs="EPSG:25833")
    with pytest.raises(CrsError, match=r"'.*a\.tif' is in .* but '.*b\.tif' is in"):
        run(tmp_path / "*.tif", tmp_path / "out")
    write(tmp_path / "b.tif", z[:5])
    with pytest.raises(FileError, match=r"b\.tif': example_scale must be from 4, .* got 20"):
        run(tmp_path / "*.tif", tmp_path / "other")


def test_an_infinite_height_is_refused_as_in_one_piece(at_once, tmp_path):
    """Behind the last example, where no feature needs it."""
    z = np.random.default_rng(1).normal(size=(40, 47))
    z[5, 45] = np.inf
    path = write(tmp_path / "a.tif", z)
    with pytest.raises(ValueError, match=r"a\.tif': z must be from .*, got inf at x = 500091\.0"):
        run(path, tmp_path / "out", tile_size=20.0)
    with spatialq.connect() as con, pytest.raises(Exception, match=r"got inf at x = 500091\.0"):
        con.sql(f"FROM {in_one_piece(path)}").fetchall()


FLAGS = ("--scales", "5m,7m", "--example-scale", "20m")


@pytest.mark.slow
def test_the_command_runs_a_job(at_once, grids, tmp_path):
    out = tmp_path / "out"
    (made,) = command_rows("features", f"{grids}/*.tif", "-o", out, "--tile-size", 60, *FLAGS)
    assert (made["parts"], made["folder"]) == (15, str(out))
    assert require_same(out, in_one_piece(f"{grids}/*.tif")) == made["rows"]
    again = [f"{grids}/*.tif", "-o", out, "--tile-size", 60, "--resume", *FLAGS]
    assert command_rows("features", *again)[0]["resumed"] == 15
    rasters = ["features", grids / "a.tif", "-o", tmp_path / "tif", "--executor", "local", *FLAGS]
    (made,) = command_rows(*rasters, "--part-format", "tif")
    assert [path.name for path in (tmp_path / "tif/parts").iterdir()] == ["0000000.tif"]
    assert made["rows"] == 77


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--executor", "local", "--show", "pca1"), "--show is no option of a job: leave it out"),
        (("--executor", "local", "--define", __file__), "--define is no option of a job"),
        (("--executor", "local", "-o", "b"), "--output must be one folder, that of the job, got 2"),
        (("--part-format", "tif"), "--part-format is an option of a job: give --executor, too"),
        (
            ("--tile-size", "0"),
            "tile_size must be a number above 0, or a length such as 500m, got '0'",
        ),
        (("--executor", "local", "--scales", "5"), "scales must say its unit, got '5'"),
    ],
)
def test_what_the_command_refuses(grids, tmp_path, arguments, message):
    result = spatialq_command("features", grids / "a.tif", "-o", tmp_path / "a", *arguments)
    assert result.returncode == 1
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "a").exists()
