"""The data that kernels get and give: points, grids, meshes, columns and their types."""
