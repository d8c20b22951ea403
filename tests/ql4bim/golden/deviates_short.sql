WITH model AS (
    FROM read_ifc_objects('house.ifc')
    LEFT JOIN (SELECT file_name, step_id, mesh FROM read_ifc('house.ifc'))
    USING (file_name, step_id)
), cloud AS (FROM scan)
SELECT * EXCLUDE (mesh) FROM model
SEMI JOIN (FROM coverage('cloud', 'model', tolerance := 0.01) WHERE status = 'displaced') USING (global_id)
