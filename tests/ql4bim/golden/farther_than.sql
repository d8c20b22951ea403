WITH model AS (
    FROM read_ifc_objects('house.ifc')
    LEFT JOIN (SELECT file_name, step_id, mesh FROM read_ifc('house.ifc'))
    USING (file_name, step_id)
),
slabs AS (
    FROM model WHERE is_a(ifc_class, 'IfcSlab')
),
walls AS (
    FROM model WHERE is_a(ifc_class, 'IfcWall')
)
SELECT a AS slab, b AS wall FROM farther_than('slabs', 'walls', 5)
