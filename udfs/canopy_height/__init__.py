"""Surface models of point clouds, and the height of the canopy above a terrain."""
