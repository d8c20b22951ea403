"""Measure the planner's figures on this machine, and write `spatialq/planner/rates.json`.

    python benchmarks/rates.py [--out FILE] [--devices cpu gpu] [--functions NAME ...]
        [--sizes N ...] [--seconds S] [--samples FILE]
    python benchmarks/rates.py --merge FILE [--out FILE]

All functions, on both devices if there is a GPU, in less than four minutes on 16 cores, and what
has to be compiled first. CPU kernels
run on 1, 2 and all threads. For each kernel the time of a call, and the times of each of its loops
(`Work.steps`: what threads share, and what they do not), are fitted by least squares of the
logarithms, so that small inputs count as much as large ones and an estimate is as often too high
as too low. `--merge` takes from a file what it has of other functions and devices than the file
that is there, such as the figures of a GPU from another machine: whatever is in FILE counts.
`--samples` keeps what was measured.
"""

import argparse
import json
import os
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from planner_inputs import FUNCTIONS, compile_all, fitted
from scipy.optimize import least_squares, nnls

from spatialq.functions.catalogue import catalogue
from spatialq.planner import devices, rates
from spatialq.runtime.threads import n_threads
from spatialq.workflows import calibration

RATES = Path(__file__).parents[1] / "spatialq" / "planner" / "rates.json"
SIZES = [1000, 10_000, 100_000, 1_000_000, 10_000_000]
LONG = 1.5
"""Seconds of a call after which no larger input of its kind is tried on so many threads."""
ROUNDS = 3
LEAST = 1e-5
"""Seconds of a call at least, where the fit gives none."""


def sample(sizes, functions, wanted, seconds):
    """Time all kernels: the smallest inputs of all functions first, until the time is over.

    Returns
    -------
    list of dict
        function, device, threads, steps, bytes_in, bytes_out, seconds.
    """
    compile_all(functions, wanted)
    clock, most, found, slow = time.perf_counter(), n_threads(), [], set()
    counts = sorted({1, min(2, most), most})[::-1]
    for n in sizes:
        for function in functions:
            for each in fitted(function, n):
                for device in wanted:
                    if not catalogue()[function].has_kernel(device):
                        continue
                    for threads in counts if device == "cpu" else [most]:
                        key = function, each.name, device, threads
                        if key in slow or time.perf_counter() - clock > seconds:
                            continue
                        os.environ["SPATIALQ_THREADS"] = str(threads)
                        took = best_seconds(each, device)
                        if took > LONG:
                            slow |= {(*key[:3], fewer) for fewer in counts if fewer <= threads}
                        work = each.work
                        found.append({
                            "function": function, "input": each.name, "rows": n,
                            "device": device, "threads": threads, "steps": dict(work.steps),
                            "bytes_in": work.bytes_in, "bytes_out": work.bytes_out,
                            "seconds": took,
                        })  # fmt: skip
                        print(
                            f"{time.perf_counter() - clock:5.0f} s  {function:16} {each.name:18} "
                            f"{n:9} {device} {threads:3}  {1e3 * took:9.2f} ms",
                            file=sys.stderr, flush=True,
                        )  # fmt: skip
    os.environ["SPATIALQ_THREADS"] = str(most)
    return found


def best_seconds(each, device):
    """Least seconds of the kernel by the log, of calls after one that may compile or load."""
    each.kernel(device)
    times = [each.kernel(device).seconds]
    while len(times) < ROUNDS and sum(times) < LONG:
        times.append(each.kernel(device).seconds)
    return min(times)


def fit(samples, transfer):
    """Make the rate of a kernel of its samples.

    Parameters
    ----------
    samples : list of dict
        Of one function and device.
    transfer : mapping
        Seconds a byte.
    """
    names = list(samples[0]["steps"])
    rows, seconds = [], []
    for each in samples:
        steps = [each["steps"][name] for name in names]
        is_gpu = each["device"] == "gpu"
        shared = [0.0 if is_gpu else n / each["threads"] for n in steps]
        fixed = (
            each["bytes_in"] * transfer["pageable"] + each["bytes_out"] * transfer["download"]
            if is_gpu
            else 0.0
        )
        rows.append([1.0, *steps, *shared, fixed])
        seconds.append(each["seconds"])
    times = np.array(seconds)
    table, fixed = np.hsplit(np.array(rows), [-1])
    fixed = fixed[:, 0]
    if len(samples) and samples[0]["device"] == "gpu":
        table = table[:, : 1 + len(names)]
    scale = np.median(times) / np.maximum(table.max(axis=0), 1e-9)
    scaled = table * scale
    rest = np.maximum(times - fixed, 0.05 * times)
    first, _ = nnls(scaled / times[:, None], rest / times)

    def off(x):
        return np.log(scaled @ x + fixed) - np.log(times)

    begin = np.maximum(first, 1e-6)
    best = least_squares(off, begin, bounds=(0, np.inf), loss="soft_l1", f_scale=0.5)
    found = best.x * scale
    found[found * table.max(axis=0) < 1e-3 * times.min()] = 0.0
    serial = found[1 : 1 + len(names)]
    shared = found[1 + len(names) :] if len(found) > 1 + len(names) else np.zeros(len(names))
    found_steps = {
        name: rates.Step(rounded(one), rounded(other))
        for name, one, other in zip(names, serial, shared, strict=True)
    }
    return rates.Rate(max(rounded(found[0]), LEAST), found_steps), np.exp(off(best.x))


