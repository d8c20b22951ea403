"""`deviation` of points round the faces of real models, against brute force."""

import numpy as np
import pytest

from spatialq.data.meshes import Meshes
from spatialq.database.readers.ifc_models import read_model

from ..conftest import real_file
from ..kernels import run
from .test_oracle import require_as_expected

MODELS = (
    "06-03-01_windows_in_curved_wall_vw.ifc",
    "AC11-Institute-Var-2-IFC.ifc",
    "AC20-FZK-Haus.ifc",
    "Duplex_A_20110907.ifc",
    "IfcOpenHouse_IFC4.ifc",
    "Office_A_20110811.ifc",
    "Schependomlaan_GEELEN-Breedplaat_V2.ifc",
    "TestModel_IFC4Add2.ifc",
    "bimwhale_ManySimpleWalls.ifc",
    "nested_mapped_item.ifc",
)
POINTS, SPREAD = 150, 0.03


def meshes_of(path):
    model = read_model(path)
    found = []
    for mesh in model.tables["elements"]["mesh"]:
        if mesh.is_valid:
            vertices, faces = (mesh[name].values.to_numpy() for name in ("vertices", "faces"))
            found.append((vertices.reshape(-1, 3), faces.reshape(-1, 3)))
    return Meshes.of(found)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_distance_and_side_are_right(model):
    meshes = meshes_of(real_file(f"data/ifc/{model}"))
    corners = meshes.vertices[meshes.global_faces]
    a, b, c = np.moveaxis(corners, 1, 0)
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    rng = np.random.default_rng(11)
    face = rng.choice(len(areas), POINTS, p=areas / areas.sum())
    # a third of the points beside edges and corners, where the side is hardest to tell
    weights = rng.dirichlet(np.ones(3), POINTS)
    weights[::3] = np.round(weights[::3] * 2) / 2
    weights /= weights.sum(axis=1, keepdims=True) + (weights.sum(axis=1, keepdims=True) == 0)
    points = np.einsum("ij,ijk->ik", weights, corners[face])
    points += rng.normal(0.0, SPREAD, points.shape)
    columns = dict(zip("xyz", np.ascontiguousarray(points.T), strict=True))
    given = {**columns, "point_id": None, "elements": meshes}
    found = run("deviation", "cpu", given, max_distance=0.1)
    triangles = np.split(corners, meshes.face_starts[1:-1])
    inside = require_as_expected(points, triangles, found, 0.1)
    assert inside > 0 or not np.any(found["orientation"] == 0)
