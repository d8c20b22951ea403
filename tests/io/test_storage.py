"""Files in object storage, read from a real server: rows of the local file, bytes, errors."""

import io
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import spatialq
from spatialq.errors import FileError
from spatialq.io import storage
from spatialq.io.files import find_files
from spatialq.io.formats import find_sources, means_files
from spatialq.io.ifc.cache import CACHE
from spatialq.io.storage import as_path, is_url
from tests import storage_server
from tests.command_line import rows as command_rows

from .las_files import assert_same_rows, write_copc

pytest.importorskip("obstore")
server = pytest.fixture(scope="module")(storage_server.running)


@pytest.fixture
def bucket(server, monkeypatch):
    """Give the server, with a bucket `bucket`, which the environment names."""
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    storage.store.cache_clear()
    storage._known.clear()
    server.make_bucket("bucket")
    server.requests.clear()
    server.fail = None
    yield server
    server.fail = None
    storage.store.cache_clear()


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(storage, "TRIES", 1)


def put(server, name, path):
    server.put(f"bucket/{name}", path.read_bytes())
    return f"s3://bucket/{name}"


def read(url):
    with spatialq.connect() as con:
        return spatialq.read_points(con, url)


def big_copc(path):
    """Write a cloud of 64 nodes on one level, with points at random."""
    rng = np.random.default_rng(5)
    side = 1000 / 4
    clouds = []
    for x in range(4):
        for y in range(4):
            low = np.array([x * side, y * side, 0.0])
            points = low + rng.random((40_000, 3)) * [side, side, 999.0]
            clouds.append(((2, x, y, 0), np.floor(points)))
    return write_copc(path, clouds)


def write_grid(path):
    import rasterio

    heights = np.random.default_rng(2).random((40, 30))
    how = {"driver": "GTiff", "width": 30, "height": 40, "count": 1, "dtype": "float64"}
    transform = rasterio.Affine(1, 0, 1000, 0, -1, 5000)
    with rasterio.open(path, "w", transform=transform, **how) as file:
        file.write(heights, 1)
    return path


def test_names():
    path = as_path("s3://bucket/a/b.copc.laz")
    assert str(path) == "s3://bucket/a/b.copc.laz" == f"{as_path(str(path))}"
    assert (path.bucket, path.key, path.name, path.suffix) == (
        "bucket", "a/b.copc.laz", "b.copc.laz", ".laz",
    )  # fmt: skip
    assert str(path.parent / "c") == "s3://bucket/a/c"
    assert path.resolve() is path
    assert str(as_path(type(path.parent)("s3:", "bucket", "x"))) == "s3://bucket/x"
    assert str(pickle.loads(pickle.dumps(path))) == str(path)
    assert is_url("s3://bucket/x")
    assert not is_url("C:/x")
    assert not is_url("tiles/*.laz")
    assert means_files("s3://bucket/tiles")


@pytest.mark.parametrize(
    "url",
    [
        f"s3://{storage_server.ACCESS}:{storage_server.SECRET}@b/x.laz",
        f"s3://{storage_server.ACCESS}@b/x.laz",
        f"s3://bucket/x.laz?X-Amz-Signature={storage_server.SECRET}",
        f"s3://bucket/x.laz?AWSAccessKeyId={storage_server.ACCESS}&Signature={storage_server.SECRET}",
    ],
)
def test_a_url_with_credentials_is_refused_and_not_repeated(url):
    sentence = "^read_points: a URL must be without credentials"
    with pytest.raises(ValueError, match=sentence) as told:
        read(url)
    assert storage_server.SECRET not in str(told.value)
    assert storage_server.ACCESS not in str(told.value)


def test_other_urls_are_refused():
    with pytest.raises(ValueError, match=r"begin with 's3://', got 'https://host/x.laz'"):
        find_files("read_points", "https://host/x.laz")
    with pytest.raises(ValueError, match=r"begin with 's3://', got 'http://host:9000/x.laz'"):
        find_files("read_points", "http://host:9000/x.laz")


def test_las_laz_and_copc_have_the_rows_of_the_local_file(bucket, world, tmp_path):
    local = {"a.laz": world.las, "tree.copc.laz": big_copc(tmp_path / "t.copc.laz")}
    with spatialq.connect() as con:
        for name, path in local.items():
            url = put(bucket, name, path)
            got = con.sql(f"FROM read_points('{url}')").to_arrow_table()
            assert_same_rows(got, con.sql(f"FROM read_points('{path}')").to_arrow_table())


