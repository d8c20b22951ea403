"""Object storage in DuckDB's own readers, against a real server."""

import os

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spatialq
from spatialq.io import storage
from spatialq.io.storage import as_path
from tests import storage_server

pytest.importorskip("obstore")
pytest.importorskip("fsspec")
server = pytest.fixture(scope="module")(storage_server.running)
pytestmark = pytest.mark.slow
ROWS = 400_000
SECRETS = (storage_server.SECRET, storage_server.TOKEN, storage_server.ACCESS)


@pytest.fixture
def bucket(server, monkeypatch):
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    storage.store.cache_clear()
    storage._known.clear()
    server.make_bucket("bucket")
    server.requests.clear()
    yield server
    server.fail = None
    storage.store.cache_clear()


@pytest.fixture
def tables(bucket, tmp_path):
    """Put three Parquet files of many row groups; give them as one table."""
    rng = np.random.default_rng(3)
    found = []
    for i in range(3):
        table = pa.table({"i": np.arange(ROWS) + i * ROWS, "value": rng.random(ROWS)})
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=20_000, compression="none")
        bucket.put(f"bucket/many/{i}.parquet", (tmp_path / "t.parquet").read_bytes())
        found.append(table)
    bucket.requests.clear()
    return pa.concat_tables(found)


@pytest.mark.parametrize("threads", [1, 8])
def test_threads_read_the_rows_of_the_files(tables, threads):
    with spatialq.connect(config={"threads": threads}) as con:
        for pattern in ("s3://bucket/many/*.parquet", "s3://bucket/**/[0-2].parquet"):
            found = con.sql(f"FROM read_parquet('{pattern}') ORDER BY i").to_arrow_table()
            assert found.equals(tables)


def test_only_what_a_query_needs_is_read(bucket, tables):
    with spatialq.connect() as con:
        query = "SELECT sum(i) FROM read_parquet('s3://bucket/many/1.parquet') WHERE i < 400100"
        assert con.execute(query).fetchone() == (sum(range(ROWS, 400_100)),)
    assert bucket.sent("1.parquet") < 0.2 * ROWS * 16


def test_text_is_read_in_order(bucket):
    lines = "".join(f"{i},{i * 7 % 1000}\n" for i in range(300_000))
    bucket.put("bucket/a.csv", f"i,j\n{lines}".encode())
    with spatialq.connect() as con:
        found = con.execute("SELECT count(*), sum(i), sum(j) FROM 's3://bucket/a.csv'").fetchone()
    assert found == (300_000, sum(range(300_000)), sum(i * 7 % 1000 for i in range(300_000)))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_nothing_is_written(bucket, ending):
    with spatialq.connect() as con, pytest.raises(duckdb.Error, match="COPY TO a file of this"):
        con.execute(f"COPY (SELECT 1 AS a) TO 's3://bucket/written.{ending}'")
    assert not as_path(f"s3://bucket/written.{ending}").is_file()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("s3://nowhere/x.parquet", "there is no bucket 'nowhere'"),
        ("s3://bucket/none.parquet", "No files found"),
        ("s3://bucket/none/*.parquet", "No files found"),
        (f"s3://{SECRETS[2]}:x@bucket/x.parquet", "a URL must be without credentials"),
    ],
)
def test_errors_are_sentences(bucket, url, sentence):
    with spatialq.connect() as con, pytest.raises(duckdb.Error, match=sentence):
        con.execute(f"FROM read_parquet('{url}')")


def test_errors_of_the_server_have_no_secrets(bucket, tables):
    bucket.fail = lambda method, path: 403 if "/many/" in path else None
    with spatialq.connect() as con, pytest.raises(duckdb.Error, match="refuses access") as told:
        con.execute("FROM read_parquet('s3://bucket/many/1.parquet')")
    assert not any(secret in str(told.value) for secret in SECRETS)


def test_without_variables_there_is_no_such_file_system(monkeypatch):
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with spatialq.connect() as con:
        assert not con.filesystem_is_registered("s3")
