"""Experiments of the publications, repeated here: docs/papers/ says which and what they show.

    python -m benchmarks.papers owm [--small] [--out FOLDER]
    python -m benchmarks.papers lod [--small] [--out FOLDER] [--pictures FOLDER]
    python -m benchmarks.papers planes [--small] [--out FOLDER]
    python -m benchmarks.papers pops [--small] [--out FOLDER] [--picture FILE.svg]
    python -m benchmarks.papers ql4bim [--small] [--out FOLDER] [--picture FILE.svg]

`--small` takes the inputs that two cores are done with in less than five minutes. A report has the
commit, the machine, the command and the processor seconds of the whole experiment.
"""

import argparse
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # as where Python is started with a script

import measure
import paper_lod
import paper_owm
import paper_planes
import paper_pops
import paper_ql4bim

from spatialq.planner.devices import cpu_name
from spatialq.runtime.threads import n_threads

PAPERS = {
    "owm": paper_owm,
    "ql4bim": paper_ql4bim,
    "pops": paper_pops,
    "lod": paper_lod,
    "planes": paper_planes,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = parser.add_subparsers(dest="name", required=True)
    for name, paper in PAPERS.items():
        part = names.add_parser(name, help=paper.__doc__.partition("\n")[0])
        part.add_argument("--small", action="store_true", help="less input")
        part.add_argument("--repeat", type=int, default=3)
        measure.add_arguments(part)
        paper.add_arguments(part)
    chosen = parser.parse_args()
    processor = time.process_time()
    rows = PAPERS[chosen.name].figures(chosen)
    report = {
        "experiment": chosen.name,
        "command": " ".join(["python -m benchmarks.papers", *sys.argv[1:]]),
        "commit": chosen.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {"cpu": cpu_name(), "threads": n_threads()},
        "processor_seconds": round(time.process_time() - processor, 1),
        **rows,
    }
    measure.write(chosen.out, f"paper_{chosen.name}", report)
    print(f"{report['processor_seconds']} processor seconds")


if __name__ == "__main__":
    main()
