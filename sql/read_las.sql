-- Points of LAS, LAZ and COPC files (LAS 1.0 to 1.5, point formats 0 to 10), one row per
-- point.
-- path: A file, a pattern such as 'tiles/*.laz', or a folder; several files must have the same CRS, and the
--     result then has a column file_name.
-- bounds: [xmin, ymin, xmax, ymax] in the units of the file: only points inside or on the border; a
--     COPC file is then read in part.
-- columns: A list of names: only these columns are decoded.
-- to_crs: Coordinate reference system to reproject x, y and z to, such as 'EPSG:25832'; bounds are
--     then in its unit.
-- resolution: Spacing of points in the units of x and y of the file: finer nodes of an octree (COPC)
--     are not read.
-- example: SELECT classification, count(*) FROM read_las('forest.laz') GROUP BY ALL
-- example: SELECT max(z) FROM read_las('tiles/*.laz', columns := ['z'])
CREATE OR REPLACE MACRO read_las(
    path,
    bounds := NULL,
    columns := NULL,
    to_crs := NULL,
    resolution := NULL
) AS TABLE
FROM query(
    spatialq_read_points_sql(
        'read_las',
        spatialq_text('read_las: path must be a file or a pattern, got ', path),
        spatialq_numbers('read_las: bounds must be a list of numbers, got ', bounds),
        spatialq_texts('read_las: columns must be a list of names, got ', columns),
        spatialq_text('read_las: to_crs must be text such as EPSG:25832, got ', to_crs),
        spatialq_number('read_las: resolution must be a number, got ', resolution)
    )
);
