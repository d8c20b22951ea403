WITH model AS (
    FROM read_ifc_objects('house.ifc')
),
walls AS (
    FROM model WHERE is_a(ifc_class, 'IfcWall')
)
FROM model SEMI JOIN walls USING (global_id)
