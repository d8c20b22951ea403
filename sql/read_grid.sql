-- Terrain grids as x, y, z, one row per cell: GeoTIFF, ESRI ASCII, SRTM .hgt, USGS DEM and all else
-- that GDAL reads, and .npy. z is NULL where the file has no value.
-- path: A file, or a pattern such as 'tiles/*.tif'; several files must have the same CRS, and the
--     result then has a column file_name.
-- nodata: A value that means that there is none, besides those that the file declares.
-- band: Of a file with several bands, from 1.
-- bounds: [xmin, ymin, xmax, ymax] in the units of the file: only cells whose centre is inside.
-- crs: Coordinate reference system of files that do not name one, such as 'EPSG:25832'.
-- to_crs: Coordinate reference system to reproject to, such as 'EPSG:25832'; bounds are then in its
--     unit.
-- resolution: Side of the square cells that reprojecting makes, in the unit of to_crs; NULL keeps the
--     size that cells have in the middle of the file.
-- example: SELECT avg(z) FROM read_grid('dem.tif', bounds := [0, 0, 100, 100])
CREATE OR REPLACE MACRO read_grid(
    path, nodata := NULL, band := 1, bounds := NULL, crs := NULL, to_crs := NULL, resolution := NULL
) AS TABLE
FROM query(
    spatialq_read_grid_sql(
        spatialq_text('read_grid: path must be a file or a pattern, got ', path),
        spatialq_number('read_grid: nodata must be a number, got ', nodata),
        spatialq_whole('read_grid: band must be a whole number, got ', band, -9223372036854775808, 9223372036854775807),
        spatialq_numbers('read_grid: bounds must be a list of numbers, got ', bounds),
        spatialq_text('read_grid: crs must be text such as EPSG:25832, got ', crs),
        spatialq_text('read_grid: to_crs must be text such as EPSG:25832, got ', to_crs),
        spatialq_number('read_grid: resolution must be a number, got ', resolution)
    )
);
