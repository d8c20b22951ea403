"""How exact `penetration` and `volume` of `intersects_with` are, on generated and real pairs.

python benchmarks/intersects_with_accuracy.py [--pairs N] [--data FOLDER] [--json FILE]

Half of the pairs are generated: boxes, prisms, pipes and hulls of random points, turned and moved
until they meet. The others are drawn from all pairs of closed elements of real models whose
interiors meet. The penetration of a pair is judged by points of the common part that manifold3d
makes: the farthest of those that are sampled, from which a search goes on, is a bound from below,
with exact distances to the triangles; and by a bound from above: that with which a second search
in cells ends, which starts from nothing, or what the first one guarantees unless it was given up,
whichever is lower. The volume is judged by that of manifold3d, of the meshes as they are. A
penetration is right if it differs from both bounds by no more than 0.1 mm or 1 %, a volume by no
more than 1 %, or by 0.1 mm times the surface of the common part.
"""

import argparse
import json
from pathlib import Path

import manifold3d
import numpy as np
from registry import DATA
from spatialq.udfs.intersects_with import Options, cpu
from spatialq.udfs.intersects_with.cells import WORK, accurate
from spatialq.udfs.intersects_with.penetration import MAX_CELLS, penetration

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes
from spatialq.geometry.prepared_meshes import PreparedMeshes

MODELS = (
    "AC20-FZK-Haus.ifc",
    "Duplex_A_20110907.ifc",
    "AC11-Institute-Var-2-IFC.ifc",
    "Schependomlaan_BERNTS-Staalconstructie.ifczip",
    "Schependomlaan_ROOT-breedplaatvloeren.ifczip",
    "Schependomlaan_ROOT-kalkzandsteen.ifczip",
    "Schependomlaan_ROOT-staal.ifczip",
    "Schependomlaan_XELLA-Begane_grond.ifc",
)
"""Those of Schependomlaan are trades of one building, and together one model here."""
MOST_TRIANGLES = 400
"""Of both elements of a real pair: the distances of samples are those to all triangles."""
SAMPLES = 800
CENTRES, SPREAD, ROUNDS = 12, 16, 14
"""The best samples, points tried around each, and how often."""
ABSOLUTE, RELATIVE = 1e-4, 0.01
DEPTH = 1e-3
"""Metres: the tolerance of the pairs, shallower ones are none."""
OVERLAP = 2
"""Code of the first relation with a common interior."""


def solid(mesh):
    """Make the solid of manifold3d; None where a mesh is none."""
    places, at = np.unique(mesh[0], axis=0, return_inverse=True)
    faces = at.reshape(-1)[mesh[1]].astype(np.uint64)
    made = manifold3d.Manifold(manifold3d.Mesh64(np.ascontiguousarray(places), faces))
    return made if made.status() == manifold3d.Error.NoError and made.volume() > 0 else None


def mesh_of(body):
    made = body.to_mesh64()
    return made.vert_properties[:, :3].copy(), made.tri_verts.astype(np.int64)


