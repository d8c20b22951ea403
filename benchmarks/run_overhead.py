"""What `spatialq.run` adds to a kernel that is called directly, host to host; a JSON file.

    python benchmarks/run_overhead.py [function ...] [--points N] [--device cpu] [--repeat N]
        [--out FOLDER] [--commit HASH]

`ratio` is the median time of `spatialq.run(f, x, y, z)` over that of `run` of `cpu.py` or `gpu.py`
with the same arrays and ids that are there already, both in one process and in turns; `strided` is
that of `spatialq.run` on the columns of one array [n, 3], which must be converted.
`processor_ratio` compares the time of all threads of the process, which other processes disturb
less.

`run_bytes` and `kernel_bytes` are the peak of the resident memory of a process of its own during
the second call, per point, without the arrays that are given.
"""

import argparse
import platform
import re
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import measure
import numpy as np

import spatialq
from spatialq.functions.catalogue import catalogue
from spatialq.planner import devices
from spatialq.runtime import buffers
from spatialq.runtime.threads import n_threads

DENSITY = 15.0  # points per square metre of the terrain


def terrain(n):
    """Hills, scanned from the air."""
    rng = np.random.default_rng(1)
    side = np.sqrt(n / DENSITY)
    x, y = 714_000 + side * rng.random(n), 4_286_000 + side * rng.random(n)
    z = 600 + 20 * np.sin(x / 150) * np.cos(y / 110) + 0.05 * rng.standard_normal(n)
    return x, y, z


def hall(n):
    """The six sides of a hall, scanned from within."""
    rng = np.random.default_rng(2)
    points = rng.random((3, n))
    for k, part in enumerate(np.array_split(np.arange(n), 6)):
        points[k // 2, part] = k % 2 + 0.0005 * rng.standard_normal(part.size)
    return points[0] * 40, points[1] * 25, points[2] * 8


CLOUDS = {
    "owm_ground": terrain,
    "classify_ground": terrain,
    "detect_planes": hall,
    "plane_points": hall,
}


def directly(function, device):
    """Give the kernel as a function of x, y, z and point_id."""
    kernel, options = catalogue()[function].kernel(device), measure.options_of(function)
    return lambda x, y, z, ids: kernel(x=x, y=y, z=z, point_id=ids, options=options)


def through_run(function, device):
    return lambda x, y, z, ids: spatialq.run(function, x, y, z, device=device)


WAYS = {"run": through_run, "kernel": directly}


def figures(function, device, cloud, repeat):
    ids = np.arange(cloud[0].size)
    works = {name: way(function, device) for name, way in WAYS.items()}
    rows = np.column_stack(cloud)
    timed = measure.in_turns(
        {
            "kernel": lambda: works["kernel"](*cloud, ids),
            "run": lambda: works["run"](*cloud, None),
            "strided": lambda: works["run"](*rows.T, None),
        },
        repeat,
    )
    return measure.show({
        "name": function,
        "device": device,
        "points": cloud[0].size,
        "ms": {name: 1e3 * each.median for name, each in timed.items()},
        "ratio": timed["run"].median / timed["kernel"].median,
        "processor_ratio": median_processor(timed["run"]) / median_processor(timed["kernel"]),
        "strided_ratio": timed["strided"].median / timed["kernel"].median,
        **{f"{way}_bytes": peak_of_child(function, device, way, cloud[0].size) for way in WAYS},
    })  # fmt: skip


def median_processor(timed):
    return statistics.median(timed.processor)


def peak_of_child(function, device, way, n):
    """Bytes a point, measured in a process of its own; None where the system does not say."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    own = [sys.executable, __file__, function, "--device", device]
    command = [*own, "--peak", way, "--points", str(n)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(found.stdout.split()[-1])


def peak(function, device, way, n):
    """Bytes a point that a call adds to the resident memory of this process.

    There must be millions: malloc keeps smaller arrays.
    """
    work, cloud, ids = WAYS[way](function, device), CLOUDS[function](n), np.arange(n)
    work(*cloud, ids)  # compiles
    buffers.trim()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak
    work(*cloud, ids)
    return (resident("VmHWM") - before) / n


def resident(name):
    text = Path("/proc/self/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", text).group(1)) << 10


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("functions", nargs="*", default=list(CLOUDS), help=", ".join(CLOUDS))
    measure.add_arguments(parser)
    parser.add_argument("--points", type=int, default=5_000_000)
    parser.add_argument("--device", choices=["cpu", "gpu"], help="default: all that can be used")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--peak", choices=WAYS, help="print the memory of one call, and no more")
    arguments = parser.parse_args()
    if arguments.peak:
        (function,), device = arguments.functions, arguments.device
        print(peak(function, device, arguments.peak, arguments.points))
        return
    usable = [each.device for each in devices.devices() if not each.problem]
    found = []
    for make in dict.fromkeys(CLOUDS[function] for function in arguments.functions):
        cloud = make(arguments.points)
        found += [
            figures(function, device, cloud, arguments.repeat)
            for function in arguments.functions
            for device in ([arguments.device] if arguments.device else usable)
            if CLOUDS[function] is make
        ]
    report = {
        "machine": platform.processor() or platform.machine(),
        "gpu": devices.gpu().name,
        "commit": arguments.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "cpu_threads": n_threads(),
        "functions": found,
    }
    measure.write(arguments.out, "run_overhead", report)


if __name__ == "__main__":
    main()
