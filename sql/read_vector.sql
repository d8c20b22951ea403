-- Features of GeoPackage, Shapefile, GeoJSON, FlatGeobuf, GeoParquet and DXF files, one row per
-- feature: its number in the file as fid, its attributes, and its geometry with the CRS as its type.
-- path: A file, a pattern such as 'plans/*.gpkg', or a list of these; several files must have the same
--     CRS, and the result then has a column file_name.
-- layer: The layer to read; needed where a file has several.
-- crs: Coordinate reference system of the geometries, such as 'EPSG:25832'; NULL takes that of the
--     files.
-- example: SELECT name, geometry FROM read_vector('parcels.gpkg', layer := 'parcels')
CREATE OR REPLACE MACRO read_vector(
    path, layer := NULL, crs := NULL
) AS TABLE
FROM query(
    spatialq_read_vector_sql(
        spatialq_tables('read_vector: path must be a file, a pattern or a list of these, got ', path),
        spatialq_text('read_vector: layer must be the name of a layer, got ', layer),
        spatialq_text('read_vector: crs must be text such as EPSG:25832, got ', crs)
    )
);
