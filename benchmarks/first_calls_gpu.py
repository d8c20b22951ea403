"""First calls on a GPU in new processes: code that was shipped against code compiled by NVRTC.

python -m spatialq.runtime.cubins
python benchmarks/first_calls_gpu.py --out benchmarks/results

Each function runs in a process with empty caches of CuPy, Numba and the driver, and in a second one
that finds what the first one compiled. The compilations of NVRTC are listed with their kernels and
seconds, and the results of both ways are compared to the bit.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from unittest.mock import patch

import measure
from planner_inputs import FUNCTIONS, fitted

from spatialq.runtime import cubins

KERNEL = re.compile(r"__global__\s+void(?:\s+__launch_bounds__\([^)]*\))?\s+(\w+)")
WAYS = "shipped", "nvrtc"


def child(function, way, points):
    """Make two calls in this process; give their seconds, and what was compiled."""
    given = fitted(function, points)[0]  # its input is made before CUDA starts
    compiled = []
    clock = time.perf_counter()
    import cupy as cp
    from numba.core import event

    imported, clock = time.perf_counter() - clock, time.perf_counter()
    cp.zeros(1)
    begun = time.perf_counter() - clock
    compiler = cp.cuda.compiler
    entry = "_compile_using_nvrtc_no_warning"  # since CuPy 14
    if not hasattr(compiler, entry):
        entry = "compile_using_nvrtc"
    inner = getattr(compiler, entry)

    def logged(source, *arguments, **named):
        begin = time.perf_counter()
        try:
            return inner(source, *arguments, **named)
        finally:
            names = KERNEL.findall(source)[:1] or [source.strip()[:60]]
            compiled.append([names[0], time.perf_counter() - begin])

    listener = event.RecordingListener()
    event.register("numba:compile", listener)
    kernel = measure.kernel(function, "gpu")
    options = measure.options_of(function, **given.options)
    seconds, digests = [], []
    with patch.object(compiler, entry, logged):
        if way == "nvrtc":
            cubins.shipped = lambda *_: iter(())
        for _ in range(2):
            clock = time.perf_counter()
            result = kernel(**given.arguments, options=options)
            measure.synchronize()
            seconds.append(time.perf_counter() - clock)
            digests.append(digest(result))
    from_numba = sum(each.is_start for _, each in listener.buffer)
    return {
        "import": imported, "start": begun, "calls": seconds, "digest": digests[0],
        "compiled": compiled, "numba": from_numba,
    }  # fmt: skip


def digest(columns):
    total = sha256()
    for name, values in columns.items():
        array = measure.on_host(values)
        total.update(name.encode())
        total.update(repr(array.tolist()).encode() if array.dtype == object else array.tobytes())
    return total.hexdigest()


def in_new_process(caches, *arguments):
    names = "CUPY_CACHE_DIR", "NUMBA_CACHE_DIR", "CUDA_CACHE_PATH"
    environment = {name: str(Path(caches) / name) for name in names}
    command = [sys.executable, __file__, "--child", *map(str, arguments)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, **environment}
    )
    if done.returncode:
        return {"error": done.stderr[-2000:]}
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS, default=FUNCTIONS)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--points", type=int, default=200_000)
    measure.add_arguments(parser)
    parser.add_argument("--child", nargs=3, help="function, way, points: one process")
    chosen = parser.parse_args()
    if chosen.child:
        function, way, points = chosen.child
        print(json.dumps(child(function, way, int(points))))
        return
    found = {}
    report = measure.header(
        list(chosen.functions), chosen.commit, points=chosen.points, calls=found
    )
    for function in chosen.functions:
        for way in chosen.ways:
            with tempfile.TemporaryDirectory() as caches:
                both = [in_new_process(caches, function, way, chosen.points) for _ in range(2)]
            found.setdefault(function, {})[way] = both
            measure.write(chosen.out, "first_calls_gpu", report)
            for number, each in enumerate(both, 1):
                print(f"{function:16} {way:8} process {number}", summary(each), flush=True)
        of_ways = {each.get("digest") for both in found[function].values() for each in both}
        print(f"{function:16} same rows: {len(of_ways) == 1}")


def summary(found):
    if "error" in found:
        return found["error"]
    calls = " ".join(f"{seconds:.2f}" for seconds in found["calls"])
    spent = sum(seconds for _, seconds in found["compiled"])
    return (
        f"import {found['import']:.2f} start {found['start']:.2f} calls {calls} s, "
        f"NVRTC {len(found['compiled'])} times {spent:.2f} s, Numba {found['numba']} times"
    )


if __name__ == "__main__":
    main()
