"""How good the planner is: is the device that it takes the faster one, are its estimates right?

    python benchmarks/regret.py [--sizes N ...] [--cold-sizes N ...] [--functions NAME ...]
        [--ways python sql] [--seconds S] [--out FILE] [--calibrate] [--calls-before N]

A cell is a function, an input that no rate was made from (`planner_inputs.reported`), a size, a way
(`spatialq.run` or SQL), and cold or warm: the first call of a new process, or a later one. Each
cell runs on all devices of the machine; the regret of the choice is how much longer it takes than
the best device. Without a GPU only the estimates are judged. `estimated` is what the planner says
before a call of the cell has taught it anything, `corrected` what it says after the calls of the
cell. `--calibrate` measures the machine first, and keeps that for this run only. Before the cells
the planner has seen `--calls-before` calls, of other inputs than those of the cells: what a process
on a machine that was never calibrated knows after some work.

All functions from 1e3 to 1e7 rows take less than six minutes on 16 cores and a GPU: a cell is left
out where a smaller one took some seconds, and all where the time is over.
"""

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import regret_call
from planner_inputs import FUNCTIONS, compile_all, fitted, reported

import spatialq
from spatialq.planner import devices, log, rates
from spatialq.runtime.threads import n_threads

SIZES = [1000, 10_000, 100_000, 1_000_000, 10_000_000]
COLD_SIZES = [10_000, 1_000_000]
WAYS = "python", "sql"
WARM_SHARE = 0.6
"""Of the time, for the warm cells."""
LONG = 3.0
"""Seconds of a call after which no larger one of its kind is made."""
ALIKE = 1.05
"""A device that takes so many times as long as the other is not the wrong one."""
COLD = """
import json, pickle, sys, time
import numpy as np
sys.path.insert(0, sys.argv[1])
given, way, device = sys.argv[2:]
with open(given, "rb") as file:
    function, arguments, options = pickle.load(file)
import regret_call
print(json.dumps(regret_call.measured(function, arguments, options, way, device)))
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--cold-sizes", type=int, nargs="*", default=COLD_SIZES)
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS, default=list(FUNCTIONS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--calls-before", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    compile_all(options.functions, ["cpu"] if devices.gpu().problem else ["cpu", "gpu"])
    with tempfile.TemporaryDirectory() as folder:
        if options.calibrate:
            os.environ["SPATIALQ_CACHE_DIR"] = folder
            found = spatialq.calibrate()
            print(f"calibrated in {found.seconds:.0f} s; left out: {found.left_out}", flush=True)
        taught = teach(options.functions, options.calls_before)
        cells = all_cells(options, Path(folder), taught)
    gpu = devices.gpu()
    report = {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": devices.cpu_name(),
        "threads": n_threads(),
        "gpu": gpu.problem or gpu.name,
        "rates": rates.current().about,
        "calls before": options.calls_before,
        "summary": summary(cells),
        "cells": cells,
    }
    print(json.dumps(report["summary"], indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(report, indent=1) + "\n")


def teach(functions, count):
    """Make some calls, as the planner chooses, of functions in turn.

    Returns
    -------
    list of tuple
        Arguments of `log.learn`, of what these calls taught.
    """
    taught = 0
    for n in (100_000, 10_000, 300_000):
        for function in functions:
            given = fitted(function, n)[0]
            call = regret_call.Call(given.function, given.arguments, given.options, "python")
            for _ in range(3):  # the first of a function loads what it needs, and teaches nothing
                if taught < count:
                    call(call.planned().device)
                    taught += 1
    return [(*key, *call) for key, calls in log._ratios.items() for call in calls]


def know(taught):
    """Know what some calls taught, and nothing else."""
    log.forget()
    for each in taught:
        log.learn(*each)


def all_cells(options, folder, taught):
    """Measure warm cells of all functions, small ones first, and then cold ones."""
    there = ["cpu"] if devices.gpu().problem else ["cpu", "gpu"]
    clock, cells, slow = time.perf_counter(), [], set()
    for n in options.sizes:
        for function in options.functions:
            for given in reported(function, n):
                for way in options.ways:
                    key = function, given.name, way
                    over = time.perf_counter() - clock > WARM_SHARE * options.seconds
                    if over or key in slow:
                        continue
                    cell = warm(given, way, there, options.rounds, taught)
                    if max(cell["measured"].values()) > LONG:
                        slow.add(key)
                    cells.append(shown({"rows": n, "state": "warm", **cell}))
    for n in options.cold_sizes:
        for function in options.functions:
            given = reported(function, n)[0]
            for way in options.ways:
                if time.perf_counter() - clock < options.seconds:
                    cell = cold(given, way, there, folder)
                    cells.append(shown({"rows": n, "state": "cold", **cell}))
    return cells


def shown(cell):
    """Add the regret of a cell, and print it."""
    measured = cell["measured"]
    best = min(measured.values())
    cell["regret"] = measured[cell["chosen"]] / best - 1 if len(measured) > 1 else None
    times = "  ".join(
        f"{device} {1e3 * s:9.2f} / {1e3 * cell['estimated'][device]:9.2f} ms"
        for device, s in measured.items()
    )
    regret = "" if cell["regret"] is None else f"  {cell['chosen']} {cell['regret']:.0%}"
    print(
        f"{cell['function']:16} {cell['input']:20} {cell['rows']:9} {cell['way']:6} "
        f"{cell['state']}  {times}{regret}",
        flush=True,
    )
    return cell


def warm(given, way, there, rounds, taught):
    """Measure a call that is not the first."""
    call = regret_call.Call(given.function, given.arguments, given.options, way)
    found = {"measured": {}, "estimated": {}, "corrected": {}}
    for device in there:
        call(device)
        know(taught)
        times, first = [], None
        while len(times) < rounds and sum(times) < LONG:
            started = time.perf_counter()
            entry = call(device)
            times.append(time.perf_counter() - started)
            first = first or regret_call.expected(entry)
        call(device)
        found["measured"][device] = statistics.median(times)
        found["estimated"][device] = first
        found["corrected"][device] = regret_call.expected(log.entries()[-1])
    know(taught)
    chosen = call.planned().device
    call.close()
    return {
        "function": given.function, "input": given.name, "way": way, "chosen": chosen, **found
    }  # fmt: skip


def cold(given, way, there, folder):
    """Measure the first call of a new process on each device."""
    path = folder / "input.pickle"
    path.write_bytes(pickle.dumps((given.function, given.arguments, given.options)))
    found = {"measured": {}, "estimated": {}}
    for device in there:
        here = str(Path(__file__).parent)
        command = [sys.executable, "-c", COLD, here, str(path), way, device]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        result = json.loads(done.stdout.splitlines()[-1])
        found["measured"][device] = result["measured"]
        found["estimated"][device] = result["estimated"]
        found["chosen"] = result["chosen"]
    return {"function": given.function, "input": given.name, "way": way, **found}


def summary(cells):
    """Share of right devices, mean regret, share of estimates within a factor of two."""
    groups = {"all": cells}
    for name in ("way", "state", "function"):
        for value in dict.fromkeys(cell[name] for cell in cells):
            groups[f"{name} {value}"] = [cell for cell in cells if cell[name] == value]
    return {name: figures(own) for name, own in groups.items() if own}


def figures(cells):
    found = {"cells": len(cells)}
    regrets = [cell["regret"] for cell in cells if cell["regret"] is not None]
    if regrets:
        found["right device"] = round(float(np.mean(np.array(regrets) <= ALIKE - 1)), 3)
        found["mean regret"] = round(float(np.mean(regrets)), 3)
        found["worst regret"] = round(max(regrets), 3)
    for kind in ("estimated", "corrected"):
        for device in ("cpu", "gpu"):
            ratios = np.array([
                cell["measured"][device] / cell[kind][device]
                for cell in cells
                if device in cell.get(kind, {})
            ])  # fmt: skip
            if len(ratios):
                near = np.mean((ratios >= 0.5) & (ratios <= 2))
                found[f"{device} {kind} within a factor of two"] = round(float(near), 3)
    return found


if __name__ == "__main__":
    main()
