"""The constants of the method, for all kernels: lengths in metres, slopes in metres per metre.

Float32 where they meet heights on the grid, so that every device rounds alike.
"""

import numpy as np

# The grid
BLOCK = 10.0
"""Side of the squares that the occupied area is counted in."""
SPACINGS_PER_CELL = 0.5
LEAST_CELL = 1.0

# Low outliers
PIT_SLOPE = np.float32(5.0)

# Progressive openings
LARGEST_RADIUS = 30.0
MARGIN = 0.1
"""How far beyond the border a disc may have its centre, in radii."""
RAW_SLOPE = np.float32(0.06)
BASE_SLOPE = np.float32(0.09)
BASE_RADIUS = 20.0

# Smooth growth
GROWTHS = 3
SMOOTH_RMS = np.float32(0.15)
SMOOTH_STEP = np.float32(0.15)
SMOOTH_NEIGHBOURS = 2

# Crests
CRESTS = 4
CREST_HEIGHT = np.float32(1.0)
CREST_RMS = np.float32(0.25)
CREST_RADIUS = 5.0
CREST_DISTANCE = np.float32(0.2)
CREST_SLOPE = np.float32(0.15)
CREST_NEIGHBOURS = 6.0
CREST_SHARE = np.float32(0.6)

# Cliffs
CLIFF_HEIGHT = np.float32(2.0)
CLIFF_REACH = 6.0
CLIFF_SLOPE = np.float32(1.0)
CLIFF_DISTANCE = np.float32(0.1)
CLIFF_TOP_SLOPE = np.float32(0.05)

# Densification
DENSIFICATIONS = 6
DENSE_DISTANCE = np.float32(0.3)
DENSE_SLOPE = np.float32(1.0)

# Fill
SWEEPS = 8
RELAXATION = np.float32(0.8)
