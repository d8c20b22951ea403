-- A point in another coordinate reference system, as STRUCT(x DOUBLE, y DOUBLE, z DOUBLE): by the
-- operation that spatialq_operation names, of which all three are NULL outside its domain.
-- x: Easting, or longitude.
-- y: Northing, or latitude.
-- z: Height, which may be NULL.
-- from_crs: CRS of the point, such as 'EPSG:25832', or 'EPSG:25832+7837' with heights.
-- to_crs: CRS of the result.
-- example: SELECT spatialq_transform(565000, 5934000, NULL, 'EPSG:25832', 'EPSG:4326')
-- example: SELECT unnest(spatialq_transform(x, y, z, 'EPSG:25832', 'EPSG:25833')) FROM points
CREATE OR REPLACE MACRO spatialq_transform(x, y, z, from_crs, to_crs) AS spatialq_transform_udf(
    spatialq_number('spatialq_transform: x must be a number, got ', x),
    spatialq_number('spatialq_transform: y must be a number, got ', y),
    spatialq_number('spatialq_transform: z must be a number, got ', z),
    spatialq_text('spatialq_transform: from_crs must be text such as EPSG:25832, got ', from_crs),
    spatialq_text('spatialq_transform: to_crs must be text such as EPSG:25832, got ', to_crs)
);

-- The operation by which spatialq_transform goes from one coordinate reference system to another, as
-- STRUCT(operation VARCHAR, accuracy DOUBLE, note VARCHAR): its accuracy in metres, and in the note
-- which grids that are not installed would give a better one. It is chosen for the area in which both
-- systems are used; readers with to_crs choose for the extent of their files.
-- from_crs: CRS such as 'EPSG:25832'.
-- to_crs: CRS such as 'EPSG:4326'.
-- example: SELECT spatialq_operation('EPSG:31467', 'EPSG:25832').accuracy
CREATE OR REPLACE MACRO spatialq_operation(from_crs, to_crs) AS spatialq_operation_udf(
    spatialq_text('spatialq_operation: from_crs must be text such as EPSG:25832, got ', from_crs),
    spatialq_text('spatialq_operation: to_crs must be text such as EPSG:25832, got ', to_crs)
);
