"""`owm_ground` on the GPU: parity with the CPU, time by stage, transfers; one JSON file.

python benchmarks/owm_ground_gpu.py --commit HASH [--json FILE] [kinds ...]

Device times are medians of graph replays between events; `ideal` is one reading of x, y and z at
the bandwidth that a plain reading kernel reaches in the same run.
"""

import argparse
import json
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import cupy as cp
import numpy as np
from clouds import KINDS, make_cloud
from spatialq.udfs.owm_ground import Options, cpu, gpu
from spatialq.udfs.owm_ground.windows import Box

from spatialq.runtime import cuda
from spatialq.runtime.threads import n_threads

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


def timed(work, repeat=15):
    """Median milliseconds between events of a graph of what `work` launches."""
    work()
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        work()
        stream.synchronize()
        stream.begin_capture()
        keep = work()
        graph = stream.end_capture()
        times = []
        for _ in range(repeat + 3):
            start, stop = cp.cuda.Event(), cp.cuda.Event()
            start.record(stream)
            graph.launch(stream)
            stop.record(stream)
            stop.synchronize()
            times.append(cp.cuda.get_elapsed_time(start, stop))
    del keep
    return statistics.median(times[3:])


def wall(work, repeat=7):
    work()
    times = []
    for _ in range(repeat):
        cp.cuda.Device().synchronize()
        clock = time.perf_counter()
        work()
        cp.cuda.Device().synchronize()
        times.append(1e3 * (time.perf_counter() - clock))
    return statistics.median(times)


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


def measure(kind, *, strips):
    device = cuda.device()
    x, y, z = make_cloud(kind, strips=strips)
    n = x.size
    options = Options()
    there = [cp.asarray(values) for values in (x, y, z)]
    box = Box(x.min(), x.max(), y.min(), y.max())
    result = gpu.run(*there, None, options, box)
    ids = np.arange(n)
    cpu.run(x, y, z, ids, options)
    clock = time.perf_counter()
    expected = cpu.run(x, y, z, ids, options)
    cpu_seconds = time.perf_counter() - clock
    report = {"cloud": kind + (" strips" if strips else " shuffled"), "points": n}
    for name, values in expected.items():
        np.testing.assert_array_equal(values, cp.asnumpy(result[name]), err_msg=name)
    report["same_as_cpu"] = True
    report["bytes"] = 24 * n
    report["cpu_ms"] = 1e3 * cpu_seconds
    report["host_to_host_ms"] = wall(lambda: gpu.run(x, y, z, None, options), 3)
    report["seeds"] = int((~result["filled"]).sum())
    report["filled"] = int(result["filled"].sum())
    read = cp.RawKernel(READ, "read")
    sums = cp.empty(1)
    reading = timed(lambda: read((132 * 16,), (256,), (*there, n, sums)))
    grid = gpu._grid(device, *there[:2], options, box)
    search = timed(lambda: gpu.search(device, grid, (*there, None)))
    report |= {
        "read_ms": reading,
        "read_GB_per_s": 24 * n / reading / 1e6,
        "device_ms": search,
        "kernels_G_points_per_s": n / search / 1e6,
        "kernels_over_read": search / reading,
        "stages_ms": stages(device, grid, (*there, None)),
        "call_with_box_ms": wall(lambda: gpu.run(*there, None, options, box)),
        "call_ms": wall(lambda: gpu.run(*there, None, options)),
    }
    print(json.dumps(report, indent=1), flush=True)
    return report, (x, y, z)


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
            target.data.copy_from_host_async(values.ctypes.data, values.nbytes, stream)

    best = wall(copy)
    report = {"points": n, "pinned_ms": best, "pinned_GB_per_s": 24 * n / best / 1e6}
    for name, arrays in (("pinned", fast), ("pageable", (x, y, z))):
        spent = wall(lambda arrays=arrays: gpu.run(*arrays, None, options))
        report[f"host_to_host_{name}_ms"] = spent
        report[f"host_to_host_{name}_share_of_pinned"] = best / spent
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["sparse", "arzua", "forest", "dense"])
    parser.add_argument("--commit", required=True)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    assert set(arguments.kinds) <= set(KINDS)
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    small = np.random.default_rng(1).random((3, 100)) * 20
    report = {
        "function": "owm_ground",
        "device": name,
        "cuda": cp.cuda.runtime.runtimeGetVersion(),
        "cupy": cp.__version__,
        "commit": arguments.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "cpu_threads": n_threads(),
        "small_call_ms": wall(lambda: gpu.run(*small, None, Options())),
        "clouds": [],
    }
    for kind in arguments.kinds:
        for strips in (True, False) if kind in ("sparse", "dense") else (True,):
            figures, cloud = measure(kind, strips=strips)
            report["clouds"].append(figures)
    report["transfers"] = transfers(*cloud)
    print(report["transfers"], flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