@pytest.mark.slow
def test_bounds_of_copc_read_the_chunks_of_the_nodes_only(bucket, tmp_path):
    path = big_copc(tmp_path / "tree.copc.laz")
    url = put(bucket, "tree.copc.laz", path)
    whole = path.stat().st_size
    with spatialq.connect() as con:
        bucket.requests.clear()
        query = "SELECT x, y, z, point_id FROM read_points('{}', bounds := [10, 10, 60, 60])"
        got = con.sql(query.format(url)).to_arrow_table()
        assert_same_rows(got, con.sql(query.format(path)).to_arrow_table())
    assert 0 < got.num_rows < 40_000
    # one node of sixteen, blocks at the beginning and at the end, and what is read ahead
    assert bucket.sent("tree") < whole / 16 + 5 * storage.BLOCK < whole / 2
    assert bucket.count("GET", "tree") <= 6
    assert bucket.count("HEAD", "tree") <= 2


def test_patterns_folders_and_lists(bucket, tmp_path):
    rng = np.random.default_rng(1)
    for name in ("one.ply", "two.ply", "deep/three.ply", "other.txt", "four.xyz"):
        text = "\n".join(f"{x} {y} {z}" for x, y, z in rng.random((3, 3)))
        head = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\n"
        is_ply = name.endswith("ply")
        content = f"{head}property float z\nend_header\n{text}\n" if is_ply else text + "\n"
        bucket.put(f"bucket/in/{name}", content.encode())

    def names(given):
        return [str(each) for each in find_sources("read_points", given, "points")]

    assert names("s3://bucket/in/*.ply") == ["s3://bucket/in/one.ply", "s3://bucket/in/two.ply"]
    assert names("s3://bucket/**/*.ply") == [
        "s3://bucket/in/deep/three.ply", "s3://bucket/in/one.ply", "s3://bucket/in/two.ply",
    ]  # fmt: skip
    assert names("s3://bucket/in/")[-1] == "s3://bucket/in/two.ply"
    assert (
        names(["s3://bucket/in/two.ply", "s3://bucket/in/one.ply"])[0] == "s3://bucket/in/two.ply"
    )
    with pytest.raises(FileError, match="no object matches this pattern"):
        names("s3://bucket/in/*.e57")
    with pytest.raises(FileError, match="a bucket must be named"):
        names("s3://*/in/x.ply")
    with spatialq.connect() as con:
        assert con.sql("FROM read_points('s3://bucket/in/*.ply')").fetchall()[0][-1] == (
            "s3://bucket/in/one.ply"
        )


@pytest.mark.slow
def test_grids_models_and_functions(bucket, world, tmp_path):
    terrain = write_grid(tmp_path / "terrain.tif")
    cloud, grid, house = (
        put(bucket, f"w/{path.name}", path) for path in (world.las, terrain, world.ifc)
    )
    with spatialq.connect() as con:
        for url, path, query in (
            (cloud, world.las, "SELECT * FROM owm_ground('{}')"),
            (grid, terrain, "SELECT * FROM read_grid('{}')"),
            (house, world.ifc, "SELECT global_id, mesh FROM read_ifc('{}')"),
        ):
            CACHE.clear()
            got = con.sql(query.format(url)).fetchall()
            assert sorted(map(repr, got)) == sorted(
                map(repr, con.sql(query.format(path)).fetchall())
            )


@pytest.mark.slow
def test_load_and_info(bucket, tmp_path):
    url = put(bucket, "tree.copc.laz", big_copc(tmp_path / "tree.copc.laz"))
    with spatialq.connect() as con:
        spatialq.load(con, url)
        assert con.sql("SELECT path FROM spatialq_sources").fetchall() == [(url,)]
        spatialq.load(con, url, mode="replace")
        assert con.sql("SELECT count(*) FROM points").fetchall() == [(16 * 40_000,)]
    (found,) = command_rows("info", url)
    assert (found["path"], found["octree nodes"]) == (url, 16)


@pytest.mark.slow
def test_the_command_line(bucket, world, tmp_path):
    url = put(bucket, "w/village.laz", world.las)
    got = command_rows("ground", url, "-o", str(tmp_path / "of_url.tif"))
    expected = command_rows("ground", str(world.las), "-o", str(tmp_path / "local.tif"))
    assert (tmp_path / "of_url.tif").read_bytes() == (tmp_path / "local.tif").read_bytes()
    assert len(got) == len(expected) == 1


