-- The topics of BCF archives: issues of building models, one row per topic, of BCF 2.0, 2.1 and 3.0.
-- path: An archive (.bcf, .bcfzip) or a glob pattern; the column file_name distinguishes the archives.
-- example: SELECT title, status, assigned_to FROM read_bcf('clashes.bcf') WHERE priority = 'High'
CREATE OR REPLACE MACRO read_bcf(path) AS TABLE
SELECT unnest(spatialq_bcf_topics(file), max_depth := 2)
FROM (SELECT unnest(spatialq_bcf_files(
    spatialq_text('read_bcf: path must be a file or a pattern, got ', path)
)) AS file);

-- The comments of BCF archives: one row per comment of a topic.
-- path: An archive (.bcf, .bcfzip) or a glob pattern; the column file_name distinguishes the archives.
-- example: SELECT topic, author, comment FROM read_bcf_comments('clashes.bcf') ORDER BY created
CREATE OR REPLACE MACRO read_bcf_comments(path) AS TABLE
SELECT unnest(spatialq_bcf_comments(file), max_depth := 2)
FROM (SELECT unnest(spatialq_bcf_files(
    spatialq_text('read_bcf_comments: path must be a file or a pattern, got ', path)
)) AS file);

-- The viewpoints of BCF archives: one row per viewpoint of a topic, with its camera.
-- path: An archive (.bcf, .bcfzip) or a glob pattern; the column file_name distinguishes the archives.
-- example: SELECT topic, eye, view_direction, fov FROM read_bcf_viewpoints('clashes.bcf')
CREATE OR REPLACE MACRO read_bcf_viewpoints(path) AS TABLE
SELECT unnest(spatialq_bcf_viewpoints(file), max_depth := 2)
FROM (SELECT unnest(spatialq_bcf_files(
    spatialq_text('read_bcf_viewpoints: path must be a file or a pattern, got ', path)
)) AS file);

-- The components of viewpoints of BCF archives: one row per element and list that it is in, of those
-- that are selected, shown or hidden, or coloured.
-- path: An archive (.bcf, .bcfzip) or a glob pattern; the column file_name distinguishes the archives.
-- example: SELECT topic, global_id FROM read_bcf_components('clashes.bcf') WHERE role = 'selection'
CREATE OR REPLACE MACRO read_bcf_components(path) AS TABLE
SELECT unnest(spatialq_bcf_components(file), max_depth := 2)
FROM (SELECT unnest(spatialq_bcf_files(
    spatialq_text('read_bcf_components: path must be a file or a pattern, got ', path)
)) AS file);
