"""How long clashes of ten models take when one of them is replaced, against all of them anew.

python benchmarks/clash_revisions.py [--data FOLDER] [--models N] [--moved N] [--out FOLDER]

Ten trades of one building are kept in a project. Of one of them a few elements are moved, and the
list, its groups and its BCF are made again: in the project, where the BCF is written over that of
the run before, and in a full run. Meshes are read before, so that the seconds are those after the
tessellation. Rows of both must be the same, and the BCF that of all pictures drawn anew.
"""

import argparse
import json
import shutil
import tempfile
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path

import ifcopenshell
import ifcopenshell.util.unit
from measure import add_arguments
from registry import DATA

from spatialq.errors import FileWarning
from spatialq.io.ifc.cache import read_models
from spatialq.workflows.clash import find_clashes
from spatialq.workflows.clash_files import Asked, groups_sql, query_of

REPLACED = "GEELEN-Breedplaat_V1.ifc"
OTHERS = (
    "XELLA-1e_verdieping.ifc", "XELLA-Begane_grond.ifc", "XELLA-2e_verdieping.ifc",
    "XELLA-3e_verdieping.ifc", "MULTICOM-balkons.ifc", "GEELEN-Breedplaat_V2.ifc",
    "GEELEN-Breedplaat_V3.ifc", "ROOT-staal.ifczip", "ROOT-kalkzandsteen.ifczip",
)  # fmt: skip
SHIFT = 0.05
"""Metres."""


def move(path, number):
    """Raise the first elements of a model that have a shape and a placement of their own."""
    model = ifcopenshell.open(str(path))
    scale = ifcopenshell.util.unit.calculate_unit_scale(model)
    shaped = [
        each
        for each in model.by_type("IfcElement")
        if each.Representation is not None and each.ObjectPlacement.RelativePlacement is not None
    ]
    for each in shaped[:number]:
        old = each.ObjectPlacement.RelativePlacement
        x, y, z = old.Location.Coordinates
        point = model.createIfcCartesianPoint((x, y, z + SHIFT / scale))
        place = model.createIfcAxis2Placement3D(point, old.Axis, old.RefDirection)
        each.ObjectPlacement.RelativePlacement = place
    model.write(str(path))


def timed(work):
    """Give what work gives, with the seconds of the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    given = work()
    return given, time.perf_counter() - wall, time.process_time() - cpu


def run(models, project, *archives):
    """Find clashes, their groups and a BCF; give the rows of the first two and the seconds.

    The BCF is written to each of `archives`; the seconds are those of the first.
    """
    from spatialq.database.table_files import write_table

    seconds = {}
    con, seconds["list"], seconds["list cpu"] = timed(lambda: find_clashes(models, project=project))
    with con:
        per, reach = "'element'", 1.0
        con.execute(
            "CREATE TABLE named AS FROM grouped_clashes('clashes', per := $per)", {"per": "element"}
        )
        con.execute("CREATE OR REPLACE TABLE clashes AS FROM named")
        groups, seconds["groups"], seconds["groups cpu"] = timed(
            lambda: con.execute(groups_sql(per, reach)).fetchall()
        )
        said = [] if project is None else ["clash", "status", "assignee"]
        asked = Asked(said, per, reach, "groups", matrix=None, has_rules=False, has_volumes=False)
        query, _ = query_of(con, ".bcf", asked)
        for path in reversed(archives):
            _, seconds["bcf"], seconds["bcf cpu"] = timed(
                lambda path=path: write_table(con, query, path)
            )
        rows = con.execute("SELECT * FROM clashes").description
        ours = {"clash", "status", "assignee", "first_run", "last_run", "a_element", "b_element",
                "comments"}  # fmt: skip
        names = ", ".join(name for name, *_ in rows if name not in ours)
        found = con.execute(f"SELECT {names} FROM clashes").fetchall()
    return found, groups, seconds


def main():
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA / "ifc")
    parser.add_argument("--models", type=int, default=1 + len(OTHERS))
    parser.add_argument("--moved", type=int, default=5)
    add_arguments(parser)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", FileWarning)
    paths = [arguments.data / f"Schependomlaan_{name}" for name in OTHERS[: arguments.models - 1]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        replaced = folder / REPLACED
        shutil.copy(arguments.data / f"Schependomlaan_{REPLACED}", replaced)
        models = [*paths, replaced]
        project = folder / "clashes.duckdb"
        archives = [folder / name for name in ("live.bcf", "anew.bcf")]
        run(models, project, archives[0])
        move(replaced, arguments.moved)
        read_models(models, geometry="auto")
        full = run(models, None, folder / "full.bcf")
        live = run(models, project, *archives)
        is_same = archives[0].read_bytes() == archives[1].read_bytes()
    result = {
        "commit": arguments.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "models": len(models),
        "clashes": len(full[0]),
        "groups": len(full[1]),
        "rows are equal": live[0] == full[0] and live[1] == full[1],
        "bytes of the BCF are equal": is_same,
        "full": {name: round(each, 3) for name, each in full[2].items()},
        "project": {name: round(each, 3) for name, each in live[2].items()},
    }
    print(json.dumps(result, indent=1))
    if arguments.out:
        path = arguments.out / "clash_revisions.json"
        path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
