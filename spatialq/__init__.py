"""Point clouds, terrain grids and building models as tables in DuckDB."""
