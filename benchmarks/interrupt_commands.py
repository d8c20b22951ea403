"""How long Ctrl-C takes to end each command, and what it leaves beside the outputs.

    python benchmarks/interrupt_commands.py [--points N] [--moments N] [NAME ...]

Each command runs once whole, then it is interrupted at several moments of its time. The longest
time from the signal to the end of the process counts. Signals are those of POSIX.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from spatialq.demo import write_world

FEATURES = "--methods pca,stat --scales 30u,60u --example-scale 200u"
COMMANDS = {
    "info": "info {in}/village.laz",
    "load": "load {in}/village.laz -d {out}/a.duckdb",
    "load ifc": "load {in}/house.ifc -d {out}/a.duckdb",
    "sql fgb": """sql "FROM read_las('{in}/village.laz')" -o {out}/a.fgb""",
    "sql gpkg": """sql "FROM read_las('{in}/village.laz')" -o {out}/a.gpkg""",
    "sql laz": """sql "FROM read_las('{in}/village.laz')" -o {out}/a.laz""",
    "sql ply": """sql "FROM read_las('{in}/village.laz')" -o {out}/a.ply""",
    "sql e57": """sql "FROM read_las('{in}/village.laz')" -o {out}/a.e57""",
    "sql parquet": """sql "FROM read_las('{in}/village.laz')" -o {out}/a.parquet""",
    "sql xlsx": """sql "FROM read_las('{in}/village.laz') LIMIT 300000" -o {out}/a.xlsx""",
    "ground": "ground {in}/village.laz -o {out}/a.laz -o {out}/a.csv -o {out}/a.png -o {out}/a.tif",
    "planes": "planes {in}/village.laz -o {out}/a.laz -o {out}/a.gpkg -o {out}/a.png",
    "lod": "lod {in}/village.laz -o {out}/a.parquet -o {out}/a.png",
    "lod in files": "lod {in}/village.laz -o {out}/a.parquet --memory 100MB",
    "features": f"features {{in}}/grid.npy -o {{out}}/a.parquet -o {{out}}/a.png {FEATURES}",
    "clash": "clash {in}/house.ifc -o {out}/a.parquet",
}


def words(command, inputs, outputs):
    """Split a command into words, with the folders in their places."""
    import shlex

    places = {"in": inputs, "out": outputs}
    return [sys.executable, "-m", "spatialq", *shlex.split(command.format_map(places))]


def seconds(command, inputs, moment=None):
    """Run a command, interrupted after some seconds; give how long it took, and from then on.

    Also what was left beside its outputs, and its exit status.
    """
    with tempfile.TemporaryDirectory() as outputs:
        started = time.perf_counter()
        with subprocess.Popen(
            words(command, inputs, outputs), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            sent = None
            try:
                _, errors = process.communicate(timeout=moment)
            except subprocess.TimeoutExpired:
                sent = time.perf_counter()
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate()
            ended = time.perf_counter()
        left = sorted(path.name for path in Path(outputs).iterdir())
    if process.returncode not in (0, 130):
        print(errors.decode(), file=sys.stderr)
    return ended - started, None if sent is None else ended - sent, left, process.returncode


def main():
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("commands", nargs="*", help="such as ground; by default all")
    parser.add_argument("--points", type=int, default=2_500_000)
    parser.add_argument("--side", type=int, default=3000, help="rows and columns of the grid")
    parser.add_argument("--moments", type=int, default=7)
    parser.add_argument("--folder", help="of the inputs, made where they are not there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        inputs = Path(arguments.folder or made)
        write_world(inputs, n_points=arguments.points)
        side = np.arange(arguments.side)
        grid = np.add.outer(np.sin(side / 9), np.cos(side / 7)).astype(np.float32)
        np.save(inputs / "grid.npy", grid)
        print("| command | whole | to the end after Ctrl-C | left |")
        print("| --- | --- | --- | --- |")
        for name, command in COMMANDS.items():
            if arguments.commands and name not in arguments.commands:
                continue
            seconds(command, inputs)  # compiles
            whole, _, _, status = seconds(command, inputs)
            if status:
                continue
            longest, moment, kept = 0.0, 0.0, set()
            for k in range(arguments.moments):
                at = whole * (k + 1) / (arguments.moments + 1)
                _, took, left, status = seconds(command, inputs, at)
                if took is not None and status:
                    longest, moment = max((longest, moment), (took, at))
                    kept |= set(left)
            print(
                f"| {name} | {whole:.1f} s | {longest:.2f} s (at {moment:.1f} s) "
                f"| {', '.join(sorted(kept))} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
