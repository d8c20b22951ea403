"""Calls on LAZ files whose points a GPU decodes: the same rows, and what the log says of it."""

import pytest
from spatialq.udfs.owm_ground import gpu as gpu_kernel

import spatialq
from spatialq.planner import decoding, devices
from spatialq.runtime.cuda import on_gpu

from ..host.device import HostDevice
from ..io.las_files import write

NONE = {True: 0.0, False: 0.0}
"""Seconds per point that a GPU takes in the tests where it is to decode."""
LONG = {True: 1.0, False: 1.0}


@pytest.fixture
def gpu(device, monkeypatch):
    """Let the planner see the GPU, or the host in its place, and think it fast."""
    if devices.gpu().problem:
        monkeypatch.setattr(
            devices, "gpus", lambda: [devices.DeviceInfo("gpu", "host", 2, 2**33, "")]
        )
    monkeypatch.setattr(decoding, "PER_POINT", NONE)
    monkeypatch.setattr(decoding, "START", 0.0)
    return device


@pytest.fixture
def files(tmp_path):
    """Give a pattern of three files, of which two can be decoded on a GPU."""
    write(tmp_path / "a.laz", 6, 400, offsets=(0, 0, 0))
    write(tmp_path / "b.laz", 1, 300, offsets=(10, 0, 0), seed=2)
    write(tmp_path / "c.las", 6, 200, offsets=(20, 0, 0), seed=3)
    return f"{tmp_path}/*.la[sz]"


def rows_and_reason(files, **options):
    with spatialq.connect() as con:
        given = "".join(f", {name} := {value!r}" for name, value in options.items())
        text = f"SELECT * FROM owm_ground('{files}'{given}) ORDER BY ALL"
        rows = con.sql(text).fetchall()
        ((reason,),) = con.sql(
            'SELECT reason FROM spatialq_log() ORDER BY "at" DESC LIMIT 1'
        ).fetchall()
    return rows, reason


def test_points_that_a_gpu_decodes_give_the_same_rows(gpu, files):
    expected, reason = rows_and_reason(files, device="cpu")
    assert "decoded" not in reason
    assert len(expected) > 10
    for device in ("auto", "gpu"):
        found, reason = rows_and_reason(files, device=device)
        assert found == expected
        assert "; decoded on gpu:0; " in reason
        if not isinstance(gpu, HostDevice):  # whose arrays are no arrays of a GPU
            assert reason.startswith("its input is in the memory of the GPU; ")
        assert reason.endswith("c.las' by the CPU: it is no LAZ file that is read whole")


@pytest.mark.parametrize(
    "options", [{"bounds": [0, 0, 50, 50]}, {"memory": "1GB"}, {"device": "cpu"}], ids=str
)
def test_calls_that_read_parts_or_have_little_memory_are_decoded_by_the_cpu(gpu, files, options):
    _, reason = rows_and_reason(files, **options)
    assert "decoded" not in reason


def test_few_points_are_decoded_by_the_cpu(gpu, monkeypatch, files):
    monkeypatch.setattr(decoding, "PER_POINT", LONG)
    found, reason = rows_and_reason(files, device="gpu")
    assert "decoded" not in reason
    assert found == rows_and_reason(files, device="cpu")[0]


def test_a_gpu_with_little_memory_decodes_nothing(gpu, monkeypatch, files):
    monkeypatch.setattr(
        devices, "gpus", lambda: [devices.DeviceInfo("gpu", "small", 2, 20_000, "")]
    )
    _, reason = rows_and_reason(files)
    assert "decoded" not in reason


def test_a_kernel_that_lacks_memory_beside_the_points_gets_them_from_the_host(
    gpu, monkeypatch, files
):
    expected, _ = rows_and_reason(files, device="cpu")
    kernel, calls = gpu_kernel.run, []

    def once_full(*arguments, **options):
        calls.append(options["x"])
        if len(calls) == 1:
            message = "out of memory"
            raise MemoryError(message)
        return kernel(*arguments, **options)

    monkeypatch.setattr(gpu_kernel, "run", once_full)
    found, reason = rows_and_reason(files, device="gpu")
    assert found == expected
    assert [on_gpu(x) for x in calls] == [not isinstance(gpu, HostDevice), False]
    assert reason.startswith("device := 'gpu' was asked for; decoded on gpu:0; ")
    assert reason.endswith(
        "; again from the memory of the host: owm_ground: not enough memory: out of memory"
    )


def log_of(query):
    with spatialq.connect() as con:
        rows = con.sql(query).fetchall()
        ((reason,),) = con.sql(
            'SELECT reason FROM spatialq_log() ORDER BY "at" DESC LIMIT 1'
        ).fetchall()
    return rows, reason


def test_attributes_are_decoded_too(gpu, tmp_path):
    write(tmp_path / "a.laz", 7, 400, offsets=(0, 0, 0))
    write(tmp_path / "b.laz", 7, 300, offsets=(10, 0, 0), seed=2)
    query = "FROM build_lod('{}/*.laz', max_points := 100, device := '{}') ORDER BY ALL"
    found, reason = log_of(query.format(tmp_path, "gpu"))
    assert "decoded on gpu:0" in reason
    assert found == log_of(query.format(tmp_path, "cpu"))[0]


def test_attributes_that_only_some_files_have_are_read_by_the_cpu(gpu, tmp_path):
    write(tmp_path / "a.laz", 7, 400, offsets=(0, 0, 0))
    write(tmp_path / "b.laz", 6, 300, offsets=(10, 0, 0), seed=2)
    _, reason = log_of(f"FROM build_lod('{tmp_path}/*.laz', max_points := 100, device := 'gpu')")
    assert "decoded" not in reason
