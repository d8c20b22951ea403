WITH model AS (
    FROM read_ifc_objects('house.ifc')
),
slabs AS (
    FROM model WHERE is_a(ifc_class, 'IfcSlab')
)
FROM model SEMI JOIN slabs USING (global_id)
