"""Every CUDA source compiles for a real architecture; NVRTC needs no GPU for that."""

import ctypes
import importlib.util
import os
from pathlib import Path

import pytest

from spatialq.runtime.cuda import include_folders

ROOT = Path(__file__).parents[1]
SOURCES = sorted([*ROOT.glob("udfs/*/*.cu"), *ROOT.glob("spatialq/geometry/*.cu")])


@pytest.fixture(scope="module")
def nvrtc():
    spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    folders = list(spec.submodule_search_locations) if spec else []
    found = [path for folder in folders for path in Path(folder).glob("lib/libnvrtc.so.*")]
    if not found:
        reason = "NVRTC is not installed (nvidia-cuda-nvrtc-cu12)"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return ctypes.CDLL(str(found[0]))


def compile_cuda(nvrtc, text, path, arch):
    """Return the compiler's log; empty when all is well."""
    program = ctypes.c_void_p()
    folders = [f"-I{folder}" for folder in include_folders(path)]
    words = f"--gpu-architecture={arch}", "--std=c++17", *folders
    options = (ctypes.c_char_p * len(words))(*map(str.encode, words))
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), str(path).encode(), 0, None, None
    )
    status = nvrtc.nvrtcCompileProgram(program, len(options), options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return "" if status == 0 else log.value.decode()


def test_the_compiler_is_one(nvrtc):
    good = 'extern "C" __global__ void f(float* x) { x[threadIdx.x] += 1.0f; }'
    assert compile_cuda(nvrtc, good, Path("folder/good.cu"), "sm_90") == ""
    assert 'bad.cu(1): error: identifier "y" is undefined' in compile_cuda(
        nvrtc, good.replace("x[", "y["), Path("folder/bad.cu"), "sm_90"
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}-{path.stem}")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_every_source_compiles(nvrtc, path, arch):
    assert compile_cuda(nvrtc, path.read_text(), path, arch) == ""
