"""A device that runs the CUDA sources on the host: built by g++, over NumPy arrays."""

import ctypes
import mmap
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from spatialq.runtime import progress
from spatialq.runtime.cubins import include_folders

HEADER = Path(__file__).with_name("host_cuda.h")
COMPILER = shutil.which("g++")
PROT_NONE = 0
MPROTECT = ctypes.CDLL(None).mprotect
MPROTECT.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
KERNEL = re.compile(
    r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(?!__)(\w+)\(([^)]*)\)'
)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
FLAGS = [
    "-std=c++20",
    "-O2",
    "-ffp-contract=off",
    "-U_FORTIFY_SOURCE",  # which allows no jumps between stacks
    "-shared",
    "-fPIC",
    "-w",
]
BUILDS = "SPATIALQ_HOST_BUILDS"
"""Environment variable: the folder that keeps what was built, set by `conftest.py`."""


class DirtyNumpy:
    """NumPy, but what is new is not by chance all zeros: a GPU's memory seldom is."""

    def __getattr__(self, name):
        return getattr(np, name)

    def empty(self, shape, dtype=float):
        array = np.empty(shape, dtype)
        array.reshape(-1).view(np.uint8)[...] = 0xA5
        return array


class HostDevice:
    """What `spatialq.runtime.cuda.Device` offers, without a GPU."""

    xp = DirtyNumpy()
    multiprocessors = 2

    @contextmanager
    def use(self):
        yield

    def launch(self, source, kernel, blocks, threads, *arguments):
        progress.check()
        wide, deep, *_ = (*blocks, 1)
        words = [word(value) for value in arguments]
        start = getattr(library(source), f"launch_{kernel}")
        start.argtypes = [ctypes.c_uint] * 3 + [ctype(value) for value in words]
        plain = (value.item() if isinstance(value, np.generic) else value for value in words)
        start(wide, deep, threads, *plain)

    def is_here(self, array):
        return isinstance(array, OnDevice)

    def view(self, array):
        return array.view(np.ndarray)

    def filled(self, byte, size):
        return np.full(size, byte, np.uint8)

    def free_bytes(self):
        return 1 << 40

    def trim(self):
        pass

    def address(self, array):
        return array.ctypes.data

    def download(self, array, into=None):
        progress.check()
        if into is None:
            return array.copy()
        into[...] = array
        return into

    def lock_pages(self, address, size):
        return True

    def unlock_pages(self, address):
        pass

    def upload_small(self, array):
        return fenced(array)

    def upload(self, arrays):
        progress.check()
        return [fenced(array) for array in arrays]

    def upload_file(self, path, offset, size):
        read = np.fromfile(path, np.uint8, size, offset=offset)
        if read.size < size:
            raise EOFError
        return fenced(read)


class OnDevice(np.ndarray):
    """Stands for an array in the memory of a GPU."""


def fenced(array):
    """Copy an array to the end of a page, where a kernel that goes on reading ends the process."""
    room = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, room + mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert MPROTECT(start + room, mmap.PAGESIZE, PROT_NONE) == 0
    copy = np.frombuffer(memory, array.dtype, array.size, room - array.nbytes).reshape(array.shape)
    copy[...] = array
    return copy


def word(value):
    """What a kernel gets of an argument: the address of an array, but a record itself."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.names is None:
        return value.ctypes.data
    return np.ctypeslib.as_ctypes_type(value.dtype).from_buffer_copy(value)


def ctype(value):
    """How a kernel's argument travels, as CuPy has it."""
    if isinstance(value, ctypes.Structure):
        return type(value)
    if isinstance(value, np.generic):
        return np.ctypeslib.as_ctypes_type(value.dtype)
    return ctypes.c_double if isinstance(value, float) else ctypes.c_longlong


@cache
def library(source):
    """Load a CUDA source built with a launcher for each of its kernels.

    The build is kept in `BUILDS` under a digest of all that it depends on.
    """
    text = source.read_text()
    launchers = []
    for name, parameters in KERNEL.findall(text):
        names = [re.search(r"(\w+)\s*$", each).group(1) for each in parameters.split(",")]
        launchers.append(
            f'extern "C" void launch_{name}(unsigned wide, unsigned deep, unsigned threads, '
            f"{parameters}) {{ host::launch(wide, deep, threads, "
            f"[=] {{ {name}({', '.join(names)}); }}); }}\n"
        )
    assert launchers, f"no kernels in {source}"
    folders = include_folders(source)
    included = b"".join(path.read_bytes() for path in sorted(included_by(source, folders)))
    parts = [version(), *FLAGS, HEADER.read_text(), text, *launchers]
    digest = sha256("\0".join(parts).encode() + included).hexdigest()
    target = builds() / f"{source.parent.name}_{digest[:32]}.so"
    if not target.exists():
        build(f'#line 1 "{source}"\n{text}\n' + "".join(launchers), folders, target)
    return ctypes.CDLL(str(target))


def build(code, folders, target):
    """Compile; the file appears whole, however many processes write it at once."""
    with tempfile.TemporaryDirectory(dir=target.parent) as partial:
        built = Path(partial) / target.name
        paths = (f"-I{folder}" for folder in folders)
        command = [COMPILER, *FLAGS, *paths, "-include", HEADER, "-x", "c++", "-", "-o"]
        subprocess.run([*command, built], check=True, input=code.encode())
        built.replace(target)


def included_by(source, folders):
    """Find the files that a source includes, and those that these include."""
    found, sources = set(), [source]
    while sources:
        for name in INCLUDE.findall(sources.pop().read_text()):
            path = next(each / name for each in folders if (each / name).exists())
            if path not in found:
                found.add(path)
                sources.append(path)
    return found


@cache
def version():
    """What tells one compiler from another."""
    asked = [COMPILER, "--version"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout


def builds():
    """Find the folder for builds: a temporary one where pytest has no cache."""
    return Path(os.environ.get(BUILDS) or temporary_folder().name)


@cache
def temporary_folder():
    return tempfile.TemporaryDirectory()
