"""A module that benchmarks import as `cupy` where there is no GPU: arrays of the host device."""

import time
from types import SimpleNamespace

import numpy as np

from .device import OnDevice, fenced

__version__ = "none"


class Array(OnDevice):
    """What CuPy's arrays offer beside NumPy's."""

    def get(self):
        return np.array(self)

    def set(self, values, stream=None):
        self[...] = values


def asarray(values):
    return fenced(np.ascontiguousarray(values)).view(Array)


def asnumpy(values):
    return np.array(values, subok=False)


def __getattr__(name):
    """NumPy's functions, of which arrays are on the device."""
    found = getattr(np, name)
    if isinstance(found, type) or not callable(found):
        return found

    def call(*arguments, **named):
        result = found(*arguments, **named)
        return result.view(Array) if isinstance(result, np.ndarray) else result

    return call


class RawKernel:
    """A kernel in a text, which is not run."""

    def __init__(self, text, name):
        assert f" {name}(" in text

    def __call__(self, blocks, threads, arguments):
        pass


class _Event:
    def record(self):
        self.seconds = time.perf_counter()

    def synchronize(self):
        pass


class _Stream:
    """Work on it is done at once; a graph of it does nothing more."""

    def __init__(self, *, non_blocking=False):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def synchronize(self):
        pass

    def begin_capture(self):
        pass

    def end_capture(self):
        return SimpleNamespace(launch=lambda stream: None)


class _MemoryHook:
    """A hook that is never called: memory of the host is not counted."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def get_default_memory_pool():
    return SimpleNamespace(
        used_bytes=lambda: 0, total_bytes=lambda: 0, free_all_blocks=lambda: None
    )


cuda = SimpleNamespace(
    Device=lambda: SimpleNamespace(synchronize=lambda: None),
    Event=_Event,
    MemoryHook=_MemoryHook,
    Stream=_Stream,
    alloc_pinned_memory=bytearray,
    get_current_stream=_Stream,
    get_elapsed_time=lambda start, stop: 1e3 * (stop.seconds - start.seconds),
    runtime=SimpleNamespace(
        getDeviceProperties=lambda number: {"name": b"host"}, runtimeGetVersion=lambda: 0
    ),
)
