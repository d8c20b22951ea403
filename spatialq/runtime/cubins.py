"""CUDA sources compiled when the wheel is built, and looked up by their content.

`python -m spatialq.runtime.cubins` compiles the sources of a checkout with NVRTC, which needs no
GPU, into `FOLDER`: machine code for each of `ARCHITECTURES`, and PTX, which drivers compile for
newer GPUs. The name of a file has a digest of the source, of all headers that it includes and of
the options, so that code of another source is never found.
"""

import ctypes
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from hashlib import sha256
from multiprocessing.pool import ThreadPool
from pathlib import Path

from spatialq.runtime.packed import pack_small, unpack

OPTIONS = ("--std=c++17", "--fmad=false")  # a * b + c rounds twice, as it does on the CPU
ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "compute_120")
FOLDER = Path(__file__).parents[1] / "compiled" / "cuda"
SUFFIX = ".xz"
INCLUDE = re.compile(rb'^#include "(.+)"', re.MULTILINE)


def include_folders(source: Path) -> tuple[Path, Path]:
    """Give the folders in which the compiler looks for the headers of a CUDA source.

    `#include "<function>/<file>.cuh"` is found beside the folder of the source itself, and
    `#include "geometry/<file>.cuh"` in this package, from a checkout and from a wheel.
    """
    return source.parents[1], Path(__file__).parents[1]


def options(source: Path) -> tuple[str, ...]:
    """Give the options with which a source is compiled, besides the architecture."""
    return (*OPTIONS, *(f"-I{folder}" for folder in include_folders(source)))


def shipped(source: Path, capability: str, folder: Path = FOLDER) -> Iterator[bytes]:
    """Give what was compiled of a source and runs on a GPU, the best first.

    Parameters
    ----------
    source : path
    capability : str
        Compute capability of the GPU without its dot, such as "90".
    folder : path

    Yields
    ------
    bytes
        Cubin or PTX; files that are missing or damaged are left out.
    """
    name = digest(source)
    for architecture in reversed(ARCHITECTURES):
        if _runs(architecture, int(capability)):
            code = unpack(folder / f"{name}.{architecture}{SUFFIX}")
            if code is not None:
                yield code


def _runs(architecture: str, capability: int) -> bool:
    """Whether a GPU runs code: a cubin up to the next generation, PTX from its own one on."""
    kind, made_for = architecture.split("_")
    same = int(made_for) // 10 == capability // 10
    return int(made_for) <= capability and (same == (kind == "sm"))


def digest(source: Path) -> str:
    """Digest a source, the headers that it includes, directly or indirectly, and the options."""
    total, files, seen = sha256(repr(OPTIONS).encode()), [source], {source}
    for file in files:  # which grows
        content = file.read_bytes().replace(b"\r\n", b"\n")
        total.update(sha256(content).digest())
        for name in INCLUDE.findall(content):
            for folder in include_folders(source):
                header = folder / name.decode()
                if header.is_file() and header not in seen:
                    seen.add(header)
                    files.append(header)
    return total.hexdigest()[:32]


def find_nvrtc() -> ctypes.CDLL | None:
    """Load NVRTC of the package nvidia-cuda-nvrtc-cu12, if it is installed."""
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        return None
    folders = (spec.submodule_search_locations or []) if spec else []
    found = [path for folder in folders for path in Path(folder).glob("lib/libnvrtc.so.*")]
    return ctypes.CDLL(str(found[0])) if found else None


def compile_source(nvrtc: ctypes.CDLL, text: str, source: Path, architecture: str) -> bytes:
    """Compile CUDA C++ to a cubin for `sm_...`, or to PTX for `compute_...`.

    Raises
    ------
    ValueError
        With the compiler's log.
    """
    program = ctypes.c_void_p()
    words = (f"--gpu-architecture={architecture}", *options(source))
    given = (ctypes.c_char_p * len(words))(*map(str.encode, words))
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), str(source).encode(), 0, None, None
    )
    try:
        if nvrtc.nvrtcCompileProgram(program, len(words), given) != 0:
            raise ValueError(_output(nvrtc, program, "ProgramLog").rstrip(b"\0").decode())
        kind = "CUBIN" if architecture.startswith("sm_") else "PTX"
        return _output(nvrtc, program, kind)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _output(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    output = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, output)
    return output.raw


def sources() -> list[Path]:
    """List the CUDA sources of the checkout."""
    package = Path(__file__).parents[1]
    return sorted([*package.parent.glob("udfs/*/*.cu"), *package.glob("*/*.cu")])


def names() -> dict[str, tuple[Path, str]]:
    """Name the files of all sources, each with its source and architecture."""
    return {
        f"{digest(source)}.{architecture}{SUFFIX}": (source, architecture)
        for source in sources()
        for architecture in ARCHITECTURES
    }


def build(nvrtc: ctypes.CDLL, folder: Path = FOLDER) -> None:
    """Compile what is not in the folder yet or damaged, and remove what is stale."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {folder / name: made_of for name, made_of in names().items()}
    for path in set(folder.iterdir()) - set(wanted):
        path.unlink()

    def make(path: Path) -> None:
        source, architecture = wanted[path]
        code = compile_source(nvrtc, source.read_text(encoding="utf-8"), source, architecture)
        path.write_bytes(pack_small(code))

    with ThreadPool(os.cpu_count()) as pool:
        missing = [path for path in wanted if unpack(path) is None]
        pool.map(make, missing, chunksize=1)


if __name__ == "__main__":
    library = find_nvrtc()
    if library is None:
        sys.stderr.write(
            "NVRTC is missing (nvidia-cuda-nvrtc-cu12): the wheel has no code for GPUs\n"
        )
    else:
        build(library)
