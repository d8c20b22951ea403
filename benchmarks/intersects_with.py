"""`intersects_with` against IfcOpenShell's tree of the same meshes; ratios in one run.

    python benchmarks/intersects_with.py [MODEL.ifc ...] [--copies 1 50] [--growth 1 10 50 200]

All pairs of elements with a common interior, on models and on copies of them on a grid. Reading
and tessellation are not counted, building the tree and everything else is. IfcOpenShell's
intersection (2 mm, all pairs) answers the same question, if less exactly; its collision only finds
surfaces that cross. SQL is the macro over a table of the same elements. `--growth` adds copies of
the last model without the rival; its last column is the time over n log n, n triangles, relative
to the first line. Without a model, the demo's house is taken.
"""

import argparse
import math
from pathlib import Path

import ifcopenshell
import ifcopenshell.geom
import ifcopenshell.guid
import ifcopenshell.ifcopenshell_wrapper as wrapper
import pyarrow as pa
from buildings import copies, of_models
from measure import in_turns
from spatialq.udfs.intersects_with import Options, cpu

import spatialq
from spatialq.io.ifc.worker import SETTINGS
from spatialq.runtime.threads import n_threads


class Rival:
    """The same meshes as elements of IfcOpenShell."""

    def __init__(self, meshes):
        settings = ifcopenshell.geom.settings()
        for name, value in SETTINGS.items():
            settings.set(name, value)
        file = ifcopenshell.file(schema="IFC4")
        ifc_class = "IfcBuildingElementProxy"
        here = wrapper.matrix4()
        self.products, self.elements = [], []
        for i in range(len(meshes)):
            product = file.create_entity(ifc_class, GlobalId=ifcopenshell.guid.new())
            (v0, v1), (f0, f1) = meshes.vertex_starts[i : i + 2], meshes.face_starts[i : i + 2]
            vertices = meshes.vertices[v0:v1].ravel().tolist()
            faces = meshes.faces[f0:f1].ravel().tolist()
            edges, normals, uvs, materials, edge_items = [], [], [], [], []
            one_item, no_material = [0] * int(f1 - f0), [-1] * int(f1 - f0)
            shape = wrapper.triangulation(
                settings, ifc_class, str(i), vertices, faces, edges, normals, uvs, no_material,
                materials, one_item, edge_items,
            )  # fmt: skip
            element = wrapper.element(
                settings, product.id(), -1, "", ifc_class, product.GlobalId, "Body", here,
                product,
            )  # fmt: skip
            self.products.append(product)
            self.elements.append(wrapper.triangulation_element(element, shape))

    def tree(self):
        tree = ifcopenshell.geom.tree(backend="opencascade.trianglebvh")
        for element in self.elements:
            tree.add_element(element)
        return tree

    def intersection(self):
        return self.tree().clash_intersection_many(
            self.products, self.products, tolerance=0.002, check_all=True
        )

    def collision(self):
        return self.tree().clash_collision_many(self.products, self.products, allow_touching=False)


def table(con, meshes):
    """Make the table `elements`."""
    vertices = pa.ListArray.from_arrays(3 * meshes.vertex_starts, meshes.vertices.ravel())
    faces = pa.ListArray.from_arrays(3 * meshes.face_starts, meshes.faces.ravel())
    mesh = pa.StructArray.from_arrays([vertices, faces], ["vertices", "faces"])
    rows = range(len(meshes))
    arrow = pa.table(
        {
            "global_id": [f"{row:022}" for row in rows],
            "ifc_class": ["IfcBuildingElementProxy" for _ in rows],
            "mesh": mesh,
        }
    )
    con.from_arrow(arrow).create("elements")


def line(name, seconds, kernel, pairs=""):
    print(f"    {name:32} {seconds:9.4f} s {seconds / kernel:8.2f} of kernel   {pairs}")


def compare(meshes, arguments):
    def kernel():
        return cpu.run(meshes, options=Options())

    tasks = {
        "kernel": kernel,
        "kernel, touching too": lambda: cpu.run(meshes, options=Options(relations=True)),
    }
    with spatialq.connect() as con:
        if arguments.sql:
            con.execute("SET enable_progress_bar = false")
            table(con, meshes)
            query = "FROM intersects_with('elements', device := 'cpu')"
            tasks["SQL"] = lambda: con.sql(query).fetchall()
        if arguments.rival:
            rival = Rival(meshes)
            tasks["IfcOpenShell, tree"] = rival.tree
            tasks["IfcOpenShell, intersection"] = rival.intersection
            tasks["IfcOpenShell, collision"] = rival.collision
        timed = in_turns(tasks, arguments.repeat, warm_up=False, keep=True)
    for name, each in timed.items():
        result, best = each.results[-1], timed["kernel"].best
        if isinstance(result, dict):
            line(name, each.best, best, f"{result['a'].size:,} pairs")
        elif name == "IfcOpenShell, tree":
            line(name, each.best, best)
        else:
            line(name, each.best, best, f"{len(result):,} pairs")


def grow(meshes, counts, repeat):
    print(f"growth, {n_threads()} threads")
    first = None
    for n in counts:
        many = copies(meshes, n)
        work = {"kernel": lambda many=many: cpu.run(many, options=Options())}
        timed = in_turns(work, repeat, warm_up=False, keep=True)["kernel"]
        seconds, result = timed.best, timed.results[-1]
        triangles = len(many.faces)
        rate = seconds / (triangles * math.log(triangles))
        first = first or rate
        print(
            f"    {len(many):9,} elements {triangles:12,} triangles {len(result['a']):9,} pairs "
            f"{seconds:9.4f} s {rate / first:6.2f} of n log n"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--copies", type=int, nargs="+", default=[1])
    parser.add_argument("--growth", type=int, nargs="+", default=[])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rival", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--sql", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args()
    models = [*of_models(arguments.models)]
    for relations in (False, True):  # compiles
        cpu.run(models[0][1], options=Options(relations=relations))
    for n in arguments.copies:
        for name, meshes in models:
            many = copies(meshes, n)
            print(f"{name} x {n}: {len(many):,} elements, {len(many.faces):,} triangles")
            compare(many, arguments)
    if arguments.growth:
        grow(models[-1][1], arguments.growth, arguments.repeat)


if __name__ == "__main__":
    main()
