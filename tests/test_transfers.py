"""Transfers between main memory and a GPU: what goes in pieces through pinned buffers."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from spatialq.runtime import cuda

from .kernels import on_device

SIZES = [1, cuda.PIECE, cuda.PIECE + 1, 3 * cuda.PIECE + 7]


def values(size):
    return np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)


@pytest.mark.parametrize("size", SIZES)
def test_what_goes_there_comes_back(device, size):
    there = on_device(device, values(size))
    np.testing.assert_array_equal(device.download(there), values(size))
    into = np.zeros(size + 2, np.uint8)
    device.download(there, into[1:-1])
    np.testing.assert_array_equal(into[1:-1], values(size))
    assert into[0] == into[-1] == 0


@pytest.mark.parametrize("size", SIZES)
def test_bytes_of_a_file(device, tmp_path, size):
    path = tmp_path / "a.bin"
    path.write_bytes(b"before" + values(size).tobytes())
    found = device.download(device.upload_file(path, 6, size))
    np.testing.assert_array_equal(found, values(size))
    with pytest.raises(EOFError):
        device.upload_file(path, 7, size)


class Stream:
    def __init__(self, **_):
        self.waited = 0

    def synchronize(self):
        self.waited += 1


class Event:
    def __init__(self, **_):
        pass

    def record(self, stream):
        pass

    def synchronize(self):
        pass


class There:
    """Stands for memory of the device, at an offset."""

    def __init__(self, memory, start=0):
        self.memory, self.start = memory, start

    def __add__(self, more):
        return There(self.memory, self.start + more)

    def copy_to_host_async(self, address, size, stream):
        ctypes.memmove(address, self.memory[self.start :].ctypes.data, size)

    def copy_from_host_async(self, address, size, stream):
        ctypes.memmove(self.memory[self.start :].ctypes.data, address, size)


@pytest.fixture
def pretended(monkeypatch):
    """A `Device` whose lanes are real, over memory of the host, with small pieces."""
    monkeypatch.setattr(cuda, "PIECE", 64)
    device = cuda.Device.__new__(cuda.Device)
    device.number, device._lanes = 0, []
    device._cuda = SimpleNamespace(
        Stream=Stream, Event=Event, alloc_pinned_memory=bytearray,
        Device=lambda number: cuda.suppress(),
    )  # fmt: skip
    return device


def pieces_of(array, there):
    return [(array[k : k + 64], there + k) for k in range(0, array.size, 64)]


def test_every_piece_goes_both_ways(pretended):
    given, memory, back = values(1000), np.zeros(1000, np.uint8), np.zeros(1000, np.uint8)
    pretended._copy(pieces_of(given, There(memory)), cuda._Lane.send)
    np.testing.assert_array_equal(memory, given)
    pretended._copy(pieces_of(back, There(memory)), cuda._Lane.receive)
    np.testing.assert_array_equal(back, given)


def test_a_lane_is_good_again_after_an_error(pretended):
    memory, back = values(1000), np.zeros(1000, np.uint8)

    class Broken(There):
        def copy_to_host_async(self, address, size, stream):
            raise MemoryError

    pieces = pieces_of(np.zeros(1000, np.uint8), There(memory))
    pieces[7] = pieces[7][0], Broken(memory)
    with pytest.raises(MemoryError):
        pretended._copy(pieces, cuda._Lane.receive)
    assert all(lane.stream.waited for lane in pretended._lanes)
    pretended._copy(pieces_of(back, There(memory)), cuda._Lane.receive)
    np.testing.assert_array_equal(back, memory)


def test_a_file_that_is_too_short_is_said(pretended, tmp_path):
    path, memory = tmp_path / "a.bin", np.zeros(130, np.uint8)
    path.write_bytes(values(129).tobytes())
    pieces = [(cuda.Piece(path, k, min(64, 130 - k)), There(memory, k)) for k in range(0, 130, 64)]
    with pytest.raises(EOFError):
        pretended._copy(pieces, cuda._Lane.read)
    path.write_bytes(values(130).tobytes())
    pretended._copy(pieces, cuda._Lane.read)
    np.testing.assert_array_equal(memory, values(130))