def test_a_copy_is_kept_for_a_while_only(bucket, monkeypatch):
    monkeypatch.setattr(storage, "MOST_COPIES", 2)
    copies = []
    for n in range(4):
        bucket.put(f"bucket/n{n}.bin", bytes(100 + n))
        copies.append(os.fspath(as_path(f"s3://bucket/n{n}.bin")))
    assert [os.path.exists(copy) for copy in copies] == [False, False, True, True]  # noqa: PTH110
    assert os.path.getsize(os.fspath(as_path("s3://bucket/n0.bin"))) == 100  # noqa: PTH202


def test_any_reads_are_those_of_the_bytes(bucket):
    content = np.random.default_rng(3).bytes(700_001)
    bucket.put("bucket/bytes.bin", content)
    rng = np.random.default_rng(4)
    file, same = as_path("s3://bucket/bytes.bin").open("rb"), io.BytesIO(content)
    for _ in range(300):
        n = int(rng.integers(0, 90_000))
        if rng.random() < 0.3:
            at = int(rng.integers(0, 700_100))
            assert file.seek(at) == same.seek(at)
        if rng.random() < 0.1:
            assert same.getvalue()[same.tell() :].startswith(file.peek())
        assert file.read(n) == same.read(n)
        assert file.tell() == same.tell()
    file.seek(-5, os.SEEK_END)
    assert file.read() == content[-5:]
    bucket.put("bucket/lines.txt", b"one\ntwo\n\nlast")
    assert as_path("s3://bucket/lines.txt").read_text().splitlines() == ["one", "two", "", "last"]
    with as_path("s3://bucket/lines.txt").open("rb") as lines:
        assert list(lines) == [b"one\n", b"two\n", b"\n", b"last"]
    with pytest.raises(OSError, match="not written piece by piece"):
        as_path("s3://bucket/lines.txt").open("wb")


def test_an_object_that_changes_while_it_is_read(bucket):
    bucket.put("bucket/x.bin", bytes(1 << 20))
    file = as_path("s3://bucket/x.bin").open("rb")
    assert file.read(10) == bytes(10)
    bucket.put("bucket/x.bin", b"\1" * (1 << 20))
    file.seek(1 << 19)
    with pytest.raises(OSError, match="was changed meanwhile"):
        file.read(10)


@pytest.mark.parametrize("wrong", [500, 503, "close"])
def test_a_server_that_fails_for_a_moment_is_asked_again(bucket, wrong):
    bucket.put("bucket/x.bin", content := bytes(range(256)) * 1000)
    left = [wrong, wrong]
    bucket.fail = lambda method, _: left.pop() if method == "GET" and left else None
    assert as_path("s3://bucket/x.bin").open("rb").read() == content
    assert left == []


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (503, "the server answers with status 503, also when asked again"),
        (403, "the server refuses access; look at AWS_ACCESS_KEY_ID"),
    ],
)
def test_a_server_that_fails_for_good_is_one_sentence(bucket, fast, wrong, reason):
    bucket.put("bucket/x.laz", bytes(1000))
    bucket.fail = lambda *_: wrong
    with pytest.raises(FileError, match=rf"^read_points: 's3://bucket/x.laz': {reason}") as told:
        read("s3://bucket/x.laz")
    assert "<" not in str(told.value)


def test_no_server_is_one_sentence(bucket, fast, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(FileError, match=r"the server \(http://127.0.0.1:1\) cannot be reached"):
        read("s3://bucket/x.laz")


@pytest.mark.parametrize("name", ["x.laz", "*.laz", "folder/"])
def test_a_missing_bucket_is_one_sentence(bucket, fast, name):
    with pytest.raises(FileError, match=r"'s3://nobody/.*': there is no bucket 'nobody'"):
        read(f"s3://nobody/{name}")


def test_a_missing_object_is_one_sentence(bucket):
    with pytest.raises(
        FileError, match=r"^read_points: 's3://bucket/no.laz': there is no such file$"
    ):
        read("s3://bucket/no.laz")


def test_without_the_package_the_sentence_says_what_to_install(bucket, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(FileError, match=r"need obstore: pip install 'spatialq\[s3\]'"):
        read("s3://bucket/x.laz")


def test_importing_spatialq_does_not_import_the_client():
    code = "import spatialq, spatialq.cluster, sys; sys.exit('obstore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
