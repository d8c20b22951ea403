-- Points of clouds of all formats, one row per point: LAS, LAZ, COPC, E57, PLY, PCD, PTS, PTX and text;
-- `spatialq formats` lists them.
-- path: A file, a pattern such as 'scans/*.e57', or a folder; several files must have the same CRS, and the
--     result then has a column file_name.
-- bounds: [xmin, ymin, xmax, ymax] in the units of the file: only points inside or on the border.
-- columns: A list of names: only these columns are decoded.
-- to_crs: Coordinate reference system to reproject x, y and z to, such as 'EPSG:25832'; bounds are
--     then in its unit.
-- resolution: Spacing of points in the units of x and y of the file: finer nodes of an octree (COPC)
--     are not read.
-- example: SELECT count(*), max(z) FROM read_points('hall.e57')
-- example: FROM read_points('bunny.ply', columns := ['x', 'y', 'z'])
CREATE OR REPLACE MACRO read_points(
    path,
    bounds := NULL,
    columns := NULL,
    to_crs := NULL,
    resolution := NULL
) AS TABLE
FROM query(
    spatialq_read_points_sql(
        'read_points',
        spatialq_text('read_points: path must be a file or a pattern, got ', path),
        spatialq_numbers('read_points: bounds must be a list of numbers, got ', bounds),
        spatialq_texts('read_points: columns must be a list of names, got ', columns),
        spatialq_text('read_points: to_crs must be text such as EPSG:25832, got ', to_crs),
        spatialq_number('read_points: resolution must be a number, got ', resolution)
    )
);
