WITH model AS (
    FROM read_ifc_objects('house.ifc')
),
walls AS (
    FROM model WHERE is_a(ifc_class, 'IfcWall')
),
slabs AS (
    FROM model WHERE is_a(ifc_class, 'IfcSlab')
)
FROM (FROM walls UNION ALL BY NAME FROM slabs ANTI JOIN walls USING (global_id))
