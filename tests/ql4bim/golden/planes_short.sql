WITH cloud AS (FROM scan), planes AS (FROM detect_planes('cloud')) FROM planes WHERE point_count > 100
