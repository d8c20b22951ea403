"""`owm_ground` on the GPU: parity with the CPU, time by stage, transfers; one JSON file.

python benchmarks/owm_ground_gpu.py --commit HASH [--out FOLDER] [--points N] [kinds ...]

Device times are medians of graph replays between events; `ideal` is one reading of x, y and z at
the bandwidth that a plain reading kernel reaches in the same run.
"""

import argparse
import statistics

import cupy as cp
import measure
import numpy as np
from clouds import KINDS, make_cloud
from spatialq.udfs.owm_ground import Options, cpu, gpu
from spatialq.udfs.owm_ground.windows import Box

from spatialq.runtime import cuda

READ = r"""
extern "C" __global__ void read(const double* x, const double* y, const double* z, long long n,
                                double* sums) {
    double sum = 0;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
         i += (long long)gridDim.x * blockDim.x)
        sum += x[i] + y[i] + z[i];
    if (sum == 1e300) sums[0] = sum;
}
"""


def graph_ms(work, repeat=15):
    """Median milliseconds between events of a graph of what `work` launches."""
    work()
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        work()
        stream.synchronize()
        stream.begin_capture()
        keep = work()
        graph = stream.end_capture()
        times = [measure.between_events(lambda: graph.launch(stream)) for _ in range(repeat + 3)]
    del keep
    return statistics.median(times[3:])


class Stages:
    """A device that notes an event after each launch."""

    def __init__(self, device):
        self._device = device
        self.events = []

    def __getattr__(self, name):
        return getattr(self._device, name)

    def launch(self, source, name, *arguments):
        if not self.events:
            self.note("clear")
        self._device.launch(source, name, *arguments)
        self.note(name.removeprefix("owm_"))

    def note(self, name):
        event = cp.cuda.Event()
        event.record()
        self.events.append((name, event))


def stages(device, grid, cloud):
    """Milliseconds of each stage, median of runs one kernel after the other."""
    runs = []
    for _ in range(9):
        watch = Stages(device)
        start = cp.cuda.Event()
        start.record()
        gpu.search(watch, grid, cloud)
        cp.cuda.Device().synchronize()
        before, times = start, {}
        for name, event in watch.events:
            times[name] = cp.cuda.get_elapsed_time(before, event)
            before = event
        runs.append(times)
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def figures(kind, n, *, strips):
    device = cuda.device()
    x, y, z = make_cloud(kind, strips=strips, n=n)
    n = x.size
    options = Options()
    there = [cp.asarray(values) for values in (x, y, z)]
    box = Box(x.min(), x.max(), y.min(), y.max())
    result = gpu.run(*there, None, options, box)
    ids = np.arange(n)
    _, cpu_ms, expected = measure.first_and_next(lambda: cpu.run(x, y, z, ids, options))
    report = {"cloud": kind + (" strips" if strips else " shuffled"), "points": n}
    measure.assert_same(result, expected)
    report["same_as_cpu"] = True
    report["bytes"] = 24 * n
    report["cpu_ms"] = cpu_ms
    report["host_to_host_ms"] = measure.wall_ms(lambda: gpu.run(x, y, z, None, options), 3)
    report["seeds"] = int((~result["filled"]).sum())
    report["filled"] = int(result["filled"].sum())
    read = cp.RawKernel(READ, "read")
    sums = cp.empty(1)
    reading = graph_ms(lambda: read((132 * 16,), (256,), (*there, n, sums)))
    grid = gpu._grid(device, (there[0], there[1]), options, box, box, None)
    search = graph_ms(lambda: gpu.search(device, grid, (*there, None)))
    report |= {
        "read_ms": reading,
        "read_GB_per_s": 24 * n / reading / 1e6,
        "device_ms": search,
        "kernels_G_points_per_s": n / search / 1e6,
        "kernels_over_read": search / reading,
        "stages_ms": stages(device, grid, (*there, None)),
        "call_with_box_ms": measure.wall_ms(lambda: gpu.run(*there, None, options, box), 7),
        "call_ms": measure.wall_ms(lambda: gpu.run(*there, None, options), 7),
    }
    return measure.show(report), (x, y, z)


def transfers(x, y, z):
    """Host to host, against what pinned memory alone reaches."""
    n, options = x.size, Options()
    pinned = [cp.cuda.alloc_pinned_memory(values.nbytes) for values in (x, y, z)]
    fast = [np.frombuffer(memory, np.float64, n) for memory in pinned]
    for target, values in zip(fast, (x, y, z), strict=True):
        target[:] = values
    target = cp.empty(n)
    stream = cp.cuda.get_current_stream()

    def copy():
        for values in fast:
            target.set(values, stream)

    best = measure.wall_ms(copy, 7)
    report = {"points": n, "pinned_ms": best, "pinned_GB_per_s": 24 * n / best / 1e6}
    for name, arrays in (("pinned", fast), ("pageable", (x, y, z))):
        spent = measure.wall_ms(lambda arrays=arrays: gpu.run(*arrays, None, options), 7)
        report[f"host_to_host_{name}_ms"] = spent
        report[f"host_to_host_{name}_share_of_pinned"] = best / spent
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["sparse", "arzua", "forest", "dense"])
    parser.add_argument("--points", type=int, help="instead of the survey's")
    measure.add_arguments(parser)
    arguments = parser.parse_args()
    assert set(arguments.kinds) <= set(KINDS)
    small = np.random.default_rng(1).random((3, 100)) * 20
    report = measure.header(
        "owm_ground", arguments.commit,
        cuda=cp.cuda.runtime.runtimeGetVersion(),
        small_call_ms=measure.wall_ms(lambda: gpu.run(*small, None, Options()), 7),
        clouds=[],
    )  # fmt: skip
    for kind in arguments.kinds:
        for strips in (True, False) if kind in ("sparse", "dense") else (True,):
            found, cloud = figures(kind, arguments.points, strips=strips)
            report["clouds"].append(found)
    report["transfers"] = measure.show(transfers(*cloud))
    measure.write(arguments.out, report["function"], report)


if __name__ == "__main__":
    main()
