WITH cloud AS (
    FROM scan
),
model AS (
    FROM read_ifc_objects('house.ifc')
    LEFT JOIN (SELECT file_name, step_id, mesh FROM read_ifc('house.ifc'))
    USING (file_name, step_id)
)
SELECT point_id AS point, global_id AS element, distance AS gap
FROM point_elements('cloud', 'model', 0.02, unit := 0.3048)
