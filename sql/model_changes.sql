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
