WITH cloud AS (FROM scan) FROM cloud WHERE z > 2.2 AND x < 5
