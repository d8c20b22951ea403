"""Nodes and planes that blocks and sums leave out are those that a test of each one leaves out."""

import numpy as np
import pytest
from spatialq.udfs.detect_planes import groups

RHO_STEP = 0.01


class Nodes:
    """Nodes about hills and walls in the order of a curve; some belong to planes."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        at = rng.uniform(-0.8, 0.8, (n, 3))
        at[:, 2] = 0.1 * np.sin(4 * at[:, 0]) + 0.002 * rng.normal(size=n)
        wall = rng.random(n) < 0.3
        at[wall, 0] = rng.integers(-3, 3, wall.sum()) / 4
        self.means = at[np.lexsort(np.floor(at.T * 4))]
        normals = rng.normal([0, 0, 1], 0.1, (n, 3))
        normals[rng.random(n) < 0.3] = [1.0, 0.001, 0.0]
        normals *= rng.choice([-1, 1], (n, 1))
        self.normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
        self.tilts, self.reaches = rng.uniform(0, 0.2, n), rng.uniform(0, 0.01, n)
        self.covariance = rng.uniform(0, 1e-5, (n, 6)) * [1, 0, 0, 1, 0, 1]
        self.counts, self.variances = rng.uniform(6, 50, n), rng.uniform(1e-7, 1e-5, n)
        self.owner = np.where(rng.random(n) < 0.6, groups.FREE, 3).astype(np.int32)
        self.boxes = groups.enclose(self.owner, self.means, self.reaches)
        self.chosen = np.empty(n, np.int32)

    def planes(self):
        """Planes of nodes, and of peaks: normal, offset, variance."""
        for k in range(0, len(self.means), 7):
            offset = self.normals[k] @ self.means[k]
            yield k, np.array([*self.normals[k], offset, 1e-6 * (1 + k % 5)])

    def off(self, plane):
        return np.abs(self.means @ plane[:3] - plane[3])


@pytest.fixture(params=[1, 17, 400])
def nodes(request):
    return Nodes(request.param, seed=request.param)


@pytest.mark.parametrize("of_a_seed", [False, True])
def test_the_nodes_along_a_plane_are_those_of_a_test_of_each(nodes, of_a_seed):
    listed = 0
    for k, plane in nodes.planes():
        more = nodes.tilts[k] if of_a_seed else 0.0
        n = groups.agreeing(
            plane, k if of_a_seed else -1, 0.1, nodes.tilts, nodes.reaches, nodes.means,
            nodes.normals, nodes.owner, nodes.boxes, nodes.chosen,
        )  # fmt: skip
        angle = np.minimum(0.1, np.maximum(groups.SURE, nodes.tilts) + more)
        far = np.linalg.norm(nodes.means - nodes.means[k], axis=1)
        along = 1 - (nodes.normals @ plane[:3]) ** 2 <= angle**2
        along &= nodes.off(plane) <= nodes.reaches + more * far
        expected = np.flatnonzero(along & (nodes.owner == groups.FREE))
        np.testing.assert_array_equal(nodes.chosen[:n], expected)
        listed += n
    assert listed > 0 or len(nodes.means) < 20


def test_the_nodes_near_a_peak_are_those_of_a_test_of_each(nodes):
    starts, by_rho = groups.sort_by_rho(nodes.owner, nodes.means, nodes.normals, RHO_STEP)
    rhos = (nodes.normals * nodes.means).sum(axis=1)
    listed = 0
    aside, far = np.array([0, 0, 0, 1.9 * RHO_STEP, 0]), np.array([0, 0, 0, 5.0, 0])
    for k, plane in nodes.planes():
        for peak in (plane, -plane, plane + aside, plane + far):
            n = groups.starting(
                peak, 0.15, RHO_STEP, nodes.means, nodes.normals, nodes.owner, starts, by_rho,
                nodes.chosen,
            )  # fmt: skip
            cosines = nodes.normals @ peak[:3]
            near = 1 - cosines**2 <= 0.15**2
            near &= np.abs(np.where(cosines < 0, -rhos, rhos) - peak[3]) <= 2 * RHO_STEP
            expected = np.flatnonzero(near & (nodes.owner == groups.FREE))
            np.testing.assert_array_equal(nodes.chosen[:n], expected)
            listed += (k in nodes.chosen[:n]) == (nodes.owner[k] == groups.FREE)
    assert listed > 0


def test_the_nodes_within_the_noise_of_a_plane_are_those_of_a_test_of_each(nodes):
    for _, plane in nodes.planes():
        owner, limit = nodes.owner.copy(), groups.NOISES**2 * plane[4]
        groups.explain(plane, nodes.means, nodes.covariance, nodes.boxes, owner)
        across = nodes.covariance[:, [0, 3, 5]] @ plane[:3] ** 2
        within = (nodes.off(plane) ** 2 <= limit) & (across <= limit)
        free = nodes.owner == groups.FREE
        np.testing.assert_array_equal(owner == groups.EXPLAINED, free & within)


@pytest.mark.parametrize("thickness", [0.0, 1e-6, 1e-4, 3e-3, 0.1])
@pytest.mark.parametrize("length", [1e-3, 0.05, 1.0])
def test_no_flat_pair_of_planes_is_left_out(thickness, length):
    """Of centres in a slab anywhere, the least eigenvalue of their covariance is the oracle."""
    rng = np.random.default_rng(5)
    left_out = 0
    for _ in range(200):
        nodes = Nodes(rng.integers(6, 30), rng.integers(1000))
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        size = [length, length * rng.uniform(0.01, 1), thickness]
        means = rng.normal(size=nodes.means.shape) * size @ turn + rng.uniform(-1, 1, 3)
        sums = np.zeros((2, 9))
        for k, mean in enumerate(means):
            groups.add_centre(nodes.counts[k], mean, sums[k % 2])
        n, across = nodes.counts.sum(), nodes.counts @ nodes.variances
        flat = groups.may_be_flat(n, across, *sums, 1e-6, 1.0)
        least = np.linalg.eigvalsh(np.cov(means.T, aweights=nodes.counts, ddof=0))[0]
        if least <= across / n:
            assert flat
        left_out += not flat
    assert left_out > 0 or thickness < 0.01 or length < 0.01  # most of a thick slab are
