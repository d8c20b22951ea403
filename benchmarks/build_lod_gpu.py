"""`build_lod` on the GPU: parity with the CPU, time by stage and kernel, memory; a JSON file.

python benchmarks/build_lod_gpu.py --commit HASH [--out FOLDER] [--sizes N ...]
    [--orders strips random] [--check N] [--columns N] [--repeat N]

The cloud of lod_cloud.py as packed points of 16 bytes that are on the device. Times are medians
between events on the device, gaps in which it waits for the host included: of the split, of the
voxels, and of both in one. `copied_bytes` of a point are what a copy of the points moves in the
same time; it reads and writes 32. *With representatives* 'average' and 'weighted' find a point of
each voxel, too, which a table names. *Canonical* is what the ascending order in leaves costs, which
a table has and a tree on the device need not. With --columns also trees of columns, on the device
and as a table of the host from columns there, which is what the planner wants to know.
"""

import argparse
from functools import partial
from typing import get_args

import cupy as cp
import measure
import numpy as np
from lod_cloud import SIDE, cloud
from spatialq.udfs import build_lod
from spatialq.udfs.build_lod import Options, Strategy, cpu, gpu, split_gpu
from spatialq.udfs.build_lod.split_gpu import Records
from spatialq.udfs.build_lod.tree import Cube, Points
from spatialq.udfs.build_lod.voxels_gpu import voxels

from spatialq.runtime import cuda

CUBE = Cube(0.0, 0.0, 0.0, SIDE)


class Peak(cp.cuda.MemoryHook):
    """Bytes of the device's memory in use, at most, besides what was there before."""

    name = "Peak"

    def __init__(self):
        self.used = self.bytes = 0

    def malloc_postprocess(self, **found):
        self.used += found["mem_size"]
        self.bytes = max(self.bytes, self.used)

    def free_postprocess(self, **found):
        self.used -= found["mem_size"]


def peak(work):
    """Bytes of the device's memory that some work needs at most, besides what is there."""
    with Peak() as hook:
        result = work()
        del result
    return hook.bytes


def by_kernel(work):
    """Milliseconds and launches of the CUDA kernels, by name."""
    return {name: (sum(ms), len(ms)) for name, ms in measure.launches(work).items()}


def split(records, options):
    return split_gpu.split(cuda.device(), Records.packed(records), CUBE, options)


def fill(records, found, options):
    device, there = cuda.device(), Records.packed(records)
    return voxels(device, there, found, CUBE, options, None, representatives=False)


def build(records, options, *, representatives=False):
    return gpu.build(records, CUBE, options, representatives=representatives)


def points_of(records):
    """Columns of the host of packed points of the host."""
    n = len(records)
    places = (records[:, axis].copy().view(np.float32).astype(np.float64) for axis in range(3))
    colour = np.zeros((n, 4), np.uint16)
    colour[:, :3] = records[:, 3].copy().view(np.uint8).reshape(n, 4)[:, :3]
    return Points(*places, colour, np.arange(n))


