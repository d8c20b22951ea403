"""`classify_noise` on the GPU, or its source on the host, of more points than the cases have."""

from ..kernels import assert_same, run_both
from .cases import columns, terrain


def test_sums_of_sums_of_sums_are_as_on_the_cpu(device):
    """More than 256 runs of 256 distances; and more points than threads."""
    found, expected = run_both("classify_noise", columns(terrain(70_000)), mean_k=2, multiplier=4.0)
    assert_same(found, expected)
    assert 0 < (expected["classification"] > 0).sum() < 7000
