"""QL4BIM: construction and query times by structure, of several models, as figures 5.1 to 5.10.

Structures are made once and kept, as in the thesis (5.3.2): the R-tree of all boxes, and what each
mesh is as a solid with its clusters of triangles, in the place of an R-tree of triangle pairs for
each. The search mesh is the octant with the smallest coordinates of the largest mesh's box (5.3.3).
Queries run with the R-tree and without a broad phase, by the test of the thesis (`pairmesh`) and by
the exact one, which measures how deep a clash is, too; with both structures the pairs are the same.
Without models of its own, and without those of the tests, it takes the demo's house.
"""

import tempfile
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from buildings import elements
from measure import in_turns
from registry import DATA
from spatialq.udfs.intersects_with import Options, cpu

from spatialq.data.meshes import Meshes
from spatialq.demo.house import write_house
from spatialq.geometry import boxes, broad_phase
from spatialq.geometry.indexed_meshes import IndexedMeshes
from spatialq.geometry.prepared_meshes import PreparedMeshes
from spatialq.geometry.rtree import Tree

MODELS = (
    "IfcOpenHouse_IFC4.ifc", "Heizung_080729.ifczip", "SampleHouse4.ifczip", "AC20-FZK-Haus.ifc",
    "Duplex_A_20110907.ifc", "hvac_heating.ifczip", "Schependomlaan_XELLA-Begane_grond.ifc",
    "AC11-Institute-Var-2-IFC.ifc", "Office_A_20110811.ifc",
    "Schependomlaan_BERNTS-Staalconstructie.ifczip",
)  # fmt: skip
"""Ten models, as many as the thesis was given; two of them are of the authors that it names."""
SMALL = MODELS[:5]
METHODS = ("exact", "pairmesh")
STRUCTURES: tuple[broad_phase.Method, ...] = ("rtree", "none")
QUERIES = ("search mesh", "all pairs")
NEAR = 0.001
CORNERS = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float64)
FACES = np.array(
    [
        (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
        (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
    ],
    np.int32,
)  # fmt: skip


def add_arguments(parser):
    parser.add_argument(
        "--models", type=Path, nargs="+", help="by default those of the tests' data"
    )
    parser.add_argument("--picture", type=Path, help="SVG with the scatter plots")


def figures(chosen):
    """Measure the models, from few elements to many."""
    there = [DATA / "ifc" / name for name in (SMALL if chosen.small else MODELS)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        house = Path(folder) / "house.ifc"
        write_house(house)
        measured(elements(house), 1)  # compiles
        for path in chosen.models or [path for path in there if path.exists()] or [house]:
            row = {"model": path.stem, **measured(elements(path), chosen.repeat)}
            print(*(f"{name}={value}" for name, value in row.items()), flush=True)
            rows.append(row)
    rows.sort(key=lambda row: row["elements"])
    if chosen.picture:
        chosen.picture.write_text(picture(rows), encoding="utf-8")
    return {"rows": rows}


def measured(plain, repeat):
    """All figures of a model: processor milliseconds, the best of so many rounds."""
    meshes = IndexedMeshes.over(plain)
    meshes.index()
    search = search_mesh(meshes)
    works = {
        "boxes": lambda: boxes.of(plain),
        "rtree": lambda: Tree.of(meshes.boxes),
        "solids": lambda: PreparedMeshes(plain, meshes.boxes),
    }
    box = boxes.of(search)
    for name in STRUCTURES:
        tree = meshes.tree if name == "rtree" else None
        works[f"{name} search candidates"] = partial(
            broad_phase.pairs, box, meshes.boxes, NEAR, name, None, tree
        )
        works[f"{name} all candidates"] = partial(
            broad_phase.pairs, meshes.boxes, None, NEAR, name, tree
        )
    for method, name in product(METHODS, STRUCTURES):
        options = Options(method=method, broad_phase=name)
        works[f"{method} {name} search mesh"] = partial(cpu.run, search, meshes, options=options)
        works[f"{method} {name} all pairs"] = partial(cpu.run, meshes, options=options)
    timed = in_turns(works, repeat, warm_up=False, keep=True)
    results = {name: each.results[-1] for name, each in timed.items()}
    for method, what, column in product(METHODS, QUERIES, ("a", "b", "relation")):
        one, other = (results[f"{method} {name} {what}"][column] for name in STRUCTURES)
        np.testing.assert_array_equal(one, other)
    return {
        "elements": len(plain),
        "triangles": len(plain.faces),
        "search_candidates": len(results["rtree search candidates"][0]),
        "search_found": len(results["exact rtree search mesh"]["a"]),
        "candidates": len(results["rtree all candidates"][0]),
        "all_pairs": len(results["none all candidates"][0]),
        "intersections": len(results["exact rtree all pairs"]["a"]),
        "intersections_pairmesh": len(results["pairmesh rtree all pairs"]["a"]),
        "processor_ms": {name: round(1e3 * each.best_processor, 4) for name, each in timed.items()},
    }


def search_mesh(meshes):
    """The octant with the smallest coordinates of the box of the largest mesh."""
    size = meshes.boxes[:, 3:] - meshes.boxes[:, :3]
    largest = np.where(size > 0, size, 0).prod(axis=1).argmax()
    low = meshes.boxes[largest, :3]
    return Meshes.of([(low + CORNERS * size[largest] / 2, FACES)])


MESH, PAIRS = (tuple(f"pairmesh {name} {query}" for name in STRUCTURES) for query in QUERIES)
PANELS = (
    ("R-tree made (5.3)", "elements", ("rtree",)),
    ("search mesh (5.5, 5.7)", "elements", MESH),
    ("candidates of all (5.8)", "elements", ("rtree all candidates", "none all candidates")),
    ("all intersections (5.9)", "elements", PAIRS),
)
COLOURS = ("#00796b", "#c62828")
SIDE, MARGIN = 210, 42


def picture(rows):
    """Draw the scatter plots, both axes in powers of ten: with the R-tree, and without."""
    marks = []
    for number, (title, across, names) in enumerate(PANELS):
        left = MARGIN + number * (SIDE + MARGIN)
        x = np.log10([row[across] for row in rows])
        y = np.log10([[row["processor_ms"][name] for name in names] for row in rows])
        spans = [(np.floor(values.min()), np.ceil(values.max())) for values in (x, y)]

        def place(value, span, start, length):
            return start + length * (value - span[0]) / max(span[1] - span[0], 1)

        marks.append(
            f'<rect x="{left}" y="30" width="{SIDE}" height="{SIDE}" fill="none" stroke="#888"/>'
            f'<text x="{left}" y="20">{title}</text>'
        )
        for power in np.arange(spans[0][0], spans[0][1] + 1):
            at = place(power, spans[0], left, SIDE)
            marks.append(f'<text x="{at:.0f}" y="{SIDE + 46}">{10**power:g}</text>')
        for power in np.arange(spans[1][0], spans[1][1] + 1):
            at = place(power, spans[1], SIDE + 30, -SIDE)
            marks.append(f'<text x="{left - 38}" y="{at:.0f}">{10**power:g}</text>')
        for k in range(len(names)):
            for one, other in zip(x, y[:, k], strict=True):
                cx = place(one, spans[0], left, SIDE)
                cy = place(other, spans[1], SIDE + 30, -SIDE)
                marks.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="4" fill="{COLOURS[k]}"/>')
    width = MARGIN + len(PANELS) * (SIDE + MARGIN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {SIDE + 80}" '
        f'font-family="sans-serif" font-size="12" fill="#555">\n'
        + "\n".join(marks)
        + f'\n<text x="{MARGIN}" y="{SIDE + 70}">processor milliseconds by elements of the model: '
        f'<tspan fill="{COLOURS[0]}">with the R-tree</tspan>, '
        f'<tspan fill="{COLOURS[1]}">without</tspan></text>\n</svg>\n'
    )
