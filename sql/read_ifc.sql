-- The elements of IFC files: one row per product that has a mesh, spaces and openings included.
-- path: A file (.ifc, .ifczip) or a glob pattern; the column file_name distinguishes the files.
-- product_seconds: A product whose mesh takes longer is left out and listed by read_ifc_errors.
-- example: SELECT ifc_class, count(*), sum(volume) FROM read_ifc('house.ifc') GROUP BY ifc_class
CREATE OR REPLACE MACRO read_ifc(path, product_seconds := 60.0) AS TABLE
SELECT unnest(spatialq_ifc_elements(file, product_seconds), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(path)) AS file);

-- The relations of IFC files: one row per pair of objects, child and parent by GlobalId.
-- path: A file or a glob pattern.
-- example: SELECT child FROM read_ifc_relations('house.ifc') WHERE kind = 'contained_in'
CREATE OR REPLACE MACRO read_ifc_relations(path) AS TABLE
SELECT unnest(spatialq_ifc_relations(file, 60.0), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(path)) AS file);

-- The property sets and quantities of IFC files: one row per property of an object.
-- path: A file or a glob pattern.
-- example: SELECT global_id, number, unit FROM read_ifc_properties('house.ifc') WHERE property = 'Length'
CREATE OR REPLACE MACRO read_ifc_properties(path) AS TABLE
SELECT unnest(spatialq_ifc_properties(file, 60.0), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(path)) AS file);

-- What went wrong in IFC files: products without the mesh they should have, and warnings.
-- path: A file or a glob pattern.
-- product_seconds: As in read_ifc; with the same value the geometry is read only once.
-- example: SELECT ifc_class, message FROM read_ifc_errors('house.ifc') WHERE stage = 'geometry'
CREATE OR REPLACE MACRO read_ifc_errors(path, product_seconds := 60.0) AS TABLE
SELECT unnest(spatialq_ifc_errors(file, product_seconds), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(path)) AS file);

-- The IFC files themselves: one row per file, with its schema, length unit and map conversion.
-- path: A file or a glob pattern.
-- example: SELECT file_name, crs_name, eastings, northings FROM read_ifc_models('*.ifc')
CREATE OR REPLACE MACRO read_ifc_models(path) AS TABLE
SELECT unnest(spatialq_ifc_models(file, 60.0), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(path)) AS file);
