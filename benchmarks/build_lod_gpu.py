"""`build_lod` on the GPU: parity with the CPU, time by stage and kernel, memory; a JSON file.

python benchmarks/build_lod_gpu.py --commit HASH [--json FOLDER] [--sizes N ...]
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
import json
import statistics
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import get_args

import cupy as cp
import numpy as np
from lod_cloud import SIDE, cloud
from spatialq.udfs import build_lod
from spatialq.udfs.build_lod import Options, Strategy, cpu, gpu, split_gpu
from spatialq.udfs.build_lod.split_gpu import Records
from spatialq.udfs.build_lod.tree import Cube, Points
from spatialq.udfs.build_lod.voxels_gpu import voxels

from spatialq.runtime import cuda
from spatialq.runtime.threads import n_threads

CUBE = Cube(0.0, 0.0, 0.0, SIDE)


def timed(work, repeat):
    """Median milliseconds between events, after a turn that is not counted."""
    work()
    times = []
    for _ in range(repeat):
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        work()
        stop.record()
        stop.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, stop))
    return statistics.median(times)


def wall(work, repeat):
    """Median milliseconds on the host's clock, after a turn that is not counted."""
    work()
    times = []
    for _ in range(repeat):
        clock = time.perf_counter()
        work()
        cp.cuda.Device().synchronize()
        times.append(1e3 * (time.perf_counter() - clock))
    return statistics.median(times)


def by_kernel(work):
    """Milliseconds and launches of the CUDA kernels, by name."""
    device, spent = cuda.device(), {}
    launch = device.launch

    def alone(source, kernel, *arguments):
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        launch(source, kernel, *arguments)
        stop.record()
        stop.synchronize()
        ms, launches = spent.get(kernel, (0.0, 0))
        spent[kernel] = ms + cp.cuda.get_elapsed_time(start, stop), launches + 1

    device.launch = alone
    try:
        work()
    finally:
        device.launch = launch
    return dict(sorted(spent.items(), key=lambda item: -item[1][0]))


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


def measure(n, order, repeat, check):
    """Figures of a cloud, for each strategy."""
    if check:
        some = cloud(min(n, check), order, cp)
        for strategy in get_args(Strategy):
            assert_as_on_the_cpu(some, Options(strategy=strategy))
        del some
    records = cloud(n, order, cp)
    copy_ms = timed(partial(cp.copyto, cp.empty_like(records), records), repeat)
    tree, found = build(records, Options()), split(records, Options())
    split_ms = timed(lambda: split(records, Options()), repeat)
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
        "canonical_ms": timed(partial(gpu.ascending, tree), repeat),
        "strategies": {},
    }
    del tree
    print(json.dumps(report, indent=1), flush=True)
    for strategy in get_args(Strategy):
        options = Options(strategy=strategy)
        total_ms = timed(partial(build, records, options), repeat)
        figures = {
            "total_ms": total_ms,
            "with_representatives_ms": timed(
                partial(build, records, options, representatives=True), repeat
            ),
            "voxels_ms": timed(partial(fill, records, found, options), repeat),
            "M_points_per_s": n / total_ms / 1e3,
            "copied_bytes": 32 * total_ms / copy_ms,
            "peak_bytes_a_point": peak(partial(build, records, options)) / n,
            "kernels": by_kernel(partial(fill, records, found, options)),
        }
        report["strategies"][strategy] = figures
        print(strategy, json.dumps(figures, indent=1), flush=True)
    return report


def measure_columns(n, strategy, repeat):
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
    on_cpu, on_gpu = (build_lod.UDF.kernel(device) for device in ("cpu", "gpu"))
    clock = time.perf_counter()
    on_cpu(**columns, options=options)
    cpu_first = time.perf_counter() - clock
    clock = time.perf_counter()
    on_cpu(**columns, options=options)
    cpu_ms = 1e3 * (time.perf_counter() - clock)
    work = build_lod.UDF.work(n, options)
    device_ms = timed(lambda: gpu.build(there, CUBE, options), repeat)
    report = {
        "cloud": f"lod_cloud, {strategy}",
        "points": n,
        "bytes": work.bytes_in + work.bytes_out,
        "steps": work.steps,
        "cpu_first_s": cpu_first,
        "cpu_ms": cpu_ms,
        "device_ms": device_ms,
        "M_points_per_s": n / device_ms / 1e3,
        "host_to_host_ms": wall(lambda: on_gpu(**columns, options=options), repeat),
    }
    print(json.dumps(report, indent=1), flush=True)
    return report


def small_call(repeat):
    rng = np.random.default_rng(1)
    columns = dict(zip("xyz", rng.random((3, 1000)), strict=True))
    columns["point_id"] = np.arange(1000)
    absent = dict.fromkeys([*build_lod.CHANNELS, "classification"])
    kernel, options = build_lod.UDF.kernel("gpu"), Options(max_points=100)
    return wall(lambda: kernel(**columns, **absent, options=options), repeat)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--commit", required=True)
    parser.add_argument("--json", type=Path, help="folder for build_lod.json")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000_000, 500_000_000])
    parser.add_argument("--orders", nargs="+", default=["strips", "random"])
    parser.add_argument("--check", type=int, default=10_000_000, help="points to compare; 0: none")
    parser.add_argument("--columns", type=int, default=20_000_000, help="points; 0: none")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    repeat = arguments.repeat
    report = {
        "function": "build_lod",
        "device": cp.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "cupy": cp.__version__,
        "commit": arguments.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "cpu_threads": n_threads(),
        "packed": [],
        "clouds": [],
    }

    def save():
        if arguments.json:
            target = arguments.json / "build_lod.json"
            target.write_text(json.dumps(report, indent=1) + "\n")

    for n in arguments.sizes:
        for order in arguments.orders:
            report["packed"].append(measure(n, order, repeat, arguments.check))
            save()
    if arguments.columns:
        report["small_call_ms"] = small_call(repeat)
        for strategy in get_args(Strategy):
            report["clouds"].append(measure_columns(arguments.columns, strategy, repeat))
            save()


if __name__ == "__main__":
    main()
