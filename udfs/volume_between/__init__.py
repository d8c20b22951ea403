"""Cut and fill between two terrain grids."""