def rounded(value):
    return float(f"{value:.3g}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=RATES)
    parser.add_argument("--devices", nargs="+", choices=["cpu", "gpu"])
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS, default=list(FUNCTIONS))
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seconds", type=float, default=150.0, help="for the kernels")
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--again", action="store_true", help="fit the samples of --samples")
    parser.add_argument("--merge", type=Path)
    options = parser.parse_args()
    figures = json.loads(RATES.read_text())
    if options.merge is not None:
        merge(figures, json.loads(options.merge.read_text()))
    else:
        measured(figures, options)
    rates.from_json(figures)  # which rejects what the planner could not read
    options.out.write_text(json.dumps(figures, indent=2) + "\n")


def measured(figures, options):
    """Replace the figures by those of this machine."""
    gpu = devices.gpu()
    wanted = options.devices or (["cpu"] if gpu.problem else ["cpu", "gpu"])
    if options.again:
        kept = json.loads(options.samples.read_text())
        samples, figures["transfer"] = kept["samples"], kept["transfer"]
    else:
        if "gpu" in wanted:
            figures["transfer"] = {way: rounded(s) for way, s in calibration.transfers().items()}
            figures["gpu"] = {
                "bandwidth": rounded(gpu.bandwidth), "float64_rate": rounded(gpu.float64_rate)
            }  # fmt: skip
        samples = sample(options.sizes, options.functions, wanted, options.seconds)
    if options.samples is not None and not options.again:
        kept = {"transfer": figures["transfer"], "samples": samples}
        options.samples.write_text(json.dumps(kept, indent=1) + "\n")
    for function in options.functions:
        for device in wanted:
            own = [s for s in samples if (s["function"], s["device"]) == (function, device)]
            if not own:
                continue
            rate, off = fit(own, figures["transfer"])
            near = np.mean((off > 0.5) & (off < 2))
            print(f"{function:16} {device}  within a factor of two: {near:.0%} of {len(own)}")
            before = figures["kernels"].setdefault(function, {}).get(device, {})
            figures["kernels"][function][device] = {
                "start": rate.start,
                "load": before.get("load", 0.1),
                "steps": {name: [s.serial, s.parallel] for name, s in rate.steps.items()},
            }
    if options.again:
        return
    for device in wanted:
        starts, folders = [], {}
        for function in options.functions:  # one a process: some load modules of others
            folder = catalogue()[function].folder
            if folder not in folders:
                start, loads = calibration.in_new_process(device, [function], 30.0)
                starts += start.values()
                folders[folder] = loads.get(function)
            if device in figures["kernels"].get(function, {}) and folders[folder] is not None:
                figures["kernels"][function][device]["load"] = rounded(folders[folder])
        if starts:
            figures["start"][device] = rounded(statistics.median(starts))
    figures["transports"] |= {
        transport: {name: rounded(seconds) for name, seconds in vars(rate).items()}
        for transport, rate in calibration.transports().items()
    }
    where = [devices.cpu_name(), f"{n_threads()} threads", *([] if gpu.problem else [gpu.name])]
    figures["about"] = (
        f"benchmarks/rates.py on {', '.join(where)}, {datetime.now(UTC).date().isoformat()}"
    )


def merge(figures, other):
    """Take what another file has of functions and devices, and of its machine."""
    for function, by_device in other["kernels"].items():
        figures["kernels"].setdefault(function, {}).update(by_device)
    for name in ("gpu", "transfer", "start", "transports"):
        figures[name] |= other[name]
    figures["about"] = other["about"]


if __name__ == "__main__":
    main()