def distances(points, mesh):
    """Give the distance of each point from a surface: points by triangles at once."""
    a, b, c = (mesh[0][mesh[1][:, k]] for k in range(3))
    u, v = b - a, c - a
    normal = np.cross(u, v)
    area = np.linalg.norm(normal, axis=1)
    u, v, a, b, c = u[area > 0], v[area > 0], a[area > 0], b[area > 0], c[area > 0]
    unit = normal[area > 0] / area[area > 0, None]
    p = points[:, None] - a
    height = np.abs(np.einsum("ijk,jk->ij", p, unit))
    uu, uv, vv = (np.einsum("ij,ij->i", x, y) for x, y in ((u, u), (u, v), (v, v)))
    pu, pv = (np.einsum("ijk,jk->ij", p, x) for x in (u, v))
    whole = uu * vv - uv * uv
    s, t = (vv * pu - uv * pv) / whole, (uu * pv - uv * pu) / whole
    found = np.where((s >= 0) & (t >= 0) & (s + t <= 1), height, np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        along, q = end - start, points[:, None] - start
        share = np.clip(np.einsum("ijk,jk->ij", q, along) / (along * along).sum(axis=1), 0, 1)
        off = q - share[..., None] * along
        found = np.minimum(found, np.sqrt((off * off).sum(axis=2)))
    return found.min(axis=1)


def are_inside(points, mesh):
    """Whether points are inside a closed mesh: by the solid angles of its triangles."""
    a, b, c = (mesh[0][mesh[1][:, k]] - points[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(each, axis=2) for each in (a, b, c))
    upper = np.einsum("ijk,ijk->ij", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("ijk,ijk->ij", p, q) for p, q in ((a, b), (b, c), (c, a)))
    angle = 2 * np.arctan2(upper, la * lb * lc + ab * lc + bc * la + ca * lb)
    return np.abs(angle.sum(axis=1)) > 2 * np.pi


def sampled(a, b, common, rng):
    """Find a point of the common part that is far from the surface of one: a bound from below."""
    low, high = common[0].min(axis=0), common[0].max(axis=0)
    corners = common[0][common[1]]
    sizes = np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    chosen = corners[rng.choice(len(corners), SAMPLES, p=sizes / sizes.sum())]
    on_surface = np.einsum("ij,ijk->ik", rng.dirichlet([1, 1, 1], SAMPLES), chosen)
    anywhere = rng.uniform(low, high, (SAMPLES, 3))
    points = np.concatenate([common[0], on_surface, anywhere[are_inside(anywhere, common)]])

    def reach(places):
        return np.maximum(distances(places, a), distances(places, b))

    found = reach(points)
    step = (high - low) / 10
    for _ in range(ROUNDS):
        best = np.argsort(found)[-CENTRES:]
        moved = np.repeat(points[best], SPREAD, axis=0)
        moved = moved + rng.normal(0, 1, moved.shape) * step
        moved = moved[are_inside(moved, common)]
        points = np.concatenate([points[best], moved])
        found = np.concatenate([found[best], reach(moved)])
        step = step * 0.65
    return float(found.max())


def generated(rng):
    """Draw a body: a box, a prism, a pipe, or a hull, turned in any way or only about z."""
    size = 10 ** rng.uniform(-1.3, 0.3, 3)
    kind = rng.integers(4)
    if kind == 0:
        body = manifold3d.Manifold.cube(size.tolist())
    elif kind == 1:
        body = manifold3d.Manifold.cylinder(size[0], size[1], size[2], int(rng.integers(5, 24)))
    elif kind == 2:
        sides = int(rng.integers(8, 24))
        outer = manifold3d.Manifold.cylinder(2.0, size[0], size[0], sides)
        inner = manifold3d.Manifold.cylinder(4.0, 0.9 * size[0], 0.9 * size[0], sides)
        body = outer - inner.translate([0.0, 0.0, -1.0])
    else:
        body = manifold3d.Manifold.hull_points(rng.normal(size=(rng.integers(5, 14), 3)) * size)
    turn = [0.0, 0.0, rng.uniform(0, 360)] if rng.random() < 0.5 else rng.uniform(0, 360, 3)
    vertices, faces = mesh_of(body.rotate([float(each) for each in turn]))
    return vertices + rng.uniform(-0.6, 0.6, 3), faces


def generated_pairs(rng):
    while True:
        yield "generated", generated(rng), generated(rng)


def real_pairs(folder, rng):
    """Draw pairs whose interiors meet of the models that are there, in any order."""
    from spatialq.database.transport.elements import meshes_of
    from spatialq.io.ifc.cache import read_models

    groups = {}
    for name in MODELS:
        if (folder / name).exists():
            groups.setdefault(name.partition("_")[0], []).append(folder / name)
    found = []
    for name, paths in groups.items():
        rows = [model.tables["elements"] for model in read_models(paths, geometry="auto")]
        parts = [meshes_of(name, each["mesh"].combine_chunks()) for each in rows]
        meshes = [mesh for part in parts for mesh in listed(part)]
        near = cpu.run(Meshes.of(meshes), options=Options(tolerance=DEPTH))
        closed = ~near["a_open"] & ~near["b_open"]
        pairs = zip(near["a"][closed].tolist(), near["b"][closed].tolist(), strict=True)
        found += [
            (name, meshes[i], meshes[j])
            for i, j in pairs
            if len(meshes[i][1]) + len(meshes[j][1]) <= MOST_TRIANGLES
        ]
    for k in rng.permutation(len(found)):
        yield found[k]


def listed(meshes):
    for k in range(len(meshes)):
        vertices = slice(*meshes.vertex_starts[k : k + 2])
        faces = slice(*meshes.face_starts[k : k + 2])
        yield meshes.vertices[vertices], meshes.faces[faces].astype(np.int64)


def judged(a, b, rng):
    """Measure a pair; None where there is no solid, or they have too little in common."""
    one, other = solid(a), solid(b)
    if one is None or other is None:
        return None
    found = cpu.run(Meshes.of([a]), Meshes.of([b]), options=Options(tolerance=DEPTH, volume=True))
    part = one ^ other
    if not len(found["a"]) or found["relation"][0] < OVERLAP or part.is_empty():
        return None
    meshes = Meshes.of([a, b])
    solids = PreparedMeshes(meshes, boxes.of(meshes)).solids
    seed = (np.nan, np.nan, np.nan)
    _, upper = penetration(*seed, 0.0, MAX_CELLS, 0, 1, solids, np.empty(WORK))
    reach, least = float(found["penetration"][0]), sampled(a, b, mesh_of(part), rng)
    if not found["penetration_at_least"][0]:
        upper = min(upper, accurate(reach))
    volume, right = float(found["volume"][0]), part.volume()
    off = max(least - reach, upper - reach, reach - upper)
    allowed = max(ABSOLUTE, RELATIVE * reach)
    off_volume = abs(volume - right)
    allowed_volume = max(ABSOLUTE * part.surface_area(), RELATIVE * right)
    return {
        "below": (least - reach) / allowed,
        "above": (upper - reach) / allowed,
        "volume": off_volume / allowed_volume,
        "volume_relative": off_volume / right,
        "is_right": off <= allowed and off_volume <= allowed_volume,
    }


def judge(kind, pairs, count, rng):
    """Judge so many pairs; say how many were outside, and the worst share of what is allowed."""
    rows, sources = [], {}
    for source, a, b in pairs:
        if len(rows) == count:
            break
        row = judged(a, b, rng)
        if row is not None:
            rows.append(row)
            sources[source] = sources.get(source, 0) + 1
    worst = {
        name: max((row[name] for row in rows), default=0.0)
        for name in ("below", "above", "volume", "volume_relative")
    }
    outside = sum(not row["is_right"] for row in rows)
    print(
        f"{kind:>10} {len(rows):6} {outside:8} "
        + " ".join(f"{worst[name]:10.3g}" for name in ("below", "above", "volume")),
        flush=True,
    )
    return {"pairs": len(rows), "outside": outside, "of": sources, "worst": worst}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--data", type=Path, default=DATA / "ifc")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    print("worst: the largest part of what is allowed: 0.1 mm or 1 %")
    print(f"{'':>10} {'pairs':>6} {'outside':>8} {'below':>10} {'above':>10} {'volume':>10}")
    real = judge("real", real_pairs(arguments.data, rng), arguments.pairs // 2, rng)
    made = judge("generated", generated_pairs(rng), arguments.pairs - real["pairs"], rng)
    results = {"real": real, "generated": made}
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
