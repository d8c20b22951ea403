WITH cloud AS (FROM scan), model AS (
    FROM read_ifc_objects('house.ifc')
    LEFT JOIN (SELECT file_name, step_id, mesh FROM read_ifc('house.ifc'))
    USING (file_name, step_id)
) SELECT plane_id AS p, global_id AS e FROM plane_elements('cloud', 'model') WHERE global_id IS NOT NULL
