"""How long reading an IFC model takes, against IfcOpenShell's bare iterator.

    python benchmarks/read_ifc.py [MODEL.ifc ...]

Both run in a fresh Python process with the same geometry settings, and the start of Python and of
IfcOpenShell counts for both. The bare run only makes the triangles: no attributes, properties or
relations, no checks, no table. Runs alternate, and the median of each is printed. Without a model
the script makes one: 400 walls with an opening each.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BARE = """
import sys
import ifcopenshell
import ifcopenshell.geom
from spatialq.io.ifc.worker import SETTINGS

settings = ifcopenshell.geom.settings()
for name, value in SETTINGS.items():
    settings.set(name, value)
model = ifcopenshell.open(sys.argv[1])
count = 0
for shape in ifcopenshell.geom.iterator(settings, model, 1):
    count += bool(shape.geometry.verts_buffer and shape.geometry.faces_buffer)
print(count)
"""

READ = """
import sys
from spatialq.io.ifc.model import read_model

workers = int(sys.argv[2]) or None
print(read_model(sys.argv[1], workers=workers).tables["elements"].num_rows)
"""


def made_model(path: Path) -> Path:
    """Write a model of 400 walls with an opening each."""
    import ifcopenshell.api.context
    import ifcopenshell.api.feature
    import ifcopenshell.api.geometry
    import ifcopenshell.api.project
    import ifcopenshell.api.root
    import ifcopenshell.api.unit

    model = ifcopenshell.api.project.create_file()
    create = ifcopenshell.api.root.create_entity
    create(model, ifc_class="IfcProject", name="Benchmark")
    length = ifcopenshell.api.unit.add_si_unit(model, unit_type="LENGTHUNIT")
    ifcopenshell.api.unit.assign_unit(model, units=[length])
    context = ifcopenshell.api.context.add_context(model, context_type="Model")
    body = ifcopenshell.api.context.add_context(
        model, context_type="Model", context_identifier="Body", parent=context
    )
    for i in range(400):
        pair = []
        for ifc_class, sizes in (("IfcWall", (4, 3, 0.2)), ("IfcOpeningElement", (1, 2, 0.2))):
            product = create(model, ifc_class=ifc_class, name=f"{ifc_class} {i}")
            shape = ifcopenshell.api.geometry.add_wall_representation(
                model,
                context=body,
                length=sizes[0],
                height=sizes[1],
                thickness=sizes[2],
            )
            ifcopenshell.api.geometry.assign_representation(
                model, product=product, representation=shape
            )
            matrix = [[1, 0, 0, 1.0 * len(pair)], [0, 1, 0, i], [0, 0, 1, 0], [0, 0, 0, 1]]
            ifcopenshell.api.geometry.edit_object_placement(model, product=product, matrix=matrix)
            pair.append(product)
        ifcopenshell.api.feature.add_feature(model, feature=pair[1], element=pair[0])
    model.write(str(path))
    return path


def seconds(code: str, *arguments: object) -> tuple[float, int]:
    """Run code in a fresh Python and give the wall time and the number that it prints."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began, int(done.stdout.split()[-1])


def compare(path: Path, rounds: int) -> None:
    """Print one line of the table."""
    runs: dict[str, list[float]] = {"bare": [], "one": [], "all": []}
    rows = {}
    for _ in range(rounds):
        for name, code, workers in (("bare", BARE, 0), ("one", READ, 1), ("all", READ, 0)):
            spent, rows[name] = seconds(code, path, workers)
            runs[name].append(spent)
    bare, one, everything = (statistics.median(runs[name]) for name in ("bare", "one", "all"))
    print(
        f"{path.name:<36} {rows['bare']:>6} {rows['all']:>6} {bare:>8.2f} {one:>8.2f} "
        f"{one / bare:>6.2f} {everything:>8.2f} {everything / bare:>6.2f}",
        flush=True,
    )


def main() -> None:
    """Compare on the models of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    print("wall seconds in fresh processes; 'ratio' is against the bare iterator of the same run")
    print(
        f"{'model':<36} {'shapes':>6} {'rows':>6} {'bare':>8} {'1 worker':>8} {'ratio':>6} "
        f"{'workers':>8} {'ratio':>6}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for path in options.models or [made_model(Path(folder) / "400 walls.ifc")]:
            compare(path, options.rounds)


if __name__ == "__main__":
    main()
