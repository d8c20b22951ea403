"""How long reading an IFC model takes, in each way, against IfcOpenShell shaping each product.

    python benchmarks/read_ifc.py [MODEL.ifc ...] [--rounds 3] [--json FILE --commit HASH]

Every run is a fresh Python process, whose own start does not count; imports do. *Bare* has
IfcOpenShell's kernel make the triangles of one product after the other in world coordinates, with
the settings of `read_ifc`, and nothing else: no facts, no checks, no table. *Exact* and *auto* are
whole calls of `read_model`; *again* is a read from the cache on disk. Runs alternate; printed are
medians of wall time and of processor time, that of all processes of a call together. Without a
model the script makes one: 400 walls with an opening each. A model that takes *bare* longer than
`--patience` seconds is only read with 'auto'.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BARE = """
import time; began = time.perf_counter()
import sys
import ifcopenshell
import ifcopenshell.geom
from spatialq.io.ifc.guard import checked
from spatialq.io.ifc.worker import SETTINGS, geometry_settings
from pathlib import Path

count = 0
with checked(Path(sys.argv[1])) as step:
    model = ifcopenshell.open(str(step.path), format=".ifc")
    kernel = ifcopenshell.geom.kernel(geometry_settings(SETTINGS), model)
    for product in model.by_type("IfcProduct"):
        if product.Representation:
            try:
                count += len(kernel.create_shape(product).geometry.faces_buffer) > 0
            except Exception:
                pass
print(count, time.perf_counter() - began)
"""

READ = """
import time; began = time.perf_counter()
import sys
from pathlib import Path
from spatialq.io.ifc.cache import read_models

(model,) = read_models([Path(sys.argv[1])], geometry=sys.argv[2])
rows = model.tables["elements"].num_rows
spent = time.perf_counter() - began
print(rows, spent)
"""

WAYS = {
    "bare": (BARE, "", "off"),
    "exact": (READ, "exact", "off"),
    "auto": (READ, "auto", "off"),
    "again": (READ, "auto", "on"),
}


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


def run(way: str, path: Path, cache: Path, patience: float) -> dict[str, float] | None:
    """Run one way in a fresh Python; None if it takes too long."""
    code, geometry, switch = WAYS[way]
    environment = {"SPATIALQ_CACHE_DIR": str(cache), "SPATIALQ_IFC_CACHE": switch}
    before = os.times()
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, str(path), geometry],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | environment,
            timeout=patience,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return None
    after = os.times()
    rows, wall = done.stdout.split()[-2:]
    return {
        "rows": int(rows),
        "wall_s": float(wall),
        "cpu_s": sum(after[2:4]) - sum(before[2:4]),
    }


def compare(path: Path, rounds: int, patience: float) -> dict[str, object]:
    """Time all ways on one model and print a line of the table."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    too_long: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        run("again", path, Path(folder), 3600)  # fills the cache
        for _ in range(rounds):
            for way in WAYS:
                if way not in too_long:
                    found = run(way, path, Path(folder), patience)
                    if found is None:
                        too_long |= {"bare", "exact"}
                    else:
                        runs[way].append(found)
    medians = {
        way: {name: statistics.median(each[name] for each in found) for name in found[0]}
        for way, found in runs.items()
        if found
    }
    cells = [path.name[:36].ljust(36), f"{medians['auto']['rows']:>6.0f}"]
    for way in WAYS:
        each = medians.get(way)
        cells.append(f"{each['wall_s']:>7.2f} {each['cpu_s']:>7.2f}" if each else f"{'-':>15}")
    if "exact" in medians:
        cells.append(f"{medians['exact']['cpu_s'] / medians['bare']['cpu_s']:>6.2f}")
        cells.append(f"{medians['bare']['wall_s'] / medians['auto']['wall_s']:>6.1f}")
    print(*cells, flush=True)
    return {"model": path.name, "bytes": path.stat().st_size, **medians}


def main() -> None:
    """Compare on the models of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--patience", type=float, default=60.0, help="seconds")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--commit", help="of the code that is measured, for the file")
    options = parser.parse_args()
    print("wall and processor seconds in fresh processes, without the start of Python")
    titles = "".join(f"{way:>16}" for way in WAYS)
    print(f"{'model':<36} {'rows':>6}{titles}  exact/bare (CPU), bare/auto (wall)")
    with tempfile.TemporaryDirectory() as folder:
        models = options.models or [made_model(Path(folder) / "400 walls.ifc")]
        found = [compare(path, options.rounds, options.patience) for path in models]
    if options.json:
        about = {
            "function": "read_ifc",
            "commit": options.commit,
            "date": time.strftime("%Y-%m-%d"),
            "cpu": platform.processor() or platform.machine(),
            "cpu_threads": os.cpu_count(),
            "load": os.getloadavg()[0],
            "models": found,
        }
        options.json.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
