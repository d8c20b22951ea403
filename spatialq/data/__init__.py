"""The arrays that kernels get: grids and meshes."""
