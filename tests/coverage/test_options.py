"""Parameters of `coverage` that contradict each other."""

import pytest
from spatialq.udfs.coverage import Options


@pytest.mark.parametrize("tolerance", [0.35, 10.0])
def test_a_tolerance_that_nothing_could_exceed(tolerance):
    with pytest.raises(ValueError, match=r"tolerance must be less than search, 0\.35 metres"):
        Options(tolerance=tolerance)
    Options(tolerance=0.34)


@pytest.mark.parametrize("scanner", [(), (1.0, 2.0), (1.0, 2.0, float("nan"))])
def test_positions_that_are_none(scanner):
    with pytest.raises(ValueError, match="scanner must be a list of finite numbers"):
        Options(scanner=scanner)
