"""Cost of one row per peak of the accumulator relative to `detect_planes`, in one run.

python benchmarks/plane_peaks.py [--points N] [--repeat N]

On a generated room (rooms.py); detect_planes.py measures how fast `detect_planes` is.
"""

from plane_nodes import compare

if __name__ == "__main__":
    compare("plane_peaks", __doc__)
