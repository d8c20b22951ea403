"""`points_within`: the polygons that points are in, in SQL."""
