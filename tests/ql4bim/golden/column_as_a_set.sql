WITH model AS (
    FROM read_ifc_objects('house.ifc')
    LEFT JOIN (SELECT file_name, step_id, mesh FROM read_ifc('house.ifc'))
    USING (file_name, step_id)
),
content AS (
    SELECT rel.child AS elem, rel.parent AS storey
    FROM read_ifc_relations('house.ifc') AS rel SEMI JOIN model ON rel.child = model.global_id
    WHERE rel.relation_class = 'IfcRelContainedInSpatialStructure' AND rel.parent IS NOT NULL
),
elem AS (
    FROM model SEMI JOIN content ON model.global_id = content.elem
),
slabs AS (
    FROM model WHERE is_a(ifc_class, 'IfcSlab')
)
SELECT a, b FROM touches('elem', 'slabs')
