"""Every CUDA source compiles for a real architecture; what is shipped is what was compiled."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from spatialq.runtime import cubins, cuda

GOOD = 'extern "C" __global__ void f(float* x) { x[threadIdx.x] += 1.0f; }'


@pytest.fixture(scope="module")
def nvrtc():
    found = cubins.find_nvrtc()
    if found is None:
        reason = "NVRTC is not installed (nvidia-cuda-nvrtc-cu12)"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return found


@pytest.fixture
def source(tmp_path):
    """Write a source that includes a header, which includes another one."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "inner.cuh").write_text("#define STEP 1.0f\n")
    (tmp_path / "own" / "outer.cuh").write_text('#include "own/inner.cuh"\n')
    path = tmp_path / "own" / "kernels.cu"
    path.write_text('#include "own/outer.cuh"\n' + GOOD.replace("1.0f", "STEP") + "\n")
    return path


@pytest.fixture
def shipped(nvrtc, source, tmp_path, monkeypatch):
    """Compile the source as for the wheel, and give what is found for a GPU."""
    folder = tmp_path / "compiled"
    monkeypatch.setattr(cubins, "sources", lambda: [source])
    cubins.build(nvrtc, folder)
    return lambda capability: list(cubins.shipped(source, capability, folder))


def test_the_compiler_is_one(nvrtc):
    path = Path("folder/kernels.cu")
    assert cubins.compile_source(nvrtc, GOOD, path, "sm_90").startswith(b"\x7fELF")
    with pytest.raises(ValueError, match=r'kernels.cu.1.: error: identifier "y" is undefined'):
        cubins.compile_source(nvrtc, GOOD.replace("x[", "y["), path, "sm_90")


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", cubins.sources(), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_every_source_compiles(nvrtc, path, arch):
    assert cubins.compile_source(nvrtc, path.read_text(), path, arch)


@pytest.mark.parametrize(
    ("capability", "found"),
    [
        ("75", []), ("80", ["sm_80"]), ("87", ["sm_86", "sm_80"]), ("90", ["sm_90"]),
        ("103", ["sm_100"]), ("120", ["sm_120"]), ("130", ["compute_120"]),
    ],
)  # fmt: skip
def test_a_gpu_gets_what_it_runs(source, tmp_path, capability, found):
    for architecture in cubins.ARCHITECTURES:
        path = tmp_path / f"{cubins.digest(source)}.{architecture}{cubins.SUFFIX}"
        path.write_bytes(cubins.pack_small(architecture.encode()))
    codes = cubins.shipped(source, capability, tmp_path)
    assert [code.decode() for code in codes] == found


def test_machine_code_and_ptx_are_shipped(shipped):
    (cubin,), (ptx,) = shipped("90"), shipped("130")
    assert cubin.startswith(b"\x7fELF")
    assert b".target sm_120" in ptx


@pytest.mark.parametrize("name", ["kernels.cu", "outer.cuh", "inner.cuh"])
def test_code_of_another_source_or_header_is_not_found(shipped, source, name):
    changed = source.with_name(name)
    changed.write_text(changed.read_text() + "// changed\n")
    assert shipped("90") == []


def test_code_of_other_options_is_not_found(shipped, monkeypatch):
    monkeypatch.setattr(cubins, "OPTIONS", ("--std=c++17",))
    assert shipped("90") == []


@pytest.mark.parametrize(
    "damage", [lambda code: code[:-1], lambda code: b"", lambda code: b"x" * 99]
)
def test_a_damaged_file_is_not_trusted_and_made_again(shipped, nvrtc, tmp_path, damage):
    assert len(shipped("90")) == 1
    (path,) = (tmp_path / "compiled").glob("*.sm_90.xz")
    path.write_bytes(damage(path.read_bytes()))
    assert shipped("90") == []
    cubins.build(nvrtc, tmp_path / "compiled")
    assert len(shipped("90")) == 1


def test_building_again_removes_what_is_stale(shipped, nvrtc, source, tmp_path):
    folder = tmp_path / "compiled"
    before = set(folder.iterdir())
    source.write_text(GOOD)
    cubins.build(nvrtc, folder)
    assert len(before) == len(set(folder.iterdir()))
    assert not before & set(folder.iterdir())


class OldDriver(Exception):
    """Stands in for CuPy's error of a driver that cannot load a module."""


@pytest.mark.parametrize("accepted", [b"newer", b"older", None])
def test_code_that_the_driver_refuses_is_compiled(monkeypatch, source, accepted):
    class Module:
        def load(self, code):
            if code != accepted:
                raise OldDriver
            self.code = code

    class RawModule:
        def __init__(self, code, options):
            self.code, self.options = code, options

    gpu = object.__new__(cuda.Device)
    gpu.xp = SimpleNamespace(RawModule=RawModule)
    gpu._cuda = SimpleNamespace(
        function=SimpleNamespace(Module=Module), driver=SimpleNamespace(CUDADriverError=OldDriver)
    )
    gpu._capability = "90"
    monkeypatch.setattr(cubins, "shipped", lambda *_: iter([b"newer", b"older"]))
    found = gpu._module(source)
    if accepted:
        assert found.code == accepted
    else:
        assert found.code == source.read_text()
        assert found.options == cubins.options(source)
