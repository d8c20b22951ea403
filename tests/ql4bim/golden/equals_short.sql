WITH model AS (
    FROM read_ifc_objects('house.ifc')
    LEFT JOIN (SELECT file_name, step_id, mesh FROM read_ifc('house.ifc'))
    USING (file_name, step_id)
),
walls AS (
    FROM model WHERE is_a(ifc_class, 'IfcWall')
)
SELECT a, b FROM equals('walls', 'model')
