WITH cloud AS (FROM scan), model AS (
    FROM read_ifc_objects('house.ifc')
    LEFT JOIN (SELECT file_name, step_id, mesh FROM read_ifc('house.ifc'))
    USING (file_name, step_id)
) SELECT plane_id AS plane, global_id AS wall, deviation FROM plane_elements('cloud', 'model', max_angle := 4.0) WHERE global_id IS NOT NULL
