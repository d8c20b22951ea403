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
),
pairs AS (
    SELECT a AS slab, b AS wall, distance AS gap FROM distance('slabs', 'walls', max_distance := 2.0)
)
FROM pairs WHERE round(gap, 6) > 0.1
