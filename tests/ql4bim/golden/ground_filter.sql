WITH cloud AS (FROM scan) FROM cloud JOIN classify_ground('cloud', object_width := 40.0) USING (point_id) WHERE is_ground
