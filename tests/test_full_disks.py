"""A full disk: one sentence with the reason, nothing left, and the same command works after it.

Each writer and loader writes to a file system in memory of a few sizes, each a share of what it
writes where there is room.
"""

import os
import re
import shlex
import shutil
import subprocess
from unittest.mock import Mock

import duckdb
import pytest

from spatialq.database.writers import writers
from spatialq.demo.village import write_village
from spatialq.errors import FileError
from spatialq.workflows.clash_project_file import detach, written

from .command_line import spatialq_process
from .samples import sample
from .test_forks import ROWS

PAGE = 4096
SHARES = (0.0, 0.4, 0.9)
"""Of the space that is needed."""
NOISE = ("compiling functions", "warning: ")
COMMANDS = {
    "ground laz": "ground cloud.laz -o full/a.laz --device cpu",
    "ground several": "ground cloud.laz -o full/a.laz -o full/a.tif -o full/a.png -o full/t/ "
    "--device cpu",
    "planes laz": "planes cloud.laz -o full/a.laz --device cpu",
    "lod copc": "lod cloud.laz -o full/a.copc.laz --device cpu",
    "lod parquet": "lod cloud.laz -o full/a.parquet --device cpu",
    "lod potree": "lod cloud.laz -o full/p/metadata.json --device cpu",
    "tiles": "tiles cloud.laz -o full/t/tileset.json",
    "write_ground": """sql "FROM write_ground('cloud.laz', ['full/a.laz', 'full/a.tif'])" """,
    "write_lod": """sql "FROM write_lod('cloud.laz', ['full/a.copc.laz'])" """,
    "write_tiles": """sql "FROM write_tiles('cloud.laz', 'full/t/tileset.json')" """,
    "load": "load cloud.laz -d full/a.duckdb",
    "load replace": "load cloud.laz -d full/a.duckdb --replace",
}


def mounted(place, size):
    """Make a file system of so many bytes at `place`; skip where a person's machine refuses it."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={pages(size)}", "tmpfs", str(place)]
    missing = pytest.fail if os.environ.get("CI") else pytest.skip
    if shutil.which("mount") is None:
        missing("there is no mount")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        missing(f"no file system can be mounted here: {done.stderr.strip()}")


def resize(place, size):
    subprocess.run(["mount", "-o", f"remount,size={pages(size)}", str(place)], check=True)


def pages(size):
    return max(PAGE, size // PAGE * PAGE)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def space(folder):
    return sum(
        -(-path.stat().st_size // PAGE) * PAGE for path in folder.rglob("*") if path.is_file()
    )


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    path = tmp_path_factory.mktemp("cloud") / "cloud.laz"
    write_village(path, n_points=50_000, seed=1)
    return path


@pytest.fixture
def place(tmp_path, cloud):
    (tmp_path / "cloud.laz").symlink_to(cloud)
    sample("IFC", tmp_path)
    (tmp_path / "full").mkdir()
    yield tmp_path
    subprocess.run(["umount", tmp_path / "full"], capture_output=True, check=False)


def run(words, place):
    # the folders of temporary files and of compiled functions are elsewhere, and have room
    return spatialq_process(*words, cwd=place, timeout=300)


def require_one_sentence(words, place):
    """Run a command where there is room, on disks without enough of it, and again with room."""
    full = place / "full"
    whole = run(words, place)
    assert whole.returncode == 0, whole.stderr
    written, needed = names(full), space(full)
    shutil.rmtree(full)
    full.mkdir()
    mounted(full, 0)
    for share in SHARES:
        resize(full, int(share * needed))
        failed = run(words, place)
        errors = [line for line in failed.stderr.splitlines() if not line.startswith(NOISE)]
        assert failed.returncode == 1, (share, failed.stderr)
        assert len(errors) == 1, (share, failed.stderr)
        assert errors[0].startswith("error: ")
        assert "full/" in errors[0]
        # FlatGeobuf has removed a temporary file by then: the disk is not full any more
        assert re.search(r"No space left on device|out\.fgb': .*I/O failure", errors[0])
        assert names(full) == [], share
    resize(full, 1 << 28)
    again = run(words, place)
    assert again.returncode == 0, again.stderr
    assert names(full) == written


@pytest.mark.slow
@pytest.mark.parametrize("writer", writers(), ids=lambda each: each.name)
def test_a_writer(place, writer):
    suffix = writer.suffixes[-1]
    name = f"full/out{suffix}" if suffix.startswith(".") else f"full/out/{suffix}"
    require_one_sentence(["sql", ROWS[writer.takes], "-o", name], place)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(place, name):
    require_one_sentence(shlex.split(COMMANDS[name]), place)


@pytest.mark.slow
@pytest.mark.parametrize("size", [PAGE, 4 * PAGE])
def test_a_project_of_clashes(place, size):
    """The database is not made, or its first run is not kept: no file stays."""
    full = place / "full"
    words = ["clash", "a.ifc", "--project", "full/a.duckdb"]
    mounted(full, size)
    failed = run(words, place)
    assert failed.returncode == 1
    errors = [line for line in failed.stderr.splitlines() if not line.startswith(NOISE)]
    assert len(errors) == 1
    assert re.match(r"error: clash: 'full/a.duckdb': cannot be .* No space left on dev", errors[0])
    assert names(full) == []
    resize(full, 1 << 28)
    assert run(words, place).returncode == 0


def test_a_checkpoint_that_fails_names_the_project(tmp_path):
    """DuckDB writes its log into the database after a commit, and when it closes it."""
    path = tmp_path / "a.duckdb"
    full = duckdb.FatalException("FATAL Error: No space left on device")
    with duckdb.connect() as con, pytest.raises(FileError) as caught, written(con, path):
        raise full
    assert re.match(r"clash: '.*a\.duckdb': cannot be written: .*No space left", str(caught.value))
    assert not path.exists()
    con = Mock(**{"execute.side_effect": full})
    with pytest.raises(FileError, match=r"clash: '.*a\.duckdb': cannot be closed: .*No space left"):
        detach(con, path)
