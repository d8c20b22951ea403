"""Parts of IFC models: milliseconds an element, against the recipe ExtractElements of ifcpatch.

    pip install --target FOLDER --no-deps ifcpatch
    python benchmarks/export_ifc.py MODEL.ifc ... [--rival FOLDER] [--sizes 20 200] [--out FILE]

Both run in a fresh Python process, which opens the model, takes the part for the same elements,
chosen at random, and writes it; the ratio is of these times. Milliseconds an element are without
what a process takes that only opens the model. Runs alternate, and the best of each counts. Without
ifcpatch only spatialq is measured. Without a model the script makes one: 400 walls with an opening
each.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import warnings
from datetime import UTC, datetime
from pathlib import Path

import ifcopenshell
import measure
from read_ifc import made_model

from spatialq.export.ifc import write_part
from spatialq.io.ifc.guard import checked
from spatialq.io.ifc.process import environment

RIVAL = """
import json, sys
sys.path.insert(0, sys.argv[1])
import ifcopenshell, ifcpatch

chosen = json.load(sys.stdin)
model = ifcopenshell.open(sys.argv[2])
arguments = {"input": sys.argv[2], "file": model, "recipe": "ExtractElements"}
part = ifcpatch.execute(arguments | {"arguments": [", ".join(chosen)]})
ifcpatch.write(part, sys.argv[3])
"""


def opened(source: Path) -> None:
    """Have a process open the model only."""
    code = "import sys, ifcopenshell; ifcopenshell.open(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(source)], env=environment(), check=True)


def rival(folder: Path, source: Path, chosen: list[str], target: Path) -> None:
    """Have ifcpatch write the part."""
    subprocess.run(
        [sys.executable, "-c", RIVAL, str(folder), str(source), str(target)],
        input=json.dumps(chosen).encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
        check=True,
    )


def relationships(path: Path) -> int:
    """Count what says how the objects of a model are related."""
    return len(ifcopenshell.open(str(path)).by_type("IfcRelationship"))


def compare(name: str, source: Path, size: str, folder: Path | None, rounds: int) -> dict:
    """Time both on one part of a model, print a line of the table and give its figures."""
    model = ifcopenshell.open(str(source))
    everything = sorted({each.GlobalId for each in model.by_type("IfcElement")})
    count = len(everything) if size == "all" else min(int(size), len(everything))
    chosen = random.Random(count).sample(everything, count)
    with tempfile.TemporaryDirectory() as parts:
        targets = {each: Path(parts) / f"{each}.ifc" for each in ("spatialq", "ifcpatch")}
        works = {"spatialq": lambda: write_part(source, chosen, targets["spatialq"])}
        works["opened"] = lambda: opened(source)
        if folder is not None:
            works["ifcpatch"] = lambda: rival(folder, source, chosen, targets["ifcpatch"])
        timed = measure.in_turns(works, rounds, warm_up=False)
        floor = timed.pop("opened").best
        figures = {
            each: {
                "seconds": round(timed[each].best, 3),
                "ms_an_element": round(1e3 * (timed[each].best - floor) / count, 2),
                "megabytes": round(targets[each].stat().st_size / 1e6, 2),
                "relationships": relationships(targets[each]),
            }
            for each in timed
        }
    line = f"{name:<40} {count:>6}"
    for each in figures.values():
        line += f" {each['seconds']:>9.2f} {each['ms_an_element']:>8.2f} {each['relationships']:>8}"
    result = {"model": name, "elements": count, "of": len(everything)}
    result |= {"opened_seconds": round(floor, 3), **figures}
    if folder is not None:
        result["ratio"] = round(timed["ifcpatch"].best / timed["spatialq"].best, 1)
        line += f" {result['ratio']:>6}"
    print(line, flush=True)
    return result


def main() -> None:
    """Compare on the models of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rival", type=Path, help="folder that ifcpatch is installed in")
    parser.add_argument("--sizes", nargs="+", default=["20", "200"], help="elements, or 'all'")
    parser.add_argument("--rounds", type=int, default=1)
    measure.add_arguments(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = options.rival
    if folder is None:
        print("ifcpatch is not measured: --rival names the folder that it is installed in")
    elif not (folder / "ifcpatch").is_dir():
        parser.error(f"--rival {folder}: there is no ifcpatch in it")
    print("seconds of a fresh process, ms an element without opening, relationships in the part")
    print(f"{'model':<40} {'count':>6} {'spatialq':>27} {'ifcpatch':>27} {'ratio':>6}")
    results = []
    with tempfile.TemporaryDirectory() as made:
        for path in options.models or [made_model(Path(made) / "400 walls.ifc")]:
            with checked(path) as step:
                results += [
                    compare(path.name, step.path, size, folder, options.rounds)
                    for size in options.sizes
                ]
    report = {
        "commit": options.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "ifcopenshell": ifcopenshell.version,
        "parts": results,
    }
    measure.write(options.out, "export_ifc", report)


if __name__ == "__main__":
    main()
