"""What stops a command leaves nothing under a final name: kill -9, a full disk, Ctrl-C.

The next run clears what a killed process could not.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import spatialq
from spatialq.demo.village import write_village

from .command_line import spatialq_process

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="sends signals"),
]
FEATURES = "--methods pca --scales 30u,60u --example-scale 200u"
COMMANDS = {
    "ground": "ground in/*.laz -o a.laz -o a.parquet -o a.png -o a.tif -o tiles/",
    "planes": "planes in/*.laz -o a.laz -o a.gpkg -o a.png -o tiles/",
    "lod": "lod in/*.laz -o a.parquet --memory 20MB --max-points 5000",
    "lod copc": "lod in/*.laz -o a.copc.laz --memory 20MB --max-points 5000",
    "lod potree": "lod in/*.laz -o p/metadata.json",
    "lod tiles": "lod in/*.laz -o t/tileset.json --memory 20MB --max-points 5000",
    "features": f"features in/grid.npy -o a.parquet -o a.png -o a.tif {FEATURES}",
    "load": "load in/*.laz -d a.duckdb -t t --replace",
    "sql laz": "sql|FROM read_las('in/*.laz')|-o|a.laz",
    "sql fgb": "sql|FROM read_las('in/*.laz')|-o|a.fgb",
    "sql csv": "sql|FROM read_las('in/*.laz')|-o|a.csv",
    "sql e57": "sql|FROM read_las('in/*.laz')|-o|a.e57",
}
MOMENTS = (0.5, 0.8, 0.9, 1.0)
"""Shares of the time of a whole run."""
N_POINTS = 200_000
"""In both tiles."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Two tiles and a grid."""
    folder = tmp_path_factory.mktemp("inputs")
    for k in range(2):
        write_village(folder / f"{k}.laz", n_points=N_POINTS // 2, seed=k)
    side = np.arange(1000)
    np.save(folder / "grid.npy", np.add.outer(np.sin(side / 9), np.cos(side / 7)))
    return folder


@pytest.fixture
def place(inputs, tmp_path):
    (tmp_path / "in").symlink_to(inputs)
    return tmp_path


def words(command):
    return command.split("|") if "|" in command else command.split()


def start(command, place, **options):
    arguments = [sys.executable, "-m", "spatialq", *words(command)]
    return subprocess.Popen(
        arguments,
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def names(place):
    return {path.name for path in place.iterdir()} - {"in"}


def visible(place):
    return {name for name in names(place) if not name.startswith(".")}


def require_no_part_of_a_table(path):
    """The database has no table `t`, or all rows of it."""
    if path.exists():
        with spatialq.connect(str(path)) as con:
            query = "SELECT estimated_size FROM duckdb_tables() WHERE table_name = 't'"
            assert con.sql(query).fetchall() in ([], [(N_POINTS,)])


def whole_run(command, place):
    """Run a command, give how long it took and what it wrote, and remove that."""
    started = time.perf_counter()
    result = spatialq_process(*words(command), cwd=place)
    took = time.perf_counter() - started
    assert result.returncode == 0, result.stderr
    return took, clear(place)


def clear(place):
    """Remove what was written, and name it."""
    written = names(place)
    for name in written:
        path = place / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return written


def require_nothing(place, written):
    """Nothing is under a final name, unless all is; databases have no table."""
    there = visible(place)
    if not there >= {name for name in written if not name.startswith(".")}:
        assert there == {name for name in there if name.startswith("a.duckdb")}
    require_no_part_of_a_table(place / "a.duckdb")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_leaves_nothing_that_the_next_does_not_clear(
    place, name, tmp_path_factory, monkeypatch
):
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))  # where no other process leaves anything
    command = COMMANDS[name]
    whole_run(command, place)  # compiles
    took, written = whole_run(command, place)
    left = set()
    for share in MOMENTS:
        with start(command, place) as process:
            time.sleep(share * took)
            process.kill()
        left |= names(place) - written
        require_nothing(place, written)
    result = spatialq_process(*words(command), cwd=place)
    assert result.returncode == 0, result.stderr
    assert names(place) == written, left
    assert not [each for each in temporary.glob("spatialq_*") if is_abandoned(each)]


def is_abandoned(folder):
    import fcntl

    try:
        with (folder / "owner").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("size", [100, 200_000])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(place, name, size):
    def fill():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    environment = {**os.environ, "SPATIALQ_CACHE_DIR": str(place / ".cache")}
    with start(COMMANDS[name], place, preexec_fn=fill, env=environment) as process:
        errors = process.communicate(timeout=300)[1]
    assert process.returncode == 1, errors
    (error,) = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in errors
    assert error
    databases = {name for name in visible(place) if name.startswith("a.duckdb")}
    assert visible(place) == databases
    hidden = names(place) - databases - {".cache"}
    assert not hidden


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_a_command_and_leaves_nothing(place, name):
    command = COMMANDS[name]
    took, whole = whole_run(command, place)
    for share in MOMENTS[:-1]:
        with start(command, place) as process:
            time.sleep(share * took)
            process.send_signal(signal.SIGINT)
            errors = process.communicate(timeout=60)[1]
        if process.returncode == 0:  # it was done
            clear(place)
            continue
        if process.returncode == -signal.SIGINT:  # Python had not begun
            continue
        assert process.returncode == 130, errors
        assert "interrupted: nothing was half written" in errors
        databases = {name for name in names(place) if name.startswith("a.duckdb")}
        # nothing; or everything, where the signal came when the outputs had just appeared
        assert names(place) - databases in (set(), whole - databases)
        require_no_part_of_a_table(place / "a.duckdb")
        clear(place)
