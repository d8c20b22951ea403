-- Terrain grids as x y z, one row a cell: GeoTIFF, ESRI ASCII, SRTM .hgt, USGS DEM and what else
-- GDAL reads, and .npy. z is NULL where the file has no value.
-- path: a file, or a pattern such as 'tiles/*.tif'; several files must have the same CRS and
--       get a column file_name
-- nodata: a value that means "no value" besides those that the file declares
-- band: which band of a file with several
-- bounds: [xmin, ymin, xmax, ymax] in the units of the file: only cells with their centre inside
-- example: SELECT avg(z) FROM read_grid('dem.tif', bounds := [0, 0, 100, 100])
CREATE OR REPLACE MACRO read_grid(path, nodata := NULL, band := 1, bounds := NULL) AS TABLE
FROM query(read_grid_sql(path, nodata, band, bounds));
