"""What the CUDA sources define once more is the same as in Python."""

import re
from dataclasses import fields
from math import isqrt

import pytest
from spatialq.udfs.build_lod import split_gpu, tree, voxels, voxels_gpu

SOURCES = [split_gpu.SOURCE, voxels_gpu.SOURCE, split_gpu.SOURCE.with_name("points.cuh")]
TEXTS = [source.read_text() for source in SOURCES]
DEFINED = {
    name: text
    for source in TEXTS
    for name, text in re.findall(r"^#define (\w+) (.*?) *(?://.*)?$", source, re.MULTILINE)
}
SHARED = [
    (name, getattr(module, name))
    for module in (split_gpu, tree, voxels, voxels_gpu)
    for name in DEFINED
    if hasattr(module, name)
]
OF_THE_DEVICE = {"ALL", "NOWHERE", "OPAQUE", "INNER", "SLOTS", "MAX_WORDS"}


def value_of(name):
    text = DEFINED[name]
    for other in ("VOXEL_WIDTH", "FINE"):
        text = text.replace(other, f"({DEFINED[other]})") if other != name else text
    return eval(text.replace("/", "//"), {})


@pytest.mark.parametrize(("name", "value"), SHARED)
def test_numbers(name, value):
    assert value_of(name) == value


def test_weights_of_voxels_in_the_middle_of_eighths():
    quarter = voxels.VOXEL_WIDTH // 4
    assert value_of("OWN") == voxels.VOXEL_WIDTH - isqrt(3 * quarter**2)
    assert value_of("BESIDE") == voxels.VOXEL_WIDTH - isqrt((3 * quarter) ** 2 + 2 * quarter**2)


def test_none_is_left_out():
    assert {name for name, _ in SHARED} == set(DEFINED) - OF_THE_DEVICE - {"OWN", "BESIDE"}


def test_sums_of_a_piece_fit_in_32_bits():
    assert voxels.VOXEL_WIDTH * 255 * voxels_gpu.PIECE < 2**32


def members(name):
    """Members of a structure of voxels.cu, in their order: types and names."""
    pattern = rf"^struct (?:alignas\(\d+\) )?{name} {{\n(.*?)^}};"
    (body,) = re.findall(pattern, TEXTS[1], re.MULTILINE | re.DOTALL)
    declared = re.sub(r"//.*", "", body.split("__device__")[0])
    found = []
    for line in declared.split(";")[:-1]:
        first, *others = line.replace("*", " * ").split(",")
        *kind, name = first.split()
        found += [(" ".join(kind), each.strip(" *")) for each in (name, *others)]
    return found


def test_what_kernels_get_has_the_layout_of_its_record():
    declared = members("Lod")
    assert declared.pop() == ("Cube", "cube")
    arrays = [name for kind, name in declared if kind[-1] == "*"]
    assert arrays == [name for _, name in declared[: len(arrays)]] == list(voxels_gpu.ARRAYS)
    numbers = [("i64", name) for name in ("depth", "n_tops", "max_points", "seed")]
    assert declared[len(arrays) :] == numbers
    cube = [field.name for field in fields(tree.Cube)]
    assert list(voxels_gpu.NUMBERS) == [*(name for _, name in numbers), *cube]
    assert voxels_gpu.LOD.itemsize == 8 * len(voxels_gpu.LOD.names)


@pytest.mark.parametrize("name", ["Word", "Top"])
def test_words_and_tops_have_their_size(name):
    size = {"u32": 4, "u64": 8}
    needed = sum(size[kind] for kind, _ in members(name))
    assert -(-needed // 16) * 16 == voxels_gpu.WORD
