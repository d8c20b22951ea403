WITH cloud AS (FROM scan) FROM cloud WHERE round(z, 6) > 2.2 AND x < 5
