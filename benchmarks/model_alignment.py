"""How many misplaced models `model_alignment` finds in federations of real trades, and how fast.

python benchmarks/model_alignment.py [--data FOLDER] [--federations N] [--json FILE]

Ten federations of trades of one building of which one was turned and moved, and ten that fit. A
model is found if what brings it back is right to a millimetre and a thousandth of a degree for
each other model, and nothing else is said; of those that fit nothing may be said. Seconds are
those of the processor, of all threads, for the comparison without reading.
"""

import argparse
import json
import math
import time
import warnings
from pathlib import Path

import numpy as np
from registry import DATA
from spatialq.udfs.model_alignment.alignment import compare

import spatialq
from spatialq.data.meshes import Meshes
from spatialq.database.transport.elements import meshes_of

TRADES = {
    "bernts": "BERNTS-Staalconstructie.ifczip",
    "geelen_1": "GEELEN-Breedplaat_V1.ifc",
    "geelen_2": "GEELEN-Breedplaat_V2.ifc",
    "geelen_3": "GEELEN-Breedplaat_V3.ifc",
    "balconies": "MULTICOM-balkons.ifc",
    "floors": "ROOT-breedplaatvloeren.ifczip",
    "frames": "ROOT-houten_kozijnen.ifczip",
    "walls": "ROOT-kalkzandsteen.ifczip",
    "steel": "ROOT-staal.ifczip",
    "structure": "V_L_Constructief.ifczip",
    "xella_0": "XELLA-Begane_grond.ifc",
    "xella_1": "XELLA-1e_verdieping.ifc",
    "xella_2": "XELLA-2e_verdieping.ifc",
    "xella_3": "XELLA-3e_verdieping.ifc",
}
XELLA = ("xella_0", "xella_1", "xella_2", "xella_3")
GEELEN = ("geelen_1", "geelen_2", "geelen_3")
MOVED = [
    ("steel", ("bernts", "floors", *GEELEN), (-8.4, 10.5, 0.0), 0),
    ("bernts", ("steel", "floors"), (3.25, -7.4, 0.0), 0),
    ("walls", (*XELLA, "floors"), (0.5, 0.0, 0.0), 0),
    ("xella_1", ("walls", "xella_0", "xella_2", "xella_3"), (-12.345, 6.789, 0.35), 90),
    ("xella_2", ("walls", "frames"), (0.0, -0.025, 0.0), 0),
    ("floors", (*GEELEN, "bernts", "steel", "walls"), (11.0, 3.0, -1.2), 180),
    ("geelen_1", ("floors", "geelen_2", "geelen_3"), (-4.321, 2.5, 0.0), 0),
    ("structure", ("bernts", "steel", "floors"), (100.0, 50.0, 2.0), 270),
    ("xella_0", ("walls", "xella_1", "xella_2"), (6.0, 6.0, 0.0), 0),
    ("walls", XELLA, (0.0, 0.0, 0.6), 0),
]
"""The trade that is moved, the others, the shift, and the degrees that it is turned before."""
FITTING = [
    ("bernts", "steel", "floors"),
    XELLA,
    GEELEN,
    ("walls", *XELLA),
    ("floors", *GEELEN),
    ("walls", "floors", "steel", "frames"),
    ("xella_1", "geelen_2"),
    ("frames", "balconies", "xella_2", "geelen_3"),
    ("balconies", "bernts"),
    ("walls", "floors", "xella_1", "geelen_1", "frames"),
]
PUBLISHED = (8.4359, 10.4762, 0.0)
"""What brings the structure, as it was published, to where the others are."""
EXACT = 1e-3
"""Metres and degrees."""


def read(folder, names):
    """Read the meshes of trades that are compared."""
    found = {}
    with spatialq.connect() as con, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            path = folder / f"Schependomlaan_{TRADES[name]}"
            rows = con.execute(
                "SELECT mesh FROM read_ifc($path) "
                "WHERE len(mesh.faces) > 0 AND NOT is_no_body(ifc_class)",
                {"path": str(path)},
            ).to_arrow_table()
            found[name] = meshes_of(name, rows["mesh"].combine_chunks())
    return found


def moved(meshes, shift, degrees=0.0):
    """Turn a model about the z-axis, and then move it."""
    angle = math.radians(degrees)
    turn = np.array(
        [[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1]]
    )
    vertices = meshes.vertices @ turn.T + shift
    return Meshes(vertices, meshes.faces, meshes.vertex_starts, meshes.face_starts)


def back(shift, degrees):
    """Give the motion that undoes another one, of quarters of a turn."""
    x, y, z = shift
    for _ in range(degrees // 90):
        x, y = y, -x
    return (-x, -y, -z), -degrees


def is_found(rows, name, shift, degrees):
    """Whether all that is said is that this model was moved, and how."""
    said = [row for row in rows if row["verdict"] == "misplaced"]
    for row in said:
        if name not in (row["a_file"], row["b_file"]):
            return False
        right, turn = (shift, degrees) if row["a_file"] == name else back(shift, degrees)
        off = np.abs(np.subtract([row["dx"], row["dy"], row["dz"]], right)).max()
        if off > EXACT or abs((row["turn"] - turn + 180) % 360 - 180) > EXACT:
            return False
    return bool(said)


def timed(named):
    started = time.process_time()
    return compare(dict(sorted(named.items()))), time.process_time() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA / "ifc")
    parser.add_argument("--federations", type=int, default=10, help="of either kind")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    lost, right = MOVED[: arguments.federations], FITTING[: arguments.federations]
    names = {each for trade, others, *_ in lost for each in (trade, *others)}
    trades = read(arguments.data, sorted(names.union(*right)))
    if "structure" in trades:
        trades["structure"] = moved(trades["structure"], PUBLISHED)
    rows = []
    for trade, others, shift, degrees in lost:
        named = {name: trades[name] for name in others}
        found, seconds = timed(named | {trade: moved(trades[trade], shift, degrees)})
        rows.append(("moved", (trade, *others), is_found(found, trade, shift, degrees), seconds))
    for names_of in right:
        found, seconds = timed({name: trades[name] for name in names_of})
        is_right = all(row["verdict"] != "misplaced" for row in found)
        rows.append(("fits", names_of, is_right, seconds))
    for kind, models, is_right, seconds in rows:
        verdict = "right" if is_right else "WRONG"
        print(f"{kind:6} {verdict} {seconds:7.2f} s  {', '.join(models)}", flush=True)
    results = {}
    for kind in ("moved", "fits"):
        of_kind = [row for row in rows if row[0] == kind]
        results[kind] = {
            "federations": len(of_kind),
            "right": sum(row[2] for row in of_kind),
            "processor_seconds": [round(row[3], 2) for row in of_kind],
        }
        print(f"{kind}: {results[kind]['right']} of {results[kind]['federations']} right")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
