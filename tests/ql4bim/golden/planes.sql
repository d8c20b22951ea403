WITH cloud AS (FROM scan) FROM detect_planes('cloud', split := true)
