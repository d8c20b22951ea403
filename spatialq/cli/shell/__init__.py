"""`spatialq shell`: SQL and QL4BIM scripts, line by line."""
