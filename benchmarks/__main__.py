"""Run all benchmarks of a kind, each in a process of its own.

python benchmarks {cpu,gpu} [NAME ...]
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from registry import BENCHMARKS, CLOUD_POINTS, DATA, arguments


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=["cpu", "gpu"])
    parser.add_argument("names", nargs="*", help="of scripts; by default all")
    given = parser.parse_args()
    failed = []
    for each in BENCHMARKS:
        if each.gpu != (given.kind == "gpu") or (given.names and each.script not in given.names):
            continue
        print(f"\n== {each.script} {each.full}", flush=True)
        if each.data and not (DATA / each.data).exists():
            print(f"left out: there is no {DATA / each.data}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            script = Path(__file__).with_name(f"{each.script}.py")
            options = arguments(each, each.full, Path(folder), CLOUD_POINTS)
            if subprocess.run([sys.executable, script, *options], check=False).returncode:
                failed.append(each.script)
    if failed:
        sys.exit(f"benchmarks that failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
