-- What changed from one IFC file to another: one row per object that was added, removed, moved,
-- reshaped, renamed, or whose type or properties changed. Objects are the same by their GlobalId,
-- or, where that is new, by their place and shape.
-- old: A file (.ifc, .ifczip).
-- new: Another one, a later state of the same model.
-- unchanged: Whether objects that did not change are listed as well.
-- tolerance: What moved less did not move. (metres; >= 0)
-- gives: status changes ifc_class name storey global_id dx dy dz turn axis details matched_by
--     old_global_id step_id old_step_id: added, removed, changed or unchanged; what changed, such as
--     ['moved', 'renamed']; metres and degrees; properties with the old and the new value
-- example: SELECT status, count(*) FROM model_changes('house.ifc', 'house.ifc', unchanged := true) GROUP BY status
CREATE OR REPLACE MACRO model_changes(old, new, unchanged := false, tolerance := 0.001) AS TABLE
SELECT unnest(spatialq_model_changes(
    spatialq_text('model_changes: old must be a file, got ', old),
    spatialq_text('model_changes: new must be a file, got ', new),
    spatialq_truth('model_changes: unchanged must be true or false, got ', unchanged),
    spatialq_number('model_changes: tolerance must be a number, got ', tolerance)
), max_depth := 2);

-- What changed from one revision of building models to another, both loaded into tables of their
-- own: one row per object, as those of model_changes. Several models are compared as a whole.
-- old: Name of a table of elements as load makes it, with the other tables of the models beside it.
-- new: Name of another one, of a later revision of the same models.
-- unchanged: Whether objects that did not change are listed as well.
-- tolerance: What moved less did not move. (metres; >= 0)
-- gives: the columns of model_changes
-- example: SELECT status, count(*) FROM revision_changes('elements', 'elements', unchanged := true) GROUP BY status
CREATE OR REPLACE MACRO revision_changes(old, new, unchanged := false, tolerance := 0.001) AS TABLE
SELECT unnest(spatialq_revision_changes(
    (SELECT list(s ORDER BY s.file_name, s.step_id) FROM spatialq_state(
        'revision_changes: old',
        spatialq_name('revision_changes: old must be the name of a table, got ', old)
    ) AS s),
    (SELECT list(s ORDER BY s.file_name, s.step_id) FROM spatialq_state(
        'revision_changes: new',
        spatialq_name('revision_changes: new must be the name of a table, got ', new)
    ) AS s),
    spatialq_truth('revision_changes: unchanged must be true or false, got ', unchanged),
    spatialq_number('revision_changes: tolerance must be a number, got ', tolerance)
), max_depth := 2);

-- The objects of the models that are loaded into a table, each with its mesh.
-- place: What an error names.
-- elements: Name of a table of elements.
-- example: FROM spatialq_state('revision_changes: old', 'elements')
CREATE OR REPLACE MACRO spatialq_state(place, elements) AS TABLE
SELECT o.step_id, o.file_name, o.global_id, o.ifc_class, o.name, o.storey,
    o.predefined_type, o.type_id, o.storey_id, o.container_id, o.parent_id, o.description,
    o.object_type, o.tag, o.long_name, o.material, o.attributes, o.properties,
    e.mesh
FROM query(spatialq_rows_sql(place, elements, ['file_name', 'step_id', 'mesh'])) AS e
RIGHT JOIN query(spatialq_rows_sql(
    place,
    spatialq_objects_beside(place, elements),
    [
        'step_id', 'file_name', 'global_id', 'ifc_class', 'name', 'storey',
        'predefined_type', 'type_id', 'storey_id', 'container_id', 'parent_id', 'description',
        'object_type', 'tag', 'long_name', 'material', 'attributes', 'properties'
    ]
)) AS o USING (file_name, step_id);
