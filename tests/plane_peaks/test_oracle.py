"""The peaks of the accumulator against the votes of the nodes, cell by cell."""

import numpy as np
import pytest
from spatialq.udfs.detect_planes import Options, cpu
from spatialq.udfs.detect_planes.accumulator import BEYOND
from spatialq.udfs.detect_planes.octree import Cube

import spatialq
from spatialq.functions.catalogue import catalogue

from ..detect_planes.cases import rooms
from ..detect_planes.oracle import Node, directions, unit
from ..plane_nodes.test_oracle import columns_of
from . import oracle
from .cases import CASES

OUTPUTS = ["detect_planes", "plane_nodes", "plane_peaks"]
EXACT = 1e-6  # votes are whole numbers of 2^-30, and their exponential is one of products


def search(columns, **options):
    found = cpu.run(*columns, None, Options(**options), OUTPUTS)
    return tuple(found[name] for name in OUTPUTS)


@pytest.fixture
def rounds(monkeypatch):
    """What is voted with in each round: nodes, weights, the step of rho."""
    seen, peaks = [], cpu.CpuCloud.peaks

    def kept(cloud, nodes, means, weights, around, rho_step, *others):
        each = [
            Node(0, None, 0.0, 0, mean, vectors[0], values, vectors.T)
            for mean, values, vectors in zip(means, nodes.values, nodes.vectors, strict=True)
        ]
        seen.append((each, weights, rho_step))
        return peaks(cloud, nodes, means, weights, around, rho_step, *others)

    monkeypatch.setattr(cpu.CpuCloud, "peaks", kept)
    return seen


@pytest.mark.parametrize(("phi_num", "rho_num"), [(12, 50), (9, 40)])
@pytest.mark.parametrize("seed", range(2))
def test_peaks_are_the_maxima_of_the_votes(rounds, seed, phi_num, rho_num):
    scene = rooms.room(6000, seed=seed).moved(turn=rooms.turn(seed))
    columns = scene.x, scene.y, scene.z
    _, _, found = search(columns, phi_num=phi_num, rho_num=rho_num)
    _, phi, theta = directions(phi_num)
    cells = unit(phi, theta)
    low, high = np.min(columns, axis=1), np.max(columns, axis=1)
    half = Cube.around(low.tolist(), high.tolist()).half
    assert len(rounds) >= 2
    for number, (nodes, weights, rho_step) in enumerate(rounds, 1):
        if not nodes:
            assert number not in found["round"]
            continue
        rhos = (np.arange(rho_num + BEYOND + 2) - BEYOND) * rho_step
        votes = oracle.smoothed(
            oracle.accumulated(nodes, weights, phi_num, rhos, rho_step), phi_num
        )
        mine = found["round"] == number
        own = unit(*(np.radians(found[name][mine]) for name in ("phi", "theta")))
        at = (own @ cells.T).argmax(axis=1)
        np.testing.assert_allclose(cells[at], own, atol=1e-12)
        steps = found["rho"][mine] / (rho_step * half)
        k = np.rint(steps).astype(int)
        np.testing.assert_allclose(steps, k, rtol=0, atol=1e-9)
        np.testing.assert_allclose(votes[at, k + BEYOND], found["votes"][mine], atol=EXACT)
        above = oracle.excess(votes, phi_num)
        assert (above[at, k + BEYOND] >= -EXACT).all()
        sure = np.argwhere((above > EXACT) & (np.arange(rhos.size) >= BEYOND))
        assert {tuple(each) for each in sure.tolist()} <= set(
            zip(at.tolist(), (k + BEYOND).tolist(), strict=True)
        )
        assert len(sure) > 0
        assert (np.diff(found["votes"][mine]) <= 0).all()
        normals = np.array([node.normal for node in nodes])
        rho = np.einsum("ni,ni->n", normals, [node.mean for node in nodes])
        cosine = own @ normals.T
        near = np.abs(np.sign(cosine) * rho - (k * rho_step)[:, None]) <= 2 * rho_step
        near &= 1 - cosine**2 <= (1.5 * np.pi / phi_num) ** 2
        assert near.sum(axis=1).tolist() == found["node_count"][mine].tolist()


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_same_alone_and_with_planes_and_nodes(case):
    points, options = CASES[case]
    together = dict(zip(OUTPUTS, search(columns_of(points), **options), strict=True))
    alone = catalogue()["plane_peaks"].kernel("cpu")(
        *columns_of(points), None, Options(**options)
    )  # fmt: skip
    assert list(alone) == list(together["plane_peaks"])
    for column, values in together["plane_peaks"].items():
        np.testing.assert_array_equal(alone[column], values, err_msg=column)
        assert alone[column].dtype == values.dtype


def test_each_plane_of_a_room_has_a_peak():
    scene = rooms.room(20_000)
    planes, _, peaks = search((scene.x, scene.y, scene.z))
    middle = np.array([axis.mean() for axis in (scene.x, scene.y, scene.z)])
    own = unit(*(np.radians(peaks[name]) for name in ("phi", "theta")))
    for nx, ny, nz, d in zip(*(planes[name] for name in ("nx", "ny", "nz", "d")), strict=True):
        normal = np.array([nx, ny, nz])
        cosine, rho = own @ normal, d - normal @ middle
        close = (np.abs(cosine) > np.cos(np.radians(6))) & (
            np.abs(np.sign(cosine) * rho - peaks["rho"]) < 0.2
        )
        assert close.any()


def test_columns_and_types_in_sql():
    scene = rooms.room(3000)
    with spatialq.connect() as con:
        con.execute("CREATE TABLE points (point_id BIGINT, x DOUBLE, y DOUBLE, z DOUBLE)")
        rows = np.column_stack([np.arange(scene.x.size), scene.x, scene.y, scene.z])
        con.executemany("INSERT INTO points VALUES (?, ?, ?, ?)", rows.tolist())
        relation = con.sql("FROM plane_peaks('points')")
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        angles = ("theta", "phi", "rho", "votes")
        assert types == {
            "round": "BIGINT", **dict.fromkeys(angles, "DOUBLE"), "node_count": "BIGINT"
        }  # fmt: skip
        assert relation.count("*").fetchall()[0][0] >= 6
