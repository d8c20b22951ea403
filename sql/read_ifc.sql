-- The elements of IFC files: one row per product that has a mesh, spaces and openings included.
-- path: A file (.ifc, .ifczip) or a glob pattern; the column file_name distinguishes the files.
-- product_seconds: A product whose mesh takes longer is left out and listed by read_ifc_errors.
-- geometry: 'auto' takes meshes of ifclite-geom where they are whole, 'exact' those of IfcOpenShell.
-- example: SELECT ifc_class, count(*), sum(volume) FROM read_ifc('house.ifc') GROUP BY ifc_class
CREATE OR REPLACE MACRO read_ifc(path, product_seconds := 60.0, geometry := 'auto') AS TABLE
SELECT unnest(spatialq_ifc_elements(
    file,
    spatialq_number('read_ifc: product_seconds must be a number, got ', product_seconds),
    spatialq_text('read_ifc: geometry must be text, got ', geometry)
), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(
    spatialq_text('read_ifc: path must be a file or a pattern, got ', path)
)) AS file);

-- The objects of IFC files, with or without geometry: one row per element, space, storey, group,
-- type, task and so on.
-- path: A file (.ifc, .ifczip) or a glob pattern; the column file_name distinguishes the files.
-- example: SELECT name, elevation FROM read_ifc_objects('house.ifc') WHERE ifc_class = 'IfcBuildingStorey'
CREATE OR REPLACE MACRO read_ifc_objects(path) AS TABLE
SELECT unnest(spatialq_ifc_objects(file, 60.0, 'none'), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(
    spatialq_text('read_ifc_objects: path must be a file or a pattern, got ', path)
)) AS file);

-- The relations of IFC files: one row per pair of objects, child and parent by GlobalId.
-- path: A file (.ifc, .ifczip) or a glob pattern; the column file_name distinguishes the files.
-- example: SELECT child FROM read_ifc_relations('house.ifc') WHERE kind = 'contained_in'
CREATE OR REPLACE MACRO read_ifc_relations(path) AS TABLE
SELECT unnest(spatialq_ifc_relations(file, 60.0, 'none'), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(
    spatialq_text('read_ifc_relations: path must be a file or a pattern, got ', path)
)) AS file);

-- The property sets and quantities of IFC files: one row per property of an object.
-- path: A file (.ifc, .ifczip) or a glob pattern; the column file_name distinguishes the files.
-- example: SELECT global_id, number, unit FROM read_ifc_properties('house.ifc') WHERE property = 'Length'
CREATE OR REPLACE MACRO read_ifc_properties(path) AS TABLE
SELECT unnest(spatialq_ifc_properties(file, 60.0, 'none'), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(
    spatialq_text('read_ifc_properties: path must be a file or a pattern, got ', path)
)) AS file);

-- The materials of IFC files: one row per material, layer, profile or constituent of an object.
-- path: A file (.ifc, .ifczip) or a glob pattern; the column file_name distinguishes the files.
-- example: SELECT global_id, sum(thickness) FROM read_ifc_materials('house.ifc') GROUP BY global_id
CREATE OR REPLACE MACRO read_ifc_materials(path) AS TABLE
SELECT unnest(spatialq_ifc_materials(file, 60.0, 'none'), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(
    spatialq_text('read_ifc_materials: path must be a file or a pattern, got ', path)
)) AS file);

-- The classifications of IFC files: one row per reference of an object.
-- path: A file (.ifc, .ifczip) or a glob pattern; the column file_name distinguishes the files.
-- example: SELECT global_id FROM read_ifc_classifications('house.ifc') WHERE identification = '21.22'
CREATE OR REPLACE MACRO read_ifc_classifications(path) AS TABLE
SELECT unnest(spatialq_ifc_classifications(file, 60.0, 'none'), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(
    spatialq_text('read_ifc_classifications: path must be a file or a pattern, got ', path)
)) AS file);

-- What went wrong in IFC files: products without the mesh they should have, and warnings.
-- path: A file (.ifc, .ifczip) or a glob pattern; the column file_name distinguishes the files.
-- product_seconds: As in read_ifc; with the same options the geometry is read only once.
-- geometry: 'auto' takes meshes of ifclite-geom where they are whole, 'exact' those of IfcOpenShell.
-- example: SELECT ifc_class, message FROM read_ifc_errors('house.ifc') WHERE stage = 'geometry'
CREATE OR REPLACE MACRO read_ifc_errors(path, product_seconds := 60.0, geometry := 'auto') AS TABLE
SELECT unnest(spatialq_ifc_load_errors(
    file,
    spatialq_number('read_ifc_errors: product_seconds must be a number, got ', product_seconds),
    spatialq_text('read_ifc_errors: geometry must be text, got ', geometry)
), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(
    spatialq_text('read_ifc_errors: path must be a file or a pattern, got ', path)
)) AS file);

-- The IFC files themselves: one row per file, with its schema, length unit, true north and map
-- conversion.
-- path: A file (.ifc, .ifczip) or a glob pattern; the column file_name distinguishes the files.
-- example: SELECT file_name, crs_name, eastings, northings FROM read_ifc_models('*.ifc')
CREATE OR REPLACE MACRO read_ifc_models(path) AS TABLE
SELECT unnest(spatialq_ifc_models(file, 60.0, 'none'), max_depth := 2)
FROM (SELECT unnest(spatialq_ifc_files(
    spatialq_text('read_ifc_models: path must be a file or a pattern, got ', path)
)) AS file);
