"""First calls on the CPU in new processes: code of the wheel against none; then both in turns.

python .ci/kernels.py compile
python benchmarks/first_calls.py --out benchmarks/results

Each function runs in two processes with an empty cache, one of which does not see the code that was
compiled for the baseline. Afterwards each of both kinds of code has a process, of which one call
after the other is timed in turns, on more points. Results of both are compared to the bit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import measure
from first_calls_gpu import digest
from planner_inputs import FUNCTIONS, fitted

from spatialq.planner import devices
from spatialq.runtime import baseline
from spatialq.runtime.threads import n_threads

WAYS = ("shipped", "none")


def child(function, way, points):
    """Call a function at each line of standard input; answer with its seconds and a digest."""
    given = fitted(function, points)[0]
    if way == "none":
        baseline.runs_here = lambda: False
    from numba.core import event

    listener = event.RecordingListener()
    event.register("numba:compile", listener)
    for _ in sys.stdin:
        clock, processor = time.perf_counter(), time.process_time()
        kernel = measure.kernel(function, "cpu")
        result = kernel(**given.arguments, options=measure.options_of(function, **given.options))
        seconds, processor = time.perf_counter() - clock, time.process_time() - processor
        compiled = sum(each.is_start for _, each in listener.buffer)
        print(json.dumps([seconds, processor, compiled, digest(result)]), flush=True)


def process(cache, function, way, points):
    command = [sys.executable, __file__, "--child", function, way, str(points)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    )  # fmt: skip


def call(process):
    process.stdin.write("\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def first(cache, function, way, points):
    """Seconds of two calls of a new process, what was compiled in them, and their digest."""
    with process(cache, function, way, points) as new:
        (one, busy, compiled, rows), (two, *_) = call(new), call(new)
    return {"first": one, "processor": busy, "second": two, "compiled": compiled, "rows": rows}


def both_in_turns(caches, function, points, repeat):
    """Processor seconds of calls with either code, which take turns, and the ratio of neighbours.

    The time of processors depends less than that of the clock on what else the machine does.
    """
    with ExitStack() as stack:
        new = {
            way: stack.enter_context(process(caches[way], function, way, points)) for way in WAYS
        }
        for each in new.values():
            call(each)
        rounds = [{way: call(each)[1] for way, each in new.items()} for _ in range(repeat)]
    return {
        "points": points,
        **{way: median(each[way] for each in rounds) for way in WAYS},
        "ratio": median(each["shipped"] / each["none"] for each in rounds),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS, default=FUNCTIONS)
    parser.add_argument("--points", type=int, default=60_000, help="of first calls")
    parser.add_argument("--more", type=int, default=300_000, help="points of calls in turns")
    parser.add_argument("--repeat", type=int, default=9)
    measure.add_arguments(parser)
    parser.add_argument("--child", nargs=3, help="function, way, points: one process")
    chosen = parser.parse_args()
    if chosen.child:
        function, way, points = chosen.child
        child(function, way, int(points))
        return
    found = {}
    report = {
        "commit": chosen.commit, "date": datetime.now(UTC).date().isoformat(),
        "cpu": devices.cpu_name(), "threads": n_threads(), "points": chosen.points,
        "baseline": baseline.baseline()[0], "functions": found,
    }  # fmt: skip
    for function in chosen.functions:
        with tempfile.TemporaryDirectory() as folder:
            caches = {way: Path(folder) / way for way in WAYS}
            calls = {way: first(caches[way], function, way, chosen.points) for way in WAYS}
            turns = both_in_turns(caches, function, chosen.more, chosen.repeat)
        same = calls["shipped"].pop("rows") == calls["none"].pop("rows")
        found[function] = {**calls, "same rows": same, "in turns": turns}
        measure.write(chosen.out, "first_calls", report)
        print(
            f"{function:16}",
            *(f"{way} {calls[way]['first']:.2f} s ({calls[way]['compiled']})" for way in WAYS),
            f"kernel {turns['ratio']:.2f} times, same rows: {same}",
            flush=True,
        )


if __name__ == "__main__":
    main()
