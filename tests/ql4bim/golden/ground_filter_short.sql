WITH cloud AS (FROM scan) FROM cloud JOIN classify_ground('cloud') USING (point_id) WHERE is_ground
