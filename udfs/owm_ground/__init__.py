"""Ground points of a LiDAR cloud by the Overlap Window Method."""
