-- The boxes of the elements that spatial operators consider, along the axes.
-- elements: Name of a table or view with global_id and mesh, as read_ifc and load give them.
-- gives: global_id identity box: xmin, ymin, zmin, xmax, ymax, zmax as a list, metres
-- example: SELECT global_id, box[6] - box[3] AS height FROM element_boxes('elements')
CREATE OR REPLACE MACRO element_boxes(elements) AS TABLE
SELECT e.global_id, e.identity, spatialq_mesh_boxes(e.mesh) AS box
FROM spatialq_elements('element_boxes: elements', elements) AS e;

-- The pairs of elements whose boxes are nowhere farther apart than a distance along an axis: what
-- spatial operators compare in full. docs/intersects_with.md says more.
-- a: Name of a table or view with global_id and mesh, as read_ifc and load give them.
-- b: Another one; NULL stands for all pairs within a.
-- distance: metres, >= 0.
-- method: 'auto' or 'rtree', which are the same, or 'none': all pairs, as without any index.
-- gives: a b
-- example: SELECT count(*) FROM candidate_pairs('elements', distance := 0.1)
CREATE OR REPLACE MACRO candidate_pairs(a, b := NULL, distance := 0.0, method := 'auto') AS TABLE
WITH x AS MATERIALIZED (
    SELECT *, spatialq_mesh_boxes(mesh) AS box, row_number() OVER () AS row
    FROM spatialq_elements('candidate_pairs: a', a)
),
other AS MATERIALIZED (
    SELECT *, spatialq_mesh_boxes(mesh) AS box, row_number() OVER () AS row
    FROM spatialq_elements('candidate_pairs: b', coalesce(
        spatialq_text('candidate_pairs: b must be the name of a table, got ', b),
        spatialq_text('candidate_pairs: a must be the name of a table, got ', a)
    ))
),
y AS (
    FROM x WHERE b IS NULL UNION ALL FROM other WHERE b IS NOT NULL
),
found AS (
    SELECT unnest(spatialq_candidate_pairs(
        (SELECT coalesce(list(box ORDER BY row), []) FROM x),
        (SELECT coalesce(list(box ORDER BY row), []) FROM other WHERE b IS NOT NULL HAVING b IS NOT NULL),
        spatialq_length('candidate_pairs: distance must be >= 0 metres, got ', distance),
        spatialq_text('candidate_pairs: method must be text, got ', method)
    ), max_depth := 2)
)
SELECT x.global_id AS a, y.global_id AS b
FROM found AS f JOIN x ON x.row = f.i JOIN y ON y.row = f.j
WHERE x.identity <> y.identity;

-- The elements whose box meets a box along the axes, with contact.
-- elements: Name of a table or view with mesh, as read_ifc and load give them.
-- xmin, ymin, zmin, xmax, ymax, zmax: metres, as the meshes; infinity is no limit.
-- gives: the rows of elements
-- example: SELECT name FROM elements_in_box('elements', 0, 0, 0, 5, 5, 2.5)
CREATE OR REPLACE MACRO elements_in_box(elements, xmin, ymin, zmin, xmax, ymax, zmax) AS TABLE
SELECT e.* EXCLUDE (spatialq_box)
FROM (
    SELECT *, spatialq_mesh_boxes(mesh) AS spatialq_box
    FROM query(spatialq_rows_sql(
        'elements_in_box: elements',
        spatialq_name('elements_in_box: elements must be the name of a table, got ', elements),
        ['mesh']
    ))
) AS e
WHERE e.spatialq_box[1] <= spatialq_number('elements_in_box: xmax must be a number, got ', xmax)
AND e.spatialq_box[2] <= spatialq_number('elements_in_box: ymax must be a number, got ', ymax)
AND e.spatialq_box[3] <= spatialq_number('elements_in_box: zmax must be a number, got ', zmax)
AND e.spatialq_box[4] >= spatialq_number('elements_in_box: xmin must be a number, got ', xmin)
AND e.spatialq_box[5] >= spatialq_number('elements_in_box: ymin must be a number, got ', ymin)
AND e.spatialq_box[6] >= spatialq_number('elements_in_box: zmin must be a number, got ', zmin);

-- The matrix of nine intersections that defines a relation of two solids, as text: interior, boundary
-- and exterior of a with those of b, row by row, T where they meet and F where they do not.
-- relation: As spatial_relations and mesh_relation give it; NULL gives NULL.
-- example: SELECT DISTINCT relation, nine_intersections(relation) FROM spatial_relations('elements')
CREATE OR REPLACE MACRO nine_intersections(relation) AS
CASE spatialq_text('nine_intersections: relation must be text, got ', relation)
    WHEN 'disjoint' THEN 'FFTFFTTTT'
    WHEN 'touch' THEN 'FFTFTTTTT'
    WHEN 'overlap' THEN 'TTTTTTTTT'
    WHEN 'contains' THEN 'TTTFFTFFT'
    WHEN 'inside' THEN 'TFFTFFTTT'
    WHEN 'covers' THEN 'TTTFTTFFT'
    WHEN 'covered_by' THEN 'TFFTTFTTT'
    WHEN 'equals' THEN 'TFFFTFFFT'
    ELSE CASE WHEN relation IS NOT NULL THEN spatialq_refuse(
        'nine_intersections: relation must be one of disjoint, touch, overlap, contains, inside, covers, covered_by, equals, got ',
        '''' || spatialq_text('nine_intersections: relation must be text, got ', relation) || ''''
    )::VARCHAR END
END;
