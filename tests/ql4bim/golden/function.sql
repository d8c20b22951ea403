WITH model AS (
    FROM read_ifc_objects('house.ifc')
    LEFT JOIN (SELECT file_name, step_id, mesh FROM read_ifc('house.ifc'))
    USING (file_name, step_id)
),
walls AS (
    FROM model WHERE is_a(ifc_class, 'IfcWall')
),
slabs AS (
    FROM model WHERE is_a(ifc_class, 'IfcSlab')
),
pairs AS (
    SELECT a AS slab, b AS wall FROM touches('slabs', 'walls')
)
SELECT * EXCLUDE (mesh) FROM walls SEMI JOIN pairs ON walls.global_id = pairs.wall
