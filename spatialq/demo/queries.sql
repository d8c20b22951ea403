-- What the scan holds, by ASPRS class
SELECT classification, count(*) AS points, round(min(z), 2) AS lowest, round(max(z), 2) AS highest
FROM points
GROUP BY classification
ORDER BY points DESC;

-- Ground points by the Overlap Window Method
CREATE OR REPLACE TABLE ground AS
FROM owm_ground('points', window_size := 10.0, overlap := 0.8);

-- How sure the ground points are: in how many windows each is the lowest
SELECT filled, count(*) AS points, round(avg(hits), 1) AS mean_hits, round(avg(z), 2) AS mean_height
FROM ground
GROUP BY filled
ORDER BY filled;

-- Every point: its height above the terrain, and whether it is ground
CREATE OR REPLACE TABLE heights AS
FROM classify_ground('points');

-- What stands higher than 2 m above the terrain
SELECT classification, count(*) AS points, round(avg(height), 2) AS mean_height
FROM points
JOIN heights USING (point_id)
WHERE height > 2 AND NOT is_ground
GROUP BY classification
ORDER BY points DESC;

-- Roofs: planes of the points of class 6, and parts that are not connected apart
CREATE OR REPLACE TABLE roofs AS
WITH buildings AS (FROM points WHERE classification = 6)
FROM detect_planes('buildings', split := true);

-- The largest of them: how steep and how flat
SELECT plane_id, orientation, round(degrees(acos(abs(nz))), 1) AS slope, round(area, 1) AS area,
    point_count, round(rmse, 3) AS rmse
FROM roofs
ORDER BY area DESC
LIMIT 5;

-- Every point of a roof, and its distance from the plane
CREATE OR REPLACE TABLE roof_points AS
WITH buildings AS (FROM points WHERE classification = 6)
FROM plane_points('buildings', split := true);

-- Levels of detail of the scan: an octree of voxels, with the points in its leaves
CREATE OR REPLACE TABLE lod AS
FROM build_lod('points');

-- From one level to the next voxels are half as wide
SELECT level, round(max(spacing), 2) AS voxel_width, count(*) AS nodes, count_if(is_leaf) AS leaves,
    sum("count") AS samples
FROM lod
GROUP BY level
ORDER BY level;

-- The corner of the scan, and how long it is
SET VARIABLE cube = (SELECT {x: xmin, y: ymin, z: zmin, size: size} FROM lod WHERE level = 0);

-- What a viewer draws from above that corner, in a window of 640 x 480 pixels
SELECT level, count(*) AS nodes, sum("count") AS samples, round(max(pixels), 2) AS largest_voxel
FROM lod_select('lod', {
    eye: [getvariable('cube').x, getvariable('cube').y, getvariable('cube').z + 60],
    target: [
        getvariable('cube').x + getvariable('cube').size / 2,
        getvariable('cube').y + getvariable('cube').size / 2,
        getvariable('cube').z
    ],
    width: 640,
    height: 480
})
GROUP BY level
ORDER BY level;

-- How wide a cell of a terrain grid of 400 x 400 is
SET VARIABLE cell = (SELECT least(max(x) - min(x), max(y) - min(y)) / 400 FROM points);

-- The terrain as a grid, interpolated between the ground points
CREATE OR REPLACE TABLE terrain AS
WITH ground_points AS (SELECT points.* FROM points JOIN heights USING (point_id) WHERE is_ground)
FROM ground_surface('ground_points', source := 'points', resolution := getvariable('cell'), thin := true);

-- Its shape at three scales: features of patches of 6, 12 and 24 cells, by example of 40 cells
CREATE OR REPLACE TABLE features AS
FROM pops_features(
    'terrain',
    scales := [6 * getvariable('cell'), 12 * getvariable('cell'), 24 * getvariable('cell')],
    example_scale := 40 * getvariable('cell'),
    min_valid := 1.0
);

-- How much that differs from one example to another: pca2 is 0.5 where it is flat, less on slopes
SELECT feature, round(scale, 1) AS scale, round(min(mean), 3) AS minimum, round(median(mean), 3) AS median,
    round(max(mean), 3) AS maximum
FROM features
WHERE feature IN ('pca2', 'variance')
GROUP BY ALL
ORDER BY feature, scale;

-- Straight from the file: only x, y and z are decoded, and only what lies in the bounds is kept
SELECT count(*) AS points, round(avg(z), 2) AS mean_height
FROM read_las('village.laz', bounds := [0, 0, 1e9, 1e9], columns := ['x', 'y', 'z']);

-- The building model by class
SELECT ifc_class, count(*) AS elements, round(sum(volume), 2) AS cubic_metres
FROM elements
GROUP BY ifc_class
ORDER BY elements DESC, ifc_class;

-- A property of the walls, out of their property sets
SELECT name, storey, material, properties ->> '$.Pset_WallCommon.IsExternal' AS is_external
FROM elements
WHERE ifc_class LIKE 'IfcWall%'
ORDER BY name
LIMIT 5;

-- Which element cuts which, and what fills the openings
SELECT kind, count(*) AS pairs, min(child_class || ' - ' || parent_class) AS for_example
FROM relations
GROUP BY kind
ORDER BY pairs DESC, kind;

-- What clashes in the building model, how deep
SELECT a.name AS element, c.relation, b.name AS other, round(c.penetration, 3) AS penetration
FROM intersects_with('elements', tolerance := 0.001) AS c
JOIN elements AS a ON a.global_id = c.a
JOIN elements AS b ON b.global_id = c.b
ORDER BY penetration DESC, element;

-- Pipes and ducts that come closer to a wall than 5 cm, but do not meet it
WITH walls AS (FROM elements WHERE ifc_class = 'IfcWall'),
pipes AS (FROM elements WHERE ifc_class IN ('IfcPipeSegment', 'IfcDuctSegment'))
SELECT p.name AS pipe, w.name AS wall, round(c.distance, 3) AS distance
FROM closer_than('pipes', 'walls', 0.05) AS c
JOIN elements AS p ON p.global_id = c.a
JOIN elements AS w ON w.global_id = c.b
WHERE c.distance > 0.001
ORDER BY distance;

-- Which files are in which table, and in which coordinate reference system
SELECT table_name, row_count, crs_name, georeference IS NOT NULL AS has_map_conversion
FROM spatialq_sources;

-- What ran where, and why
SELECT function, row_count, device, reason, round(seconds, 2) AS seconds
FROM spatialq_log();
