"""Buildings for the benchmarks: the meshes of a model, and copies of them on a grid.

    python benchmarks/buildings.py MODEL.ifc MESHES.npz

writes the meshes of a model, for a machine without IfcOpenShell.
"""

import math
import sys
import tempfile
from pathlib import Path

import numpy as np

from spatialq.data.meshes import Meshes

ALLEY = 5.0
"""Metres between copies."""


def elements(path):
    """Meshes of all elements but openings and spaces: of a model, or as written from one."""
    if Path(path).suffix == ".npz":
        with np.load(path) as kept:
            return Meshes(**kept)
    import ifcopenshell

    from spatialq.database.readers.ifc_models import read_model

    model = read_model(path, geometry="exact")
    schema = ifcopenshell.schema_by_name(model.schema)
    meshes = []
    for ifc_class, mesh in zip(
        *model.tables["elements"].select(["ifc_class", "mesh"]), strict=True
    ):
        declaration = schema.declaration_by_name(ifc_class.as_py())
        if declaration._is("IfcElement") and not declaration._is("IfcFeatureElement"):
            vertices, faces = (mesh[name].values.to_numpy() for name in ("vertices", "faces"))
            meshes.append((vertices.reshape(-1, 3), faces.reshape(-1, 3)))
    return Meshes.of(meshes)


def of_models(paths):
    """Give the name and the meshes of each model; of the demo's house if there is none."""
    if paths:
        for path in paths:
            yield path.stem, elements(path)
        return
    from spatialq.demo.house import write_house

    with tempfile.TemporaryDirectory() as folder:
        house = Path(folder) / "house.ifc"
        write_house(house)
        yield from of_models([house])


def copies(meshes, n):
    """Put n copies on a square grid."""
    size = np.ptp(meshes.vertices, axis=0) + ALLEY
    side = math.ceil(math.sqrt(n))
    shifts = np.array([(i % side, i // side, 0) for i in range(n)]) * size

    def starts(values):
        counts = np.tile(np.diff(values), n)
        return np.concatenate([[0], np.cumsum(counts)])

    return Meshes(
        (meshes.vertices[None] + shifts[:, None]).reshape(-1, 3),
        np.tile(meshes.faces, (n, 1)),
        starts(meshes.vertex_starts),
        starts(meshes.face_starts),
    )


def main():
    model, target = sys.argv[1:]
    np.savez_compressed(target, **vars(elements(model)))


if __name__ == "__main__":
    main()