def assert_as_on_the_cpu(records, options):
    """Compare all of a tree."""
    expected = cpu.build(points_of(cp.asnumpy(records)), CUBE, options)
    tree = build(records, options, representatives=True)
    found = {name: cp.asnumpy(values) for name, values in vars(tree).items()}
    found["order"] = cp.asnumpy(gpu.ascending(tree))
    found["colour"] = found["colour"].view(np.uint8).reshape(-1, 4)[:, :3]
    for name, values in vars(expected).items():
        values = values[:, :3] if name in ("colour", "sums") else values
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def packed_figures(n, order, repeat, check):
    """Figures of a cloud, for each strategy."""
    if check:
        some = cloud(min(n, check), order, cp)
        for strategy in get_args(Strategy):
            assert_as_on_the_cpu(some, Options(strategy=strategy))
        del some
    records = cloud(n, order, cp)
    copy_ms = measure.device_ms(partial(cp.copyto, cp.empty_like(records), records), repeat)
    tree, found = build(records, Options()), split(records, Options())
    split_ms = measure.device_ms(lambda: split(records, Options()), repeat)
    report = {
        "cloud": f"lod_cloud, {order} order",
        "points": n,
        "same_as_cpu_of": check,
        "nodes": len(tree.level),
        "inner": int((tree.children > 0).sum()),
        "deepest_level": int(tree.level[-1]),
        "voxels": len(tree.code),
        "copy_ms": copy_ms,
        "copy_GB_per_s": 32e-6 * n / copy_ms,
        "split_ms": split_ms,
        "split_copied_bytes": 32 * split_ms / copy_ms,
        "split_peak_bytes_a_point": peak(partial(split, records, Options())) / n,
        "split_kernels": by_kernel(partial(split, records, Options())),
        "canonical_ms": measure.device_ms(partial(gpu.ascending, tree), repeat),
        "strategies": {},
    }
    del tree
    measure.show(report)
    for strategy in get_args(Strategy):
        options = Options(strategy=strategy)
        total_ms = measure.device_ms(partial(build, records, options), repeat)
        figures = {
            "total_ms": total_ms,
            "with_representatives_ms": measure.device_ms(
                partial(build, records, options, representatives=True), repeat
            ),
            "voxels_ms": measure.device_ms(partial(fill, records, found, options), repeat),
            "M_points_per_s": n / total_ms / 1e3,
            "copied_bytes": 32 * total_ms / copy_ms,
            "peak_bytes_a_point": peak(partial(build, records, options)) / n,
            "kernels": by_kernel(partial(fill, records, found, options)),
        }
        report["strategies"][strategy] = figures
        measure.show({"strategy": strategy, **figures})
    return report


def column_figures(n, strategy, repeat):
    """Figures of the function from columns to columns."""
    points = points_of(cp.asnumpy(cloud(n, "strips", cp)))
    red, green, blue, intensity = points.colour.T.copy()
    columns = {
        "x": points.x, "y": points.y, "z": points.z, "point_id": points.point_id,
        "red": red, "green": green, "blue": blue, "intensity": intensity,
        "classification": np.zeros(n, np.uint8),
    }  # fmt: skip
    there = Points(*(cp.asarray(values) for values in vars(points).values()))
    options = Options(strategy=strategy)
    on_cpu, on_gpu = (measure.kernel("build_lod", device) for device in ("cpu", "gpu"))
    cpu_first, cpu_ms, _ = measure.first_and_next(lambda: on_cpu(**columns, options=options))
    work = measure.work_of("build_lod", n, options)
    device_ms = measure.device_ms(lambda: gpu.build(there, CUBE, options), repeat)
    report = {
        "cloud": f"lod_cloud, {strategy}",
        "points": n,
        "bytes": work.bytes_in + work.bytes_out,
        "steps": work.steps,
        "cpu_first_s": cpu_first,
        "cpu_ms": cpu_ms,
        "device_ms": device_ms,
        "M_points_per_s": n / device_ms / 1e3,
        "host_to_host_ms": measure.wall_ms(lambda: on_gpu(**columns, options=options), repeat),
    }
    return measure.show(report)


def small_call(repeat):
    rng = np.random.default_rng(1)
    columns = dict(zip("xyz", rng.random((3, 1000)), strict=True))
    columns["point_id"] = np.arange(1000)
    absent = dict.fromkeys([*build_lod.CHANNELS, "classification"])
    kernel, options = measure.kernel("build_lod", "gpu"), Options(max_points=100)
    return measure.wall_ms(lambda: kernel(**columns, **absent, options=options), repeat)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    measure.add_arguments(parser)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000_000, 500_000_000])
    parser.add_argument("--orders", nargs="+", default=["strips", "random"])
    parser.add_argument("--check", type=int, default=10_000_000, help="points to compare; 0: none")
    parser.add_argument("--columns", type=int, default=20_000_000, help="points; 0: none")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    repeat = arguments.repeat
    report = measure.header("build_lod", arguments.commit, packed=[], clouds=[])
    for n in arguments.sizes:
        for order in arguments.orders:
            report["packed"].append(packed_figures(n, order, repeat, arguments.check))
            measure.write(arguments.out, report["function"], report)
    if arguments.columns:
        report["small_call_ms"] = small_call(repeat)
        for strategy in get_args(Strategy):
            report["clouds"].append(column_figures(arguments.columns, strategy, repeat))
            measure.write(arguments.out, report["function"], report)


if __name__ == "__main__":
    main()
